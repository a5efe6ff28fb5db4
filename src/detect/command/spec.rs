//! The conditions of a rule of the kind `command`, and whether a command meets them.

use crate::detect::pattern::{Regex, read_clauses, read_exact_regexes};

use super::facts::{Behaviour, Facts, NamedPath};
use super::glob;
use super::path_match::{Classes, Glob};
use super::value::Taint;
use crate::document::{Table, suggest};

/// Settings of a rule of this kind, which matches if one of its clauses does.
#[derive(Debug, Default)]
pub struct Spec {
    pub(super) clauses: Vec<Clause>,
}

impl Spec {
    /// Reports whether the rule only matches commands that could not be read.
    pub fn is_unreadable(&self) -> bool {
        self.clauses
            .iter()
            .all(|clause| clause.behaviour == Some(Behaviour::Unreadable))
    }
}

/// A set of conditions that must all hold for one command.
#[derive(Clone, Debug, Default)]
pub(super) struct Clause {
    pub(super) program: Vec<String>,
    flags: Vec<Vec<String>>,
    without: Vec<Vec<String>>,
    verb: Vec<Vec<String>>,
    path: Places,
    reads: Places,
    writes: Places,
    argument: Vec<Regex>,
    line: Vec<Regex>,
    unless: Vec<Regex>,
    content: Vec<Regex>,
    environment: Vec<String>,
    stdin: Taint,
    executes: Taint,
    sends: Taint,
    behaviour: Option<Behaviour>,
    /// Regexes that are matched against the whole text, after control characters have been
    /// resolved.
    pub(super) raw: Vec<Regex>,
}

/// The kinds of facts that a command has, or that a clause requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kinds(u8);

impl Kinds {
    pub(super) fn new(kinds: [bool; 8]) -> Self {
        Self(
            kinds
                .into_iter()
                .fold(0, |bits, kind| bits << 1 | u8::from(kind)),
        )
    }

    /// Reports whether these kinds include all of `other`.
    pub(super) fn covers(self, other: Self) -> bool {
        other.0 & !self.0 == 0
    }
}

/// Paths by class or glob.
#[derive(Clone, Debug, Default)]
struct Places {
    classes: Classes,
    globs: Vec<Glob>,
}

impl Places {
    fn is_empty(&self) -> bool {
        self.classes == Classes::NONE && self.globs.is_empty()
    }

    fn match_any(&self, named_paths: &[NamedPath]) -> bool {
        named_paths.iter().any(|s| {
            s.classes.intersects(self.classes) || self.globs.iter().any(|glob| glob.fits(&s.path))
        })
    }
}

impl Spec {
    /// Compiles the regexes, which otherwise happens when a text first needs them.
    ///
    /// # Errors
    /// Returns the bound that a regex exceeds.
    pub fn compile(&self) -> Result<(), String> {
        self.clauses.iter().try_for_each(Clause::compile)
    }

    pub(super) fn read(table: &Table<'_>) -> Option<Self> {
        let hint = "write `any = [{ program = [\"rm\"], … }]`";
        let clauses = read_clauses(table, hint, Clause::read);
        Some(Self { clauses })
    }
}

impl Clause {
    fn read(table: &Table<'_>) -> Self {
        let split = |key: &str, by: char| -> Vec<Vec<String>> {
            let texts = table.values(key).into_iter();
            texts
                .map(|text| text.split(by).map(String::from).collect())
                .collect()
        };
        let regexes = |key: &str| read_exact_regexes(table, key);
        let clause = Self {
            program: table.values("program"),
            flags: split("flags", '|'),
            without: split("without", '|'),
            verb: split("verb", ' '),
            path: places(table, "path"),
            reads: places(table, "reads"),
            writes: places(table, "writes"),
            argument: regexes("argument"),
            line: regexes("line"),
            unless: regexes("unless"),
            content: regexes("content"),
            environment: table.values("environment"),
            stdin: taints(table, "stdin"),
            executes: taints(table, "executes"),
            sends: taints(table, "sends"),
            behaviour: table.choice("does", &Behaviour::WORDS),
            raw: regexes("raw"),
        };
        if clause.is_empty() {
            table.fault(
                "a clause of `find.command` that asks for nothing",
                Some("name a `program`, a `path`, or what the command `reads`, `writes`, `executes`, `sends` or `does`"),
            );
        }
        clause
    }

    fn is_empty(&self) -> bool {
        !self.examines_commands() && self.raw.is_empty()
    }

    fn examines_commands(&self) -> bool {
        !(self.program.is_empty()
            && self.flags.is_empty()
            && self.path.is_empty()
            && self.reads.is_empty()
            && self.writes.is_empty()
            && self.argument.is_empty()
            && self.line.is_empty()
            && self.content.is_empty()
            && self.environment.is_empty()
            && self.stdin == Taint::NONE
            && self.executes == Taint::NONE
            && self.sends == Taint::NONE
            && self.behaviour.is_none())
    }

    /// Compiles the regexes of the clause.
    fn compile(&self) -> Result<(), String> {
        [
            &self.argument,
            &self.line,
            &self.unless,
            &self.content,
            &self.raw,
        ]
        .into_iter()
        .flatten()
        .try_for_each(Regex::compile)
    }

    /// Returns the kinds of facts that a command must have to match this clause, in the order of
    /// [`Facts::kinds`].
    pub(super) fn required_kinds(&self) -> Kinds {
        Kinds::new([
            !self.path.is_empty(),
            !self.reads.is_empty(),
            !self.writes.is_empty(),
            !self.environment.is_empty(),
            self.stdin != Taint::NONE,
            self.executes != Taint::NONE,
            self.sends != Taint::NONE,
            self.behaviour.is_some(),
        ])
    }

    /// Reports whether the clause only names programs of PowerShell and cmd.exe.
    pub(super) fn is_of_windows(&self) -> bool {
        !self.program.is_empty() && self.program.iter().all(|name| name.starts_with("windows:"))
    }

    /// Reports whether the clause only examines the raw text, rather than commands.
    pub(super) fn is_raw_only(&self) -> bool {
        !self.raw.is_empty() && !self.examines_commands()
    }

    /// Reports whether the command that `facts` describe matches this clause; `line` returns its
    /// normalized text, `spread` the same with each option as a word of its own, if that differs.
    pub(super) fn matches<'l>(
        &self,
        facts: &Facts,
        line: impl Fn() -> &'l str,
        spread: impl Fn() -> Option<&'l str>,
    ) -> bool {
        let places = |expected: &Places, named_paths: &[NamedPath]| {
            expected.is_empty() || expected.match_any(named_paths)
        };
        let taint =
            |expected: Taint, actual: Taint| expected == Taint::NONE || actual.intersects(expected);
        (self.program.is_empty() || self.program.iter().any(|name| same_program(name, facts)))
            && self.behaviour == facts.behaviour
            && taint(self.stdin, facts.stdin)
            && taint(self.executes, facts.executes)
            && taint(self.sends, facts.sends)
            && places(&self.path, &facts.paths)
            && places(&self.reads, &facts.reads)
            && places(&self.writes, &facts.writes)
            && self.flags.iter().all(|flag| has_flag(facts, flag))
            && !self.without.iter().any(|flag| has_flag(facts, flag))
            && (self.verb.is_empty() || self.verb.iter().any(|verb| has_verb(facts, verb)))
            && (self.environment.is_empty()
                || facts
                    .environment
                    .iter()
                    .any(|(name, _)| self.environment.contains(name)))
            && (self.argument.is_empty()
                || facts
                    .arguments()
                    .iter()
                    .any(|f| self.argument.iter().any(|r| r.may_match(&f.text))))
            && (self.line.is_empty()
                || self.line.iter().any(|regex| {
                    regex.may_match(line()) || spread().is_some_and(|line| regex.may_match(line))
                }))
            && (self.content.is_empty()
                || facts
                    .written_content
                    .as_deref()
                    .is_some_and(|text| self.content.iter().any(|regex| regex.may_match(text))))
            && !self.unless.iter().any(|regex| regex.is_match(line()))
    }
}

fn same_program(name: &str, facts: &Facts) -> bool {
    if facts.windows != name.starts_with("windows:") && name.contains(':') {
        return false;
    }
    let name = name.strip_prefix("windows:").unwrap_or(name);
    if name.contains('*') {
        glob::matches(name, &facts.program)
    } else {
        name == facts.program
    }
}

/// Reports whether one of the alternatives is among the flags: alone, in a cluster (`-rf`), with a
/// value (`--mode=777`), or shortened as GNU's `getopt_long` and PowerShell allow.
fn has_flag(facts: &Facts, alternatives: &[String]) -> bool {
    for field in facts.arguments() {
        let text = field.text.as_str();
        if text == "--" && !facts.windows {
            return false;
        }
        if !text.starts_with(['-', '/', '+']) && !alternatives.iter().any(|flag| flag == text) {
            continue;
        }
        for flag in alternatives {
            let is_match = if facts.windows {
                let text = text.to_ascii_lowercase();
                let flag = flag.to_ascii_lowercase();
                let name = text.split(':').next().unwrap_or("");
                // `-rec` is `-Recurse`; `--` ends the options of other programs.
                text == flag
                    || (flag.len() > 2
                        && name.len() >= 2
                        && name != "--"
                        && flag.starts_with('-')
                        && flag.starts_with(name))
            } else if let Some(long) = flag.strip_prefix("--") {
                text.strip_prefix("--").is_some_and(|text| {
                    let text = text.split('=').next().unwrap_or(text);
                    text == long || (text.len() >= 3 && long.starts_with(text))
                })
            } else if flag.len() == 2 && flag.starts_with('-') {
                text == flag
                    || (!text.starts_with("--")
                        && text.starts_with('-')
                        && letters(text).is_some_and(|letters| {
                            flag.chars().last().is_some_and(|c| letters.contains(c))
                        }))
            } else {
                text == flag
            };
            if is_match {
                return true;
            }
        }
    }
    false
}

/// Returns the option letters of a cluster, the last of which may have a path as its value: `-rf`,
/// `-sT/etc/passwd`.
fn letters(cluster: &str) -> Option<&str> {
    let end = cluster.find(['/', '~', '@']).unwrap_or(cluster.len());
    let letters = cluster.get(1..end)?;
    letters
        .bytes()
        .all(|b| b.is_ascii_alphanumeric())
        .then_some(letters)
}

/// Reports whether the words are adjacent to each other among the first operands.
fn has_verb(facts: &Facts, verb: &[String]) -> bool {
    let operands: Vec<&str> = facts.operands().take(8).map(|f| f.text.as_str()).collect();
    operands.windows(verb.len()).any(|words| {
        words.iter().zip(verb).all(|(word, pattern)| {
            if facts.windows {
                word.eq_ignore_ascii_case(pattern)
            } else {
                glob::matches(pattern, word)
            }
        })
    })
}

fn places(table: &Table<'_>, key: &str) -> Places {
    let mut places = Places::default();
    for text in table.strings(key) {
        if text.value.starts_with(['/', '~', '*', '?', '.']) {
            places.globs.push(Glob::new(text.value));
        } else if let Some(class) = Classes::from_name(&text.value) {
            places.classes = places.classes.join(class);
        } else {
            let names: Vec<&str> = Classes::names().collect();
            let hint = format!(
                "{}; a path or glob starts with `/`, `~` or `*`",
                suggest(&text.value, &names)
            );
            table.fault_at(
                &text.place,
                format!("`{}` is no class of paths", text.value),
                Some(&hint),
            );
        }
    }
    places
}

fn taints(table: &Table<'_>, key: &str) -> Taint {
    let mut taint = Taint::NONE;
    for text in table.strings(key) {
        let found = table.find(&text, &Taint::WORDS, || {
            format!("`{}` is no source of text", text.value)
        });
        taint |= found.unwrap_or(Taint::NONE);
    }
    taint
}
