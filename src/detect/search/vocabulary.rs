//! The words of the built-in rules, prepared by the build: choosing the bytes by which each word is
//! found would take a third of the start-up time.
//!
//! Rules that apply to the same surfaces share a vocabulary, so that the words of rules for
//! definitions cost other texts nothing. A vocabulary contains the words of all built-in rules,
//! including those that a policy disables.

use std::iter;
use std::sync::LazyLock;

use super::word_list::WordList;
use super::words::Words;
use crate::detect::prepared::{Reader, VOCABULARIES};

static ALL: LazyLock<Vec<Words>> = LazyLock::new(|| {
    let mut reader = Reader(VOCABULARIES);
    iter::from_fn(|| reader.text())
        .map_while(|words| Words::read(&mut Reader(words)))
        .collect()
});

/// Returns the words of a vocabulary by its number.
pub(super) fn words(number: u32) -> Option<&'static Words> {
    ALL.get(number as usize)
}

/// Returns the vocabulary that contains the most of these lists, if there is one.
pub(super) fn most_common<'l>(lists: impl Iterator<Item = &'l WordList>) -> Option<u32> {
    let mut counts: Vec<(usize, u32)> = Vec::new();
    for number in lists.flat_map(WordList::vocabularies) {
        match counts.iter_mut().find(|(_, counted)| *counted == number) {
            Some((count, _)) => *count += 1,
            None => counts.push((1, number)),
        }
    }
    counts.into_iter().max().map(|(_, number)| number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::signal;
    use crate::rules::{Find, Library};

    #[test]
    fn all_vocabularies_of_the_build_are_read() {
        let mut left = Reader(VOCABULARIES);
        assert_eq!(ALL.len(), iter::from_fn(|| left.text()).count());
        assert!(
            ALL.len() > 1 && ALL.iter().any(|words| words.len() > 10_000),
            "{ALL:?}"
        );
    }

    #[test]
    fn the_numbers_of_the_words_of_built_in_rules_are_theirs() {
        let mut tried = 0;
        for rule in Library::builtin().rules() {
            let spec = match rule.find.as_ref() {
                Find::Pattern(spec) => spec,
                Find::Signal(signal::Spec::Phrase(phrase)) => &phrase.search,
                _ => continue,
            };
            let keywords = spec.searched_keywords();
            let branches = spec.branches();
            let lists: Vec<&WordList> = branches
                .iter()
                .map(|(_, branch)| branch.words(&keywords))
                .collect();
            let vocabulary = most_common(lists.iter().copied()).unwrap();
            for list in lists {
                let numbers: Vec<u32> = list.numbers(vocabulary).unwrap().collect();
                let words = numbers
                    .iter()
                    .map(|number| words(vocabulary).unwrap().word(*number));
                assert!(words.eq(list.iter()), "`{}`", rule.id);
                tried += numbers.len();
            }
        }
        assert!(tried > 40_000, "only {tried} words");
    }
}
