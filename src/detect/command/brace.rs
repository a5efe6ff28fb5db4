//! Brace expansion: `{a,b}` and `{1..3}`.

use super::lex::{Piece, Word};

/// Maximum number of atoms in all words that one word expands to.
const MAX_ATOMS: usize = 16_384;
/// Maximum length of a sequence that is expanded; a longer one is kept as written.
const MAX_SEQUENCE: u32 = 64;

/// The result of expanding a word.
pub(super) enum Braces {
    /// The word has no braces.
    None,
    Words(Vec<Word>),
    TooMany,
}

#[derive(Clone, Copy)]
enum Atom<'w> {
    Char(char, bool),
    Piece(&'w Piece),
}

/// Expands the braces of a word, outermost first.
pub(super) fn expand(word: &Word) -> Braces {
    let unquoted = |mark: &str| {
        let mut texts = word.iter().filter_map(Piece::as_plain);
        texts.any(|text| text.contains(mark))
    };
    if !unquoted("{") || !(unquoted(",") || unquoted("..")) {
        return Braces::None;
    }
    let mut atoms = Vec::new();
    for piece in word {
        match piece {
            Piece::Text { text, quoted } => {
                atoms.extend(text.chars().map(|c| Atom::Char(c, *quoted)))
            }
            piece => atoms.push(Atom::Piece(piece)),
        }
    }
    let mut cost = 0;
    let mut todo = vec![atoms];
    let mut words = Vec::new();
    while let Some(atoms) = todo.pop() {
        cost += atoms.len() + 1;
        if cost > MAX_ATOMS {
            return Braces::TooMany;
        }
        let Some(group) = first_group(&atoms) else {
            words.push(to_word(&atoms));
            continue;
        };
        let before = atoms.get(..group.open).unwrap_or_default();
        let after = atoms.get(group.close + 1..).unwrap_or_default();
        // Pushed in reverse, so that they are popped in order.
        for choice in group.choices.into_iter().rev() {
            let mut next = Vec::with_capacity(before.len() + choice.len() + after.len());
            next.extend_from_slice(before);
            next.extend(choice);
            next.extend_from_slice(after);
            cost += next.len();
            todo.push(next);
            if cost > MAX_ATOMS {
                return Braces::TooMany;
            }
        }
    }
    Braces::Words(words)
}

struct Group<'w> {
    open: usize,
    close: usize,
    choices: Vec<Vec<Atom<'w>>>,
}

fn first_group<'w>(atoms: &[Atom<'w>]) -> Option<Group<'w>> {
    let mut open: Vec<(usize, Vec<usize>)> = Vec::new();
    let mut best: Option<(usize, usize, Vec<usize>)> = None;
    for (at, atom) in atoms.iter().enumerate() {
        match atom {
            Atom::Char('{', false) => open.push((at, Vec::new())),
            Atom::Char(',', false) => {
                if let Some((_, commas)) = open.last_mut() {
                    commas.push(at);
                }
            }
            Atom::Char('}', false) => {
                let Some((start, commas)) = open.pop() else {
                    continue;
                };
                let valid = !commas.is_empty()
                    || expand_sequence(atoms.get(start + 1..at).unwrap_or_default()).is_some();
                if valid && best.as_ref().is_none_or(|(first, ..)| start < *first) {
                    best = Some((start, at, commas));
                }
                if open.is_empty() && best.is_some() {
                    break;
                }
            }
            _ => {}
        }
    }
    let (start, close, commas) = best?;
    let inside = |from: usize, to: usize| atoms.get(from..to).unwrap_or_default().to_vec();
    let choices = if commas.is_empty() {
        expand_sequence(atoms.get(start + 1..close).unwrap_or_default())?
    } else {
        let mut from = start + 1;
        let mut choices = Vec::with_capacity(commas.len() + 1);
        for comma in commas {
            choices.push(inside(from, comma));
            from = comma + 1;
        }
        choices.push(inside(from, close));
        choices
    };
    Some(Group {
        open: start,
        close,
        choices,
    })
}

fn expand_sequence<'w>(atoms: &[Atom<'_>]) -> Option<Vec<Vec<Atom<'w>>>> {
    if atoms.len() > 24 {
        return None;
    }
    let text: String = atoms
        .iter()
        .filter_map(|atom| {
            if let Atom::Char(c, _) = atom {
                Some(*c)
            } else {
                None
            }
        })
        .collect();
    let (from, to) = text.split_once("..")?;
    let letter = |text: &str| -> Option<u32> {
        let mut chars = text.chars();
        chars
            .next()
            .filter(|c| chars.next().is_none() && c.is_ascii_alphabetic())
            .map(u32::from)
    };
    let letters = letter(from).zip(letter(to));
    let (from, to) = letters.or_else(|| from.parse::<u32>().ok().zip(to.parse::<u32>().ok()))?;
    if from.abs_diff(to) >= MAX_SEQUENCE {
        return None;
    }
    let numbers: Vec<u32> = if from <= to {
        (from..=to).collect()
    } else {
        (to..=from).rev().collect()
    };
    let to_text = |n: u32| {
        if letters.is_some() {
            char::from_u32(n).map(String::from).unwrap_or_default()
        } else {
            n.to_string()
        }
    };
    Some(
        numbers
            .into_iter()
            .map(|n| to_text(n).chars().map(|c| Atom::Char(c, false)).collect())
            .collect(),
    )
}

fn to_word(atoms: &[Atom<'_>]) -> Word {
    let mut word = Word::new();
    for atom in atoms {
        match atom {
            Atom::Piece(piece) => word.push((*piece).clone()),
            Atom::Char(c, as_quoted) => match word.last_mut() {
                Some(Piece::Text { text, quoted }) if quoted == as_quoted => text.push(*c),
                _ => word.push(Piece::Text {
                    text: (*c).into(),
                    quoted: *as_quoted,
                }),
            },
        }
    }
    word
}
