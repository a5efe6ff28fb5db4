//! Responses to requests of commands.

use std::io;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Incoming;

/// Reads a complete body of at most `max_bytes`; `too_long` is the error for a longer one.
pub(super) async fn read_body(
    mut body: Incoming,
    max_bytes: usize,
    too_long: &str,
) -> io::Result<Bytes> {
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(io::Error::other)?.into_data() else {
            continue;
        };
        if bytes.len() + data.len() > max_bytes {
            return Err(io::Error::other(too_long));
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes.freeze())
}
