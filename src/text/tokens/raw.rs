//! Finds the end of content in which the only tag is the one that ends it.

use memchr::memchr;

/// Returns the position of the end tag of an element.
pub(super) fn end(text: &str, name: &str) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + memchr(b'<', text.as_bytes().get(from..)?)?;
        if is_tag(text, at, "/", name) {
            return Some(at);
        }
        from = at + 1;
    }
}

/// Returns the position where a script ends. In a comment, it may contain another script (13.2.5.15
/// and following).
pub(super) fn script_end(text: &str) -> Option<usize> {
    let mut from = 0;
    let mut comment = false;
    let mut inner = false;
    loop {
        let rest = text.as_bytes().get(from..)?;
        let at = from
            + rest
                .iter()
                .position(|b| *b == b'<' || (comment && *b == b'-'))?;
        let here = text.as_bytes().get(at..)?;
        from = at + 1;
        if here.starts_with(b"-->") {
            (comment, inner) = (false, false);
        } else if here.starts_with(b"<!--") && !comment {
            comment = true;
            // Its own dashes may end the comment.
            from = at + 2;
        } else if is_tag(text, at, "/", "script") {
            if !inner {
                return Some(at);
            }
            inner = false;
        } else if comment && is_tag(text, at, "", "script") {
            inner = true;
        }
    }
}

fn is_tag(text: &str, at: usize, slash: &str, name: &str) -> bool {
    let from = at + 1 + slash.len();
    text.get(at + 1..)
        .is_some_and(|rest| rest.starts_with(slash))
        && text
            .as_bytes()
            .get(from..from + name.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(name.as_bytes()))
        && matches!(
            text.as_bytes().get(from + name.len()),
            Some(b'\t' | b'\n' | 0x0C | b' ' | b'/' | b'>')
        )
}
