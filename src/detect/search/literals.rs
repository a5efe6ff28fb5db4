//! Literals that every match of a regex contains, chosen to be rare in ordinary text.
//!
//! A regex is split at its outermost alternation into branches. For each branch, the extractor
//! proposes sets of literals, one of which every match contains: the strings that can follow from
//! each part of the branch, as far as they are finite. The set with the lowest cost in ordinary
//! text becomes the needles of the branch: [`super::grams`] estimates how often they occur.
//! Literals may extend from one part into the next, so that `(?:hi|hey)\s+(?:AI|bot)` is searched
//! for as `hi ai`, `hi bot` and so on rather than `hi`.

use regex_syntax::hir::literal::{ExtractKind, Extractor};
use regex_syntax::hir::{Class, Hir, HirKind, Look, Repetition};

use super::folded::fold_word;
use super::keywords::Keywords;
use super::word_list::{Vocabulary, WordList};
use super::{grams, lower_case, parse};
use crate::detect::prepared::{Reader, Writer};

/// Maximum number of literals in one set: the search costs nearly the same for any number of them.
const LITERALS: usize = 400;
/// Maximum number of bytes in a class that is expanded into literals.
const CLASS: usize = 32;
/// Maximum lengths of literals, tried in this order: the shorter the literals, the more parts fit
/// in one set.
const LENGTHS: [usize; 4] = [16, 8, 6, 4];
/// Length at which literals are long enough, so that shorter limits need not be tried.
const LONG_BYTES: usize = 6;
/// Minimum length of a literal.
const SHORT_BYTES: usize = 3;
/// Maximum number of parts of a branch that a literal can extend over.
const PARTS: usize = 10;
/// Cost of one search, in bytes that a regex examines. If matches begin with the needle, the search
/// costs hardly more than this.
const SEARCH_COST: usize = 128;
/// Maximum distance of a match from a needle that is counted in the cost.
const REACH_COST: usize = 320;
/// Maximum length of a companion, in bytes.
pub(super) const COMPANION_BYTES: usize = 16;
/// Maximum number of companions: the search for them compares all of them at once.
pub(super) const COMPANIONS: usize = 64;
/// Maximum lengths of companions, tried in this order until there are few enough.
const COMPANION_LENGTHS: [usize; 4] = [8, 6, 5, 4];
/// Maximum share of the places of needles in ordinary text that have a companion nearby, estimated
/// by the frequency of each companion. With more, the search for them is rarely worth its cost.
const ACCOMPANIED: f64 = 0.7;

/// One of the alternatives of a regex.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Branch {
    /// Literals, one of which every match contains. Empty if no set is worth a search.
    pub(super) needles: Needles,
    /// Words, one of which every match contains before its needle, cut to a few bytes. Empty if
    /// ordinary text contains them nearly everywhere.
    pub(super) before: WordList,
    /// The same after the needle.
    pub(super) after: WordList,
    /// Maximum length of a match in bytes, if it is bounded.
    pub(super) longest: Option<usize>,
    /// The same for the regex with pooled gaps, as it is searched for.
    pub(super) extent: Option<usize>,
    /// Cost of searching for the needles in ordinary text; infinite if there are none.
    pub(super) cost: f64,
}

/// Literals, one of which every match of a branch contains: in lower case, with each run of white
/// space as one blank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Needles {
    pub(super) words: WordList,
    /// Whether the match begins with the needle.
    pub(super) first: bool,
    /// Whether the needle begins a word, so that the byte before it is not a letter, digit or
    /// underscore.
    pub(super) begins_word: bool,
    /// Maximum number of bytes from the start of the match to the needle, with each run of white
    /// space as one byte; `None` if it is not bounded.
    pub(super) back: Option<usize>,
}

/// Returns the branches of a regex.
///
/// # Errors
/// Returns the reason why the regex is invalid.
pub(crate) fn branches_of(source: &str) -> Result<Vec<Branch>, String> {
    match lower_case::parse(source) {
        Some(hir) => Ok(split_branches(&parse::reject_empty(hir)?, true)),
        None => Ok(split_branches(&parse::parse_for_literals(source)?, false)),
    }
}

/// Writes the branches of a regex, and whether one of them is vague.
#[allow(dead_code, reason = "the build writes what the gateway reads")]
pub(crate) fn write_branches(
    branches: &[Branch],
    vocabularies: &[Vocabulary<'_>],
    out: &mut Writer,
) {
    out.flag(branches.iter().any(Branch::is_vague));
    out.number(branches.len());
    branches
        .iter()
        .for_each(|branch| branch.write(vocabularies, out));
}

/// Reads branches that [`write_branches`] has written.
pub(super) fn read_branches(mut record: Reader<'static>) -> Option<Vec<Branch>> {
    record.flag()?;
    (0..record.number()?)
        .map(|_| Branch::read(&mut record))
        .collect()
}

/// Reports whether one of the branches that [`write_branches`] has written is vague.
#[allow(dead_code, reason = "for the gateway")]
pub(super) fn is_vague(mut record: Reader<'static>) -> Option<bool> {
    record.flag()
}

/// Returns the branches of a regex that is in lower case, or was parsed as case-sensitive. Literals
/// are searched for in any case.
fn split_branches(hir: &Hir, in_lower_case: bool) -> Vec<Branch> {
    let mut pending = vec![hir];
    let mut result = Vec::new();
    while let Some(hir) = pending.pop() {
        match hir.kind() {
            HirKind::Capture(capture) => pending.push(&capture.sub),
            HirKind::Alternation(branches) => pending.extend(branches),
            _ => result.push(build_branch(hir, in_lower_case)),
        }
    }
    result
}

fn build_branch(hir: &Hir, in_lower_case: bool) -> Branch {
    let longest = hir.properties().maximum_len();
    // The regex is searched for with pooled gaps, so they may be longer than written.
    let hir = parse::pool_gaps(hir.clone());
    let extent = hir.properties().maximum_len();
    let hir = collapse_blanks(&hir);
    let parts = match hir.kind() {
        HirKind::Concat(parts) => parts.as_slice(),
        _ => std::slice::from_ref(&hir),
    };
    let mut needles = Needles::default();
    let mut lowest_cost = f64::INFINITY;
    let mut sets_by_part: Vec<(usize, Vec<Vec<u8>>)> = Vec::new();
    let mut needle_part = 0;
    let mut prefix = Prefix {
        length: Some(0),
        is_empty: true,
        word_boundary: false,
    };
    for (at, part) in parts.iter().enumerate() {
        if let HirKind::Look(look) = part.kind() {
            prefix.word_boundary = matches!(
                look,
                Look::WordAscii | Look::WordStartAscii | Look::WordStartHalfAscii
            );
            continue;
        }
        let sets = literal_sets(parts.get(at..).unwrap_or_default(), in_lower_case);
        sets_by_part.extend(sets.iter().map(|set| (at, set.words.clone())));
        let best = sets
            .into_iter()
            .map(|set| prefix.needles(set, part))
            .min_by(|a, b| cost(a, extent).total_cmp(&cost(b, extent)));
        if let Some(best) = best {
            let cost = cost(&best, extent);
            if cost < lowest_cost {
                (needles, lowest_cost) = (best, cost);
                needle_part = at;
            }
        }
        prefix.extend(part);
    }
    let companions = |on_side: &dyn Fn(usize) -> bool| {
        let sets = sets_by_part.iter().filter(|(at, _)| on_side(*at));
        companions(&needles.words, sets.map(|(_, words)| words.as_slice()))
    };
    Branch {
        before: companions(&|at| at < needle_part),
        after: companions(&|at| at > needle_part),
        needles,
        longest,
        extent,
        cost: lowest_cost,
    }
}

/// Chooses the rarest of the sets, one word of each of which every match contains.
fn companions<'s>(needles: &WordList, sets: impl Iterator<Item = &'s [Vec<u8>]>) -> WordList {
    let is_part_of_needle = |word: &[u8]| {
        needles
            .iter()
            .any(|needle| needle.windows(word.len()).any(|part| part == word))
    };
    let share = |words: &WordList| {
        grams::frequency(words) * f64::from(u32::try_from(REACH_COST).unwrap_or(u32::MAX))
    };
    sets.filter_map(few_beginnings)
        .filter(|words| !words.iter().any(is_part_of_needle))
        .map(|words| (share(&words), words))
        .filter(|(share, _)| *share <= ACCOMPANIED)
        .min_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, words)| words)
        .unwrap_or_default()
}

/// Cuts words so that few enough are left for companions; returns `None` if that is not possible.
fn few_beginnings(words: &[Vec<u8>]) -> Option<WordList> {
    COMPANION_LENGTHS
        .into_iter()
        .map(|length| beginnings(words, length))
        .find(|beginnings| beginnings.len() <= COMPANIONS)
        .map(|beginnings| beginnings.into_iter().collect())
}

/// Returns the beginnings of words, without those that begin with another one.
fn beginnings(words: &[Vec<u8>], length: usize) -> Vec<&[u8]> {
    let mut beginnings: Vec<&[u8]> = words
        .iter()
        .map(|word| word.get(..length).unwrap_or(word))
        .collect();
    beginnings.sort_unstable();
    beginnings.dedup_by(|longer, word| longer.starts_with(word));
    beginnings
}

impl Branch {
    /// Reports whether the branch has no needles, so that it can only be searched for near
    /// keywords.
    pub(super) fn is_vague(&self) -> bool {
        self.needles.words.is_empty()
    }

    #[allow(dead_code, reason = "the build writes what the gateway reads")]
    fn write(&self, vocabularies: &[Vocabulary<'_>], out: &mut Writer) {
        let Needles {
            words,
            first,
            begins_word,
            back,
        } = &self.needles;
        [self.longest, self.extent, *back]
            .into_iter()
            .for_each(|length| out.length(length));
        out.long(self.cost.to_bits());
        [*first, *begins_word]
            .into_iter()
            .for_each(|flag| out.flag(flag));
        words.write(vocabularies, out);
        self.before.write(&[], out);
        self.after.write(&[], out);
    }

    /// Reports whether the needles of the branch are searched for, rather than the keywords of its
    /// rule, which may be rarer or the only words.
    pub(super) fn has_own_words(&self, keywords: &Keywords) -> bool {
        self.cost < keywords.cost
    }

    /// Returns the words that are searched for in place of the branch.
    pub(crate) fn words<'w>(&'w self, keywords: &'w Keywords) -> &'w WordList {
        if self.has_own_words(keywords) {
            &self.needles.words
        } else {
            &keywords.words
        }
    }

    fn read(record: &mut Reader<'static>) -> Option<Self> {
        let longest = record.length()?;
        let extent = record.length()?;
        let back = record.length()?;
        let cost = f64::from_bits(record.long()?);
        let first = record.flag()?;
        let begins_word = record.flag()?;
        let words = WordList::read(record)?;
        let before = WordList::read(record)?;
        let after = WordList::read(record)?;
        Some(Self {
            before,
            after,
            needles: Needles {
                words,
                first,
                begins_word,
                back,
            },
            longest,
            extent,
            cost,
        })
    }
}

/// The parts of a branch before the current one.
struct Prefix {
    /// Maximum length of their matches in bytes, if it is bounded.
    length: Option<usize>,
    is_empty: bool,
    /// Whether a word must begin or end after them.
    word_boundary: bool,
}

impl Prefix {
    fn extend(&mut self, part: &Hir) {
        self.length = self
            .length
            .zip(part.properties().maximum_len())
            .map(|(before, part)| before.saturating_add(part));
        self.is_empty = false;
        self.word_boundary = false;
    }

    fn needles(&self, set: Set, part: &Hir) -> Needles {
        let Set { words, at_start } = set;
        // The start of white space in the folded text need not be the start of the match.
        let first = at_start && self.is_empty && !words.iter().any(|word| word.starts_with(b" "));
        let in_words = words.iter().all(|word| {
            word.first()
                .is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_')
        });
        let within = if at_start {
            Some(0)
        } else {
            part.properties().maximum_len()
        };
        let back = self
            .length
            .zip(within)
            .map(|(before, within)| before.saturating_add(within));
        Needles {
            words: words.into_iter().collect(),
            first,
            begins_word: at_start && self.word_boundary && in_words,
            back,
        }
    }
}

/// Literals, one of which every match of some parts contains.
struct Set {
    words: Vec<Vec<u8>>,
    /// Whether the literals are at the start of the parts, rather than anywhere in the first of
    /// them.
    at_start: bool,
}

/// Returns the literals that the parts can begin with, and those that the first part can end with.
/// Returns nothing if the first part can be empty.
fn literal_sets(parts: &[Hir], in_lower_case: bool) -> Vec<Set> {
    let Some((part, _)) = parts
        .split_first()
        .filter(|(part, _)| part.properties().minimum_len() != Some(0))
    else {
        return Vec::new();
    };
    let sequence = Hir::concat(parts.iter().take(PARTS).cloned().collect());
    let mut candidates = Vec::new();
    for length in LENGTHS {
        let words = extract_words(&sequence, ExtractKind::Prefix, length, in_lower_case);
        let Some(words) = words else {
            continue;
        };
        let long = words.iter().all(|word| word.len() >= LONG_BYTES);
        candidates.push(Set {
            words,
            at_start: true,
        });
        if long {
            break;
        }
    }
    let suffixes = LENGTHS
        .first()
        .and_then(|length| extract_words(part, ExtractKind::Suffix, *length, in_lower_case));
    candidates.extend(suffixes.map(|words| Set {
        words,
        at_start: false,
    }));
    candidates
}

fn extract_words(
    hir: &Hir,
    kind: ExtractKind,
    length: usize,
    in_lower_case: bool,
) -> Option<Vec<Vec<u8>>> {
    let seq = Extractor::new()
        .kind(kind)
        .limit_class(CLASS)
        .limit_total(LITERALS)
        .limit_literal_len(length)
        .extract(hir);
    let mut words: Vec<Vec<u8>> = seq
        .literals()?
        .iter()
        .filter_map(|literal| searchable_word(literal.as_bytes(), in_lower_case))
        .collect();
    let complete = seq.len() == Some(words.len());
    words.sort_unstable();
    // A word that begins with another word of the set is found by the shorter one.
    words.dedup_by(|longer, word| longer.starts_with(word));
    (complete && !words.is_empty() && words.len() <= LITERALS).then_some(words)
}

/// Returns a literal in the form in which it is searched for. Returns `None` if it is too short, or
/// if it contains non-ASCII letters and its regex is not in lower case: some of these letters have
/// other forms than the two cases.
fn searchable_word(literal: &[u8], in_lower_case: bool) -> Option<Vec<u8>> {
    // Only the last character can have been cut.
    let whole = match std::str::from_utf8(literal) {
        Ok(whole) => whole,
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(literal.get(..error.valid_up_to())?).ok()?
        }
        Err(_) => return None,
    };
    let has_case = |c: char| {
        !c.is_ascii()
            && (c.is_lowercase()
                || c.is_uppercase()
                || c.to_uppercase().ne([c])
                || c.to_lowercase().ne([c]))
    };
    if !in_lower_case && whole.chars().any(has_case) {
        return None;
    }
    Some(fold_word(whole)).filter(|word| word.len() >= SHORT_BYTES)
}

/// Returns the cost of searching for needles in ordinary text, in bytes examined per byte of text.
/// The whole window around a needle is examined; `extent` is the maximum length of a match.
fn cost(needles: &Needles, extent: Option<usize>) -> f64 {
    let reach = |length: Option<usize>| length.unwrap_or(REACH_COST).min(REACH_COST);
    let match_cost = if needles.first {
        SEARCH_COST
    } else {
        SEARCH_COST + reach(needles.back) + reach(extent)
    };
    cost_of_each(&needles.words, match_cost)
}

/// Returns the cost of keywords that may be anywhere near a match.
pub(super) fn cost_of_keywords(words: &WordList) -> f64 {
    cost_of_each(words, SEARCH_COST + 2 * REACH_COST)
}

fn cost_of_each(words: &WordList, bytes: usize) -> f64 {
    grams::frequency(words) * f64::from(u32::try_from(bytes).unwrap_or(u32::MAX))
}

/// Returns the regex with one blank in place of white space of any length.
fn collapse_blanks(hir: &Hir) -> Hir {
    let blank = || Hir::literal(*b" ");
    match hir.kind() {
        HirKind::Class(class) if is_blank(class) => blank(),
        HirKind::Repetition(repetition) => match repetition.sub.kind() {
            HirKind::Class(class) if is_blank(class) && repetition.min > 0 => blank(),
            HirKind::Class(class) if is_blank(class) => Hir::repetition(Repetition {
                min: 0,
                max: Some(1),
                greedy: true,
                sub: Box::new(blank()),
            }),
            _ => Hir::repetition(repetition.with(collapse_blanks(&repetition.sub))),
        },
        HirKind::Capture(capture) => collapse_blanks(&capture.sub),
        HirKind::Concat(parts) => Hir::concat(parts.iter().map(collapse_blanks).collect()),
        HirKind::Alternation(parts) => {
            Hir::alternation(parts.iter().map(collapse_blanks).collect())
        }
        _ => hir.clone(),
    }
}

/// Reports whether a class is the ASCII `\s`.
fn is_blank(class: &Class) -> bool {
    let ranges =
        |first: (u8, u8), second: (u8, u8)| first == (b'\t', b'\r') && second == (b' ', b' ');
    match class {
        Class::Bytes(class) => {
            matches!(class.ranges(), [a, b] if ranges((a.start(), a.end()), (b.start(), b.end())))
        }
        Class::Unicode(_) => false,
    }
}
