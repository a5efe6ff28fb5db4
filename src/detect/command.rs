//! Rules of the kind `command`. They read a shell command as a shell does, and match the commands
//! that it results in.
//!
//! `clean` resolves control characters and look-alikes, `lex` and `expand` process words as a shell
//! does, `reader` follows the script without running it, `unwrap`, `hand_over` and `code` read
//! nested commands, and each command becomes `facts`, which the clauses of `spec` match. Every step
//! is bounded. A bound that is exceeded is a fact of its own (`does = "unreadable"`), so that
//! content that cannot be read is not let through.

mod assign;
#[cfg(test)]
mod bounds_tests;
mod brace;
mod clean;
mod cmd_exe;
mod code;
mod code_calls;
mod code_flow;
mod code_imports;
mod code_lex;
mod code_names;
mod compiled;
mod cwd;
mod dialect;
mod env_secrets;
mod escapes;
mod expand;
mod facts;
mod file_access;
mod find;
pub(super) mod glob;
mod groups;
mod input;
mod interpret;
mod known;
mod lex;
mod links;
mod one_liners;
mod options;
mod path_classes;
mod path_match;
pub(super) mod paths;
mod powershell;
mod powershell_calls;
mod powershell_terms;
mod powershell_words;
mod programs;
mod quote;
mod raw;
mod reader;
mod resolved;
mod saving;
mod script;
#[cfg(test)]
mod script_tests;
mod sed;
mod sending;
mod shell_out;
mod simulate;
mod sources;
mod spec;
mod sql_clients;
mod tcl;
mod term;
#[cfg(test)]
mod tests;
mod tokens;
mod traits;
mod unknown_wrappers;
mod unwrap;
mod value;
mod variable;
mod windows;
mod windows_names;
mod windows_nested;
mod words;
mod wrappers;
mod written_files;
mod xargs;

use std::cell::OnceCell;

pub(super) use self::code_lex::COMPILED;
pub use self::file_access::{FileAccess, FileUse};
pub use self::programs::{PROGRAM_FILES, ProgramTable, Programs};
pub use self::script::Script;
pub use self::spec::Spec;
pub(super) use self::value::UNKNOWN;
pub use self::written_files::{Content, WrittenFile, WrittenFiles};

use self::dialect::Dialect;
use self::facts::{Behaviour, Facts};
use self::raw::Raw;
use self::script::Reading;
use self::spec::Kinds;
use super::{Detector, Kind, Match, Place, ReadAs, work};
use crate::document::Table;
use crate::text::Text;
use crate::text::quick::{QuickMap, QuickSet};

/// Maximum number of programs that one pattern is assumed to name.
const MAX_MATCHED_PROGRAMS: usize = 16;
/// Number of characters of a pattern at which the end of a name may begin.
const MAX_NAME: usize = 32;

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

/// All rules of the kind, indexed by the programs that they name.
#[derive(Debug, Default)]
struct Commands {
    clauses: Vec<(usize, spec::Clause)>,
    /// The kinds of facts that a command must have to be compared with each clause.
    needs: Vec<Kinds>,
    by_program: QuickMap<String, Vec<usize>>,
    /// Clauses whose programs are named by a glob, with the length of the part before its first
    /// star.
    by_glob: Vec<(String, usize, usize)>,
    /// Clauses that name no program.
    any_program: Vec<usize>,
    raw: Raw,
    /// Programs of PowerShell and cmd.exe that are named by a clause.
    windows: QuickSet<String>,
}

/// The clauses that a reading is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clauses {
    All,
    /// Clauses that name programs of PowerShell and cmd.exe.
    OfWindows,
}

impl Commands {
    fn new(rules: &[(usize, &Spec)]) -> Self {
        let mut commands = Self::default();
        for (rule, spec) in rules {
            for clause in &spec.clauses {
                let at = commands.clauses.len();
                commands.windows.extend(
                    clause
                        .program
                        .iter()
                        .filter_map(|name| name.strip_prefix("windows:"))
                        .filter(|name| !name.contains('*'))
                        .map(String::from),
                );
                if clause.is_raw_only() {
                    commands.raw.add(at, &clause.raw);
                } else if clause.program.is_empty() {
                    commands.any_program.push(at);
                }
                for name in clause.program.iter().filter(|_| !clause.is_raw_only()) {
                    let name = name.strip_prefix("windows:").unwrap_or(name);
                    if let Some(star) = name.find('*') {
                        commands.by_glob.push((name.to_owned(), star, at));
                    } else {
                        commands
                            .by_program
                            .entry(name.to_owned())
                            .or_default()
                            .push(at);
                    }
                }
                commands.needs.push(clause.required_kinds());
                commands.clauses.push((*rule, clause.clone()));
            }
        }
        commands
    }

    fn judge(
        &self,
        script: &Script<'_>,
        result: &Reading,
        clauses: Clauses,
        matches: &mut Vec<Match>,
    ) {
        let scripts = || result.scripts.iter().chain(&result.resolved);
        for text in scripts().filter(|_| clauses == Clauses::All) {
            self.raw.scan(text, |at| {
                if let Some((rule, _)) = self.clauses.get(at)
                    && !matches.iter().any(|m| m.rule == *rule)
                {
                    matches.push(Match::new(*rule, None, "script"));
                }
            });
        }
        // A source that has sockets and starts programs need not tie them together.
        let facts = || {
            result.facts.iter().filter(|facts| {
                !script.is_source() || facts.behaviour != Some(Behaviour::ReverseShell)
            })
        };
        let alternatives: Vec<Facts> = facts()
            .flat_map(|facts| self.expand_pattern(facts, script.programs()))
            .collect();
        for facts in facts().chain(&alternatives) {
            let line = OnceCell::new();
            let split_words = OnceCell::new();
            let kinds = facts.kinds();
            let shares_prefix = |glob: &str, star: usize| {
                facts.program.as_bytes().get(..star) == glob.as_bytes().get(..star)
            };
            let globbed = self.by_glob.iter().filter(|(glob, star, _)| {
                shares_prefix(glob, *star) && glob::matches(glob, &facts.program)
            });
            let by_name = self.by_program.get(&facts.program).into_iter().flatten();
            let candidates = by_name
                .chain(globbed.map(|(.., at)| at))
                .chain(&self.any_program);
            let eligible = candidates.filter(|at| {
                self.needs
                    .get(**at)
                    .is_some_and(|needs| kinds.covers(*needs))
            });
            for (rule, clause) in eligible.filter_map(|at| self.clauses.get(*at)) {
                if clauses == Clauses::OfWindows && !clause.is_of_windows() {
                    continue;
                }
                if !matches.iter().any(|m| m.rule == *rule)
                    && clause.matches(
                        facts,
                        || line.get_or_init(|| facts.line()),
                        || {
                            split_words
                                .get_or_init(|| facts.words_with_split_options())
                                .as_deref()
                        },
                    )
                    && raw::any_matches(&clause.raw, scripts())
                {
                    let reading = if facts.behaviour == Some(Behaviour::Unreadable) {
                        work::COMMAND
                    } else {
                        "shell"
                    };
                    matches.push(Match::new(*rule, None, reading));
                }
            }
        }
    }
}

impl Commands {
    /// Returns a command whose program is named by a pattern, once for each program that the
    /// pattern matches.
    fn expand_pattern(&self, facts: &Facts, programs: &Programs) -> Vec<Facts> {
        let pattern = facts
            .fields
            .get(facts.from)
            .filter(|field| field.glob && unwrap::is_pattern(&facts.program));
        if pattern.is_none() {
            return Vec::new();
        }
        let names = self
            .by_program
            .keys()
            .filter(|name| glob::matches(&facts.program, name))
            .cloned();
        let globbed = self
            .by_glob
            .iter()
            .filter_map(|(name, star, _)| common_name(&facts.program, name.get(..*star)?));
        names
            .chain(globbed)
            .take(MAX_MATCHED_PROGRAMS)
            .map(|name| facts.with_program((&name, programs.get(&name))))
            .collect()
    }
}

/// Returns a name that a pattern matches and that begins with `start`; its end is taken from the
/// pattern.
fn common_name(pattern: &str, start: &str) -> Option<String> {
    let suffixes = pattern
        .char_indices()
        .skip(1)
        .take(MAX_NAME)
        .map(|(at, _)| pattern.get(at..).unwrap_or_default());
    let mut names = suffixes
        .filter(|end| !start.is_empty() && !unwrap::is_pattern(end))
        .map(|end| format!("{start}{end}"));
    names.find(|name| glob::matches(pattern, name))
}

impl Detector for Commands {
    fn scan(&self, text: &Text<'_>, place: &Place<'_>, matches: &mut Vec<Match>) {
        if !matches!(place.outbound().read_as, ReadAs::Shell | ReadAs::Code(_)) {
            return;
        }
        let fallback;
        let script = match place.outbound().script {
            Some(script) => script,
            None => {
                fallback = Script::new(text.raw(), place.outbound().read_as);
                &fallback
            }
        };
        self.scan_script(script, matches);
    }

    fn scan_script(&self, script: &Script<'_>, matches: &mut Vec<Match>) {
        for reading in script.readings() {
            self.judge(script, reading, Clauses::All, matches);
        }
        let clauses = match script.dialect(&self.windows) {
            Dialect::Posix => return,
            Dialect::Windows => Clauses::All,
            Dialect::Open => Clauses::OfWindows,
        };
        for reading in script.windows_readings() {
            self.judge(script, reading, clauses, matches);
        }
    }
}
