//! What may be spent on closer looks at one text: every look is paid for beforehand with the most that it may cost, so that
//! no text takes longer than its length allows.

/// Bytes that may be looked at closely: so many for any text, so many for each byte of it, and so many at the most. A byte
/// takes a nanosecond or two.
const BUDGET_BYTES: usize = 128 << 10;
const BUDGET_PER_BYTE: usize = 32;
const BUDGET_MOST_BYTES: usize = 12 << 20;
/// What one closer look costs at the least, in bytes.
pub(super) const LOOK_BYTES: usize = 64;
/// How often a value is gone over to weigh it.
pub(super) const WEIGHED: usize = 4;
/// What it costs to turn a byte round, in bytes.
pub(super) const MOVED: usize = 8;
/// What it costs to try a shape where most fail at the first character, in bytes.
pub(super) const TRY_BYTES: usize = 32;

/// What is left to spend on a text, in bytes.
pub(super) struct Budget {
    left: usize,
    spent: bool,
}

impl Budget {
    /// For a text of so many bytes.
    pub(super) fn of(length: usize) -> Self {
        let left = length.saturating_mul(BUDGET_PER_BYTE).saturating_add(BUDGET_BYTES).min(BUDGET_MOST_BYTES);
        Self { left, spent: false }
    }

    /// Whether more was wanted than there was: nothing is looked at any more.
    pub(super) fn is_spent(&self) -> bool {
        self.spent
    }

    /// Takes `bytes`; `None` where they are not left, now or before.
    pub(super) fn take(&mut self, bytes: usize) -> Option<()> {
        let left = self.left.checked_sub(bytes).filter(|_| !self.spent);
        self.spent = left.is_none();
        self.left = left.unwrap_or(0);
        left.map(|_| ())
    }
}
