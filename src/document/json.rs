//! Converts values of a TOML file to JSON.

use toml::de::DeValue;

use super::value::{Content, Value};
use super::{Located, Table};

/// Maximum depth of nested values.
const DEPTH: usize = 16;

impl Table<'_> {
    /// Returns a value of any kind but a date, as JSON, if the key exists.
    pub fn json(&self, key: &str) -> Option<Located<String>> {
        let value = self.take(key)?;
        let place = self.source.place(value.at);
        match to_json(&value, 0) {
            Some(json) => Some(Located { value: json, place }),
            None => {
                let message = format!(
                    "`{key}` contains a date or an invalid number, or is nested too deeply"
                );
                self.fault_at(&place, message, Some("use a string instead"));
                None
            }
        }
    }

    /// Returns a number as JSON, if the key exists.
    pub fn number(&self, key: &str) -> Option<Located<String>> {
        let value = self.take(key)?;
        if !matches!(
            value.content,
            Content::Integer(..) | Content::Other(DeValue::Float(_))
        ) {
            self.report_type(&value, key, "a number");
            return None;
        }
        self.json(key)
    }
}

fn to_json(value: &Value<'_>, depth: usize) -> Option<String> {
    if depth > DEPTH {
        return None;
    }
    Some(match &value.content {
        Content::String(text) => quote(text)?,
        Content::Integer(digits, radix) => i64::from_str_radix(digits, *radix).ok()?.to_string(),
        Content::Other(DeValue::Float(float)) => {
            let float: f64 = float.as_str().parse().ok()?;
            if !float.is_finite() {
                return None;
            }
            float.to_string()
        }
        Content::Boolean(boolean) => boolean.to_string(),
        Content::Other(_) => return None,
        Content::List(items) => {
            let items: Option<Vec<String>> = items
                .clone()
                .map(|item| to_json(&item, depth + 1))
                .collect();
            format!("[{}]", items?.join(","))
        }
        Content::Table(members) => {
            let members = members.all().map(|(key, _, value)| {
                Some(format!("{}:{}", quote(key)?, to_json(&value, depth + 1)?))
            });
            format!(
                "{{{}}}",
                members.collect::<Option<Vec<String>>>()?.join(",")
            )
        }
    })
}

fn quote(text: &str) -> Option<String> {
    serde_json::to_string(text).ok()
}
