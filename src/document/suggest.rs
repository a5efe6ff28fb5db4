//! Hints for misspelled words.

/// Returns a hint for an unknown word: the nearest known word, or all of them.
pub fn suggest(word: &str, known: &[&str]) -> String {
    let nearest = known.iter().map(|name| (distance(word, name), *name)).min();
    match nearest {
        Some((edits, name)) if edits <= 1 + name.len() / 4 => format!("did you mean `{name}`?"),
        _ => {
            let mut known: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
            known.sort();
            format!("known: {}", known.join(", "))
        }
    }
}

/// Returns the Levenshtein distance. Words are short enough that quadratic time does not matter.
pub(super) fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().take(64).enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (y, cell) in b.iter().zip(row.iter_mut().skip(1)) {
            let best = (diagonal + usize::from(x != *y))
                .min(left + 1)
                .min(*cell + 1);
            diagonal = std::mem::replace(cell, best);
            left = best;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}
