//! The parts of a script, as the lexer returns them.

use std::ops::Range;

/// A part of a word.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Piece {
    /// Characters; unquoted ones may contain globs, braces and a tilde.
    Text { text: String, quoted: bool },
    /// The content of `${…}`, or the name after `$`.
    Variable { inside: String, quoted: bool },
    /// The script of `$(…)` or of backticks.
    Run { script: String, quoted: bool },
    /// The script of `<(…)`, `>(…)` or `=(…)`.
    Process { script: String },
    /// The content of `$((…))`.
    Arithmetic { inside: String },
}

impl Piece {
    /// Creates quoted characters.
    pub(super) fn quoted(text: impl Into<String>) -> Self {
        Self::Text {
            text: text.into(),
            quoted: true,
        }
    }

    /// Returns the characters, if it is only unquoted characters.
    pub(super) fn as_plain(&self) -> Option<&str> {
        match self {
            Self::Text {
                text,
                quoted: false,
            } => Some(text),
            _ => None,
        }
    }
}

/// A word: its parts in order.
pub(super) type Word = Vec<Piece>;

/// The direction in which a redirection moves bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    Read,
    Write,
    /// `>>`
    Append,
    ReadWrite,
    /// `<<` and `<<<`: the target is the text itself.
    Here,
    /// `<&`, `>&` with a descriptor.
    Duplicate,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A word, and its place in the script in bytes.
    Word(Word, Range<usize>),
    /// `;`, a line end.
    End,
    /// `&`
    Background,
    And,
    Or,
    Pipe,
    Open,
    Close,
    /// `;;` and similar operators.
    CaseEnd,
    Redirect {
        flow: Flow,
        target: Word,
    },
}
