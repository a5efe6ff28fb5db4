//! The shape of a secret: a regex that is tried where one of its literals is found, and the
//! condition that a match must meet.

use std::ops::Range;
use std::sync::OnceLock;

use regex_automata::{Anchored, Input, meta, util::captures::Captures};

use super::begin::{ShapeStart, parse};
use super::budget::EVALUATION_PASSES;
use super::check::{self, Check};
use super::class::Class;
use crate::detect::prepared::{self, Use};

/// Maximum length of the joints that are skipped to find the next byte.
const JOINTS_BYTES: usize = 24;
/// Maximum size of the compiled regex, in bytes, and maximum memory for its states.
const REGEX_BYTES: usize = 256 << 10;
const CACHE_BYTES: usize = 64 << 10;
/// Maximum number of bytes that a regex examines.
pub(super) const REACH: usize = 8 << 10;

/// A shape of a secret.
pub struct Shape {
    /// The name in the rule file.
    pub name: String,
    source: String,
    /// The condition that a match must meet.
    pub(super) check: Check,
    /// Words, one of which the name of the value must contain. If there are any, the regex is only
    /// tried on named values and must match a whole value.
    pub(super) name_words: Vec<String>,
    begin: ShapeStart,
    regex: OnceLock<Option<meta::Regex>>,
}

impl std::fmt::Debug for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{}={:?} {:?} {:?}",
            self.name, self.source, self.check, self.name_words
        )
    }
}

pub(super) struct Hit {
    /// The whole match.
    pub(super) span: Range<usize>,
    /// The secret within the match.
    pub(super) secret: Range<usize>,
}

impl Shape {
    /// Parses a shape.
    ///
    /// # Errors
    /// Returns the reason why the shape is invalid.
    pub fn new(
        name: &str,
        source: &str,
        check: Check,
        name_words: Vec<String>,
    ) -> Result<Self, String> {
        let usage = usage_for(&name_words);
        let begin = prepared::record(usage, source)
            .and_then(ShapeStart::read)
            .map_or_else(|| ShapeStart::new(source, usage), Ok)?;
        Ok(Self {
            name: name.into(),
            source: source.into(),
            check,
            name_words,
            begin,
            regex: OnceLock::new(),
        })
    }

    #[cfg(test)]
    pub(super) fn usage(&self) -> Use {
        usage_for(&self.name_words)
    }

    /// Returns the regex as written.
    #[cfg(test)]
    pub(super) fn source(&self) -> &str {
        &self.source
    }

    /// Returns the literals that a match can begin with. A shape without words and literals is
    /// tried on anything that looks random.
    pub(super) fn literals(&self) -> &[String] {
        &self.begin.literals
    }

    /// Returns the maximum length of a match, in bytes.
    pub(super) fn longest(&self) -> usize {
        self.begin.longest
    }

    /// Compiles the regex, if that has not been done yet.
    ///
    /// # Errors
    /// Returns the bound that the regex exceeds.
    pub fn compile(&self) -> Result<(), String> {
        match self.regex() {
            Some(_) => Ok(()),
            None => compile(&self.source).map(drop),
        }
    }

    /// Reports whether no word or literal indicates where a match can be.
    pub(super) fn is_loose(&self) -> bool {
        self.begin.literals.is_empty() && self.name_words.is_empty()
    }

    /// Reports whether a match of a shape without literals may begin with `byte`.
    pub(super) fn begins_with(&self, byte: u8) -> bool {
        self.begin.next.contains(byte)
    }

    /// Reports whether matches span several lines.
    pub(super) fn is_long(&self) -> bool {
        self.check == Check::Body
    }

    /// Reports whether the byte at `at`, or the first one after the joints there, can follow a
    /// literal.
    pub(super) fn may_continue(&self, text: &str, at: usize) -> bool {
        let rest = text.as_bytes().get(at..).unwrap_or_default();
        let fits = |byte: Option<&u8>| byte.is_none_or(|byte| self.begin.next.contains(*byte));
        let joints = rest
            .iter()
            .take(JOINTS_BYTES)
            .take_while(|byte| Class::from_byte(**byte).is_joint())
            .count();
        // A line end may be written as two characters.
        let escaped = joints > 0 && rest.get(joints - 1) == Some(&b'\\');
        escaped || joints == JOINTS_BYTES || fits(rest.first()) || fits(rest.get(joints))
    }

    /// Returns the cost of trying the shape at `start`, in bytes: the number of bytes that it may
    /// examine without a match.
    pub(super) fn cost(&self, text: &str, start: usize) -> usize {
        let limit = self.longest().min(REACH);
        let rest = text.as_bytes().get(start..).unwrap_or_default();
        let line = || {
            rest.iter()
                .take(limit)
                .take_while(|byte| !byte.is_ascii_whitespace())
                .count()
        };
        // Most candidates for values of several lines fail early.
        if self.is_long() {
            limit
        } else {
            line() * EVALUATION_PASSES
        }
    }

    fn regex(&self) -> Option<&meta::Regex> {
        self.regex
            .get_or_init(|| compile(&self.source).ok())
            .as_ref()
    }

    /// Returns the match that begins at `start`, unless it is only the beginning of something
    /// longer. The literal that was found accounts for `literal` bytes of it; `seam` reports
    /// whether another piece begins at a position, where this one ends.
    pub(super) fn match_at(
        &self,
        text: &str,
        start: usize,
        literal: usize,
        seam: &dyn Fn(usize) -> bool,
    ) -> Option<Hit> {
        let end = text.len().min(start.saturating_add(REACH));
        let hit = self.search(text, start..end)?;
        let next = text.as_bytes().get(hit.secret.end);
        let last = text.as_bytes().get(hit.secret.end.wrapping_sub(1));
        let runs_on = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
        if hit.secret.end < end && runs_on(next) && runs_on(last) && !seam(hit.secret.end) {
            return None;
        }
        let body_start = if hit.secret == hit.span {
            start + literal
        } else {
            hit.secret.start
        };
        check::passes_check(
            self.check,
            text.get(hit.span.clone())?,
            text.get(body_start.min(hit.secret.end)..hit.secret.end)?,
        )
        .then_some(hit)
    }

    /// Reports whether the whole of a value has this shape.
    pub(super) fn matches_whole(&self, value: &str) -> bool {
        value.len() <= self.longest()
            && self.search(value, 0..value.len()).is_some_and(|hit| {
                hit.span.end == value.len()
                    && check::passes_check(
                        self.check,
                        value,
                        value.get(hit.secret).unwrap_or(value),
                    )
            })
    }

    fn search(&self, text: &str, range: Range<usize>) -> Option<Hit> {
        let regex = self.regex()?;
        let input = Input::new(text).range(range).anchored(Anchored::Yes);
        if regex.captures_len() == 1 {
            let span = regex.search(&input)?.range();
            return Some(Hit {
                secret: span.clone(),
                span,
            });
        }
        // Most candidates do not match: capture groups are only resolved for those that do.
        regex.search_half(&input)?;
        let mut captures: Captures = regex.create_captures();
        regex.search_captures(&input, &mut captures);
        let span = captures.get_match()?.range();
        let secret = (1..captures.group_len())
            .find_map(|group| captures.get_group(group))
            .map_or(span.clone(), |group| group.range());
        Some(Hit { span, secret })
    }
}

/// Returns the way in which a shape is searched for, given the words that must precede it.
fn usage_for(name_words: &[String]) -> Use {
    if name_words.is_empty() {
        Use::Shape
    } else {
        Use::Value
    }
}

fn compile(source: &str) -> Result<meta::Regex, String> {
    let config = meta::Config::new()
        .utf8_empty(false)
        .nfa_size_limit(Some(REGEX_BYTES))
        .hybrid_cache_capacity(CACHE_BYTES);
    meta::Builder::new()
        .configure(config)
        .build_from_hir(&parse(source)?)
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

    fn shape(source: &str, check: Check) -> Shape {
        Shape::new("x", source, check, Vec::new()).unwrap()
    }

    #[test]
    fn literals_are_what_a_match_begins_with() {
        assert_eq!(
            shape("gh[ops]_[a-z]{4}", Check::Any).literals(),
            ["gho_", "ghp_", "ghs_"]
        );
        assert_eq!(
            shape("-----BEGIN (?:RSA )?PRIVATE KEY", Check::Any).literals(),
            ["-----begin"]
        );
        assert!(
            shape("[a-z]{3}x", Check::Any).literals().is_empty()
                && shape("ab[0-9x]{2,}", Check::Any).literals().is_empty()
        );
        for bad in ["a*", "x(y"] {
            assert!(
                Shape::new("x", bad, Check::Any, Vec::new()).is_err(),
                "{bad}"
            );
        }
    }

    #[test]
    fn what_a_match_begins_with_is_known() {
        let begins = |source: &str| {
            let shape = shape(source, Check::Any);
            (0..=255).filter(|byte| shape.begins_with(*byte)).count()
        };
        assert_eq!(
            (
                begins("SK[0-9a-f]{32}"),
                begins("[0-9]{8}:A"),
                begins("(?:a|[x-z])[0-9]{20}")
            ),
            (1, 10, 4)
        );
        assert_eq!(begins("(?s-u:.)[0-9]{20}"), 256);
        assert!(shape("[^ ]{3}[0-9]{20}", Check::Any).begins_with(b'q'));
    }

    #[test]
    fn a_match_ends_where_the_secret_does() {
        let key = shape("tok_[A-Za-z0-9]{8}", Check::Any);
        assert!(
            key.match_at("tok_a1B2c3D4", 0, 4, &|_| false).is_some()
                && key.match_at("tok_a1B2c3D4.", 0, 4, &|_| false).is_some()
        );
        assert!(
            key.match_at("tok_a1B2c3D4e", 0, 4, &|_| false).is_none()
                && key
                    .match_at("tok_a1B2c3D4e", 0, 4, &|at| at == 12)
                    .is_some(),
            "longer than the shape"
        );
        let password = shape("://[^:]*:([^@]+)@", Check::Any);
        assert_eq!(
            password
                .match_at("://me:s3cret@x", 0, 3, &|_| false)
                .unwrap()
                .secret,
            6..12
        );
    }
}
