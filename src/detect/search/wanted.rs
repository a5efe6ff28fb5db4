//! The words that the rules of an engine wait for, and what uses each.

use super::grouped::grouped;
use super::word_list::WordList;
use super::words::Words;
use crate::text::quick::QuickMap;

/// The words of all rules as they come together, and what uses each.
#[derive(Default)]
pub(super) struct Wanted<'w> {
    /// The vocabulary whose words are used by their numbers.
    vocabulary: Option<u32>,
    /// Words that it does not have, and the number of the first of them.
    own: Vec<&'w [u8]>,
    first_own: usize,
    numbers: QuickMap<&'w [u8], u32>,
    /// A word by its number, and its use.
    uses: Vec<(u32, u32)>,
}

impl<'w> Wanted<'w> {
    /// Of the words of a vocabulary with so many words, and of others.
    pub(super) fn new(vocabulary: Option<u32>, words: usize) -> Self {
        Self {
            vocabulary,
            first_own: words,
            ..Self::default()
        }
    }

    /// Adds a use of words that differ from each other.
    pub(super) fn add(&mut self, words: &'w WordList, used: u32) {
        if let Some(numbers) = self
            .vocabulary
            .and_then(|vocabulary| words.numbers(vocabulary))
        {
            self.uses.extend(numbers.map(|number| (number, used)));
            return;
        }
        for word in words.iter() {
            let number = *self.numbers.entry(word).or_insert_with(|| {
                self.own.push(word);
                u32::try_from(self.first_own + self.own.len() - 1).unwrap_or(u32::MAX)
            });
            self.uses.push((number, used));
        }
    }

    /// Where the uses of each word begin, and where the last end; and the uses.
    pub(super) fn uses_by_word(&self) -> (Vec<u32>, Vec<u32>) {
        let words = self.first_own + self.own.len();
        let (starts, uses) = grouped(&self.uses, words, |(word, _)| *word as usize);
        (starts, uses.into_iter().map(|(_, used)| used).collect())
    }

    /// What finds the words that the vocabulary does not have, if there are any.
    pub(super) fn own(&self) -> Option<Words> {
        (!self.own.is_empty()).then(|| Words::new(&self.own))
    }
}
