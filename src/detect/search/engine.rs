//! Searches for all rules with regexes of a rule set at once.
//!
//! One pass over a text finds the words that the rules wait for (see [`super::words`]): for each
//! branch of a regex the literals that are rarest in ordinary text, or the rule's keywords. Where a
//! word is found, the regexes that wait for it run: at exactly that place if their match begins
//! with the word, otherwise in a window around it. Regexes that wait for the same words form one
//! unit and run together. The bytes that they examine are paid from a budget that grows with the
//! text. If the budget is spent, each rule with places left to examine counts as matching the whole
//! text, since content that was not examined is not forwarded.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use super::automaton::Automaton;
use super::folded::Folded;
use super::grouped::sort_by_group;
use super::keywords::Keywords;
use super::literals::Branch;
use super::look::{Cost, NearbyKeywords, RuleSearch, Run};
use super::scan::{Buffers, Candidate, Scan};
use super::windows::Windows;
use super::word_list::WordList;
use super::word_uses::WordUses;
use super::words::Words;
use super::{Class, Spec, vocabulary};

/// Minimum average distance in bytes between needles that matches begin with, for these to be
/// examined one by one.
const APART_BYTES: usize = 128;
/// With at least one candidate per this many uses, a counting sort is cheaper than a comparison
/// sort. It has one counter per use.
const USES_PER_CANDIDATE: usize = 4;

/// A rule to search for, with the number under which its matches are reported.
#[derive(Clone, Copy, Debug)]
pub(in crate::detect) struct Phrase<'s> {
    pub(in crate::detect) number: usize,
    pub(in crate::detect) class: Class,
    pub(in crate::detect) spec: &'s Spec,
}

/// All rules with regexes of a rule set.
#[derive(Debug)]
pub(in crate::detect) struct Engine {
    /// The words from the vocabulary that the build prepared, if there is one.
    shared: Option<&'static Words>,
    /// All other words, if there are any. Their numbers follow those of the shared words.
    pub(super) own_words: Option<Words>,
    /// The uses of each word: where those of each word begin in `word_uses`, and where the last
    /// ones end.
    word_starts: Vec<u32>,
    word_uses: Vec<u32>,
    uses: Vec<Use>,
    /// Maximum length of a word, in bytes.
    longest: u32,
    units: Vec<Unit>,
    rules: Vec<Rule>,
}

/// The way in which a unit uses a word.
#[derive(Clone, Copy, Debug)]
struct Use {
    unit: u32,
    class: Class,
    /// Whether matches begin with the word.
    first: bool,
    /// Whether the word only counts if no word character precedes it.
    begins_word: bool,
    /// Maximum length of the words of this use, in bytes.
    longest: u32,
    /// Maximum distance that a match can extend before and after the word.
    back: u32,
    ahead: u32,
}

/// Regexes of one rule that wait for the same words.
#[derive(Debug)]
struct Unit {
    rule: usize,
    automaton: Arc<Automaton>,
}

#[derive(Debug)]
pub(super) struct Rule {
    pub(super) number: usize,
    pub(super) class: Class,
    /// Maximum distance between the parts of a match, in bytes.
    pub(super) reach: usize,
    /// Maximum length of a match in bytes, if it is bounded.
    pub(super) longest: Option<usize>,
    /// The rule's keywords, one of which must be near a match.
    pub(super) nearby_keywords: Option<NearbyKeywords>,
}

/// A unit under construction: its regexes, and the words that they wait for.
struct Draft<'w> {
    sources: Vec<usize>,
    waits: Vec<Wait<'w>>,
}

struct Wait<'w> {
    words: &'w WordList,
    first: bool,
    begins_word: bool,
    back: usize,
    ahead: usize,
}

impl Engine {
    /// Prepares the rules. Their regexes are compiled when they are first needed.
    pub(in crate::detect) fn new(phrases: &[Phrase<'_>]) -> Self {
        let keywords: Vec<Keywords> = phrases
            .iter()
            .map(|phrase| phrase.spec.searched_keywords())
            .collect();
        let branches: Vec<Vec<(usize, Branch)>> = phrases
            .iter()
            .map(|phrase| phrase.spec.branches())
            .collect();
        let vocabulary = vocabulary::most_common(
            branches
                .iter()
                .flatten()
                .map(|(_, branch)| &branch.needles.words),
        );
        let shared = vocabulary.and_then(vocabulary::words);
        let mut engine = Self {
            shared,
            own_words: None,
            word_starts: Vec::new(),
            word_uses: Vec::new(),
            uses: Vec::new(),
            longest: 0,
            units: Vec::new(),
            rules: Vec::new(),
        };
        let mut word_uses = WordUses::new(vocabulary, shared.map_or(0, Words::len));
        for ((phrase, keywords), branches) in phrases.iter().zip(&keywords).zip(&branches) {
            engine.add(phrase, branches, keywords, &mut word_uses);
        }
        (engine.word_starts, engine.word_uses) = word_uses.uses_by_word();
        engine.own_words = word_uses.own_words();
        engine.uses.shrink_to_fit();
        engine.units.shrink_to_fit();
        engine.rules.shrink_to_fit();
        engine
    }

    fn add<'w>(
        &mut self,
        phrase: &Phrase<'_>,
        branches: &'w [(usize, Branch)],
        keywords: &'w Keywords,
        word_uses: &mut WordUses<'w>,
    ) {
        let Phrase {
            number,
            class,
            spec,
        } = *phrase;
        let rule = self.rules.len();
        let reach_of = |branch: &Branch| {
            branch.longest.map_or(class.bounds().reach, |bytes| {
                bytes.min(class.bounds().reach)
            })
        };
        let reach = branches
            .iter()
            .map(|(_, branch)| reach_of(branch))
            .max()
            .unwrap_or_default();
        let longest = branches
            .iter()
            .map(|(_, branch)| branch.longest)
            .try_fold(0, |most, longest| Some(most.max(longest?)));
        let drafts = draft_units(branches, keywords, class, longest.unwrap_or(usize::MAX));
        let nearby_keywords =
            (!keywords.words.is_empty()).then(|| NearbyKeywords::new(keywords.words.clone()));
        self.rules.push(Rule {
            number,
            class,
            reach,
            longest,
            nearby_keywords,
        });
        for draft in drafts {
            let unit = index(self.units.len());
            for wait in draft.waits {
                let use_index = index(self.uses.len());
                let Wait {
                    words,
                    first,
                    begins_word,
                    back,
                    ahead,
                } = wait;
                let longest = index(words.iter().map(<[u8]>::len).max().unwrap_or_default());
                self.longest = self.longest.max(longest);
                self.uses.push(Use {
                    unit,
                    class,
                    first,
                    begins_word,
                    longest,
                    back: index(back),
                    ahead: index(ahead),
                });
                word_uses.add(words, use_index);
            }
            let sources = draft
                .sources
                .iter()
                .filter_map(|at| Some((*at, spec.any.get(*at)?.clone())))
                .collect();
            self.units.push(Unit {
                rule,
                automaton: Automaton::new(sources),
            });
        }
    }

    /// Finds the places where each regex could match, in one pass.
    pub(in crate::detect) fn scan(&self, text: &str) -> Scan {
        let mut scan = Scan::new();
        if u32::try_from(text.len()).is_err() {
            scan.too_long = true;
            return scan;
        }
        let Buffers { folded, candidates } = &mut scan.buffers;
        folded.fold(text.as_bytes());
        let mut record = |word: usize, start: usize| {
            for use_index in self.uses_of(word) {
                let Some(word_use) = self.uses.get(*use_index as usize) else {
                    continue;
                };
                if word_use.begins_word && is_within_word(folded, start) {
                    continue;
                }
                candidates.in_class_mut(word_use.class).push(Candidate {
                    use_index: *use_index,
                    start: index(start),
                });
            }
        };
        if let Some(shared) = self.shared {
            shared.find(folded, |hit| record(hit.word, hit.start));
        }
        if let Some(own_words) = &self.own_words {
            let offset = self.shared.map_or(0, Words::len);
            own_words.find(folded, |hit| record(offset + hit.word, hit.start));
        }
        // Candidates of the other class are not sorted here: most texts have no region in which
        // they are searched for.
        for class in [Class::Pattern, Class::Anchor] {
            self.sort_candidates(candidates.in_class_mut(class));
        }
        candidates.release_unused();
        scan
    }

    /// Sorts candidates by their uses, which is the order of their units, and by their places in
    /// the text.
    fn sort_candidates(&self, candidates: &mut Vec<Candidate>) {
        if candidates.len() * USES_PER_CANDIDATE < self.uses.len() {
            candidates.sort_unstable_by_key(|candidate| {
                u64::from(candidate.use_index) << u32::BITS | u64::from(candidate.start)
            });
            return;
        }
        // Almost sorted within a use, because a text is searched from start to end.
        *candidates = sort_by_group(candidates, self.uses.len(), |candidate| {
            candidate.use_index as usize
        })
        .1;
        candidates
            .chunk_by_mut(|a, b| a.use_index == b.use_index)
            .for_each(|of_use| of_use.sort_by_key(|candidate| candidate.start));
    }

    fn uses_of(&self, word: usize) -> &[u32] {
        let bounds = self
            .word_starts
            .get(word)
            .zip(self.word_starts.get(word + 1));
        bounds
            .and_then(|(start, end)| self.word_uses.get(*start as usize..*end as usize))
            .unwrap_or_default()
    }

    /// Calls `report` for every match of rules of a class within a region of the text, as if the
    /// region were the whole text, and with `None` for a rule whose search could not be completed.
    pub(in crate::detect) fn search(
        &self,
        scan: &Scan,
        class: Class,
        text: &str,
        region: Range<usize>,
        mut report: impl FnMut(usize, Option<Range<usize>>),
    ) {
        if scan.too_long {
            return self
                .rules
                .iter()
                .filter(|rule| rule.class == class)
                .for_each(|rule| report(rule.number, None));
        }
        let Some(part) = text.get(region.clone()) else {
            return;
        };
        let bounds = class.bounds();
        let mut budget = bounds.budget(part.len());
        self.visit_runs(scan, class, &region, |rule, runs| {
            let rule_search = RuleSearch {
                rule,
                text: part,
                spans: bounds.spans,
            };
            rule_search.search(runs, &mut budget, |span| {
                report(
                    rule.number,
                    span.map(|span| region.start + span.start..region.start + span.end),
                );
            });
        });
    }

    /// Returns the cost of searching a text of `length` bytes for the rules of a class, by the
    /// numbers of the rules.
    pub(in crate::detect) fn costs(
        &self,
        scan: &Scan,
        class: Class,
        length: usize,
    ) -> Vec<(usize, Cost)> {
        let mut costs = Vec::new();
        self.visit_runs(scan, class, &(0..length), |rule, runs| {
            costs.push((
                rule.number,
                runs.iter().map(Run::cost).fold(Cost::default(), Cost::plus),
            ));
        });
        costs
    }

    /// Calls `visit` for each rule of a class with the places to examine, relative to the region.
    fn visit_runs(
        &self,
        scan: &Scan,
        class: Class,
        region: &Range<usize>,
        mut visit: impl FnMut(&Rule, Vec<Run>),
    ) {
        let folded = &scan.buffers.folded;
        let candidates = if class == Class::Other {
            let mut candidates = self.others_near(scan, region).to_vec();
            self.sort_candidates(&mut candidates);
            Cow::Owned(candidates)
        } else {
            Cow::Borrowed(scan.buffers.candidates.in_class(class))
        };
        let rule = |candidate: &Candidate| {
            self.units
                .get(self.unit_of(candidate))
                .map_or(0, |unit| unit.rule)
        };
        for of_rule in candidates.chunk_by(|a, b| rule(a) == rule(b)) {
            let Some(candidate_rule) = of_rule
                .first()
                .and_then(|first| self.rules.get(rule(first)))
            else {
                continue;
            };
            let of_units = of_rule.chunk_by(|a, b| self.unit_of(a) == self.unit_of(b));
            visit(
                candidate_rule,
                of_units
                    .filter_map(|of_unit| self.build_run(of_unit, folded, region))
                    .collect(),
            );
        }
    }

    /// Returns the candidates of the class [`Class::Other`] that could be in a region, and few
    /// others, since a text may have many regions.
    fn others_near<'s>(&self, scan: &'s Scan, region: &Range<usize>) -> &'s [Candidate] {
        let folded = &scan.buffers.folded;
        let others = scan.others_by_place();
        let longest = self.longest as usize;
        let first = others.partition_point(|candidate| {
            folded.end(candidate.start as usize + longest) <= region.start
        });
        let end =
            others.partition_point(|candidate| folded.place(candidate.start as usize) < region.end);
        others.get(first..end).unwrap_or_default()
    }

    fn unit_of(&self, candidate: &Candidate) -> usize {
        self.uses
            .get(candidate.use_index as usize)
            .map_or(0, |word_use| word_use.unit as usize)
    }

    /// Returns the places that the unit of these candidates must examine, relative to the region.
    fn build_run(
        &self,
        candidates: &[Candidate],
        folded: &Folded,
        region: &Range<usize>,
    ) -> Option<Run> {
        let unit = self.units.get(self.unit_of(candidates.first()?))?;
        let mut run = Run::new(unit.automaton.clone());
        let sparse = candidates.len().saturating_mul(APART_BYTES) <= region.len().max(APART_BYTES);
        let relative = |at: usize| at.saturating_sub(region.start);
        for of_use in candidates.chunk_by(|a, b| a.use_index == b.use_index) {
            let mut windows = Windows::default();
            for MatchCandidate {
                word_use,
                from,
                word,
            } in of_use
                .iter()
                .filter_map(|candidate| self.locate_candidate(folded, candidate, region))
            {
                if word_use.first && sparse && word.start >= region.start {
                    run.starts.push(relative(word.start));
                } else {
                    let end = relative(word.end)
                        .saturating_add(word_use.ahead as usize)
                        .min(region.len());
                    windows.add(relative(from)..end);
                }
            }
            run.windows.join(windows);
        }
        Some(run)
    }

    /// Returns the place of a candidate in the text; `None` if it is not within the region.
    fn locate_candidate(
        &self,
        folded: &Folded,
        candidate: &Candidate,
        region: &Range<usize>,
    ) -> Option<MatchCandidate<'_>> {
        let word_use = self.uses.get(candidate.use_index as usize)?;
        let start = candidate.start as usize;
        let word = folded.place(start)..folded.end(start + word_use.longest as usize);
        // Counted in the folded text, where each run of white space is one blank.
        let from = folded.place(start.saturating_sub(word_use.back as usize));
        (word.start < region.end && word.end > region.start).then_some(MatchCandidate {
            word_use,
            from,
            word,
        })
    }
}

/// A place in a text where the regexes of a unit could match.
struct MatchCandidate<'e> {
    word_use: &'e Use,
    /// Earliest start of a match that contains the word.
    from: usize,
    /// The place of the word; the word may end earlier.
    word: Range<usize>,
}

/// Groups the regexes of a rule into units by the words that they wait for.
fn draft_units<'w>(
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
            };
        }
        let needles = &branch.needles;
        // A region may begin within a word.
        let begins_word = needles.begins_word && class != Class::Other;
        let back = needles.back.unwrap_or(usize::MAX).min(max_extent);
        Self {
            words,
            first: needles.first,
            begins_word,
            back,
            ahead: max_extent,
        }
    }
}

fn is_within_word(folded: &Folded, at: usize) -> bool {
    let before = at
        .checked_sub(1)
        .and_then(|before| folded.padded().get(before));
    before.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_')
}

fn index(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
