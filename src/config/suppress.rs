//! `[[policy.NAME.suppress]]`: findings that are known to be false positives.

use crate::document::Day;

/// A set of findings that are recorded but have no other consequence, until an expiry date. Names
/// match exactly; a field that is not set matches everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suppression {
    pub rules: Box<[Box<str>]>,
    /// The server that the message is sent to or received from.
    pub upstream: Option<Box<str>>,
    /// The tool that is called, that responds, or that is described.
    pub tool: Option<Box<str>>,
    /// The argument of a call: names joined by dots, without indices.
    pub argument: Option<Box<str>>,
    /// The places, as JSON pointers (RFC 6901) from the root of the message, where `*` matches any
    /// single step. Empty for any place.
    pub at: Box<[Box<str>]>,
    /// The matched texts, by their digests in the audit line (`evidence`). Empty for any text.
    pub sha256: Box<[Box<str>]>,
    /// Who made the decision and why. Recorded in the audit line.
    pub reason: Box<str>,
    /// The last day on which it applies.
    pub until: Day,
    /// File, line and column, for fault messages.
    pub place: (Box<str>, usize, usize),
}

impl Suppression {
    /// Reports whether two suppressions cover the same findings, regardless of reason and date.
    pub fn covers_same(&self, other: &Self) -> bool {
        let names = |suppression: &Self| {
            let Self {
                rules,
                upstream,
                tool,
                argument,
                at,
                sha256,
                ..
            } = suppression.clone();
            (rules, upstream, tool, argument, at, sha256)
        };
        names(self) == names(other)
    }

    /// Describes what it covers, for people.
    pub fn describe(&self) -> String {
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
