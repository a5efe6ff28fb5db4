//! Makes untrusted text safe to display on a terminal or a page.

use super::escape;
use super::unicode::is_invisible;

/// Returns the text with all characters that a terminal would obey or nobody could see as visible
/// escapes: `\u{200b}`. A line end and a tab become `\n` and `\t`.
pub fn escape_invisible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if super::is_visible(c) => out.push(c),
            c => out.extend(c.escape_unicode()),
        }
    }
    out
}

/// Returns the text without invisible characters and terminal sequences. Joiners and selectors that
/// shape the adjacent characters are kept, and so are soft hyphens.
pub fn strip_invisible(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut at = 0;
    while let Some(c) = raw.get(at..).and_then(|rest| rest.chars().next()) {
        let before = out.chars().next_back().unwrap_or(' ');
        let shapes = matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe0e}' | '\u{fe0f}')
            && !before.is_ascii()
            && !is_invisible(before);
        let width = match c {
            '\u{1b}' => raw.get(at..).map_or(1, |rest| escape::read(rest).length),
            '\n' | '\t' | '\r' | '\u{ad}' => {
                out.push(c);
                1
            }
            c if c.is_control() || (is_invisible(c) && !shapes) => c.len_utf8(),
            c => {
                out.push(c);
                c.len_utf8()
            }
        };
        at += if c == '\u{ad}' { 2 } else { width };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::escape_invisible;

    #[test]
    fn nothing_is_obeyed_and_nothing_unseen() {
        assert_eq!(
            escape_invisible("rm \u{1b}[31m\u{202e}\u{200b}é漢\n\u{e0041}"),
            "rm \\u{1b}[31m\\u{202e}\\u{200b}é漢\\n\\u{e0041}"
        );
    }
}
