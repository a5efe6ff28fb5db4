//! Events, however the stream is cut up, concatenate to the stream; new data stands where the old data stood.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lychgate::protocol::sse::{Decoder, data, with_data};

fuzz_target!(|input: (Vec<u8>, Vec<u8>, Vec<u8>)| {
    let (stream, cuts, new_data) = input;
    let whole = decode([stream.as_slice()].into_iter());
    let pieces = decode(pieces(&stream, &cuts));
    assert_eq!(whole.concat(), stream);
    assert_eq!(pieces.concat(), stream);
    // The decoder does not wait at a blank line's CR, so only there may a cut make another event of a late LF.
    if !stream.contains(&b'\r') {
        assert_eq!(whole, pieces, "cuts change nothing");
    }
    for raw in whole {
        let raw = bytes::Bytes::from(raw);
        let Some(old) = data(&raw) else { continue };
        assert_eq!(data(&with_data(&raw, Some(&old))).as_ref(), Some(&old));
        if !new_data.contains(&b'\r') {
            assert_eq!(data(&with_data(&raw, Some(&new_data))).as_deref(), Some(new_data.as_slice()));
        }
        assert_eq!(data(&with_data(&raw, None)), None);
    }
});

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

fn decode<'s>(pieces: impl Iterator<Item = &'s [u8]>) -> Vec<Vec<u8>> {
    let mut decoder = Decoder::default();
    let mut out = Vec::new();
    for piece in pieces {
        decoder.push(piece);
        while let Some(event) = decoder.next_event() {
            out.push(event.raw.to_vec());
        }
    }
    out.push(decoder.rest().to_vec());
    out.retain(|raw| !raw.is_empty());
    out
}
