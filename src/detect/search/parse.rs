//! Regular expressions as written in rules, parsed but not compiled.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Hir, HirKind, Repetition};

/// Maximum nesting depth of a regex.
pub(super) const NESTING: u32 = 64;
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
pub(super) fn reject_empty(hir: Hir) -> Result<Hir, String> {
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

/// Removes the upper bounds of the gaps inside a regex: `a[^.]{0,40}b` becomes `a[^.]*?b`.
///
/// An automaton that counts has a state for each set of counts. A text can be crafted to need a new
/// state at each byte, which is a thousand times slower than the rest. The caller must enforce the
/// sum of the bounds: no match may be longer.
pub(super) fn pool_gaps(hir: Hir) -> Hir {
    pool_part(hir, true)
}

/// Does the same for a part of a regex; `last` means that nothing follows it.
fn pool_part(hir: Hir, last: bool) -> Hir {
    if !needs_change(&hir) {
        return hir;
    }
    match hir.into_kind() {
        HirKind::Repetition(gap) if is_gap(&gap) => Hir::repetition(if last {
            gap
        } else {
            Repetition {
                max: None,
                greedy: false,
                ..gap
            }
        }),
        HirKind::Repetition(mut repetition) => {
            let once = repetition.max == Some(1);
            repetition.sub = Box::new(pool_part(*repetition.sub, last && once));
            Hir::repetition(repetition)
        }
        HirKind::Capture(capture) => pool_part(*capture.sub, last),
        HirKind::Concat(parts) => {
            let end = parts
                .iter()
                .rposition(|part| !matches!(part.kind(), HirKind::Look(_)));
            let pooled = parts
                .into_iter()
                .enumerate()
                .map(|(at, part)| pool_part(part, last && Some(at) == end));
            Hir::concat(pooled.collect())
        }
        HirKind::Alternation(parts) => {
            let pooled = parts.into_iter().map(|part| pool_part(part, last));
            Hir::alternation(pooled.collect())
        }
        HirKind::Empty => Hir::empty(),
        HirKind::Literal(literal) => Hir::literal(literal.0),
        HirKind::Class(class) => Hir::class(class),
        HirKind::Look(look) => Hir::look(look),
    }
}

fn is_gap(repetition: &Repetition) -> bool {
    let is_wide = |max: u32| max.saturating_sub(repetition.min) >= POOLED;
    matches!(repetition.sub.kind(), HirKind::Class(_)) && repetition.max.is_some_and(is_wide)
}

/// Reports whether a part has a gap, or a group, which is replaced by its content.
fn needs_change(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Repetition(repetition) => is_gap(repetition) || needs_change(&repetition.sub),
        HirKind::Capture(_) => true,
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().any(needs_change),
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) | HirKind::Look(_) => false,
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
