//! Keeps what Markdown shows as code from being read as markup.

use std::ops::Range;

/// Replace `<` and `&` in code that Markdown shows as it is. Control characters without a use, one byte long, so that every
/// other byte keeps its place.
const MASKS: [(char, char); 2] = [('<', '\u{1}'), ('&', '\u{2}')];
/// Puts masks on what is code; `None` where there is nothing to put them on.
pub(super) fn put_on(text: &str, code: &[Range<usize>]) -> Option<String> {
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

/// Takes them off again.
pub(super) fn take_off(text: &mut String) {
    for (c, mask) in MASKS {
        *text = text.replace(mask, c.encode_utf8(&mut [0; 4]));
    }
}
