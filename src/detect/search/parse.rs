//! Regular expressions as rules write them, read but not compiled.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Hir, HirKind, Repetition};

/// Deepest nesting within a regex.
const NESTING: u32 = 64;
/// A gap that may be shorter by this much or more is pooled: see [`pooled`].
const POOLED: u32 = 8;

/// Reads a regex. `\w`, `\s`, `\d`, `\b` and `.` mean ASCII and bytes, and letters match in either case, unless the regex
/// says `(?u)` or `(?-i)`: Unicode classes made the automata of a rule set forty times larger.
pub(crate) fn parse(source: &str) -> Result<Hir, String> {
    not_empty(parse_as(source, true)?)
}

/// The same in one case only: six times as fast, and its literals stay few.
pub(super) fn parse_for_literals(source: &str) -> Result<Hir, String> {
    not_empty(parse_as(source, false)?)
}

/// A rule that matches the empty text would match everywhere.
fn not_empty(hir: Hir) -> Result<Hir, String> {
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
    parser.build().parse(source).map_err(|error| reason(&error))
}

/// Reads a regex that runs near its literals, with its gaps pooled.
pub(super) fn pooled_of(source: &str) -> Result<Hir, String> {
    Ok(pooled(&parse(source)?))
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
            Hir::repetition(repetition.with(pooled_before(&repetition.sub, last && once)))
        }
        HirKind::Capture(capture) => pooled_before(&capture.sub, last),
        HirKind::Concat(parts) => {
            let end = parts
                .iter()
                .rposition(|part| !matches!(part.kind(), HirKind::Look(_)));
            Hir::concat(
                parts
                    .iter()
                    .enumerate()
                    .map(|(at, part)| pooled_before(part, last && Some(at) == end))
                    .collect(),
            )
        }
        HirKind::Alternation(parts) => {
            Hir::alternation(parts.iter().map(|part| pooled_before(part, last)).collect())
        }
        _ => hir.clone(),
    }
}

/// What the parser says, as one line.
fn reason(error: &regex_syntax::Error) -> String {
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
