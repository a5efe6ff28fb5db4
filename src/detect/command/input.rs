//! The variables that `read` and `mapfile` set from their input.

use super::reader::{CommandContext, Reader};
use super::value::{Field, Value};
use super::wrappers::value_of;

/// Maximum number of items that one line or file is split into.
const MAX_ITEMS: usize = 256;
/// Options of `read` that take a value, and those of `mapfile`.
const READ_VALUED: &str = "aAdinNptu";
const MAPFILE_VALUED: &str = "dnOsuCc";

impl Reader<'_> {
    /// Sets the variables that `read` or `mapfile` names.
    pub(super) fn read_input(
        &mut self,
        program: &str,
        arguments: &[Field],
        context: &CommandContext,
    ) {
        let lines = program != "read";
        if let Some(script) = value_of(arguments, &["-C"]).filter(|_| lines) {
            self.read_inner_script(&script.text, &Value::empty());
        }
        let (list, names) = names(arguments, if lines { MAPFILE_VALUED } else { READ_VALUED });
        let taint = context.input.taint;
        let Some(text) = context.input.as_text().map(str::to_owned) else {
            for name in list.iter().chain(&names) {
                self.assign(name, Value::unknown(taint));
            }
            return;
        };
        let to_value = |value: String| Value::text(value).with(taint);
        let items = |items: Vec<String>| Value::list(items).with(taint);
        if lines {
            let name = names.first().map_or("MAPFILE", String::as_str);
            let line_end =
                delimiter(arguments).map_or('\n', |by| by.chars().next().unwrap_or('\0'));
            let text = text.strip_suffix(line_end).unwrap_or(&text);
            self.assign(
                name,
                items(
                    text.split(line_end)
                        .take(MAX_ITEMS)
                        .map(String::from)
                        .collect(),
                ),
            );
            return;
        }
        let by = context
            .environment
            .iter()
            .rev()
            .find(|(name, _)| name == "IFS")
            .map(|(_, by)| by.as_str());
        let words: Vec<String> = match by.filter(|by| !by.is_empty()) {
            Some(by) => text
                .trim_end_matches('\n')
                .split(|c| by.contains(c))
                .take(MAX_ITEMS)
                .map(String::from)
                .collect(),
            None => text
                .split_whitespace()
                .take(MAX_ITEMS)
                .map(String::from)
                .collect(),
        };
        match (list, names.as_slice()) {
            (Some(list), _) => self.assign(&list, items(words)),
            (None, [_, _, ..]) => {
                for (name, word) in names.iter().zip(words) {
                    self.assign(name, to_value(word));
                }
            }
            (None, names) => self.assign(
                names.first().map_or("REPLY", String::as_str),
                to_value(text.trim_end().to_owned()),
            ),
        }
    }
}

/// Returns the line delimiter that `-d` specifies.
fn delimiter(arguments: &[Field]) -> Option<&str> {
    let joined = || {
        arguments
            .iter()
            .find_map(|field| field.text.strip_prefix("-d"))
    };
    value_of(arguments, &["-d"])
        .map(|by| by.text.as_str())
        .or_else(joined)
}

/// Returns the list that `-a` names, and the variables. In fish, `-a` stands before them.
fn names(arguments: &[Field], valued: &str) -> (Option<String>, Vec<String>) {
    let mut list = None;
    let mut names = Vec::new();
    let mut words = arguments.iter().map(|field| field.text.as_str()).peekable();
    let mut is_list = false;
    while let Some(word) = words.next() {
        let Some(flags) = word.strip_prefix('-') else {
            names.push(word.to_owned());
            continue;
        };
        let Some(at) = flags.find(|c| valued.contains(c)) else {
            continue;
        };
        let joined = flags.get(at + 1..).filter(|value| !value.is_empty());
        let names_list = flags
            .get(at..)
            .is_some_and(|flag| flag.starts_with(['a', 'A']));
        if names_list && joined.is_none() && words.peek().is_some_and(|next| next.starts_with('-'))
        {
            is_list = true;
            continue;
        }
        let value = joined.or_else(|| words.next()).map(str::to_owned);
        if names_list {
            list = value;
        }
    }
    if is_list && list.is_none() {
        list = names.pop();
    }
    (list, names)
}
