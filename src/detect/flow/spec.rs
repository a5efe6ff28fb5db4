//! How `find.flow` reads.

use super::piece::Piece;
use super::traces::From;
use crate::document::{Table, suggest};

/// What a rule of this kind looks for.
#[derive(Clone, Debug)]
pub enum Spec {
    /// A piece of what came in, in what goes out.
    Carries {
        /// As what it came in.
        from: From,
        /// Where it goes.
        to: To,
        /// Which pieces; all if empty.
        pieces: Vec<Piece>,
    },
    /// A call that goes out of the house after private and untrusted data came in.
    Completes {
        /// By what the annotations of tools let one guess, rather than by what the policy says.
        guessed: bool,
    },
}

/// Where a piece goes, seen from where it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// Anywhere.
    Anywhere,
    /// To another server, or to a tool that sends outward.
    Elsewhere,
    /// Back to the server that sent it, which sends it no further.
    Back,
    /// To a tool that sends outward.
    Outward,
}

impl To {
    const WORDS: [(&'static str, Self); 4] = [
        ("anywhere", Self::Anywhere),
        ("elsewhere", Self::Elsewhere),
        ("back", Self::Back),
        ("outward", Self::Outward),
    ];
}

const COMPLETES: [(&str, bool); 2] = [("declared", false), ("guessed", true)];

impl Spec {
    /// Whether it goes by what tools say of themselves.
    pub fn is_guessed(&self) -> bool {
        matches!(self, Self::Completes { guessed: true })
    }

    /// The tool of cases: one that sends outward where that matters.
    pub fn usual_tool(&self) -> &'static str {
        match self {
            Self::Carries {
                to: To::Outward, ..
            } => "send_note",
            _ => "write_note",
        }
    }
}

/// Reads a `find.flow` table.
pub(super) fn read(table: &Table<'_>) -> Option<Spec> {
    let completes = table.choice("completes", &COMPLETES);
    let from = table.choice("from", &From::WORDS);
    let to = table.choice("to", &To::WORDS).unwrap_or(To::Anywhere);
    let known = Piece::WORDS.map(|(word, _)| word);
    let mut pieces = Vec::new();
    let mut good = true;
    for word in table.strings("pieces") {
        match Piece::WORDS.iter().find(|(known, _)| *known == word.value) {
            Some((_, piece)) => pieces.push(*piece),
            None => {
                good = false;
                table.fault_at(
                    &word.place,
                    format!("no such piece: `{}`", word.value),
                    Some(&suggest(&word.value, &known)),
                );
            }
        }
    }
    table.finish();
    let asked = table.has("from") || table.has("completes");
    if table.has("from") && table.has("completes") || !asked {
        let hint = "write `from = \"quarantined\"`, `\"untrusted\"` or `\"private\"`; or `completes = \"declared\"`";
        table.fault(
            "a rule says `from` or `completes`, one of the two",
            Some(hint),
        );
        return None;
    }
    match (completes, from) {
        (Some(guessed), _) => Some(Spec::Completes { guessed }),
        (None, Some(from)) if good => Some(Spec::Carries { from, to, pieces }),
        _ => None,
    }
}
