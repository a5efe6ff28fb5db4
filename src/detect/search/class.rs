//! The classes of rules: what is searched for together, and within which bounds.

/// Bytes that regexes may examine in any text, whatever its size.
const BUDGET_BYTES: usize = 32 << 10;

/// A set of rules that are searched for together and within the same bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Rules of the kind `pattern`.
    Pattern,
    /// Strong signals. No sum is reached without one of them.
    Anchor,
    /// All other signals, which are only searched for around anchors.
    Other,
}

/// Minimum weight of an anchor.
pub(crate) const ANCHOR_WEIGHT: i32 = 32;

/// Limits on the cost and the output of a search.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Maximum number of matches of one rule reported for one text; beyond it, the match is for the
    /// whole text.
    pub(super) spans: usize,
    /// Bytes that regexes may examine for each byte of a text.
    budget_per_byte: usize,
    /// Maximum distance from a keyword that a regex examines on each side, in bytes.
    pub(super) reach: usize,
}

impl Class {
    pub(crate) const ALL: [Self; 3] = [Self::Pattern, Self::Anchor, Self::Other];

    /// Returns the class of a phrase with this weight. Texts are full of commands to run: only
    /// those near other signals are examined.
    pub(crate) fn of_signal(weight: i32, orders_command: bool) -> Self {
        if weight >= ANCHOR_WEIGHT && !orders_command {
            Self::Anchor
        } else {
            Self::Other
        }
    }

    pub(super) fn bounds(self) -> Bounds {
        match self {
            Self::Pattern => Bounds {
                spans: 64,
                budget_per_byte: 32,
                reach: 512,
            },
            // Signals are common words, so more of them are examined than of patterns.
            Self::Anchor | Self::Other => Bounds {
                spans: usize::MAX,
                budget_per_byte: 32,
                reach: 160,
            },
        }
    }
}

impl Bounds {
    /// Returns the number of bytes that regexes may examine in a text of `length` bytes.
    pub(super) fn budget(&self, length: usize) -> usize {
        length
            .saturating_mul(self.budget_per_byte)
            .saturating_add(BUDGET_BYTES)
    }
}
