//! Sets one boolean key of a TOML file in place; all other bytes of the file remain unchanged.
//!
//! The position comes from the spans of `toml_edit`, and the text is edited rather than printed
//! from its tree, which would normalize line endings. The result is parsed again: if anything but
//! the key differs, the edit is refused.

use std::ops::Range;

use toml::{Table, Value};
use toml_edit::{Document, Item, TableLike};

use super::explain::quoted;

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
    let crlf = text
        .split_inclusive('\n')
        .next()
        .is_some_and(|line| line.ends_with("\r\n"));
    let setting = Setting {
        text,
        path,
        value,
        comment,
        newline: if crlf { "\r\n" } else { "\n" },
    };
    let refusal = || {
        format!(
            "`{}` cannot be set in place; edit the file by hand",
            dotted(path)
        )
    };
    let after = setting
        .edit(root.as_table())
        .and_then(|edit| edit.apply(text))
        .ok_or_else(refusal)?;
    // As parsed TOML, the two texts may differ only in the key.
    let mut wanted: Table = text.parse().map_err(|_| refusal())?;
    let found: Table = after.parse().map_err(|_| refusal())?;
    match insert(&mut wanted, path, value) && wanted == found {
        true => Ok(after),
        false => Err(refusal()),
    }
}

/// Returns the header of the table at a path.
pub(super) fn header(path: &[&str]) -> String {
    format!("[{}]", dotted(path))
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
    below: &'s [&'s str],
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
        let mut home = InsertionPoint {
            form: Form::Root,
            below: self.path,
        };
        for (depth, name) in tables.iter().enumerate() {
            let below = self.path.get(depth + 1..)?;
            // Tables created by dotted keys have no place of their own in the text.
            match table.get(name) {
                Some(Item::Table(inner)) => {
                    if inner.is_implicit() && !inner.is_dotted() {
                        home = InsertionPoint {
                            form: Form::Implicit,
                            below,
                        };
                    } else if !inner.is_dotted() {
                        home = InsertionPoint {
                            form: Form::Header(inner.span()?.end),
                            below,
                        };
                    }
                    table = inner;
                }
                Some(item) => {
                    let inner = item.as_inline_table()?;
                    if !inner.is_dotted() {
                        home = InsertionPoint {
                            form: Form::Inline(inner.span()?.start + 1),
                            below,
                        };
                    }
                    table = inner;
                }
                None => {
                    return match home.form {
                        Form::Inline(at) => self.in_inline_table(at, home.below),
                        _ => self.at_end(),
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
        match home.form {
            Form::Root => {
                let (first, _) = root.get_key_value(home.below.first()?)?;
                Edit::insert(
                    first.span()?.start,
                    format!("{} = {value}{newline}", dotted(home.below)),
                )
            }
            Form::Header(end) => {
                let line_end = self.text.get(end..)?.find('\n').map(|feed| end + feed + 1);
                let before = if line_end.is_some() { "" } else { newline };
                let line = format!("{before}{} = {value}{newline}", dotted(home.below));
                Edit::insert(line_end.unwrap_or(self.text.len()), line)
            }
            Form::Inline(at) => self.in_inline_table(at, home.below),
            Form::Implicit => self.at_end(),
        }
    }

    /// Inserts the key as the first one of an inline table.
    fn in_inline_table(&self, at: usize, below: &[&str]) -> Option<Edit> {
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
            format!(" {} = {}{comma}{gap}", dotted(below), self.value),
        )
    }

    /// Adds the key in a table of its own at the end of the file.
    fn at_end(&self) -> Option<Edit> {
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
        let key = dotted(&[key]);
        let added =
            format!("{end}{newline}# {comment}{newline}{table}{newline}{key} = {value}{newline}");
        Edit::insert(text.len(), added)
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
fn dotted(path: &[&str]) -> String {
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
            quoted(name)
        }
    };
    path.iter().map(name).collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests;
