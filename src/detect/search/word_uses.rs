//! The words that the rules of an engine wait for, and the uses of each.

use super::grouped::sort_by_group;
use super::word_list::WordList;
use super::words::Words;
use crate::text::quick::QuickMap;

/// Collects the words of all rules and the uses of each.
#[derive(Default)]
pub(super) struct WordUses<'w> {
    /// The vocabulary whose words are referred to by their numbers.
    vocabulary: Option<u32>,
    /// Words that are not in the vocabulary, and the number of the first of them.
    own_words: Vec<&'w [u8]>,
    first_own: usize,
    numbers: QuickMap<&'w [u8], u32>,
    /// Pairs of the number of a word and one of its uses.
    uses: Vec<(u32, u32)>,
}

impl<'w> WordUses<'w> {
    /// Creates an empty collection for a vocabulary that has `words` words.
    pub(super) fn new(vocabulary: Option<u32>, words: usize) -> Self {
        Self {
            vocabulary,
            first_own: words,
            ..Self::default()
        }
    }

    /// Adds a use of distinct words.
    pub(super) fn add(&mut self, words: &'w WordList, use_index: u32) {
        if let Some(numbers) = self
            .vocabulary
            .and_then(|vocabulary| words.numbers(vocabulary))
        {
            self.uses.extend(numbers.map(|number| (number, use_index)));
            return;
        }
        for word in words.iter() {
            let number = *self.numbers.entry(word).or_insert_with(|| {
                self.own_words.push(word);
                u32::try_from(self.first_own + self.own_words.len() - 1).unwrap_or(u32::MAX)
            });
            self.uses.push((number, use_index));
        }
    }

    /// Returns where the uses of each word begin and where the last ones end, and the uses.
    pub(super) fn uses_by_word(&self) -> (Vec<u32>, Vec<u32>) {
        let words = self.first_own + self.own_words.len();
        let (starts, uses) = sort_by_group(&self.uses, words, |(word, _)| *word as usize);
        (
            starts,
            uses.into_iter().map(|(_, use_index)| use_index).collect(),
        )
    }

    /// Returns the searcher for the words that the vocabulary does not contain, if there are any.
    pub(super) fn own_words(&self) -> Option<Words> {
        (!self.own_words.is_empty()).then(|| Words::new(&self.own_words))
    }
}
