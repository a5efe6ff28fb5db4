//! Names whose addresses somebody looks up, where a policy wants that. Judging stays pure: it says which names it would
//! know of, and is given the answers when it judges again.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::IpAddr;

/// Most names of one message that are looked up.
pub const NAMES: usize = 16;
/// Longest name, and the longest of its labels, in bytes (RFC 1035, section 2.3.4).
const NAME_BYTES: usize = 253;
const LABEL_BYTES: usize = 63;

/// The addresses of names, as far as they were looked up. A name that is not here could not be.
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

/// Names that judging would know more of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// In lower case, each once; [`NAMES`] at the most.
    pub names: Vec<String>,
    /// There were more.
    pub more: bool,
}

/// What is known of names while one message is judged.
#[derive(Debug, Default)]
pub struct Lookup<'l> {
    answers: Option<&'l Answers>,
    wanted: RefCell<Wanted>,
}

/// What is known of one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known<'l> {
    /// Nothing yet.
    Nothing,
    /// It could not be looked up.
    Unresolved,
    /// Its addresses.
    At(&'l [IpAddr]),
}

impl<'l> Lookup<'l> {
    /// With what was answered; without `answers` nobody has asked yet.
    pub fn new(answers: Option<&'l Answers>) -> Self {
        Self {
            answers,
            wanted: RefCell::default(),
        }
    }

    /// The names that nobody has asked about yet.
    pub fn wanted(self) -> Wanted {
        self.wanted.into_inner()
    }

    /// What is known of `name`, which is noted if nobody has asked yet.
    pub(super) fn of(&self, name: &str) -> Known<'l> {
        if let Some(answers) = self.answers {
            return answers
                .0
                .get(name)
                .map_or(Known::Unresolved, |addresses| Known::At(addresses));
        }
        let mut wanted = self.wanted.borrow_mut();
        if !wanted.names.iter().any(|known| known == name) {
            if wanted.names.len() < NAMES {
                wanted.names.push(name.to_owned());
            } else {
                wanted.more = true;
            }
        }
        Known::Nothing
    }
}

/// Whether a host is a name that one can ask about: with a dot, and none of the signs of a template.
pub(super) fn can_be_asked(host: &str) -> bool {
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
                assert_eq!(lookup.of(&format!("a{at}.example")), Known::Nothing);
            }
        }
        let wanted = lookup.wanted();
        assert_eq!((wanted.names.len(), wanted.more), (NAMES, false));
        let lookup = Lookup::new(None);
        (0..=NAMES).for_each(|at| assert_eq!(lookup.of(&format!("a{at}.example")), Known::Nothing));
        let wanted = lookup.wanted();
        assert_eq!((wanted.names.len(), wanted.more), (NAMES, true));
    }

    #[test]
    fn what_was_not_answered_cannot_be_told() {
        let here: IpAddr = [127, 0, 0, 1].into();
        let answers: Answers = [
            ("a.example".to_owned(), vec![here]),
            ("b.example".to_owned(), vec![]),
        ]
        .into_iter()
        .collect();
        let lookup = Lookup::new(Some(&answers));
        assert_eq!(lookup.of("a.example"), Known::At(&[here]));
        assert_eq!(lookup.of("b.example"), Known::Unresolved);
        assert_eq!(lookup.of("c.example"), Known::Unresolved);
        assert_eq!(lookup.wanted(), Wanted::default());
    }

    #[test]
    fn only_names_can_be_asked_about() {
        for (host, can) in [
            ("example.com", true),
            ("a_b.example", true),
            ("münchen.example", true),
            ("intranet", false),
            ("$host.example", false),
            ("{tenant}.example", false),
            ("a..example", false),
            ("", false),
        ] {
            assert_eq!(can_be_asked(host), can, "{host}");
        }
        assert!(!can_be_asked(&format!(
            "{}.example",
            "a".repeat(LABEL_BYTES + 1)
        )));
    }
}
