//! Regular expressions as written in rules, parsed but not compiled.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Hir, HirKind, Repetition};

/// Maximum nesting depth of a regex.
const NESTING: u32 = 64;
/// Minimum difference between the bounds of a gap for it to be pooled: see [`pool_gaps`].
const POOLED: u32 = 8;

/// Parses a regex. `\w`, `\s`, `\d`, `\b` and `.` mean ASCII and bytes, and letters match in either
/// case, unless the regex contains `(?u)` or `(?-i)`: Unicode classes made the automata of a rule
/// set forty times larger.
pub(crate) fn parse(source: &str) -> Result<Hir, String> {
    reject_empty(parse_as(source, true)?)
}

/// Parses a regex as case-sensitive: this is six times as fast and keeps the number of literals
/// small.
pub(super) fn parse_for_literals(source: &str) -> Result<Hir, String> {
    reject_empty(parse_as(source, false)?)
}

/// Rejects a regex that matches the empty text, since its rule would match everywhere.
fn reject_empty(hir: Hir) -> Result<Hir, String> {
    let empty = hir
        .properties()
        .minimum_len()
        .is_none_or(|least| least == 0);
    if empty {
        Err("the regex matches the empty text".into())
    } else {
        Ok(hir)
    }
}

pub(super) fn parse_as(source: &str, any_case: bool) -> Result<Hir, String> {
    let mut parser = ParserBuilder::new();
    parser
        .unicode(false)
        .utf8(false)
        .nest_limit(NESTING)
        .case_insensitive(any_case);
    parser
        .build()
        .parse(source)
        .map_err(|error| error_message(&error))
}

/// Parses a regex that runs near its literals, with its gaps pooled.
pub(super) fn parse_pooled(source: &str) -> Result<Hir, String> {
    Ok(pool_gaps(&parse(source)?))
}

/// Removes the upper bounds of the gaps inside a regex: `a[^.]{0,40}b` becomes `a[^.]*?b`.
///
/// An automaton that counts has a state for each set of counts. A text can be crafted to need a new
/// state at each byte, which is a thousand times slower than the rest. The caller must enforce the
/// sum of the bounds: no match may be longer.
pub(super) fn pool_gaps(hir: &Hir) -> Hir {
    pool_part(hir, true)
}

/// Does the same for a part of a regex; `last` means that nothing follows it.
fn pool_part(hir: &Hir, last: bool) -> Hir {
    match hir.kind() {
        HirKind::Repetition(gap) if !last && matches!(gap.sub.kind(), HirKind::Class(_)) => {
            match gap.max {
                Some(max) if max - gap.min >= POOLED => Hir::repetition(Repetition {
                    min: gap.min,
                    max: None,
                    greedy: false,
                    sub: gap.sub.clone(),
                }),
                _ => hir.clone(),
            }
        }
        HirKind::Repetition(repetition) => {
            let once = repetition.max == Some(1);
            Hir::repetition(repetition.with(pool_part(&repetition.sub, last && once)))
        }
        HirKind::Capture(capture) => pool_part(&capture.sub, last),
        HirKind::Concat(parts) => {
            let end = parts
                .iter()
                .rposition(|part| !matches!(part.kind(), HirKind::Look(_)));
            Hir::concat(
                parts
                    .iter()
                    .enumerate()
                    .map(|(at, part)| pool_part(part, last && Some(at) == end))
                    .collect(),
            )
        }
        HirKind::Alternation(parts) => {
            Hir::alternation(parts.iter().map(|part| pool_part(part, last)).collect())
        }
        _ => hir.clone(),
    }
}

/// Returns the parser's error message as one line.
fn error_message(error: &regex_syntax::Error) -> String {
    let (what, at) = match error {
        regex_syntax::Error::Parse(error) => (error.kind().to_string(), Some(error.span().start)),
        regex_syntax::Error::Translate(error) => {
            (error.kind().to_string(), Some(error.span().start))
        }
        other => (other.to_string(), None),
    };
    match at {
        Some(at) if at.line > 1 => format!(
            "bad regex: {what}, at its line {}, character {}",
            at.line, at.column
        ),
        Some(at) => format!("bad regex: {what}, at its character {}", at.column),
        None => format!("bad regex: {what}"),
    }
}
