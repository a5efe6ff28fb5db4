//! Further readings of a string: the URLs that a page or a document in it refers to, the command
//! that a value continues with, the paths of a list, and the files that a patch changes.

use crate::detect::{Language, ReadAs};

use super::tool::Runs;
use super::{Frame, addresses, forms, last_name, names};

/// Maximum number of URLs of one text that are judged.
const REFERENCES: usize = 64;
/// Maximum length of a URL, in bytes.
const ADDRESS_BYTES: usize = 2048;
/// Text before a URL that a renderer or a database fetches by itself: SPARQL, HTML, SVG, XInclude,
/// CSS, document types, Markdown, PlantUML, Cypher, JSON Schema.
const BEFORE: [&str; 23] = [
    "!include ",
    "!includeurl ",
    "!import ",
    "csv from ",
    "headers from ",
    "$ref: ",
    "\"$ref\": ",
    "document(",
    "unparsed-text(",
    "doc(",
    "service <",
    "load <",
    "from <",
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
const DOCUMENTS: [&str; 28] = [
    "spec",
    "openapi",
    "schema",
    "cypher",
    "statement",
    "plantuml",
    "diagram",
    "source_text",
    "playlist",
    "m3u8",
    "definition",
    "html",
    "svg",
    "xml",
    "markdown",
    "md",
    "css",
    "xslt",
    "xsl",
    "dtd",
    "tex",
    "latex",
    "rst",
    "adoc",
    "asciidoc",
    "typst",
    "sparql",
    "org",
];
/// Text before and after the name of a file that a document takes in: LaTeX, AsciiDoc,
/// reStructuredText, Org.
const INCLUDES: [(&str, char); 11] = [
    ("\\input{", '}'),
    ("\\include{", '}'),
    ("\\lstinputlisting{", '}'),
    ("\\verbatiminput{", '}'),
    ("\\inputminted{", '}'),
    ("\\includegraphics{", '}'),
    ("\\includepdf{", '}'),
    ("include::", '['),
    ("include:: ", '\n'),
    ("#+include: \"", '"'),
    (":file: ", '\n'),
];

impl Frame<'_> {
    /// Returns the further readings of a string here, in addition to `read_as`.
    pub(super) fn further_readings(&self, text: &str, read_as: ReadAs) -> Vec<(String, ReadAs)> {
        let tool = &self.scope.tool;
        let mentions = tool.runs == Runs::Mentions;
        if self.covered || self.pinned || self.scope.stored || mentions && !tool.renders {
            return Vec::new();
        }
        let mut readings = Vec::new();
        if !mentions
            && !matches!(read_as, ReadAs::Shell | ReadAs::Code(_) | ReadAs::Sql)
            && forms::continues_with_command(text)
        {
            readings.push((text.to_owned(), ReadAs::Shell));
        }
        // `go_run { command: "package main\n…" }`: such a tool takes code as well as commands.
        let code = ReadAs::Code(Language::Compiled);
        if read_as == ReadAs::Shell && tool.language == Some(code) && self.scope.language.is_none()
        {
            readings.push((text.to_owned(), code));
        }
        if read_as == ReadAs::Path && names::is_plural(last_name(&self.argument)) {
            let parts = text.split(',').filter(|part| part.len() < text.len());
            readings.extend(
                parts
                    .take(REFERENCES)
                    .map(|path| (path.trim().to_owned(), ReadAs::Path)),
            );
        }
        if matches!(read_as, ReadAs::Text | ReadAs::Shell) && tool.runs != Runs::All {
            readings.extend(patched_files(text).map(|path| (path.to_owned(), ReadAs::Path)));
        }
        let name = last_name(&self.argument).to_ascii_lowercase();
        let document = DOCUMENTS.contains(&name.as_str());
        if matches!(read_as, ReadAs::Text | ReadAs::Code(_))
            && (document || tool.renders)
            && text.contains('/')
        {
            readings.extend(included_files(text).map(|file| (file.to_owned(), ReadAs::Path)));
        }
        if read_as == ReadAs::Text && (document || tool.renders) && text.contains([':', '/']) {
            let graph = name == "query" || name == "mutation";
            readings.extend(segments(text).map(|address| (address.to_owned(), ReadAs::Url)));
            readings
                .extend(references(text, graph).map(|address| (address.to_owned(), ReadAs::Url)));
        }
        readings
    }
}

/// Returns the URLs of the segments of an HLS playlist (RFC 8216, section 4): lines of their own.
fn segments(text: &str) -> impl Iterator<Item = &str> {
    let is_playlist = text.trim_start().starts_with("#EXTM3U");
    let lines = text.lines().filter(move |_| is_playlist).map(str::trim);
    lines
        .filter(|line| addresses::is_url(line))
        .take(REFERENCES)
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
                || addresses::is_url(address)
                || address.to_ascii_lowercase().starts_with("file:");
            if is_reference && addresses.len() < REFERENCES {
                addresses.push(address);
            }
        }
    }
    addresses.into_iter()
}

/// Returns the files that a document takes in, unless they are named below its own folder.
fn included_files(text: &str) -> impl Iterator<Item = &str> {
    let lower = text.to_ascii_lowercase();
    let mut files = Vec::new();
    for (before, end) in INCLUDES {
        for (at, _) in lower.match_indices(before).take(REFERENCES) {
            let rest = text.get(at + before.len()..).unwrap_or_default();
            let length = rest.find([end, '\n']).unwrap_or(rest.len());
            let file = rest.get(..length.min(ADDRESS_BYTES)).unwrap_or_default();
            let is_outside = file.starts_with(['/', '~']) || file.starts_with("..");
            if is_outside && files.len() < REFERENCES {
                files.push(file);
            }
        }
    }
    files.into_iter()
}

/// Text at the start of a line of a patch, before the name of a file: unified diffs as git writes
/// them, and the format of `apply_patch`.
const BEFORE_FILES: [&str; 8] = [
    "--- ",
    "+++ ",
    "rename to ",
    "copy to ",
    "*** Add File: ",
    "*** Update File: ",
    "*** Delete File: ",
    "*** Move to: ",
];

/// Returns the files that a patch changes; none for a text that is not a patch.
pub(super) fn patched_files(text: &str) -> impl Iterator<Item = &str> {
    let is_patch = text.contains("*** Begin Patch")
        || text.contains("\n@@ ") && text.contains("+++ ")
        || text.starts_with("diff --git ");
    let lines = text.lines().filter(move |_| is_patch);
    let files = lines.filter_map(|line| {
        let file = BEFORE_FILES
            .iter()
            .find_map(|before| line.strip_prefix(before))?;
        // A time may follow, after a tab.
        let file = file.split('\t').next().unwrap_or(file).trim();
        Some(
            file.strip_prefix("a/")
                .or_else(|| file.strip_prefix("b/"))
                .unwrap_or(file),
        )
    });
    files.filter(|file| *file != "/dev/null").take(REFERENCES)
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
    use super::{included_files, patched_files, references, segments};

    #[test]
    fn files_that_documents_take_in_are_found() {
        for (text, found) in [
            (
                "\\begin{document}\\input{/etc/passwd}\\input{a}",
                "/etc/passwd",
            ),
            (
                "= Notes\n\ninclude::/home/eve/.pgpass[]\n",
                "/home/eve/.pgpass",
            ),
            (
                ".. literalinclude:: ../../etc/shadow\n   :lines: 1",
                "../../etc/shadow",
            ),
            ("#+INCLUDE: \"~/.netrc\" src", "~/.netrc"),
            ("include::chapter.adoc[]", ""),
        ] {
            assert_eq!(included_files(text).collect::<String>(), found, "{text}");
        }
    }

    #[test]
    fn addresses_of_playlists_and_diagrams_are_found() {
        let playlist = "#EXTM3U\n#EXTINF:10,\nhttp://10.0.0.2/a.ts\n";
        assert_eq!(
            segments(playlist).collect::<Vec<_>>(),
            ["http://10.0.0.2/a.ts"]
        );
        assert_eq!(segments("see\nhttp://10.0.0.2/a.ts\n").count(), 0);
        for text in [
            "@startuml\n!include http://10.0.0.2/x\n",
            "A:\n  $ref: 'http://10.0.0.2/x'\n",
        ] {
            assert_eq!(
                references(text, false).collect::<Vec<_>>(),
                ["http://10.0.0.2/x"],
                "{text}"
            );
        }
    }

    #[test]
    fn files_of_a_patch_are_found() {
        let git = "diff --git a/x b/../../etc/y\nrename from x\nrename to ../../etc/y\n";
        assert_eq!(patched_files(git).collect::<Vec<_>>(), ["../../etc/y"]);
        let unified = "--- a/x.rs\t2026-01-01\n+++ b/../x.rs\n@@ -1 +1 @@\n-a\n+b\n";
        assert_eq!(
            patched_files(unified).collect::<Vec<_>>(),
            ["x.rs", "../x.rs"]
        );
        let apply = "*** Begin Patch\n*** Add File: ~/.bashrc\n+x\n*** End Patch";
        assert_eq!(patched_files(apply).collect::<Vec<_>>(), ["~/.bashrc"]);
        assert_eq!(patched_files("+++ b/x is how a patch begins").count(), 0);
    }

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
