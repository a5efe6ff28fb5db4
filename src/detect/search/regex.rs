//! Regular expressions as used in rules: case-insensitive, ASCII classes, linear time, bounded
//! size.

use std::fmt;
use std::sync::{Arc, OnceLock};

use regex_automata::meta;
use regex_automata::nfa::thompson::BuildError;
use regex_syntax::hir::Hir;

use super::parse::{parse, parse_as};
use crate::detect::prepared::{self, Use};

/// Maximum size of the compiled form of the regexes of one rule, in bytes. The compiler counts states
/// that it removes at the end, too.
pub const REGEX_BYTES: usize = 512 << 10;
/// Maximum memory for the states that one regex creates while searching, in bytes.
const CACHE_BYTES: usize = 512 << 10;

/// A regular expression that is parsed immediately and compiled when a text first needs it. Clones
/// share the compiled form.
#[derive(Clone)]
pub struct Regex {
    source: String,
    any_case: bool,
    compiled: Arc<OnceLock<Option<meta::Regex>>>,
}

impl Regex {
    /// Parses a regex whose letters match in either case.
    ///
    /// # Errors
    /// Returns the reason why the regex is invalid, with the position.
    pub fn new(source: &str) -> Result<Self, String> {
        Self::read(source, true)
    }

    /// Parses a regex whose letters match as written.
    ///
    /// # Errors
    /// Returns the reason why the regex is invalid, with the position.
    pub fn exact(source: &str) -> Result<Self, String> {
        Self::read(source, false)
    }

    fn read(source: &str, any_case: bool) -> Result<Self, String> {
        if !prepared::is_valid(Use::Search, source) {
            // The empty text is allowed here: a rule for commands may require that a command has no
            // more words.
            if any_case {
                parse(source)?
            } else {
                parse_as(source, false)?
            };
        }
        Ok(Self {
            source: source.to_owned(),
            any_case,
            compiled: Arc::default(),
        })
    }

    /// Returns the regex as written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Compiles the regex, if that has not been done yet.
    ///
    /// # Errors
    /// Returns the bound that the regex exceeds.
    pub fn compile(&self) -> Result<(), String> {
        match self.compiled() {
            Some(_) => Ok(()),
            None => self.try_compile().map(drop),
        }
    }

    fn try_compile(&self) -> Result<meta::Regex, String> {
        // Regexes in either case are for texts of a few hundred bytes: to prepare a search for
        // their literals takes longer than it saves.
        let has_prefilter = !self.any_case;
        compile(&parse_as(&self.source, self.any_case)?, has_prefilter)
    }

    fn compiled(&self) -> Option<&meta::Regex> {
        self.compiled
            .get_or_init(|| self.try_compile().ok())
            .as_ref()
    }

    /// Reports whether the regex matches somewhere in `text`. A regex that cannot be compiled
    /// matches nothing.
    pub fn is_match(&self, text: &str) -> bool {
        self.compiled()
            .is_some_and(|regex| regex.is_match(text.as_bytes()))
    }

    /// Does the same, except that a regex that cannot be compiled matches everything. For checks
    /// that must not miss a match.
    pub fn may_match(&self, text: &str) -> bool {
        self.compiled()
            .is_none_or(|regex| regex.is_match(text.as_bytes()))
    }
}

impl fmt::Debug for Regex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Regex({:?})", self.source)
    }
}

/// Returns the error message for a program that cannot be built.
pub(super) fn build_error_message(error: &BuildError) -> String {
    match error.size_limit() {
        Some(_) => {
            format!("the regex is too large: compiled, it takes more than {REGEX_BYTES} bytes")
        }
        None => format!("the regex cannot be compiled: {error}"),
    }
}

/// Compiles a regex within its bounds.
fn compile(hir: &Hir, has_prefilter: bool) -> Result<meta::Regex, String> {
    let config = meta::Config::new()
        .auto_prefilter(has_prefilter)
        .utf8_empty(false)
        .nfa_size_limit(Some(REGEX_BYTES))
        .hybrid_cache_capacity(CACHE_BYTES)
        .which_captures(regex_automata::nfa::thompson::WhichCaptures::Implicit);
    meta::Builder::new()
        .configure(config)
        .build_from_hir(hir)
        .map_err(|error| match error.size_limit() {
            Some(_) => {
                format!("the regex is too large: compiled, it takes more than {REGEX_BYTES} bytes")
            }
            None => format!("the regex cannot be compiled: {error}"),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_does_not_matter_and_classes_are_ascii() {
        let regex = Regex::new(r"\brm\s+ÿ").unwrap();
        assert!(regex.is_match("so RM \t ÿ"));
        assert!(!regex.is_match("rm\u{a0}ÿ"));
    }

    #[test]
    fn faults_say_where() {
        let fault = |source: &str| {
            Regex::new(source)
                .and_then(|regex| regex.compile())
                .unwrap_err()
        };
        assert_eq!(
            fault("a(b"),
            "bad regex: unclosed group, at its character 2"
        );
        assert_eq!(fault("a*"), "the regex matches the empty text");
        assert!(
            fault("(?:[a-z]{900}x){200}").contains("too large"),
            "{}",
            fault("(?:[a-z]{900}x){200}")
        );
        assert!(
            fault(r"\p{Greek}").starts_with("bad regex: Unicode not allowed here"),
            "{}",
            fault(r"\p{Greek}")
        );
    }
}
