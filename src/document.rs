//! Reads TOML files that people edit, and reports every fault with its place.
//!
//! Rule files and the config file are read with this module. A [`Table`] returns typed values and
//! collects faults (with file, line, column and a hint) instead of stopping at the first one.

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
use std::time::Duration;

pub use date::Day;
pub use replace::replace;
pub use suggest::suggest;

use bytes::Reader;
use bytestring::ByteString;
use source::{Positions, Source};
use toml::de::DeTable;
use value::{Content, Members, Value};

/// A fault in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The file, as the user named it.
    pub file: String,
    /// Line, from 1; 0 if the fault concerns the file as a whole.
    pub line: usize,
    /// Column in characters, from 1; 0 if the fault concerns the file as a whole.
    pub column: usize,
    pub message: String,
    /// How to fix it.
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
    /// Creates a fault that concerns a whole file.
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

/// A value and its place in the file.
#[derive(Clone, Debug)]
pub struct Located<T> {
    pub value: T,
    /// The place, for reporting faults.
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
    /// Creates a fault at this place.
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

/// Parses `text` and passes its root table to `read`.
///
/// # Errors
/// All faults: a single syntax fault, or everything that `read` reported.
pub fn read<T>(
    file: &str,
    text: &str,
    read: impl FnOnce(&Table<'_>) -> Option<T>,
) -> Result<T, Vec<Fault>> {
    read_edited(file, text, |_, _| {}, read)
}

/// Like [`read`], but the parsed file is first edited by `edit`, which reports faults with a range
/// in bytes, a message and a hint.
///
/// # Errors
/// As for [`read`], with the faults that `edit` reported.
pub fn read_edited<T>(
    file: &str,
    text: &str,
    edit: impl FnOnce(&mut DeTable<'_>, &mut dyn FnMut(&Range<usize>, String, String)),
    read: impl FnOnce(&Table<'_>) -> Option<T>,
) -> Result<T, Vec<Fault>> {
    let source = Source::new(file, Positions::new(text));
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

/// The built-in rule files, each preceded by its name.
static PREPARED_FILES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/prepared_files.bin"));
/// Returns the texts of these files.
///
/// Never inlined: the compiler would put a copy of all texts into each part of the program that
/// uses them, and texts are recognized by their address.
#[inline(never)]
pub(crate) fn prepared_texts() -> &'static str {
    include_str!(concat!(env!("OUT_DIR"), "/prepared_texts.txt"))
}

/// Reads a built-in rule file as parsed by the build: without cases, and with its regexes expanded.
/// `file` is its name below `rules`.
///
/// # Errors
/// Everything that `read` reported, or that the build knows no such file.
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

/// A table of a file. Read all keys that it may have, then call [`Table::finish`].
pub struct Table<'s> {
    source: &'s Source<'s>,
    members: Members<'s>,
    /// The position at which it begins.
    at: usize,
    used_keys: RefCell<HashSet<String>>,
}

impl<'s> Table<'s> {
    /// Returns the place of the table.
    pub fn place(&self) -> Place {
        self.source.place(self.at)
    }

    /// Reports a fault of the table as a whole.
    pub fn fault(&self, message: impl Into<String>, hint: Option<&str>) {
        self.source.fault(self.at, message, hint.map(Into::into));
    }

    /// Reports a fault at a place.
    pub fn fault_at(&self, place: &Place, message: impl Into<String>, hint: Option<&str>) {
        self.source
            .faults
            .borrow_mut()
            .push(place.fault(message, hint));
    }

    /// Reports a fault that was created elsewhere.
    pub fn add(&self, fault: Fault) {
        self.source.faults.borrow_mut().push(fault);
    }

    /// Reports a fault of one key's value.
    pub fn fault_at_key(&self, key: &str, message: impl Into<String>, hint: Option<&str>) {
        let at = self.members.get(key).map_or(self.at, |value| value.at);
        self.source.fault(at, message, hint.map(Into::into));
    }

    /// Reports whether the key exists.
    pub fn has(&self, key: &str) -> bool {
        self.members.get(key).is_some()
    }

    /// Reports whether the key exists and has a table as its value, where other types are valid
    /// too.
    pub fn is_table(&self, key: &str) -> bool {
        self.members
            .get(key)
            .is_some_and(|value| matches!(value.content, Content::Table(_)))
    }

    /// Reports whether the key exists and has a boolean as its value, where other types are valid
    /// too.
    pub fn is_boolean(&self, key: &str) -> bool {
        self.members
            .get(key)
            .is_some_and(|value| matches!(value.content, Content::Boolean(_)))
    }

    /// Marks a key as known although its value is not read.
    pub fn mark_known(&self, key: &str) {
        // The keys of a built-in file need no check: tests read all of these files like any other
        // file.
        if !self.source.is_built_in() {
            self.used_keys.borrow_mut().insert(key.to_owned());
        }
    }

    /// Returns the keys, in no particular order.
    pub fn keys(&self) -> Vec<Located<String>> {
        self.members
            .all()
            .map(|(key, at, _)| Located {
                value: key.to_owned(),
                place: self.source.place(at),
            })
            .collect()
    }

    /// Returns the keys in alphabetical order.
    pub fn sorted_keys(&self) -> Vec<Located<String>> {
        let mut keys = self.keys();
        keys.sort_by(|a, b| a.value.cmp(&b.value));
        keys
    }

    fn take(&self, key: &str) -> Option<Value<'s>> {
        self.mark_known(key);
        self.members.get(key)
    }

    fn subtable(&self, members: Members<'s>, at: usize) -> Self {
        Self {
            source: self.source,
            members,
            at,
            used_keys: RefCell::default(),
        }
    }

    /// Returns a text that the build has added to a table of a built-in file; `None` in any other
    /// file.
    pub(crate) fn added_text(&self, key: &str) -> Option<ByteString> {
        match self
            .members
            .get(key)
            .filter(|_| self.source.is_built_in())?
            .content
        {
            Content::String(text) => Some(self.source.to_byte_string(text)),
            _ => None,
        }
    }

    /// Returns the table as parsed; `None` in a built-in file.
    pub(crate) fn parsed(&self) -> Option<&'s DeTable<'s>> {
        match self.members {
            Members::Parsed(table) => Some(table),
            Members::Prepared(_) => None,
        }
    }

    fn report_type(&self, value: &Value<'_>, key: &str, wanted: &str) {
        self.source.fault(
            value.at,
            format!("`{key}` must be {wanted}, not {}", value.kind()),
            None,
        );
    }

    /// Reports that a required key is missing.
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
                self.report_type(&value, key, "a string");
                None
            }
        }
    }

    /// Reports a required key if it is missing.
    pub fn require(&self, key: &str, hint: &str) {
        if !self.has(key) {
            self.missing(key, hint);
        }
    }

    /// Returns a string without its place, if the key exists.
    pub fn value(&self, key: &str) -> Option<String> {
        self.string(key).map(|text| text.value)
    }

    /// Returns a string that is required.
    pub fn required(&self, key: &str, hint: &str) -> Option<Located<String>> {
        self.require(key, hint);
        self.string(key)
    }

    /// Returns a list of strings; empty if the key does not exist.
    pub fn strings(&self, key: &str) -> Vec<Located<String>> {
        self.list(key, str::to_owned)
    }

    /// Returns a list of strings without their places; empty if the key does not exist.
    pub fn values(&self, key: &str) -> Vec<String> {
        let texts = self.strings(key).into_iter();
        texts.map(|text| text.value).collect()
    }

    /// Like [`Self::strings`], but texts of a built-in file are not copied from the binary.
    pub fn texts(&self, key: &str) -> Vec<Located<ByteString>> {
        self.list(key, |text| self.source.to_byte_string(text))
    }

    fn list<T>(&self, key: &str, convert: impl Fn(&str) -> T) -> Vec<Located<T>> {
        let Some(value) = self.take(key) else {
            return Vec::new();
        };
        let Content::List(items) = value.content else {
            self.report_type(&value, key, "a list of strings");
            return Vec::new();
        };
        let mut out = Vec::with_capacity(items.size_hint().0);
        for item in items {
            match item.content {
                Content::String(text) => out.push(Located {
                    value: convert(text),
                    place: self.source.place(item.at),
                }),
                _ => self.report_type(&item, key, "a list of strings"),
            }
        }
        out
    }

    /// Returns a string as a list, or a list of strings; empty if the key does not exist.
    pub fn one_or_more(&self, key: &str) -> Vec<Located<String>> {
        if self.is_list(key) {
            self.strings(key)
        } else {
            self.string(key).into_iter().collect()
        }
    }

    /// Reports whether the key exists and has a list as its value, where other types are valid too.
    pub fn is_list(&self, key: &str) -> bool {
        self.members
            .get(key)
            .is_some_and(|value| matches!(value.content, Content::List(_)))
    }

    /// Returns a boolean, if the key exists.
    pub fn boolean(&self, key: &str) -> Option<bool> {
        let value = self.take(key)?;
        match value.content {
            Content::Boolean(boolean) => Some(boolean),
            _ => {
                self.report_type(&value, key, "true or false");
                None
            }
        }
    }

    /// Returns a boolean; `base` if the key is missing.
    pub fn flag(&self, key: &str, base: bool) -> bool {
        self.boolean(key).unwrap_or(base)
    }

    /// Returns a whole number within `range`, if the key exists.
    pub fn integer(&self, key: &str, range: RangeInclusive<u64>) -> Option<u64> {
        let value = self.take(key)?;
        let Content::Integer(digits, radix) = value.content else {
            self.report_type(&value, key, "a whole number");
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

    /// Returns a whole number within `range`; `base` if the key is missing.
    pub fn count(&self, key: &str, range: RangeInclusive<u64>, base: usize) -> usize {
        self.integer(key, range)
            .map_or(base, |number| usize::try_from(number).unwrap_or(usize::MAX))
    }

    /// Returns a time within `range`, in the unit with which the key ends; `base` if the key is missing.
    pub fn duration(&self, key: &str, range: RangeInclusive<u64>, base: Duration) -> Duration {
        self.integer(key, range)
            .map_or(base, |number| match key.rsplit('_').next() {
                Some("ms" | "milliseconds") => Duration::from_millis(number),
                Some("hours") => Duration::from_secs(number * 3600),
                Some("days") => Duration::from_secs(number * 86_400),
                _ => Duration::from_secs(number),
            })
    }

    /// Returns the value of one of a few words, if the key exists.
    pub fn choice<T: Copy>(&self, key: &str, words: &[(&str, T)]) -> Option<T> {
        let word = self.string(key)?;
        self.find(&word, words, || {
            format!("`{}` is not a valid `{key}`", word.value)
        })
    }

    /// Returns the value of a word; if it is not known, reports the fault with this message, and
    /// the known words as a hint.
    pub fn find<T: Copy>(
        &self,
        word: &Located<String>,
        words: &[(&str, T)],
        message: impl FnOnce() -> String,
    ) -> Option<T> {
        let found = words.iter().find(|(known, _)| *known == word.value);
        if found.is_none() {
            let known: Vec<&str> = words.iter().map(|(known, _)| *known).collect();
            let hint = suggest(&word.value, &known);
            self.fault_at(&word.place, message(), Some(&hint));
        }
        found.map(|(_, value)| *value)
    }

    pub fn table(&self, key: &str) -> Option<Self> {
        let value = self.take(key)?;
        match value.content {
            Content::Table(members) => Some(self.subtable(members, value.at)),
            _ => {
                self.report_type(&value, key, "a table");
                None
            }
        }
    }

    /// Returns a list of tables (`[[key]]`); empty if the key does not exist.
    pub fn tables(&self, key: &str) -> Vec<Self> {
        let Some(value) = self.take(key) else {
            return Vec::new();
        };
        let Content::List(items) = value.content else {
            self.report_type(
                &value,
                key,
                &format!("a list of tables (write `[[{key}]]`)"),
            );
            return Vec::new();
        };
        let mut out = Vec::new();
        for item in items {
            match item.content {
                Content::Table(members) => out.push(self.subtable(members, item.at)),
                _ => self.report_type(&item, key, "a list of tables"),
            }
        }
        out
    }

    /// Reports every key that was not read, with the nearest known name.
    pub fn finish(&self) {
        if self.source.is_built_in() {
            return;
        }
        let used = self.used_keys.borrow();
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
