//! What may be spent on closer looks at one text: every look is paid for beforehand with the most that it may cost, so that
//! no text takes longer than its length allows.

use crate::detect::work;

/// Maximum bytes unpacked of the compressed data in one text.
const UNPACKED_BYTES: usize = 1 << 20;
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
        let left = length
            .saturating_mul(BUDGET_PER_BYTE)
            .saturating_add(BUDGET_BYTES)
            .min(BUDGET_MOST_BYTES);
        Self { left, spent: false }
    }

    /// Whether more was wanted than there was: nothing is looked at any more.
    pub(super) fn is_spent(&self) -> bool {
        self.spent
    }

    /// What is left, in bytes.
    pub(super) fn left(&self) -> usize {
        if self.spent { 0 } else { self.left }
    }

    /// Takes `bytes`; `None` where they are not left, now or before.
    pub(super) fn take(&mut self, bytes: usize) -> Option<()> {
        let left = self.left.checked_sub(bytes).filter(|_| !self.spent);
        self.spent = left.is_none();
        self.left = left.unwrap_or(0);
        left.map(|_| ())
    }
}

/// What may still be unpacked of the compressed data in one text.
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

    /// Bytes that may be unpacked next: no more than can be looked through afterwards.
    pub(super) fn room(&self, looks: &Budget) -> usize {
        let of_message = self
            .message
            .map_or(usize::MAX, |message| message.unpacked_left());
        self.left.min(of_message).min(looks.left() / 2)
    }

    /// Pays for unpacked bytes; `cut` says that there was more.
    pub(super) fn spend(&mut self, bytes: usize, cut: bool) {
        self.left = self.left.saturating_sub(bytes);
        let Some(message) = self.message else { return };
        message.spend_unpacked(bytes);
        if cut && message.unpacked_left() == 0 {
            message.refuse_unpacking();
        }
    }
}
