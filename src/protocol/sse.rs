//! Event streams (WHATWG HTML, 9.2 Server-sent events): parsed by the standard, and serialized
//! anew.
//!
//! No byte of a parsed stream is forwarded. Clients disagree about where a line ends (some split at
//! U+2028, some only at LF) and about a byte order mark, so a forwarded line could reach the model
//! without having been inspected. A serialized event has four fields at most, each from a checked
//! alphabet, and its lines end the same way for every reader.

use std::borrow::Cow;

use bytes::{Bytes, BytesMut};

/// The media type of an event stream. The charset is explicit because some clients assume
/// ISO-8859-1 for `text/*`.
pub const MEDIA_TYPE: &str = "text/event-stream; charset=utf-8";
/// Maximum length of an event id, in bytes. Clients return it in the `Last-Event-ID` header.
const ID_BYTES: usize = 1024;
/// Maximum length of an event name, in bytes.
const NAME_BYTES: usize = 64;
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Splits a byte stream into events.
#[derive(Default)]
pub struct Decoder {
    buffer: BytesMut,
    /// Bytes already scanned, so that a large event in small chunks takes linear time.
    scanned: usize,
    /// Start of the current line.
    line: usize,
    /// Whether the first event was returned: only the start of a stream may have a byte order mark.
    started: bool,
}

/// One event of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// All fields except the data.
    pub fields: Fields,
    /// The `data` lines joined by line feeds; `None` if there are none.
    pub data: Option<Bytes>,
}

/// The fields of an event other than `data`, as far as they can be serialized.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    /// `id`: visible ASCII, at most 1,024 bytes. An empty one resets the client's last event id.
    pub id: Option<Bytes>,
    /// `event`: letters, digits, `_`, `-`, `.`, `:` and `/`, at most 64 bytes. Never empty.
    pub name: Option<Bytes>,
    /// `retry`, in milliseconds.
    pub retry: Option<u32>,
}

impl Decoder {
    /// Adds bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the number of bytes held for an event that has not ended.
    pub fn buffered_bytes(&self) -> usize {
        self.buffer.len()
    }

    /// Returns the next complete event, if there is one. Anything after the last complete event of
    /// a stream is dropped by receivers (9.2.6).
    pub fn next_event(&mut self) -> Option<Event> {
        loop {
            let at = self.scanned;
            let byte = *self.buffer.get(at)?;
            if byte != b'\n' && byte != b'\r' {
                self.scanned += 1;
                continue;
            }
            // A CR may be half of a CRLF: wait for the next byte, except at the CR of a blank line,
            // where waiting would delay a complete event. A LF that arrives later is then a blank
            // line of its own.
            let width = match (byte, self.buffer.get(at + 1)) {
                (b'\r', Some(b'\n')) => 2,
                (b'\r', None) if at != self.line => return None,
                _ => 1,
            };
            let blank = at == self.line;
            self.scanned = at + width;
            self.line = self.scanned;
            if blank {
                let raw = self.buffer.split_to(self.scanned).freeze();
                self.scanned = 0;
                self.line = 0;
                let has_mark =
                    !std::mem::replace(&mut self.started, true) && raw.starts_with(BYTE_ORDER_MARK);
                return Some(Event::parse(&if has_mark {
                    raw.slice(BYTE_ORDER_MARK.len()..)
                } else {
                    raw
                }));
            }
        }
    }
}

impl Event {
    /// Parses the lines of one event (9.2.6). An event whose name cannot be serialized has no data:
    /// without its name, a client would treat the data as a message.
    fn parse(raw: &Bytes) -> Self {
        let mut data: Vec<Bytes> = Vec::new();
        let mut fields = Fields::default();
        let mut foreign = false;
        let mut start = 0;
        for end in memchr::memchr2_iter(b'\n', b'\r', raw).chain([raw.len()]) {
            let line = raw.slice(start..end);
            start = end + 1;
            let (key, value) = split_field(&line);
            match key {
                b"data" => data.push(line.slice(value..)),
                b"event" => {
                    let name = line.slice(value..);
                    foreign =
                        name.len() > NAME_BYTES || !name.iter().all(|byte| is_name_byte(*byte));
                    fields.name = Some(name).filter(|name| !foreign && !name.is_empty());
                }
                b"id" => {
                    let id = line.slice(value..);
                    if id.len() <= ID_BYTES && id.iter().all(u8::is_ascii_graphic) {
                        fields.id = Some(id);
                    }
                }
                b"retry" => {
                    let digits = line
                        .get(value..)
                        .filter(|digits| digits.iter().all(u8::is_ascii_digit));
                    fields.retry = digits
                        .and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok())
                        .or(fields.retry);
                }
                _ => {}
            }
        }
        let data = match data.len() {
            0 => None,
            1 => data.pop(),
            _ => Some(Bytes::from(data.join(&b'\n'))),
        };
        Self {
            fields,
            data: data.filter(|_| !foreign),
        }
    }

    /// Reports whether clients treat the data as a JSON-RPC message.
    pub fn is_message(&self) -> bool {
        self.fields
            .name
            .as_deref()
            .is_none_or(|name| name == b"message")
    }
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':' | b'/')
}

/// Returns the name of a line's field, and the offset of its value.
fn split_field(line: &[u8]) -> (&[u8], usize) {
    match memchr::memchr(b':', line) {
        Some(colon) => {
            let space = usize::from(line.get(colon + 1) == Some(&b' '));
            (line.get(..colon).unwrap_or_default(), colon + 1 + space)
        }
        None => (line, line.len()),
    }
}

impl Fields {
    /// Returns the fields of a message that has no others.
    pub fn message() -> Self {
        Self::with_name("message")
    }

    /// Returns the fields of an event with this name.
    pub fn with_name(name: &'static str) -> Self {
        Self {
            name: Some(Bytes::from_static(name.as_bytes())),
            ..Self::default()
        }
    }

    /// Serializes an event with these fields and this data. JSON keeps its meaning, and its bytes
    /// except for the characters that some reader treats as a line end: a CR between tokens becomes
    /// a line feed or a space, and U+0085, U+2028 and U+2029 in a string become escapes. Other text
    /// is split into lines at all of them.
    pub fn serialize(&self, data: Option<Data<'_>>) -> Bytes {
        let mut out = Vec::with_capacity(data.as_ref().map_or(0, |data| data.bytes().len()) + 64);
        let mut line = |name: &[u8], value: &[u8]| {
            out.extend_from_slice(name);
            out.extend_from_slice(b": ");
            out.extend_from_slice(value);
            out.push(b'\n');
        };
        if let Some(name) = &self.name {
            line(b"event", name);
        }
        if let Some(id) = &self.id {
            line(b"id", id);
        }
        if let Some(retry) = self.retry {
            line(b"retry", retry.to_string().as_bytes());
        }
        if let Some(data) = data {
            data.single_line_ends()
                .split(|byte| *byte == b'\n')
                .for_each(|part| line(b"data", part));
        }
        if out.is_empty() {
            out.push(b':');
            out.push(b'\n');
        }
        out.push(b'\n');
        out.into()
    }
}

/// The data of an event to be serialized.
#[derive(Clone, Copy, Debug)]
pub enum Data<'d> {
    Json(&'d [u8]),
    /// Text in UTF-8.
    Text(&'d [u8]),
}

impl<'d> Data<'d> {
    fn bytes(self) -> &'d [u8] {
        match self {
            Self::Json(bytes) | Self::Text(bytes) => bytes,
        }
    }

    /// Returns the data with LF as the only line end that any known reader recognizes.
    fn single_line_ends(self) -> Cow<'d, [u8]> {
        let bytes = self.bytes();
        let mut out = Vec::new();
        let mut copied = 0;
        let mut at = 0;
        while let Some(offset) = self.next_suspect(bytes.get(at..).unwrap_or_default()) {
            at += offset;
            let Some((width, escape)) = line_end(bytes.get(at..).unwrap_or_default()) else {
                at += 1;
                continue;
            };
            out.extend_from_slice(bytes.get(copied..at).unwrap_or_default());
            out.extend_from_slice(if matches!(self, Self::Json(_)) {
                escape
            } else {
                b"\n"
            });
            at += width;
            copied = at;
        }
        if copied == 0 {
            return Cow::Borrowed(bytes);
        }
        out.extend_from_slice(bytes.get(copied..).unwrap_or_default());
        Cow::Owned(out)
    }

    /// Returns the offset of the next byte that may begin a line end other than LF. In JSON, CR is
    /// the only control character among them.
    fn next_suspect(self, bytes: &[u8]) -> Option<usize> {
        match self {
            Self::Json(_) => memchr::memchr3(b'\r', 0xC2, 0xE2, bytes),
            Self::Text(_) => bytes
                .iter()
                .position(|byte| line_end(&[*byte]).is_some() || matches!(byte, 0xC2 | 0xE2)),
        }
    }
}

/// Returns the length of the line end that these bytes begin with, if it is one other than LF, and
/// its replacement in JSON. Python's `str.splitlines` has the longest list of line ends.
fn line_end(bytes: &[u8]) -> Option<(usize, &'static [u8])> {
    match bytes {
        [b'\r', b'\n', ..] => Some((2, b"\n")),
        [b'\r' | 0x0B | 0x0C | 0x1C..=0x1E, ..] => Some((1, b" ")),
        [0xC2, 0x85, ..] => Some((2, br"\u0085")),
        [0xE2, 0x80, 0xA8, ..] => Some((3, br"\u2028")),
        [0xE2, 0x80, 0xA9, ..] => Some((3, br"\u2029")),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
