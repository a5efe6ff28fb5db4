//! The locations in a definition, and the meaning of changes to its parameters.

use std::collections::HashSet;

use super::Kind;
use super::change::Difference;
use super::prose::{self, words};
use crate::message::{Value, ValueKind};

/// What is at the end of a path into a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SchemaPosition {
    /// A keyword, or a member of the definition itself.
    Keyword,
    /// A parameter.
    Property,
    /// Something inside a keyword: an example, a value.
    Within,
}

/// Returns what is at the end of a path from a definition's root.
pub(super) fn schema_position(path: &[String]) -> SchemaPosition {
    let mut steps = path.iter().map(String::as_str);
    match steps.next() {
        Some("inputSchema" | "outputSchema") => {}
        Some("annotations" | "arguments" | "icons") => {
            return if path.len() > 3 {
                SchemaPosition::Within
            } else {
                SchemaPosition::Keyword
            };
        }
        _ => {
            return if path.len() > 1 {
                SchemaPosition::Within
            } else {
                SchemaPosition::Keyword
            };
        }
    }
    let mut position = SchemaPosition::Keyword;
    while let Some(step) = steps.next() {
        position = match step {
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
                match steps.next() {
                    Some(_) => SchemaPosition::Property,
                    None => SchemaPosition::Keyword,
                }
            }
            "anyOf" | "oneOf" | "allOf" | "prefixItems" => {
                steps.next();
                SchemaPosition::Keyword
            }
            "items"
            | "additionalProperties"
            | "not"
            | "if"
            | "then"
            | "else"
            | "contains"
            | "propertyNames" => SchemaPosition::Keyword,
            _ if steps.next().is_some() => return SchemaPosition::Within,
            _ => SchemaPosition::Keyword,
        };
    }
    position
}

/// Returns whether a path leads to a keyword of a schema, or to a member of a definition.
pub(super) fn is_keyword(path: &[String]) -> bool {
    schema_position(path) == SchemaPosition::Keyword
}

fn is_input(kind: Kind, path: &[String]) -> bool {
    path.first().is_some_and(|first| {
        first
            == if kind == Kind::Prompt {
                "arguments"
            } else {
                "inputSchema"
            }
    })
}

/// Returns whether a whole parameter differs, rather than a part of it.
fn is_parameter(kind: Kind, path: &[String]) -> bool {
    is_input(kind, path)
        && if kind == Kind::Prompt {
            path.len() == 2
        } else {
            schema_position(path) == SchemaPosition::Property
        }
}

/// Returns the name of the parameter that was added at this place.
pub(super) fn added_parameter<'p>(kind: Kind, difference: &'p Difference<'_>) -> Option<&'p str> {
    let is_added = difference.old.is_none() && is_parameter(kind, &difference.path);
    difference
        .path
        .last()
        .filter(|_| is_added)
        .map(String::as_str)
}

/// Returns whether a difference allows more and removes nothing. `added` are the new parameters.
pub(super) fn is_wider(kind: Kind, difference: &Difference<'_>, added: &HashSet<&str>) -> bool {
    let Difference { path, old, new } = difference;
    if !is_input(kind, path) {
        return false;
    }
    if is_parameter(kind, path) {
        return old.is_none() && new.is_some_and(is_short_prose);
    }
    let last = path.last().map(String::as_str).unwrap_or_default();
    // The first parameters of a tool that had none.
    if matches!(last, "properties" | "inputSchema" | "arguments") {
        return old.is_none() && new.is_some_and(is_short_prose);
    }
    if schema_position(path) != SchemaPosition::Keyword {
        return false;
    }
    let number =
        |value: &Option<Value<'_>>| value.and_then(|value| value.raw().parse::<f64>().ok());
    let raw = |value: &Option<Value<'_>>| value.map(|value| value.raw().to_owned());
    let is_removed = new.is_none();
    match last {
        "required" if kind == Kind::Prompt => raw(new).as_deref() != Some("true"),
        "required" => {
            let old_names = raw_values(*old);
            raw_values(*new)
                .iter()
                .filter(|name| !old_names.contains(*name))
                .all(|name| added.contains(name.trim_matches('"')))
        }
        "type" => {
            is_removed
                || (old.is_some() && raw_values(*new).is_superset(&raw_values(*old)))
                || (raw(old), raw(new)) == (Some("\"integer\"".into()), Some("\"number\"".into()))
        }
        "enum" => is_removed || (old.is_some() && raw_values(*new).is_superset(&raw_values(*old))),
        "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties" => {
            is_removed || number(old) < number(new) && old.is_some()
        }
        "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties" => {
            is_removed || number(old) > number(new) && old.is_some()
        }
        "pattern" | "format" | "multipleOf" | "const" | "not" => is_removed,
        "uniqueItems" => raw(new).as_deref() != Some("true"),
        "additionalProperties" => raw(old).as_deref() == Some("false") || is_removed,
        _ => false,
    }
}

/// Returns whether every string in a new value is short and contains nothing encoded.
fn is_short_prose(value: Value<'_>) -> bool {
    let mut all_short = true;
    value.strings(|_, text| all_short &= prose::is_short_prose(&text.value));
    all_short
}

/// Returns a value, or the elements of a list of values, as written.
fn raw_values(value: Option<Value<'_>>) -> HashSet<String> {
    match value {
        Some(list) if list.kind() == ValueKind::Array => list
            .elements()
            .map(|element| element.raw().to_owned())
            .collect(),
        value => value.iter().map(|value| value.raw().to_owned()).collect(),
    }
}

/// Words in names of parameters that ask for information that no tool should receive in passing.
const SECRET_WORDS: [&str; 28] = [
    "apikey",
    "authorization",
    "bearer",
    "conversation",
    "cookie",
    "cookies",
    "credential",
    "credentials",
    "cvv",
    "env",
    "environ",
    "environment",
    "envvars",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "pwd",
    "reasoning",
    "secret",
    "secrets",
    "sidenote",
    "ssh",
    "ssn",
    "thoughts",
    "token",
    "tokens",
    "transcript",
];
/// Names of parameters with the same meaning, if they are the whole name.
const SECRET_NAMES: [&str; 10] = [
    "auth", "chat", "context", "history", "key", "memory", "messages", "notes", "otp", "pin",
];
/// Pairs of consecutive words with the same meaning, in names and in descriptions.
const SECRET_PAIRS: [(&str, &str); 30] = [
    ("access", "key"),
    ("access", "keys"),
    ("access", "token"),
    ("api", "key"),
    ("api", "keys"),
    ("auth", "token"),
    ("bearer", "token"),
    ("chat", "history"),
    ("config", "file"),
    ("contents", "of"),
    ("id", "rsa"),
    ("credit", "card"),
    ("debug", "info"),
    ("environment", "variables"),
    ("environment", "variable"),
    ("file", "content"),
    ("file", "contents"),
    ("full", "context"),
    ("personal", "data"),
    ("previous", "messages"),
    ("private", "key"),
    ("raw", "context"),
    ("session", "id"),
    ("side", "note"),
    ("ssh", "key"),
    ("system", "prompt"),
    ("user", "prompt"),
    ("user", "messages"),
    ("whole", "conversation"),
    ("seed", "phrase"),
];
/// Words before `token` and `tokens` with which these count words or turn pages.
const COUNTER_WORDS: [&str; 14] = [
    "max",
    "min",
    "page",
    "next",
    "continuation",
    "cursor",
    "num",
    "total",
    "prompt",
    "completion",
    "sync",
    "count",
    "pagination",
    "limit",
];
/// Words with the same meaning by themselves in a description.
const SECRET_WORDS_IN_PROSE: [&str; 16] = [
    "password",
    "passwords",
    "passphrase",
    "secret",
    "secrets",
    "credential",
    "credentials",
    "conversation",
    "transcript",
    "cookie",
    "cookies",
    "apikey",
    "sidenote",
    "reasoning",
    "env",
    "token",
];

/// Returns whether there is a new or newly described parameter that asks for secrets, the
/// environment or the conversation.
pub(super) fn asks_for_secrets(kind: Kind, differences: &[Difference<'_>]) -> bool {
    differences.iter().any(|difference| {
        let Difference { path, old, new } = difference;
        let Some(new) = new.filter(|_| is_input(kind, path)) else {
            return false;
        };
        let name_matches = added_parameter(kind, difference).is_some_and(name_asks_for_secret);
        let mut asks = name_matches;
        // Parameters within a new value, and their descriptions.
        let old_requests = old
            .and_then(|old| old.str())
            .map(|old| requested_secrets(&old))
            .unwrap_or_default();
        new.strings(|inner, string| {
            let inner_path: Vec<String> =
                path.iter().cloned().chain(inner.iter().map(step)).collect();
            let is_described = inner_path
                .last()
                .is_some_and(|last| matches!(last.as_str(), "description" | "title" | "default"));
            asks |= match string.role {
                crate::message::Role::Key => {
                    schema_position(&inner_path) == SchemaPosition::Property
                        && name_asks_for_secret(&string.value)
                }
                crate::message::Role::Value => {
                    is_described
                        && requested_secrets(&string.value)
                            .iter()
                            .any(|word| !old_requests.contains(word))
                }
            };
        });
        asks
    })
}

fn step(step: &crate::message::Step<'_>) -> String {
    match step {
        crate::message::Step::Key(key) => key.to_string(),
        crate::message::Step::Index(index) => index.to_string(),
    }
}

fn name_asks_for_secret(name: &str) -> bool {
    let words = parts(name);
    let joined: String = words.concat();
    words.iter().enumerate().any(|(index, word)| {
        SECRET_WORDS.contains(&word.as_str())
            && !(word.starts_with("token") && follows_counter(&words, index))
    }) || words
        .windows(2)
        .any(|pair| matches!(pair, [a, b] if SECRET_PAIRS.contains(&(a.as_str(), b.as_str()))))
        || SECRET_NAMES.contains(&joined.as_str())
        || SECRET_WORDS.contains(&joined.as_str())
}

/// Returns whether the word before this one is about a number.
fn follows_counter(words: &[String], index: usize) -> bool {
    index
        .checked_sub(1)
        .and_then(|before| words.get(before))
        .is_some_and(|before| COUNTER_WORDS.contains(&before.as_str()))
}

/// Returns what a description asks for.
fn requested_secrets(text: &str) -> HashSet<String> {
    let words = words(text);
    let single_words = words.iter().enumerate().filter(|(index, word)| {
        SECRET_WORDS_IN_PROSE.contains(&word.as_str())
            && !(word.starts_with("token") && follows_counter(&words, *index))
    });
    let word_pairs = words.windows(2).filter_map(|pair| match pair {
        [a, b] if SECRET_PAIRS.contains(&(a.as_str(), b.as_str())) => Some(format!("{a} {b}")),
        _ => None,
    });
    single_words
        .map(|(_, word)| word.clone())
        .chain(word_pairs)
        .collect()
}

/// Splits a name into words: at characters other than letters and digits, and before capitals.
fn parts(name: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut lower = false;
    for c in name.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && lower) {
            out.push(String::new());
        }
        lower = c.is_lowercase() || c.is_numeric();
        if let (Some(word), true) = (out.last_mut(), c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
    }
    out.retain(|word| !word.is_empty());
    out
}
