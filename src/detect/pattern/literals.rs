//! What a regex cannot match without: groups of literals, one of each in every match, in order.
//!
//! A rule's keywords open a window; its regex runs there only if the window also holds one literal of each group, close
//! enough together. Most near misses end here, at the price of an automaton that is shared by all rules.

use regex_syntax::hir::literal::{ExtractKind, Extractor};
use regex_syntax::hir::{Hir, HirKind};

use super::rarity;

/// Most groups kept of one branch: the rarest say enough.
pub(super) const GROUPS: usize = 3;
/// Shorter literals stand nearly everywhere.
const LITERAL_BYTES: usize = 3;
/// A group with more literals than this says too little.
const LITERALS: usize = 64;

/// A way in which a regex can match.
#[derive(Debug)]
pub(super) struct Branch {
    /// One literal of each group stands in every match, each group's after those of the group before. May be empty.
    pub(super) groups: Vec<Vec<Vec<u8>>>,
    /// Longest match in bytes, if it has an end.
    pub(super) longest: Option<usize>,
}

/// The branches of a regex. Extract from a regex that was read as case-sensitive: the literals are looked for in any case.
pub(super) fn branches(hir: &Hir) -> Vec<Branch> {
    let mut open = vec![hir];
    let mut found = Vec::new();
    while let Some(hir) = open.pop() {
        match hir.kind() {
            HirKind::Capture(capture) => open.push(&capture.sub),
            HirKind::Alternation(branches) => open.extend(branches),
            _ => found.push(Branch { groups: groups(hir), longest: hir.properties().maximum_len() }),
        }
    }
    found
}

/// Words of which one stands in every match of `branches`: of each branch the group that is rarest in ordinary text. `None`
/// where a branch has none.
pub(super) fn rarest(branches: &[Branch]) -> Option<Vec<Vec<u8>>> {
    let often = |group: &&Vec<Vec<u8>>| rarity::frequency(group.iter().map(Vec::as_slice));
    let rarest = |branch: &Branch| branch.groups.iter().min_by(|a, b| often(a).total_cmp(&often(b))).cloned();
    let mut words = branches.iter().map(rarest).collect::<Option<Vec<_>>>()?.concat();
    words.sort();
    words.dedup();
    Some(words)
}

fn groups(hir: &Hir) -> Vec<Vec<Vec<u8>>> {
    let mut all = Vec::new();
    let mut open = vec![hir];
    // Depth first, first child first: the groups come out in the order of the text.
    while let Some(hir) = open.pop() {
        match hir.kind() {
            HirKind::Capture(capture) => open.push(&capture.sub),
            HirKind::Repetition(repetition) if repetition.min > 0 => open.push(&repetition.sub),
            HirKind::Concat(children) => open.extend(children.iter().rev()),
            HirKind::Literal(literal) => all.extend(group(vec![literal.0.to_vec()])),
            HirKind::Alternation(_) => all.extend(alternatives(hir)),
            _ => {}
        }
    }
    let mut by_length: Vec<usize> = all.iter().map(|group| shortest(group)).collect();
    by_length.sort_unstable_by(|a, b| b.cmp(a));
    let least = by_length.get(GROUPS - 1).copied().unwrap_or(0);
    let mut longer = all.iter().filter(|group| shortest(group) > least).count();
    all.retain(|group| {
        let keep = shortest(group) > least || longer < GROUPS && shortest(group) == least;
        longer += usize::from(keep && shortest(group) == least);
        keep
    });
    all
}

fn shortest(group: &[Vec<u8>]) -> usize {
    group.iter().map(Vec::len).min().unwrap_or(0)
}

fn alternatives(hir: &Hir) -> Option<Vec<Vec<u8>>> {
    [ExtractKind::Prefix, ExtractKind::Suffix].into_iter().find_map(|kind| {
        let seq = Extractor::new().kind(kind).limit_total(LITERALS).extract(hir);
        group(seq.literals()?.iter().map(|literal| literal.as_bytes().to_vec()).collect())
    })
}

/// A group, if it tells anything. Of letters beyond ASCII the other case is not known here.
fn group(mut literals: Vec<Vec<u8>>) -> Option<Vec<Vec<u8>>> {
    for literal in &mut literals {
        literal.make_ascii_lowercase();
    }
    literals.sort();
    literals.dedup();
    let ascii = literals.iter().all(|literal| literal.is_ascii());
    (ascii && !literals.is_empty() && literals.len() <= LITERALS && shortest(&literals) >= LITERAL_BYTES).then_some(literals)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(regex: &str) -> Vec<String> {
        let hir = regex_automata::util::syntax::parse_with(
            regex,
            &regex_automata::util::syntax::Config::new().unicode(false).utf8(false),
        )
        .unwrap();
        let word = |literal: &Vec<u8>| String::from_utf8(literal.clone()).unwrap();
        let group = |group: &Vec<Vec<u8>>| group.iter().map(word).collect::<Vec<_>>().join("|");
        let mut told: Vec<String> =
            branches(&hir).iter().map(|branch| branch.groups.iter().map(group).collect::<Vec<_>>().join(" ")).collect();
        told.sort();
        told
    }

    #[test]
    fn groups_in_the_order_of_the_text() {
        assert_eq!(
            told(r"\b(?:ignore|disregard)\s+(?:all\s+)?(?:previous|prior)\s+instructions?\b"),
            ["disregard|ignore previous|prior instruction"]
        );
        assert_eq!(told(r"curl[^|\n]*\|\s*(?:ba)?sh"), ["curl"]);
        assert_eq!(told(r"alpha\s+beta|gamma[0-9]+"), ["alpha beta", "gamma"]);
        assert_eq!(told(r"(?:x+|yes)\w*"), [""]);
        assert_eq!(
            told(r"(?:one\w|three).*four.*fourteen.*fifteen.*(?:no)?"),
            ["one|three four fourteen fifteen"].map(|_| "four fourteen fifteen")
        );
    }
}
