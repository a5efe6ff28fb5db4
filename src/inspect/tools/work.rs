//! How much work a schema causes for some arguments, counted before it is done.
//!
//! References let a small schema represent an endless one, and a schema that branches doubles the
//! work at each step. A validator follows them by recursion, so it is called only after this module
//! has walked the same path without recursion.

use std::collections::HashMap;

use serde_json::Value;

use super::schema::TooCostly;
use crate::inspect::SkipReason;

/// Maximum number of pairs of a schema and a value that are compared for one call.
const PAIRS: usize = 100_000;
/// Maximum nesting depth of schemas and values on the path to one pair.
const DEPTH: usize = 256;
/// Maximum number of parts of a schema.
const PARTS: usize = 20_000;

/// Keywords that contain schemas for the same value: one, a list, or a table of them.
const SAME: [&str; 8] = [
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentSchemas",
];
/// Keywords that contain a table whose keys are names.
const NAMED: [&str; 6] = [
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
    "dependencies",
];

/// The targets of a schema's references.
#[derive(Debug, Default)]
pub(super) struct Refs {
    anchors: HashMap<String, String>,
    has_references: bool,
    parts: usize,
}

impl Refs {
    /// Reads a schema.
    ///
    /// # Errors
    /// It is too large, or refers to something outside of itself.
    pub(super) fn read(schema: &Value) -> Result<Self, SkipReason> {
        let mut refs = Self::default();
        // A value, its pointer, and whether its keys are names.
        let mut open = vec![(schema, String::new(), false)];
        while let Some((value, pointer, names)) = open.pop() {
            refs.parts += 1;
            if refs.parts > PARTS || pointer.len() > 2048 {
                return Err(SkipReason::SchemaTooLarge);
            }
            match value {
                Value::Object(members) => {
                    for (key, value) in members {
                        match (names, key.as_str()) {
                            (false, "$ref") => match value.as_str() {
                                Some(to) if to.starts_with('#') => refs.has_references = true,
                                _ => return Err(SkipReason::SchemaRemoteReference),
                            },
                            (
                                false,
                                "$dynamicRef" | "$recursiveRef" | "$dynamicAnchor"
                                | "$recursiveAnchor",
                            ) => {
                                return Err(SkipReason::SchemaDynamicReference);
                            }
                            (false, "$id" | "id") if !pointer.is_empty() && value.is_string() => {
                                return Err(SkipReason::SchemaEmbedded);
                            }
                            (false, "$anchor") => {
                                refs.anchors.insert(
                                    value.as_str().unwrap_or_default().to_owned(),
                                    pointer.clone(),
                                );
                            }
                            (false, "enum" | "const" | "default" | "examples") => continue,
                            _ => {}
                        }
                        let step = key.replace('~', "~0").replace('/', "~1");
                        let holds_names = !names && NAMED.contains(&key.as_str());
                        open.push((value, format!("{pointer}/{step}"), holds_names));
                    }
                }
                Value::Array(elements) => {
                    open.extend(
                        elements
                            .iter()
                            .enumerate()
                            .map(|(at, value)| (value, format!("{pointer}/{at}"), false)),
                    );
                }
                _ => {}
            }
        }
        Ok(refs)
    }

    fn find<'s>(&self, root: &'s Value, to: &str) -> Option<&'s Value> {
        let to = to.strip_prefix('#')?;
        if to.is_empty() || to.starts_with('/') {
            return root.pointer(&decode_fragment(to));
        }
        root.pointer(self.anchors.get(to)?)
    }
}

/// Decodes the percent-encoding of a fragment (RFC 6901, section 6).
fn decode_fragment(fragment: &str) -> String {
    if !fragment.contains('%') {
        return fragment.to_owned();
    }
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        let hex = more
            .get(..2)
            .and_then(|hex| std::str::from_utf8(hex).ok())
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match (first, hex) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = more.get(2..).unwrap_or_default();
            }
            _ => {
                bytes.push(*first);
                rest = more;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A walk over at least the pairs that a validator would compare.
pub(super) struct Work<'w> {
    open: Vec<(&'w Value, &'w Value, usize)>,
    remaining: usize,
}

impl<'w> Work<'w> {
    /// Checks that the comparison is cheap enough to be done.
    pub(super) fn within_bounds(
        schema: &'w Value,
        refs: &Refs,
        arguments: &'w Value,
    ) -> Result<(), TooCostly> {
        let mut work = Self {
            open: vec![(schema, arguments, 0)],
            remaining: PAIRS,
        };
        while let Some((part, value, depth)) = work.open.pop() {
            work.spend(1)?;
            if depth > DEPTH {
                return Err(TooCostly);
            }
            let Value::Object(part) = part else { continue };
            let mut push =
                |part: &'w Value, value: &'w Value| work.open.push((part, value, depth + 1));
            for keyword in SAME {
                match part.get(keyword) {
                    Some(Value::Array(several)) => several.iter().for_each(|one| push(one, value)),
                    Some(Value::Object(schemas)) if keyword == "dependentSchemas" => {
                        schemas.values().for_each(|one| push(one, value))
                    }
                    Some(one) => push(one, value),
                    None => {}
                }
            }
            if let (true, Some(to)) = (
                refs.has_references,
                part.get("$ref").and_then(Value::as_str),
            ) {
                push(refs.find(schema, to).ok_or(TooCostly)?, value);
            }
            if let Some(Value::Object(schemas)) = part.get("dependencies") {
                schemas
                    .values()
                    .filter(|one| one.is_object())
                    .for_each(|one| push(one, value));
            }
            let mut costs = part
                .get("enum")
                .and_then(Value::as_array)
                .map_or(0, |all| all.len() / 8);
            match value {
                Value::Object(members) => {
                    let patterns = part.get("patternProperties").and_then(Value::as_object);
                    for (name, member) in members {
                        if let Some(one) = part.get("properties").and_then(|all| all.get(name)) {
                            push(one, member);
                        }
                        for one in patterns.into_iter().flat_map(|all| all.values()) {
                            push(one, member);
                        }
                        for keyword in ["additionalProperties", "unevaluatedProperties"] {
                            part.get(keyword)
                                .filter(|one| one.is_object())
                                .into_iter()
                                .for_each(|one| push(one, member));
                        }
                        costs += 1 + patterns.map_or(0, |all| all.len());
                    }
                }
                Value::Array(elements) => {
                    for (at, element) in elements.iter().enumerate() {
                        for keyword in ["items", "prefixItems"] {
                            match part.get(keyword) {
                                Some(Value::Array(each)) => {
                                    each.get(at).into_iter().for_each(|one| push(one, element))
                                }
                                Some(one) => push(one, element),
                                None => {}
                            }
                        }
                        for keyword in ["additionalItems", "contains", "unevaluatedItems"] {
                            part.get(keyword)
                                .filter(|one| one.is_object())
                                .into_iter()
                                .for_each(|one| push(one, element));
                        }
                    }
                    if part.get("uniqueItems") == Some(&Value::Bool(true)) {
                        costs += elements.len();
                    }
                }
                Value::String(text) if part.contains_key("pattern") => costs += text.len() / 64,
                _ => {}
            }
            work.spend(costs)?;
        }
        Ok(())
    }

    fn spend(&mut self, costs: usize) -> Result<(), TooCostly> {
        self.remaining = self.remaining.checked_sub(costs).ok_or(TooCostly)?;
        if self.open.len() > PAIRS {
            Err(TooCostly)
        } else {
            Ok(())
        }
    }
}
