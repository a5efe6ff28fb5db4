//! The conditions of a rule of the kind `path`.

use super::gate_files::Part;
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
    is: Vec<Glob>,
    not: Vec<Glob>,
    gate: Option<Part>,
    how: Option<Use>,
    inside: Option<PathOrigin>,
}

/// The use of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Read,
    Write,
}

impl Use {
    const WORDS: [(&'static str, Self); 2] = [("read", Self::Read), ("write", Self::Write)];

    fn is(self, how: FileUse) -> bool {
        (self == Self::Write) == (how == FileUse::Write)
    }
}

impl Spec {
    /// Reads a `find.path` table.
    pub(super) fn read(table: &Table<'_>) -> Option<Self> {
        let mut fits = true;
        let mut made = Self {
            outside: table.boolean("outside").unwrap_or(false),
            climbs: table.boolean("climbs").unwrap_or(false),
            disguised: table.boolean("disguised").unwrap_or(false),
            share: table.boolean("share").unwrap_or(false),
            gate: table.choice("gate", &Part::WORDS),
            how: table.choice("how", &Use::WORDS),
            inside: table.choice("in", &PathOrigin::WORDS),
            ..Self::default()
        };
        for word in table.strings("class") {
            match Classes::named(&word.value) {
                Some(class) => made.class = Some(made.class.unwrap_or(Classes::NONE).join(class)),
                None => {
                    let known: Vec<&str> = Classes::names().collect();
                    let hint = suggest(&word.value, &known);
                    table.fault_at(
                        &word.place,
                        format!("no such class of paths: `{}`", word.value),
                        Some(&hint),
                    );
                    fits = false;
                }
            }
        }
        for (key, globs) in [("is", &mut made.is), ("not", &mut made.not)] {
            for word in table.strings(key) {
                match Glob::read(&word.value) {
                    Some(glob) => globs.push(glob),
                    None => {
                        let message = format!("`{key}` holds `{}`", word.value.escape_debug());
                        let hint = "a glob starts with `/`, `~` or `**/`; `**` stands at its start or its end";
                        table.fault_at(&word.place, message, Some(hint));
                        fits = false;
                    }
                }
            }
        }
        table.finish();
        let is_named = made.class.is_some() || made.gate.is_some() || !made.is.is_empty();
        let says = made.outside || made.climbs || made.disguised || made.share || is_named;
        if fits && !says {
            table.fault(
                "`find.path` looks for nothing",
                Some("say one of `outside`, `climbs`, `disguised`, `share`, `class`, `gate`, `is`"),
            );
        }
        (fits && says).then_some(made)
    }

    /// Returns the interpretation that the rule tests first: its cases are run with it.
    pub fn read_as(&self) -> ReadAs {
        if self.inside == Some(PathOrigin::Command) {
            ReadAs::Shell
        } else {
            ReadAs::Path
        }
    }

    /// Returns the name of a tool that uses paths in the way the rule requires.
    pub fn usual_tool(&self) -> &'static str {
        if self.how == Some(Use::Write) {
            "write_file"
        } else {
            "read_file"
        }
    }

    /// Reports whether a path meets the conditions.
    pub(super) fn matches(&self, seen: &PathFacts) -> bool {
        let names = |globs: &[Glob]| {
            seen.forms
                .iter()
                .any(|form| globs.iter().any(|glob| glob.fits(form)))
        };
        self.inside.is_none_or(|inside| inside == seen.stands)
            && self.how.is_none_or(|how| how.is(seen.how))
            && (!self.outside || seen.outside)
            && (!self.climbs || seen.climbs)
            && (!self.disguised || seen.disguised)
            && (!self.share || seen.share)
            && self.class.is_none_or(|class| seen.classes.meets(class))
            && self.gate.is_none_or(|part| seen.gate.contains(&part))
            && (self.is.is_empty() || names(&self.is))
            && (self.not.is_empty() || !names(&self.not))
    }
}
