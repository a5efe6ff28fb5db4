//! The search terms of a rule of the kinds `pattern` and `signal`: regexes, and keywords near them.

use std::fmt;

use bytestring::ByteString;

use super::automaton::Compiled;
use super::keywords::Keywords;
use super::literals::{self, Branch};
use super::word_list::WordList;
use crate::detect::prepared::{self, Reader, Use};

/// Regexes, and keywords, one of which is near every match.
pub struct Spec {
    /// Keywords, one of which is near every match, in any case. May be empty.
    pub keywords: Vec<ByteString>,
    /// The regexes. A match of any of them is enough.
    pub any: Vec<ByteString>,
    /// The data that the build prepared for each regex.
    prepared: Vec<Option<Reader<'static>>>,
    /// Indices of regexes that can only be searched for near keywords.
    vague: Vec<usize>,
}

impl Spec {
    /// Parses the regexes.
    ///
    /// # Errors
    /// Returns the reasons why regexes are invalid, with their indices.
    pub(in crate::detect) fn new(
        keywords: impl IntoIterator<Item = impl Into<ByteString>>,
        any: impl IntoIterator<Item = impl Into<ByteString>>,
    ) -> Result<Self, Vec<(usize, String)>> {
        let any: Vec<ByteString> = any.into_iter().map(Into::into).collect();
        let prepared: Vec<_> = any
            .iter()
            .map(|source| prepared::record(Use::Search, source))
            .collect();
        let mut vague = Vec::new();
        let mut faults = Vec::new();
        for (at, (source, prepared)) in any.iter().zip(&prepared).enumerate() {
            match is_vague(source, *prepared) {
                Ok(true) => vague.push(at),
                Ok(false) => {}
                Err(message) => faults.push((at, message)),
            }
        }
        let keywords = keywords.into_iter().map(Into::into).collect();
        if faults.is_empty() {
            Ok(Self {
                keywords,
                any,
                prepared,
                vague,
            })
        } else {
            Err(faults)
        }
    }

    /// Returns the branches of the regexes, each with the index of its regex. They are not cached,
    /// because only a new engine needs them.
    pub(super) fn branches(&self) -> Vec<(usize, Branch)> {
        let regex_branches =
            |(at, (source, prepared)): (usize, (&ByteString, &Option<Reader<'static>>))| {
                branches_of(source, *prepared)
                    .unwrap_or_default()
                    .into_iter()
                    .map(move |branch| (at, branch))
            };
        self.any
            .iter()
            .zip(&self.prepared)
            .enumerate()
            .flat_map(regex_branches)
            .collect()
    }

    /// Returns the keywords in the form in which they are searched for. They are not cached, like
    /// the branches.
    pub(super) fn searched_keywords(&self) -> Keywords {
        let prepared =
            prepared::record(Use::Keywords, &self.keywords.join("\n")).and_then(Keywords::read);
        prepared.unwrap_or_else(|| Keywords::new(&self.keywords))
    }

    /// Returns the indices of the regexes that can only be searched for near keywords.
    pub(in crate::detect) fn keyword_only_regexes(&self) -> impl Iterator<Item = usize> {
        self.vague.iter().copied()
    }

    /// Compiles the regexes, which otherwise happens when a text first needs them.
    ///
    /// # Errors
    /// Returns the bound that a regex exceeds.
    pub fn compile(&self) -> Result<(), String> {
        let sources: Vec<(usize, ByteString)> = self.any.iter().cloned().enumerate().collect();
        Compiled::new(&sources).map(|_| ())
    }
}

impl fmt::Debug for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spec")
            .field("keywords", &self.keywords)
            .field("any", &self.any)
            .finish_non_exhaustive()
    }
}

/// Reports whether a regex can only be searched for near keywords, from the data of the build or by
/// parsing it.
///
/// # Errors
/// Returns the reason why the regex is invalid.
fn is_vague(source: &str, prepared: Option<Reader<'static>>) -> Result<bool, String> {
    prepared.and_then(literals::is_vague).map_or_else(
        || Ok(literals::branches_of(source)?.iter().any(Branch::is_vague)),
        Ok,
    )
}

/// Returns the branches of a regex, from the data of the build or by parsing it.
///
/// # Errors
/// Returns the reason why the regex is invalid.
fn branches_of(source: &str, prepared: Option<Reader<'static>>) -> Result<Vec<Branch>, String> {
    let prepared = prepared.and_then(literals::read_branches);
    prepared.map_or_else(|| literals::branches_of(source), Ok)
}

/// Returns words in lower case, one of which is part of every match of a regex; `None` if no such
/// words are worth a search.
pub(in crate::detect) fn needles(source: &str) -> Option<Vec<Vec<u8>>> {
    // The words are searched for in any case.
    let source = source.strip_prefix("(?i)").unwrap_or(source);
    let branches = branches_of(source, prepared::record(Use::Search, source)).ok()?;
    let sets = branches
        .into_iter()
        .map(|branch| longest_pieces(&branch.needles.words));
    Some(sets.collect::<Option<Vec<_>>>()?.concat())
}

/// Returns, for each word, the longest piece without white space, since a regex may allow any
/// amount of it.
fn longest_pieces(words: &WordList) -> Option<Vec<Vec<u8>>> {
    let longest = |word: &[u8]| {
        word.split(|b| *b == b' ')
            .max_by_key(|piece| piece.len())
            .map(<[u8]>::to_vec)
    };
    let pieces: Vec<Vec<u8>> = words.iter().filter_map(longest).collect();
    (!words.is_empty() && pieces.iter().all(|piece| piece.len() > 1)).then_some(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::search::hir;
    use crate::detect::signal;
    use crate::rules::{Find, Library};

    #[test]
    fn the_built_in_regexes_are_prepared_as_they_would_be_read() {
        let library = Library::builtin();
        let mut tried = 0;
        for rule in library.rules() {
            let spec = match rule.find.as_ref() {
                Find::Pattern(spec) => spec,
                Find::Signal(signal::Spec::Phrase(phrase)) => &phrase.search,
                _ => continue,
            };
            let id = &rule.id;
            let keywords = Keywords::new(&spec.keywords);
            assert_eq!(spec.searched_keywords(), keywords, "`{id}`");
            for source in &spec.any {
                let record = prepared::record(Use::Search, source);
                let is_vague_unprepared = is_vague(source, None);
                assert_eq!(
                    is_vague(source, record),
                    is_vague_unprepared,
                    "`{id}`: {source}"
                );
                let read = literals::branches_of(source).unwrap();
                let written = record.and_then(literals::read_branches);
                assert_eq!(written, Some(read), "`{id}`: {source}");
                let written = prepared::record(Use::LowerCase, source)
                    .and_then(|mut record| hir::read(&mut record));
                assert_eq!(written, hir::in_lower_case(source), "`{id}`: {source}");
                tried += 1;
            }
        }
        assert!(tried > 500, "only {tried} regexes");
        assert!(prepared::record(Use::Search, "not of a rule").is_none());
    }
}
