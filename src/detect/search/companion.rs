//! Words that every match contains besides its needle. Where none of them is near, the regex does
//! not have to run: in ordinary text most needles are common words, and running a regex there
//! creates states of its lazy automaton, which costs a hundred times as much as this search.

use std::ops::Range;
use std::sync::OnceLock;

use aho_corasick::packed::Searcher;

use super::literals::COMPANION_BYTES;
use super::word_list::WordList;

/// Words, one of which is near every needle that belongs to a match.
#[derive(Debug)]
pub(super) struct Companion {
    words: WordList,
    /// Prepared when a needle first occurs; `None` if the processor has no instructions for it.
    searcher: OnceLock<Option<Box<Searcher>>>,
}

impl Companion {
    pub(super) fn new(words: WordList) -> Self {
        Self {
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
    /// `None` if there are no companions, or they cannot be searched for.
    searcher: Option<&'c Searcher>,
    /// Where the latest companion that was found begins.
    found: Option<usize>,
    /// Where the search continues: no other companion begins between the surroundings of the latest
    /// needle and this position.
    position: usize,
}

impl<'c> CompanionSearch<'c> {
    pub(super) fn new(companion: Option<&'c Companion>, folded: &'c [u8]) -> Self {
        Self {
            folded,
            searcher: companion.and_then(Companion::searcher),
            found: None,
            position: 0,
        }
    }

    /// Reports whether a companion may occur in a range of the folded text. No later range may
    /// begin before this one.
    pub(super) fn may_occur_in(&mut self, range: Range<usize>) -> bool {
        let Some(searcher) = self.searcher else {
            return true;
        };
        if let Some(found) = self.found.filter(|found| *found >= range.start) {
            return found < range.end;
        }
        let start = range.start.max(self.position);
        let end = range.end.min(self.folded.len());
        self.found = self
            .folded
            .get(start..end)
            .and_then(|part| searcher.find(part))
            .map(|found| start + found.start());
        self.position = match self.found {
            Some(found) => found + 1,
            // A companion may begin before the end and end after it.
            None => end.saturating_sub(COMPANION_BYTES).max(start),
        };
        self.found.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn companions_are_found_wherever_they_are() {
        let words = ["account", "files", "mail to"];
        let companion = Companion::new(words.iter().collect());
        let text =
            "delete all files and the account, or mail it; then mail to a friend. ".repeat(9);
        let text = text.as_bytes();
        let occurs = |range: Range<usize>| {
            words.iter().any(|word| {
                text[range.clone()]
                    .windows(word.len())
                    .any(|part| part == word.as_bytes())
            })
        };
        let mut ruled_out = 0;
        for length in [3, 9, 20, 33, 64, 150] {
            for step in [1, 2, 5, 30, 70] {
                let mut search = CompanionSearch::new(Some(&companion), text);
                for start in (0..text.len() - length).step_by(step) {
                    let range = start..start + length;
                    let may_occur = search.may_occur_in(range.clone());
                    assert!(may_occur || !occurs(range.clone()), "{range:?} {step}");
                    ruled_out += usize::from(!may_occur);
                }
            }
        }
        assert!(ruled_out > 500, "only {ruled_out} places");
        assert!(CompanionSearch::new(None, text).may_occur_in(0..1));
    }
}
