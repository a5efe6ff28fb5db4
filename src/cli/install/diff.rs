//! Diffs for people, without the secrets that clients' files contain.

use std::ops::Range;
use std::path::Path;

use similar::TextDiff;

use super::client::Format;
use super::edit::{Edit, apply};
use crate::record::terminal_safe;

/// The placeholder of a secret.
const PLACEHOLDER: &str = "…";

/// Returns a unified diff of a file, with the values of variables, headers and secrets omitted.
pub(super) fn diff(path: &Path, format: Format, old: &str, new: &str) -> String {
    let old = mask_secrets(format, old);
    let new = mask_secrets(format, new);
    let name = path.display().to_string();
    let text = TextDiff::from_lines(&old, &new)
        .unified_diff()
        .context_radius(2)
        .header(&name, &name)
        .to_string();
    // Such files come with other people's projects, so terminal control sequences are escaped.
    text.split('\n')
        .map(|line| terminal_safe(&without_secrets(line)).into_owned())
        .collect::<Vec<_>>()
        .join("\n")
}

/// Removes the passwords and queries of URLs from a line.
fn without_secrets(line: &str) -> String {
    let mut parts = line.split("://");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part
            .find(|c: char| c.is_whitespace() || matches!(c, '"' | '\''))
            .unwrap_or(part.len());
        let (url, rest) = part.split_at(end);
        let (url, query) = url
            .split_once('?')
            .map_or((url, ""), |(url, _)| (url, "?…"));
        let (authority, path) = url.find('/').map_or((url, ""), |slash| url.split_at(slash));
        let host = authority
            .rsplit_once('@')
            .map_or(authority.to_owned(), |(_, host)| {
                format!("{PLACEHOLDER}@{host}")
            });
        out.push_str(&format!("://{host}{path}{query}{rest}"));
    }
    out
}

/// Reports whether a word of a command line contains a secret: `--token=…`, `KEY=…`, a URL with a
/// password, a long mixed word.
pub(super) fn contains_secret(word: &str) -> bool {
    let has_secret_name = word
        .split_once('=')
        .is_some_and(|(name, value)| !value.is_empty() && crate::config::is_secret_name(name));
    let has_password = word.split_once("://").is_some_and(|(_, rest)| {
        let authority = rest.split('/').next().unwrap_or_default();
        authority.contains('@')
    });
    let kinds: [fn(&char) -> bool; 3] = [
        char::is_ascii_lowercase,
        char::is_ascii_uppercase,
        char::is_ascii_digit,
    ];
    let looks_random = word.len() >= 24
        && word
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+' | '='))
        && kinds
            .iter()
            .filter(|kind| word.chars().any(|c| kind(&c)))
            .count()
            >= 2
        && word.chars().any(|c| c.is_ascii_digit());
    has_secret_name || has_password || looks_random
}

fn mask_secrets(format: Format, text: &str) -> String {
    let private: Vec<Range<usize>> = match format {
        Format::Json { .. } | Format::OpenCode => super::jsonc::private_spans(text),
        Format::Toml { .. } => super::toml::private_spans(text),
    };
    let quote = if matches!(format, Format::Toml { .. }) {
        "\""
    } else {
        ""
    };
    let edits = private
        .into_iter()
        .map(|span| Edit::new(span, format!("{quote}{PLACEHOLDER}{quote}")))
        .collect();
    apply(text, edits).unwrap_or_else(|| PLACEHOLDER.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_shown_without_what_lets_one_in_and_nothing_is_obeyed() {
        let line = r#"+ "url": "https://ann:hunter1@h.example:1/mcp?a=1&key=hunter2", "b": "http://c/d" x://?y"#;
        assert_eq!(
            without_secrets(line),
            r#"+ "url": "https://…@h.example:1/mcp?…", "b": "http://c/d" x://?…"#
        );
        let text = diff(
            Path::new("f"),
            Format::Json { servers: "s" },
            "{}\n",
            "{} // \u{202e}\u{9b}2J ä\n",
        );
        assert_contains!(text, "+{} // \\u{202e}\\u{9b}2J ä\n", "-{}\n");
    }

    #[test]
    fn no_secret_is_in_a_diff() {
        let json = r#"{"mcpServers":{"a":{"command":"npx",
"args":["x","--api-key","hunter2","--token=hunter3","postgres://u:hunter4@h/db"],
"env":{"A":"hunter5"},"headers":{"X":"hunter6"},"apiKey":"hunter7"}}}"#;
        let toml = "[mcp_servers.a]\nurl = \"u\"\nhttp_headers = { X = \"hunter1\" }\nbearer_token = \"hunter2\"\nargs = [\"--token\", \"hunter3\"]\n[mcp_servers.a.env]\nB = \"hunter4\"\n";
        for (format, text) in [
            (
                Format::Json {
                    servers: "mcpServers",
                },
                json,
            ),
            (
                Format::Toml {
                    servers: "mcp_servers",
                },
                toml,
            ),
        ] {
            let text = diff(
                Path::new("f"),
                format,
                text,
                &text.replace("npx", "lychgate").replace("\"u\"", "\"v\""),
            );
            assert!(!text.contains("hunter"), "{text}");
            assert!(
                text.contains("lychgate") || text.contains("+url = \"v\""),
                "{text}"
            );
        }
    }
}
