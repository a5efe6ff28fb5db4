//! Checks the architecture: which module may use which, how long a file may be, and what may be
//! used in one place only.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

/// The floors, lowest first. A module uses only floors below its own; modules on one floor do not
/// use each other.
const FLOORS: [&[&str]; 12] = [
    &[
        "message", "text", "config", "document", "reach", "trust", "seal",
    ],
    &["detect", "protocol"],
    &["rules"],
    &["inspect"],
    &["record", "pins"],
    &["oauth", "review", "export"],
    &["upstream"],
    &["approval"],
    &["proxy"],
    &["listen"],
    &["app"],
    &["cli"],
];
/// Deliberate exceptions, within a floor or against the order of the floors: `config` reads with
/// `document` and contains the names of actions, modes and hosts that users write; `seal` looks for
/// keys where the config says.
const MEANT: [(&str, &str); 8] = [
    ("config", "document"),
    ("config", "rules"),
    ("config", "message"),
    ("config", "inspect"),
    ("config", "detect"),
    ("config", "text"),
    ("text", "message"),
    ("seal", "config"),
];
/// Uses that the floors would allow and the design does not: a transport cannot judge.
const FORBIDDEN: [(&str, &str); 6] = [
    ("upstream", "inspect"),
    ("upstream", "rules"),
    ("upstream", "detect"),
    ("oauth", "inspect"),
    ("oauth", "rules"),
    ("oauth", "detect"),
];
/// Maximum number of lines in a file.
const LINES: usize = 600;

fn floor(module: &str) -> Option<usize> {
    FLOORS.iter().position(|floor| floor.contains(&module))
}

fn files(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, out);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            out.push(path);
        }
    }
}

/// Returns the modules that a line uses as `crate::name`, including several names in braces.
fn named(line: &str) -> Vec<String> {
    let mut out = Vec::new();
    for part in line.split("crate::").skip(1) {
        let list = part
            .strip_prefix('{')
            .map_or(part, |inner| inner.split('}').next().unwrap_or(inner));
        let grouped = part.starts_with('{');
        for item in list.split(',').take(if grouped { usize::MAX } else { 1 }) {
            let name: String = item
                .trim()
                .chars()
                .take_while(|c| c.is_ascii_lowercase() || *c == '_')
                .collect();
            if floor(&name).is_some() {
                out.push(name);
            }
        }
    }
    out
}

/// Returns the lines of a file with their numbers, without the items that are for tests only.
fn without_tests(text: &str) -> Vec<(usize, &str)> {
    let mut lines = (1..).zip(text.lines());
    let mut out = Vec::new();
    while let Some((number, line)) = lines.next() {
        if line.trim_start() != "#[cfg(test)]" {
            out.push((number, line));
            continue;
        }
        let indent = line.strip_suffix(line.trim_start()).unwrap_or_default();
        let Some((_, item)) = lines
            .by_ref()
            .find(|(_, line)| !line.trim_start().starts_with("#["))
        else {
            break;
        };
        // An item on one line ends there; rustfmt puts the end of any other item at the indentation
        // of its first line.
        if !item.ends_with([';', ',', '}']) {
            let end = [
                format!("{indent}}}"),
                format!("{indent}}};"),
                format!("{indent})"),
            ];
            lines
                .by_ref()
                .find(|(_, line)| end.iter().any(|end| line.starts_with(end)));
        }
    }
    out
}

#[test]
fn only_items_for_tests_are_skipped() {
    let text = "use a;\n#[cfg(test)]\nmod testing;\nuse b;\n    #[cfg(test)]\n    #[path = \"x\"]\n    fn t() {\n        x();\n    }\nuse c;\n\
                #[cfg(test)]\nmod tests {\n    use d;\n}\nuse e;";
    let left: Vec<_> = without_tests(text)
        .into_iter()
        .map(|(number, line)| (number, line.trim()))
        .collect();
    assert_eq!(
        left,
        [(1, "use a;"), (4, "use b;"), (10, "use c;"), (15, "use e;")]
    );
}

/// Returns the faults of one file as (line, description).
fn faults(module: &str, path: &str, text: &str) -> Vec<(usize, String)> {
    let mut out = Vec::new();
    if text.lines().count() > LINES {
        out.push((LINES, format!("longer than {LINES} lines")));
    }
    for (number, line) in without_tests(text) {
        let code = line.trim_start();
        if code.starts_with("//") {
            continue;
        }
        if code.contains("super::super") {
            out.push((number, "`super::super` hides who uses whom".into()));
        }
        if code.contains("html2text::") && path != "text/strip/spans.rs" {
            out.push((
                number,
                "`html2text` is used in `text/strip/spans.rs` only".into(),
            ));
        }
        for used in named(code) {
            let (Some(own), Some(theirs)) = (floor(module), floor(&used)) else {
                continue;
            };
            let pair = |&(a, b): &(&str, &str)| a == module && b == used;
            let allowed = used == module || theirs < own || MEANT.iter().any(pair);
            if !allowed || FORBIDDEN.iter().any(pair) {
                out.push((number, format!("`{module}` uses `{used}`")));
            }
        }
    }
    out
}

#[test]
fn every_module_keeps_to_its_floor() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut all = Vec::new();
    files(&root, &mut all);
    assert!(all.len() > 30, "only {} files found", all.len());
    let mut told = Vec::new();
    for path in all {
        let inner = path
            .strip_prefix(&root)
            .unwrap()
            .to_string_lossy()
            .into_owned();
        let module = inner
            .split('/')
            .next()
            .unwrap_or("")
            .trim_end_matches(".rs");
        if matches!(module, "lib" | "main" | "build") {
            continue;
        }
        assert!(floor(module).is_some(), "`src/{inner}` belongs to no floor");
        let tests = inner.ends_with("tests.rs") || inner.ends_with("testing.rs");
        let text = fs::read_to_string(&path).unwrap();
        if !tests {
            told.extend(
                faults(module, &inner, &text)
                    .into_iter()
                    .map(|(line, what)| format!("src/{inner}:{line}: {what}")),
            );
        }
    }
    assert!(told.is_empty(), "{}", told.join("\n"));
}

#[test]
fn a_breach_is_told_with_its_line() {
    let text = "use crate::proxy::Gate;\n// crate::cli::main\nuse crate::{message::Json, app};\n";
    let told = faults("upstream", "upstream/x.rs", text);
    assert_eq!(
        told,
        [
            (1, "`upstream` uses `proxy`".to_owned()),
            (3, "`upstream` uses `app`".to_owned())
        ]
    );
    assert_eq!(
        faults("upstream", "upstream/x.rs", "use crate::inspect::Policy;")[0].1,
        "`upstream` uses `inspect`"
    );
    assert_eq!(
        faults(
            "text",
            "text/html.rs",
            "let config = html2text::config::plain();"
        )
        .len(),
        1
    );
    assert_eq!(faults("text", "text.rs", &"\n".repeat(LINES + 1)).len(), 1);
}
