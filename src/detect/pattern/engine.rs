//! All pattern rules of a set, searched at once.
//!
//! Three sieves, each run only where the one before found something: of each rule the words that are rarest in ordinary
//! text, be they its keywords or literals of its regexes (all rules at once, over the whole text); the literals that a
//! rule's regexes cannot match without (one automaton, near those words); the rule's own regexes (near those literals). The last is paid from a budget that grows with the text; a rule that still has somewhere
//! to look when it is spent counts as matching the whole text, since what could not be read is not passed on.

use std::collections::HashSet;
use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, MatchKind};

use super::search::{Looks, Near, Searched, Windows, widen};
use super::sieve::{Hit, Sieve};
use super::{Detector, Match, Place, Spec, literals};
use crate::detect::work;
use crate::message::Direction;
use crate::text::Text;

/// How far a regex looks on each side of a keyword, in bytes, if its longest match is not shorter. A match that runs on to
/// the end of that window is followed further.
pub const REACH_BYTES: usize = 512;
/// Bytes that regexes may look at for any text, whatever its size.
const BUDGET_BYTES: usize = 16 << 10;

/// Needles that matches begin with are looked at one by one where there is at the most one for so many bytes.
const APART_BYTES: usize = 128;

/// How much a search may cost and tell.
#[derive(Clone, Copy, Debug)]
pub(in crate::detect) struct Bounds {
    /// Most spans told of one rule in one text; beyond, the text as a whole is meant.
    pub(in crate::detect) spans: usize,
    /// Bytes that regexes may look at for each byte of a text.
    pub(in crate::detect) budget_per_byte: usize,
    /// How far a regex looks on each side of a keyword, in bytes.
    pub(in crate::detect) reach_bytes: usize,
}

/// All pattern rules of a set.
#[derive(Debug)]
pub(in crate::detect) struct Patterns {
    bounds: Bounds,
    rules: Vec<Searched>,
    needles: Sieve,
    /// The branches that wait for each needle.
    waiting: Vec<Vec<usize>>,
    branches: Vec<Branch>,
    literals: AhoCorasick,
    /// Literal to branch, and which of its groups the literal belongs to.
    literal_groups: Vec<Vec<(usize, usize)>>,
}

#[derive(Debug)]
struct Branch {
    /// Its place in `rules`.
    owner: usize,
    /// Groups that have to stand near a needle.
    groups: usize,
    reach: usize,
    /// Its matches begin with its needles.
    first: bool,
}

impl Patterns {
    /// Prepares the rules. Their regexes are compiled when they are first needed.
    pub(in crate::detect) fn new(rules: &[(usize, &Spec)], bounds: Bounds) -> Result<Self, Vec<(usize, String)>> {
        let (mut searched, mut branches) = (Vec::new(), Vec::new());
        let (mut needles, mut literals) = (Words::default(), Words::default());
        for (rule, spec) in rules {
            let owner = searched.len();
            let mut about = Searched { rule: *rule, regex: spec.lazy.clone(), reach: 0, most: Some(0), near: None };
            let keywords = keywords(spec);
            let often = if keywords.is_empty() { f64::INFINITY } else { literals::frequency(&keywords) };
            for branch in &spec.branches {
                let reach = branch.longest.map_or(bounds.reach_bytes, |bytes| bytes.min(bounds.reach_bytes));
                about.reach = about.reach.max(reach);
                about.most = about.most.zip(branch.longest).map(|(most, longest)| most.max(longest));
                // What is rarest is looked for first: the keywords, or what the regex cannot match without.
                let own = &branch.needles.words;
                let within = !own.is_empty() && literals::frequency(own) < often;
                let words = if within { own } else { &keywords };
                words.iter().for_each(|word| needles.add(word.clone(), branches.len()));
                let groups = if branch.groups.len() == 1 && within { &[] } else { branch.groups.as_slice() };
                for (index, group) in groups.iter().enumerate() {
                    group.iter().for_each(|literal| literals.add(literal.clone(), (branches.len(), index)));
                }
                let first = within && branch.needles.first;
                branches.push(Branch { owner, groups: groups.len(), reach, first });
                if within && !keywords.is_empty() && about.near.is_none() {
                    about.near = Some(Near::new(keywords.clone()));
                }
            }
            searched.push(about);
        }
        let fault = |error: String| vec![(rules.first().map_or(0, |(rule, _)| *rule), error)];
        let (needles, waiting) = needles.apart();
        let (literals, literal_groups) = literals.build().map_err(fault)?;
        Ok(Self { bounds, rules: searched, needles: Sieve::new(&needles), waiting, branches, literals, literal_groups })
    }

    /// Tells every match, and `None` where a rule could not be followed to the end.
    pub(in crate::detect) fn search(&self, text: &str, mut tell: impl FnMut(usize, Option<Range<usize>>)) {
        if u32::try_from(text.len()).is_err() {
            return self.rules.iter().for_each(|rule| tell(rule.rule, None));
        }
        let hits = self.needles.find(text.as_bytes());
        if hits.is_empty() {
            return;
        }
        let worth = self.worth_a_look(text, &hits);
        let mut budget = text.len().saturating_mul(self.bounds.budget_per_byte).saturating_add(BUDGET_BYTES);
        for (rule, Looks { starts, mut windows }) in self.rules.iter().zip(worth) {
            rule.look_at(text, starts, &mut windows, &mut budget, |span| tell(rule.rule, Some(span)));
            rule.look(text, windows, self.bounds.spans, &mut budget, |span| tell(rule.rule, span));
        }
    }

    /// For each rule, where one of its regexes could match for all that needles and literals say.
    fn worth_a_look(&self, text: &str, hits: &[Hit]) -> Vec<Looks> {
        let mut worth = vec![Looks::default(); self.rules.len()];
        let mut counts = vec![0_usize; self.branches.len()];
        for index in hits.iter().flat_map(|hit| self.waiting.get(hit.word())).flatten() {
            counts.get_mut(*index).into_iter().for_each(|count| *count += 1);
        }
        let mut regions = Windows::default();
        for hit in hits {
            for index in self.waiting.get(hit.word()).into_iter().flatten() {
                let (Some(branch), Some(count)) = (self.branches.get(*index), counts.get(*index)) else { continue };
                let Some(worth) = worth.get_mut(branch.owner) else { continue };
                if branch.first && count.saturating_mul(APART_BYTES) <= text.len().max(APART_BYTES) {
                    worth.starts.push(hit.start());
                } else if branch.groups == 0 {
                    worth.windows.add(branch.around(hit, text.len()));
                } else {
                    regions.add(branch.around(hit, text.len()));
                }
            }
        }
        let regions = regions.merged();
        if !regions.is_empty() {
            let armed: Vec<bool> = counts.iter().map(|count| *count > 0).collect();
            self.narrow(text, hits, &armed, regions, &mut worth);
        }
        worth
    }

    /// Of branches that wait for more than a needle: where their literals stand in order, near a needle.
    fn narrow(&self, text: &str, hits: &[Hit], armed: &[bool], regions: Vec<Range<usize>>, worth: &mut [Looks]) {
        // For each branch and group, where the latest run of literals that has come so far begins.
        let mut runs: Vec<[usize; literals::GROUPS]> = vec![[NONE; literals::GROUPS]; self.branches.len()];
        let mut latest = Latest { hits: hits.iter(), ends: vec![None; self.branches.len()] };
        for region in regions {
            for hit in self.literals.find_overlapping_iter(Input::new(text).range(region)) {
                for (index, group) in self.literal_groups.get(hit.pattern().as_usize()).into_iter().flatten() {
                    let (Some(branch), Some(runs)) = (self.branches.get(*index), runs.get_mut(*index)) else { continue };
                    if !armed.get(*index).is_some_and(|armed| *armed) {
                        continue;
                    }
                    let start = match group.checked_sub(1) {
                        None => hit.start(),
                        Some(before) => runs.get(before).copied().unwrap_or(NONE),
                    };
                    if start == NONE || hit.start().saturating_sub(start) > branch.reach {
                        continue;
                    }
                    if let Some(run) = runs.get_mut(*group) {
                        *run = start;
                    }
                    if group + 1 == branch.groups {
                        let window = widen(hit.range(), branch.reach, text.len());
                        if latest.until(window.end, &self.waiting).get(*index).is_some_and(|end| *end > Some(window.start)) {
                            worth.get_mut(branch.owner).into_iter().for_each(|worth| worth.windows.add(window.clone()));
                        }
                    }
                }
            }
        }
    }
}

impl Branch {
    /// Where a match can lie that a needle belongs to.
    fn around(&self, hit: &Hit, end: usize) -> Range<usize> {
        let range = widen(hit.start()..hit.end(), self.reach, end);
        if self.first { hit.start()..range.end } else { range }
    }
}

/// For each branch, where the latest of its needles ends, as far as the text has been followed.
struct Latest<'h> {
    hits: std::slice::Iter<'h, Hit>,
    ends: Vec<Option<usize>>,
}

impl Latest<'_> {
    fn until(&mut self, end: usize, waiting: &[Vec<usize>]) -> &[Option<usize>] {
        while let Some(hit) = self.hits.as_slice().first().filter(|hit| hit.end() <= end) {
            for branch in waiting.get(hit.word()).into_iter().flatten() {
                self.ends.get_mut(*branch).into_iter().for_each(|latest| *latest = Some(hit.end()));
            }
            self.hits.next();
        }
        &self.ends
    }
}

const NONE: usize = usize::MAX;

/// The keywords of a rule, in lower case.
fn keywords(spec: &Spec) -> Vec<Vec<u8>> {
    // ASCII alone is folded in the search.
    let forms = |keyword: &String| [keyword.to_lowercase(), keyword.to_uppercase(), capitalised(keyword), keyword.clone()];
    let mut words: Vec<Vec<u8>> =
        spec.keywords.iter().flat_map(forms).map(|form| form.to_ascii_lowercase().into_bytes()).collect();
    words.sort();
    words.dedup();
    words
}

impl Detector for Patterns {
    fn scan(&self, text: &Text<'_>, place: &Place<'_>, found: &mut Vec<Match>) {
        let (plain, raw) = (text.plain(), text.raw());
        // Without a place, it was too much to look at.
        let reading = |span: &Option<Range<usize>>, usual| if span.is_some() { usual } else { work::PATTERN };
        self.search(plain, |rule, span| {
            let reading = reading(&span, "plain");
            found.push(Match { rule, span: span.map(|span| text.locate(span)), reading });
        });
        if place.direction == Direction::Inbound {
            for other in text.readings() {
                let mut told = HashSet::new();
                self.search(&other.text, |rule, part| {
                    let whole = 0..other.text.len();
                    let span = text.locate_in(other, part.as_ref().unwrap_or(&whole));
                    if span.is_some() && told.insert((rule, span.clone())) {
                        found.push(Match { rule, span, reading: other.path });
                    }
                });
            }
        }
        if std::ptr::eq(plain, raw) {
            return;
        }
        let mut known: HashSet<(usize, Option<Range<usize>>)> = found.iter().map(|hit| (hit.rule, hit.span.clone())).collect();
        self.search(raw, |rule, span| {
            if known.insert((rule, span.clone())) {
                let reading = reading(&span, "raw");
                found.push(Match { rule, span, reading });
            }
        });
        if let Some(bare) = text.bare() {
            self.search(bare, |rule, span| {
                if known.insert((rule, None)) {
                    found.push(Match { rule, span: None, reading: reading(&span, "bare") });
                }
            });
        }
    }
}

/// Words to look for, each once, and what each stands for.
struct Words<T>(std::collections::BTreeMap<Vec<u8>, Vec<T>>);

impl<T> Default for Words<T> {
    fn default() -> Self {
        Self(std::collections::BTreeMap::new())
    }
}

impl<T: PartialEq> Words<T> {
    fn add(&mut self, word: Vec<u8>, meaning: T) {
        let meanings = self.0.entry(word).or_default();
        if !meanings.contains(&meaning) {
            meanings.push(meaning);
        }
    }

    fn apart(self) -> (Vec<Vec<u8>>, Vec<Vec<T>>) {
        self.0.into_iter().unzip()
    }

    fn build(self) -> Result<(AhoCorasick, Vec<Vec<T>>), String> {
        let (words, meanings) = self.apart();
        let built = AhoCorasick::builder()
            .kind(Some(AhoCorasickKind::DFA))
            .match_kind(MatchKind::Standard)
            .ascii_case_insensitive(true)
            .build(words);
        Ok((built.map_err(|error| error.to_string())?, meanings))
    }
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters.flat_map(char::to_lowercase)).collect())
}
