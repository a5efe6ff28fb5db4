//! Rules of the kind `command`: a shell command is read as a shell reads it, and rules match what it comes down to.
//!
//! `clean` resolves control characters and look-alikes, `lex` and `expand` do what a shell does to words,
//! `reader` runs through the script without running it, `unwrap`, `hand_over` and `code` open what is wrapped, and
//! each command becomes `facts`, which the clauses of `spec` match. Every step is bounded; a bound that is hit
//! is a fact of its own (`does = "unreadable"`), so that what cannot be read is not waved through.

mod brace;
mod clean;
mod cmd_exe;
mod code;
mod code_lex;
mod expand;
mod facts;
pub(super) mod glob;
mod groups;
mod hand_over;
mod lex;
mod path_classes;
pub(super) mod paths;
mod powershell;
mod powershell_calls;
mod powershell_terms;
mod powershell_words;
mod programs;
mod quote;
mod reader;
mod script;
#[cfg(test)]
mod script_tests;
mod simulate;
mod spec;
mod term;
#[cfg(test)]
mod tests;
mod unwrap;
mod value;
mod variable;
mod windows;
mod windows_names;
mod wrappers;

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};

pub use self::script::{How, Script, Touched, Written};
pub use self::spec::Spec;

use self::script::Reading;
use super::pattern::Regex;
use super::{Detector, Kind, Match, Place, ReadAs};
use crate::document::Table;
use crate::text::Text;

/// The kind `command`.
#[derive(Debug)]
pub struct Command;

impl Kind for Command {
    type Spec = Spec;

    fn read(table: &Table<'_>) -> Option<Spec> {
        Spec::read(table)
    }

    fn build(rules: &[(usize, &Spec)]) -> Result<Box<dyn Detector>, Vec<(usize, String)>> {
        Ok(Box::new(Commands::new(rules)))
    }
}

/// All rules of the kind, by the program they name.
#[derive(Debug, Default)]
struct Commands {
    clauses: Vec<(usize, spec::Clause)>,
    by_program: HashMap<String, Vec<usize>>,
    /// Clauses that name no program, or one by a glob.
    any_program: Vec<usize>,
    raw: Vec<usize>,
    /// Programs of PowerShell and cmd.exe that some clause names.
    windows: HashSet<String>,
}

impl Commands {
    fn new(rules: &[(usize, &Spec)]) -> Self {
        let mut made = Self::default();
        for (rule, spec) in rules {
            for clause in &spec.clauses {
                let at = made.clauses.len();
                made.windows.extend(clause.program.iter().filter_map(|name| name.strip_prefix("windows:")).map(String::from));
                if clause.is_raw_only() {
                    made.raw.push(at);
                } else if clause.program.is_empty() || clause.program.iter().any(|name| name.contains('*')) {
                    made.any_program.push(at);
                } else {
                    for name in &clause.program {
                        made.by_program.entry(name.strip_prefix("windows:").unwrap_or(name).to_owned()).or_default().push(at);
                    }
                }
                made.clauses.push((*rule, clause.clone()));
            }
        }
        made
    }

    fn judge(&self, read: &Reading, found: &mut Vec<Match>) {
        for (rule, clause) in self.raw.iter().filter_map(|at| self.clauses.get(*at)) {
            let matches = |regex: &Regex| read.scripts.iter().any(|script| regex.may_match(script));
            if !found.iter().any(|m| m.rule == *rule) && clause.raw.iter().any(matches) {
                found.push(Match { rule: *rule, span: None, reading: "script" });
            }
        }
        for facts in &read.facts {
            let line = OnceCell::new();
            let named = self.by_program.get(&facts.program).into_iter().flatten();
            for (rule, clause) in named.chain(&self.any_program).filter_map(|at| self.clauses.get(*at)) {
                if !found.iter().any(|m| m.rule == *rule) && clause.matches(facts, || line.get_or_init(|| facts.line())) {
                    found.push(Match { rule: *rule, span: None, reading: "shell" });
                }
            }
        }
    }
}

impl Detector for Commands {
    fn scan(&self, text: &Text<'_>, place: &Place<'_>, found: &mut Vec<Match>) {
        if !matches!(place.read_as, ReadAs::Shell | ReadAs::Code(_)) {
            return;
        }
        let own;
        let script = match place.script {
            Some(script) => script,
            None => {
                own = Script::new(text.raw(), place.read_as);
                &own
            }
        };
        let windows = if script.may_be_windows(|word| self.windows.contains(word)) { script.windows_readings() } else { &[] };
        for reading in script.readings().iter().chain(windows) {
            self.judge(reading, found);
        }
    }
}
