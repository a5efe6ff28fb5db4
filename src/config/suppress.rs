//! `[[policy.NAME.suppress]]`: findings that are known to be none.

use crate::document::Day;

/// A finding that is recorded and has no other consequence, until a day comes. Every name in it is exact: what it does not
/// name, it does not care about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suppression {
    /// The rule.
    pub rule: Box<str>,
    /// The server that the message goes to or comes from.
    pub upstream: Option<Box<str>>,
    /// The tool that is called, or that answers, or that is described.
    pub tool: Option<Box<str>>,
    /// The argument of a call: names joined by dots, indices left out.
    pub argument: Option<Box<str>>,
    /// The place, as a JSON pointer (RFC 6901) from the root of the message; `*` stands for any one step.
    pub at: Option<Box<str>>,
    /// What matched, by the digest that the audit line gives of it (`evidence`).
    pub sha256: Option<Box<str>>,
    /// Who decided it and why. Stands in the audit line.
    pub reason: Box<str>,
    /// The last day on which it counts.
    pub until: Day,
    /// File, line and column, to tell faults by.
    pub place: (Box<str>, usize, usize),
}

impl Suppression {
    /// Whether two are for the same findings, for whatever reason and time.
    pub fn is_for_the_same(&self, other: &Self) -> bool {
        let names = |one: &Self| {
            let Self { rule, upstream, tool, argument, at, sha256, .. } = one.clone();
            (rule, upstream, tool, argument, at, sha256)
        };
        names(self) == names(other)
    }

    /// What it covers, in words for people.
    pub fn named(&self) -> String {
        let narrower = [
            ("upstream", &self.upstream),
            ("tool", &self.tool),
            ("argument", &self.argument),
            ("place", &self.at),
            ("digest", &self.sha256),
        ];
        let narrower = narrower.iter().filter_map(|(what, name)| Some(format!(" {what} `{}`", name.as_deref()?)));
        format!("rule `{}`{}", self.rule, narrower.map(|part| format!(",{part}")).collect::<String>())
    }
}
