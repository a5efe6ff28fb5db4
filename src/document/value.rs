//! Values of a file, either from the TOML parser or as written by the build
//! (see `super::prepared`).

use std::{iter, slice};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::bytes::Reader;
use super::prepared;
use super::prepared_texts;

/// A value and the position at which it begins: a byte of the file or a packed place.
pub(super) struct Value<'s> {
    pub(super) at: usize,
    pub(super) content: Content<'s>,
}

pub(super) enum Content<'s> {
    String(&'s str),
    /// Digits and their radix.
    Integer(&'s str, u32),
    Boolean(bool),
    List(List<'s>),
    Table(Members<'s>),
    /// A float or a date, which the build does not write.
    Other(&'s DeValue<'s>),
}

/// An iterator over the values of a list.
#[derive(Clone)]
pub(super) enum List<'s> {
    Parsed(slice::Iter<'s, Spanned<DeValue<'s>>>),
    /// With the number of remaining values.
    Prepared(Reader<'s>, usize),
}

/// The members of a table.
#[derive(Clone, Copy)]
pub(super) enum Members<'s> {
    Parsed(&'s DeTable<'s>),
    Prepared(&'s [u8]),
}

/// A member of a table: its key, the position at which that begins, and its value.
pub(super) type Member<'s> = (&'s str, usize, Value<'s>);

impl<'s> Value<'s> {
    fn from_parsed(value: &'s Spanned<DeValue<'s>>) -> Self {
        let content = match value.get_ref() {
            DeValue::String(text) => Content::String(text),
            DeValue::Integer(integer) => Content::Integer(integer.as_str(), integer.radix()),
            DeValue::Boolean(boolean) => Content::Boolean(*boolean),
            DeValue::Array(items) => Content::List(List::Parsed(items.iter())),
            DeValue::Table(table) => Content::Table(Members::Parsed(table)),
            other => Content::Other(other),
        };
        Self {
            at: value.span().start,
            content,
        }
    }

    fn from_prepared(from: &mut Reader<'s>) -> Option<Self> {
        let kind = *from.bytes(1)?.first()?;
        let at = from.number()? as usize;
        let content = match kind {
            prepared::STRING => Content::String(prepared::read_text(from, prepared_texts())?),
            prepared::INTEGER => Content::Integer(prepared::read_text(from, prepared_texts())?, 10),
            prepared::BOOLEAN => Content::Boolean(from.flag()?),
            prepared::ARRAY => {
                let mut values = Reader(from.text()?);
                let count = values.number()? as usize;
                Content::List(List::Prepared(values, count))
            }
            prepared::TABLE => Content::Table(Members::Prepared(from.text()?)),
            _ => return None,
        };
        Some(Self { at, content })
    }

    /// Returns the kind of the value, with an article.
    pub(super) fn kind(&self) -> &'static str {
        match self.content {
            Content::String(_) => "a string",
            Content::Integer(..) => "a whole number",
            Content::Boolean(_) => "true or false",
            Content::List(_) => "a list",
            Content::Table(_) => "a table",
            Content::Other(DeValue::Float(_)) => "a number with a point",
            Content::Other(_) => "a date",
        }
    }
}

impl<'s> Iterator for List<'s> {
    type Item = Value<'s>;

    fn next(&mut self) -> Option<Value<'s>> {
        match self {
            Self::Parsed(values) => values.next().map(Value::from_parsed),
            Self::Prepared(from, left) => {
                *left = left.saturating_sub(1);
                Value::from_prepared(from)
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self {
            Self::Parsed(values) => values.size_hint(),
            Self::Prepared(_, left) => (*left, Some(*left)),
        }
    }
}

impl<'s> Members<'s> {
    /// Returns the value of a key.
    pub(super) fn get(self, key: &str) -> Option<Value<'s>> {
        match self {
            Self::Parsed(table) => table.get(key).map(Value::from_parsed),
            Self::Prepared(bytes) => {
                let mut from = Reader(bytes);
                let tags = from.numbers()?;
                let starts = from.numbers()?;
                let tag = prepared::tag(key).to_le_bytes();
                let mut next = 0;
                // Most keys that are asked for do not exist: the loop reads only tags for them.
                loop {
                    let tags = tags.get(next..)?;
                    let index = next + tags.iter().position(|other| *other == tag)?;
                    let start = u32::from_le_bytes(*starts.get(index)?) as usize;
                    let mut member = Reader(from.0.get(start..)?);
                    let (name, _) = prepared::read_key(&mut member, prepared_texts())?;
                    if name == key {
                        return Value::from_prepared(&mut member);
                    }
                    next = index + 1;
                }
            }
        }
    }

    /// Returns the members, in an order that depends on the keys only.
    pub(super) fn all(self) -> Box<dyn Iterator<Item = Member<'s>> + 's> {
        match self {
            Self::Parsed(table) => Box::new(table.iter().map(|(key, value)| {
                let name: &str = key.get_ref();
                (name, key.span().start, Value::from_parsed(value))
            })),
            Self::Prepared(bytes) => {
                let mut from = Reader(bytes);
                // The members follow the tags and starts, one after the other.
                let _ = from.numbers().and_then(|_| from.numbers());
                Box::new(iter::from_fn(move || {
                    let (name, at) = prepared::read_key(&mut from, prepared_texts())?;
                    Some((name, at, Value::from_prepared(&mut from)?))
                }))
            }
        }
    }
}
