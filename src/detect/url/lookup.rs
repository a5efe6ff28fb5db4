//! Names whose addresses are resolved, if a policy requires that. Judging itself has no side
//! effects: it returns the names that it needs, and is given the answers when it judges again.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::IpAddr;

/// Maximum number of names of one message that are resolved.
pub const NAMES: usize = 16;
/// Maximum length of a name, and of each of its labels, in bytes (RFC 1035, section 2.3.4).
const NAME_BYTES: usize = 253;
const LABEL_BYTES: usize = 63;

/// The addresses of the names that were resolved. A name that is missing could not be resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answers(HashMap<String, Vec<IpAddr>>);

impl FromIterator<(String, Vec<IpAddr>)> for Answers {
    fn from_iter<I: IntoIterator<Item = (String, Vec<IpAddr>)>>(names: I) -> Self {
        Self(
            names
                .into_iter()
                .filter(|(_, addresses)| !addresses.is_empty())
                .collect(),
        )
    }
}

/// Names that an inspection needs to have resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnresolvedNames {
    /// In lower case, without duplicates; at most [`NAMES`].
    pub names: Vec<String>,
    /// Whether there were more.
    pub has_more: bool,
}

/// The state of name resolution while one message is judged.
#[derive(Debug, Default)]
pub struct Lookup<'l> {
    answers: Option<&'l Answers>,
    unresolved: RefCell<UnresolvedNames>,
}

/// The state of one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resolution<'l> {
    /// Not resolved yet.
    Pending,
    /// It could not be resolved.
    Unresolved,
    /// Its addresses.
    Addresses(&'l [IpAddr]),
}

impl<'l> Lookup<'l> {
    /// Creates the state with these answers; without `answers`, nothing has been resolved yet.
    pub fn new(answers: Option<&'l Answers>) -> Self {
        Self {
            answers,
            unresolved: RefCell::default(),
        }
    }

    /// Returns the names that have not been resolved yet.
    pub fn into_unresolved(self) -> UnresolvedNames {
        self.unresolved.into_inner()
    }

    /// Returns the state of `name`, and records the name if it has not been resolved yet.
    pub(super) fn resolution(&self, name: &str) -> Resolution<'l> {
        if let Some(answers) = self.answers {
            return answers
                .0
                .get(name)
                .map_or(Resolution::Unresolved, |addresses| {
                    Resolution::Addresses(addresses)
                });
        }
        let mut unresolved = self.unresolved.borrow_mut();
        if !unresolved.names.iter().any(|other| other == name) {
            if unresolved.names.len() < NAMES {
                unresolved.names.push(name.to_owned());
            } else {
                unresolved.has_more = true;
            }
        }
        Resolution::Pending
    }
}

/// Reports whether a host is a name that can be resolved: with a dot, and without the characters of
/// a template.
pub(super) fn is_resolvable(host: &str) -> bool {
    let fits = |label: &str| {
        !label.is_empty()
            && label.len() <= LABEL_BYTES
            && label
                .chars()
                .all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'))
    };
    host.len() <= NAME_BYTES && host.contains('.') && host.split('.').all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_noted_once_and_not_without_end() {
        let lookup = Lookup::new(None);
        for at in 0..NAMES {
            for _ in 0..2 {
                assert_eq!(
                    lookup.resolution(&format!("a{at}.example")),
                    Resolution::Pending
                );
            }
        }
        let unresolved = lookup.into_unresolved();
        assert_eq!(
            (unresolved.names.len(), unresolved.has_more),
            (NAMES, false)
        );
        let lookup = Lookup::new(None);
        (0..=NAMES).for_each(|at| {
            assert_eq!(
                lookup.resolution(&format!("a{at}.example")),
                Resolution::Pending
            )
        });
        let unresolved = lookup.into_unresolved();
        assert_eq!((unresolved.names.len(), unresolved.has_more), (NAMES, true));
    }

    #[test]
    fn what_was_not_answered_cannot_be_told() {
        let loopback: IpAddr = [127, 0, 0, 1].into();
        let answers: Answers = [
            ("a.example".to_owned(), vec![loopback]),
            ("b.example".to_owned(), vec![]),
        ]
        .into_iter()
        .collect();
        let lookup = Lookup::new(Some(&answers));
        assert_eq!(
            lookup.resolution("a.example"),
            Resolution::Addresses(&[loopback])
        );
        assert_eq!(lookup.resolution("b.example"), Resolution::Unresolved);
        assert_eq!(lookup.resolution("c.example"), Resolution::Unresolved);
        assert_eq!(lookup.into_unresolved(), UnresolvedNames::default());
    }

    #[test]
    fn only_names_can_be_asked_about() {
        for (host, expected) in [
            ("example.com", true),
            ("a_b.example", true),
            ("münchen.example", true),
            ("intranet", false),
            ("$host.example", false),
            ("{tenant}.example", false),
            ("a..example", false),
            ("", false),
        ] {
            assert_eq!(is_resolvable(host), expected, "{host}");
        }
        assert!(!is_resolvable(&format!(
            "{}.example",
            "a".repeat(LABEL_BYTES + 1)
        )));
    }
}
