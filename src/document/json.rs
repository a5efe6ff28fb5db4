//! Values of a TOML file as JSON.

use toml::de::DeValue;

use super::{Located, Table};

/// Deepest nesting that is taken over.
const DEPTH: usize = 16;

impl Table<'_> {
    /// A value of any kind but a date, as JSON, if there.
    pub fn json(&self, key: &str) -> Option<Located<String>> {
        let value = self.take(key)?;
        let place = self.source.place(value.span().start);
        match written(value.get_ref(), 0) {
            Some(json) => Some(Located { value: json, place }),
            None => {
                let message = format!("`{key}` contains a date or an invalid number, or is nested too deeply");
                self.fault_at(&place, message, Some("use a string instead"));
                None
            }
        }
    }

    /// A number as JSON, if there.
    pub fn number(&self, key: &str) -> Option<Located<String>> {
        let value = self.take(key)?;
        if !matches!(value.get_ref(), DeValue::Integer(_) | DeValue::Float(_)) {
            self.wrong(value, key, "a number");
            return None;
        }
        self.json(key)
    }
}

fn written(value: &DeValue<'_>, depth: usize) -> Option<String> {
    if depth > DEPTH {
        return None;
    }
    Some(match value {
        DeValue::String(text) => quote(text)?,
        DeValue::Integer(integer) => i64::from_str_radix(integer.as_str(), integer.radix()).ok()?.to_string(),
        DeValue::Float(float) => {
            let float: f64 = float.as_str().parse().ok()?;
            if !float.is_finite() {
                return None;
            }
            float.to_string()
        }
        DeValue::Boolean(boolean) => boolean.to_string(),
        DeValue::Datetime(_) => return None,
        DeValue::Array(items) => {
            let items: Option<Vec<String>> = items.iter().map(|item| written(item.get_ref(), depth + 1)).collect();
            format!("[{}]", items?.join(","))
        }
        DeValue::Table(table) => {
            let members = table
                .iter()
                .map(|(key, value)| Some(format!("{}:{}", quote(key.get_ref())?, written(value.get_ref(), depth + 1)?)));
            format!("{{{}}}", members.collect::<Option<Vec<String>>>()?.join(","))
        }
    })
}

fn quote(text: &str) -> Option<String> {
    serde_json::to_string(text).ok()
}
