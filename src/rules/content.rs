//! A digest of what a rule searches for. The build computes the digests of the built-in rules,
//! because computing all of them takes a tenth of a second on a processor without SHA-256
//! instructions.

use sha2::{Digest, Sha256};
use toml::de::{DeTable, DeValue};

/// The keys that determine which texts match. Where a rule applies and the action it takes can also
/// depend on the policy.
const KEYS: [&str; 5] = [
    "find",
    "spares_quotes",
    "unless",
    "usual_in_documents",
    "written",
];

/// Computes the SHA-256 digest of these keys of a rule and their values, in hex. The position of
/// the rule in its file and the quoting style of its strings have no effect.
pub(crate) fn digest(rule: &DeTable<'_>) -> String {
    let mut hash = Sha256::new();
    for key in KEYS {
        if let Some(value) = rule.get(key) {
            add_text(key, &mut hash);
            add(value.get_ref(), &mut hash);
        }
    }
    format!("{:x}", hash.finalize())
}

/// Adds a value: its type, its size and its content.
fn add(value: &DeValue<'_>, hash: &mut Sha256) {
    match value {
        DeValue::String(text) => {
            hash.update("s");
            add_text(text, hash);
        }
        DeValue::Integer(number) => {
            hash.update(format!("i{}:", number.radix()));
            add_text(number.as_str(), hash);
        }
        DeValue::Float(number) => {
            hash.update("f");
            add_text(number.as_str(), hash);
        }
        DeValue::Boolean(flag) => hash.update(if *flag { "t" } else { "n" }),
        DeValue::Datetime(time) => {
            hash.update("d");
            add_text(&time.to_string(), hash);
        }
        DeValue::Array(values) => {
            hash.update(format!("a{}:", values.len()));
            values.iter().for_each(|value| add(value.get_ref(), hash));
        }
        DeValue::Table(table) => {
            hash.update(format!("m{}:", table.len()));
            for (key, value) in table {
                add_text(key.get_ref(), hash);
                add(value.get_ref(), hash);
            }
        }
    }
}

fn add_text(text: &str, hash: &mut Sha256) {
    hash.update(format!("{}:", text.len()));
    hash.update(text);
}
