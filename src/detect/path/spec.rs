//! The conditions of a rule of the kind `path`.

use super::gate_files::FileCategory;
use super::glob::Glob;
use super::judge::{PathFacts, PathOrigin};
use crate::detect::ReadAs;
use crate::detect::command::FileUse;
use crate::detect::command::paths::Classes;
use crate::document::{Table, suggest};

/// The conditions of a rule of this kind. All that are given must hold; of a list, one entry.
#[derive(Clone, Debug, Default)]
pub struct Spec {
    outside: bool,
    climbs: bool,
    disguised: bool,
    share: bool,
    class: Option<Classes>,
    globs: Vec<Glob>,
    excluded: Vec<Glob>,
    gate: Option<FileCategory>,
    path_use: Option<Use>,
    origin: Option<PathOrigin>,
}

enum_with_names! {
    /// The use of a path.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Use {
        Read = "read",
        Write = "write",
    }
}

impl Use {
    fn covers(self, file_use: FileUse) -> bool {
        (self == Self::Write) == (file_use == FileUse::Write)
    }
}

impl Spec {
    /// Reads a `find.path` table.
    pub(super) fn read(table: &Table<'_>) -> Option<Self> {
        let mut is_valid = true;
        let mut spec = Self {
            outside: table.boolean("outside").unwrap_or(false),
            climbs: table.boolean("climbs").unwrap_or(false),
            disguised: table.boolean("disguised").unwrap_or(false),
            share: table.boolean("share").unwrap_or(false),
            gate: table.choice("gate", &FileCategory::WORDS),
            path_use: table.choice("how", &Use::WORDS),
            origin: table.choice("in", &PathOrigin::WORDS),
            ..Self::default()
        };
        for word in table.strings("class") {
            match Classes::from_name(&word.value) {
                Some(class) => spec.class = Some(spec.class.unwrap_or(Classes::NONE).join(class)),
                None => {
                    let names: Vec<&str> = Classes::names().collect();
                    let hint = suggest(&word.value, &names);
                    table.fault_at(
                        &word.place,
                        format!("no such class of paths: `{}`", word.value),
                        Some(&hint),
                    );
                    is_valid = false;
                }
            }
        }
        for (key, globs) in [("is", &mut spec.globs), ("not", &mut spec.excluded)] {
            for word in table.strings(key) {
                match Glob::read(&word.value) {
                    Some(glob) => globs.push(glob),
                    None => {
                        let message = format!("`{key}` holds `{}`", word.value.escape_debug());
                        let hint = "a glob starts with `/`, `~` or `**/`; `**` stands at its start or its end";
                        table.fault_at(&word.place, message, Some(hint));
                        is_valid = false;
                    }
                }
            }
        }
        table.finish();
        let is_named = spec.class.is_some() || spec.gate.is_some() || !spec.globs.is_empty();
        let has_condition = spec.outside || spec.climbs || spec.disguised || spec.share || is_named;
        if is_valid && !has_condition {
            table.fault(
                "`find.path` looks for nothing",
                Some("say one of `outside`, `climbs`, `disguised`, `share`, `class`, `gate`, `is`"),
            );
        }
        (is_valid && has_condition).then_some(spec)
    }

    /// Returns the interpretation that the rule tests first: its cases are run with it.
    pub fn read_as(&self) -> ReadAs {
        if self.origin == Some(PathOrigin::Command) {
            ReadAs::Shell
        } else {
            ReadAs::Path
        }
    }

    /// Returns the name of a tool that uses paths in the way the rule requires.
    pub fn usual_tool(&self) -> &'static str {
        if self.path_use == Some(Use::Write) {
            "write_file"
        } else {
            "read_file"
        }
    }

    /// Reports whether a path meets the conditions.
    pub(super) fn matches(&self, facts: &PathFacts) -> bool {
        let any_fits = |globs: &[Glob]| {
            facts
                .forms
                .iter()
                .any(|form| globs.iter().any(|glob| glob.fits(form)))
        };
        self.origin.is_none_or(|inside| inside == facts.origin)
            && self.path_use.is_none_or(|how| how.covers(facts.file_use))
            && (!self.outside || facts.outside)
            && (!self.climbs || facts.climbs)
            && (!self.disguised || facts.disguised)
            && (!self.share || facts.share)
            && self
                .class
                .is_none_or(|class| facts.classes.intersects(class))
            && self.gate.is_none_or(|part| facts.gate.contains(&part))
            && (self.globs.is_empty() || any_fits(&self.globs))
            && (self.excluded.is_empty() || !any_fits(&self.excluded))
    }
}
