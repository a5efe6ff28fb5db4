//! Strict JSON, read once and never changed.
//!
//! One iterative pass checks the grammar of RFC 8259 and notes where every value
//! stands. It refuses what two parsers may read in two ways: doubled keys (compared
//! after unescaping), lone surrogates, byte order marks, and nesting past a limit.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::{ParseError, ReadLimits};

/// A JSON text: its bytes as they came, and where each value in them stands.
#[derive(Clone)]
pub struct Json {
    bytes: Bytes,
    nodes: Arc<[Node]>,
}

/// What a value is.
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

#[derive(Clone, Copy)]
struct Node {
    kind: ValueKind,
    escaped: bool,
    start: u32,
    end: u32,
    /// Index of the node after this one and all it holds.
    next: u32,
}

/// One value of a [`Json`] text.
#[derive(Clone, Copy)]
pub struct Value<'j> {
    json: &'j Json,
    at: u32,
}

/// Whether a string names a member or is a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The name of an object's member.
    Key,
    /// A value.
    Value,
}

/// One string: what it says, and which bytes (between the quotes) say it.
pub struct Found<'j> {
    /// The unescaped text; borrowed when the string has no escapes.
    pub value: Cow<'j, str>,
    /// The bytes between the quotes, as offsets into the message.
    pub span: Range<usize>,
    /// Key or value.
    pub role: Role,
}

/// One step from a value to one inside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step<'j> {
    /// Into the member of this name.
    Key(Cow<'j, str>),
    /// Into the element at this index.
    Index(usize),
}

/// The way from a root to a value. For a key it is the way to the key's value.
pub type Path<'j> = [Step<'j>];

/// Writes a path as a JSON pointer (RFC 6901).
pub fn pointer(path: &Path<'_>) -> String {
    let mut out = String::new();
    for step in path {
        out.push('/');
        match step {
            Step::Key(key) => {
                for c in key.chars() {
                    match c {
                        '~' => out.push_str("~0"),
                        '/' => out.push_str("~1"),
                        c => out.push(c),
                    }
                }
            }
            Step::Index(index) => out.push_str(&index.to_string()),
        }
    }
    out
}

impl Json {
    /// Reads a JSON text strictly.
    ///
    /// # Errors
    /// Any text that is not one JSON value in UTF-8, or that passes a limit.
    pub fn parse(bytes: Bytes, limits: &ReadLimits) -> Result<Self, ParseError> {
        if bytes.len() > limits.message_bytes.min(u32::MAX as usize) {
            return Err(ParseError::TooLarge { limit: limits.message_bytes });
        }
        let text = std::str::from_utf8(&bytes).map_err(|e| ParseError::NotUtf8 { at: e.valid_up_to() })?;
        let nodes = Scanner { bytes: text.as_bytes(), at: 0, nodes: Vec::new(), strings: 0, limits }.scan()?;
        Ok(Self { bytes, nodes: nodes.into() })
    }

    /// The bytes as they came.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The outermost value.
    pub fn root(&self) -> Value<'_> {
        Value { json: self, at: 0 }
    }

    /// The value that [`Value::handle`] named.
    pub(super) fn value(&self, at: u32) -> Value<'_> {
        Value { json: self, at }
    }

    fn text(&self, span: Range<usize>) -> &str {
        // Spans are made by the scanner at token borders of text that is UTF-8, so this always holds.
        self.bytes.get(span).and_then(|b| std::str::from_utf8(b).ok()).unwrap_or("")
    }
}

impl<'j> Value<'j> {
    fn node(&self) -> Node {
        self.json.nodes.get(self.at as usize).copied().unwrap_or(Node {
            kind: ValueKind::Null,
            escaped: false,
            start: 0,
            end: 0,
            next: self.at.saturating_add(1),
        })
    }

    /// What it is.
    pub fn kind(&self) -> ValueKind {
        self.node().kind
    }

    /// Its bytes, quotes or braces included, as offsets into the text.
    pub fn span(&self) -> Range<usize> {
        let node = self.node();
        node.start as usize..node.end as usize
    }

    /// Its text as written.
    pub fn raw(&self) -> &'j str {
        self.json.text(self.span())
    }

    /// What a string says; `None` for other values.
    pub fn str(&self) -> Option<Cow<'j, str>> {
        let node = self.node();
        (node.kind == ValueKind::String).then(|| {
            let inner = self.json.text(node.start as usize + 1..(node.end as usize).saturating_sub(1));
            if node.escaped { Cow::Owned(unescape(inner)) } else { Cow::Borrowed(inner) }
        })
    }

    /// The members of an object, in order; nothing for other values.
    pub fn members(&self) -> impl Iterator<Item = (Cow<'j, str>, Self)> + use<'j> {
        let json = self.json;
        let node = self.node();
        let (mut at, end) = if node.kind == ValueKind::Object { (self.at + 1, node.next) } else { (0, 0) };
        std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let key = Value { json, at };
            let value = Value { json, at: key.node().next };
            at = value.node().next;
            Some((key.str().unwrap_or_default(), value))
        })
    }

    /// The elements of an array, in order; nothing for other values.
    pub fn elements(&self) -> impl Iterator<Item = Self> + use<'j> {
        let json = self.json;
        let node = self.node();
        let (mut at, end) = if node.kind == ValueKind::Array { (self.at + 1, node.next) } else { (0, 0) };
        std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let value = Value { json, at };
            at = value.node().next;
            Some(value)
        })
    }

    /// The member of an object by its name.
    pub fn get(&self, key: &str) -> Option<Self> {
        self.members().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// The member reached by following `keys` one after the other.
    pub fn at(&self, keys: &[&str]) -> Option<Self> {
        keys.iter().try_fold(*self, |value, key| value.get(key))
    }

    /// Calls `visit` with every string in this value, keys included, in the order of the text.
    /// Paths start at this value. Iterative: depth costs memory, never stack.
    pub fn strings(&self, mut visit: impl FnMut(&Path<'j>, Found<'j>)) {
        self.walk(|path, value, role| {
            if let Some(text) = value.str() {
                let span = value.span();
                visit(path, Found { value: text, span: span.start + 1..span.end.saturating_sub(1), role });
            }
        });
    }

    /// Calls `visit` with every value and key in this value (itself included), in the order of the text.
    pub fn walk(&self, mut visit: impl FnMut(&Path<'j>, Self, Role)) {
        let json = self.json;
        let mut path: Vec<Step<'j>> = Vec::new();
        // One entry for each open container: where it ends, and whether it is an array.
        let mut open: Vec<(u32, bool)> = Vec::new();
        let (mut at, end) = (self.at, self.node().next);
        let mut expects_key = false;
        while at < end {
            while let Some(&(close, _)) = open.last() {
                if at < close {
                    break;
                }
                open.pop();
                path.pop();
            }
            let value = Value { json, at };
            let node = value.node();
            match open.last() {
                Some((_, false)) if expects_key => {
                    if let (Some(last), Some(key)) = (path.last_mut(), value.str()) {
                        *last = Step::Key(key);
                    }
                    visit(&path, value, Role::Key);
                    expects_key = false;
                    at += 1;
                    continue;
                }
                Some((_, true)) => {
                    if let Some(Step::Index(index)) = path.last_mut() {
                        *index = index.wrapping_add(1);
                    }
                }
                _ => {}
            }
            visit(&path, value, Role::Value);
            match node.kind {
                ValueKind::Object => {
                    open.push((node.next, false));
                    path.push(Step::Key(Cow::Borrowed("")));
                }
                ValueKind::Array => {
                    open.push((node.next, true));
                    path.push(Step::Index(usize::MAX));
                }
                _ => {}
            }
            at += 1;
            while let Some(&(close, _)) = open.last() {
                if at < close {
                    break;
                }
                open.pop();
                path.pop();
            }
            expects_key = matches!(open.last(), Some((_, false)));
        }
    }

    /// A number that names this value within its text.
    pub(super) fn handle(&self) -> u32 {
        self.at
    }
}

/// Undoes JSON escapes of text that the scanner accepted.
fn unescape(inner: &str) -> String {
    let mut out = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    let hex = |chars: &mut std::str::Chars<'_>| {
        (0..4).fold(0u32, |n, _| n * 16 + chars.next().and_then(|c| c.to_digit(16)).unwrap_or(0))
    };
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('b') => out.push('\u{8}'),
            Some('f') => out.push('\u{c}'),
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('t') => out.push('\t'),
            Some('u') => {
                let mut code = hex(&mut chars);
                if (0xD800..0xDC00).contains(&code) {
                    chars.next();
                    chars.next();
                    code = 0x10000 + ((code - 0xD800) << 10) + (hex(&mut chars).wrapping_sub(0xDC00) & 0x3FF);
                }
                out.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            Some(other) => out.push(other),
            None => {}
        }
    }
    out
}

struct Scanner<'b> {
    bytes: &'b [u8],
    at: usize,
    nodes: Vec<Node>,
    strings: usize,
    limits: &'b ReadLimits,
}

/// An open container during the scan.
struct Open {
    node: usize,
    array: bool,
    /// Members met so far, and their names once there are enough to need a set.
    members: usize,
    names: HashSet<String>,
}

/// Objects with more members than this look their keys up in a set.
const FEW_MEMBERS: usize = 12;

impl Scanner<'_> {
    fn scan(mut self) -> Result<Vec<Node>, ParseError> {
        let mut open: Vec<Open> = Vec::new();
        self.space();
        loop {
            // A value stands here.
            let at = self.nodes.len();
            match self.peek() {
                Some(b @ (b'{' | b'[')) => {
                    if open.len() >= self.limits.depth {
                        return Err(ParseError::TooDeep { limit: self.limits.depth });
                    }
                    let array = b == b'[';
                    self.push(if array { ValueKind::Array } else { ValueKind::Object }, false, self.at, self.at);
                    self.at += 1;
                    self.space();
                    let closer = if array { b']' } else { b'}' };
                    open.push(Open { node: at, array, members: 0, names: HashSet::new() });
                    if self.peek() != Some(closer) {
                        if !array {
                            self.key(&mut open)?;
                        }
                        continue;
                    }
                }
                Some(b'"') => self.string()?,
                Some(b't') => self.word(b"true", ValueKind::Bool)?,
                Some(b'f') => self.word(b"false", ValueKind::Bool)?,
                Some(b'n') => self.word(b"null", ValueKind::Null)?,
                Some(b'-' | b'0'..=b'9') => self.number()?,
                _ => return Err(self.wrong("a value")),
            }
            // A value has ended: close what closes, or go on to the next.
            loop {
                self.space();
                let Some(last) = open.last() else {
                    return if self.at == self.bytes.len() { Ok(self.nodes) } else { Err(self.wrong("the end")) };
                };
                let closer = if last.array { b']' } else { b'}' };
                match self.peek() {
                    Some(b',') if self.nodes.len() > last.node + 1 => {
                        let array = last.array;
                        self.at += 1;
                        self.space();
                        if !array {
                            self.key(&mut open)?;
                        }
                        break;
                    }
                    Some(b) if b == closer => {
                        let node = last.node;
                        self.at += 1;
                        let (end, next) = (self.at as u32, self.nodes.len() as u32);
                        if let Some(node) = self.nodes.get_mut(node) {
                            node.end = end;
                            node.next = next;
                        }
                        open.pop();
                    }
                    _ => return Err(self.wrong(if last.array { "`,` or `]`" } else { "`,` or `}`" })),
                }
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    fn wrong(&self, expected: &'static str) -> ParseError {
        ParseError::NotJson { at: self.at, expected }
    }

    fn push(&mut self, kind: ValueKind, escaped: bool, start: usize, end: usize) {
        let next = self.nodes.len() as u32 + 1;
        self.nodes.push(Node { kind, escaped, start: start as u32, end: end as u32, next });
    }

    fn word(&mut self, word: &'static [u8], kind: ValueKind) -> Result<(), ParseError> {
        if !self.bytes.get(self.at..).is_some_and(|rest| rest.starts_with(word)) {
            return Err(self.wrong("a value"));
        }
        self.push(kind, false, self.at, self.at + word.len());
        self.at += word.len();
        Ok(())
    }

    fn digits(&mut self) -> Result<(), ParseError> {
        if !self.peek().is_some_and(|b| b.is_ascii_digit()) {
            return Err(self.wrong("a digit"));
        }
        while self.peek().is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), ParseError> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        self.push(ValueKind::Number, false, start, self.at);
        Ok(())
    }

    fn string(&mut self) -> Result<(), ParseError> {
        self.strings += 1;
        if self.strings > self.limits.strings_per_message {
            return Err(ParseError::TooManyStrings { limit: self.limits.strings_per_message });
        }
        let start = self.at;
        let mut escaped = false;
        self.at += 1;
        loop {
            match self.peek() {
                None => return Err(self.wrong("the string's end")),
                Some(b'"') => break,
                Some(b'\\') => {
                    escaped = true;
                    self.escape()?;
                }
                Some(0..=0x1F) => return Err(self.wrong("no raw control character in a string")),
                Some(_) => self.at += 1,
            }
        }
        self.at += 1;
        self.push(ValueKind::String, escaped, start, self.at);
        Ok(())
    }

    fn escape(&mut self) -> Result<(), ParseError> {
        let start = self.at;
        self.at += 1;
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 1;
                Ok(())
            }
            Some(b'u') => {
                let high = self.hex()?;
                match high {
                    0xD800..=0xDBFF => {
                        if self.bytes.get(self.at) != Some(&b'\\') || self.bytes.get(self.at + 1) != Some(&b'u') {
                            return Err(ParseError::LoneSurrogate { at: start });
                        }
                        self.at += 1;
                        match self.hex()? {
                            0xDC00..=0xDFFF => Ok(()),
                            _ => Err(ParseError::LoneSurrogate { at: start }),
                        }
                    }
                    0xDC00..=0xDFFF => Err(ParseError::LoneSurrogate { at: start }),
                    _ => Ok(()),
                }
            }
            _ => Err(self.wrong("an escape")),
        }
    }

    /// Reads `uXXXX`, standing on the `u`.
    fn hex(&mut self) -> Result<u32, ParseError> {
        let digits = self.bytes.get(self.at + 1..self.at + 5).ok_or_else(|| self.wrong("four hex digits"))?;
        let code = digits
            .iter()
            .try_fold(0u32, |n, b| (*b as char).to_digit(16).map(|d| n * 16 + d))
            .ok_or_else(|| self.wrong("four hex digits"))?;
        self.at += 5;
        Ok(code)
    }

    /// Reads `"key":` and the space after it; refuses a key the object already has.
    fn key(&mut self, open: &mut [Open]) -> Result<(), ParseError> {
        if self.peek() != Some(b'"') {
            return Err(self.wrong("a key"));
        }
        let at = self.nodes.len();
        let start = self.at;
        self.string()?;
        let Some(object) = open.last_mut() else { return Err(self.wrong("a key")) };
        let name = self.name(at);
        let doubled = if object.members < FEW_MEMBERS {
            let mut member = object.node + 1;
            let mut doubled = false;
            while member < at {
                doubled |= self.name(member) == name;
                member = self.nodes.get(member + 1).map_or(at, |value| value.next as usize);
            }
            doubled
        } else {
            if object.names.is_empty() {
                let mut member = object.node + 1;
                while member < at {
                    object.names.insert(self.name(member).into_owned());
                    member = self.nodes.get(member + 1).map_or(at, |value| value.next as usize);
                }
            }
            !object.names.insert(name.into_owned())
        };
        if doubled {
            return Err(ParseError::DoubledKey { at: start });
        }
        object.members += 1;
        self.space();
        if self.peek() != Some(b':') {
            return Err(self.wrong("`:`"));
        }
        self.at += 1;
        self.space();
        Ok(())
    }

    fn name(&self, node: usize) -> Cow<'_, str> {
        let Some(node) = self.nodes.get(node) else { return Cow::Borrowed("") };
        let inner = self.bytes.get(node.start as usize + 1..(node.end as usize).saturating_sub(1)).unwrap_or_default();
        let inner = std::str::from_utf8(inner).unwrap_or("");
        if node.escaped { Cow::Owned(unescape(inner)) } else { Cow::Borrowed(inner) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Json, ParseError> {
        Json::parse(Bytes::copy_from_slice(text.as_bytes()), &ReadLimits::default())
    }

    fn strings(text: &str) -> Vec<(String, String, Role)> {
        let json = parse(text).unwrap();
        let mut out = Vec::new();
        json.root().strings(|path, found| out.push((pointer(path), found.value.into_owned(), found.role)));
        out
    }

    #[test]
    fn finds_every_string_with_its_place() {
        let found = strings(r#" {"a":["x",{"b\u0021":"y\n"},[],"z"],"c":{},"d":"w"} "#);
        let found: Vec<_> = found.iter().map(|(p, v, r)| (p.as_str(), v.as_str(), *r)).collect();
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
        assert!(matches!(parse(r#"{"a":1,"\u0061":2}"#), Err(ParseError::DoubledKey { .. })));
        let many: String = (0..40).map(|n| format!("\"k{n}\":{n},")).collect();
        assert!(parse(&format!("{{{many}\"z\":0}}")).is_ok());
        assert!(matches!(parse(&format!("{{{many}\"k3\":0}}")), Err(ParseError::DoubledKey { .. })));
        assert!(matches!(parse(r#""\ud800""#), Err(ParseError::LoneSurrogate { .. })));
        assert!(matches!(parse(r#""\ud800\u0041""#), Err(ParseError::LoneSurrogate { .. })));
        assert!(matches!(parse(r#""\udc00""#), Err(ParseError::LoneSurrogate { .. })));
        assert_eq!(parse(r#""\ud83d\ude00""#).unwrap().root().str().unwrap(), "😀");
        assert!(matches!(parse(&"[".repeat(100)), Err(ParseError::TooDeep { .. })));
        assert!(parse("\u{feff}{}").is_err());
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
            // serde_json refuses numbers out of range only when it converts them; as raw text it takes them.
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
