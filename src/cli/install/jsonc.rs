//! Clients' files in JSON, including comments and trailing commas.

use jsonc_parser::ast::{Object, ObjectProp, Value};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use super::server::{Arguments, CommandEntry, Connection, GateEntry, Server, UrlEntry};

/// The syntax of a client's entries.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Common,
    /// A command and its arguments are one list; a variable is `{env:NAME}`.
    OpenCode,
}

/// Returns the servers in a file of OpenCode: the members of `mcp` or, since version 2, of
/// `mcp.servers`.
///
/// # Errors
/// The text is not valid JSON; the error is a sentence.
pub(super) fn servers_of_opencode(
    text: &str,
    gate_entry: &GateEntry,
) -> Result<Vec<Server>, String> {
    let mut out = vec![];
    if let Some(Value::Object(root)) = parse(text)? {
        let is_entry = |all: &Object<'_>| {
            ["type", "command", "url"]
                .iter()
                .any(|key| all.get_string(key).is_some())
        };
        match root.get_object("mcp") {
            Some(mcp) if mcp.get_object("servers").is_some_and(|all| !is_entry(all)) => {
                collect_servers(
                    text,
                    mcp,
                    &["mcp", "servers"],
                    Dialect::OpenCode,
                    gate_entry,
                    &mut out,
                );
            }
            _ => collect_servers(
                text,
                &root,
                &["mcp"],
                Dialect::OpenCode,
                gate_entry,
                &mut out,
            ),
        }
    }
    Ok(out)
}

/// Returns the servers in a file, in order. `gate_entry` identifies entries that already lead to
/// the gate.
///
/// # Errors
/// The text is not valid JSON; the error is a sentence.
pub(super) fn servers(
    text: &str,
    key: &str,
    gate_entry: &GateEntry,
) -> Result<Vec<Server>, String> {
    let root = match parse(text)? {
        None => return Ok(vec![]),
        Some(Value::Object(root)) => root,
        Some(_) => return Err("it is not an object".to_owned()),
    };
    if root
        .get(key)
        .is_some_and(|prop| !matches!(prop.value, Value::Object(_) | Value::NullKeyword(_)))
    {
        return Err(format!(
            "its `{key}` is not an object with a member for each server"
        ));
    }
    let mut out = vec![];
    collect_servers(text, &root, &[key], Dialect::Common, gate_entry, &mut out);
    // Claude Code has additional servers for each folder.
    if let Some(projects) = root.get_object("projects") {
        for project in &projects.properties {
            if let Value::Object(object) = &project.value {
                let path = ["projects", project.name.as_str(), key];
                collect_servers(text, object, &path, Dialect::Common, gate_entry, &mut out);
            }
        }
    }
    Ok(out)
}

/// Returns the position of the value at these keys.
pub(super) fn find(text: &str, path: &[String]) -> Option<std::ops::Range<usize>> {
    let mut value = parse(text).ok()??;
    for key in path {
        let Value::Object(mut object) = value else {
            return None;
        };
        let at = object
            .properties
            .iter()
            .position(|prop| prop.name.as_str() == key)?;
        value = object.properties.swap_remove(at).value;
    }
    Some(value.start()..value.end())
}

/// Reports whether two texts have the same content, apart from formatting.
pub(super) fn have_same_content(a: &str, b: &str) -> bool {
    let plain = |text: &str| parse(text).ok().flatten().map(|value| canonical(&value));
    plain(a).is_some_and(|a| plain(b) == Some(a))
}

/// Returns a value without insignificant parts: whitespace, comments, the order of members.
fn canonical(value: &Value<'_>) -> serde_json::Value {
    match value {
        Value::StringLit(lit) => lit.value.as_ref().into(),
        Value::NumberLit(lit) => lit.value.into(),
        Value::BooleanLit(lit) => lit.value.into(),
        Value::NullKeyword(_) => serde_json::Value::Null,
        Value::Array(array) => array.elements.iter().map(canonical).collect(),
        Value::Object(object) => object
            .properties
            .iter()
            .map(|prop| (prop.name.as_str().to_owned(), canonical(&prop.value)))
            .collect(),
    }
}

/// Returns the positions of private strings in a file: values of variables and headers, and values
/// whose names indicate a secret.
pub(super) fn private_spans(text: &str) -> Vec<std::ops::Range<usize>> {
    let mut out = vec![];
    let mut pending: Vec<(Value<'_>, bool)> = parse(text)
        .ok()
        .flatten()
        .map(|value| (value, false))
        .into_iter()
        .collect();
    while let Some((value, hidden)) = pending.pop() {
        match value {
            Value::StringLit(lit) if hidden => {
                out.push(lit.start() + 1..lit.end().saturating_sub(1))
            }
            Value::Array(array) => {
                let mut after_flag = false;
                for element in array.elements {
                    let word = element
                        .as_string_lit()
                        .map(|lit| lit.value.clone().into_owned())
                        .unwrap_or_default();
                    let hide = hidden || after_flag || super::diff::contains_secret(&word);
                    after_flag = word.starts_with('-')
                        && !word.contains('=')
                        && crate::config::is_secret_name(&word);
                    pending.push((element, hide));
                }
            }
            Value::Object(object) => pending.extend(object.properties.into_iter().map(|prop| {
                let name = prop.name.as_str();
                let hide = hidden
                    || matches!(name, "env" | "environment" | "headers" | "http_headers")
                    || crate::config::is_secret_name(name);
                (prop.value, hide)
            })),
            _ => {}
        }
    }
    out
}

fn parse(text: &str) -> Result<Option<Value<'_>>, String> {
    let options = ParseOptions {
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_loose_object_property_names: false,
        ..ParseOptions::default()
    };
    parse_to_ast(text, &CollectOptions::default(), &options)
        .map(|parsed| parsed.value)
        .map_err(|error| error.to_string())
}

fn collect_servers(
    text: &str,
    object: &Object<'_>,
    path: &[&str],
    dialect: Dialect,
    gate_entry: &GateEntry,
    out: &mut Vec<Server>,
) {
    let Some(servers) = path.last().and_then(|key| object.get_object(key)) else {
        return;
    };
    for prop in &servers.properties {
        let name = prop.name.as_str().to_owned();
        let path = path
            .iter()
            .map(|key| (*key).to_owned())
            .chain([name.clone()])
            .collect();
        let connection = match &prop.value {
            Value::Object(entry) => read_connection(text, entry, dialect, gate_entry),
            _ => Connection::Otherwise("it is not an object".to_owned()),
        };
        out.push(Server {
            name,
            path,
            span: prop.value.start()..prop.value.end(),
            connection,
        });
    }
}

fn read_connection(
    text: &str,
    entry: &Object<'_>,
    dialect: Dialect,
    gate_entry: &GateEntry,
) -> Connection {
    if let (Dialect::OpenCode, Some(list)) = (dialect, entry.get_array("command")) {
        let words: Option<Vec<_>> = list
            .elements
            .iter()
            .map(|word| word.as_string_lit().map(|word| &*word.value))
            .collect();
        let Some([command, rest @ ..]) = words.as_deref() else {
            return Connection::Otherwise("its `command` is not a list of strings".to_owned());
        };
        if gate_entry.is_wrap(command, rest.first().copied()) {
            return Connection::Gate;
        }
        let arguments = Arguments::WithCommand {
            behind_bracket: list.start() + 1,
        };
        return Connection::Child(CommandEntry {
            command: (*command).to_owned(),
            command_span: list.start()..list.end(),
            arguments,
        });
    }
    // Zed used to write the command as an object.
    if let Some(nested) = entry.get_object("command") {
        return read_child(nested, "path", gate_entry);
    }
    if entry.get("command").is_some() {
        return read_child(entry, "command", gate_entry);
    }
    for key in ["url", "httpUrl", "serverUrl"] {
        let Some(url) = entry.get_string(key) else {
            continue;
        };
        let kind = entry
            .get_string("type")
            .map(|kind| kind.value.to_ascii_lowercase());
        let sse = match kind.as_deref() {
            Some(kind) => kind == "sse",
            None => url.value.trim_end_matches('/').ends_with("/sse"),
        };
        let mut headers = vec![];
        let mut spans = vec![];
        if let Some(prop) = entry.get("headers") {
            let Value::Object(all) = &prop.value else {
                return Connection::Otherwise("its `headers` are not an object".to_owned());
            };
            for header in &all.properties {
                let Some(value) = header.value.as_string_lit() else {
                    return Connection::Otherwise(format!(
                        "the header `{}` is not a string",
                        header.name.as_str()
                    ));
                };
                headers.push((
                    header.name.as_str().to_owned(),
                    to_common_syntax(&value.value, dialect),
                ));
            }
            spans.push(removal_span(text, entry, prop));
        }
        let url_span = url.start()..url.end();
        let url = UrlEntry {
            url: to_common_syntax(&url.value, dialect),
            url_span,
            sse,
            headers: vec![],
            headers_spans: spans,
        };
        return Connection::url(url, headers, gate_entry);
    }
    Connection::Otherwise(
        "it has neither a command nor a URL; it may be provided by an extension of the client"
            .to_owned(),
    )
}

/// Returns a string with its variables in the syntax of most clients; a variable that the gate
/// cannot set is then detected by its `${`.
fn to_common_syntax(text: &str, dialect: Dialect) -> String {
    match dialect {
        Dialect::Common => text.to_owned(),
        Dialect::OpenCode => text.replace("{env:", "${").replace("{file:", "${file:"),
    }
}

fn read_child(entry: &Object<'_>, key: &str, gate_entry: &GateEntry) -> Connection {
    let Some(command) = entry.get_string(key) else {
        return Connection::Otherwise(format!("its `{key}` is not a string"));
    };
    let arguments = match entry.get("args").map(|prop| &prop.value) {
        None => Arguments::Missing { at: command.end() },
        Some(Value::Array(array)) => Arguments::At {
            behind_bracket: array.start() + 1,
            empty: array.elements.is_empty(),
        },
        Some(_) => return Connection::Otherwise("its `args` are not a list".to_owned()),
    };
    let first = entry
        .get_array("args")
        .and_then(|array| array.elements.first())
        .and_then(Value::as_string_lit);
    if gate_entry.is_wrap(&command.value, first.map(|first| &*first.value)) {
        return Connection::Gate;
    }
    Connection::Child(CommandEntry {
        command: command.value.clone().into_owned(),
        command_span: command.start()..command.end(),
        arguments,
    })
}

/// Returns the range to delete in order to remove a member together with one comma.
fn removal_span(text: &str, entry: &Object<'_>, prop: &ObjectProp<'_>) -> std::ops::Range<usize> {
    let at = entry
        .properties
        .iter()
        .position(|other| other.start() == prop.start())
        .unwrap_or(0);
    let before = at.checked_sub(1).and_then(|at| entry.properties.get(at));
    match (before, entry.properties.get(at + 1)) {
        (Some(before), _) => before.end()..prop.end(),
        (None, Some(after)) => prop.start()..after.start(),
        (None, None) => {
            let rest = text.get(prop.end()..entry.end()).unwrap_or_default();
            prop.start()..prop.end() + rest.find(',').map_or(0, |comma| comma + 1)
        }
    }
}
