//! The parts of a script, as the lexer tells them.

/// A part of a word.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Piece {
    /// Characters; unquoted ones may hold globs, braces and a tilde.
    Text { text: String, quoted: bool },
    /// What stands in `${…}`, or the name after `$`.
    Variable { inside: String, quoted: bool },
    /// The script of `$(…)` or of backticks.
    Run { script: String, quoted: bool },
    /// The script of `<(…)`, `>(…)` or `=(…)`.
    Process { script: String },
    /// What stands in `$((…))`.
    Arithmetic { inside: String },
}

/// A word: its parts in order.
pub(super) type Word = Vec<Piece>;

/// How a redirection moves bytes.
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
    Word(Word),
    /// `;`, a line end.
    End,
    /// `&`
    Background,
    And,
    Or,
    Pipe,
    Open,
    Close,
    /// `;;` and its kin.
    CaseEnd,
    Redirect {
        flow: Flow,
        target: Word,
    },
}
