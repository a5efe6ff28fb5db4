//! Makes output of a program safe to show on a terminal, on a page or in the log.

use super::redact::Redactor;
use crate::text::is_visible;

/// Returns a line without line breaks, terminal sequences and invisible characters, with secrets
/// masked, in about `limit` bytes. `secrets` are secrets that the program was given, which are
/// masked too.
pub fn printable(line: &[u8], secrets: &[Box<str>], limit: usize) -> String {
    // A longer line is cut first: nobody reads that far, and masking takes time.
    let line = line.get(..limit.saturating_mul(8)).unwrap_or(line);
    let mut plain = without_sequences(&String::from_utf8_lossy(line));
    for secret in secrets {
        plain = plain.replace(&**secret, "[redacted]");
    }
    Redactor::shared().map_or_else(
        || "[not shown]".to_owned(),
        |redactor| redactor.text(&plain, limit).into_owned(),
    )
}

/// Removes terminal sequences (ECMA-48, 5.4 and 5.6) from a text; other invisible characters become
/// spaces.
fn without_sequences(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.trim().chars();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' => match rest.next() {
                // Parameters and a final byte.
                Some('[') => drop(rest.find(|c| ('\u{40}'..='\u{7e}').contains(c))),
                // A title or a link, to BEL or to the backslash of ST.
                Some(']') => drop(rest.find(|c| matches!(c, '\u{7}' | '\\'))),
                _ => {}
            },
            c if is_visible(c) => out.push(c),
            _ => out.push(' '),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_plain_and_has_no_secrets() {
        let secrets = ["hunter2-hunter2".into()];
        let cases: [(&[u8], &str); 6] = [
            (b"GITHUB_TOKEN is not set\r\n", "GITHUB_TOKEN is not set"),
            (b"\x1b[31;1mError:\x1b[0m no\tkey\x07", "Error: no key "),
            (
                b"\x1b]8;;http://example.org\x07link\x1b]0;title\x1b\\ \xff",
                "link \u{fffd}",
            ),
            ("a\u{202e}b\u{200b}c".as_bytes(), "a b c"),
            (
                b"got hunter2-hunter2 from the config",
                "got [redacted] from the config",
            ),
            (
                b"using ghp_abcdefghijklmnop0123456789",
                "using [redacted sha256:",
            ),
        ];
        for (line, expected) in cases {
            let sanitized = printable(line, &secrets, 200);
            assert!(
                sanitized.starts_with(expected),
                "{sanitized:?} for {expected:?}"
            );
        }
        assert!(printable(&b"long words ".repeat(10_000), &[], 100).len() < 150);
    }
}
