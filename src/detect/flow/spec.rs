//! Parses `find.flow`.

use super::piece::Piece;
use super::taint_store::TaintReason;
use crate::document::Table;

/// The conditions of a rule of this kind.
#[derive(Clone, Debug)]
pub enum Spec {
    /// A piece of data that came in is part of the data that goes out.
    Carries {
        /// The kind of data as which it came in.
        from: TaintReason,
        /// Where it goes.
        to: Destination,
        /// The kinds of pieces; all if empty.
        pieces: Vec<Piece>,
    },
    /// A call that leaves the organization after private and untrusted data came in.
    Completes {
        /// Whether it relies on guesses from the annotations of tools, rather than on the policy.
        guessed: bool,
    },
}

enum_with_names! {
    /// The destination of a piece, relative to its source.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Destination {
        /// Anywhere.
        Anywhere = "anywhere",
        /// To another server, or to a tool that sends outward.
        Elsewhere = "elsewhere",
        /// Back to the server that sent it, by a tool that does not send outward.
        Back = "back",
        /// To a tool that sends outward.
        Outward = "outward",
    }
}

const COMPLETES: [(&str, bool); 2] = [("declared", false), ("guessed", true)];

impl Spec {
    /// Reports whether it relies on the tools' descriptions of themselves.
    pub fn is_guessed(&self) -> bool {
        matches!(self, Self::Completes { guessed: true })
    }

    /// Returns the tool for the rule's cases: one that sends outward if that matters.
    pub fn usual_tool(&self) -> &'static str {
        match self {
            Self::Carries {
                to: Destination::Outward,
                ..
            } => "send_note",
            _ => "write_note",
        }
    }
}

/// Reads a `find.flow` table.
pub(super) fn read(table: &Table<'_>) -> Option<Spec> {
    let completes = table.choice("completes", &COMPLETES);
    let from = table.choice("from", &TaintReason::WORDS);
    let to = table
        .choice("to", &Destination::WORDS)
        .unwrap_or(Destination::Anywhere);
    let mut pieces = Vec::new();
    let mut valid = true;
    for word in table.strings("pieces") {
        let piece = table.find(&word, &Piece::WORDS, || {
            format!("no such piece: `{}`", word.value)
        });
        valid &= piece.is_some();
        pieces.extend(piece);
    }
    table.finish();
    let has_condition = table.has("from") || table.has("completes");
    if table.has("from") && table.has("completes") || !has_condition {
        let hint = "write `from = \"quarantined\"`, `\"untrusted\"` or `\"private\"`; or `completes = \"declared\"`";
        table.fault(
            "a rule says `from` or `completes`, one of the two",
            Some(hint),
        );
        return None;
    }
    match (completes, from) {
        (Some(guessed), _) => Some(Spec::Completes { guessed }),
        (None, Some(from)) if valid => Some(Spec::Carries { from, to, pieces }),
        _ => None,
    }
}
