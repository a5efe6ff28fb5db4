//! Clients' files in TOML.

use std::ops::Range;

use toml_edit::{Document, Item, TableLike};

use super::server::{Arguments, CommandEntry, Connection, GateEntry, Server, UrlEntry};

/// Returns the servers in a file, in order. `gate_entry` identifies entries that already lead to
/// the gate.
///
/// # Errors
/// The text is not valid TOML; the error is the reason.
pub(super) fn servers(
    text: &str,
    key: &str,
    gate_entry: &GateEntry,
) -> Result<Vec<Server>, String> {
    let root = Document::parse(text).map_err(|error| error.message().to_owned())?;
    let Some(all) = root.get(key) else {
        return Ok(vec![]);
    };
    let all = all
        .as_table_like()
        .ok_or_else(|| format!("its `{key}` is not a table with a table for each server"))?;
    let server = |(name, item): (&str, &Item)| Server {
        name: name.to_owned(),
        path: vec![key.to_owned(), name.to_owned()],
        span: item.span().unwrap_or_default(),
        connection: match item.as_table_like() {
            Some(entry) => read_connection(text, entry, item.is_table(), gate_entry),
            None => Connection::Otherwise("it is not a table".to_owned()),
        },
    };
    Ok(all.iter().map(server).collect())
}

/// Formats a TOML string.
pub(in crate::cli) fn quoted(text: &str) -> String {
    toml_edit::Value::from(text).to_string().trim().to_owned()
}

/// Returns the positions of private strings in a file, as for JSON.
pub(super) fn private_spans(text: &str) -> Vec<Range<usize>> {
    let Ok(root) = Document::parse(text) else {
        return vec![];
    };
    let mut out = vec![];
    let mut pending: Vec<(&Item, bool)> = vec![(root.as_item(), false)];
    while let Some((item, hidden)) = pending.pop() {
        if let Some(table) = item.as_table_like() {
            pending.extend(table.iter().map(|(name, item)| {
                let is_secret = matches!(name, "env" | "headers" | "http_headers")
                    || crate::config::is_secret_name(name);
                (item, hidden || (is_secret && !name.ends_with("_env_var")))
            }));
        } else if let Some(array) = item.as_array() {
            let mut after_flag = false;
            for value in array.iter() {
                let word = value.as_str().unwrap_or_default();
                if hidden || after_flag || super::diff::contains_secret(word) {
                    out.extend(value.span());
                }
                after_flag = word.starts_with('-')
                    && !word.contains('=')
                    && crate::config::is_secret_name(word);
            }
        } else if hidden {
            out.extend(item.span());
        }
    }
    out
}

fn read_connection(
    text: &str,
    entry: &dyn TableLike,
    has_lines: bool,
    gate_entry: &GateEntry,
) -> Connection {
    let string = |key: &str| {
        entry
            .get(key)
            .and_then(|item| Some((item.as_str()?.to_owned(), item.span()?)))
    };
    if let Some((command, command_span)) = string("command") {
        let arguments = match entry.get("args") {
            None => Arguments::Missing {
                at: command_span.end,
            },
            Some(item) => match (item.as_array(), item.span()) {
                (Some(array), Some(span)) => Arguments::At {
                    behind_bracket: span.start + 1,
                    empty: array.is_empty(),
                },
                _ => return Connection::Otherwise("its `args` are not a list".to_owned()),
            },
        };
        let first = entry
            .get("args")
            .and_then(Item::as_array)
            .and_then(|array| array.get(0)?.as_str());
        if gate_entry.is_wrap(&command, first) {
            return Connection::Gate;
        }
        return Connection::Child(CommandEntry {
            command,
            command_span,
            arguments,
        });
    }
    let Some((url, url_span)) = string("url") else {
        return Connection::Otherwise("it has neither a `command` nor a `url`".to_owned());
    };
    let mut headers = vec![];
    let mut spans = vec![];
    for key in ["http_headers", "env_http_headers", "bearer_token_env_var"] {
        let Some((name, item)) = entry.get_key_value(key) else {
            continue;
        };
        let (Some(from), Some(span), true) =
            (name.span(), item.span(), has_lines && !item.is_table())
        else {
            return Connection::Otherwise(format!(
                "its `{key}` is a separate table: add the server to the gate's config manually"
            ));
        };
        let env = |name: &str| format!("${{{name}}}");
        if let Some(variable) = item.as_str() {
            headers.push((
                "Authorization".to_owned(),
                format!("Bearer {}", env(variable)),
            ));
        }
        for (header, value) in item.as_table_like().iter().flat_map(|table| table.iter()) {
            let Some(value) = value.as_str() else {
                return Connection::Otherwise(format!("the header `{header}` is not a string"));
            };
            headers.push((
                header.to_owned(),
                if key == "env_http_headers" {
                    env(value)
                } else {
                    value.to_owned()
                },
            ));
        }
        spans.push(from.start..line_end(text, span.end));
    }
    Connection::url(
        UrlEntry {
            url,
            url_span,
            sse: false,
            headers: vec![],
            headers_spans: spans,
        },
        headers,
        gate_entry,
    )
}

/// Returns the end of the line that contains the position `at`, including its line feed.
fn line_end(text: &str, at: usize) -> usize {
    text.get(at..)
        .and_then(|rest| rest.find('\n'))
        .map_or(text.len(), |feed| at + feed + 1)
}

/// Reports whether an entry still has the command or the URL that was written to lead to the gate.
pub(super) fn is_gate(entry: &Item, target: &str) -> bool {
    ["command", "url"]
        .iter()
        .any(|key| entry.get(key).and_then(Item::as_str) == Some(target))
}
