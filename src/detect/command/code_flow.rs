//! The state while code is read: names, open brackets and pending operands.

use std::collections::HashMap;

use super::code::secret_variable;
use super::code_names::WALK;
use super::quote;
use super::term::{self, Term};
use super::value::Taint;

/// Maximum number of names that are remembered.
const MAX_NAMES: usize = 512;

/// The state while code is read.
#[derive(Default)]
pub(super) struct Flow {
    pub(super) names: HashMap<String, Term>,
    /// Names of the parameters of functions.
    pub(super) functions: HashMap<String, Vec<String>>,
    /// Taint of everything that was fetched, decoded or read.
    pub(super) taint: Taint,
    /// Taint of everything that was passed to a call that sends.
    pub(super) sent: Taint,
    /// Whether the code runs a text that is not known.
    pub(super) evaluates: bool,
    pub(super) connects: bool,
    /// Whether the code runs input from a connection.
    pub(super) shells: bool,
    /// Whether the code walks through folders and deletes the files that it finds.
    pub(super) deletes_in_walk: bool,
    /// Whether a second pass would know more.
    pub(super) needs_second_pass: bool,
}

impl Flow {
    pub(super) fn assign(&mut self, name: &str, term: Term) {
        if self.names.len() < MAX_NAMES && !name.is_empty() && term.size() <= 65_536 {
            self.names
                .insert(name.trim_start_matches(['$', '@', '%']).to_owned(), term);
        }
    }

    /// Returns the value of a name: that of a variable, that of a part of a variable, or the name
    /// itself.
    pub(super) fn look_up(&self, name: &str) -> Term {
        if let Some(term) = self.names.get(name) {
            return term.clone();
        }
        match name {
            "process.env.HOME" | "process.env.USERPROFILE" | "Dir.home" => return Term::text("~"),
            "os.sep" | "os.path.sep" | "path.sep" | "File.separator" | "File::SEPARATOR" => {
                return Term::text("/");
            }
            "os.environ" | "process.env" | "ENV" | "_ENV" | "os.environb" => {
                return Term::named(name).with(Taint::ENVIRONMENT);
            }
            _ => {}
        }
        if let Some(secret) = name
            .strip_prefix("process.env.")
            .or_else(|| name.strip_prefix("import.meta.env."))
            .and_then(secret_variable)
        {
            return secret;
        }
        let split = name
            .rsplit_once("->")
            .or_else(|| name.rsplit_once("::"))
            .or_else(|| name.rsplit_once('.'));
        match split {
            Some((owner, member)) => {
                let before = self
                    .names
                    .get(owner)
                    .cloned()
                    .unwrap_or_else(|| Term::named(owner));
                // `Settings.command`: a member of a class.
                if owner.starts_with(|c: char| c.is_ascii_uppercase())
                    && !before.is_known()
                    && let Some(term) = self.names.get(member).filter(|term| term.is_known())
                {
                    return term.clone();
                }
                before.member(member)
            }
            None => Term::named(name),
        }
    }

    /// Returns a text with `{name}`, `${name}`, `#{name}` and `$name` replaced by their values.
    pub(super) fn fill_placeholders(&self, text: &str) -> String {
        if !text.contains(['{', '$']) {
            return text.to_owned();
        }
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find(['{', '$', '#']) {
            let (before, tail) = rest.split_at(at);
            out.push_str(before);
            let braced = tail.trim_start_matches(['$', '#']).starts_with('{');
            let (name, end) = if braced {
                let start = tail.find('{').unwrap_or(0) + 1;
                let end = tail.find('}').unwrap_or(tail.len());
                (tail.get(start..end).unwrap_or_default(), end + 1)
            } else {
                let (name, _) = quote::split_name(tail.get(1..).unwrap_or_default());
                (name, name.len() + 1)
            };
            let replacement = match name.trim().trim_matches(['\'', '"']) {
                expression if expression.contains(['[', '(']) => environment_variable(expression)
                    .and_then(secret_variable)
                    .map(|term| term.items.concat()),
                literal if literal.len() + 2 == name.trim().len() => Some(literal.to_owned()),
                name => Some(self.look_up(name))
                    .filter(Term::is_known)
                    .map(|term| term.items.join(" ")),
            };
            match replacement {
                Some(replacement) if out.len() + replacement.len() < 65_536 => {
                    out.push_str(&replacement)
                }
                _ => out.push_str(tail.get(..end.min(tail.len())).unwrap_or_default()),
            }
            rest = tail.get(end.min(tail.len())..).unwrap_or_default();
        }
        out.push_str(rest);
        out
    }
}

/// Returns the environment variable that an expression reads: `os.environ["X"]`, `os.getenv("X")`.
fn environment_variable(expression: &str) -> Option<&str> {
    const ACCESSES: [&str; 7] = [
        "os.environ[",
        "os.environ.get(",
        "os.getenv(",
        "environ[",
        "getenv(",
        "process.env[",
        "ENV[",
    ];
    let rest = ACCESSES
        .iter()
        .find_map(|prefix| expression.strip_prefix(prefix))?;
    rest.trim_start_matches(['"', '\'', '\\'])
        .split(['"', '\'', '\\', ']', ')', ','])
        .next()
}

/// The purpose of a bracket.
#[derive(Default)]
pub(super) enum Kind {
    #[default]
    Group,
    Call(Term),
    Index(Term),
    Block,
}

/// An open bracket, or the code itself.
#[derive(Default)]
pub(super) struct Frame {
    pub(super) kind: Kind,
    /// Finished arguments or items.
    pub(super) items: Vec<Term>,
    pub(super) value: Option<Term>,
    /// The sign between the value and the next operand.
    pub(super) sign: Option<char>,
    /// The operand before a sign, while the one after it is still being assembled.
    pub(super) pending: Option<Term>,
    pub(super) pending_sign: Option<char>,
    /// Names that the statement assigns to.
    pub(super) targets: Vec<String>,
    /// Names seen since the statement began.
    pub(super) names: Vec<String>,
    pub(super) last_name: String,
    /// Whether this is a call without parentheses, which ends with its statement.
    pub(super) loose: bool,
    /// The result of a comprehension for each item.
    pub(super) result: Option<Term>,
}

impl Frame {
    /// Adds an operand.
    pub(super) fn push_operand(&mut self, term: Term) {
        match (self.value.take(), self.sign.take()) {
            (Some(before), Some(sign)) => {
                self.pending = Some(before);
                self.pending_sign = Some(sign);
                self.value = Some(term);
            }
            // Two adjacent texts are one.
            (Some(before), None)
                if before.is_known() && term.is_known() && self.pending.is_none() =>
            {
                self.value = Some(before.plus(term))
            }
            (None, Some('-')) if term::parse_number(term.first()).is_some() => {
                self.value = Some(Term::text(format!("-{}", term.first())))
            }
            (_, _) => self.value = Some(term),
        }
    }

    /// Applies the pending sign.
    pub(super) fn apply_sign(&mut self) {
        if let (Some(before), Some(sign)) = (self.pending.take(), self.pending_sign.take()) {
            let term = self.value.take().unwrap_or_default();
            self.value = Some(match sign {
                '+' | '.' => before.plus(term),
                '%' if before.is_known() => before.fill_in(&term.items).with(term.taint),
                '/' if before.is_known() && term::parse_number(term.first()).is_none() => {
                    before.join_path(term)
                }
                _ => term,
            });
        }
    }

    pub(super) fn clear(&mut self) {
        self.value = None;
        self.sign = None;
        self.pending = None;
        self.pending_sign = None;
        self.items.clear();
    }

    /// Ends a statement and keeps the values that it assigns.
    pub(super) fn end_statement(&mut self, flow: &mut Flow) {
        self.apply_sign();
        let targets = std::mem::take(&mut self.targets);
        if !targets.is_empty() {
            let mut values = std::mem::take(&mut self.items);
            values.extend(self.value.take());
            match (targets.as_slice(), values.as_slice()) {
                ([name], [value]) => flow.assign(name, value.clone()),
                ([name], values) => {
                    let items = values.iter().flat_map(|term| term.items.clone()).collect();
                    flow.assign(name, Term::list(items));
                }
                (names, [list]) if list.list && list.name == WALK => {
                    for (name, item) in names.iter().zip(&list.items) {
                        flow.assign(name, Term::text(item.clone()));
                    }
                }
                (names, [value]) => {
                    for name in names {
                        flow.assign(name, value.clone());
                    }
                }
                (names, values) => {
                    for (name, value) in names.iter().zip(values) {
                        flow.assign(name, value.clone());
                    }
                }
            }
        }
        self.clear();
        self.names.clear();
    }
}
