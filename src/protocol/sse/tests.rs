use super::*;

const STREAM: &[u8] =
    b": hello\r\n\r\nid: 7\r\ndata:\r\nretry: 5\r\n\r\nevent: message\nid: a\ndata: {\"x\":\ndata:  1}\n\n\n\rdata\rdata:z\r\rdata: cut";

fn events(stream: &[u8], chunk: usize) -> Vec<Event> {
    let mut decoder = Decoder::default();
    let mut out = Vec::new();
    for part in stream.chunks(chunk) {
        decoder.push(part);
        out.extend(std::iter::from_fn(|| decoder.next_event()));
    }
    out
}

fn serialized(stream: &[u8]) -> String {
    let write = |event: Event| {
        event
            .fields
            .serialize(event.data.as_deref().map(Data::Json))
    };
    String::from_utf8(events(stream, 1000).into_iter().flat_map(write).collect()).unwrap()
}

#[test]
fn chunk_size_does_not_change_the_data() {
    for chunk in 1..STREAM.len() {
        let events = events(STREAM, chunk);
        let data: Vec<_> = events
            .iter()
            .filter_map(|event| event.data.as_deref())
            .collect();
        assert_eq!(
            data,
            [&b""[..], b"{\"x\":\n 1}", b"\nz"],
            "chunks of {chunk}"
        );
    }
}

#[test]
fn only_known_fields_are_written() {
    assert_eq!(
        serialized(STREAM),
        ":\n\nid: 7\nretry: 5\ndata: \n\nevent: message\nid: a\ndata: {\"x\":\ndata:  1}\n\n:\n\n:\n\ndata: \ndata: z\n\n"
    );
    assert_eq!(
        serialized(b"data: 1\nxdata: 2\n{\"id\":3}\n: note\n\n"),
        "data: 1\n\n"
    );
}

#[test]
fn a_byte_order_mark_is_dropped_at_the_beginning_of_a_stream_only() {
    for chunk in 1..10 {
        let read = events(b"\xEF\xBB\xBFdata: 1\n\n\xEF\xBB\xBFdata: 2\n\n", chunk);
        assert_eq!(read[0].data.as_deref(), Some(&b"1"[..]));
        assert_eq!(read[1], Event::default(), "no field has this name");
    }
}

#[test]
fn fields_outside_their_alphabet_are_dropped() {
    assert_eq!(
        serialized("id: a\u{2028}b\ndata: 1\n\n".as_bytes()),
        "data: 1\n\n"
    );
    assert_eq!(
        serialized(b"id: a\0\nid: 2_a=\nretry: 1x\nretry: 99999999999\ndata: 1\n\n"),
        "id: 2_a=\ndata: 1\n\n"
    );
    let long = format!("id: {}\ndata: 1\n\n", "a".repeat(ID_BYTES + 1));
    assert_eq!(serialized(long.as_bytes()), "data: 1\n\n");
    for name in [
        "message ",
        "mess\u{85}age",
        "a b",
        &"n".repeat(NAME_BYTES + 1),
    ] {
        let stream = format!("event: {name}\nid: 3\ndata: {{}}\n\n");
        assert_eq!(
            serialized(stream.as_bytes()),
            "id: 3\n\n",
            "without its name it would be a message"
        );
    }
    assert_eq!(serialized(b"event:\ndata: 1\n\n"), "data: 1\n\n");
    assert_eq!(
        serialized(b"event: tools/x.y-z_1:2\ndata: 1\n\n"),
        "event: tools/x.y-z_1:2\ndata: 1\n\n"
    );
}

#[test]
fn json_keeps_its_meaning_and_text_its_lines() {
    let json = "{\"a\":\r\n\"x\u{2028}y\u{2029}\u{85}é—\",\r\"b\":1}";
    let event = Fields::default().serialize(Some(Data::Json(json.as_bytes())));
    assert_eq!(
        &event[..],
        "data: {\"a\":\ndata: \"x\\u2028y\\u2029\\u0085é—\", \"b\":1}\n\n".as_bytes()
    );
    let event = Fields::with_name("note").serialize(Some(Data::Text(
        "a\u{b}b\u{2028}c\u{1c}d\r\ne\u{85}f—é".as_bytes(),
    )));
    assert_eq!(
        &event[..],
        "event: note\ndata: a\ndata: b\ndata: c\ndata: d\ndata: e\ndata: f—é\n\n".as_bytes()
    );
}
