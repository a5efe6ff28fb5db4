//! The file of agent tokens that `lychgate agent` maintains: names and hashes, never the tokens
//! themselves.

use std::fmt::Write as _;

use crate::document::{self, Fault, Located, Place, Table};
use crate::message::{hex, unhex};

/// Maximum length of the file, in bytes.
pub(super) const FILE_BYTES: u64 = 1 << 20;
const HEAD: &str = "\
# Agent tokens, maintained by `lychgate agent`: only their SHA-256 hashes are stored here, never the tokens.
# A running gate applies changes within two seconds.
";

#[derive(Clone, PartialEq, Eq)]
pub struct AgentToken {
    /// The agent that the token belongs to.
    pub agent: String,
    /// SHA-256 of the token.
    pub sha256: [u8; 32],
    /// When the token was created (RFC 3339).
    pub created: String,
}

impl std::fmt::Debug for AgentToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AgentToken({} {})", self.agent, self.id())
    }
}

impl AgentToken {
    /// Returns an identifier for the token: the start of its hash.
    pub fn id(&self) -> String {
        hex(self.sha256.get(..4).unwrap_or_default())
    }

    /// Parses the text of a tokens file. `file` is its name in faults.
    ///
    /// # Errors
    /// Returns all faults, with line and column.
    pub fn read_all(file: &str, text: &str) -> Result<Vec<Self>, Vec<Fault>> {
        document::read(file, text, |root| {
            let mut all: Vec<Self> = Vec::new();
            for table in root.tables("token") {
                if let Some((token, place)) = token(&table) {
                    if all.iter().any(|other| other.sha256 == token.sha256) {
                        let message = "the same token is listed twice";
                        let hint = "remove one of them";
                        table.fault_at(&place, message, Some(hint));
                    }
                    all.push(token);
                }
                table.finish();
            }
            root.finish();
            Some(all)
        })
    }

    /// Returns the text of a file with these tokens.
    pub fn to_text(all: &[Self]) -> String {
        let mut out = HEAD.to_owned();
        for Self {
            agent,
            sha256,
            created: made,
        } in all
        {
            // Writing to a `String` cannot fail. Names consist of letters, digits, `_` and `-`, so
            // nothing needs escaping.
            let _infallible = write!(
                out,
                "\n[[token]]\nagent = \"{agent}\"\nsha256 = \"{}\"\nmade = \"{made}\"\n",
                hex(sha256)
            );
        }
        out
    }
}

fn token(table: &Table<'_>) -> Option<(AgentToken, Place)> {
    let hint = "lychgate agent add NAME";
    let agent = table.required("agent", hint);
    let hash = table.required("sha256", hint);
    let created = table
        .string("made")
        .map(|made| made.value)
        .filter(|made| humantime::parse_rfc3339(made).is_ok());
    let agent = agent.filter(|agent| is_valid_name(table, agent));
    let sha256 = hash.as_ref().and_then(|hash| {
        let digest = read_hash(&hash.value);
        if digest.is_none() {
            let message = "`sha256` is not 64 hexadecimal digits";
            table.fault_at(&hash.place, message, Some(hint));
        }
        digest
    });
    let place = hash?.place;
    Some((
        AgentToken {
            agent: agent?.value,
            sha256: sha256?,
            created: created.unwrap_or_default(),
        },
        place,
    ))
}

fn is_valid_name(table: &Table<'_>, agent: &Located<String>) -> bool {
    let is_valid = is_name(&agent.value);
    if !is_valid {
        let hint = "a name has 1 to 64 of the characters `a` to `z`, `0` to `9`, `_` and `-`";
        let message = format!("invalid agent name `{}`", agent.value.escape_debug());
        table.fault_at(&agent.place, message, Some(hint));
    }
    is_valid
}

/// Reports whether a string is a valid name in the config.
pub fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'-'))
}

/// Parses a SHA-256 from its 64 hexadecimal digits.
pub(super) fn read_hash(written: &str) -> Option<[u8; 32]> {
    unhex(&written.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        let token = |agent: &str, byte: u8| AgentToken {
            agent: agent.into(),
            sha256: [byte; 32],
            created: "2026-11-22T16:00:00Z".into(),
        };
        let all = vec![token("ci", 1), token("ci", 2), token("claude-code", 3)];
        assert_eq!(
            AgentToken::read_all("f", &AgentToken::to_text(&all)).unwrap(),
            all
        );
        assert_eq!(AgentToken::read_all("f", "").unwrap(), []);
        assert_eq!(all[0].id(), "01010101");
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let line = "[[token]]\nagent = \"a\"\nsha256 = ";
        let hash = "01".repeat(32);
        for (text, says) in [
            (format!("{line}\"{hash}\"\n{line}\"{hash}\"\n"), "f:6:"),
            (format!("{line}\"01\"\n"), "64 hexadecimal"),
            (
                format!("[[token]]\nagent = \"A b\"\nsha256 = \"{hash}\"\n"),
                "invalid agent name",
            ),
            ("[[token]]\n".into(), "`agent`"),
            ("[[tokens]]\n".into(), "tokens"),
        ] {
            let output: String = AgentToken::read_all("f", &text)
                .unwrap_err()
                .iter()
                .map(ToString::to_string)
                .collect();
            assert!(output.contains(says), "{output}");
        }
    }
}
