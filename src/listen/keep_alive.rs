//! Keep-alives on event streams: clients, proxies and NATs drop a connection that is silent for
//! long.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, stream};
use http::header::ACCEPT;
use http::{HeaderMap, StatusCode};

use super::{Frontend, http as endpoint};
use crate::protocol::sse::Fields;
use crate::protocol::{Call, CallKind, Era, Frame, Frames, Framing, Payload, Reply, answer};

/// Returns the stream with a comment after each `silence`, or without comments if that is zero.
/// Clients ignore comments (WHATWG HTML, 9.2.6).
pub(super) fn with_comments(
    events: BoxStream<'static, io::Result<Bytes>>,
    silence: Duration,
) -> BoxStream<'static, io::Result<Bytes>> {
    if silence.is_zero() {
        return events;
    }
    let comment = Fields::default().serialize(None);
    stream::unfold(events, move |mut events| {
        let comment = comment.clone();
        async move {
            match tokio::time::timeout(silence, events.next()).await {
                Ok(next) => next.map(|next| (next, events)),
                Err(_) => Some((Ok(comment), events)),
            }
        }
    })
    .boxed()
}

/// Carries a call and returns its reply, even if the call failed. A call over stdio or HTTP+SSE
/// that is silent for long gets an event stream: the gate itself creates the HTTP of that reply, so
/// nothing of the server's is lost.
pub(super) async fn carry(front: &Arc<Frontend>, call: Box<Call>) -> Reply {
    let silence = front.gate.limits().keep_alive;
    if silence.is_zero() || front.gate.speaks_http(&call.context.upstream) || !may_open(&call) {
        return carry_call(front, call).await;
    }
    // Boxed, so that calls over HTTP need no space for it.
    Box::pin(carry_on_stream(front.clone(), call, silence)).await
}

/// Carries a call whose reply becomes an event stream after `silence`.
async fn carry_on_stream(front: Arc<Frontend>, call: Box<Call>, silence: Duration) -> Reply {
    let mut pending = Box::pin(async move { carry_call(&front, call).await });
    if let Ok(reply) = tokio::time::timeout(silence, &mut pending).await {
        return reply;
    }
    let comment = stream::iter([Ok(Frame {
        payload: Payload::Empty,
        fields: Fields::default(),
    })]);
    let answer = stream::once(pending).flat_map(|reply| {
        let is_body = reply.framing == Framing::Body;
        reply.frames.map(move |frame| match frame {
            Ok(frame) if is_body => Ok(Frame {
                fields: Fields::message(),
                ..frame
            }),
            frame => frame,
        })
    });
    let frames = Frames::stream(comment.chain(answer));
    Reply {
        status: StatusCode::OK,
        headers: HeaderMap::new(),
        framing: Framing::Events,
        frames,
    }
}

async fn carry_call(front: &Frontend, call: Box<Call>) -> Reply {
    let message = call.kind.message().cloned();
    let context = call.context.clone();
    match front.gate.carry(call).await {
        Ok(reply) => endpoint::with_final_error(reply, context, message),
        Err(error) => answer::failure_reply(&error, Some(&context), message.as_ref()),
    }
}

/// Reports whether the response may be a stream with status 200. Not for `initialize`, whose
/// response headers name the session, and not in the modern era, in which errors have statuses of
/// their own (2026-07-28, Streamable HTTP, Error Handling).
fn may_open(call: &Call) -> bool {
    let CallKind::Send(message) = &call.kind else {
        return false;
    };
    let is_eligible = message
        .single()
        .is_some_and(|envelope| envelope.is_request() && envelope.method() != Some("initialize"));
    let accepts = |value: &http::HeaderValue| {
        value
            .to_str()
            .is_ok_and(|value| value.contains("text/event-stream"))
    };
    is_eligible
        && call.context.era == Era::Legacy
        && call.headers.get_all(ACCEPT).iter().any(accepts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::sse::Decoder;

    #[tokio::test]
    async fn silence_is_filled_with_comments_that_no_reader_takes_for_an_event() {
        let (send, receive) = tokio::sync::mpsc::unbounded_channel();
        let events = stream::unfold(receive, |mut from| async {
            from.recv().await.map(|event| (Ok(event), from))
        });
        let mut commented = with_comments(events.boxed(), Duration::from_millis(20));
        let event = || Bytes::from_static(b"data: 1\n\n");
        let mut seen = Vec::new();
        for _ in 0..2 {
            send.send(event()).unwrap();
            for _ in 0..3 {
                seen.push(commented.next().await.unwrap().unwrap());
            }
        }
        drop(send);
        assert!(commented.next().await.is_none(), "it ends with the stream");
        assert_eq!(
            seen,
            [
                event(),
                ":\n\n".into(),
                ":\n\n".into(),
                event(),
                ":\n\n".into(),
                ":\n\n".into()
            ]
        );
        let mut decoder = Decoder::default();
        decoder.push(&seen.concat());
        let data: Vec<_> = std::iter::from_fn(|| decoder.next_event())
            .filter_map(|event| event.data)
            .collect();
        assert_eq!(data, ["1", "1"]);
    }

    #[tokio::test]
    async fn zero_is_none() {
        let pending = with_comments(stream::pending().boxed(), Duration::ZERO).into_future();
        assert!(
            tokio::time::timeout(Duration::from_millis(50), pending)
                .await
                .is_err()
        );
    }
}
