//! Strict JSON, parsed once and never changed.
//!
//! One iterative pass checks the grammar of RFC 8259 and records the position of every value. It
//! rejects what two parsers may interpret differently: duplicate keys (compared after unescaping),
//! lone surrogates, byte order marks, and nesting deeper than a limit.

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;
use bytestring::ByteString;

use super::scan::{Scanner, unescape};
use super::{ParseError, ReadLimits};

/// A JSON text: its bytes as received, and the position of each value in them.
#[derive(Clone)]
pub struct Json {
    text: ByteString,
    nodes: Vec<Node>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// `{…}`
    Object,
    /// `[…]`
    Array,
    /// `"…"`, keys included
    String,
    /// A number, kept as written.
    Number,
    /// `true` or `false`
    Bool,
    /// `null`
    Null,
}

/// The position of one value or key. Twelve bytes, since a message can hold one value for every two
/// of its bytes.
#[derive(Clone, Copy)]
pub(super) struct Node {
    pub(super) start: u32,
    pub(super) end: u32,
    /// The index of the node after this one and everything inside it, above four bits: whether it
    /// has escapes, and its kind.
    packed: u32,
}

impl Node {
    /// Maximum number of nodes of a text.
    pub(super) const MAX_NODES: usize = (1 << 28) - 1;

    const KINDS: [ValueKind; 6] = [
        ValueKind::Object,
        ValueKind::Array,
        ValueKind::String,
        ValueKind::Number,
        ValueKind::Bool,
        ValueKind::Null,
    ];

    pub(super) fn new(kind: ValueKind, escaped: bool, start: u32, end: u32, next: u32) -> Self {
        Self {
            start,
            end,
            packed: next << 4 | u32::from(escaped) << 3 | kind as u32,
        }
    }

    /// Sets the end of a container.
    pub(super) fn close(&mut self, end: u32, next: u32) {
        self.end = end;
        self.packed = next << 4 | self.packed & 0xF;
    }

    pub(super) fn kind(self) -> ValueKind {
        Self::KINDS
            .get(self.packed as usize & 7)
            .copied()
            .unwrap_or(ValueKind::Null)
    }

    /// Returns whether a string has escapes.
    pub(super) fn has_escapes(self) -> bool {
        self.packed & 8 != 0
    }

    /// Returns the index of the node after this one and everything inside it.
    pub(super) fn next(self) -> u32 {
        self.packed >> 4
    }
}

/// One value of a [`Json`] text.
#[derive(Clone, Copy)]
pub struct Value<'j> {
    json: &'j Json,
    at: u32,
}

/// Unused capacity for nodes that is too small to be worth a reallocation.
const SPARE_NODES: usize = 64;

impl Json {
    /// Parses a JSON text strictly.
    ///
    /// # Errors
    /// The text is not one JSON value in UTF-8, or it exceeds a limit.
    pub fn parse(bytes: Bytes, limits: &ReadLimits) -> Result<Self, ParseError> {
        if bytes.len() > limits.message_bytes.min(u32::MAX as usize) {
            return Err(ParseError::TooLarge {
                limit: limits.message_bytes,
            });
        }
        // Checked once here: every string returned later is a slice of this text.
        let text = ByteString::try_from(bytes).map_err(|error| ParseError::NotUtf8 {
            at: error.valid_up_to(),
        })?;
        let mut nodes = Scanner::new(&text, limits).scan()?;
        if nodes.capacity() > nodes.len() + nodes.len() / 4 + SPARE_NODES {
            nodes.shrink_to_fit();
        }
        Ok(Self { text, nodes })
    }

    /// Returns the bytes as received.
    pub fn bytes(&self) -> &Bytes {
        self.text.as_bytes()
    }

    /// Returns the outermost value.
    pub fn root(&self) -> Value<'_> {
        Value { json: self, at: 0 }
    }

    /// Returns the value with the given [`Value::handle`].
    pub(super) fn value(&self, at: u32) -> Value<'_> {
        Value { json: self, at }
    }

    fn slice(&self, span: Range<usize>) -> &str {
        // The scanner creates spans at token boundaries, so this always succeeds.
        self.text.get(span).unwrap_or("")
    }
}

impl<'j> Value<'j> {
    pub(super) fn node(&self) -> Node {
        let missing = || Node::new(ValueKind::Null, false, 0, 0, self.at.saturating_add(1));
        self.json
            .nodes
            .get(self.at as usize)
            .copied()
            .unwrap_or_else(missing)
    }

    pub fn kind(&self) -> ValueKind {
        self.node().kind()
    }

    /// Returns the range of the value's bytes, quotes or braces included, as offsets into the text.
    pub fn span(&self) -> Range<usize> {
        let node = self.node();
        node.start as usize..node.end as usize
    }

    /// Returns the text of the value as written.
    pub fn raw(&self) -> &'j str {
        self.json.slice(self.span())
    }

    /// Returns the unescaped content of a string; `None` for other values.
    pub fn str(&self) -> Option<Cow<'j, str>> {
        let node = self.node();
        (node.kind() == ValueKind::String).then(|| {
            let inner = self
                .json
                .slice(node.start as usize + 1..(node.end as usize).saturating_sub(1));
            if node.has_escapes() {
                Cow::Owned(unescape(inner))
            } else {
                Cow::Borrowed(inner)
            }
        })
    }

    /// Returns the members of an object, in order; none for other values.
    pub fn members(&self) -> impl Iterator<Item = (Cow<'j, str>, Self)> + use<'j> {
        let json = self.json;
        let node = self.node();
        let (mut at, end) = if node.kind() == ValueKind::Object {
            (self.at + 1, node.next())
        } else {
            (0, 0)
        };
        std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let key = Value { json, at };
            let value = Value {
                json,
                at: key.node().next(),
            };
            at = value.node().next();
            Some((key.str().unwrap_or_default(), value))
        })
    }

    /// Returns the elements of an array, in order; none for other values.
    pub fn elements(&self) -> impl Iterator<Item = Self> + use<'j> {
        let json = self.json;
        let node = self.node();
        let (mut at, end) = if node.kind() == ValueKind::Array {
            (self.at + 1, node.next())
        } else {
            (0, 0)
        };
        std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let value = Value { json, at };
            at = value.node().next();
            Some(value)
        })
    }

    /// Returns the member of an object with the given name.
    pub fn get(&self, key: &str) -> Option<Self> {
        self.members()
            .find(|(name, _)| name == key)
            .map(|(_, value)| value)
    }

    /// Returns the unescaped content of the member with the given name, if it is a string.
    pub fn get_str(&self, key: &str) -> Option<Cow<'j, str>> {
        self.get(key)?.str()
    }

    /// Returns the member reached by following `keys` one after the other.
    pub fn at(&self, keys: &[&str]) -> Option<Self> {
        keys.iter().try_fold(*self, |value, key| value.get(key))
    }

    /// Returns the value or key of the same text with the given handle.
    pub(super) fn value_at(&self, at: u32) -> Self {
        Self {
            json: self.json,
            at,
        }
    }

    /// Returns a number that identifies this value within its text.
    pub(super) fn handle(&self) -> u32 {
        self.at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Role, pointer};

    fn parse(text: &str) -> Result<Json, ParseError> {
        Json::parse(
            Bytes::copy_from_slice(text.as_bytes()),
            &ReadLimits::default(),
        )
    }

    fn strings(text: &str) -> Vec<(String, String, Role)> {
        let json = parse(text).unwrap();
        let mut out = Vec::new();
        json.root()
            .strings(|path, found| out.push((pointer(path), found.value.into_owned(), found.role)));
        out
    }

    #[test]
    fn finds_every_string_with_its_place() {
        let found = strings(r#" {"a":["x",{"b\u0021":"y\n"},[],"z"],"c":{},"d":"w"} "#);
        let found: Vec<_> = found
            .iter()
            .map(|(p, v, r)| (p.as_str(), v.as_str(), *r))
            .collect();
        assert_eq!(
            found,
            [
                ("/a", "a", Role::Key),
                ("/a/0", "x", Role::Value),
                ("/a/1/b!", "b!", Role::Key),
                ("/a/1/b!", "y\n", Role::Value),
                ("/a/3", "z", Role::Value),
                ("/c", "c", Role::Key),
                ("/d", "d", Role::Key),
                ("/d", "w", Role::Value),
            ]
        );
    }

    #[test]
    fn spans_name_the_bytes_between_the_quotes() {
        let json = parse(r#"{"k":"v\u00e9"}"#).unwrap();
        json.root().strings(|_, found| {
            assert_eq!(&json.bytes()[found.span.start - 1..found.span.start], b"\"");
            assert_eq!(&json.bytes()[found.span.end..found.span.end + 1], b"\"");
        });
    }

    #[test]
    fn refuses_what_two_parsers_read_in_two_ways() {
        assert!(matches!(
            parse(r#"{"a":1,"\u0061":2}"#),
            Err(ParseError::DoubledKey { .. })
        ));
        let many: String = (0..40).map(|n| format!("\"k{n}\":{n},")).collect();
        assert!(parse(&format!("{{{many}\"z\":0}}")).is_ok());
        assert!(matches!(
            parse(&format!("{{{many}\"k3\":0}}")),
            Err(ParseError::DoubledKey { .. })
        ));
        assert!(matches!(
            parse(r#""\ud800""#),
            Err(ParseError::LoneSurrogate { .. })
        ));
        assert!(matches!(
            parse(r#""\ud800\u0041""#),
            Err(ParseError::LoneSurrogate { .. })
        ));
        assert!(matches!(
            parse(r#""\udc00""#),
            Err(ParseError::LoneSurrogate { .. })
        ));
        assert_eq!(
            parse(r#""\ud83d\ude00""#).unwrap().root().str().unwrap(),
            "😀"
        );
        assert!(matches!(
            parse(&"[".repeat(100)),
            Err(ParseError::TooDeep { .. })
        ));
        assert!(parse("\u{feff}{}").is_err());
    }

    #[test]
    fn values_are_counted_and_take_little_room() {
        assert_eq!(size_of::<Node>(), 12);
        let limits = ReadLimits {
            values_per_message: 5,
            ..ReadLimits::default()
        };
        let read = |text: &'static str| Json::parse(Bytes::from_static(text.as_bytes()), &limits);
        assert!(read(r#"[0,{"a":0}]"#).is_ok());
        for text in [
            "[0,0,0,0,0]",
            "[[],[],[],[],{}]",
            r#"["","","","",""]"#,
            r#"{"a":null,"b":true,"c":0}"#,
        ] {
            assert_eq!(
                read(text).err(),
                Some(ParseError::TooManyValues { limit: 5 }),
                "{text}"
            );
        }
        let list = format!("[{}0]", "0,".repeat(4 << 20));
        let error = ParseError::TooManyValues {
            limit: ReadLimits::default().values_per_message,
        };
        let limits = ReadLimits::of_bytes(16 << 20);
        assert_eq!(Json::parse(list.into(), &limits).err(), Some(error));
    }

    #[test]
    fn accepts_exactly_what_serde_json_accepts_within_the_limits() {
        for text in [
            "",
            " ",
            "{",
            "}",
            "[]",
            "[,]",
            "[1,]",
            "{,}",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "01",
            "-",
            "-0",
            "1.",
            ".5",
            "1e",
            "1e+5",
            "1E-5",
            "tru",
            "true",
            "nulll",
            "\"\\x\"",
            "\"\\u12\"",
            "\"a\tb\"",
            "\"\u{7f}\"",
            "[1 2]",
            "{\"a\" 1}",
            "[[[]]]",
            "{\"a\":{\"b\":[1,2,{}]}}",
            "1 2",
            "\u{a0}1",
            "[1]]",
            "\"",
            "\"\\",
            "-1.5e300",
            "1e999",
            "[\"\",\"\"]",
            "{\"\":0}",
            "{1:2}",
            "'a'",
            "[}",
            "{]",
            "{\"a\":[}]",
        ] {
            // serde_json rejects numbers out of range only when it converts them; as raw text it
            // accepts them.
            let theirs = serde_json::from_str::<&serde_json::value::RawValue>(text).is_ok();
            assert_eq!(parse(text).is_ok(), theirs, "{text:?}");
        }
    }

    #[test]
    fn values_are_reached_by_name() {
        let json = parse(r#"{"a":{"b":[10,"x",null]},"c":true}"#).unwrap();
        let array = json.root().at(&["a", "b"]).unwrap();
        let raw: Vec<_> = array.elements().map(|v| v.raw()).collect();
        assert_eq!(raw, ["10", "\"x\"", "null"]);
        assert_eq!(json.root().get("c").unwrap().kind(), ValueKind::Bool);
        assert!(json.root().get("d").is_none());
    }
}
