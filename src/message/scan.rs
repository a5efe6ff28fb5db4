//! The grammar of JSON (RFC 8259), checked in one pass that records the position of every value.

use std::borrow::Cow;
use std::collections::HashSet;

use super::json::{Node, ValueKind};
use super::{ParseError, ReadLimits};

pub(super) struct Scanner<'b> {
    bytes: &'b [u8],
    at: usize,
    nodes: Vec<Node>,
    strings: usize,
    limits: &'b ReadLimits,
}

impl<'b> Scanner<'b> {
    /// Creates a scanner at the first byte of a text that is UTF-8.
    pub(super) fn new(text: &'b str, limits: &'b ReadLimits) -> Self {
        // Envelopes have about one value per sixteen bytes; the content of large messages has
        // fewer.
        let nodes = Vec::with_capacity(
            (text.len() / 16)
                .clamp(24, 256)
                .min(limits.values_per_message),
        );
        Self {
            bytes: text.as_bytes(),
            at: 0,
            nodes,
            strings: 0,
            limits,
        }
    }
}

/// An open container during the scan.
struct OpenContainer {
    node: usize,
    array: bool,
    /// The members read so far, and their names once there are enough to need a set.
    members: usize,
    names: HashSet<String>,
}

/// Maximum number of members whose keys are compared one by one; larger objects use a set.
const FEW_MEMBERS: usize = 12;

impl Scanner<'_> {
    pub(super) fn scan(mut self) -> Result<Vec<Node>, ParseError> {
        let mut open: Vec<OpenContainer> = Vec::new();
        self.skip_space();
        loop {
            // At the start of a value.
            let at = self.nodes.len();
            match self.peek() {
                Some(b @ (b'{' | b'[')) => {
                    if open.len() >= self.limits.depth {
                        return Err(ParseError::TooDeep {
                            limit: self.limits.depth,
                        });
                    }
                    let array = b == b'[';
                    self.push(
                        if array {
                            ValueKind::Array
                        } else {
                            ValueKind::Object
                        },
                        false,
                        self.at,
                        self.at,
                    )?;
                    self.at += 1;
                    self.skip_space();
                    let closer = if array { b']' } else { b'}' };
                    open.push(OpenContainer {
                        node: at,
                        array,
                        members: 0,
                        names: HashSet::new(),
                    });
                    if self.peek() != Some(closer) {
                        if !array {
                            self.scan_key(&mut open)?;
                        }
                        continue;
                    }
                }
                Some(b'"') => self.scan_string()?,
                Some(b't') => self.scan_word(b"true", ValueKind::Bool)?,
                Some(b'f') => self.scan_word(b"false", ValueKind::Bool)?,
                Some(b'n') => self.scan_word(b"null", ValueKind::Null)?,
                Some(b'-' | b'0'..=b'9') => self.scan_number()?,
                _ => return Err(self.syntax_error("a value")),
            }
            // At the end of a value: close the containers that end here, or continue with the next
            // value.
            loop {
                self.skip_space();
                let Some(last) = open.last() else {
                    return if self.at == self.bytes.len() {
                        Ok(self.nodes)
                    } else {
                        Err(self.syntax_error("the end"))
                    };
                };
                let closer = if last.array { b']' } else { b'}' };
                match self.peek() {
                    Some(b',') if self.nodes.len() > last.node + 1 => {
                        let array = last.array;
                        self.at += 1;
                        self.skip_space();
                        if !array {
                            self.scan_key(&mut open)?;
                        }
                        break;
                    }
                    Some(b) if b == closer => {
                        let node = last.node;
                        self.at += 1;
                        let end = self.at as u32;
                        let next = self.nodes.len() as u32;
                        if let Some(node) = self.nodes.get_mut(node) {
                            node.close(end, next);
                        }
                        open.pop();
                    }
                    _ => {
                        return Err(self.syntax_error(if last.array {
                            "`,` or `]`"
                        } else {
                            "`,` or `}`"
                        }));
                    }
                }
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    fn syntax_error(&self, expected: &'static str) -> ParseError {
        ParseError::NotJson {
            at: self.at,
            expected,
        }
    }

    fn push(
        &mut self,
        kind: ValueKind,
        escaped: bool,
        start: usize,
        end: usize,
    ) -> Result<(), ParseError> {
        if self.nodes.len() >= self.limits.values_per_message.min(Node::MAX_NODES) {
            return Err(ParseError::TooManyValues {
                limit: self.limits.values_per_message,
            });
        }
        let next = self.nodes.len() as u32 + 1;
        self.nodes
            .push(Node::new(kind, escaped, start as u32, end as u32, next));
        Ok(())
    }

    fn scan_word(&mut self, word: &'static [u8], kind: ValueKind) -> Result<(), ParseError> {
        if !self
            .bytes
            .get(self.at..)
            .is_some_and(|rest| rest.starts_with(word))
        {
            return Err(self.syntax_error("a value"));
        }
        self.push(kind, false, self.at, self.at + word.len())?;
        self.at += word.len();
        Ok(())
    }

    fn scan_digits(&mut self) -> Result<(), ParseError> {
        if !self.peek().is_some_and(|b| b.is_ascii_digit()) {
            return Err(self.syntax_error("a digit"));
        }
        while self.peek().is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
        Ok(())
    }

    fn scan_number(&mut self) -> Result<(), ParseError> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.scan_digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.scan_digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.scan_digits()?;
        }
        self.push(ValueKind::Number, false, start, self.at)
    }

    fn scan_string(&mut self) -> Result<(), ParseError> {
        self.strings += 1;
        if self.strings > self.limits.strings_per_message {
            return Err(ParseError::TooManyStrings {
                limit: self.limits.strings_per_message,
            });
        }
        let start = self.at;
        let mut escaped = false;
        self.at += 1;
        loop {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            let Some(run) = memchr::memchr2(b'"', b'\\', rest) else {
                return Err(self.syntax_error("the string's end"));
            };
            // No branch per byte, so that the compiler can vectorize the loop.
            if rest
                .get(..run)
                .unwrap_or_default()
                .iter()
                .fold(false, |found, byte| found | (*byte < 0x20))
            {
                return Err(self.syntax_error("no raw control character in a string"));
            }
            self.at += run;
            if self.peek() == Some(b'"') {
                break;
            }
            escaped = true;
            self.scan_escape()?;
        }
        self.at += 1;
        self.push(ValueKind::String, escaped, start, self.at)
    }

    fn scan_escape(&mut self) -> Result<(), ParseError> {
        let start = self.at;
        self.at += 1;
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 1;
                Ok(())
            }
            Some(b'u') => {
                let high = self.scan_hex()?;
                match high {
                    0xD800..=0xDBFF => {
                        if self.bytes.get(self.at) != Some(&b'\\')
                            || self.bytes.get(self.at + 1) != Some(&b'u')
                        {
                            return Err(ParseError::LoneSurrogate { at: start });
                        }
                        self.at += 1;
                        match self.scan_hex()? {
                            0xDC00..=0xDFFF => Ok(()),
                            _ => Err(ParseError::LoneSurrogate { at: start }),
                        }
                    }
                    0xDC00..=0xDFFF => Err(ParseError::LoneSurrogate { at: start }),
                    _ => Ok(()),
                }
            }
            _ => Err(self.syntax_error("an escape")),
        }
    }

    /// Parses `uXXXX`, starting at the `u`.
    fn scan_hex(&mut self) -> Result<u32, ParseError> {
        let digits = self
            .bytes
            .get(self.at + 1..self.at + 5)
            .ok_or_else(|| self.syntax_error("four hex digits"))?;
        let code = digits
            .iter()
            .try_fold(0u32, |n, b| (*b as char).to_digit(16).map(|d| n * 16 + d))
            .ok_or_else(|| self.syntax_error("four hex digits"))?;
        self.at += 5;
        Ok(code)
    }

    /// Parses `"key":` and the whitespace after it; rejects a key that the object already has.
    fn scan_key(&mut self, open: &mut [OpenContainer]) -> Result<(), ParseError> {
        if self.peek() != Some(b'"') {
            return Err(self.syntax_error("a key"));
        }
        let at = self.nodes.len();
        let start = self.at;
        self.scan_string()?;
        let Some(object) = open.last_mut() else {
            return Err(self.syntax_error("a key"));
        };
        let doubled = if object.members < FEW_MEMBERS {
            let mut member = object.node + 1;
            let mut doubled = false;
            while member < at {
                doubled |= self.same_name(member, at);
                member = self
                    .nodes
                    .get(member + 1)
                    .map_or(at, |value| value.next() as usize);
            }
            doubled
        } else {
            if object.names.is_empty() {
                let mut member = object.node + 1;
                while member < at {
                    object.names.insert(self.name(member).into_owned());
                    member = self
                        .nodes
                        .get(member + 1)
                        .map_or(at, |value| value.next() as usize);
                }
            }
            !object.names.insert(self.name(at).into_owned())
        };
        if doubled {
            return Err(ParseError::DoubledKey { at: start });
        }
        object.members += 1;
        self.skip_space();
        if self.peek() != Some(b':') {
            return Err(self.syntax_error("`:`"));
        }
        self.at += 1;
        self.skip_space();
        Ok(())
    }

    /// Returns whether two keys name the same member, even if one of them is written with escapes.
    fn same_name(&self, one: usize, other: usize) -> bool {
        match (self.inner(one), self.inner(other)) {
            (Some((one, false)), Some((other, false))) => one == other,
            _ => self.name(one) == self.name(other),
        }
    }

    fn name(&self, node: usize) -> Cow<'_, str> {
        let (inner, escaped) = self.inner(node).unwrap_or_default();
        let inner = std::str::from_utf8(inner).unwrap_or("");
        if escaped {
            Cow::Owned(unescape(inner))
        } else {
            Cow::Borrowed(inner)
        }
    }

    /// Returns the bytes between the quotation marks of a string, and whether it has escapes.
    fn inner(&self, node: usize) -> Option<(&[u8], bool)> {
        let node = self.nodes.get(node)?;
        Some((
            self.bytes
                .get(node.start as usize + 1..(node.end as usize).saturating_sub(1))?,
            node.has_escapes(),
        ))
    }
}

/// Decodes the JSON escapes of text that the scanner accepted; runs without escapes are copied
/// whole.
pub(super) fn unescape(inner: &str) -> String {
    let mut out = String::with_capacity(inner.len());
    let mut rest = inner;
    // Escapes often follow each other: searching far ahead for the next one would cost more than it
    // saves.
    let next = |rest: &str| {
        if rest.starts_with('\\') {
            Some(0)
        } else {
            memchr::memchr(b'\\', rest.as_bytes())
        }
    };
    while let Some((plain, escape)) = next(rest).and_then(|at| rest.split_at_checked(at)) {
        out.push_str(plain);
        let mut chars = escape.chars();
        chars.next();
        match chars.next() {
            Some('b') => out.push('\u{8}'),
            Some('f') => out.push('\u{c}'),
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('t') => out.push('\t'),
            Some('u') => out.push(unicode_escape(&mut chars)),
            Some(other) => out.push(other),
            None => {}
        }
        rest = chars.as_str();
    }
    out.push_str(rest);
    out
}

/// Parses the four digits after `\u`, and the second half of a surrogate pair (RFC 8259, section
/// 7).
fn unicode_escape(chars: &mut std::str::Chars<'_>) -> char {
    let hex = |chars: &mut std::str::Chars<'_>| {
        (0..4).fold(0u32, |n, _| {
            n * 16 + chars.next().and_then(|c| c.to_digit(16)).unwrap_or(0)
        })
    };
    let mut code = hex(chars);
    if (0xD800..0xDC00).contains(&code) {
        chars.next();
        chars.next();
        code = 0x10000 + ((code - 0xD800) << 10) + (hex(chars).wrapping_sub(0xDC00) & 0x3FF);
    }
    char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
}
