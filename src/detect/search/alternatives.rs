//! Alternatives that begin with the same characters, rewritten so that they share them:
//! `reads?|reading to|send` becomes `read(?:s?|ing to)|send`.
//!
//! A lazy automaton computes each state from all positions of the regex at which the text may be.
//! At the beginning of a list of words, these are the beginnings of hundreds of alternatives.
//! Shared, they are one for each first character.

use regex_syntax::hir::literal::Extractor;
use regex_syntax::hir::{Capture, Hir, HirKind};

/// Maximum number of literals that replace one alternative, and maximum length of each in bytes.
/// With more, the programs of all built-in rules grow.
const LITERALS: usize = 3;
const LITERAL_BYTES: usize = 64;
/// Maximum number of characters of a class for each of which there is a literal.
const CLASS_CHARS: usize = 4;

/// An alternative: bytes, and what follows them.
struct Alternative {
    head: Vec<u8>,
    tail: Option<Hir>,
}

/// Alternatives that begin with the same byte, or one alternative that does not begin with bytes.
struct Group {
    first: Option<u8>,
    alternatives: Vec<Alternative>,
}

/// Rewrites the alternations of a regex without captures. The regex matches the same texts, and
/// prefers the same alternatives.
pub(super) fn share_beginnings(hir: Hir) -> Hir {
    if !has_alternation(&hir) {
        return hir;
    }
    match hir.into_kind() {
        HirKind::Alternation(parts) => join(parts.into_iter().flat_map(alternatives).collect()),
        HirKind::Concat(parts) => Hir::concat(parts.into_iter().map(share_beginnings).collect()),
        HirKind::Repetition(mut repetition) => {
            repetition.sub = Box::new(share_beginnings(*repetition.sub));
            Hir::repetition(repetition)
        }
        HirKind::Capture(capture) => share_beginnings(*capture.sub),
        HirKind::Empty => Hir::empty(),
        HirKind::Literal(literal) => Hir::literal(literal.0),
        HirKind::Class(class) => Hir::class(class),
        HirKind::Look(look) => Hir::look(look),
    }
}

fn has_alternation(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Alternation(_) => true,
        HirKind::Concat(parts) => parts.iter().any(has_alternation),
        HirKind::Repetition(repetition) => has_alternation(&repetition.sub),
        HirKind::Capture(capture) => has_alternation(&capture.sub),
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) | HirKind::Look(_) => false,
    }
}

/// Returns the alternatives of a part of an alternation, in the order of preference.
fn alternatives(part: Hir) -> Vec<Alternative> {
    if let Some(literals) = literals_of(&part) {
        let alternative = |head| Alternative { head, tail: None };
        return literals.into_iter().map(alternative).collect();
    }
    let mut parts = match part.kind() {
        HirKind::Concat(_) => match part.into_kind() {
            HirKind::Concat(parts) => parts,
            _ => Vec::new(),
        },
        _ => vec![part],
    };
    let mut head = Vec::new();
    if let Some(HirKind::Literal(literal)) = parts.first().map(Hir::kind) {
        head = literal.0.to_vec();
        parts.remove(0);
    }
    let tail = Hir::concat(parts.into_iter().map(share_beginnings).collect());
    vec![Alternative {
        head,
        tail: Some(tail),
    }]
}

/// Returns the literals that a part matches, in the order of preference, if it matches only a few.
fn literals_of(part: &Hir) -> Option<Vec<Vec<u8>>> {
    let properties = part.properties();
    if !properties.look_set().is_empty()
        || properties
            .maximum_len()
            .is_none_or(|longest| longest > LITERAL_BYTES)
    {
        return None;
    }
    let literals = Extractor::new()
        .limit_class(CLASS_CHARS)
        .limit_literal_len(LITERAL_BYTES)
        .limit_total(LITERALS)
        .extract(part);
    let literals = literals.literals().filter(|_| literals.is_exact())?;
    Some(literals.iter().map(|one| one.as_bytes().to_vec()).collect())
}

/// Returns the alternation of alternatives, which share the bytes with which they begin.
///
/// An alternative may change places with another one if both begin with different bytes, since no
/// text matches both. One that begins with something else keeps its place.
fn join(alternatives: Vec<Alternative>) -> Hir {
    let mut groups: Vec<Group> = Vec::new();
    // The first group that the next alternative may join.
    let mut movable = 0;
    for alternative in alternatives {
        let first = alternative.head.first().copied();
        let mut joinable = groups.iter_mut().skip(movable);
        match joinable.find(|group| group.first == first && first.is_some()) {
            Some(group) => group.alternatives.push(alternative),
            None => groups.push(Group {
                first,
                alternatives: vec![alternative],
            }),
        }
        if first.is_none() {
            movable = groups.len();
        }
    }
    let mut parts = Vec::new();
    let mut literals = Vec::new();
    for group in groups {
        let is_literal = |alternative: &Alternative| alternative.tail.is_none();
        if group.first.is_some() && group.alternatives.iter().all(is_literal) {
            literals.extend(
                group
                    .alternatives
                    .into_iter()
                    .map(|one| Hir::literal(one.head)),
            );
            continue;
        }
        if group.first.is_none() {
            parts.extend(join_literals(&mut literals));
        }
        parts.push(join_group(group));
    }
    parts.extend(join_literals(&mut literals));
    Hir::alternation(parts)
}

/// Returns literals as one part of an alternation. The compiler makes a tree of an alternation of
/// nothing but literals; in a group, it remains one.
fn join_literals(literals: &mut Vec<Hir>) -> Option<Hir> {
    match std::mem::take(literals) {
        none if none.is_empty() => None,
        one if one.len() == 1 => one.into_iter().next(),
        several => Some(Hir::capture(Capture {
            index: 1,
            name: None,
            sub: Box::new(Hir::alternation(several)),
        })),
    }
}

/// Returns the alternatives of a group, with the bytes before them that they share.
fn join_group(group: Group) -> Hir {
    let mut alternatives = group.alternatives;
    let shared = shared_bytes(&alternatives);
    let mut head = Vec::new();
    for alternative in &mut alternatives {
        let rest = alternative.head.split_off(shared);
        head = std::mem::replace(&mut alternative.head, rest);
    }
    let tail = match <[Alternative; 1]>::try_from(alternatives) {
        Ok([Alternative { tail, .. }]) => tail.unwrap_or_else(Hir::empty),
        Err(alternatives) => join(alternatives),
    };
    Hir::concat(vec![Hir::literal(head), tail])
}

/// Returns the number of bytes that all alternatives have in common at their beginnings.
fn shared_bytes(alternatives: &[Alternative]) -> usize {
    let Some((first, others)) = alternatives.split_first() else {
        return 0;
    };
    let shared_with = |other: &Alternative| {
        let pairs = first.head.iter().zip(&other.head);
        pairs.take_while(|(a, b)| a == b).count()
    };
    others
        .iter()
        .map(shared_with)
        .min()
        .unwrap_or(first.head.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::search::parse::{parse_as, pool_gaps};
    use regex_automata::meta::{Builder, Regex};

    fn compile(hir: &Hir) -> Regex {
        Builder::new().build_from_hir(hir).unwrap()
    }

    fn shared(source: &str) -> Hir {
        share_beginnings(pool_gaps(parse_as(source, false).unwrap()))
    }

    #[test]
    fn beginnings_are_shared() {
        let expected = parse_as(r"(?:r(?:ead(?:s? \w|ing to)|ot)|(send|say))x", false);
        assert_eq!(
            Ok(shared(r"(?:reads? \w|send|reading to|say|rot)x")),
            expected
        );
    }

    #[test]
    fn the_same_matches_are_preferred() {
        let sources = [
            "a|ab",
            "ab|a",
            "(?:ab?|abc|a)c*",
            "(?:ab??|abc|b)c?",
            "a|[ab]b|abc|b",
            "(?:|a|ab)c",
            "(?:a||ab)c",
            "(?:abc+|ab|abb|b+a|ba|bac)b?",
            r"(?:\bab|abc|ab|\Bb)c?",
            "(?:[abc]a|ab(?:c|b+)|[ab]c|cab?)(?:b|bc|a)",
            "(?:a.*b|ab|acb|b.c)c|ca",
            "(?:a(?:b|bc|c)|ab(?:|a|ac))(?:c|ca)?",
        ];
        let mut texts = vec![String::new()];
        for length in 0..7 {
            let longest: Vec<String> = texts
                .iter()
                .filter(|text| text.len() == length)
                .flat_map(|text| ["a", "b", "c"].map(|next| format!("{text}{next}")))
                .collect();
            texts.extend(longest);
        }
        for source in sources {
            let plain = compile(&pool_gaps(parse_as(source, false).unwrap()));
            let rewritten = compile(&shared(source));
            for text in &texts {
                assert_eq!(plain.find(text), rewritten.find(text), "{source} in {text}");
            }
        }
    }
}
