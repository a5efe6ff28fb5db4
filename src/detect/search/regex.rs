//! Regular expressions as rules use them: any case, ASCII classes, linear time, bounded size.

use std::fmt;
use std::sync::{Arc, OnceLock};

use regex_automata::meta;
use regex_automata::nfa::thompson::BuildError;
use regex_automata::util::syntax;
use regex_syntax::hir::{Hir, HirKind, Repetition};

/// Largest compiled form of one regex, in bytes.
pub const REGEX_BYTES: usize = 256 << 10;
/// Most memory that one regex may fill with states it met while searching, in bytes.
const CACHE_BYTES: usize = 512 << 10;

/// Deepest nesting within a regex.
const NESTING: u32 = 64;
/// A gap that may be shorter by this much or more is pooled: see [`pooled`].
const POOLED: u32 = 8;

/// A regular expression: read at once, compiled when a text first calls for it. Clones share the compiled form.
#[derive(Clone)]
pub struct Regex {
    source: String,
    any_case: bool,
    compiled: Arc<OnceLock<Option<meta::Regex>>>,
}

impl Regex {
    /// Reads a regex whose letters match in either case.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn new(source: &str) -> Result<Self, String> {
        Self::read(source, true)
    }

    /// Reads a regex whose letters match as they are written.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn exact(source: &str) -> Result<Self, String> {
        Self::read(source, false)
    }

    fn read(source: &str, any_case: bool) -> Result<Self, String> {
        // What is looked for in a command may be that it has no more words: the empty text.
        if any_case {
            parse(source)?
        } else {
            parse_as(source, false)?
        };
        Ok(Self { source: source.to_owned(), any_case, compiled: Arc::default() })
    }

    /// As written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Compiles it, if that is still to be done.
    ///
    /// # Errors
    /// Which bound it breaks.
    pub fn compile(&self) -> Result<(), String> {
        match self.compiled() {
            Some(_) => Ok(()),
            None => self.try_compile().map(drop),
        }
    }

    fn try_compile(&self) -> Result<meta::Regex, String> {
        compile(&parse_as(&self.source, self.any_case)?)
    }

    fn compiled(&self) -> Option<&meta::Regex> {
        self.compiled.get_or_init(|| self.try_compile().ok()).as_ref()
    }

    /// Whether it matches somewhere in `text`. One that cannot be compiled matches nothing.
    pub fn is_match(&self, text: &str) -> bool {
        self.compiled().is_some_and(|regex| regex.is_match(text.as_bytes()))
    }

    /// The same, except that one that cannot be compiled matches everything: for what must not be missed.
    pub fn may_match(&self, text: &str) -> bool {
        self.compiled().is_none_or(|regex| regex.is_match(text.as_bytes()))
    }
}

impl fmt::Debug for Regex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Regex({:?})", self.source)
    }
}

/// Reads a regex. `\w`, `\s`, `\d`, `\b` and `.` mean ASCII and bytes, and letters match in either case, unless the regex
/// says `(?u)` or `(?-i)`: Unicode classes made the automata of a rule set forty times larger.
fn parse(source: &str) -> Result<Hir, String> {
    not_empty(parse_as(source, true)?)
}

/// The same in one case only: six times as fast, and its literals stay few.
pub(super) fn parse_for_literals(source: &str) -> Result<Hir, String> {
    not_empty(parse_as(source, false)?)
}

/// A rule that matches the empty text would match everywhere.
fn not_empty(hir: Hir) -> Result<Hir, String> {
    let empty = hir.properties().minimum_len().is_none_or(|least| least == 0);
    if empty { Err("the regex matches the empty text".into()) } else { Ok(hir) }
}

fn parse_as(source: &str, any_case: bool) -> Result<Hir, String> {
    let rules = syntax::Config::new().unicode(false).utf8(false).nest_limit(NESTING).case_insensitive(any_case);
    syntax::parse_with(source, &rules).map_err(|error| told(&error))
}

/// Reads a regex that runs near its literals, with its gaps pooled.
pub(super) fn pooled_of(source: &str) -> Result<Hir, String> {
    Ok(pooled(&parse(source)?))
}

/// What a program says that cannot be made.
pub(super) fn too_large(error: &BuildError) -> String {
    match error.size_limit() {
        Some(_) => format!("the regex is too large: compiled, it takes more than {REGEX_BYTES} bytes"),
        None => format!("the regex cannot be compiled: {error}"),
    }
}

/// The regex without upper bounds on the gaps inside it: `a[^.]{0,40}b` as `a[^.]*?b`.
///
/// An automaton that counts has a state for each set of counts, and a text can be made to need a new one at each byte, a
/// thousand times slower than the rest. What the bounds add up to is held by whoever searches: no match is longer.
pub(super) fn pooled(hir: &Hir) -> Hir {
    pooled_before(hir, true)
}

/// `last` if nothing follows.
fn pooled_before(hir: &Hir, last: bool) -> Hir {
    match hir.kind() {
        HirKind::Repetition(gap) if !last && matches!(gap.sub.kind(), HirKind::Class(_)) => match gap.max {
            Some(max) if max - gap.min >= POOLED => {
                Hir::repetition(Repetition { min: gap.min, max: None, greedy: false, sub: gap.sub.clone() })
            }
            _ => hir.clone(),
        },
        HirKind::Repetition(repetition) => {
            let once = repetition.max == Some(1);
            Hir::repetition(repetition.with(pooled_before(&repetition.sub, last && once)))
        }
        HirKind::Capture(capture) => pooled_before(&capture.sub, last),
        HirKind::Concat(parts) => {
            let end = parts.iter().rposition(|part| !matches!(part.kind(), HirKind::Look(_)));
            Hir::concat(parts.iter().enumerate().map(|(at, part)| pooled_before(part, last && Some(at) == end)).collect())
        }
        HirKind::Alternation(parts) => Hir::alternation(parts.iter().map(|part| pooled_before(part, last)).collect()),
        _ => hir.clone(),
    }
}

/// Compiles a regex within its bounds.
fn compile(hir: &Hir) -> Result<meta::Regex, String> {
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
        let fault = |source: &str| Regex::new(source).and_then(|regex| regex.compile()).unwrap_err();
        assert_eq!(fault("a(b"), "bad regex: unclosed group, at its character 2");
        assert_eq!(fault("a*"), "the regex matches the empty text");
        assert!(fault("(?:[a-z]{900}x){200}").contains("too large"), "{}", fault("(?:[a-z]{900}x){200}"));
        assert!(fault(r"\p{Greek}").starts_with("bad regex: Unicode not allowed here"), "{}", fault(r"\p{Greek}"));
    }
}
