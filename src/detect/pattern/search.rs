//! Runs the regexes of one rule where they could match.

use std::ops::Range;
use std::sync::OnceLock;

use aho_corasick::AhoCorasick;
use regex_automata::{Anchored, Input};

use super::lazy::Lazy;

/// So much of a window is searched at once.
const PIECE_BYTES: usize = 4 << 10;
/// What starting one search costs, in bytes looked at.
const SEARCH_BYTES: usize = 128;

/// A rule as it is searched for.
#[derive(Debug)]
pub(super) struct Searched {
    /// Its index in the set.
    pub(super) rule: usize,
    pub(super) regex: Lazy,
    pub(super) reach: usize,
    /// Longest match in bytes, if it has an end.
    pub(super) most: Option<usize>,
    /// Of which words one must stand near a match, where that is not what was looked for first.
    pub(super) near: Option<Near>,
}

/// Keywords of one rule, prepared when one of its regexes first matches.
#[derive(Debug)]
pub(super) struct Near {
    words: Vec<Vec<u8>>,
    built: OnceLock<Option<AhoCorasick>>,
}

impl Near {
    pub(super) fn new(words: Vec<Vec<u8>>) -> Self {
        Self { words, built: OnceLock::new() }
    }

    fn stands_in(&self, part: &[u8]) -> bool {
        let build = || AhoCorasick::builder().ascii_case_insensitive(true).build(&self.words).ok();
        // Words that cannot be looked for stand there, as far as anybody knows.
        self.built.get_or_init(build).as_ref().is_none_or(|near| near.is_match(part))
    }
}

impl Searched {
    /// Whether one of the rule's keywords stands near a match, where that is still to be seen.
    fn is_near(&self, text: &str, found: Range<usize>) -> bool {
        let around = || text.as_bytes().get(widen(found, self.reach, text.len())).unwrap_or_default();
        self.near.as_ref().is_none_or(|near| near.stands_in(around()))
    }

    /// Runs the rule's regexes at single places. What is left when the budget is spent is added to the windows.
    pub(super) fn look_at(
        &self,
        text: &str,
        mut starts: Vec<usize>,
        windows: &mut Windows,
        budget: &mut usize,
        mut tell: impl FnMut(Range<usize>),
    ) {
        starts.sort_unstable();
        starts.dedup();
        let mut done = 0;
        for start in starts {
            if start < done {
                continue;
            }
            let mut stop = start.saturating_add(PIECE_BYTES).min(text.len());
            loop {
                let Some(regex) = self.regex.get().filter(|_| *budget > 0) else {
                    windows.add(start..stop);
                    break;
                };
                let hit = regex.search(&Input::new(text).range(start..stop).anchored(Anchored::Yes));
                *budget = budget.saturating_sub(hit.map_or(0, |hit| hit.len()).saturating_add(SEARCH_BYTES));
                match hit {
                    // It may run on: look again, further.
                    Some(hit) if hit.end() == stop && stop < text.len() => {
                        stop = stop.saturating_add(hit.len()).min(text.len());
                        continue;
                    }
                    Some(hit) if self.most.is_some_and(|most| hit.len() > most) => {}
                    Some(hit) if self.is_near(text, hit.range()) => {
                        done = hit.end();
                        tell(whole_characters(text, hit.range()));
                    }
                    _ => {}
                }
                break;
            }
        }
    }

    /// Runs the rule's regexes in its windows.
    pub(super) fn look(
        &self,
        text: &str,
        windows: Windows,
        most: usize,
        budget: &mut usize,
        mut tell: impl FnMut(Option<Range<usize>>),
    ) {
        let mut spans = 0;
        for Range { start: mut at, end } in windows.merged() {
            // Searched in pieces, so that no search looks much further than the match it finds.
            let mut stop = end.min(at.saturating_add(PIECE_BYTES));
            while at < stop {
                let Some(regex) = self.regex.get().filter(|_| *budget > 0 && spans < most) else { return tell(None) };
                let hit = regex.search(&Input::new(text).range(at..stop));
                let looked = hit.map_or(stop, |hit| hit.end()) - at;
                *budget = budget.saturating_sub(looked.saturating_add(SEARCH_BYTES));
                at = match hit {
                    None if stop == end => break,
                    None => stop.saturating_sub(self.reach).max(at.saturating_add(1)),
                    // It may run on: look again, further.
                    Some(hit) if hit.end() == stop && stop < text.len() => {
                        stop = stop.saturating_add(hit.len().max(PIECE_BYTES)).min(text.len());
                        at = hit.start();
                        continue;
                    }
                    Some(hit) if self.most.is_some_and(|most| hit.len() > most) => hit.start().saturating_add(1),
                    Some(hit) if !self.is_near(text, hit.range()) => hit.end().max(at.saturating_add(1)),
                    Some(hit) => {
                        spans += 1;
                        tell(Some(whole_characters(text, hit.range())));
                        hit.end().max(at.saturating_add(1))
                    }
                };
                stop = end.min(at.saturating_add(PIECE_BYTES));
            }
        }
    }
}

/// Where to run the regexes of a rule.
#[derive(Clone, Debug, Default)]
pub(super) struct Looks {
    /// Places where a match can begin.
    pub(super) starts: Vec<usize>,
    /// Ranges that can hold one.
    pub(super) windows: Windows,
}

/// Ranges of a text.
#[derive(Clone, Debug, Default)]
pub(super) struct Windows(Vec<Range<usize>>);

impl Windows {
    /// Adds a range; keeps the list short as long as they come more or less in order.
    pub(super) fn add(&mut self, mut window: Range<usize>) {
        while let Some(last) = self.0.pop_if(|last| last.end >= window.start) {
            window = window.start.min(last.start)..window.end.max(last.end);
        }
        self.0.push(window);
    }

    /// In order, and none that touches another.
    pub(super) fn merged(mut self) -> Vec<Range<usize>> {
        self.0.sort_unstable_by_key(|window| window.start);
        let mut merged = Self::default();
        self.0.into_iter().for_each(|window| merged.add(window));
        merged.0
    }
}

pub(super) fn widen(range: Range<usize>, by: usize, end: usize) -> Range<usize> {
    range.start.saturating_sub(by)..range.end.saturating_add(by).min(end)
}

/// The smallest range of whole characters that holds `range`.
fn whole_characters(text: &str, range: Range<usize>) -> Range<usize> {
    let start = (0..=range.start).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let end = (range.end..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    start..end
}
