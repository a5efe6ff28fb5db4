//! Whatever a server streams, each kind of reader sees in the gate's output the inspected messages
//! and nothing else.

use bytes::Bytes;
use lychgate::message::{Message, ReadLimits};
use lychgate::protocol::sse::{Data, Decoder};

/// The characters that some reader treats as the end of a line.
const LINE_ENDS: [char; 10] = [
    '\n', '\r', '\u{b}', '\u{c}', '\u{1c}', '\u{1d}', '\u{1e}', '\u{85}', '\u{2028}', '\u{2029}',
];

pub fn fuzz(input: (Vec<u8>, Vec<u8>)) {
    let (stream, cuts) = input;
    let (written, expected) = through([stream.as_slice()].into_iter());
    let text = std::str::from_utf8(&written).expect("an event stream is UTF-8");
    assert_eq!(
        read(text.replace("\r\n", "\n").split(['\n', '\r']), false),
        expected,
        "by the standard"
    );
    assert_eq!(
        read(text.split(['\n', '\r']), false),
        expected,
        "at CR or LF"
    );
    assert_eq!(
        read(text.replace("\r\n", "\n").split(LINE_ENDS), false),
        expected,
        "as `str.splitlines`"
    );
    let trimmed: Vec<Vec<String>> = expected
        .iter()
        .map(|lines| lines.iter().map(|line| line.trim().to_owned()).collect())
        .collect();
    assert_eq!(read(text.split('\n'), true), trimmed, "at LF, trimmed");
    // The decoder does not wait at the CR of a blank line, so a cut there may turn a late LF into
    // another event.
    if !stream.contains(&b'\r') {
        assert_eq!(
            through(pieces(&stream, &cuts)).0,
            written,
            "cuts change nothing"
        );
    }
}

/// Returns what the gate writes for a stream, and the lines of data of each event that has any.
fn through<'s>(pieces: impl Iterator<Item = &'s [u8]>) -> (Vec<u8>, Vec<Vec<String>>) {
    let mut decoder = Decoder::default();
    let mut written = Vec::new();
    let mut expected = Vec::new();
    for piece in pieces {
        decoder.push(piece);
        while let Some(event) = decoder.next_event() {
            let message = event
                .data
                .as_ref()
                .is_some_and(|data| Message::parse(data.clone(), &ReadLimits::default()).is_ok());
            let data = event.data.filter(|data| std::str::from_utf8(data).is_ok());
            expected.extend(data.as_ref().map(|data| lines(data, message)));
            let data = data.as_deref().map(|data| {
                if message {
                    Data::Json(data)
                } else {
                    Data::Text(data)
                }
            });
            written.extend_from_slice(&event.fields.serialize(data));
        }
    }
    (written, expected)
}

/// Returns the lines of data, without the characters that some reader treats as the end of a line.
fn lines(data: &Bytes, message: bool) -> Vec<String> {
    let text = String::from_utf8_lossy(data).replace("\r\n", "\n");
    if !message {
        return text.split(LINE_ENDS).map(str::to_owned).collect();
    }
    let escaped = text
        .replace('\u{85}', "\\u0085")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029");
    escaped
        .replace('\r', " ")
        .split('\n')
        .map(str::to_owned)
        .collect()
}

/// Returns the lines of data that a reader sees, by event.
fn read<'t>(lines: impl Iterator<Item = &'t str>, trims: bool) -> Vec<Vec<String>> {
    let mut out = Vec::new();
    let mut data = Vec::new();
    for line in lines {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let (name, value) = if trims {
            (name.trim(), value.trim())
        } else {
            (name, value.strip_prefix(' ').unwrap_or(value))
        };
        if name == "data" {
            data.push(value.to_owned());
        } else if line.is_empty() && !data.is_empty() {
            out.push(std::mem::take(&mut data));
        }
    }
    out
}

fn pieces<'s>(mut stream: &'s [u8], cuts: &[u8]) -> impl Iterator<Item = &'s [u8]> {
    let mut out = Vec::new();
    for cut in cuts {
        let (piece, rest) = stream.split_at(usize::from(*cut).min(stream.len()));
        out.push(piece);
        stream = rest;
    }
    out.push(stream);
    out.into_iter()
}
