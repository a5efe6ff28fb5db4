//! Streams audit lines as they are written, for as long as the page is connected and its session
//! lasts.

use std::fmt::Write as _;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{Response, StatusCode};
use tokio::sync::OwnedSemaphorePermit;

use super::Console;
use super::auth::SessionKey;
use super::page::{refuse, stream_response};
use crate::listen::{Body, Frontend};
use crate::record::{TailBatch, TailReader};

/// Lines that arrive within this time are sent together.
const GATHER: Duration = Duration::from_millis(100);
/// Time without lines after which the page receives a heartbeat; sessions are checked at the same
/// interval.
const BEAT: Duration = Duration::from_secs(5);
/// Maximum number of earlier lines that a page receives.
const MAX_EARLIER_LINES: usize = 1000;

/// An open stream.
struct StreamSlot {
    console: Arc<Console>,
    front: Arc<Frontend>,
    session: SessionKey,
    reader: TailReader,
    _permit: OwnedSemaphorePermit,
}

/// Opens a stream that starts as many lines back as `query` specifies.
pub(super) fn open(
    console: &Arc<Console>,
    front: &Arc<Frontend>,
    query: &str,
    session: SessionKey,
) -> Response<Body> {
    let Ok(permit) = console.streams.clone().try_acquire_owned() else {
        return refuse(
            StatusCode::SERVICE_UNAVAILABLE,
            "too many open console pages: close some",
        );
    };
    let parameter = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "back");
    let lines_back = parameter
        .and_then(|(_, back)| back.parse().ok())
        .unwrap_or(0)
        .min(MAX_EARLIER_LINES);
    let reader = front.gate.recorder().audit_tail().watch(lines_back);
    let slot = StreamSlot {
        console: console.clone(),
        front: front.clone(),
        session,
        reader,
        _permit: permit,
    };
    // Tells the page at once that the stream is open.
    let hello = stream::iter([Ok(Bytes::from_static(b"{\"beat\":true}\n"))]);
    stream_response(Body::Stream(
        hello.chain(stream::unfold(slot, next)).boxed(),
    ))
}

async fn next(mut slot: StreamSlot) -> Option<(io::Result<Bytes>, StreamSlot)> {
    let batch = match slot.reader.take_available() {
        Some(batch) => batch,
        None => match tokio::time::timeout(BEAT, slot.reader.next()).await {
            Ok(batch) => batch?,
            Err(_) => TailBatch {
                missed: 0,
                first: 0,
                lines: Vec::new(),
            },
        },
    };
    if slot.front.is_draining() || !slot.console.auth.is_open(slot.session, Instant::now()) {
        return None;
    }
    let text = batch_lines(&batch);
    if !batch.lines.is_empty() {
        tokio::time::sleep(GATHER).await;
    }
    Some((Ok(text.into()), slot))
}

fn batch_lines(batch: &TailBatch) -> String {
    let mut text = String::new();
    // Writing to a `String` cannot fail.
    let _infallible = match (batch.missed, batch.lines.len()) {
        (0, 0) => writeln!(text, "{{\"beat\":true}}"),
        (0, _) => Ok(()),
        (missed, _) => writeln!(text, "{{\"missed\":{missed}}}"),
    };
    for (number, line) in (batch.first..).zip(&batch.lines) {
        let _infallible = writeln!(text, "{{\"n\":{number},\"line\":{line}}}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_goes_out_with_its_number() {
        let batch = |missed, lines: &[&str]| TailBatch {
            missed,
            first: 7,
            lines: lines.iter().map(|line| (*line).into()).collect(),
        };
        assert_eq!(batch_lines(&batch(0, &[])), "{\"beat\":true}\n");
        let told = "{\"missed\":2}\n{\"n\":7,\"line\":{\"a\":1}}\n{\"n\":8,\"line\":{}}\n";
        assert_eq!(batch_lines(&batch(2, &["{\"a\":1}", "{}"])), told);
    }
}
