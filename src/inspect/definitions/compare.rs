//! Compares two definitions line by line, for people who decide which of them is used.

/// Maximum number of lines that are compared; a longer text is shown whole, old before new.
const LINES: usize = 2000;

/// Returns the lines of two texts: those of both, of the old one only and of the new one only. The
/// result is for a person to read, so the longest common subsequence is computed in the simple way.
pub fn diff_lines<'t>(old: &'t str, new: &'t str) -> Vec<(char, &'t str)> {
    let old: Vec<&str> = old.lines().collect();
    let new: Vec<&str> = new.lines().collect();
    if old.len() > LINES || new.len() > LINES {
        return old
            .into_iter()
            .map(|line| ('-', line))
            .chain(new.into_iter().map(|line| ('+', line)))
            .collect();
    }
    let width = new.len() + 1;
    let mut longest = vec![0usize; (old.len() + 1) * width];
    let at = |row: usize, column: usize| row * width + column;
    for (row, a) in old.iter().enumerate().rev() {
        for (column, b) in new.iter().enumerate().rev() {
            let get = |index: usize| longest.get(index).copied().unwrap_or(0);
            let best = if a == b {
                get(at(row + 1, column + 1)) + 1
            } else {
                get(at(row + 1, column)).max(get(at(row, column + 1)))
            };
            if let Some(cell) = longest.get_mut(at(row, column)) {
                *cell = best;
            }
        }
    }
    let mut out = Vec::new();
    let mut row = 0;
    let mut column = 0;
    loop {
        let get = |index: usize| longest.get(index).copied().unwrap_or(0);
        match (old.get(row), new.get(column)) {
            (None, None) => return out,
            (Some(a), Some(b)) if a == b => {
                out.push((' ', *a));
                (row, column) = (row + 1, column + 1);
            }
            (Some(a), b) if b.is_none() || get(at(row + 1, column)) >= get(at(row, column + 1)) => {
                out.push(('-', *a));
                row += 1;
            }
            (_, Some(b)) => {
                out.push(('+', *b));
                column += 1;
            }
            (Some(_), None) => return out,
        }
    }
}
