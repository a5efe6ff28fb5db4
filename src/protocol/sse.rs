//! Event streams (WHATWG HTML, 9.2 Server-sent events), with the raw bytes kept.

use bytes::{Bytes, BytesMut};

/// Splits a byte stream into events. What it gives, concatenated, is what it was given.
#[derive(Default)]
pub struct Decoder {
    buffer: BytesMut,
    /// Bytes already looked at, so that a large event in small chunks stays linear.
    seen: usize,
    /// Where the line at hand began.
    line: usize,
}

/// One event: the bytes from its first line to the blank line that ends it.
#[derive(Clone, Debug)]
pub struct Event {
    /// The bytes as they came.
    pub raw: Bytes,
    /// The `data:` lines joined by line feeds; `None` where there is none.
    pub data: Option<Bytes>,
    /// The `event:` field.
    pub name: Option<Bytes>,
}

impl Decoder {
    /// Takes bytes in.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Bytes held for an event that has not ended.
    pub fn held(&self) -> usize {
        self.buffer.len()
    }

    /// The next whole event, if one is there.
    pub fn next_event(&mut self) -> Option<Event> {
        loop {
            let at = self.seen;
            let byte = *self.buffer.get(at)?;
            if byte != b'\n' && byte != b'\r' {
                self.seen += 1;
                continue;
            }
            // A CR may be half of a CRLF: wait for what follows, except at a blank line's CR, where waiting
            // would hold back an event that has ended. A LF that comes later is then a blank line of its own.
            let width = match (byte, self.buffer.get(at + 1)) {
                (b'\r', Some(b'\n')) => 2,
                (b'\r', None) if at != self.line => return None,
                _ => 1,
            };
            let blank = at == self.line;
            self.seen = at + width;
            self.line = self.seen;
            if blank {
                let raw = self.buffer.split_to(self.seen).freeze();
                self.seen = 0;
                self.line = 0;
                return Some(Event::read(raw));
            }
        }
    }

    /// What is left when the stream ends: an event cut short, which receivers drop (9.2.6).
    pub fn rest(&mut self) -> Bytes {
        self.seen = 0;
        self.line = 0;
        self.buffer.split().freeze()
    }
}

/// The lines of an event with their ends: (start, end of content, end of line).
fn lines(raw: &[u8]) -> impl Iterator<Item = (usize, usize, usize)> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        if at >= raw.len() {
            return None;
        }
        let start = at;
        let rest = raw.get(start..)?;
        let content = rest.iter().position(|b| matches!(b, b'\n' | b'\r')).unwrap_or(rest.len());
        let width = match rest.get(content..) {
            Some([b'\r', b'\n', ..]) => 2,
            Some([_, ..]) => 1,
            _ => 0,
        };
        at = start + content + width;
        Some((start, start + content, at))
    })
}

/// The field of a line and where its value starts in it.
fn field(line: &[u8]) -> (&[u8], usize) {
    match line.iter().position(|b| *b == b':') {
        Some(colon) => {
            let space = usize::from(line.get(colon + 1) == Some(&b' '));
            (line.get(..colon).unwrap_or_default(), colon + 1 + space)
        }
        None => (line, line.len()),
    }
}

impl Event {
    fn read(raw: Bytes) -> Self {
        let mut data: Vec<Bytes> = Vec::new();
        let mut name = None;
        // A byte order mark may stand before the first line of a stream.
        let skip = if raw.starts_with(b"\xEF\xBB\xBF") { 3 } else { 0 };
        for (start, end, _) in lines(&raw) {
            let start = start.max(skip.min(end));
            let Some(line) = raw.get(start..end) else { continue };
            let (key, value) = field(line);
            match key {
                b"data" => data.push(raw.slice(start + value..end)),
                b"event" => name = Some(raw.slice(start + value..end)),
                _ => {}
            }
        }
        let data = match data.len() {
            0 => None,
            1 => data.pop(),
            _ => Some(Bytes::from(data.join(&b'\n'))),
        };
        Self { raw, data, name }
    }
}

/// An event (its raw bytes) with other data, which may hold line feeds: one `data:` line for each line of it, where
/// the first of the old ones stood; without data, none. All other lines stay.
pub fn with_data(raw: &[u8], data: Option<&[u8]>) -> Bytes {
    let mut out = Vec::with_capacity(raw.len() + data.map_or(0, <[u8]>::len));
    let mut left = data;
    for (start, end, next) in lines(raw) {
        let line = raw.get(start..end).unwrap_or_default();
        let ending = raw.get(end..next).unwrap_or_default();
        if field(line).0 != b"data" {
            out.extend_from_slice(line);
            out.extend_from_slice(ending);
            continue;
        }
        // The last line of a stream that was cut off has no end of its own.
        let between = if ending.is_empty() { b"\n" } else { ending };
        let mut parts = left.take().into_iter().flat_map(|data| data.split(|b| *b == b'\n')).peekable();
        while let Some(part) = parts.next() {
            out.extend_from_slice(b"data: ");
            out.extend_from_slice(part);
            out.extend_from_slice(if parts.peek().is_some() { between } else { ending });
        }
    }
    out.into()
}

/// The data of an event (its raw bytes), if it has any.
pub fn data(raw: &Bytes) -> Option<Bytes> {
    Event::read(raw.clone()).data
}

/// Writes an event with this data and no other field but, if given, its name.
pub fn event(name: Option<&str>, data: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(data.len() + 32);
    if let Some(name) = name {
        out.extend_from_slice(b"event: ");
        out.extend_from_slice(name.as_bytes());
        out.push(b'\n');
    }
    let mut parts = data.split(|b| *b == b'\n').peekable();
    while let Some(part) = parts.next() {
        let part = if parts.peek().is_some() { part.strip_suffix(b"\r").unwrap_or(part) } else { part };
        out.extend_from_slice(b"data: ");
        // A CR ends a line here. In JSON it stands between tokens only, where a space says the same.
        out.extend(part.iter().map(|b| if *b == b'\r' { b' ' } else { *b }));
        out.push(b'\n');
    }
    out.push(b'\n');
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &[u8] = b": hello\r\n\r\nid: 7\r\ndata:\r\nretry: 5\r\n\r\nevent: message\nid: a\ndata: {\"x\":\ndata:  1}\n\n\n\rdata\rdata:z\r\rdata: cut";

    fn events(chunk: usize) -> (Vec<Event>, Vec<u8>) {
        let mut decoder = Decoder::default();
        let (mut out, mut raw) = (Vec::new(), Vec::new());
        for part in STREAM.chunks(chunk) {
            decoder.push(part);
            while let Some(event) = decoder.next_event() {
                raw.extend_from_slice(&event.raw);
                out.push(event);
            }
        }
        raw.extend_from_slice(&decoder.rest());
        (out, raw)
    }

    #[test]
    fn a_line_without_an_end_takes_data_of_several() {
        let raw = with_data(b"id: 1\ndata: x", Some(b"a\n\nb"));
        assert_eq!((&raw[..], data(&raw).as_deref()), (&b"id: 1\ndata: a\ndata: \ndata: b"[..], Some(&b"a\n\nb"[..])));
    }

    #[test]
    fn what_comes_out_is_what_went_in_at_every_chunk_size() {
        for chunk in 1..STREAM.len() {
            let (events, raw) = events(chunk);
            assert_eq!(raw, STREAM, "chunks of {chunk}");
            let data: Vec<_> = events.iter().filter_map(|e| e.data.as_deref()).collect();
            assert_eq!(data, [&b""[..], b"{\"x\":\n 1}", b"\nz"], "chunks of {chunk}");
        }
    }

    #[test]
    fn new_data_leaves_every_other_line() {
        let (events, _) = events(1000);
        assert_eq!(&with_data(&events[2].raw, Some(b"[1,\n2]"))[..], b"event: message\nid: a\ndata: [1,\ndata: 2]\n\n");
        assert_eq!(&with_data(&events[1].raw, Some(b"x"))[..], b"id: 7\r\ndata: x\r\nretry: 5\r\n\r\n");
        assert_eq!(&with_data(&events[1].raw, None)[..], b"id: 7\r\nretry: 5\r\n\r\n");
        assert_eq!(events[2].name.as_deref(), Some(&b"message"[..]));
    }

    #[test]
    fn written_events_are_read_back() {
        let mut decoder = Decoder::default();
        decoder.push(&event(Some("endpoint"), b"/a\n/b"));
        let read = decoder.next_event().unwrap();
        assert_eq!((read.name.as_deref(), read.data.as_deref()), (Some(&b"endpoint"[..]), Some(&b"/a\n/b"[..])));
        assert_eq!(&event(None, b"{\"a\":\r1}\r\n\r")[..], b"data: {\"a\": 1}\ndata:  \n\n", "a CR would end the line");
    }
}
