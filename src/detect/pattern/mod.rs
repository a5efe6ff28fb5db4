//! Rules of the kind `pattern`: regular expressions that run only near their keywords.

mod engine;
mod lazy;
mod literals;
mod regex;

pub use engine::REACH_BYTES;
pub use regex::{REGEX_BYTES, Regex};

use super::{Detector, Kind, Match, Place};
use crate::document::Table;
use lazy::Lazy;

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
    lazy: Lazy,
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
        let (keywords, any): (_, Vec<String>) = (values(keywords), values(any));
        good.then(|| Spec { keywords, lazy: Lazy::new(any.clone()), any })
    }

    fn build(rules: &[(usize, &Spec)]) -> Result<Box<dyn Detector>, Vec<(usize, String)>> {
        Ok(Box::new(engine::Patterns::new(rules)?))
    }
}

#[cfg(test)]
mod tests;
