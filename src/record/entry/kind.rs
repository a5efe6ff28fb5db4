//! Kinds of members: how a value is written, how it is read, and its schema.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::marker::PhantomData;
use std::time::{Duration, SystemTime};

use crate::message::{Value, ValueKind};
use crate::protocol::AuditId;
use crate::record::chain::Sha;
use crate::record::digits::{Decimal, Hex};
use crate::record::escape::{write_plain, write_quoted};

/// A kind of member.
pub trait Kind {
    /// A value to be written.
    type Written<'a>;
    /// A value as it is read.
    type Read<'e>;
    /// Adds a value to a line.
    fn write(value: Self::Written<'_>, out: &mut String);

    /// Reads a value; `None` if it is of another kind.
    fn read(value: Value<'_>) -> Option<Self::Read<'_>>;

    /// Its JSON Schema, without the braces.
    #[cfg(test)]
    fn schema() -> String;
}

/// Defines a kind: its doc, what is written, what is read, its schema, and how to do both.
macro_rules! kinds {
    ($(
        $(#[$doc:meta])+
        $kind:ident: $written:ty => $read:ty, $schema:literal,
        |$value:ident, $out:ident| $write:expr, |$json:ident| $from:expr;
    )+) => {
        $(
            $(#[$doc])+
            pub struct $kind;

            impl Kind for $kind {
                type Written<'a> = $written;
                type Read<'e> = $read;

                fn write($value: Self::Written<'_>, $out: &mut String) {
                    $write;
                }

                fn read($json: Value<'_>) -> Option<Self::Read<'_>> {
                    $from
                }

                #[cfg(test)]
                fn schema() -> String {
                    $schema.to_owned()
                }
            }
        )+
    };
}

kinds! {
    /// A text, which may be an agent's or a server's.
    Text: Cow<'a, str> => Cow<'e, str>, r#""type": "string""#,
        |value, out| write_quoted(&value, out), |json| json.str();
    /// One of the gate's own words, which need no escapes.
    Word: &'static str => Cow<'e, str>, r#""type": "string""#,
        |value, out| write_plain(value, out), |json| json.str();
    /// An audit id.
    Id: AuditId => Cow<'e, str>, r#""type": "string", "format": "uuid""#,
        |value, out| write_plain(value.0.hyphenated().encode_lower(&mut uuid::Uuid::encode_buffer()), out), |json| json.str();
    /// A SHA-256.
    Digest: Sha => Cow<'e, str>, r#""type": "string", "pattern": "^[0-9a-f]{64}$""#,
        |value, out| write_plain(Hex::new(&value).as_str(), out), |json| json.str();
    /// A time, with milliseconds (RFC 3339).
    Time: SystemTime => Cow<'e, str>, r#""type": "string", "format": "date-time""#,
        // Writing to a `String` cannot fail, here and below.
        |value, out| { let _infallible = write!(out, "\"{}\"", humantime::format_rfc3339_millis(value)); }, |json| json.str();
    /// A whole number from 0.
    Number: u64 => u64, r#""type": "integer", "minimum": 0"#,
        |value, out| out.push_str(Decimal::new(value).as_str()), |json| json.raw().parse().ok();
    /// A whole number from 1.
    Ordinal: u64 => u64, r#""type": "integer", "minimum": 1"#,
        |value, out| out.push_str(Decimal::new(value).as_str()), |json| json.raw().parse().ok();
    /// A score, with four decimals.
    Score: f64 => f64, r#""type": "number", "minimum": 0"#,
        |value, out| { let _infallible = write!(out, "{value:.4}"); }, |json| json.raw().parse().ok();
    /// A time span in milliseconds, with three decimals.
    Millis: Duration => f64, r#""type": "number", "minimum": 0"#,
        |value, out| millis_into(value, out), |json| json.raw().parse().ok();
    /// `true` or `false`.
    Flag: bool => bool, r#""type": "boolean""#,
        |value, out| out.push_str(if value { "true" } else { "false" }), |json| flag(json);
    /// `true`: a member that is left out otherwise.
    True: () => bool, r#""type": "boolean", "const": true"#,
        |_value, out| out.push_str("true"), |json| flag(json);
    /// A text that is JSON by itself.
    Raw: &'a str => Value<'e>, "",
        |value, out| out.push_str(value), |json| Some(json);
}

fn flag(json: Value<'_>) -> Option<bool> {
    (json.kind() == ValueKind::Bool).then(|| json.raw() == "true")
}

fn millis_into(span: Duration, out: &mut String) {
    let micros = span.as_nanos().saturating_add(500) / 1000;
    let decimals = Decimal::new(u64::try_from(micros % 1000 + 1000).unwrap_or_default());
    out.push_str(Decimal::new(u64::try_from(micros / 1000).unwrap_or(u64::MAX)).as_str());
    out.push('.');
    out.push_str(decimals.as_str().get(1..).unwrap_or_default());
}

/// A list of values of one kind. It is written by a function that adds one value after the other,
/// so that no list of them has to be made.
pub struct ListOf<K>(PhantomData<K>);

/// Adds the values of a list.
pub(in crate::record) type Fill<'a, K> = &'a dyn Fn(&mut List<'_, K>);

/// A list that is being written.
pub struct List<'l, K> {
    out: &'l mut String,
    kind: PhantomData<K>,
}

impl<K: Kind> List<'_, K> {
    /// Adds a value.
    pub(in crate::record) fn add(&mut self, value: K::Written<'_>) {
        // No value ends in an opening bracket.
        if !self.out.ends_with('[') {
            self.out.push(',');
        }
        K::write(value, self.out);
    }
}

impl List<'_, Text> {
    /// Adds texts.
    pub(in crate::record) fn texts(&mut self, texts: impl IntoIterator<Item: AsRef<str>>) {
        texts
            .into_iter()
            .for_each(|text| self.add(text.as_ref().into()));
    }
}

impl<K: Kind + 'static> Kind for ListOf<K> {
    type Written<'a> = &'a dyn Fn(&mut List<'_, K>);
    type Read<'e> = Vec<K::Read<'e>>;

    fn write(fill: Self::Written<'_>, out: &mut String) {
        out.push('[');
        fill(&mut List {
            out,
            kind: PhantomData,
        });
        out.push(']');
    }

    fn read(value: Value<'_>) -> Option<Self::Read<'_>> {
        Some(value.elements().filter_map(K::read).collect())
    }

    #[cfg(test)]
    fn schema() -> String {
        format!(r#""type": "array", "items": {{{}}}"#, K::schema())
    }
}
