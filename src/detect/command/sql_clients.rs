//! SQL that a command passes to a database: `psql -c '…'`, `echo '…' | mysql`, `sqlite3 file '…'`.

use super::facts::Facts;
use super::traits::Traits;
use super::value::{Field, join_words};

/// First words of statements: starting with one of them, unquoted words are joined.
const VERBS: [&str; 16] = [
    "select", "insert", "update", "delete", "drop", "alter", "create", "truncate", "grant",
    "revoke", "copy", "load", "attach", "call", "exec", "flush",
];

/// Returns the SQL texts that a command passes to a database.
pub(super) fn sql_texts(facts: &Facts) -> Vec<String> {
    let arguments = facts.arguments();
    let mut out = Vec::new();
    if facts.traits.has(Traits::RUNS_SQL) {
        for (at, field) in arguments.iter().enumerate() {
            let text = field.text.as_str();
            let attached = text
                .split_once('=')
                .filter(|(flag, _)| flag.starts_with('-'))
                .map(|(_, value)| value);
            let attached = attached.or_else(|| {
                text.get(2..).filter(|_| {
                    text.starts_with("-c") || text.starts_with("-e") || text.starts_with("-Q")
                })
            });
            let text = attached.unwrap_or(text);
            if text.contains(char::is_whitespace)
                || text.starts_with(['\\', '.']) && text.len() > 2 && !text.contains('/')
            {
                out.push(text.to_owned());
            } else if VERBS.iter().any(|verb| text.eq_ignore_ascii_case(verb)) {
                out.push(join_words(arguments.iter().skip(at)));
                break;
            }
        }
        out.extend(facts.input.clone());
    }
    for option in facts.program_data.iter().flat_map(|known| &known.sql) {
        let is_option = |field: &Field| {
            field
                .text
                .strip_prefix("--")
                .is_some_and(|name| name.starts_with(option))
        };
        let position = arguments.iter().position(is_option);
        if let Some(at) = position {
            let value = arguments
                .get(at)
                .and_then(|field| field.text.split_once('='))
                .map(|(_, value)| value.to_owned());
            out.extend(value.or_else(|| arguments.get(at + 1).map(|field| field.text.clone())));
        }
    }
    out
}
