//! Further readings of a string: the URLs that a page or a document in it refers to, and the
//! command that a value continues with.

use crate::detect::ReadAs;

use super::tool::Runs;
use super::{Frame, forms, last_name, look};

/// Maximum number of URLs of one text that are judged.
const REFERENCES: usize = 64;
/// Maximum length of a URL, in bytes.
const ADDRESS_BYTES: usize = 2048;
/// Text before a URL that a renderer fetches by itself: HTML, SVG, XInclude, CSS, document types,
/// Markdown.
const BEFORE: [&str; 10] = [
    "src=",
    "href=",
    "data=",
    "poster=",
    "url(",
    "@import",
    "system ",
    "](",
    "schemalocation=",
    "action=",
];
/// Names of arguments that contain a document.
const DOCUMENTS: [&str; 9] = [
    "html", "svg", "xml", "markdown", "md", "css", "xslt", "xsl", "dtd",
];

impl Frame<'_> {
    /// Returns the further readings of a string here, in addition to `read_as`.
    pub(super) fn further_readings(&self, text: &str, read_as: ReadAs) -> Vec<(String, ReadAs)> {
        let tool = &self.scope.tool;
        if self.covered || self.pinned || self.scope.stored || tool.runs == Runs::Mentions {
            return Vec::new();
        }
        let mut readings = Vec::new();
        if !matches!(read_as, ReadAs::Shell | ReadAs::Code(_) | ReadAs::Sql)
            && forms::continues_with_command(text)
        {
            readings.push((text.to_owned(), ReadAs::Shell));
        }
        let name = last_name(&self.argument).to_ascii_lowercase();
        let document = DOCUMENTS.contains(&name.as_str());
        if read_as == ReadAs::Text && (document || tool.renders) && text.contains([':', '/']) {
            let graph = name == "query" || name == "mutation";
            readings
                .extend(references(text, graph).map(|address| (address.to_owned(), ReadAs::Url)));
        }
        readings
    }
}

/// Returns the URLs that a document refers to in such a way that rendering or parsing it fetches
/// them; with `arguments`, also those that a query passes as arguments.
fn references(text: &str, arguments: bool) -> impl Iterator<Item = &str> {
    let lower = text.to_ascii_lowercase();
    let mut addresses = Vec::new();
    for prefix in BEFORE.into_iter().chain(arguments.then_some(": \"")) {
        for (at, _) in lower.match_indices(prefix).take(REFERENCES) {
            let start = at + prefix.len();
            if prefix == "href=" && is_anchor(&lower, at) || prefix == "](" && !is_image(&lower, at)
            {
                continue;
            }
            let Some(rest) = text
                .get(start..)
                .map(|rest| rest.trim_start_matches([' ', '"', '\'', '(', '\n']))
            else {
                continue;
            };
            let rest = rest
                .strip_prefix("url(")
                .unwrap_or(rest)
                .trim_start_matches(['"', '\'']);
            let end = rest
                .find(['"', '\'', ')', '>', ' ', '\n'])
                .unwrap_or(rest.len())
                .min(ADDRESS_BYTES);
            let address = rest.get(..end).unwrap_or_default();
            let is_reference = address.starts_with("//")
                || look::is_url(address)
                || address.to_ascii_lowercase().starts_with("file:");
            if is_reference && addresses.len() < REFERENCES {
                addresses.push(address);
            }
        }
    }
    addresses.into_iter()
}

/// Returns whether the bracket that closes at `at` belongs to a Markdown image.
fn is_image(lower: &str, at: usize) -> bool {
    let before = lower.get(..at).unwrap_or_default();
    before
        .rfind('[')
        .and_then(|open| before.get(..open))
        .is_some_and(|before| before.ends_with('!'))
}

/// Returns whether the attribute at `at` belongs to a link that somebody has to follow.
fn is_anchor(lower: &str, at: usize) -> bool {
    let before = lower.get(..at).unwrap_or_default();
    let tag = before
        .rfind('<')
        .and_then(|open| before.get(open + 1..))
        .unwrap_or_default();
    tag.starts_with(['a', 'A']) && tag.get(1..2).is_some_and(|next| next.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::references;

    #[test]
    fn what_is_fetched_is_told_from_what_is_linked() {
        for (text, found) in [
            ("<img src=\"http://a.example/x\">", "http://a.example/x"),
            (
                "<link rel=stylesheet href='//a.example/x'>",
                "//a.example/x",
            ),
            ("<a href=\"http://a.example/\">x</a>", ""),
            ("![x](http://a.example/y)", "http://a.example/y"),
            ("<!ENTITY e SYSTEM \"file:///etc/x\">", "file:///etc/x"),
            ("@import url(http://a.example/z);", "http://a.example/z"),
            ("<img src=\"/logo.png\">", ""),
        ] {
            let mut all: Vec<&str> = references(text, false).collect();
            all.dedup();
            all.truncate(1);
            assert_eq!(all.concat(), found, "{text}");
        }
        assert_eq!(
            references("m(url: \"http://a.example/\")", true).collect::<Vec<_>>(),
            ["http://a.example/"]
        );
    }
}
