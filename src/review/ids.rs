//! An audit id as a person gives it: in full, or only its beginning or end.

use uuid::Uuid;

use crate::protocol::AuditId;
use crate::text::escape_invisible;

/// Minimum length of a partial id, in characters.
const MIN_CHARACTERS: usize = 6;
/// Maximum number of ids that are listed if several match.
const MAX_LISTED: usize = 5;
/// The accepted forms of an id.
const HINT: &str = "pass a whole id, or at least 6 characters of its beginning or end, such as the last 8; the first characters are the time";

/// An audit id as given by a person, in full or in part.
#[derive(Clone, Debug)]
pub struct AuditIds {
    whole: Option<AuditId>,
    /// The hexadecimal digits, if it is a part.
    digits: String,
    /// The id as it was given, safe to display.
    display_text: String,
}

impl AuditIds {
    /// Parses an id as a person gives it.
    ///
    /// # Errors
    /// It is neither an id nor a sufficiently long part of one; the message includes a hint.
    pub fn read(argument: &str) -> Result<Self, String> {
        let text = argument.trim();
        let display_text = escape_invisible(text);
        let whole = Uuid::try_parse(text).ok().map(AuditId);
        let digits: String = text
            .chars()
            .filter(|c| *c != '-')
            .map(|c| c.to_ascii_lowercase())
            .collect();
        let is_part = digits.len() < Uuid::nil().simple().to_string().len()
            && digits.chars().all(|c| c.is_ascii_hexdigit());
        match (whole.is_some(), is_part) {
            (false, false) => Err(format!(
                "`{display_text}` is not a valid audit id\n  hint: {HINT}"
            )),
            (false, true) if digits.len() < MIN_CHARACTERS => Err(format!(
                "`{display_text}` is too short for an audit id\n  hint: {HINT}"
            )),
            _ => Ok(Self {
                whole,
                digits,
                display_text,
            }),
        }
    }

    /// Returns the id as it was given, safe to display.
    pub fn display(&self) -> &str {
        &self.display_text
    }

    /// Resolves the id: the one that was given in full, or the only one of `ids` that begins or
    /// ends with the given part. Returns `None` if no id matches.
    ///
    /// # Errors
    /// Several ids match; the message lists some of them.
    pub fn resolve(
        &self,
        ids: impl IntoIterator<Item = AuditId>,
    ) -> Result<Option<AuditId>, String> {
        if self.whole.is_some() {
            return Ok(self.whole);
        }
        let mut matching: Vec<AuditId> = Vec::new();
        for id in ids.into_iter().filter(|id| self.is_match(*id)) {
            if !matching.contains(&id) {
                matching.push(id);
            }
            if matching.len() > MAX_LISTED {
                break;
            }
        }
        if matching.len() < 2 {
            return Ok(matching.pop());
        }
        let list: String = matching
            .iter()
            .take(MAX_LISTED)
            .map(|id| format!("\n  {id}"))
            .collect();
        let more = if matching.len() > MAX_LISTED {
            "\n  and more"
        } else {
            ""
        };
        Err(format!(
            "several ids begin or end with `{}`:{list}{more}\n  hint: {HINT}",
            self.display_text
        ))
    }

    fn is_match(&self, id: AuditId) -> bool {
        let id = id.0.simple().to_string();
        id.starts_with(&self.digits) || id.ends_with(&self.digits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> AuditId {
        AuditId(Uuid::try_parse(text).unwrap())
    }

    #[test]
    fn an_id_is_known_by_its_beginning_or_end() {
        let a = id("01a205d6-03f4-7710-9a93-c7540d6eac97");
        let b = id("01a205d6-03f4-7711-8bb0-1c7540d6eac0");
        let resolve_one = |given: &str| AuditIds::read(given).unwrap().resolve([a, b, a]);
        for given in [
            "0d6eac97",
            "0D6EAC97",
            "-c7540d6eac97",
            "01a205d6-03f4-7710",
            "01a205d603f47710",
            &a.to_string(),
        ] {
            assert_eq!(resolve_one(given), Ok(Some(a)), "{given}");
        }
        assert_eq!(resolve_one("123456"), Ok(None));
        assert_eq!(resolve_one("7540d6eac"), Ok(None), "not from its middle");
        let several = resolve_one("01a205d6").unwrap_err();
        assert_contains!(several, &a.to_string(), &b.to_string());
        let many: Vec<AuditId> = (0..9)
            .map(|n| id(&format!("01a205d6-03f4-7710-9a93-00000000000{n}")))
            .collect();
        let several = AuditIds::read("01a205").unwrap().resolve(many).unwrap_err();
        assert_eq!(
            (
                several.matches("9a93").count(),
                several.contains("and more")
            ),
            (MAX_LISTED, true),
            "{several}"
        );
    }

    #[test]
    fn what_is_no_id_is_told_in_our_words() {
        for (given, why) in [
            ("no-id", "is not a valid audit id"),
            ("abcde", "too short"),
            ("", "too short"),
            ("x\u{1b}[2J", "x\\u{1b}[2J"),
        ] {
            let message = AuditIds::read(given).unwrap_err();
            assert_contains!(message, why, "the last 8");
        }
        assert!(AuditIds::read(&"a".repeat(33)).is_err());
    }
}
