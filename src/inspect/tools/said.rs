//! How arguments are read according to the words of a tool's definition.

use std::collections::HashMap;

use crate::inspect::arguments::Head;
use crate::message::Value;

/// Maximum number of arguments of a tool that are examined.
const ARGUMENTS: usize = 512;
/// Maximum length of a description that is examined, in characters.
const DESCRIPTION_BYTES: usize = 2000;

const SHELL: [&str; 22] = [
    "shell command",
    "bash command",
    "command to run",
    "command to execute",
    "commands to run",
    "commands to execute",
    "command line to",
    "terminal command",
    "powershell command",
    "cli command",
    "shell script",
    "bash script",
    "script to run",
    "script to execute",
    "execute in the shell",
    "run in the shell",
    "run in the terminal",
    "passed to the shell",
    "sent to the terminal",
    "send to the terminal",
    "command string",
    "unix command",
];
const CODE: [&str; 9] = [
    "code to execute",
    "code to run",
    "code to evaluate",
    "python code",
    "javascript code",
    "javascript function",
    "javascript expression",
    "expression to evaluate",
    "script to evaluate",
];
const SQL: [&str; 6] = [
    "sql query",
    "sql statement",
    "sql to ",
    "query to execute",
    "sql command",
    "sql string",
];
const PATH: [&str; 12] = [
    "path to ",
    "path of ",
    "file path",
    "filepath",
    "absolute path",
    "relative path",
    "directory to ",
    "working directory",
    "name of the file",
    "file to read",
    "file to write",
    "folder path",
];
const URL: [&str; 6] = [
    "url to ",
    "url of ",
    "the url",
    "a url",
    "uri of ",
    "web address",
];
const TEXT: [&str; 14] = [
    "commit message",
    "message to send",
    "search query",
    "search term",
    "text content",
    "human-readable",
    "human readable",
    "description of",
    "explanation",
    "natural language",
    "markdown",
    "content of the",
    "contents of the",
    "content to write",
];
/// Phrases in descriptions of tools that run commands.
const RUNS: [&str; 18] = [
    "shell command",
    "bash command",
    "terminal command",
    "execute a command",
    "execute command",
    "executes a command",
    "executes command",
    "execute commands",
    "run a command",
    "run commands",
    "runs a command",
    "runs commands",
    "arbitrary command",
    "in a shell",
    "in a terminal",
    "in the terminal",
    "powershell",
    "command line",
];

/// Returns how each argument is read, by names joined by dots as in calls.
pub(super) fn argument_heads(schema: Option<Value<'_>>) -> HashMap<Box<str>, Head> {
    let mut heads = HashMap::new();
    let mut open: Vec<(Value<'_>, String)> = schema
        .map(|schema| (schema, String::new()))
        .into_iter()
        .collect();
    let mut count = 0;
    while let Some((schema, name)) = open.pop() {
        // Elements of a list have the name of the list.
        let element_schema = schema.get("items").map(|items| (items, name.clone()));
        let member_schemas = schema
            .get("properties")
            .into_iter()
            .flat_map(|properties| properties.members());
        let member_schemas = member_schemas.map(|(key, value)| {
            (
                value,
                if name.is_empty() {
                    key.into_owned()
                } else {
                    format!("{name}.{key}")
                },
            )
        });
        for (value, name) in element_schema.into_iter().chain(member_schemas) {
            count += 1;
            if count > ARGUMENTS {
                return heads;
            }
            if let Some(head) = argument_head(value)
                && name.len() < 256
            {
                heads.insert(name.as_str().into(), head);
            }
            open.push((value, name));
        }
    }
    heads
}

fn argument_head(schema: Value<'_>) -> Option<Head> {
    let format = schema.get_str("format");
    match format.as_deref() {
        Some("uri" | "url" | "iri" | "uri-reference" | "hostname") => return Some(Head::Url),
        Some("path" | "file-path" | "directory-path" | "absolute-path") => return Some(Head::Path),
        Some("date" | "date-time" | "time" | "email" | "uuid" | "ipv4" | "ipv6") => {
            return Some(Head::Text);
        }
        _ => {}
    }
    let text = lower(&schema.get_str("description")?);
    // The first words describe the argument; conditions and examples follow.
    let first_position = |words: &[&str]| words.iter().filter_map(|word| text.find(word)).min();
    let tables: [(&[&str], Head); 6] = [
        (&SHELL, Head::Shell),
        (&CODE, Head::Code),
        (&SQL, Head::Sql),
        (&PATH, Head::Path),
        (&URL, Head::Url),
        (&TEXT, Head::Text),
    ];
    tables
        .iter()
        .filter_map(|(words, head)| Some((first_position(words)?, *head)))
        .min_by_key(|(at, _)| *at)
        .map(|(_, head)| head)
}

/// Returns whether a tool's description says that it runs commands.
pub(super) fn runs_commands(description: &str) -> bool {
    let text = lower(description);
    RUNS.iter().any(|words| text.contains(words))
        && !text.starts_with("explain")
        && !text.starts_with("search")
}

fn lower(text: &str) -> String {
    text.chars()
        .take(DESCRIPTION_BYTES)
        .collect::<String>()
        .to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Json, ReadLimits};

    #[test]
    fn descriptions_tell_who_reads() {
        let schema = r#"{"properties":{
            "a":{"description":"The shell command to run"},
            "b":{"description":"Commit message; may mention a command to run"},
            "c":{"items":{"properties":{"d":{"description":"SQL query"}}}},
            "e":{"format":"uri"},
            "f":{"description":"Absolute path to the file"},
            "g":{"description":"Number of retries"},
            "h":{"description":"JavaScript code to evaluate in the page"}}}"#;
        let json = Json::parse(schema.into(), &ReadLimits::default()).unwrap();
        let mut heads: Vec<_> = argument_heads(Some(json.root())).into_iter().collect();
        heads.sort_by(|a, b| a.0.cmp(&b.0));
        let heads: Vec<(&str, Head)> = heads.iter().map(|(name, head)| (&**name, *head)).collect();
        assert_eq!(
            heads,
            [
                ("a", Head::Shell),
                ("b", Head::Text),
                ("c.d", Head::Sql),
                ("e", Head::Url),
                ("f", Head::Path),
                ("h", Head::Code)
            ]
        );
        assert!(
            runs_commands("Executes a command on the host") && !runs_commands("Adds two numbers")
        );
    }
}
