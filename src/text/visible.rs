//! A stranger's text on a terminal or a page.

/// The text with everything that a terminal would obey, or nobody could see, as an escape that everybody can: `\u{200b}`.
/// A line's end and a tab are `\n` and `\t`.
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if super::shows(c) => out.push(c),
            c => out.extend(c.escape_unicode()),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::visible;

    #[test]
    fn nothing_is_obeyed_and_nothing_unseen() {
        assert_eq!(visible("rm \u{1b}[31m\u{202e}\u{200b}é漢\n\u{e0041}"), "rm \\u{1b}[31m\\u{202e}\\u{200b}é漢\\n\\u{e0041}");
    }
}
