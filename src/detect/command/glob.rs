//! Shell patterns: `*`, `?` and `[…]`.

/// Whether `pattern` matches all of `text`. Backtracks to the last star only: length × length at worst, on capped words.
pub(in crate::detect) fn matches(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().take(256).collect();
    let text: Vec<char> = text.chars().take(256).collect();
    let (mut p, mut t) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while t < text.len() {
        let step = match pattern.get(p) {
            Some('*') => {
                back = Some((p, t));
                p += 1;
                continue;
            }
            Some('?') => Some(p + 1),
            Some('[') => class(&pattern, p, text.get(t).copied().unwrap_or_default()),
            Some(c) => (Some(c) == text.get(t)).then_some(p + 1),
            None => None,
        };
        match (step, back) {
            (Some(next), _) => {
                p = next;
                t += 1;
            }
            (None, Some((star, from))) => {
                back = Some((star, from + 1));
                p = star + 1;
                t = from + 1;
            }
            (None, None) => return false,
        }
    }
    pattern.get(p..).is_none_or(|rest| rest.iter().all(|c| *c == '*'))
}

/// The index behind `[…]` if it takes `c`.
fn class(pattern: &[char], start: usize, c: char) -> Option<usize> {
    let mut at = start + 1;
    let negated = matches!(pattern.get(at), Some('!' | '^'));
    at += usize::from(negated);
    let first = at;
    let mut taken = false;
    loop {
        let low = *pattern.get(at)?;
        if low == ']' && at > first {
            return (taken != negated).then_some(at + 1);
        }
        if pattern.get(at + 1) == Some(&'-') && pattern.get(at + 2).is_some_and(|high| *high != ']') {
            taken |= (low..=*pattern.get(at + 2)?).contains(&c);
            at += 3;
        } else {
            taken |= low == c;
            at += 1;
        }
    }
}

/// `${text#pattern}` and, if `longest`, `${text##pattern}`.
pub(super) fn trim_start<'t>(text: &'t str, pattern: &str, longest: bool) -> &'t str {
    let ends = text.char_indices().map(|(at, _)| at).chain([text.len()]).take(256);
    let mut fits = ends.filter(|end| matches(pattern, text.get(..*end).unwrap_or("")));
    let end = if longest { fits.last() } else { fits.next() };
    end.and_then(|end| text.get(end..)).unwrap_or(text)
}

/// `${text%pattern}` and, if `longest`, `${text%%pattern}`.
pub(super) fn trim_end<'t>(text: &'t str, pattern: &str, longest: bool) -> &'t str {
    let starts = text.char_indices().map(|(at, _)| at).chain([text.len()]).take(256);
    let mut fits = starts.filter(|start| matches(pattern, text.get(*start..).unwrap_or("")));
    let start = if longest { fits.next() } else { fits.last() };
    start.and_then(|start| text.get(..start)).unwrap_or(text)
}
