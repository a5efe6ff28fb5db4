//! `[[policy.NAME.suppress]]`: findings that are known to be none.

use crate::document::Day;

/// A finding that is recorded and has no other consequence, until a day comes. Every name in it is exact: what it does not
/// name, it does not care about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suppression {
    pub rules: Box<[Box<str>]>,
    /// The server that the message goes to or comes from.
    pub upstream: Option<Box<str>>,
    /// The tool that is called, or that answers, or that is described.
    pub tool: Option<Box<str>>,
    /// The argument of a call: names joined by dots, indices left out.
    pub argument: Option<Box<str>>,
    /// The places, as JSON pointers (RFC 6901) from the root of the message, where `*` matches any one step. Empty for any place.
    pub at: Box<[Box<str>]>,
    /// The matched texts, by the digests in the audit line (`evidence`). Empty for any text.
    pub sha256: Box<[Box<str>]>,
    /// Who decided it and why. Recorded in the audit line.
    pub reason: Box<str>,
    /// The last day on which it counts.
    pub until: Day,
    /// File, line and column, for faults.
    pub place: (Box<str>, usize, usize),
}

impl Suppression {
    /// Whether two cover the same findings, regardless of reason and date.
    pub fn is_for_the_same(&self, other: &Self) -> bool {
        let names = |one: &Self| {
            let Self {
                rules,
                upstream,
                tool,
                argument,
                at,
                sha256,
                ..
            } = one.clone();
            (rules, upstream, tool, argument, at, sha256)
        };
        names(self) == names(other)
    }

    /// What it covers, in words for people.
    pub fn named(&self) -> String {
        let list = |names: &[Box<str>]| {
            names
                .iter()
                .map(|name| format!("`{name}`"))
                .collect::<Vec<_>>()
                .join(", ")
        };
        let single = |name: &Option<Box<str>>| {
            name.as_deref()
                .map(|name| format!("`{name}`"))
                .unwrap_or_default()
        };
        let plural = |word: &str, names: &[Box<str>]| {
            if names.len() > 1 {
                format!("{word}s")
            } else {
                word.to_owned()
            }
        };
        let parts = [
            (plural("rule", &self.rules), list(&self.rules)),
            ("upstream".to_owned(), single(&self.upstream)),
            ("tool".to_owned(), single(&self.tool)),
            ("argument".to_owned(), single(&self.argument)),
            (plural("place", &self.at), list(&self.at)),
            (plural("digest", &self.sha256), list(&self.sha256)),
        ];
        let named = parts.iter().filter(|(_, names)| !names.is_empty());
        named
            .map(|(what, names)| format!("{what} {names}"))
            .collect::<Vec<_>>()
            .join(", ")
    }
}
