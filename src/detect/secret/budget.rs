//! Limits on detailed checks of one text. The maximum cost of each check is paid in advance, so
//! that no text takes longer than its length allows.

use crate::detect::work;

/// Maximum number of bytes unpacked from the compressed data in one text.
const UNPACKED_BYTES: usize = 1 << 20;
/// Bytes that detailed checks may examine: a base amount for any text, an amount per byte of the
/// text, and a maximum. A byte takes a nanosecond or two.
const BUDGET_BYTES: usize = 128 << 10;
const BUDGET_PER_BYTE: usize = 32;
const BUDGET_MOST_BYTES: usize = 12 << 20;
/// Minimum cost of one detailed check, in bytes.
pub(super) const CHECK_BYTES: usize = 64;
/// Number of passes over a value to evaluate it.
pub(super) const EVALUATION_PASSES: usize = 4;
/// Cost of reversing one byte, in bytes.
pub(super) const REVERSAL_COST: usize = 8;
/// Cost of trying a shape where most attempts fail at the first character, in bytes.
pub(super) const TRY_BYTES: usize = 32;

/// The remaining budget for a text, in bytes.
pub(super) struct Budget {
    remaining: usize,
    exhausted: bool,
}

impl Budget {
    /// Creates the budget for a text of `length` bytes.
    pub(super) fn for_text(length: usize) -> Self {
        let remaining = length
            .saturating_mul(BUDGET_PER_BYTE)
            .saturating_add(BUDGET_BYTES)
            .min(BUDGET_MOST_BYTES);
        Self {
            remaining,
            exhausted: false,
        }
    }

    /// Reports whether a request exceeded the budget. From then on, nothing more is examined.
    pub(super) fn is_exhausted(&self) -> bool {
        self.exhausted
    }

    /// Returns the remaining budget in bytes.
    pub(super) fn remaining(&self) -> usize {
        if self.exhausted { 0 } else { self.remaining }
    }

    /// Takes `bytes` from the budget. Returns `None` if this or an earlier request exceeded it.
    pub(super) fn take(&mut self, bytes: usize) -> Option<()> {
        let remaining = self
            .remaining
            .checked_sub(bytes)
            .filter(|_| !self.exhausted);
        self.exhausted = remaining.is_none();
        self.remaining = remaining.unwrap_or(0);
        remaining.map(|_| ())
    }
}

/// The remaining amount of compressed data that may be unpacked from one text.
pub(super) struct Unpacking<'m> {
    remaining: usize,
    /// The remaining work of the message that the text is a part of.
    message: Option<&'m work::Budget>,
}

impl<'m> Unpacking<'m> {
    pub(super) fn new(message: Option<&'m work::Budget>) -> Self {
        Self {
            remaining: UNPACKED_BYTES,
            message,
        }
    }

    /// Returns the number of bytes that may be unpacked next: no more than can be scanned
    /// afterwards.
    pub(super) fn available(&self, budget: &Budget) -> usize {
        let message_limit = self
            .message
            .map_or(usize::MAX, |message| message.unpacked_left());
        self.remaining
            .min(message_limit)
            .min(budget.remaining() / 2)
    }

    /// Deducts unpacked bytes; `truncated` means that there was more data.
    pub(super) fn spend(&mut self, bytes: usize, truncated: bool) {
        self.remaining = self.remaining.saturating_sub(bytes);
        let Some(message) = self.message else { return };
        message.spend_unpacked(bytes);
        if truncated && message.unpacked_left() == 0 {
            message.refuse_unpacking();
        }
    }
}
