//! Web pages returned in place of MCP: a `url` that leads to a site's root, a login page, a proxy's
//! error.

/// Maximum number of bytes that are examined, and of characters that are shown.
const MAX_EXAMINED_BYTES: usize = 8 << 10;
const MAX_SHOWN_CHARS: usize = 100;

/// Reports whether a body is a web page.
pub(super) fn is_html(body: &[u8]) -> bool {
    let text = body.trim_ascii_start();
    let text = text
        .strip_prefix(b"\xef\xbb\xbf")
        .unwrap_or(text)
        .trim_ascii_start();
    let starts_with_tag = |tag: &[u8]| {
        text.get(..tag.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(tag))
    };
    [
        &b"<!doctype html"[..],
        b"<html",
        b"<head",
        b"<body",
        b"<title",
    ]
    .into_iter()
    .any(starts_with_tag)
}

/// Returns the first visible words of a page, its title first, for a log: on one line, with all
/// control characters escaped so that they cannot affect a terminal.
pub(super) fn first_words(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body.get(..MAX_EXAMINED_BYTES).unwrap_or(body));
    let mut words = String::new();
    let mut rest = &*text;
    while let Some((before, after)) = rest.split_once('<') {
        words.push_str(before);
        words.push(' ');
        // The content of these elements is not displayed.
        let hidden_tag = ["script", "style"].into_iter().find(|name| {
            after
                .get(..name.len())
                .is_some_and(|tag| tag.eq_ignore_ascii_case(name))
        });
        let end = hidden_tag.map_or(0, |name| {
            after
                .to_ascii_lowercase()
                .find(&format!("</{name}"))
                .unwrap_or(after.len())
        });
        rest = after
            .get(end..)
            .and_then(|tag| tag.split_once('>'))
            .map_or("", |(_, rest)| rest);
    }
    words.push_str(rest);
    let words: Vec<&str> = words.split_whitespace().collect();
    words
        .join(" ")
        .chars()
        .take(MAX_SHOWN_CHARS)
        .flat_map(char::escape_debug)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_known_by_their_beginning() {
        for page in [
            "<!DOCTYPE html><p>",
            " \n<html>",
            "\u{feff}<HTML lang=en>",
            "<head>",
        ] {
            assert!(is_html(page.as_bytes()), "{page}");
        }
        for other in ["", "<", "<?xml version='1.0'?>", "plain <html>", "{}", "<p"] {
            assert!(!is_html(other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn the_first_words_are_those_that_people_see_and_steer_no_terminal() {
        let page =
            b"<!doctype html><title>Sign in</title><STYLE>p{}</style><script>if(a<b)x()</script><p>to\n<b>Example</b>\x1b[2J</p>";
        assert_eq!(first_words(page), "Sign in to Example \\u{1b}[2J");
        assert_eq!(first_words("<p>\u{202e}x".as_bytes()), "\\u{202e}x");
        assert_eq!(first_words(b"<p>a<script>never closed"), "a");
        assert!(first_words("word ".repeat(1000).as_bytes()).len() <= MAX_SHOWN_CHARS);
    }
}
