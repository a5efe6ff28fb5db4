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
pub(super) const LOOK_BYTES: usize = 64;
/// Number of passes over a value to evaluate it.
pub(super) const WEIGHED: usize = 4;
/// Cost of reversing one byte, in bytes.
pub(super) const MOVED: usize = 8;
/// Cost of trying a shape where most attempts fail at the first character, in bytes.
pub(super) const TRY_BYTES: usize = 32;

/// The remaining budget for a text, in bytes.
pub(super) struct Budget {
    left: usize,
    spent: bool,
}

impl Budget {
    /// Creates the budget for a text of `length` bytes.
    pub(super) fn for_length(length: usize) -> Self {
        let left = length
            .saturating_mul(BUDGET_PER_BYTE)
            .saturating_add(BUDGET_BYTES)
            .min(BUDGET_MOST_BYTES);
        Self { left, spent: false }
    }

    /// Reports whether a request exceeded the budget. From then on, nothing more is examined.
    pub(super) fn is_spent(&self) -> bool {
        self.spent
    }

    /// Returns the remaining budget in bytes.
    pub(super) fn left(&self) -> usize {
        if self.spent { 0 } else { self.left }
    }

    /// Takes `bytes` from the budget. Returns `None` if this or an earlier request exceeded it.
    pub(super) fn take(&mut self, bytes: usize) -> Option<()> {
        let left = self.left.checked_sub(bytes).filter(|_| !self.spent);
        self.spent = left.is_none();
        self.left = left.unwrap_or(0);
        left.map(|_| ())
    }
}

/// The remaining amount of compressed data that may be unpacked from one text.
pub(super) struct Unpacking<'m> {
    left: usize,
    /// The remaining work of the message that the text is a part of.
    message: Option<&'m work::Budget>,
}

impl<'m> Unpacking<'m> {
    pub(super) fn new(message: Option<&'m work::Budget>) -> Self {
        Self {
            left: UNPACKED_BYTES,
            message,
        }
    }

    /// Returns the number of bytes that may be unpacked next: no more than can be scanned
    /// afterwards.
    pub(super) fn room(&self, looks: &Budget) -> usize {
        let of_message = self
            .message
            .map_or(usize::MAX, |message| message.unpacked_left());
        self.left.min(of_message).min(looks.left() / 2)
    }

    /// Deducts unpacked bytes; `cut` means that there was more data.
    pub(super) fn spend(&mut self, bytes: usize, cut: bool) {
        self.left = self.left.saturating_sub(bytes);
        let Some(message) = self.message else { return };
        message.spend_unpacked(bytes);
        if cut && message.unpacked_left() == 0 {
            message.refuse_unpacking();
        }
    }
}
