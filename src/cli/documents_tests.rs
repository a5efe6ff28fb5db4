//! Verifies the documents against the tree: links lead to files and headings that exist, paths in
//! the map exist, commands parse, and the figures of the README match those of their source page.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser;
use clap::error::ErrorKind;

use super::Cli;

/// Folders with documents, in addition to the README at the root.
const FOLDERS: [&str; 5] = [".github", "deploy", "rules", "src", "tests/bench"];
/// Documents whose inline code names paths of this tree, relative to the root or to `src`.
const MAPS: [&str; 3] = [
    "src/README.md",
    "src/DECISIONS.md",
    ".github/CONTRIBUTING.md",
];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn collect(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, out);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            out.push(path);
        }
    }
}

/// Returns all documents with their paths relative to the root.
fn documents() -> Vec<(String, String)> {
    let root = root();
    let mut paths = vec![root.join("README.md")];
    for folder in FOLDERS {
        collect(&root.join(folder), &mut paths);
    }
    paths.sort();
    let name = |path: &Path| path.strip_prefix(&root).unwrap().display().to_string();
    paths.iter().map(|path| (name(path), read(path))).collect()
}

/// Returns the lines of a document with their numbers and, in a fenced block, its language.
fn lines(text: &str) -> Vec<(usize, Option<&str>, &str)> {
    let mut block = None;
    let mut out = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        match (line.trim_start().strip_prefix("```"), block) {
            (Some(language), None) => block = Some(language),
            (Some(_), Some(_)) => block = None,
            (None, _) => out.push((number, block, line)),
        }
    }
    out
}

/// Separates a line into its text without inline code, and its inline code.
fn split_code(line: &str) -> (String, Vec<&str>) {
    let parts: Vec<&str> = line.split('`').collect();
    (
        parts.iter().step_by(2).copied().collect(),
        parts.into_iter().skip(1).step_by(2).collect(),
    )
}

/// Returns the anchor of a heading, as GitHub generates it.
fn anchor(heading: &str) -> String {
    let kept = heading
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase)
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

fn has_anchor(text: &str, wanted: &str) -> bool {
    lines(text).into_iter().any(|(_, block, line)| {
        block.is_none()
            && line.starts_with('#')
            && anchor(line.trim_start_matches('#').trim()) == wanted
    })
}

/// Returns what is wrong with a link in a document.
fn link_fault(document: &str, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (file, wanted) = link
        .split_once('#')
        .map_or((link, None), |(file, wanted)| (file, Some(wanted)));
    let document = root().join(document);
    let target = if file.is_empty() {
        document
    } else {
        document.parent().unwrap().join(file)
    };
    if !target.exists() {
        return Some(format!("`{link}`: no such file"));
    }
    let wanted = wanted?;
    (!has_anchor(&read(&target), wanted)).then(|| format!("`{link}`: no such heading"))
}

/// Splits a shell line into words, with quotes and comments as far as the documents use them.
fn words(line: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(open), _) if open == c => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, '#') if word.is_empty() => break,
            (None, ' ') => out.push(std::mem::take(&mut word)),
            _ => word.push(c),
        }
    }
    out.push(word);
    out.retain(|word| !word.is_empty());
    out
}

/// Returns the lychgate command lines in a shell line, in the form that `clap` accepts.
fn commands(line: &str) -> Vec<Vec<String>> {
    let words = words(line);
    let ends = |word: &String| matches!(word.as_str(), "|" | "&&" | ";") || word.starts_with('>');
    let of_program = |command: &[String]| {
        let built = command.iter().take(2).eq(["cargo", "run"]);
        let start = command
            .iter()
            .position(|word| word == "lychgate" || built && word == "--")?;
        Some(command[start..].to_vec())
    };
    words.split(ends).filter_map(of_program).collect()
}

/// Returns what is wrong with a command line. Inline code may omit arguments and use placeholders
/// for values.
fn command_fault(command: &[String], inline: bool) -> Option<String> {
    let error = Cli::try_parse_from(command).err()?;
    let wrong = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => false,
        ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand => true,
        _ => !inline,
    };
    wrong.then(|| error.to_string())
}

#[test]
fn links_lead_somewhere() {
    let mut faults = Vec::new();
    let mut links = 0;
    for (document, text) in documents() {
        for (number, block, line) in lines(&text) {
            let prose = if block.is_none() {
                split_code(line).0
            } else {
                String::new()
            };
            for (link, _) in prose
                .split("](")
                .skip(1)
                .filter_map(|rest| rest.split_once(')'))
            {
                links += 1;
                faults.extend(
                    link_fault(&document, link)
                        .map(|fault| format!("{document}:{number}: {fault}")),
                );
            }
        }
    }
    assert!(links > 100, "only {links} links found");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn dead_links_are_found() {
    assert_eq!(link_fault("deploy/README.md", "lychgate.toml"), None);
    assert_eq!(
        link_fault("deploy/README.md", "https://example.com/x"),
        None
    );
    assert_eq!(link_fault("src/README.md", "#floors"), None);
    assert_eq!(
        link_fault("README.md", "src/README.md#the-path-of-a-toolscall"),
        None
    );
    assert_eq!(
        link_fault("README.md", "gone.md").unwrap(),
        "`gone.md`: no such file"
    );
    assert_eq!(
        link_fault("README.md", "src/README.md#gone").unwrap(),
        "`src/README.md#gone`: no such heading"
    );
}

#[test]
fn paths_in_maps_exist() {
    let root = root();
    let mut faults = Vec::new();
    for document in MAPS {
        let text = read(&root.join(document));
        for (number, block, line) in lines(&text) {
            let code = if block.is_none() {
                split_code(line).1
            } else {
                Vec::new()
            };
            for path in code.into_iter().filter(|code| code.contains('/')) {
                let is_path = path.ends_with('/')
                    || [".rs", ".md", ".toml"]
                        .iter()
                        .any(|end| path.ends_with(end));
                let plain = path
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
                let named = is_path && plain && !path.starts_with('/') && !path.contains("NAME");
                if named && !root.join(path).exists() && !root.join("src").join(path).exists() {
                    faults.push(format!("{document}:{number}: `{path}`: no such file"));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn commands_parse() {
    let mut faults = Vec::new();
    let mut found = 0;
    for (document, text) in documents() {
        for (number, block, line) in lines(&text) {
            let (code, inline) = match block {
                Some("sh") => (vec![line], false),
                None => (
                    split_code(line)
                        .1
                        .into_iter()
                        .filter(|code| code.starts_with("lychgate "))
                        .collect(),
                    true,
                ),
                Some(_) => continue,
            };
            for command in code.into_iter().flat_map(commands) {
                found += 1;
                faults.extend(
                    command_fault(&command, inline)
                        .map(|fault| format!("{document}:{number}: {fault}")),
                );
            }
        }
    }
    assert!(found > 100, "only {found} commands found");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn commands_that_do_not_parse_are_found() {
    let faults = |line: &str, inline: bool| {
        commands(line)
            .iter()
            .filter_map(|command| command_fault(command, inline))
            .count()
    };
    for (line, count) in [
        (
            "echo '{ \"a\": 1 }' | lychgate inspect --direction outbound --jsonl -   # one line",
            0,
        ),
        (
            "claude mcp add x -- lychgate wrap --name x -- server --flag",
            0,
        ),
        (
            "cargo run --release -- demo && lychgate audit key > audit.pub",
            0,
        ),
        (
            "cargo run --release -- demoo && lychgate audit keys > audit.pub",
            2,
        ),
        // A reason is required.
        ("lychgate suppress AUDIT-ID", 1),
    ] {
        assert_eq!(faults(line, false), count, "{line}");
    }
    assert_eq!(faults("lychgate suppress AUDIT-ID", true), 0);
    assert_eq!(faults("lychgate suppress --no-such", true), 1);
}

#[test]
fn figures_of_the_readme_are_measured() {
    let readme = read(&root().join("README.md"));
    let page = read(&root().join("tests/bench/detection/README.md"));
    let table = readme.split("| outbound |").nth(1).unwrap();
    let rows: Vec<&str> = table
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with("| "))
        .collect();
    assert_eq!(rows.len(), 4);
    for row in rows {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        for figure in &cells[2..4] {
            let (share, samples) = figure.split_once(" of ").unwrap();
            let measured = format!("| **{}: all** | {samples} | {share} |", cells[1]);
            assert!(
                page.contains(&measured),
                "`{measured}` is not in tests/bench/detection/README.md"
            );
        }
    }
}
