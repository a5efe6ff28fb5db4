//! Ids and tokens, in a form in which equal values compare equal.

use crate::message::{Envelope, Message, MessageKind, Value, ValueKind, id_text};

/// Returns the key of the request that a message closes. Answers close a request, and so does a
/// modern server's `notifications/cancelled`, by which it ends a subscription (2026-07-28,
/// Cancellation); a legacy server's notification is about a request of its own.
pub(super) fn closed_request_key(
    message: &Message,
    envelope: &Envelope,
    is_modern: bool,
) -> Option<Box<str>> {
    match &envelope.kind {
        MessageKind::Result | MessageKind::Error => message.value(envelope).get("id").and_then(key),
        MessageKind::Notification { method }
            if is_modern && &**method == "notifications/cancelled" =>
        {
            message.body(envelope)?.get("requestId").and_then(key)
        }
        _ => None,
    }
}

/// Returns an id or token as text, the same for all spellings that [`crate::message::same_id`]
/// treats as equal.
pub(super) fn key(value: Value<'_>) -> Option<Box<str>> {
    matches!(value.kind(), ValueKind::String | ValueKind::Number)
        .then(|| id_text(value.raw()).into())
}
