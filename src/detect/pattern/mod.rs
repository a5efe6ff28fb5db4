//! Rules of the kind `pattern`: regular expressions that run only near their keywords.

mod regex;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use regex_automata::{Input, meta};
use regex_syntax::hir::Hir;
use std::ops::Range;

pub use regex::{REGEX_BYTES, Regex};

use super::{Detector, Kind, Match, Place};
use crate::document::Table;
use crate::text::Text;

/// A regex looks at so many bytes on each side of a keyword, and no further.
pub const REACH: usize = 256;
/// Most spans told of one rule in one text; beyond, the text as a whole is meant.
const SPANS: usize = 64;
/// Shortest keyword, in bytes.
const KEYWORD_BYTES: usize = 2;

/// The kind `pattern`.
#[derive(Debug)]
pub struct Pattern;

/// What a rule of this kind looks for.
#[derive(Debug)]
pub struct Spec {
    /// One of these stands in every match, in any case.
    pub keywords: Vec<String>,
    /// The regexes: any of them is enough.
    pub any: Vec<String>,
}

impl Kind for Pattern {
    type Spec = Spec;

    fn read(table: &Table<'_>) -> Option<Spec> {
        let mut good = true;
        let hint = "words of which one stands in every match: the regexes run only near them";
        let keywords = table.strings("keywords");
        if keywords.is_empty() {
            table.missing("keywords", hint);
            good = false;
        }
        for keyword in &keywords {
            if keyword.value.len() < KEYWORD_BYTES {
                table.fault_at(
                    &keyword.place,
                    format!("the keyword `{}` is too short", keyword.value),
                    Some("two characters at the least; rare words are best"),
                );
                good = false;
            }
        }
        let any = table.strings("any");
        if any.is_empty() {
            table.missing("any", "a list of regular expressions, best written in '''…'''");
            good = false;
        }
        for source in &any {
            if let Err(message) = regex::parse(&source.value) {
                table.fault_at(&source.place, message, None);
                good = false;
            }
        }
        table.finish();
        let values = |list: Vec<crate::document::Located<String>>| list.into_iter().map(|item| item.value).collect();
        good.then(|| Spec { keywords: values(keywords), any: values(any) })
    }

    fn build(rules: &[(usize, &Spec)]) -> Result<Box<dyn Detector>, Vec<(usize, String)>> {
        let (mut made, mut faults) = (Vec::new(), Vec::new());
        let mut keywords: Vec<(String, usize)> = Vec::new();
        for (rule, spec) in rules {
            let hirs: Result<Vec<Hir>, String> = spec.any.iter().map(|source| regex::parse(source)).collect();
            match hirs.and_then(|hirs| regex::compile(&Hir::alternation(hirs))) {
                Ok(regex) => {
                    keywords.extend(spec.keywords.iter().map(|keyword| (keyword.to_lowercase(), made.len())));
                    made.push(Compiled { rule: *rule, regex });
                }
                Err(message) => faults.push((*rule, message)),
            }
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        let prefilter = AhoCorasick::builder()
            .kind(Some(AhoCorasickKind::DFA))
            .match_kind(MatchKind::Standard)
            .ascii_case_insensitive(true)
            .build(keywords.iter().map(|(word, _)| word));
        let prefilter = prefilter.map_err(|error| vec![(rules.first().map_or(0, |(rule, _)| *rule), error.to_string())])?;
        let owners = keywords.into_iter().map(|(_, owner)| owner).collect();
        Ok(Box::new(Patterns { prefilter, owners, rules: made }))
    }
}

#[derive(Debug)]
struct Compiled {
    rule: usize,
    regex: meta::Regex,
}

/// All pattern rules of a set.
#[derive(Debug)]
struct Patterns {
    prefilter: AhoCorasick,
    /// Keyword to rule.
    owners: Vec<usize>,
    rules: Vec<Compiled>,
}

impl Detector for Patterns {
    fn scan(&self, text: &Text<'_>, _place: &Place<'_>, found: &mut Vec<Match>) {
        self.search(text.plain(), "plain", |span| text.locate(span), found);
        if text.plain() != text.raw() {
            self.search(text.raw(), "raw", |span| span, found);
        }
    }
}

impl Patterns {
    fn search(&self, text: &str, reading: &'static str, locate: impl Fn(Range<usize>) -> Range<usize>, found: &mut Vec<Match>) {
        let mut windows: Vec<Vec<Range<usize>>> = Vec::new();
        for hit in self.prefilter.find_overlapping_iter(text) {
            windows.resize(self.rules.len(), Vec::new());
            let window = hit.start().saturating_sub(REACH)..hit.end().saturating_add(REACH).min(text.len());
            let Some(list) = self.owners.get(hit.pattern().as_usize()).and_then(|owner| windows.get_mut(*owner)) else {
                continue;
            };
            match list.last_mut() {
                Some(last) if last.end >= window.start => last.end = last.end.max(window.end),
                _ => list.push(window),
            }
        }
        for (rule, windows) in self.rules.iter().zip(&windows) {
            let matches = windows.iter().flat_map(|window| rule.regex.find_iter(Input::new(text).range(window.clone())));
            for (count, hit) in matches.enumerate() {
                let span = (count < SPANS).then(|| locate(whole_characters(text, hit.range())));
                found.push(Match { rule: rule.rule, span, reading });
                if count >= SPANS {
                    break;
                }
            }
        }
    }
}

/// The smallest range of whole characters that holds `range`.
fn whole_characters(text: &str, range: Range<usize>) -> Range<usize> {
    let start = (0..=range.start).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let end = (range.end..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    start..end
}
