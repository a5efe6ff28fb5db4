//! Groups the regexes of a rule by the words that they wait for.

use super::Class;
use super::companion::Side;
use super::keywords::Keywords;
use super::literals::{Branch, COMPANIONS};
use super::word_list::WordList;

/// A unit under construction: its regexes, and the words that they wait for.
pub(super) struct Draft<'w> {
    pub(super) sources: Vec<usize>,
    pub(super) waits: Vec<Wait<'w>>,
}

/// The words that a unit waits for, and where its matches can be from them.
pub(super) struct Wait<'w> {
    pub(super) words: &'w WordList,
    pub(super) first: bool,
    pub(super) begins_word: bool,
    pub(super) back: usize,
    pub(super) ahead: usize,
    /// Lists of words, one of each of which is on this side of the word in every match.
    pub(super) companions: Vec<(Side, WordList)>,
}

/// Groups the regexes of a rule into units by the words that they wait for.
pub(super) fn draft_units<'w>(
    branches: &'w [(usize, Branch)],
    keywords: &'w Keywords,
    class: Class,
    longest: usize,
) -> Vec<Draft<'w>> {
    let mut drafts: Vec<Draft<'_>> = Vec::new();
    for (source, branch) in branches {
        let wait = Wait::new(branch, keywords, class, longest);
        // Branches that share words or regexes form one unit.
        let joins = |draft: &Draft<'_>| {
            draft.sources.contains(source)
                || draft.waits.iter().any(|other| other.words == wait.words)
        };
        let Some(at) = drafts.iter().position(joins) else {
            drafts.push(Draft {
                sources: vec![*source],
                waits: vec![wait],
            });
            continue;
        };
        let others: Vec<Draft<'_>> = drafts.extract_if(at + 1.., |draft| joins(draft)).collect();
        let Some(draft) = drafts.get_mut(at) else {
            continue;
        };
        draft.sources.push(*source);
        draft.add_wait(wait);
        for other in others {
            draft.sources.extend(other.sources);
            other
                .waits
                .into_iter()
                .for_each(|wait| draft.add_wait(wait));
        }
    }
    for draft in &mut drafts {
        draft.sources.sort_unstable();
        draft.sources.dedup();
    }
    drafts.sort_by(|a, b| a.sources.cmp(&b.sources));
    drafts
}

impl<'w> Draft<'w> {
    fn add_wait(&mut self, wait: Wait<'w>) {
        match self
            .waits
            .iter_mut()
            .find(|other| other.words == wait.words)
        {
            Some(same) => {
                same.first &= wait.first;
                same.begins_word &= wait.begins_word;
                same.back = same.back.max(wait.back);
                same.ahead = same.ahead.max(wait.ahead);
                // A match of one branch need not contain the companions of the other.
                same.companions
                    .retain(|companion| wait.companions.contains(companion));
            }
            None => self.waits.push(wait),
        }
    }
}

impl<'w> Wait<'w> {
    /// Creates the wait of a branch for its own literals or, if it has none, for the keywords of
    /// its rule.
    fn new(branch: &'w Branch, keywords: &'w Keywords, class: Class, longest: usize) -> Self {
        let words = branch.words(keywords);
        let reach = class.bounds().reach;
        let max_extent = branch.extent.unwrap_or(longest).min(reach * 2);
        if !branch.has_own_words(keywords) {
            let radius = if branch.is_vague() {
                max_extent.min(reach)
            } else {
                max_extent
            };
            return Self {
                words,
                first: false,
                begins_word: false,
                back: radius,
                ahead: radius,
                // A vague branch has no needles.
                companions: [&branch.needles.words, &branch.before, &branch.after]
                    .into_iter()
                    .filter_map(|words| companion(Side::Either, words))
                    .collect(),
            };
        }
        let needles = &branch.needles;
        let back = needles.back.unwrap_or(usize::MAX).min(max_extent);
        Self {
            words,
            first: needles.first,
            begins_word: needles.begins_word,
            back,
            ahead: max_extent,
            companions: [(Side::Before, &branch.before), (Side::After, &branch.after)]
                .into_iter()
                .filter_map(|(side, words)| companion(side, words))
                .collect(),
        }
    }
}

/// Returns words as companions, if there are any and not too many.
fn companion(side: Side, words: &WordList) -> Option<(Side, WordList)> {
    let is_searchable = !words.is_empty() && words.iter().nth(COMPANIONS).is_none();
    is_searchable.then(|| (side, words.clone()))
}
