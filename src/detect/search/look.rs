//! Runs the regexes of one rule at the places where they could match.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use super::automaton::{Automaton, Compiled, RegexMatch};
use super::engine::Rule;
use super::scan::Scan;
use super::windows::{Windows, whole_characters, widen};
use super::word_list::WordList;

/// Size of the pieces in which a window is searched.
const PIECE_BYTES: usize = 4 << 10;
/// Cost of starting one search, in bytes examined.
const SEARCH_BYTES: usize = 128;

/// Keywords of one rule, prepared when one of its regexes first matches.
#[derive(Debug)]
pub(super) struct NearbyKeywords {
    words: WordList,
    searcher: OnceLock<Option<AhoCorasick>>,
}

impl NearbyKeywords {
    pub(super) fn new(words: WordList) -> Self {
        Self {
            words,
            searcher: OnceLock::new(),
        }
    }

    /// Reports whether a keyword occurs in a part of a text in lower case.
    fn occurs_in(&self, part: &[u8]) -> bool {
        let build = || {
            let kind = Some(AhoCorasickKind::ContiguousNFA);
            AhoCorasick::builder()
                .kind(kind)
                .prefilter(false)
                .build(self.words.iter())
                .ok()
        };
        // If the searcher cannot be built, assume that a keyword is present.
        self.searcher
            .get_or_init(build)
            .as_ref()
            .is_none_or(|searcher| searcher.is_match(part))
    }
}

/// The places that a unit of a rule must examine.
#[derive(Debug)]
pub(super) struct Run {
    automaton: Arc<Automaton>,
    /// Places where a match can begin.
    pub(super) starts: Vec<usize>,
    /// Ranges that can contain a match.
    pub(super) windows: Windows,
}

impl Run {
    pub(super) fn new(automaton: Arc<Automaton>) -> Self {
        Self {
            automaton,
            starts: Vec::new(),
            windows: Windows::default(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.starts.is_empty() && self.windows.is_empty()
    }

    /// Returns the cost of the run if nothing matches.
    pub(super) fn cost(&self) -> Cost {
        let (windows, bytes) = self
            .windows
            .clone()
            .merged()
            .iter()
            .fold((0, 0), |(count, bytes), window| {
                (count + 1, bytes + window.len())
            });
        let searches = self.starts.len() + windows;
        Cost {
            searches,
            bytes: bytes.saturating_add(searches.saturating_mul(SEARCH_BYTES)),
        }
    }
}

/// The cost of a rule for a text that does not match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Number of searches for its regexes.
    pub searches: usize,
    /// Number of bytes that they examine, including the cost of starting searches.
    pub bytes: usize,
}

impl Cost {
    /// Returns the sum of two costs.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            searches: self.searches.saturating_add(other.searches),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }
}

/// A search for the matches of one rule.
pub(super) struct RuleSearch<'l> {
    pub(super) rule: &'l Rule,
    pub(super) scan: &'l Scan<'l>,
    /// Maximum number of matches that are reported; beyond it, the match is for the whole text.
    pub(super) spans: usize,
}

/// The remaining places of a unit.
struct Cursor {
    automaton: Arc<Automaton>,
    compiled: Option<Arc<Compiled>>,
    places: Places,
    next_match: Option<RegexMatch>,
}

/// Places where a match can be; the next one is last.
enum Places {
    /// Places where a match can begin.
    Starts(Vec<usize>),
    /// Ranges that can contain a match.
    Windows(Vec<Range<usize>>),
}

impl Cursor {
    /// Returns the cursors of a unit: matches that begin at known places are not searched for
    /// between these places.
    fn for_run(run: Run) -> impl Iterator<Item = Self> {
        let Run {
            automaton,
            mut starts,
            windows,
        } = run;
        starts.sort_unstable_by(|a, b| b.cmp(a));
        starts.dedup();
        let mut windows = windows.merged();
        windows.reverse();
        let starts = (!starts.is_empty()).then_some(Places::Starts(starts));
        let windows = (!windows.is_empty()).then_some(Places::Windows(windows));
        let places = starts.into_iter().chain(windows);
        places.map(move |places| Self {
            automaton: automaton.clone(),
            compiled: None,
            places,
            next_match: None,
        })
    }
}

/// The budget, or the number of matches, is exhausted.
struct BudgetExhausted;

impl RuleSearch<'_> {
    /// Calls `report` with every match, and with `None` if the budget or the number of matches was
    /// exhausted before the end.
    pub(super) fn search(
        &self,
        runs: Vec<Run>,
        budget: &mut usize,
        mut report: impl FnMut(Option<Range<usize>>),
    ) {
        let cursors = runs.into_iter().flat_map(Cursor::for_run).collect();
        if self.report_matches(cursors, budget, &mut report).is_err() {
            report(None);
        }
    }

    /// Returns the text in the form in which regexes search it.
    fn text_for(&self, compiled: &Compiled) -> &[u8] {
        if compiled.is_in_lower_case() {
            self.scan.lower_text()
        } else {
            self.scan.text.as_bytes()
        }
    }

    /// Reports whether a match is no longer than the gaps of its regex allow.
    fn fits(&self, candidate: &RegexMatch) -> bool {
        self.rule
            .longest
            .is_none_or(|longest| candidate.span.len() <= longest)
    }

    /// Reports whether a keyword is near.
    fn is_near(&self, candidate: &RegexMatch) -> bool {
        let part = || {
            let near = widen(
                candidate.span.clone(),
                self.rule.reach,
                self.scan.text.len(),
            );
            self.scan.lower_text().get(near).unwrap_or_default()
        };
        self.rule
            .nearby_keywords
            .as_ref()
            .is_none_or(|keywords| keywords.occurs_in(part()))
    }

    /// Reports the matches in order, without overlaps. Of matches that begin at the same place, the
    /// one whose regex comes first is reported.
    fn report_matches(
        &self,
        mut cursors: Vec<Cursor>,
        budget: &mut usize,
        report: &mut impl FnMut(Option<Range<usize>>),
    ) -> Result<(), BudgetExhausted> {
        let mut at = 0;
        let mut spans = 0;
        loop {
            for cursor in &mut cursors {
                if cursor
                    .next_match
                    .as_ref()
                    .is_none_or(|found| found.span.start < at)
                {
                    cursor.next_match = self.next(cursor, at, budget)?;
                }
            }
            cursors.retain(|cursor| cursor.next_match.is_some());
            let first = |cursor: &&Cursor| {
                cursor
                    .next_match
                    .as_ref()
                    .map(|found| (found.span.start, found.source))
            };
            let Some(first) = cursors.iter().min_by_key(first) else {
                return Ok(());
            };
            if matches!(first.places, Places::Windows(_)) {
                if spans == self.spans {
                    return Err(BudgetExhausted);
                }
                spans += 1;
            }
            let Some(RegexMatch { span, .. }) = first.next_match.clone() else {
                return Ok(());
            };
            at = span.end.max(span.start.saturating_add(1));
            report(Some(whole_characters(self.scan.text, span)));
        }
    }

    /// Returns the next valid match of a unit that does not begin before `min_start`.
    fn next(
        &self,
        cursor: &mut Cursor,
        min_start: usize,
        budget: &mut usize,
    ) -> Result<Option<RegexMatch>, BudgetExhausted> {
        let Cursor {
            automaton,
            compiled,
            places,
            ..
        } = cursor;
        if compiled.is_none() {
            *compiled = automaton.get();
        }
        let compiled = compiled.as_ref().ok_or(BudgetExhausted)?;
        match places {
            Places::Starts(starts) => {
                self.next_start(starts, min_start, (automaton, compiled), budget)
            }
            Places::Windows(windows) => {
                self.next_in_windows(windows, min_start, (automaton, compiled), budget)
            }
        }
    }

    fn next_start(
        &self,
        starts: &mut Vec<usize>,
        min_start: usize,
        (automaton, compiled): (&Automaton, &Compiled),
        budget: &mut usize,
    ) -> Result<Option<RegexMatch>, BudgetExhausted> {
        let text = self.text_for(compiled);
        while let Some(start) = starts.pop() {
            if start < min_start {
                continue;
            }
            let mut stop = start.saturating_add(PIECE_BYTES).min(self.scan.text.len());
            let found = loop {
                if *budget == 0 {
                    return Err(BudgetExhausted);
                }
                let found = compiled.find(automaton, text, start..stop, true);
                *budget = budget.saturating_sub(
                    found
                        .as_ref()
                        .map_or(0, |found| found.span.len())
                        .saturating_add(SEARCH_BYTES),
                );
                match found {
                    // The match may be longer: search again with a later end.
                    Some(found) if found.span.end == stop && stop < self.scan.text.len() => {
                        stop = stop
                            .saturating_add(found.span.len())
                            .min(self.scan.text.len());
                    }
                    found => break found,
                }
            };
            if let Some(found) = found.filter(|found| self.fits(found) && self.is_near(found)) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn next_in_windows(
        &self,
        windows: &mut Vec<Range<usize>>,
        min_start: usize,
        (automaton, compiled): (&Automaton, &Compiled),
        budget: &mut usize,
    ) -> Result<Option<RegexMatch>, BudgetExhausted> {
        let text = self.text_for(compiled);
        while let Some(Range { start, end }) = windows.pop() {
            let mut at = start.max(min_start);
            // Searched in pieces, so that no search examines much more than the match it finds.
            let mut stop = end.min(at.saturating_add(PIECE_BYTES));
            while at < stop {
                if *budget == 0 {
                    return Err(BudgetExhausted);
                }
                let found = compiled.find(automaton, text, at..stop, false);
                let examined = found.as_ref().map_or(stop, |found| found.span.end) - at;
                *budget = budget.saturating_sub(examined.saturating_add(SEARCH_BYTES));
                at = match found {
                    None if stop == end => break,
                    None => stop
                        .saturating_sub(self.rule.reach)
                        .max(at.saturating_add(1)),
                    // The match may be longer: search again with a later end.
                    Some(found) if found.span.end == stop && stop < self.scan.text.len() => {
                        stop = stop
                            .saturating_add(found.span.len().max(PIECE_BYTES))
                            .min(self.scan.text.len());
                        at = found.span.start;
                        continue;
                    }
                    Some(found) if !self.fits(&found) => found.span.start.saturating_add(1),
                    Some(found) if !self.is_near(&found) => {
                        found.span.end.max(at.saturating_add(1))
                    }
                    Some(found) => {
                        // A match of another unit may come first and end within this one, which
                        // must then be searched for again.
                        windows.push(found.span.start.saturating_add(1)..end);
                        return Ok(Some(found));
                    }
                };
                stop = end.min(at.saturating_add(PIECE_BYTES));
            }
        }
        Ok(None)
    }
}
