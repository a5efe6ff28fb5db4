//! `[[program]]` tables of rule files: the gateway's knowledge of programs, each table with its own
//! cases.

use std::sync::Arc;

use crate::config::PolicyConfig;
use crate::detect::command::{PROGRAM_FILES, ProgramTable, Programs};
use crate::document::{Fault, Table};
use crate::message::Direction;

use super::{Cases, FailedCase, Library, RuleId, RuleSet, file, trial};

/// A `[[program]]` table of a rule file.
#[derive(Clone, Debug)]
pub struct ProgramEntry {
    /// The programs and the properties that the table declares for them.
    pub table: ProgramTable,
    /// A short description of what the programs have in common.
    pub title: String,
    /// Commands that the built-in rules refuse because of the table, and commands that they do not
    /// refuse.
    pub cases: Cases,
    /// The file that contains it.
    pub file: Arc<str>,
    /// The line on which the table starts, counted from 1.
    pub line: usize,
}

impl ProgramEntry {
    /// Parses a table and records its faults.
    pub(super) fn read(table: &Table<'_>, file: &Arc<str>) -> Option<Self> {
        let title = file::required_text(table, "title", "what the programs have in common");
        let cases = Cases {
            catches: file::cases(
                table,
                "catches",
                "commands that the built-in rules refuse because of this table",
            ),
            spares: file::cases(table, "spares", "similar commands that they do not refuse"),
        };
        let program_table = ProgramTable::read(table);
        let line = table.place().line;
        table.finish();
        Some(Self {
            table: program_table?,
            title: title?,
            cases,
            file: file.clone(),
            line,
        })
    }

    /// Reads the built-in tables.
    ///
    /// # Errors
    /// Faults of their files, which the tests rule out.
    pub fn builtin() -> Result<Vec<Self>, Vec<Fault>> {
        let files = PROGRAM_FILES
            .iter()
            .map(|(name, text)| Ok(file::read(name, text, true)?.programs));
        Ok(files
            .collect::<Result<Vec<_>, Vec<Fault>>>()?
            .into_iter()
            .flatten()
            .collect())
    }

    /// Returns the rules that cases are tested with: all built-in outbound rules, including those
    /// that a policy has to enable.
    ///
    /// # Errors
    /// Faults of the built-in rules, which the tests rule out.
    pub(super) fn rules() -> Result<RuleSet, Vec<Fault>> {
        let policy = PolicyConfig {
            packs: [("ops".to_owned(), true)].into(),
            ..PolicyConfig::default()
        };
        Library::read(true, &[])?.rule_set(Direction::Outbound, &policy)
    }

    /// Returns the faults of tables that have the same id in the same layer.
    pub(super) fn duplicates(entries: &[Self]) -> Vec<Fault> {
        let mut faults = Vec::new();
        for (at, entry) in entries.iter().enumerate() {
            if let Some(other) = entries
                .iter()
                .take(at)
                .find(|other| other.table.id == entry.table.id)
            {
                faults.push(Fault {
                    file: entry.file.to_string(),
                    line: entry.line,
                    column: 1,
                    message: format!(
                        "the id `{}` is already used at {}:{}",
                        entry.table.id, other.file, other.line
                    ),
                    hint: Some(
                        "give each table its own id; a table replaces a built-in one by its id"
                            .into(),
                    ),
                });
            }
        }
        faults
    }

    /// Tests tables against their cases, with `rules` for outbound messages and with all tables of
    /// `programs`.
    pub(super) fn try_cases(
        entries: &[Self],
        rules: &RuleSet,
        programs: &Programs,
    ) -> Vec<FailedCase> {
        let mut failed_cases = Vec::new();
        for entry in entries {
            let catches = entry.cases.catches.iter().map(|case| (case, true));
            for (case, should_catch) in
                catches.chain(entry.cases.spares.iter().map(|case| (case, false)))
            {
                if trial::refusing_rules(rules, programs, &case.text).is_empty() == should_catch {
                    failed_cases.push(FailedCase {
                        file: entry.file.clone(),
                        line: case.line,
                        rule: RuleId::new(&entry.table.id),
                        should_catch,
                        text: case.text.clone(),
                    });
                }
            }
        }
        failed_cases
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> RuleSet {
        ProgramEntry::rules().unwrap()
    }

    /// Returns the rules that match each case of a table.
    fn hits(entry: &ProgramEntry, rules: &RuleSet, programs: &Programs) -> Vec<Vec<String>> {
        let cases = entry.cases.catches.iter().chain(&entry.cases.spares);
        let ids = |case: &str| {
            trial::refusing_rules(rules, programs, case)
                .iter()
                .map(|rule| rule.id.to_string())
                .collect()
        };
        cases.map(|case| ids(&case.text)).collect()
    }

    #[test]
    fn the_built_in_tables_do_what_their_cases_say() {
        let entries = ProgramEntry::builtin().unwrap();
        assert!(
            ProgramEntry::duplicates(&entries).is_empty() && entries.len() > 50,
            "{}",
            entries.len()
        );
        let failed_cases = ProgramEntry::try_cases(&entries, &rules(), Programs::builtin());
        let messages: Vec<String> = failed_cases.iter().map(ToString::to_string).collect();
        assert!(failed_cases.is_empty(), "{}", messages.join("\n"));
    }

    #[test]
    fn no_built_in_table_is_without_effect() {
        let entries = ProgramEntry::builtin().unwrap();
        let rules = rules();
        let idle: Vec<String> = entries
            .iter()
            .filter(|entry| {
                let others = entries
                    .iter()
                    .filter(|other| other.table.id != entry.table.id);
                let others = Programs::from_tables(others.map(|entry| &entry.table));
                hits(entry, &rules, Programs::builtin()) == hits(entry, &rules, &others)
            })
            .map(|entry| format!("{}:{} `{}`", entry.file, entry.line, entry.table.id))
            .collect();
        assert!(
            idle.is_empty(),
            "their cases do not depend on them:\n{}",
            idle.join("\n")
        );
    }

    const JOBRUN: &str = r#"
        format = 1
        direction = "outbound"
        [[program]]
        id = "job-runner"
        title = "Runs the command after its options and the name of a queue"
        names = ["jobrun"]
        options = { short = "u", long = ["user"] }
        runs = { operands = 1 }
        catches = ["jobrun -u root batch rm -rf /", "jobrun --user root batch rm -rf /"]
        spares = ["jobrun -u root batch ls"]
    "#;

    #[test]
    fn a_table_of_an_operator_adds_to_what_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("jobs.toml");
        std::fs::write(&file, JOBRUN).unwrap();
        let library = Library::load(true, &[folder.path().to_owned()]).unwrap();
        let set = library
            .rule_set(Direction::Outbound, &PolicyConfig::default())
            .unwrap();
        let command = "jobrun -uroot batch rm -rf /";
        assert_eq!(
            trial::refusing_rules(&set, set.programs(), command)
                .first()
                .map(|rule| rule.id.as_str()),
            Some("delete-tree")
        );
        assert!(trial::refusing_rules(&set, Programs::builtin(), command).is_empty());
        assert_ne!(set.digest(), rules().digest());

        std::fs::write(&file, JOBRUN.replace("batch ls", "batch rm -rf ~")).unwrap();
        let faults = Library::load(true, &[folder.path().to_owned()]).unwrap_err();
        let [fault] = faults.as_slice() else {
            panic!("{faults:?}")
        };
        assert_eq!(fault.line, 11, "{fault}");
        assert_contains!(fault.message, "`job-runner` should spare this");
    }
}
