//! Masks text that Markdown shows as code, so that it is not read as markup.

use std::ops::Range;

/// Replacements for `<` and `&` in code that Markdown shows verbatim: control characters without a
/// use, one byte long, so that every other byte keeps its position.
const MASKS: [(char, char); 2] = [('<', '\u{1}'), ('&', '\u{2}')];
/// Masks the code in a text; returns `None` if there is nothing to mask.
pub(super) fn apply(text: &str, code: &[Range<usize>]) -> Option<String> {
    if code.is_empty() || MASKS.iter().any(|(_, mask)| text.contains(*mask)) {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for range in code {
        out.push_str(text.get(at..range.start)?);
        let part = text.get(range.clone())?;
        out.extend(part.chars().map(|c| {
            MASKS
                .iter()
                .find(|(from, _)| *from == c)
                .map_or(c, |(_, mask)| *mask)
        }));
        at = range.end;
    }
    out.push_str(text.get(at..)?);
    Some(out)
}

/// Removes the masks.
pub(super) fn remove(text: &mut String) {
    for (c, mask) in MASKS {
        *text = text.replace(mask, c.encode_utf8(&mut [0; 4]));
    }
}
