//! TOML files that people write, read so that every fault is told with its place.
//!
//! Rule files and the config file are read through here: a [`Table`] hands out typed values and
//! notes what is wrong (with file, line, column and a hint) instead of stopping at the first fault.

pub(crate) mod bytes;
mod date;
mod json;
mod prepared;
mod replace;
mod source;
mod suggest;
mod value;

use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt;
use std::iter;
use std::ops::{Range, RangeInclusive};
use std::rc::Rc;

pub use date::Day;
pub use replace::replace;
pub use suggest::suggest;

use bytes::Reader;
use bytestring::ByteString;
use source::{Positions, Source};
use toml::de::DeTable;
use value::{Content, Members, Value};

/// One thing that is wrong in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The file, as the user named it.
    pub file: String,
    /// Line, from 1; 0 where the file as a whole is meant.
    pub line: usize,
    /// Column in characters, from 1; 0 where the file as a whole is meant.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if self.line > 0 {
            write!(f, ":{}:{}", self.line, self.column)?;
        }
        write!(f, ": {}", self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}

impl Fault {
    /// A fault of a whole file.
    pub fn of_file(
        file: impl Into<String>,
        message: impl Into<String>,
        hint: Option<&str>,
    ) -> Self {
        Self {
            file: file.into(),
            line: 0,
            column: 0,
            message: message.into(),
            hint: hint.map(Into::into),
        }
    }
}

/// A value and where in its file it stands.
#[derive(Clone, Debug)]
pub struct Located<T> {
    pub value: T,
    /// Its place, to tell faults by.
    pub place: Place,
}

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Place {
    /// The file, as the user named it.
    pub file: Rc<str>,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

impl Place {
    /// A fault here.
    pub fn fault(&self, message: impl Into<String>, hint: Option<&str>) -> Fault {
        Fault {
            file: self.file.to_string(),
            line: self.line,
            column: self.column,
            message: message.into(),
            hint: hint.map(Into::into),
        }
    }
}

/// Reads `text` and gives its root table to `read`.
///
/// # Errors
/// All faults: a syntax fault alone, or everything that `read` noted.
pub fn read<T>(
    file: &str,
    text: &str,
    read: impl FnOnce(&Table<'_>) -> Option<T>,
) -> Result<T, Vec<Fault>> {
    read_edited(file, text, |_, _| {}, read)
}

/// The same with the parsed file edited by `edit`, which notes what is wrong: where (in bytes), what, and what to do.
///
/// # Errors
/// As [`read`], with the faults that `edit` noted.
pub fn read_edited<T>(
    file: &str,
    text: &str,
    edit: impl FnOnce(&mut DeTable<'_>, &mut dyn FnMut(&Range<usize>, String, String)),
    read: impl FnOnce(&Table<'_>) -> Option<T>,
) -> Result<T, Vec<Fault>> {
    let source = Source::new(file, Positions::of(text));
    let mut root = match DeTable::parse(text) {
        Ok(root) => root,
        Err(error) => {
            let at = error.span().map_or(0, |span| span.start);
            return Err(vec![source.place(at).fault(error.message(), None)]);
        }
    };
    let start = root.span().start;
    edit(root.get_mut(), &mut |span, message, hint| {
        source.fault(span.start, message, Some(hint))
    });
    source.read(Members::Parsed(root.get_ref()), start, read)
}

/// The built-in rule files, each after its name.
static PREPARED_FILES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/prepared_files.bin"));
/// Their texts.
pub(crate) static PREPARED_TEXTS: &str =
    include_str!(concat!(env!("OUT_DIR"), "/prepared_texts.txt"));

/// Reads a built-in rule file as the build has parsed it: without cases, its regexes expanded. `file` is its name below `rules`.
///
/// # Errors
/// Everything that `read` noted, or that the build knows no such file.
pub fn read_builtin<T>(
    file: &str,
    read: impl FnOnce(&Table<'_>) -> Option<T>,
) -> Result<T, Vec<Fault>> {
    let mut files = Reader(PREPARED_FILES);
    let found =
        iter::from_fn(|| files.text().zip(files.text())).find(|(name, _)| *name == file.as_bytes());
    match found {
        Some((_, content)) => Source::new(file, Positions::Packed).read(
            Members::Prepared(content),
            prepared::START,
            read,
        ),
        None => Err(vec![Fault::of_file(
            file,
            "the build has not prepared this file",
            None,
        )]),
    }
}

/// A table of a file. Take what it may hold, then [`Table::finish`].
pub struct Table<'s> {
    source: &'s Source<'s>,
    members: Members<'s>,
    /// Where it begins.
    at: usize,
    used: RefCell<HashSet<String>>,
}

impl<'s> Table<'s> {
    /// Where it stands.
    pub fn place(&self) -> Place {
        self.source.place(self.at)
    }

    /// Notes a fault of the table as a whole.
    pub fn fault(&self, message: impl Into<String>, hint: Option<&str>) {
        self.source.fault(self.at, message, hint.map(Into::into));
    }

    /// Notes a fault at a place.
    pub fn fault_at(&self, place: &Place, message: impl Into<String>, hint: Option<&str>) {
        self.source
            .faults
            .borrow_mut()
            .push(place.fault(message, hint));
    }

    /// Notes a fault that was made elsewhere.
    pub fn add(&self, fault: Fault) {
        self.source.faults.borrow_mut().push(fault);
    }

    /// Notes a fault of one key's value.
    pub fn fault_of(&self, key: &str, message: impl Into<String>, hint: Option<&str>) {
        let at = self.members.get(key).map_or(self.at, |value| value.at);
        self.source.fault(at, message, hint.map(Into::into));
    }

    /// Whether the key is there.
    pub fn has(&self, key: &str) -> bool {
        self.members.get(key).is_some()
    }

    /// Whether the key is there and holds a table, where something else may stand too.
    pub fn is_table(&self, key: &str) -> bool {
        self.members
            .get(key)
            .is_some_and(|value| matches!(value.content, Content::Table(_)))
    }

    /// Whether the key is there and holds true or false, where something else may stand too.
    pub fn is_boolean(&self, key: &str) -> bool {
        self.members
            .get(key)
            .is_some_and(|value| matches!(value.content, Content::Boolean(_)))
    }

    /// Says that the key is known, where its value cannot be read.
    pub fn know(&self, key: &str) {
        // The keys of a built-in file are known: tests read them all as those of any other file.
        if !self.source.is_built_in() {
            self.used.borrow_mut().insert(key.to_owned());
        }
    }

    /// The keys, in no particular order.
    pub fn keys(&self) -> Vec<Located<String>> {
        self.members
            .all()
            .map(|(key, at, _)| Located {
                value: key.to_owned(),
                place: self.source.place(at),
            })
            .collect()
    }

    fn take(&self, key: &str) -> Option<Value<'s>> {
        self.know(key);
        self.members.get(key)
    }

    fn inner(&self, members: Members<'s>, at: usize) -> Self {
        Self {
            source: self.source,
            members,
            at,
            used: RefCell::default(),
        }
    }

    /// A text that the build has added to a table of a built-in file; `None` in any other file.
    pub(crate) fn added(&self, key: &str) -> Option<ByteString> {
        match self
            .members
            .get(key)
            .filter(|_| self.source.is_built_in())?
            .content
        {
            Content::String(text) => Some(self.source.keep(text)),
            _ => None,
        }
    }

    /// The table as it was parsed; `None` in a built-in file.
    pub(crate) fn parsed(&self) -> Option<&'s DeTable<'s>> {
        match self.members {
            Members::Parsed(table) => Some(table),
            Members::Prepared(_) => None,
        }
    }

    fn wrong(&self, value: &Value<'_>, key: &str, wanted: &str) {
        self.source.fault(
            value.at,
            format!("`{key}` must be {wanted}, not {}", value.kind()),
            None,
        );
    }

    /// Notes that an obligatory key is missing.
    pub fn missing(&self, key: &str, hint: &str) {
        self.source.fault(
            self.at,
            format!("`{key}` is missing"),
            Some(hint.to_owned()),
        );
    }

    pub fn string(&self, key: &str) -> Option<Located<String>> {
        let value = self.take(key)?;
        match value.content {
            Content::String(text) => Some(Located {
                value: text.to_owned(),
                place: self.source.place(value.at),
            }),
            _ => {
                self.wrong(&value, key, "a string");
                None
            }
        }
    }

    /// A string that must be there.
    pub fn required(&self, key: &str, hint: &str) -> Option<Located<String>> {
        if !self.has(key) {
            self.missing(key, hint);
        }
        self.string(key)
    }

    /// A list of strings; empty if not there.
    pub fn strings(&self, key: &str) -> Vec<Located<String>> {
        self.list(key, str::to_owned)
    }

    /// The same. Those of a built-in file stay where they are in the binary.
    pub fn texts(&self, key: &str) -> Vec<Located<ByteString>> {
        self.list(key, |text| self.source.keep(text))
    }

    fn list<T>(&self, key: &str, keep: impl Fn(&str) -> T) -> Vec<Located<T>> {
        let Some(value) = self.take(key) else {
            return Vec::new();
        };
        let Content::List(items) = value.content else {
            self.wrong(&value, key, "a list of strings");
            return Vec::new();
        };
        let mut out = Vec::with_capacity(items.size_hint().0);
        for item in items {
            match item.content {
                Content::String(text) => out.push(Located {
                    value: keep(text),
                    place: self.source.place(item.at),
                }),
                _ => self.wrong(&item, key, "a list of strings"),
            }
        }
        out
    }

    /// A string, or a list of strings; empty if not there.
    pub fn one_or_more(&self, key: &str) -> Vec<Located<String>> {
        if self.is_list(key) {
            self.strings(key)
        } else {
            self.string(key).into_iter().collect()
        }
    }

    /// Whether the key is there and holds a list, where something else may stand too.
    pub fn is_list(&self, key: &str) -> bool {
        self.members
            .get(key)
            .is_some_and(|value| matches!(value.content, Content::List(_)))
    }

    /// `true` or `false`, if there.
    pub fn boolean(&self, key: &str) -> Option<bool> {
        let value = self.take(key)?;
        match value.content {
            Content::Boolean(boolean) => Some(boolean),
            _ => {
                self.wrong(&value, key, "true or false");
                None
            }
        }
    }

    /// A whole number within `range`, if there.
    pub fn integer(&self, key: &str, range: RangeInclusive<u64>) -> Option<u64> {
        let value = self.take(key)?;
        let Content::Integer(digits, radix) = value.content else {
            self.wrong(&value, key, "a whole number");
            return None;
        };
        match u64::from_str_radix(digits, radix) {
            Ok(number) if range.contains(&number) => Some(number),
            _ => {
                self.source.fault(
                    value.at,
                    format!(
                        "`{key}` must be between {} and {}",
                        range.start(),
                        range.end()
                    ),
                    None,
                );
                None
            }
        }
    }

    /// One of a few words, if there.
    pub fn choice<T: Copy>(&self, key: &str, words: &[(&str, T)]) -> Option<T> {
        let text = self.string(key)?;
        let found = words
            .iter()
            .find(|(word, _)| *word == text.value)
            .map(|(_, value)| *value);
        if found.is_none() {
            let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            self.fault_at(
                &text.place,
                format!("`{}` is not a valid `{key}`", text.value),
                Some(&suggest(&text.value, &known)),
            );
        }
        found
    }

    pub fn table(&self, key: &str) -> Option<Self> {
        let value = self.take(key)?;
        match value.content {
            Content::Table(members) => Some(self.inner(members, value.at)),
            _ => {
                self.wrong(&value, key, "a table");
                None
            }
        }
    }

    /// A list of tables (`[[key]]`); empty if not there.
    pub fn tables(&self, key: &str) -> Vec<Self> {
        let Some(value) = self.take(key) else {
            return Vec::new();
        };
        let Content::List(items) = value.content else {
            self.wrong(
                &value,
                key,
                &format!("a list of tables (write `[[{key}]]`)"),
            );
            return Vec::new();
        };
        let mut out = Vec::new();
        for item in items {
            match item.content {
                Content::Table(members) => out.push(self.inner(members, item.at)),
                _ => self.wrong(&item, key, "a list of tables"),
            }
        }
        out
    }

    /// Notes every key that nothing asked for, with the nearest known name.
    pub fn finish(&self) {
        if self.source.is_built_in() {
            return;
        }
        let used = self.used.borrow();
        let known: Vec<&str> = used.iter().map(String::as_str).collect();
        for (name, at, _) in self.members.all() {
            if !used.contains(name) {
                self.source.fault(
                    at,
                    format!("unknown key `{name}`"),
                    Some(suggest(name, &known)),
                );
            }
        }
    }
}

#[cfg(test)]
mod tests;
