//! Reads `cmd /c` and `powershell -c` as the program that starts them does: the rest of the line is
//! one text, including nested quotes.

use super::windows::base_name;
use crate::text::quick::WordSet;

/// Reports whether a parameter of PowerShell takes a value. Its name may be shortened.
pub(super) fn takes_value(name: &str) -> bool {
    static VALUED: WordSet = WordSet::new(
        "executionpolicy ep windowstyle version outputformat inputformat configurationname",
    );
    VALUED.iter().any(|valued| valued.starts_with(name))
}

/// Returns the text that a line passes to cmd.exe or PowerShell, if it starts with one of them.
pub(super) fn nested_script(text: &str) -> Option<&str> {
    let text = text.trim();
    let (first, mut rest) = text.split_once([' ', '\t'])?;
    let body = match base_name(first).as_str() {
        "cmd" => loop {
            let (flag, after) = split_word(rest)?;
            if ["/c", "/k", "/r"]
                .iter()
                .any(|run| flag.eq_ignore_ascii_case(run))
            {
                break after;
            }
            rest = after;
            if !flag.starts_with('/') {
                return None;
            }
        },
        "powershell" | "pwsh" => loop {
            let Some((flag, after)) =
                split_word(rest).filter(|(flag, _)| flag.starts_with(['-', '/']))
            else {
                break rest;
            };
            let lower = flag.to_ascii_lowercase();
            if lower.len() > 1 && "-command".starts_with(&lower) {
                break after;
            }
            if lower.starts_with("-e") && !lower.starts_with("-ex") && lower != "-ep"
                || lower.starts_with("-f")
            {
                return None;
            }
            let valued = lower.len() > 1 && lower.strip_prefix('-').is_some_and(takes_value);
            rest = if valued { split_word(after)?.1 } else { after };
        },
        _ => return None,
    };
    let body = body.trim();
    let bare = body
        .strip_prefix('"')
        .and_then(|body| body.strip_suffix('"'))
        .unwrap_or(body);
    (!bare.is_empty()).then_some(bare)
}

/// Returns the first word of a text, and the rest.
fn split_word(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let end = text.find([' ', '\t']).unwrap_or(text.len());
    (end > 0).then(|| text.split_at_checked(end)).flatten()
}

#[cfg(test)]
mod tests {
    use super::nested_script;

    #[test]
    fn what_a_shell_is_given_is_one_text() {
        for (text, expected) in [
            (
                "cmd /c \"powershell -c \"irm x | iex\"\"",
                Some("powershell -c \"irm x | iex\""),
            ),
            (
                "powershell -w hidden -c \"irm x | iex\"",
                Some("irm x | iex"),
            ),
            ("powershell iex (irm x)", Some("iex (irm x)")),
            (
                "powershell.exe -NoProfile -ep bypass -Command rd x",
                Some("rd x"),
            ),
            ("powershell -enc AAAA", None),
            ("powershell -File x.ps1", None),
            ("cmd", None),
            ("del x", None),
        ] {
            assert_eq!(nested_script(text), expected, "{text}");
        }
    }
}
