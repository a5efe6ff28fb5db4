//! Generates arguments that would pass a schema, as an example for a caller that was refused.

use regex_syntax::hir::{Class, Hir, HirKind};
use serde_json::{Map, Value, json};

/// Maximum nesting depth of an example.
const DEPTH: usize = 8;
/// Maximum number of members of an object, and of elements of a list.
const WIDTH: usize = 24;
/// Maximum length of a text in an example, in characters.
const TEXT: usize = 200;

/// Returns an object with the members that `schema` requires and those in `names`. The caller has
/// to check whether it passes.
pub(super) fn object(schema: &Value, names: &[&str]) -> Value {
    ExampleBuilder { root: schema }.object(schema, names, 0)
}

struct ExampleBuilder<'s> {
    root: &'s Value,
}

impl ExampleBuilder<'_> {
    fn object(&self, schema: &Value, names: &[&str], depth: usize) -> Value {
        let required = schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        let mut out = Map::new();
        for name in required.chain(names.iter().copied()).take(WIDTH) {
            let property = schema.get("properties").and_then(|all| all.get(name));
            match property {
                Some(property) => out.insert(name.to_owned(), self.value(property, depth + 1)),
                None if names.contains(&name) => None,
                None => out.insert(name.to_owned(), json!("value")),
            };
        }
        Value::Object(out)
    }

    fn value(&self, schema: &Value, depth: usize) -> Value {
        if depth > DEPTH {
            return Value::Null;
        }
        let fixed = schema.get("const").or_else(|| schema.get("default"));
        let sample = ["enum", "examples"]
            .iter()
            .find_map(|key| schema.get(*key)?.as_array()?.first());
        if let Some(value) = fixed.or(sample) {
            return value.clone();
        }
        if let Some(target) = schema
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|to| self.root.pointer(to.strip_prefix('#')?))
        {
            return self.value(target, depth + 1);
        }
        let first = |key: &str| {
            schema
                .get(key)
                .and_then(Value::as_array)
                .and_then(|all| all.first())
        };
        let kind = match schema.get("type") {
            Some(Value::String(kind)) => kind.as_str(),
            Some(Value::Array(kinds)) => kinds
                .iter()
                .filter_map(Value::as_str)
                .find(|kind| *kind != "null")
                .unwrap_or("null"),
            _ => match (
                first("anyOf")
                    .or_else(|| first("oneOf"))
                    .or_else(|| first("allOf")),
                schema.get("properties"),
            ) {
                (Some(one), _) => return self.value(one, depth + 1),
                (None, Some(_)) => "object",
                (None, None)
                    if schema.get("minimum").is_some() || schema.get("maximum").is_some() =>
                {
                    "number"
                }
                (None, None) if schema.get("items").is_some() => "array",
                (None, None) => "string",
            },
        };
        match kind {
            "integer" | "number" => number(schema, kind),
            "boolean" => json!(true),
            "null" => Value::Null,
            "object" => self.object(schema, &[], depth),
            "array" => {
                let min_items = schema
                    .get("minItems")
                    .and_then(Value::as_u64)
                    .unwrap_or(1)
                    .clamp(1, WIDTH as u64);
                let element = schema.get("items").filter(|items| items.is_object());
                let element =
                    element.map_or_else(|| json!("value"), |items| self.value(items, depth + 1));
                Value::Array((0..min_items).map(|_| element.clone()).collect())
            }
            _ => Value::String(text(schema)),
        }
    }
}

fn number(schema: &Value, kind: &str) -> Value {
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    let step = bound("multipleOf").unwrap_or(1.0);
    let least = bound("minimum").or_else(|| bound("exclusiveMinimum").map(|bound| bound + step));
    let most = bound("maximum").or_else(|| bound("exclusiveMaximum").map(|bound| bound - step));
    let value = match (least, most) {
        (Some(least), _) => (least / step).ceil() * step,
        (None, Some(most)) if most < step => (most / step).floor() * step,
        _ => step,
    };
    let is_whole = value.fract() == 0.0 && value.abs() < 9e15;
    if kind == "integer" || is_whole {
        json!(value as i64)
    } else {
        json!(value)
    }
}

fn text(schema: &Value) -> String {
    let word = |key: &str| schema.get(key).and_then(Value::as_str);
    if let Some(sample) = word("pattern").and_then(matching_text) {
        return sample;
    }
    let mut sample = match word("format") {
        Some("absolute-path") => "/srv/files/report.txt",
        Some("relative-path") => "files/report.txt",
        Some("uri" | "url" | "iri") => "https://example.org/",
        Some("email") => "ada@example.org",
        Some("date") => "2026-01-31",
        Some("date-time") => "2026-01-31T12:00:00Z",
        Some("uuid") => "123e4567-e89b-12d3-a456-426614174000",
        _ => "value",
    }
    .to_owned();
    let bound = |key: &str| {
        schema
            .get(key)
            .and_then(Value::as_u64)
            .and_then(|bound| usize::try_from(bound).ok())
    };
    while sample.chars().count() < bound("minLength").unwrap_or(0).min(TEXT) {
        sample.push('e');
    }
    sample
        .chars()
        .take(bound("maxLength").unwrap_or(TEXT))
        .collect()
}

/// Returns a short text that a regex matches, if one is easily generated.
fn matching_text(pattern: &str) -> Option<String> {
    let mut out = String::new();
    let parsed = regex_syntax::parse(pattern).ok()?;
    let mut open: Vec<(&Hir, u32)> = vec![(&parsed, 1)];
    while let Some((part, times)) = open.pop() {
        if out.len() > TEXT || open.len() > 4 * TEXT {
            return None;
        }
        if times > 1 {
            open.push((part, times - 1));
        }
        match part.kind() {
            HirKind::Empty | HirKind::Look(_) => {}
            HirKind::Literal(literal) => out.push_str(std::str::from_utf8(&literal.0).ok()?),
            HirKind::Class(Class::Unicode(class)) => {
                let usual_chars = ['a', '1', 'A', '-', '_', '.', '/', ' '];
                let in_class = |c: &char| {
                    class
                        .ranges()
                        .iter()
                        .any(|range| (range.start()..=range.end()).contains(c))
                };
                out.push(
                    usual_chars
                        .into_iter()
                        .find(in_class)
                        .or_else(|| class.ranges().first().map(|range| range.start()))?,
                );
            }
            HirKind::Class(Class::Bytes(class)) => {
                out.push(char::from(class.ranges().first()?.start()))
            }
            HirKind::Repetition(repeated) => {
                // An empty example is not informative.
                let times = if repeated.min == 0 && repeated.max != Some(0) && out.is_empty() {
                    1
                } else {
                    repeated.min
                };
                if times > 0 {
                    open.push((&repeated.sub, times));
                }
            }
            HirKind::Capture(group) => open.push((&group.sub, 1)),
            HirKind::Concat(parts) => open.extend(parts.iter().rev().map(|part| (part, 1))),
            HirKind::Alternation(parts) => open.extend(parts.first().map(|part| (part, 1))),
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_of_every_kind() {
        let schema = json!({
            "required": ["n", "path", "kind", "list", "deep"],
            "properties": {
                "n": { "type": "integer", "minimum": 5, "maximum": 10 },
                "path": { "type": "string", "pattern": "^/srv/[a-z]{3}$" },
                "kind": { "enum": ["x", "y"] },
                "list": { "type": "array", "minItems": 2, "items": { "$ref": "#/$defs/id" } },
                "deep": { "type": "object", "required": ["q"], "properties": { "q": { "type": ["null", "number"], "maximum": 0.5 } } },
                "extra": { "type": "string", "maxLength": 2 }
            },
            "$defs": { "id": { "type": "string", "minLength": 7 } }
        });
        let made = object(&schema, &["extra", "unknown"]);
        assert_eq!(
            made,
            json!({"n": 5, "path": "/srv/aaa", "kind": "x", "list": ["valueee", "valueee"], "deep": {"q": 0}, "extra": "va"})
        );
        assert!(jsonschema::is_valid(&schema, &made));
        assert_eq!(
            object(
                &json!({"properties": {"a": {"$ref": "#/properties/a"}}}),
                &["a"]
            ),
            json!({"a": null})
        );
    }
}
