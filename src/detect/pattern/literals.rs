//! What a regex cannot match without: groups of literals, one of each in every match, in order.
//!
//! A rule's keywords open a window; its regex runs there only if the window also holds one literal of each group, close
//! enough together. Most near misses end here, at the price of an automaton that is shared by all rules.

use regex_syntax::hir::literal::{ExtractKind, Extractor};
use regex_syntax::hir::{Class, Hir, HirKind, Repetition};

use super::rarity;

/// Most groups kept of one branch: the rarest say enough.
pub(super) const GROUPS: usize = 3;
/// Shorter literals stand nearly everywhere,
const LITERAL_BYTES: usize = 3;
/// but for some, such as `<|`, that are as rare as one place in so many powers of two.
const RARE_BITS: u32 = 10;
const RARE_BYTES: usize = 2;
/// A group with more literals than this says too little.
const LITERALS: usize = 64;
/// The same of what a search begins with, where every word more costs next to nothing.
const BEGINNINGS: usize = 160;
/// Longer ones need not be known to their end.
const LONGEST_BYTES: usize = 16;
/// How much better it is to know where a match begins.
const FIRST: f64 = 0.125;
/// So many parts of a regex are looked at for how it goes on.
const PARTS: usize = 5;

/// A way in which a regex can match.
#[derive(Debug)]
pub(super) struct Branch {
    /// One literal of each group stands in every match, each group's after those of the group before. May be empty.
    pub(super) groups: Vec<Vec<Vec<u8>>>,
    /// Of all that one of stands in every match, what is rarest in ordinary text. May be empty.
    pub(super) needles: Needles,
    /// Longest match in bytes, if it has an end.
    pub(super) longest: Option<usize>,
}

/// Literals of which one stands in every match.
#[derive(Clone, Debug, Default)]
pub(super) struct Needles {
    pub(super) words: Vec<Vec<u8>>,
    /// Matches begin with them.
    pub(super) first: bool,
}

/// The branches of a regex. Extract from a regex that was read as case-sensitive: the literals are looked for in any case.
pub(super) fn branches(hir: &Hir) -> Vec<Branch> {
    let mut open = vec![hir];
    let mut found = Vec::new();
    while let Some(hir) = open.pop() {
        match hir.kind() {
            HirKind::Capture(capture) => open.push(&capture.sub),
            HirKind::Alternation(branches) => open.extend(branches),
            _ => found.push(Branch { groups: groups(hir), needles: needles(hir), longest: hir.properties().maximum_len() }),
        }
    }
    found
}

/// The rarest of what a branch can go on with from one of its parts.
fn needles(hir: &Hir) -> Needles {
    let HirKind::Concat(parts) = hir.kind() else {
        return begins(hir).map(|words| Needles { words, first: true }).unwrap_or_default();
    };
    let mut best = Needles::default();
    let mut least = f64::INFINITY;
    let mut first = true;
    for (at, part) in parts.iter().enumerate() {
        let rest = || parts.get(at..).unwrap_or_default();
        let words = match part.kind() {
            HirKind::Look(_) => continue,
            // Nothing can stand here.
            HirKind::Repetition(repetition) if repetition.min == 0 => None,
            _ => begins(&Hir::concat(rest().iter().take(PARTS).cloned().collect())).or_else(|| alternatives(part)),
        };
        if let Some(words) = words {
            // Where white space begins is not where a match does.
            let first = first && !words.iter().any(|word| word.starts_with(b" "));
            // Where a match begins one look is enough.
            let often = frequency(&words) * if first { FIRST } else { 1.0 };
            if often < least {
                (best, least) = (Needles { words, first }, often);
            }
        }
        first = false;
    }
    best
}

/// What every match of a regex begins with; a blank is any white space.
fn begins(hir: &Hir) -> Option<Vec<Vec<u8>>> {
    let seq = Extractor::new().limit_total(BEGINNINGS).limit_literal_len(LONGEST_BYTES).extract(&blanks(hir));
    group(seq.literals()?.iter().map(|literal| literal.as_bytes().to_vec()).collect(), BEGINNINGS)
}

/// The regex with a single blank in place of any white space, however much.
fn blanks(hir: &Hir) -> Hir {
    let blank = || Hir::literal(*b" ");
    match hir.kind() {
        HirKind::Class(class) if is_blank(class) => blank(),
        HirKind::Repetition(repetition) => match repetition.sub.kind() {
            HirKind::Class(class) if is_blank(class) && repetition.min > 0 => blank(),
            HirKind::Class(class) if is_blank(class) => {
                Hir::repetition(Repetition { min: 0, max: Some(1), greedy: true, sub: Box::new(blank()) })
            }
            _ => Hir::repetition(repetition.with(blanks(&repetition.sub))),
        },
        HirKind::Capture(capture) => blanks(&capture.sub),
        HirKind::Concat(parts) => Hir::concat(parts.iter().map(blanks).collect()),
        HirKind::Alternation(parts) => Hir::alternation(parts.iter().map(blanks).collect()),
        _ => hir.clone(),
    }
}

/// Whether a class is `\s`, of ASCII.
fn is_blank(class: &Class) -> bool {
    let ranges = |first: (u8, u8), second: (u8, u8)| first == (b'\t', b'\r') && second == (b' ', b' ');
    match class {
        Class::Bytes(class) => matches!(class.ranges(), [a, b] if ranges((a.start(), a.end()), (b.start(), b.end()))),
        Class::Unicode(_) => false,
    }
}

/// How often one of `words` stands in ordinary text, for each byte of it.
pub(super) fn frequency(words: &[Vec<u8>]) -> f64 {
    words.iter().map(|word| 0.5_f64.powi(i32::try_from(rarity::bits(word)).unwrap_or(i32::MAX))).sum()
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
            HirKind::Literal(literal) => all.extend(group(vec![literal.0.to_vec()], LITERALS)),
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
        group(seq.literals()?.iter().map(|literal| literal.as_bytes().to_vec()).collect(), LITERALS)
    })
}

/// A group, if it tells anything. Of letters beyond ASCII the other case is not known here.
fn group(mut literals: Vec<Vec<u8>>, most: usize) -> Option<Vec<Vec<u8>>> {
    for literal in &mut literals {
        literal.make_ascii_lowercase();
    }
    literals.sort();
    literals.dedup();
    let ascii = literals.iter().all(|literal| literal.is_ascii());
    let telling = |word: &Vec<u8>| word.len() >= LITERAL_BYTES || word.len() >= RARE_BYTES && rarity::bits(word) >= RARE_BITS;
    (ascii && !literals.is_empty() && literals.len() <= most && literals.iter().all(telling)).then_some(literals)
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
