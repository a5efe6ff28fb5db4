//! A name and its value in sibling members: `{ "name": "API_TOKEN", "value": "…" }`.

use std::borrow::Cow;

use crate::message::{Value, ValueKind};

/// Maximum length of a name, in bytes.
const NAME_BYTES: usize = 96;
/// Maximum number of words of a name.
const NAME_WORDS: usize = 5;
/// Maximum length of a value, in bytes.
const VALUE_BYTES: usize = 4096;
/// Names of the member with the name, and of the member with the value.
const NAMES: [&str; 19] = [
    "name",
    "k",
    "headername",
    "fieldname",
    "key",
    "label",
    "variable",
    "var",
    "envvar",
    "header",
    "field",
    "secretname",
    "parameter",
    "property",
    "parameterkey",
    "parametername",
    "variablename",
    "settingname",
    "optionname",
];
const VALUES: [&str; 15] = [
    "value",
    "v",
    "headervalue",
    "fieldvalue",
    "newvalue",
    "newval",
    "newtext",
    "val",
    "text",
    "secretvalue",
    "content",
    "data",
    "parametervalue",
    "variablevalue",
    "settingvalue",
];

/// Returns the value, and name and value as one assignment, if an object contains such a pair.
pub(super) fn name_value_pair<'j>(
    members: &[(Cow<'j, str>, Value<'j>)],
) -> Option<(Value<'j>, String)> {
    let find = |keys: &[&str]| {
        let key_fits = |key: &str| key.len() <= 32 && keys.contains(&plain(key).as_str());
        members
            .iter()
            .find(|(key, value)| key_fits(key) && value.kind() == ValueKind::String)
            .map(|(_, value)| *value)
    };
    let name = find(&NAMES)?.str()?;
    let value = find(&VALUES)?;
    let text = value.str()?;
    let name_fits = !name.is_empty()
        && name.len() <= NAME_BYTES
        && name.split(' ').count() <= NAME_WORDS
        && !name.contains(['\n', '=']);
    (name_fits && text.len() <= VALUE_BYTES)
        .then(|| (value, format!("{}=\"{text}\"", name.replace(' ', "_"))))
}

/// Maximum number of cells of a table that are read with the names of their columns.
const CELLS: usize = 256;

/// Returns the cells of a table as assignments, if an object contains the names of its columns and
/// its rows: `{ "columns": ["id", "api_token"], "rows": [["7", "…"]] }`.
pub(super) fn table_cells<'j>(members: &[(Cow<'j, str>, Value<'j>)]) -> Vec<(Value<'j>, String)> {
    let find = |keys: &[&str]| {
        let mut lists = members
            .iter()
            .filter(|(_, value)| value.kind() == ValueKind::Array);
        lists
            .find(|(key, _)| keys.contains(&plain(key).as_str()))
            .map(|(_, value)| *value)
    };
    let names = find(&["columns", "headers", "header", "fields", "columnnames"]);
    let Some((names, rows)) = names.zip(find(&["rows", "values", "data", "records", "cells"]))
    else {
        return Vec::new();
    };
    let names: Vec<Cow<'_, str>> = names.elements().map_while(|name| name.str()).collect();
    let cells = rows
        .elements()
        .flat_map(|row| names.iter().zip(row.elements()));
    let pairs = cells.take(CELLS).filter_map(|(name, cell)| {
        let text = cell.str().filter(|text| text.len() <= VALUE_BYTES)?;
        let fits = name.len() <= NAME_BYTES && !name.contains(['\n', '=']);
        fits.then(|| (cell, format!("{}=\"{text}\"", name.replace(' ', "_"))))
    });
    pairs.collect()
}

/// Returns a list of two strings as one assignment, if the first one is a name: `["API_TOKEN", "…"]`.
pub(super) fn listed_pair(elements: &[Value<'_>]) -> Option<String> {
    let [name, value] = elements else { return None };
    let (name, value) = (name.str()?, value.str()?);
    let is_name = name.len() <= NAME_BYTES
        && name.contains(['_', '-', '.'])
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
    (is_name && value.len() <= VALUE_BYTES).then(|| format!("{name}=\"{value}\""))
}

/// Converts a key to lower case, without the characters that separate its words.
pub(super) fn plain(key: &str) -> String {
    key.chars()
        .filter(char::is_ascii_alphanumeric)
        .collect::<String>()
        .to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::table_cells;
    use crate::message::{Json, ReadLimits};

    #[test]
    fn cells_have_the_names_of_their_columns() {
        let table = r#"{"columns":["id","api_token"],"rows":[["7","abc"],["8"]]}"#;
        let json = Json::parse(table.into(), &ReadLimits::default()).unwrap();
        let members: Vec<_> = json.root().members().collect();
        let cells: Vec<String> = table_cells(&members)
            .into_iter()
            .map(|(_, text)| text)
            .collect();
        assert_eq!(cells, [r#"id="7""#, r#"api_token="abc""#, r#"id="8""#]);
        assert!(table_cells(members.get(..1).unwrap()).is_empty());
    }
}
