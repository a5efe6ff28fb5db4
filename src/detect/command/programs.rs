//! The data about programs: the tables of `rules/programs`, and those that an operator adds.

use std::sync::{Arc, LazyLock};

use super::known::{Program, ScriptKind};
use super::traits::Traits;
use crate::document::{self, Table};
use crate::text::quick::QuickMap;

// `PROGRAM_FILES`, the name and text of each built-in file, which `src/build.rs` writes.
include!(concat!(env!("OUT_DIR"), "/program_files.rs"));

static BUILTIN: LazyLock<Vec<ProgramTable>> = LazyLock::new(|| {
    // Tests rule out faults in these tables.
    let tables = PROGRAM_FILES.iter().filter_map(|(name, _)| {
        document::read_builtin(name, |root| {
            Some(
                root.tables("program")
                    .iter()
                    .filter_map(ProgramTable::read)
                    .collect::<Vec<_>>(),
            )
        })
        .ok()
    });
    tables.flatten().collect()
});
static BUILTIN_PROGRAMS: LazyLock<Arc<Programs>> =
    LazyLock::new(|| Arc::new(Programs::from_tables(BUILTIN.iter())));

/// A `[[program]]` table: programs with properties in common, and these properties.
#[derive(Clone, Debug)]
pub struct ProgramTable {
    /// The name of the table. A table replaces an earlier one of the same name.
    pub id: String,
    names: Vec<String>,
    properties: Program,
}

impl ProgramTable {
    /// Parses a table, except for the keys that describe and test it, and reports faults.
    pub fn read(table: &Table<'_>) -> Option<Self> {
        let id = table.required("id", "a name of lower-case words joined by hyphens");
        let names = table.values("names");
        if names.is_empty() {
            table.missing("names", "the programs, without folders and without `.exe`");
        }
        let properties = Program::read(table)?;
        Some(Self {
            id: id?.value,
            names,
            properties,
        })
        .filter(|entry| !entry.names.is_empty())
    }
}

/// The data about all programs.
#[derive(Debug, Default)]
pub struct Programs {
    by_name: QuickMap<String, Arc<Program>>,
    /// Programs that run others, in the order of the tables: the possible meanings of a pattern in
    /// place of a name.
    runners: Vec<String>,
}

impl Programs {
    /// Returns the data of the built-in tables.
    pub fn builtin() -> &'static Arc<Self> {
        &BUILTIN_PROGRAMS
    }

    /// Returns the data of the built-in tables, each replaced by the table of `own` with its name,
    /// and of the other tables of `own`.
    pub fn with_builtin<'t>(own: impl IntoIterator<Item = &'t ProgramTable>) -> Self {
        let own: Vec<&ProgramTable> = own.into_iter().collect();
        let builtin = BUILTIN
            .iter()
            .filter(|table| own.iter().all(|other| other.id != table.id));
        Self::from_tables(builtin.chain(own.iter().copied()))
    }

    /// Returns the data of these tables only.
    pub fn from_tables<'t>(tables: impl IntoIterator<Item = &'t ProgramTable>) -> Self {
        let mut by_name: QuickMap<String, Program> = QuickMap::default();
        let mut runners: Vec<String> = Vec::new();
        for table in tables {
            for name in &table.names {
                by_name
                    .entry(name.clone())
                    .or_default()
                    .add(&table.properties);
                if (table.properties.interprets.is_some() || table.properties.runs_what_follows())
                    && !runners.contains(name)
                {
                    runners.push(name.clone());
                }
            }
        }
        Self {
            by_name: by_name
                .into_iter()
                .map(|(name, program)| (name, Arc::new(program)))
                .collect(),
            runners,
        }
    }

    /// Returns the data about the program of this name.
    pub(super) fn get(&self, program: &str) -> Option<&Arc<Program>> {
        self.by_name.get(program)
    }

    /// Returns the data about an interpreter, whose name may end in a version: `python3.12`.
    fn versioned(&self, program: &str) -> Option<&Program> {
        self.by_name
            .get(program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.'))
            .map(Arc::as_ref)
    }

    /// Returns what a program runs, if it is an interpreter.
    pub(super) fn interpreter(&self, program: &str) -> Option<ScriptKind> {
        self.versioned(program)?.interprets
    }

    /// Reports whether a program is a compiler or a linker, whose name may end in a version:
    /// `gcc-12`.
    pub(super) fn is_compiler(&self, program: &str) -> bool {
        let name = program.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '-' | '.'));
        self.by_name
            .get(name)
            .is_some_and(|data| data.traits.has(Traits::COMPILES))
    }

    /// Reports whether a program runs code of a language of which only the strings are read.
    pub(super) fn is_unread(&self, program: &str) -> bool {
        self.versioned(program)
            .is_some_and(|data| data.traits.has(Traits::UNREAD_LANGUAGE))
    }

    /// Returns the names of interpreters, and of programs that run the command after their options.
    pub(super) fn runners(&self) -> impl Iterator<Item = &str> {
        self.runners.iter().map(String::as_str)
    }
}
