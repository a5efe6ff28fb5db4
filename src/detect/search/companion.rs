//! Words that every match contains besides its needle. Where none of them is near, the regex does
//! not have to run: in ordinary text most needles are common words, and running a regex there
//! creates states of its lazy automaton, which costs a hundred times as much as this search.

use std::ops::Range;
use std::sync::OnceLock;

use aho_corasick::packed::Searcher;

use super::literals::COMPANION_BYTES;
use super::word_list::WordList;

/// Where a companion begins, seen from the needle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Before,
    After,
    Either,
}

/// Words, one of which is near every needle that belongs to a match.
#[derive(Debug)]
pub(super) struct Companion {
    pub(super) side: Side,
    words: WordList,
    /// Prepared when a needle first occurs; `None` if the processor has no instructions for it.
    searcher: OnceLock<Option<Box<Searcher>>>,
}

impl Companion {
    pub(super) fn new(side: Side, words: WordList) -> Self {
        Self {
            side,
            words,
            searcher: OnceLock::new(),
        }
    }

    fn searcher(&self) -> Option<&Searcher> {
        self.searcher
            .get_or_init(|| Searcher::new(self.words.iter()).map(Box::new))
            .as_deref()
    }
}

/// Looks for companions near needles, which must be in the order of their places: no byte of a text
/// is searched twice.
pub(super) struct CompanionSearch<'c> {
    folded: &'c [u8],
    /// `None` if the companions cannot be searched for.
    searcher: Option<&'c Searcher>,
    /// Where the latest companion that was found begins.
    found: Option<usize>,
    /// Where the search continues: no other companion begins between the surroundings of the latest
    /// needle and this position.
    position: usize,
}

impl<'c> CompanionSearch<'c> {
    pub(super) fn new(companion: &'c Companion, folded: &'c [u8]) -> Self {
        Self {
            folded,
            searcher: companion.searcher(),
            found: None,
            position: 0,
        }
    }

    /// Reports whether a companion may begin in a range of the folded text. No later range may
    /// begin before this one.
    pub(super) fn may_begin_in(&mut self, range: Range<usize>) -> bool {
        let Some(searcher) = self.searcher else {
            return true;
        };
        if self.found.is_none_or(|found| found < range.start) {
            let start = range.start.max(self.position);
            // A companion that begins in the range may end after it.
            let end = range.end.saturating_add(COMPANION_BYTES - 1);
            self.found = self
                .folded
                .get(start..end.min(self.folded.len()))
                .and_then(|part| searcher.find(part))
                .map(|found| start + found.start());
            self.position = self.found.map_or(start.max(range.end), |found| found + 1);
        }
        self.found.is_some_and(|found| found < range.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn companions_are_found_wherever_they_are() {
        let words = ["account", "files", "mail to"];
        let companion = Companion::new(Side::Either, words.iter().collect());
        let text =
            "delete all files and the account, or mail it; then mail to a friend. ".repeat(9);
        let text = text.as_bytes();
        let begins = |mut range: Range<usize>| {
            range.any(|at| {
                words
                    .iter()
                    .any(|word| text[at..].starts_with(word.as_bytes()))
            })
        };
        let mut ruled_out = 0;
        for length in [3, 9, 20, 33, 64, 150] {
            for step in [1, 2, 5, 30, 70] {
                let mut search = CompanionSearch::new(&companion, text);
                for start in (0..text.len() - length).step_by(step) {
                    let range = start..start + length;
                    let may_begin = search.may_begin_in(range.clone());
                    assert_eq!(may_begin, begins(range.clone()), "{range:?} {step}");
                    ruled_out += usize::from(!may_begin);
                }
            }
        }
        assert!(ruled_out > 500, "only {ruled_out} places");
    }
}
