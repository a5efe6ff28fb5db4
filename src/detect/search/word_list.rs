//! Words without an allocation for each: the shipped rules have tens of thousands.

use std::borrow::Cow;

use crate::detect::prepared::{Reader, Writer};

/// Words, each after its length, as the build writes them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WordList(Cow<'static, [u8]>);

impl WordList {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The words in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut left = Reader(&self.0);
        std::iter::from_fn(move || left.text())
    }

    #[allow(dead_code, reason = "the build writes what the gateway reads")]
    pub(super) fn write(&self, out: &mut Writer) {
        out.text(&self.0);
    }

    /// Reads what [`WordList::write`] has written.
    pub(super) fn read(record: &mut Reader<'static>) -> Option<Self> {
        record.text().map(|words| Self(Cow::Borrowed(words)))
    }
}

impl<W: AsRef<[u8]>> FromIterator<W> for WordList {
    fn from_iter<I: IntoIterator<Item = W>>(words: I) -> Self {
        let mut out = Writer::default();
        words.into_iter().for_each(|word| out.text(word.as_ref()));
        Self(Cow::Owned(out.0))
    }
}
