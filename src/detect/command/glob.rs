//! Shell patterns: `*`, `?` and `[…]`.

/// Maximum number of characters of a pattern or a text that are compared.
const MAX_CHARS: usize = 256;

/// Reports whether `pattern` matches all of `text`. Backtracks only to the last star: at worst
/// length × length, on words of limited length.
pub(in crate::detect) fn matches(pattern: &str, text: &str) -> bool {
    if pattern.is_ascii() && text.is_ascii() {
        let capped = |text: &'_ str| text.len().min(MAX_CHARS);
        let pattern_end = capped(pattern);
        let text_end = capped(text);
        let at = |bytes: &str, at: usize, end: usize| {
            bytes
                .as_bytes()
                .get(at)
                .filter(|_| at < end)
                .map(|b| char::from(*b))
        };
        return fits(&|p| at(pattern, p, pattern_end), &|t| at(text, t, text_end));
    }
    let pattern: Vec<char> = pattern.chars().take(MAX_CHARS).collect();
    let text: Vec<char> = text.chars().take(MAX_CHARS).collect();
    fits(&|p| pattern.get(p).copied(), &|t| text.get(t).copied())
}

fn fits(pattern: &impl Fn(usize) -> Option<char>, text: &impl Fn(usize) -> Option<char>) -> bool {
    let mut p = 0;
    let mut t = 0;
    let mut backtrack: Option<(usize, usize)> = None;
    while let Some(c) = text(t) {
        let step = match pattern(p) {
            Some('*') => {
                backtrack = Some((p, t));
                p += 1;
                continue;
            }
            Some('?') => Some(p + 1),
            Some('[') => match_class(pattern, p, c),
            Some(literal) => (literal == c).then_some(p + 1),
            None => None,
        };
        match (step, backtrack) {
            (Some(next), _) => {
                p = next;
                t += 1;
            }
            (None, Some((star, from))) => {
                backtrack = Some((star, from + 1));
                p = star + 1;
                t = from + 1;
            }
            (None, None) => return false,
        }
    }
    (p..).map_while(pattern).all(|c| c == '*')
}

/// Returns the index after `[…]` if it matches `c`.
fn match_class(pattern: &impl Fn(usize) -> Option<char>, start: usize, c: char) -> Option<usize> {
    let mut at = start + 1;
    let negated = matches!(pattern(at), Some('!' | '^'));
    at += usize::from(negated);
    let first = at;
    let mut matched = false;
    loop {
        let low = pattern(at)?;
        if low == ']' && at > first {
            return (matched != negated).then_some(at + 1);
        }
        if low == '['
            && pattern(at + 1) == Some(':')
            && let Some((name, after)) = class_name(pattern, at + 2)
        {
            matched |= is_in_class(&name, c);
            at = after;
            continue;
        }
        match pattern(at + 2) {
            Some(high) if pattern(at + 1) == Some('-') && high != ']' => {
                matched |= (low..=high).contains(&c);
                at += 3;
            }
            _ => {
                matched |= low == c;
                at += 1;
            }
        }
    }
}

/// Returns the name of a class such as `[:lower:]` that begins at `at`, and the index after it.
fn class_name(pattern: &impl Fn(usize) -> Option<char>, at: usize) -> Option<(String, usize)> {
    let name: String = (at..)
        .map_while(pattern)
        .take_while(char::is_ascii_lowercase)
        .collect();
    let end = at + name.len();
    (pattern(end) == Some(':') && pattern(end + 1) == Some(']')).then_some((name, end + 2))
}

/// Reports whether a character is in a class (POSIX, section 9.3.5).
fn is_in_class(name: &str, c: char) -> bool {
    match name {
        "lower" => c.is_lowercase(),
        "upper" => c.is_uppercase(),
        "alpha" => c.is_alphabetic(),
        "digit" => c.is_ascii_digit(),
        "alnum" => c.is_alphanumeric(),
        "xdigit" => c.is_ascii_hexdigit(),
        "space" | "blank" => c.is_whitespace(),
        "punct" => c.is_ascii_punctuation(),
        "graph" => c.is_ascii_graphic(),
        "print" => !c.is_control(),
        _ => false,
    }
}

/// Returns the offsets at which a prefix or suffix may end or start.
fn boundaries(text: &str) -> impl Iterator<Item = usize> {
    let starts = text.char_indices().map(|(at, _)| at);
    starts.chain([text.len()]).take(256)
}

/// Removes a prefix, as `${text#pattern}` or, if `longest`, `${text##pattern}` does.
pub(super) fn trim_start<'t>(text: &'t str, pattern: &str, longest: bool) -> &'t str {
    let mut fits = boundaries(text).filter(|end| matches(pattern, text.get(..*end).unwrap_or("")));
    let end = if longest { fits.last() } else { fits.next() };
    end.and_then(|end| text.get(end..)).unwrap_or(text)
}

/// Removes a suffix, as `${text%pattern}` or, if `longest`, `${text%%pattern}` does.
pub(super) fn trim_end<'t>(text: &'t str, pattern: &str, longest: bool) -> &'t str {
    let mut fits =
        boundaries(text).filter(|start| matches(pattern, text.get(*start..).unwrap_or("")));
    let start = if longest { fits.next() } else { fits.last() };
    start.and_then(|start| text.get(..start)).unwrap_or(text)
}

/// Replaces matches, as `${text/pattern/by}` or, if `all`, `${text//pattern/by}` does: the longest
/// match at each position. Positions beyond the first 256 characters are left unchanged.
pub(super) fn replace(text: &str, pattern: &str, by: &str, all: bool) -> String {
    if !pattern.contains(['*', '?', '[']) {
        return if all {
            text.replace(pattern, by)
        } else {
            text.replacen(pattern, by, 1)
        };
    }
    let limit = text
        .char_indices()
        .nth(MAX_CHARS)
        .map_or(text.len(), |(at, _)| at);
    let mut out = String::new();
    let mut at = 0;
    let mut tries = MAX_CHARS * 4;
    while at < limit {
        let ends = (at + 1..=limit)
            .rev()
            .filter(|end| text.is_char_boundary(*end))
            .take(tries);
        let mut tried = 0;
        let end = ends.inspect(|_| tried += 1).find(|end| {
            text.get(at..*end)
                .is_some_and(|part| matches(pattern, part))
        });
        tries -= tried;
        let next = text
            .get(at..)
            .and_then(|rest| rest.chars().next())
            .map_or(at + 1, |c| at + c.len_utf8());
        match end {
            Some(end) => {
                out.push_str(by);
                at = end;
                if !all {
                    break;
                }
            }
            None => {
                out.push_str(text.get(at..next).unwrap_or_default());
                at = next;
            }
        }
    }
    out.push_str(text.get(at..).unwrap_or_default());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_match_is_replaced() {
        assert_eq!(replace("bash", "*", "rm", false), "rm");
        assert_eq!(replace("a-b-c", "?-", "", false), "b-c");
        assert_eq!(replace("a-b-c", "?-", "", true), "c");
        assert_eq!(replace("xrmx", "x", "", true), "rm");
        assert_eq!(replace("é1é2", "[0-9]", "", true), "éé");
        assert_eq!(replace("a1 B", "[[:digit:][:upper:]]", "", true), "a ");
        let long = "ab".repeat(400);
        assert!(replace(&long, "*z", "", true) == long && replace(&long, "c?", "", true) == long);
    }
}
