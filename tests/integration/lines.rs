//! Checks audit lines against their published schema. The unit tests of the code that writes the
//! lines use this module too.

#![allow(clippy::disallowed_types, reason = "a second opinion")]

use std::path::Path;
use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::Value;

const HOW: &str = "define it in `src/record/entry`, then UPDATE=1 cargo test --lib record::entry";

pub(crate) static SCHEMA: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("../../deploy/audit.schema.json")).unwrap());
static VALIDATOR: LazyLock<Validator> = LazyLock::new(|| {
    assert!(
        jsonschema::draft202012::meta::is_valid(&SCHEMA),
        "the schema is no schema"
    );
    jsonschema::draft202012::options().build(&SCHEMA).unwrap()
});

/// Returns the fault of a line, or `None` if it matches the schema.
pub(crate) fn fault(line: &str) -> Option<String> {
    let read: Value = match serde_json::from_str(line) {
        Ok(read) => read,
        Err(error) => return Some(format!("not JSON: {error}")),
    };
    if VALIDATOR.is_valid(&read) {
        return None;
    }
    let event = read["event"].as_str().unwrap_or("?").to_owned();
    let known = &SCHEMA["properties"]["event"]["enum"];
    if !known.as_array().unwrap().contains(&read["event"]) {
        return Some(format!(
            "the event `{event}` is not in `deploy/audit.schema.json`: {HOW}"
        ));
    }
    let allowed = SCHEMA["$defs"][&event]["propertyNames"]["enum"]
        .as_array()
        .unwrap();
    if let Some(member) = read
        .as_object()
        .unwrap()
        .keys()
        .find(|key| !allowed.iter().any(|name| name == *key))
    {
        return Some(format!(
            "the event `{event}` has no member `{member}`: {HOW}"
        ));
    }
    let errors: Vec<String> = VALIDATOR
        .iter_errors(&read)
        .map(|error| format!("{} at `{}`", error, error.instance_path()))
        .collect();
    Some(format!("event `{event}`: {}", errors.join("; ")))
}

/// Checks the lines that a gate has written, when dropped.
pub(crate) struct Checked(pub(crate) std::path::PathBuf);

impl Drop for Checked {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            check(&self.0);
        }
    }
}

/// Checks the complete lines of a file, if it exists. Lines that are not JSON are ignored, since
/// some tests damage logs.
pub(crate) fn check(file: &Path) {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    for line in text
        .split_inclusive('\n')
        .filter(|line| line.ends_with("}\n"))
    {
        let fault = fault(line).filter(|fault| !fault.starts_with("not JSON"));
        assert!(fault.is_none(), "{}\n{line}", fault.unwrap_or_default());
    }
}
