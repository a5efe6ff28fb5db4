//! The format of files that the build has parsed. The gateway reads it without a TOML parser, since
//! it reads two megabytes of rules at startup.
//!
//! A table consists of the tags of its keys, the offset of each member, and the members: the key,
//! its place and the value. A value consists of its kind, its place and its content. A list or a
//! table within another one begins with its length in bytes, and a list then has the number of its
//! values. A place is a line and a column, in one number. A text is its offset in [`Texts`] and its
//! length.

use std::collections::HashMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::bytes::{Reader, Writer};

/// Number of bits of a place that contain its column. A larger column counts as the last one.
const COLUMN_BITS: u32 = 10;

/// The place at which a file begins.
#[allow(dead_code, reason = "for the gateway")]
pub(crate) const START: usize = 1 << COLUMN_BITS | 1;

/// Kinds of values.
pub(crate) const STRING: u8 = 0;
pub(crate) const INTEGER: u8 = 1;
pub(crate) const BOOLEAN: u8 = 2;
pub(crate) const ARRAY: u8 = 3;
pub(crate) const TABLE: u8 = 4;

/// The texts of all files, concatenated into one string, which the compiler checks: at startup, it
/// would take milliseconds to check that they are UTF-8.
#[derive(Default)]
#[allow(dead_code, reason = "the build writes what the gateway reads")]
pub(crate) struct Texts {
    pub(crate) all: String,
    known: HashMap<String, usize>,
}

#[allow(dead_code, reason = "the build writes what the gateway reads")]
impl Texts {
    /// Writes a reference to a text.
    pub(crate) fn write(&mut self, text: &str, to: &mut Writer) {
        let start = *self.known.entry(text.to_owned()).or_insert_with(|| {
            self.all.push_str(text);
            self.all.len() - text.len()
        });
        to.number(start);
        to.number(text.len());
    }
}

/// Reads a reference to one of these texts.
pub(crate) fn read_text<'t>(from: &mut Reader<'_>, texts: &'t str) -> Option<&'t str> {
    let start = from.number()? as usize;
    let length = from.number()? as usize;
    texts.get(start..start.checked_add(length)?)
}

/// Returns a hash of a key. A search compares only keys with the same hash.
pub(crate) fn tag(key: &str) -> u32 {
    let key = key.as_bytes();
    let byte = |at: usize| key.get(at).copied().map_or(0, u32::from);
    (key.len() as u32) << 24
        ^ byte(0) << 16
        ^ byte(key.len() / 2) << 8
        ^ byte(key.len().saturating_sub(1))
}

/// Reads the key of a member of a table, and its place.
pub(crate) fn read_key<'t>(from: &mut Reader<'_>, texts: &'t str) -> Option<(&'t str, usize)> {
    Some((read_text(from, texts)?, from.number()? as usize))
}

/// Writes a table. `place` returns the line and column of a byte of the file.
///
/// # Errors
/// A value has a kind that cannot be written.
#[allow(dead_code, reason = "the build writes what the gateway reads")]
pub(crate) fn write(
    table: &DeTable<'_>,
    place: &dyn Fn(usize) -> (usize, usize),
    texts: &mut Texts,
    to: &mut Writer,
) -> Result<(), String> {
    let mut tags = Vec::new();
    let mut starts = Vec::new();
    let mut members = Writer::default();
    for (name, value) in table {
        tags.push(tag(name.get_ref()));
        starts.push(u32::try_from(members.0.len()).unwrap_or(u32::MAX));
        texts.write(name.get_ref(), &mut members);
        members.number(packed(place(name.span().start)));
        write_value(value, place, texts, &mut members)?;
    }
    to.numbers(&tags);
    to.numbers(&starts);
    to.0.extend(members.0);
    Ok(())
}

fn write_value(
    value: &Spanned<DeValue<'_>>,
    place: &dyn Fn(usize) -> (usize, usize),
    texts: &mut Texts,
    to: &mut Writer,
) -> Result<(), String> {
    let at = packed(place(value.span().start));
    let mut begin = |kind: u8| {
        to.0.push(kind);
        to.number(at);
    };
    match value.get_ref() {
        DeValue::String(text) => {
            begin(STRING);
            texts.write(text, to);
        }
        DeValue::Integer(number) if number.radix() == 10 => {
            begin(INTEGER);
            texts.write(number.as_str(), to);
        }
        DeValue::Boolean(flag) => {
            begin(BOOLEAN);
            to.flag(*flag);
        }
        DeValue::Array(values) => {
            begin(ARRAY);
            let mut content = Writer::default();
            content.number(values.len());
            values
                .iter()
                .try_for_each(|value| write_value(value, place, texts, &mut content))?;
            to.text(&content.0);
        }
        DeValue::Table(table) => {
            begin(TABLE);
            let mut content = Writer::default();
            write(table, place, texts, &mut content)?;
            to.text(&content.0);
        }
        other => {
            return Err(format!(
                "{other:?} is of a kind that is not prepared: see src/document/prepared.rs"
            ));
        }
    }
    Ok(())
}

fn packed((line, column): (usize, usize)) -> usize {
    line << COLUMN_BITS | column.min((1 << COLUMN_BITS) - 1)
}

/// Returns the line and the column of a place.
pub(crate) fn unpacked(place: usize) -> (usize, usize) {
    (place >> COLUMN_BITS, place & ((1 << COLUMN_BITS) - 1))
}
