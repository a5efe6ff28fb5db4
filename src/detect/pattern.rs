//! Rules of the kind `pattern`: regular expressions that run only near their keywords.

use bytestring::ByteString;

use super::phrases::Phrases;
use super::search::KEYWORD_BYTES;
pub use super::search::{REGEX_BYTES, Regex, Spec};
use super::{Detector, Kind};
use crate::document::{Located, Table};

/// The kind `pattern`.
#[derive(Debug)]
pub struct Pattern;

impl Kind for Pattern {
    type Spec = Spec;

    fn read(table: &Table<'_>) -> Option<Spec> {
        let mut valid = true;
        let hint = "words, one of which occurs in every match: the regexes run only near them";
        let keywords = table.texts("keywords");
        if keywords.is_empty() {
            table.missing("keywords", hint);
            valid = false;
        }
        valid &= check_keyword_lengths(table, &keywords);
        let any = table.texts("any");
        if any.is_empty() {
            table.missing(
                "any",
                "a list of regular expressions, best written in '''…'''",
            );
            valid = false;
        }
        table.finish();
        let spec = Spec::new(
            keywords.iter().map(|keyword| keyword.value.clone()),
            any.iter().map(|source| source.value.clone()),
        );
        for (at, message) in spec.as_ref().err().into_iter().flatten() {
            let place = any
                .get(*at)
                .map_or_else(|| table.place(), |source| source.place.clone());
            table.fault_at(&place, message.as_str(), None);
        }
        spec.ok().filter(|_| valid)
    }

    fn build(rules: &[(usize, &Spec)]) -> Result<Box<dyn Detector>, Vec<(usize, String)>> {
        let patterns = rules
            .iter()
            .map(|(rule, spec)| (*rule, *spec, &[][..]))
            .collect();
        Ok(Box::new(Phrases::new(patterns, &[])))
    }
}

/// Reads the clauses in `any`, or the table itself as the only clause; `hint` shows how to write
/// `any`.
pub(super) fn read_clauses<C>(
    table: &Table<'_>,
    hint: &str,
    read: impl Fn(&Table<'_>) -> C,
) -> Vec<C> {
    let mut clauses = Vec::new();
    if table.has("any") {
        for clause in table.tables("any") {
            clauses.push(read(&clause));
            clause.finish();
        }
        if clauses.is_empty() {
            table.fault_at_key("any", "`any` has no clause", Some(hint));
        }
    } else {
        clauses.push(read(table));
    }
    table.finish();
    clauses
}

/// Reads regexes for text that is already normalized: their case matters.
pub(super) fn read_exact_regexes(table: &Table<'_>, key: &str) -> Vec<Regex> {
    let parse = |text: Located<String>| match Regex::exact(&text.value) {
        Ok(regex) => Some(regex),
        Err(error) => {
            let hint = "look-around and back-references are not supported";
            table.fault_at(&text.place, error, Some(hint));
            None
        }
    };
    table.strings(key).into_iter().filter_map(parse).collect()
}

/// Reports whether all keywords are long enough, and adds a fault for each that is not.
pub(super) fn check_keyword_lengths(table: &Table<'_>, keywords: &[Located<ByteString>]) -> bool {
    let short_keywords = keywords
        .iter()
        .filter(|keyword| keyword.value.len() < KEYWORD_BYTES);
    let faults = short_keywords.map(|keyword| {
        let message = format!("the keyword `{}` is too short", keyword.value);
        table.fault_at(
            &keyword.place,
            message,
            Some("two characters at the least; rare words are best"),
        );
    });
    faults.count() == 0
}

#[cfg(test)]
mod tests;
