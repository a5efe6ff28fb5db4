//! Detects conditions that narrow nothing.

use super::lex::{Kind, Token};
use crate::text::quick::WordSet;

/// Maximum depth to which brackets and alternatives are followed.
const DEPTH: usize = 8;
/// Words that end a condition.
static ENDS: WordSet =
    WordSet::new("returning limit order option group having union on for allow qualify");

/// Reports whether every row meets the condition, whatever it contains: `1=1`, `true`, `x = x`,
/// `a OR true`. False if in doubt.
pub(super) fn is_always_true(tokens: &[Token<'_>]) -> bool {
    let level = tokens.first().map_or(0, |first| first.depth);
    let ends_condition = |token: &Token<'_>| {
        token.depth < level
            || token.is_mark(";")
            || token.depth == level && token.is_any(ENDS.iter())
    };
    let end = tokens
        .iter()
        .position(ends_condition)
        .unwrap_or(tokens.len());
    always_holds(tokens.get(..end).unwrap_or_default(), DEPTH)
}

fn always_holds(tokens: &[Token<'_>], depth: usize) -> bool {
    let tokens = strip_brackets(tokens);
    let Some(first) = tokens.first() else {
        return false;
    };
    if depth == 0 {
        return false;
    }
    let level = tokens
        .iter()
        .map(|token| token.depth)
        .min()
        .unwrap_or(first.depth);
    let split_at = |words: &[&str]| -> Vec<&[Token<'_>]> {
        let joins = |token: &Token<'_>| {
            token.depth == level
                && (token.is_any(words) || words.contains(&"or") && token.is_mark("|"))
        };
        tokens
            .split(joins)
            .filter(|part| !part.is_empty())
            .collect()
    };
    let alternatives = split_at(&["or", "xor"]);
    if alternatives.len() > 1 {
        return alternatives
            .iter()
            .any(|part| always_holds(part, depth - 1));
    }
    let conjuncts = split_at(&["and"]);
    if conjuncts.len() > 1 {
        return conjuncts.iter().all(|part| always_holds(part, depth - 1));
    }
    atom_holds(tokens)
}

/// Removes all brackets around the tokens.
fn strip_brackets<'p, 't>(tokens: &'p [Token<'t>]) -> &'p [Token<'t>] {
    let level = tokens.first().map_or(0, |first| first.depth);
    let opens = tokens.iter().take_while(|token| token.is_mark("(")).count();
    let closes = tokens
        .iter()
        .rev()
        .take_while(|token| token.is_mark(")"))
        .count();
    let inner = tokens
        .get(opens..tokens.len().saturating_sub(closes))
        .unwrap_or_default();
    let common_depth = inner
        .iter()
        .map(|token| token.depth.saturating_sub(level))
        .min()
        .unwrap_or(0);
    let peeled = opens.min(closes).min(common_depth);
    tokens
        .get(peeled..tokens.len().saturating_sub(peeled))
        .unwrap_or_default()
}

fn atom_holds(tokens: &[Token<'_>]) -> bool {
    match tokens {
        [token] => token.is("true") || is_nonzero(token),
        [not, token] if not.is("not") => {
            token.is("false") || (token.kind == Kind::Number && !is_nonzero(token))
        }
        [a, op, b] if op.is_mark("=") => same(a, b),
        [a, op, b] if op.is_mark(">") => compare(a, b).is_some_and(std::cmp::Ordering::is_gt),
        [a, op, b] if op.is_mark("<") => compare(a, b).is_some_and(std::cmp::Ordering::is_lt),
        [a, op, b] if op.is("like") || op.is("ilike") || op.is("rlike") || op.is("regexp") => {
            b.kind == Kind::Text
                && matches!(b.text, "%" | "%%" | ".*" | "")
                && (a.kind == Kind::Word || !b.text.is_empty())
                || same(a, b)
        }
        [a, is, b] if is.is("is") => a.is("null") && b.is("null") || same(a, b) && a.is("true"),
        [a, is, not, b] if is.is("is") && not.is("not") => {
            b.is("null") && matches!(a.kind, Kind::Number | Kind::Text)
        }
        [a, op, eq, b]
            if op.is_mark("<") && eq.is_mark(">") || op.is_mark("!") && eq.is_mark("=") =>
        {
            a.kind == b.kind && matches!(a.kind, Kind::Number | Kind::Text) && a.text != b.text
        }
        [a, op, eq, b]
            if eq.is_mark("=") && (op.is_mark("<") || op.is_mark(">") || op.is_mark("=")) =>
        {
            same(a, b)
                || compare(a, b).is_some_and(|order| {
                    if op.is_mark("<") {
                        order.is_lt()
                    } else {
                        order.is_gt()
                    }
                })
        }
        [a, r#in, open, list @ .., close]
            if r#in.is("in") && open.is_mark("(") && close.is_mark(")") =>
        {
            matches!(a.kind, Kind::Number | Kind::Text) && list.iter().any(|item| same(a, item))
        }
        [exists, open, select, selected, close] => {
            exists.is("exists")
                && open.is_mark("(")
                && select.is("select")
                && selected.kind == Kind::Number
                && close.is_mark(")")
        }
        // `t.x = t.x`
        [a, dot, b, op, c, dot2, d] if op.is_mark("=") && dot.is_mark(".") && dot2.is_mark(".") => {
            same(a, c) && same(b, d)
        }
        _ => false,
    }
}

fn is_nonzero(token: &Token<'_>) -> bool {
    token.kind == Kind::Number && token.text.parse::<f64>().is_ok_and(|n| n != 0.0)
}

fn same(a: &Token<'_>, b: &Token<'_>) -> bool {
    a.kind == b.kind && a.text.eq_ignore_ascii_case(b.text) && !a.is("null") && a.kind != Kind::Mark
}

fn compare(a: &Token<'_>, b: &Token<'_>) -> Option<std::cmp::Ordering> {
    if a.kind != Kind::Number || b.kind != Kind::Number {
        return None;
    }
    a.text
        .parse::<f64>()
        .ok()?
        .partial_cmp(&b.text.parse::<f64>().ok()?)
}
