//! Files that the build has parsed, in bytes that the gateway reads without a parser of TOML: a start reads a megabyte of
//! rules.
//!
//! A table is the number of its keys, then for each its name, its place and its value. A value is its kind, its place and its
//! content. A place is a line and a column, in one number.

use std::borrow::Cow;

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

/// Writes a table. `place` gives the line and column of a byte of the file.
///
/// # Errors
/// A kind of value that is not written.
#[allow(dead_code, reason = "the build writes what the gateway reads")]
pub(crate) fn write(table: &DeTable<'_>, place: &dyn Fn(usize) -> (usize, usize), to: &mut Writer) -> Result<(), String> {
    to.number(table.len());
    for (name, value) in table {
        to.text(name.get_ref().as_bytes());
        to.number(packed(place(name.span().start)));
        write_value(value, place, to)?;
    }
    Ok(())
}

fn write_value(value: &Spanned<DeValue<'_>>, place: &dyn Fn(usize) -> (usize, usize), to: &mut Writer) -> Result<(), String> {
    let at = packed(place(value.span().start));
    let mut begin = |kind: u8| {
        to.0.push(kind);
        to.number(at);
    };
    match value.get_ref() {
        DeValue::String(text) => {
            begin(STRING);
            to.text(text.as_bytes());
        }
        DeValue::Integer(number) if number.radix() == 10 => {
            begin(INTEGER);
            to.text(number.as_str().as_bytes());
        }
        DeValue::Boolean(flag) => {
            begin(BOOLEAN);
            to.flag(*flag);
        }
        DeValue::Array(values) => {
            begin(ARRAY);
            to.number(values.len());
            values.iter().try_for_each(|value| write_value(value, place, to))?;
        }
        DeValue::Table(table) => {
            begin(TABLE);
            write(table, place, to)?;
        }
        other => return Err(format!("{other:?} is of a kind that is not prepared: see src/document/prepared.rs")),
    }
    Ok(())
}

/// Reads a table. Spans begin at packed places: see [`unpacked`].
pub(crate) fn read<'t>(from: &mut Reader<'t>) -> Option<DeTable<'t>> {
    let mut table = DeTable::new();
    for _ in 0..from.number()? {
        let name = read_text(from)?;
        let at = from.number()? as usize;
        table.insert(Spanned::new(at..at, name), read_value(from)?);
    }
    Some(table)
}

fn read_value<'t>(from: &mut Reader<'t>) -> Option<Spanned<DeValue<'t>>> {
    let kind = *from.bytes(1)?.first()?;
    let at = from.number()? as usize;
    let value = match kind {
        STRING => DeValue::String(read_text(from)?),
        INTEGER => DeValue::parse(std::str::from_utf8(from.text()?).ok()?).ok()?.into_inner(),
        BOOLEAN => DeValue::Boolean(from.flag()?),
        ARRAY => {
            let mut values = DeArray::new();
            for _ in 0..from.number()? {
                values.push(read_value(from)?);
            }
            DeValue::Array(values)
        }
        TABLE => DeValue::Table(read(from)?),
        _ => return None,
    };
    Some(Spanned::new(at..at, value))
}

fn read_text<'t>(from: &mut Reader<'t>) -> Option<Cow<'t, str>> {
    std::str::from_utf8(from.text()?).ok().map(Cow::Borrowed)
}

fn packed((line, column): (usize, usize)) -> usize {
    line << COLUMN_BITS | column.min((1 << COLUMN_BITS) - 1)
}

/// The line and the column of a place.
pub(crate) fn unpacked(place: usize) -> (usize, usize) {
    (place >> COLUMN_BITS, place & ((1 << COLUMN_BITS) - 1))
}
