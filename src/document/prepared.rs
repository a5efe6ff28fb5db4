//! Files that the build has parsed, in bytes that the gateway reads without a parser of TOML: a start reads two megabytes of
//! rules.
//!
//! A table is the number of its keys, then for each its name, its place and its value. A value is its kind, its place and its
//! content. A place is a line and a column, in one number. A text is where it begins in [`Texts`], and its length.

use std::borrow::Cow;
use std::collections::HashMap;

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::bytes::{Reader, Writer};

/// Bits of a place that are its column. A column beyond counts as the last.
const COLUMN_BITS: u32 = 10;

/// The place where a file begins.
#[allow(dead_code, reason = "for the gateway")]
pub(crate) const START: usize = 1 << COLUMN_BITS | 1;

/// Kinds of values.
const STRING: u8 = 0;
const INTEGER: u8 = 1;
const BOOLEAN: u8 = 2;
const ARRAY: u8 = 3;
const TABLE: u8 = 4;

/// The texts of all files, one after the other. They are one string, which the compiler checks: a start would take
/// milliseconds to find that they are UTF-8.
#[derive(Default)]
#[allow(dead_code, reason = "the build writes what the gateway reads")]
pub(crate) struct Texts {
    pub(crate) all: String,
    known: HashMap<String, usize>,
}

#[allow(dead_code, reason = "the build writes what the gateway reads")]
impl Texts {
    /// Adds a reference to a text.
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

/// Writes a table. `place` gives the line and column of a byte of the file.
///
/// # Errors
/// A kind of value that is not written.
#[allow(dead_code, reason = "the build writes what the gateway reads")]
pub(crate) fn write(
    table: &DeTable<'_>,
    place: &dyn Fn(usize) -> (usize, usize),
    texts: &mut Texts,
    to: &mut Writer,
) -> Result<(), String> {
    to.number(table.len());
    for (name, value) in table {
        texts.write(name.get_ref(), to);
        to.number(packed(place(name.span().start)));
        write_value(value, place, texts, to)?;
    }
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
            to.number(values.len());
            values.iter().try_for_each(|value| write_value(value, place, texts, to))?;
        }
        DeValue::Table(table) => {
            begin(TABLE);
            write(table, place, texts, to)?;
        }
        other => return Err(format!("{other:?} is of a kind that is not prepared: see src/document/prepared.rs")),
    }
    Ok(())
}

/// Reads a table. Spans begin at packed places: see [`unpacked`].
pub(crate) fn read<'t>(from: &mut Reader<'_>, texts: &'t str) -> Option<DeTable<'t>> {
    let mut table = DeTable::new();
    for _ in 0..from.number()? {
        let name = read_text(from, texts)?;
        let at = from.number()? as usize;
        table.insert(Spanned::new(at..at, Cow::Borrowed(name)), read_value(from, texts)?);
    }
    Some(table)
}

fn read_value<'t>(from: &mut Reader<'_>, texts: &'t str) -> Option<Spanned<DeValue<'t>>> {
    let kind = *from.bytes(1)?.first()?;
    let at = from.number()? as usize;
    let value = match kind {
        STRING => DeValue::String(Cow::Borrowed(read_text(from, texts)?)),
        INTEGER => DeValue::parse(read_text(from, texts)?).ok()?.into_inner(),
        BOOLEAN => DeValue::Boolean(from.flag()?),
        ARRAY => {
            let count = from.number()? as usize;
            let mut values = Vec::with_capacity(count);
            for _ in 0..count {
                values.push(read_value(from, texts)?);
            }
            DeValue::Array(DeArray::from_iter(values))
        }
        TABLE => DeValue::Table(read(from, texts)?),
        _ => return None,
    };
    Some(Spanned::new(at..at, value))
}

fn packed((line, column): (usize, usize)) -> usize {
    line << COLUMN_BITS | column.min((1 << COLUMN_BITS) - 1)
}

/// The line and the column of a place.
pub(crate) fn unpacked(place: usize) -> (usize, usize) {
    (place >> COLUMN_BITS, place & ((1 << COLUMN_BITS) - 1))
}
