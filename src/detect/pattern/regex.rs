//! Regular expressions as rules use them: any case, ASCII classes, linear time, bounded size.

use std::fmt;

use regex_automata::meta;
use regex_automata::util::syntax;
use regex_syntax::hir::Hir;

/// Largest compiled form of one regex, in bytes.
pub const REGEX_BYTES: usize = 256 << 10;
/// Most memory that one regex may fill with states it met while searching, in bytes.
const CACHE_BYTES: usize = 128 << 10;

/// A regular expression, compiled.
#[derive(Clone)]
pub struct Regex {
    source: String,
    regex: meta::Regex,
}

impl Regex {
    /// Compiles a regex.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn new(source: &str) -> Result<Self, String> {
        let regex = compile(&parse(source)?)?;
        Ok(Self { source: source.to_owned(), regex })
    }

    /// As written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether it matches somewhere in `text`.
    pub fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text.as_bytes())
    }
}

impl fmt::Debug for Regex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Regex({:?})", self.source)
    }
}

/// Reads a regex. `\w`, `\s`, `\d`, `\b` and `.` mean ASCII and bytes, and letters match in either case, unless the regex
/// says `(?u)` or `(?-i)`: Unicode classes made the automata of a rule set forty times larger.
pub(super) fn parse(source: &str) -> Result<Hir, String> {
    let rules = syntax::Config::new().unicode(false).utf8(false).case_insensitive(true);
    let hir = syntax::parse_with(source, &rules).map_err(|error| told(&error))?;
    if hir.properties().minimum_len().is_none_or(|least| least == 0) {
        return Err("the regex matches the empty text".into());
    }
    Ok(hir)
}

/// Compiles a regex within its bounds.
pub(super) fn compile(hir: &Hir) -> Result<meta::Regex, String> {
    let bounds = meta::Config::new()
        .utf8_empty(false)
        .nfa_size_limit(Some(REGEX_BYTES))
        .hybrid_cache_capacity(CACHE_BYTES)
        .which_captures(regex_automata::nfa::thompson::WhichCaptures::Implicit);
    meta::Builder::new().configure(bounds).build_from_hir(hir).map_err(|error| match error.size_limit() {
        Some(_) => format!("the regex is too large: compiled, it takes more than {REGEX_BYTES} bytes"),
        None => format!("the regex cannot be compiled: {error}"),
    })
}

/// One line of what the parser says.
fn told(error: &regex_syntax::Error) -> String {
    let (what, at) = match error {
        regex_syntax::Error::Parse(error) => (error.kind().to_string(), Some(error.span().start)),
        regex_syntax::Error::Translate(error) => (error.kind().to_string(), Some(error.span().start)),
        other => (other.to_string(), None),
    };
    match at {
        Some(at) if at.line > 1 => format!("bad regex: {what}, at its line {}, character {}", at.line, at.column),
        Some(at) => format!("bad regex: {what}, at its character {}", at.column),
        None => format!("bad regex: {what}"),
    }
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
        let fault = |source: &str| Regex::new(source).unwrap_err();
        assert_eq!(fault("a(b"), "bad regex: unclosed group, at its character 2");
        assert_eq!(fault("a*"), "the regex matches the empty text");
        assert!(fault("(?:[a-z]{900}x){200}").contains("too large"), "{}", fault("(?:[a-z]{900}x){200}"));
        assert!(fault(r"\p{Greek}").starts_with("bad regex: Unicode not allowed here"), "{}", fault(r"\p{Greek}"));
    }
}
