//! Sets one boolean key of a TOML file in place; all other bytes of the file remain unchanged.
//!
//! The position comes from the spans of `toml_edit`, and the text is edited rather than printed
//! from its tree, which would normalize line endings. The result is parsed again: if anything but
//! the key differs, the edit is refused.

use std::ops::Range;

use toml::{Table, Value};
use toml_edit::{Document, Item, TableLike};

use super::explain::quote;

/// Returns the text with the key at `path` set to `value`. `comment` is written above a table that
/// is added for it.
///
/// # Errors
/// The reason why the key cannot be set, phrased to follow the name of the file.
pub(super) fn set_key(
    text: &str,
    path: &[&str],
    value: bool,
    comment: &str,
) -> Result<String, String> {
    let root = Document::parse(text).map_err(|error| error.message().trim().replace('\n', "; "))?;
    let is_crlf = text
        .split_inclusive('\n')
        .next()
        .is_some_and(|line| line.ends_with("\r\n"));
    let setting = Setting {
        text,
        path,
        value,
        comment,
        newline: if is_crlf { "\r\n" } else { "\n" },
    };
    let refusal = || {
        format!(
            "`{}` cannot be set in place; edit the file by hand",
            format_path(path)
        )
    };
    let after = setting
        .edit(root.as_table())
        .and_then(|edit| edit.apply(text))
        .ok_or_else(refusal)?;
    // As parsed TOML, the two texts may differ only in the key.
    let mut expected: Table = text.parse().map_err(|_| refusal())?;
    let actual: Table = after.parse().map_err(|_| refusal())?;
    match insert(&mut expected, path, value) && expected == actual {
        true => Ok(after),
        false => Err(refusal()),
    }
}

/// Returns the header of the table at a path.
pub(super) fn header(path: &[&str]) -> String {
    format!("[{}]", format_path(path))
}

/// The key to set, and its formatting.
struct Setting<'s> {
    text: &'s str,
    path: &'s [&'s str],
    value: bool,
    comment: &'s str,
    newline: &'static str,
}

/// A table on the path to which keys can be added at its place in the text.
struct InsertionPoint<'s> {
    form: Form,
    /// The rest of the path, relative to the table.
    remaining_path: &'s [&'s str],
}

enum Form {
    /// The keys before the first header.
    Root,
    /// `[a.b]`; the value is the end of the header.
    Header(usize),
    /// `{ a = 1 }`; the value is where its first key may begin.
    Inline(usize),
    /// A table that exists only because a table below it has a header.
    Implicit,
}

/// The replacement of a part of the text.
struct Edit {
    span: Range<usize>,
    text: String,
}

impl Edit {
    fn insert(at: usize, text: String) -> Option<Self> {
        Some(Self { span: at..at, text })
    }

    fn apply(&self, text: &str) -> Option<String> {
        Some(format!(
            "{}{}{}",
            text.get(..self.span.start)?,
            self.text,
            text.get(self.span.end..)?
        ))
    }
}

impl Setting<'_> {
    /// Returns the smallest edit; `None` if the path contains something other than a table, or ends
    /// at something other than a boolean.
    fn edit(&self, root: &dyn TableLike) -> Option<Edit> {
        let (key, tables) = self.path.split_last()?;
        let mut table = root;
        let mut insertion_point = InsertionPoint {
            form: Form::Root,
            remaining_path: self.path,
        };
        for (depth, name) in tables.iter().enumerate() {
            let remaining_path = self.path.get(depth + 1..)?;
            // Tables created by dotted keys have no place of their own in the text.
            match table.get(name) {
                Some(Item::Table(inner)) => {
                    if inner.is_implicit() && !inner.is_dotted() {
                        insertion_point = InsertionPoint {
                            form: Form::Implicit,
                            remaining_path,
                        };
                    } else if !inner.is_dotted() {
                        insertion_point = InsertionPoint {
                            form: Form::Header(inner.span()?.end),
                            remaining_path,
                        };
                    }
                    table = inner;
                }
                Some(item) => {
                    let inner = item.as_inline_table()?;
                    if !inner.is_dotted() {
                        insertion_point = InsertionPoint {
                            form: Form::Inline(inner.span()?.start + 1),
                            remaining_path,
                        };
                    }
                    table = inner;
                }
                None => {
                    return match insertion_point.form {
                        Form::Inline(at) => self.insert_inline(at, insertion_point.remaining_path),
                        _ => self.append_table(),
                    };
                }
            }
        }
        if let Some(item) = table.get(key) {
            let span = item.as_value().filter(|value| value.is_bool())?.span()?;
            return Some(Edit {
                span,
                text: self.value.to_string(),
            });
        }
        let Self { value, newline, .. } = self;
        match insertion_point.form {
            Form::Root => {
                let (first, _) = root.get_key_value(insertion_point.remaining_path.first()?)?;
                Edit::insert(
                    first.span()?.start,
                    format!(
                        "{} = {value}{newline}",
                        format_path(insertion_point.remaining_path)
                    ),
                )
            }
            Form::Header(end) => {
                let line_end = self.text.get(end..)?.find('\n').map(|feed| end + feed + 1);
                let before = if line_end.is_some() { "" } else { newline };
                let line = format!(
                    "{before}{} = {value}{newline}",
                    format_path(insertion_point.remaining_path)
                );
                Edit::insert(line_end.unwrap_or(self.text.len()), line)
            }
            Form::Inline(at) => self.insert_inline(at, insertion_point.remaining_path),
            Form::Implicit => self.append_table(),
        }
    }

    /// Inserts the key as the first one of an inline table.
    fn insert_inline(&self, at: usize, path: &[&str]) -> Option<Edit> {
        let rest = self.text.get(at..)?;
        let comma = if rest.trim_start().starts_with('}') {
            ""
        } else {
            ","
        };
        let gap = if rest.starts_with(char::is_whitespace) {
            ""
        } else {
            " "
        };
        Edit::insert(
            at,
            format!(" {} = {}{comma}{gap}", format_path(path), self.value),
        )
    }

    /// Adds the key in a table of its own at the end of the file.
    fn append_table(&self) -> Option<Edit> {
        let Self {
            text,
            value,
            comment,
            newline,
            ..
        } = self;
        let (key, tables) = self.path.split_last()?;
        let end = if text.is_empty() || text.ends_with('\n') {
            ""
        } else {
            newline
        };
        let table = header(tables);
        let key = format_path(&[key]);
        let block =
            format!("{end}{newline}# {comment}{newline}{table}{newline}{key} = {value}{newline}");
        Edit::insert(text.len(), block)
    }
}

/// Sets the key in a parsed file. Returns false if a name on the path is not a table.
fn insert(root: &mut Table, path: &[&str], value: bool) -> bool {
    let Some((key, tables)) = path.split_last() else {
        return false;
    };
    let mut table = root;
    for name in tables {
        let inner = table
            .entry((*name).to_owned())
            .or_insert_with(|| Value::Table(Table::new()));
        let Some(inner) = inner.as_table_mut() else {
            return false;
        };
        table = inner;
    }
    table.insert((*key).to_owned(), Value::Boolean(value));
    true
}

/// Formats a path as TOML does.
fn format_path(path: &[&str]) -> String {
    let is_bare = |name: &str| {
        !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    };
    let name = |name: &&str| {
        if is_bare(name) {
            (*name).to_owned()
        } else {
            quote(name)
        }
    };
    path.iter().map(name).collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests;
