//! An audit id as a person gives it: in full, or only its beginning or end.

use uuid::Uuid;

use crate::protocol::AuditId;
use crate::text::visible;

/// Minimum length of a partial id, in characters.
const LEAST: usize = 6;
/// Maximum number of ids that are listed if several match.
const LISTED: usize = 5;
/// The accepted forms of an id.
const HINT: &str = "pass a whole id, or at least 6 characters of its beginning or end, such as the last 8; the first characters are the time";

/// An audit id as given by a person, in full or in part.
#[derive(Clone, Debug)]
pub struct AuditIds {
    whole: Option<AuditId>,
    /// The hexadecimal digits, if it is a part.
    digits: String,
    /// The id as it was given, safe to display.
    given: String,
}

impl AuditIds {
    /// Parses an id as a person gives it.
    ///
    /// # Errors
    /// It is neither an id nor a sufficiently long part of one; the message includes a hint.
    pub fn read(given: &str) -> Result<Self, String> {
        let text = given.trim();
        let shown = visible(text);
        let whole = Uuid::try_parse(text).ok().map(AuditId);
        let digits: String = text
            .chars()
            .filter(|c| *c != '-')
            .map(|c| c.to_ascii_lowercase())
            .collect();
        let is_part = digits.len() < Uuid::nil().simple().to_string().len()
            && digits.chars().all(|c| c.is_ascii_hexdigit());
        match (whole.is_some(), is_part) {
            (false, false) => Err(format!("`{shown}` is not a valid audit id\n  hint: {HINT}")),
            (false, true) if digits.len() < LEAST => Err(format!(
                "`{shown}` is too short for an audit id\n  hint: {HINT}"
            )),
            _ => Ok(Self {
                whole,
                digits,
                given: shown,
            }),
        }
    }

    /// Returns the id as it was given, safe to display.
    pub fn display(&self) -> &str {
        &self.given
    }

    /// Resolves the id: the one that was given in full, or the only one of `ids` that begins or
    /// ends with the given part. Returns `None` if no id matches.
    ///
    /// # Errors
    /// Several ids match; the message lists some of them.
    pub fn one_of(
        &self,
        ids: impl IntoIterator<Item = AuditId>,
    ) -> Result<Option<AuditId>, String> {
        if self.whole.is_some() {
            return Ok(self.whole);
        }
        let mut fit: Vec<AuditId> = Vec::new();
        for id in ids.into_iter().filter(|id| self.fits(*id)) {
            if !fit.contains(&id) {
                fit.push(id);
            }
            if fit.len() > LISTED {
                break;
            }
        }
        if fit.len() < 2 {
            return Ok(fit.pop());
        }
        let listed: String = fit
            .iter()
            .take(LISTED)
            .map(|id| format!("\n  {id}"))
            .collect();
        let more = if fit.len() > LISTED {
            "\n  and more"
        } else {
            ""
        };
        Err(format!(
            "several ids begin or end with `{}`:{listed}{more}\n  hint: {HINT}",
            self.given
        ))
    }

    fn fits(&self, id: AuditId) -> bool {
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
        let one = |given: &str| AuditIds::read(given).unwrap().one_of([a, b, a]);
        for given in [
            "0d6eac97",
            "0D6EAC97",
            "-c7540d6eac97",
            "01a205d6-03f4-7710",
            "01a205d603f47710",
            &a.to_string(),
        ] {
            assert_eq!(one(given), Ok(Some(a)), "{given}");
        }
        assert_eq!(one("123456"), Ok(None));
        assert_eq!(one("7540d6eac"), Ok(None), "not from its middle");
        let several = one("01a205d6").unwrap_err();
        assert!(
            several.contains(&a.to_string()) && several.contains(&b.to_string()),
            "{several}"
        );
        let many: Vec<AuditId> = (0..9)
            .map(|n| id(&format!("01a205d6-03f4-7710-9a93-00000000000{n}")))
            .collect();
        let several = AuditIds::read("01a205").unwrap().one_of(many).unwrap_err();
        assert_eq!(
            (
                several.matches("9a93").count(),
                several.contains("and more")
            ),
            (LISTED, true),
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
            let told = AuditIds::read(given).unwrap_err();
            assert!(told.contains(why) && told.contains("the last 8"), "{told}");
        }
        assert!(AuditIds::read(&"a".repeat(33)).is_err());
    }
}
