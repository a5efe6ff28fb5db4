//! Finds the end of content in which the only tag is the one that ends it.

use memchr::memchr;

/// Returns the position of the end tag of an element.
pub(super) fn element_end(text: &str, name: &str) -> Option<usize> {
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
    let mut in_comment = false;
    let mut in_inner = false;
    loop {
        let rest = text.as_bytes().get(from..)?;
        let at = from
            + rest
                .iter()
                .position(|b| *b == b'<' || (in_comment && *b == b'-'))?;
        let tail = text.as_bytes().get(at..)?;
        from = at + 1;
        if tail.starts_with(b"-->") {
            (in_comment, in_inner) = (false, false);
        } else if tail.starts_with(b"<!--") && !in_comment {
            in_comment = true;
            // Its own dashes may end the comment.
            from = at + 2;
        } else if is_tag(text, at, "/", "script") {
            if !in_inner {
                return Some(at);
            }
            in_inner = false;
        } else if in_comment && is_tag(text, at, "", "script") {
            in_inner = true;
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
