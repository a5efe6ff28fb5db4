//! The keywords of a rule in the form in which they are searched for.

use super::folded::fold_word;
use super::literals;
use super::word_list::{Vocabulary, WordList};
use crate::detect::prepared::{Reader, Writer};

/// Keywords, one of which is near every match.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Keywords {
    pub(super) words: WordList,
    /// Cost of searching for them in ordinary text; infinite if there are none.
    pub(super) cost: f64,
}

impl Keywords {
    pub(crate) fn new<S: AsRef<str>>(words: &[S]) -> Self {
        let mut words: Vec<Vec<u8>> = words.iter().map(|word| fold_word(word.as_ref())).collect();
        words.sort();
        words.dedup();
        let words: WordList = words.into_iter().collect();
        let cost = if words.is_empty() {
            f64::INFINITY
        } else {
            literals::cost_of_keywords(&words)
        };
        Self { words, cost }
    }

    #[allow(dead_code, reason = "the build writes what the gateway reads")]
    pub(crate) fn write(&self, vocabularies: &[Vocabulary<'_>], out: &mut Writer) {
        out.long(self.cost.to_bits());
        self.words.write(vocabularies, out);
    }

    /// Reads keywords that [`Keywords::write`] has written.
    #[allow(dead_code, reason = "for the gateway")]
    pub(super) fn read(mut record: Reader<'static>) -> Option<Self> {
        let cost = f64::from_bits(record.long()?);
        Some(Self {
            words: WordList::read(&mut record)?,
            cost,
        })
    }
}
