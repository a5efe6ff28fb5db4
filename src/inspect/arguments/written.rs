//! Texts that a call writes to files according to its own arguments.

use std::cell::LazyCell;
use std::collections::HashMap;

use super::names::{self, Head};
use super::words::Words;
use super::written_code::{self, Code};
use super::{Units, last_name, references};
use crate::detect::ReadAs;
use crate::message::Role;

/// A text that is written to a file.
pub(in crate::inspect) struct Written<'u> {
    pub(in crate::inspect) path: &'u str,
    pub(in crate::inspect) text: &'u str,
    /// Whether it is added to the existing content instead of replacing it.
    pub(in crate::inspect) appends: bool,
}

impl<'u> Written<'u> {
    /// Returns the code in the text.
    pub(in crate::inspect) fn code(&self) -> Vec<Code<'u>> {
        written_code::code_of(self.path, self.text)
    }
}

/// Last words of the names of arguments with the content of a file.
const WHOLE: [&str; 27] = [
    "content",
    "contents",
    "text",
    "data",
    "body",
    "code",
    "source",
    "script",
    "lines",
    "line",
    "value",
    "payload",
    "input",
    "string",
    "bytes",
    "newcontent",
    "hcl",
    "xml",
    "json",
    "toml",
    "html",
    "css",
    "hook",
    "snippet",
    "kts",
    "filetext",
    "blob",
];
/// Words of the names of texts that are removed from a file.
const REMOVED: [&str; 5] = ["old", "find", "search", "remove", "before"];
/// Words of the names of texts next to a path that do not become the content of the file.
const OTHERS: [&str; 15] = [
    "pattern",
    "description",
    "comment",
    "message",
    "expected",
    "query",
    "prompt",
    "instructions",
    "instruction",
    "title",
    "reason",
    "path",
    "file",
    "name",
    "target",
];
/// Words of the names of arguments that are inserted into the existing content.
const PARTS: [&str; 9] = [
    "new",
    "insert",
    "insertion",
    "append",
    "replacement",
    "replace",
    "addition",
    "edit",
    "edits",
];
/// Tools that add to a file.
const ADDS: [&str; 6] = ["append", "insert", "edit", "replace", "patch", "update"];
/// Tools that save what they fetch, even if no argument names the file.
const FETCHES: [&str; 4] = ["download", "wget", "curl", "downloader"];
/// Tools that send their files rather than write them.
const SENDS: [&str; 8] = [
    "upload", "post", "send", "put", "submit", "attach", "share", "publish",
];
/// Words in the names of arguments with a text that a system is set up by.
const SETUPS: [&str; 8] = [
    "manifest",
    "manifests",
    "yaml",
    "yml",
    "dockerfile",
    "compose",
    "playbook",
    "workflow",
];
/// Extensions of files that people read. What has no extension (`Makefile`, `.bashrc`) is a
/// source.
const DOCUMENTS: [&str; 22] = [
    "md", "markdown", "mdx", "txt", "rst", "adoc", "asciidoc", "org", "html", "htm", "csv", "tsv",
    "log", "tex", "ipynb", "jsonl", "pdf", "docx", "rtf", "eml", "po", "diff",
];
/// Names of files without an extension that people read.
const DOCUMENT_NAMES: [&str; 6] = [
    "readme",
    "changelog",
    "license",
    "notes",
    "todo",
    "contributing",
];
/// Minimum length of a patch, or of a text that a system is set up by, in bytes.
const SOURCE_BYTES: usize = 24;
/// Maximum number of steps from the object that contains a path down to a text.
const STEPS: usize = 4;
/// Maximum number of texts that are reported for one call.
const TEXTS: usize = 16;

impl Units<'_> {
    /// Returns every text that is next to a path, or below one, and whose name indicates that it is
    /// the content of the file.
    pub(in crate::inspect) fn written_texts(&self, tool: &str) -> Vec<Written<'_>> {
        let values = || self.units.iter().filter(|unit| !unit.joined);
        let mut paths_by_parent: HashMap<Option<usize>, &str> = HashMap::new();
        let mut outer_paths: HashMap<Option<usize>, &str> = HashMap::new();
        let mut paths_by_node: HashMap<usize, &str> = HashMap::new();
        for unit in values().filter(|unit| unit.read_as == ReadAs::Path) {
            match unit.role {
                Role::Value => {
                    let parent = self.parent(unit.node);
                    paths_by_parent.entry(parent).or_insert(&unit.text);
                    // `{ "target": { "path": "…" }, "text": "…" }`
                    if let Some(parent) = parent {
                        let outer = self.parent(parent);
                        outer_paths.entry(outer).or_insert(&unit.text);
                    }
                }
                Role::Key => drop(paths_by_node.insert(unit.node, &unit.text)),
            }
        }
        if paths_by_parent.is_empty() && paths_by_node.is_empty() {
            return Vec::new();
        }
        let tool_adds = LazyCell::new(|| {
            Words::new(tool)
                .list()
                .iter()
                .any(|word| ADDS.contains(word))
        });
        let texts = values().filter(|unit| {
            unit.role == Role::Value && !matches!(unit.read_as, ReadAs::Path | ReadAs::Url)
        });
        let writes = texts.filter_map(|unit| {
            if let Some(path) = paths_by_node.get(&unit.node) {
                return Some(Written {
                    path,
                    text: &unit.text,
                    appends: *tool_adds,
                });
            }
            let name = Words::new(last_name(&unit.argument));
            let names = name.list();
            let is_part = names.iter().any(|name| PARTS.contains(name));
            let is_removed = names.iter().any(|name| REMOVED.contains(name));
            let is_whole = names.last().is_some_and(|name| WHOLE.contains(name));
            // Whatever it is called, a text of several lines next to a path is the content.
            let is_long =
                unit.text.contains('\n') && !names.iter().any(|name| OTHERS.contains(name));
            let is_content = is_part || !is_removed && (is_whole || is_long);
            let mut at = Some(unit.node);
            let path = (0..STEPS).filter(|_| is_content).find_map(|_| {
                at = self.parent(at?);
                paths_by_parent.get(&at).or_else(|| outer_paths.get(&at))
            })?;
            Some(Written {
                path,
                text: &unit.text,
                appends: is_part || *tool_adds,
            })
        });
        writes.take(TEXTS).collect()
    }

    /// Returns the texts that are written to files of code, of a build or of settings, the patches,
    /// and the texts that a system is set up by.
    pub(in crate::inspect) fn source_texts<'u>(&'u self, written: &[Written<'u>]) -> Vec<&'u str> {
        let sources = written.iter().filter(|written| {
            !is_document(written.path) && !written_code::has_samples(written.path, written.text)
        });
        let patches = self
            .units
            .iter()
            .filter(|unit| {
                unit.role == Role::Value && !unit.joined && unit.text.len() >= SOURCE_BYTES
            })
            .filter(|unit| {
                Words::new(last_name(&unit.argument))
                    .list()
                    .iter()
                    .any(|word| SETUPS.contains(word))
                    || references::patched_files(&unit.text).any(|file| !is_document(file))
            });
        sources
            .map(|written| written.text)
            .chain(patches.map(|unit| &*unit.text))
            .collect()
    }

    /// Returns the files to which a downloading tool saves the content of a URL in its arguments.
    pub(in crate::inspect) fn downloaded_files(&self, tool: &str) -> Vec<String> {
        let name = Words::new(tool);
        let words = name.list();
        let has = |any: &[&str]| words.iter().any(|word| any.contains(word));
        let values = || {
            self.units
                .iter()
                .filter(|unit| unit.role == Role::Value && !unit.joined)
        };
        let remote = |text: &str| {
            ["http://", "https://", "ftp://"]
                .iter()
                .any(|scheme| text.trim_start().starts_with(scheme))
        };
        let urls: Vec<&str> = values()
            .map(|unit| unit.text.trim())
            .filter(|text| remote(text))
            .take(TEXTS)
            .collect();
        if urls.is_empty() || has(&SENDS) {
            return Vec::new();
        }
        let is_name = |text: &str| {
            !text.is_empty() && !remote(text) && !text.trim().contains(char::is_whitespace)
        };
        let places = |unit: &&super::Unit<'_>| {
            matches!(
                names::head(last_name(&unit.argument)),
                Head::Path | Head::PathOrUrl
            )
        };
        let places: Vec<&str> = values()
            .filter(places)
            .map(|unit| unit.text.trim())
            .filter(|text| is_name(text))
            .take(TEXTS)
            .collect();
        if places.is_empty() && !has(&FETCHES) {
            return Vec::new();
        }
        let file_name = |url: &str| {
            let path = url.split(['?', '#']).next().unwrap_or(url);
            path.rsplit_once('/')
                .map(|(_, name)| name.to_owned())
                .filter(|name| !name.is_empty())
        };
        let names: Vec<String> = urls.iter().filter_map(|url| file_name(url)).collect();
        // A folder, or the file itself.
        let within = |place: &&str| {
            names
                .iter()
                .map(|name| format!("{}/{name}", place.trim_end_matches('/')))
                .collect::<Vec<_>>()
        };
        let mut files: Vec<String> = places.iter().flat_map(within).collect();
        files.extend(places.iter().map(|place| (*place).to_owned()));
        if places.is_empty() {
            files = names;
        }
        files.truncate(TEXTS);
        files
    }

    fn parent(&self, node: usize) -> Option<usize> {
        self.nodes.get(node).and_then(|node| node.parent)
    }
}

/// Returns whether people read the file with this path rather than programs.
fn is_document(path: &str) -> bool {
    let file = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let file = file.to_ascii_lowercase();
    match file.rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() => DOCUMENTS.contains(&extension),
        _ => DOCUMENT_NAMES.contains(&file.as_str()),
    }
}

#[cfg(test)]
mod tests {
    use super::is_document;

    #[test]
    fn documents_are_told_from_sources() {
        for path in ["README.md", "docs/a.TXT", "C:\\x\\notes", "LICENSE"] {
            assert!(is_document(path), "{path}");
        }
        for path in [
            "Makefile",
            ".bashrc",
            "a/b.yml",
            ".github/workflows/ci.yaml",
            "x.py",
        ] {
            assert!(!is_document(path), "{path}");
        }
    }
}
