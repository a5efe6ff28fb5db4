//! The words of the built-in rules, as the build has put them in order: to choose by which bytes each of them is looked for
//! takes a third of a start.
//!
//! Rules that look in the same places share a vocabulary, so that the words of definitions' rules cost other texts nothing.
//! It has the words of all built-in rules, whichever of them a policy disables.

use std::iter;
use std::sync::LazyLock;

use super::words::Words;
use crate::detect::prepared::{Reader, VOCABULARIES};

static ALL: LazyLock<Vec<Words>> = LazyLock::new(|| {
    let mut left = Reader(VOCABULARIES);
    iter::from_fn(|| left.text()).map_while(|words| Words::read(&mut Reader(words))).collect()
});

/// The words of the vocabulary with this number.
pub(super) fn vocabulary(number: u32) -> Option<&'static Words> {
    ALL.get(number as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_vocabularies_of_the_build_are_read() {
        let mut left = Reader(VOCABULARIES);
        assert_eq!(ALL.len(), iter::from_fn(|| left.text()).count());
        assert!(ALL.len() > 1 && ALL.iter().any(|words| words.len() > 10_000), "{ALL:?}");
    }
}
