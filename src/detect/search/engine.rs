//! Searches for all rules with regexes of a rule set at once.
//!
//! One pass over a text finds the words that the rules wait for (see [`super::words`]): for each
//! branch of a regex the literals that are rarest in ordinary text, or the rule's keywords. Where a
//! word is found, and a second word that every match contains is near (see [`super::companion`]),
//! the regexes that wait for it run: at exactly that place if their match begins with the word,
//! otherwise in a window around it. Regexes that wait for the same words form one unit and run
//! together. The bytes that they examine are paid from a budget that grows with the text. If the
//! budget is spent, each rule with places left to examine counts as matching the whole text, since
//! content that was not examined is not forwarded.

use std::ops::Range;
use std::sync::Arc;

use super::automaton::Automaton;
use super::companion::{Companion, CompanionSearch, Side};
use super::draft::{Wait, draft_units};
use super::folded::Folded;
use super::grouped::sort_by_group;
use super::keywords::Keywords;
use super::literals::Branch;
use super::look::{Cost, NearbyKeywords, RuleSearch, Run};
use super::scan::{Buffers, Candidate, Scan};
use super::windows::Windows;
use super::word_uses::WordUses;
use super::words::Words;
use super::{Bounds, Class, Spec, vocabulary};

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
    companions: Vec<Companion>,
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
    /// Indices of the words of which one of each is near every match: the first one and the end.
    companions: (u32, u32),
}

impl Use {
    /// Returns the part of the padded folded text in which a companion of this candidate begins.
    fn surroundings(&self, candidate: &Candidate, side: Side) -> Range<usize> {
        let place = candidate.start as usize;
        let start = place.saturating_sub(self.back as usize);
        let end = place.saturating_add((self.longest + self.ahead) as usize);
        match side {
            Side::Before => start..place + 1,
            Side::After => place..end,
            Side::Either => start..end,
        }
    }
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
            companions: Vec::new(),
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
        engine.companions.shrink_to_fit();
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
                    companions,
                } = wait;
                let first_companion = index(self.companions.len());
                let companions = companions
                    .into_iter()
                    .map(|(side, words)| Companion::new(side, words));
                self.companions.extend(companions);
                let longest = index(words.iter().map(<[u8]>::len).max().unwrap_or_default());
                self.uses.push(Use {
                    unit,
                    class,
                    first,
                    begins_word,
                    longest,
                    back: index(back),
                    ahead: index(ahead),
                    companions: (first_companion, index(self.companions.len())),
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

    /// Reports whether a vocabulary of the build has all words of the rules.
    #[cfg(test)]
    pub(in crate::detect) fn has_shared_words_only(&self) -> bool {
        self.shared.is_some() && self.own_words.is_none()
    }

    /// Finds the places where each regex could match, in one pass.
    pub(in crate::detect) fn scan<'t>(&self, text: &'t str) -> Scan<'t> {
        let mut scan = Scan::new(text);
        if u32::try_from(text.len()).is_err() {
            scan.too_long = true;
            return scan;
        }
        if !text.is_ascii() {
            scan.lower_text();
        }
        let (buffers, lower_text) = scan.buffers_mut();
        let Buffers {
            folded,
            hits,
            candidates,
        } = buffers;
        folded.fold(lower_text.unwrap_or(text.as_bytes()));
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
            shared.find(folded, hits, |hit| record(hit.word, hit.start));
        }
        if let Some(own_words) = &self.own_words {
            let offset = self.shared.map_or(0, Words::len);
            own_words.find(folded, hits, |hit| record(offset + hit.word, hit.start));
        }
        for class in Class::ALL {
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

    /// Calls `report` for every match of rules of a class, and with `None` for a rule whose search
    /// could not be completed.
    pub(in crate::detect) fn search(
        &self,
        scan: &Scan<'_>,
        class: Class,
        mut report: impl FnMut(usize, Option<Range<usize>>),
    ) {
        let mut search = TextSearch::new(class, scan);
        self.visit_rules(scan, class, |places| {
            let rule = places.number();
            search.run(places, |span| report(rule, span));
        });
    }

    /// Returns the rules of a class that could match, each with the places to examine.
    pub(in crate::detect) fn rule_places(
        &self,
        scan: &Scan<'_>,
        class: Class,
    ) -> Vec<RulePlaces<'_>> {
        let mut all = Vec::new();
        self.visit_rules(scan, class, |places| all.push(places));
        all
    }

    /// Returns the cost of searching the text for the rules of a class, by the numbers of the rules.
    pub(in crate::detect) fn costs(&self, scan: &Scan<'_>, class: Class) -> Vec<(usize, Cost)> {
        let mut costs = Vec::new();
        self.visit_rules(scan, class, |places| {
            let cost = places.runs.iter().map(Run::cost);
            costs.push((places.number(), cost.fold(Cost::default(), Cost::plus)));
        });
        costs
    }

    /// Calls `visit` for each rule of a class that could match.
    fn visit_rules<'e>(
        &'e self,
        scan: &Scan<'_>,
        class: Class,
        mut visit: impl FnMut(RulePlaces<'e>),
    ) {
        if scan.too_long {
            return self
                .rules
                .iter()
                .filter(|rule| rule.class == class)
                .for_each(|rule| {
                    visit(RulePlaces {
                        rule,
                        runs: Vec::new(),
                        too_long: true,
                    })
                });
        }
        let candidates = scan.buffers.candidates.in_class(class);
        let rule = |candidate: &Candidate| {
            self.units
                .get(self.unit_of(candidate))
                .map_or(0, |unit| unit.rule)
        };
        for of_rule in candidates.chunk_by(|a, b| rule(a) == rule(b)) {
            let Some(rule) = of_rule
                .first()
                .and_then(|first| self.rules.get(rule(first)))
            else {
                continue;
            };
            let of_units = of_rule.chunk_by(|a, b| self.unit_of(a) == self.unit_of(b));
            let runs: Vec<Run> = of_units
                .filter_map(|of_unit| self.build_run(of_unit, scan))
                .collect();
            if !runs.is_empty() {
                visit(RulePlaces {
                    rule,
                    runs,
                    too_long: false,
                });
            }
        }
    }

    fn unit_of(&self, candidate: &Candidate) -> usize {
        self.use_of(candidate)
            .map_or(0, |word_use| word_use.unit as usize)
    }

    /// Returns the places that the unit of these candidates must examine.
    fn build_run(&self, candidates: &[Candidate], scan: &Scan<'_>) -> Option<Run> {
        let folded = &scan.buffers.folded;
        let length = scan.text.len();
        let unit = self.units.get(self.unit_of(candidates.first()?))?;
        let mut run = Run::new(unit.automaton.clone());
        let sparse = candidates.len().saturating_mul(APART_BYTES) <= length.max(APART_BYTES);
        for of_use in candidates.chunk_by(|a, b| a.use_index == b.use_index) {
            let mut windows = Windows::default();
            let Some(word_use) = of_use.first().and_then(|candidate| self.use_of(candidate)) else {
                continue;
            };
            let (first, end) = word_use.companions;
            let companions = self.companions.get(first as usize..end as usize);
            let mut searches: Vec<(Side, CompanionSearch<'_>)> = companions
                .unwrap_or_default()
                .iter()
                .map(|companion| {
                    let search = CompanionSearch::new(companion, folded.padded());
                    (companion.side, search)
                })
                .collect();
            let accompanied = of_use.iter().filter(|candidate| {
                searches.iter_mut().all(|(side, search)| {
                    search.may_begin_in(word_use.surroundings(candidate, *side))
                })
            });
            for candidate in accompanied {
                let start = candidate.start as usize;
                let word = folded.span(start..start + word_use.longest as usize);
                if word_use.first && sparse {
                    run.starts.push(word.start);
                } else {
                    // Counted in the folded text, where each run of white space is one blank.
                    let from = folded.place(start.saturating_sub(word_use.back as usize));
                    let end = word.end.saturating_add(word_use.ahead as usize);
                    windows.add(from..end.min(length));
                }
            }
            run.windows.join(windows);
        }
        (!run.is_empty()).then_some(run)
    }

    fn use_of(&self, candidate: &Candidate) -> Option<&Use> {
        self.uses.get(candidate.use_index as usize)
    }
}

/// A rule and the places where its regexes could match.
pub(in crate::detect) struct RulePlaces<'e> {
    rule: &'e Rule,
    runs: Vec<Run>,
    /// Whether the text is too long to be searched.
    too_long: bool,
}

impl RulePlaces<'_> {
    /// Returns the number of the rule.
    pub(in crate::detect) fn number(&self) -> usize {
        self.rule.number
    }
}

/// A search for rules in a text, which share its budget.
pub(in crate::detect) struct TextSearch<'s> {
    scan: &'s Scan<'s>,
    bounds: Bounds,
    budget: usize,
}

impl<'s> TextSearch<'s> {
    /// Starts a search for rules of a class in the text that was scanned.
    pub(in crate::detect) fn new(class: Class, scan: &'s Scan<'s>) -> Self {
        let bounds = class.bounds();
        Self {
            scan,
            budget: bounds.budget(scan.text.len()),
            bounds,
        }
    }

    /// Calls `report` for every match of a rule, and with `None` if its search could not be
    /// completed.
    pub(in crate::detect) fn run(
        &mut self,
        places: RulePlaces<'_>,
        mut report: impl FnMut(Option<Range<usize>>),
    ) {
        if places.too_long {
            return report(None);
        }
        let rule_search = RuleSearch {
            rule: places.rule,
            scan: self.scan,
            spans: self.bounds.spans,
        };
        rule_search.search(places.runs, &mut self.budget, report);
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
