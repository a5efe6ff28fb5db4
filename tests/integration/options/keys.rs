//! The keys of a config file as paths: `policy.*.sql_read_only`. Names that the user chooses are
//! `*`.

use std::collections::BTreeSet;

use toml::{Table, Value};

/// Tables whose members have names that the user chooses, as paths.
const NAMED: [&str; 13] = [
    "access",
    "policy",
    "upstream",
    "policy.*.packs",
    "policy.*.override",
    "policy.*.result_text_bytes",
    "policy.*.result_block_bytes",
    "policy.*.tool",
    "policy.*.tool.*.arguments",
    "upstream.*.stdio.set_env",
    "upstream.*.http.headers",
    "otlp.headers",
    "otlp.resource",
];

/// Returns a config file with every option set: `#key = …` and `#[table]` without their `#`.
pub(super) fn uncomment(text: &str) -> String {
    let set = |line: &str| match line.strip_prefix('#') {
        Some(option) if option.starts_with(|c: char| !c.is_whitespace()) => format!("{option}\n"),
        _ => format!("{line}\n"),
    };
    text.lines().map(set).collect()
}

/// Returns the keys that a config file sets.
pub(super) fn of(table: Table) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    let mut left = vec![(String::new(), Value::Table(table))];
    while let Some((path, value)) = left.pop() {
        match value {
            Value::Table(table) if !is_elsewhere(&path, &table) => {
                let named = NAMED.contains(&path.as_str());
                for (key, value) in table {
                    let step = if named { "*" } else { &key };
                    let path = if path.is_empty() {
                        step.to_owned()
                    } else {
                        format!("{path}.{step}")
                    };
                    left.push((path, value));
                }
            }
            // Tables in double brackets. Other lists are values.
            Value::Array(list) if list.first().is_some_and(Value::is_table) => {
                left.extend(list.into_iter().map(|value| (path.clone(), value)));
            }
            _ => drop(out.insert(path)),
        }
    }
    out
}

/// Reports whether a table is `{ env = … }`, `{ file = … }` or `{ keyring = … }`, the place of a
/// secret.
fn is_elsewhere(path: &str, table: &Table) -> bool {
    let only = table.keys().next().filter(|_| table.len() == 1);
    !["agents", "pins", "audit", "approval"].contains(&path)
        && only.is_some_and(|key| matches!(key.as_str(), "env" | "file" | "keyring"))
}

#[test]
fn names_of_users_are_stars_and_places_of_secrets_are_values() {
    let text = "[policy.a.tool.\"db_*\".arguments.n]\nminimum = 1\n# A line of prose.\n#[pins]\n#file = \"x\"\n\
                [[policy.b.secret]]\nname = \"s\"\nenv = \"S\"\n[upstream.u.http]\nheaders = { X = { file = \"y\" }, Z = \"1\" }\n";
    let found: Vec<String> = of(uncomment(text).parse().unwrap()).into_iter().collect();
    let keys = [
        "pins.file",
        "policy.*.secret.env",
        "policy.*.secret.name",
        "policy.*.tool.*.arguments.*.minimum",
    ];
    assert_eq!(found, [&keys[..], &["upstream.*.http.headers.*"]].concat());
}
