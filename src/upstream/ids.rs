//! Ids and tokens, compared by what they say.

use crate::message::{Envelope, Message, MessageKind, Value, ValueKind, id_text};

/// The key of the request that a message closes. An answer does, and so does a modern server's
/// `notifications/cancelled`, by which it takes a subscription down (2026-07-28, Cancellation); a legacy server's is
/// about a request of its own.
pub(super) fn settles(message: &Message, envelope: &Envelope, modern: bool) -> Option<Box<str>> {
    match &envelope.kind {
        MessageKind::Result | MessageKind::Error => message.value(envelope).get("id").and_then(key),
        MessageKind::Notification { method }
            if modern && &**method == "notifications/cancelled" =>
        {
            message.body(envelope)?.get("requestId").and_then(key)
        }
        _ => None,
    }
}

/// An id or token as text, the same for all spellings that [`crate::message::same_id`] takes for one.
pub(super) fn key(value: Value<'_>) -> Option<Box<str>> {
    matches!(value.kind(), ValueKind::String | ValueKind::Number)
        .then(|| id_text(value.raw()).into())
}
