//! Notifies agents that a list has changed because of the gate itself: a definition was approved or
//! reset, or the policy presents tools differently. Only if the server has declared that its lists
//! may change, and only on streams that are open for such notifications.

use std::sync::atomic::{AtomicU8, Ordering};

use futures_util::{StreamExt, stream};
use tokio::sync::broadcast::{self, error::RecvError};

use crate::inspect::definitions::Kind;
use crate::message::Message;
use crate::protocol::{Call, CallKind, Context, Era, Frame, Frames, UpstreamName};

/// Number of changes that a stream may lag behind; one that lags further is notified of every list.
const CHANGES: usize = 64;

/// Sends changes to open streams.
pub(super) struct ListChanges(broadcast::Sender<(UpstreamName, Kind)>);

impl Default for ListChanges {
    fn default() -> Self {
        Self(broadcast::channel(CHANGES).0)
    }
}

impl ListChanges {
    /// Announces that agents now see a different list.
    pub(super) fn notify(&self, upstream: &UpstreamName, kind: Kind) {
        // Without an open stream there is no receiver.
        let _receivers = self.0.send((upstream.clone(), kind)).ok();
    }

    /// Returns the frames of a reply, with change notifications inserted. The stream ends with the
    /// frames.
    pub(super) fn insert_notifications<T: IntoIterator<Item = String>>(
        &self,
        frames: Frames,
        upstream: UpstreamName,
        notifications: impl Fn(Kind) -> T + Send + Sync + 'static,
    ) -> Frames {
        let receiver = self.0.subscribe();
        let state = (
            frames,
            receiver,
            Vec::<String>::new(),
            upstream,
            notifications,
        );
        Frames::stream(stream::unfold(
            state,
            |(mut frames, mut hears, mut due, upstream, told)| async move {
                loop {
                    if let Some(text) = due.pop() {
                        return Some((
                            Ok(Frame::inspected(text)),
                            (frames, hears, due, upstream, told),
                        ));
                    }
                    tokio::select! {
                        frame = frames.next() => return Some((frame?, (frames, hears, due, upstream, told))),
                        changed = hears.recv() => match changed {
                            Ok((of, kind)) if of == upstream => due.extend(told(kind)),
                            Ok(_) => {}
                            Err(RecvError::Lagged(_)) => due.extend([Kind::Tool, Kind::Prompt, Kind::Resource].into_iter().flat_map(&told)),
                            // The gate is shutting down; the stream ends by itself.
                            Err(RecvError::Closed) => return Some((frames.next().await?, (frames, hears, due, upstream, told))),
                        },
                    }
                }
            },
        ))
    }
}

/// The lists that a server has declared as changeable (2024-11-05 to 2025-11-25,
/// `ServerCapabilities`).
#[derive(Default)]
pub(super) struct DeclaredLists(AtomicU8);

impl DeclaredLists {
    /// Stores the declaration of a message, if it answers `initialize`.
    pub(super) fn observe(&self, message: &Message, context: &Context) {
        for (envelope, request) in context.answers(message) {
            if request.is_some_and(|asked| &*asked.method == "initialize")
                && let Some(capabilities) = message
                    .body(envelope)
                    .and_then(|result| result.get("capabilities"))
            {
                let may_change = |kind: &Kind| {
                    let capability = kind
                        .list()
                        .and_then(|list| capabilities.at(&[list, "listChanged"]));
                    capability.is_some_and(|says| says.raw() == "true")
                };
                self.0.store(
                    bits(Kind::ALL.iter().copied().filter(|kind| may_change(kind))),
                    Ordering::Relaxed,
                );
            }
        }
    }

    /// Returns the notification that a list has changed, if the server has declared that it may.
    pub(super) fn notification(&self, kind: Kind) -> Option<String> {
        let is_declared = self.0.load(Ordering::Relaxed) & bits([kind]) != 0;
        let list = kind.list().filter(|_| is_declared)?;
        Some(format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/{list}/list_changed"}}"#
        ))
    }
}

/// An open subscription (2026-07-28, `subscriptions/listen`), with the lists for which the server
/// has acknowledged notifications.
pub(super) struct Subscription {
    /// The id of the request, as written.
    id: Box<str>,
    acknowledged_lists: AtomicU8,
}

impl Subscription {
    /// Returns the subscription that a message opens, if it opens one.
    pub(super) fn parse(message: &Message) -> Option<Self> {
        let envelope = message
            .single()
            .filter(|envelope| envelope.method() == Some("subscriptions/listen"))?;
        Some(Self {
            id: message.id(envelope)?.into(),
            acknowledged_lists: AtomicU8::default(),
        })
    }

    /// Stores the acknowledged lists, if the message is the server's acknowledgement of this
    /// subscription.
    pub(super) fn observe(&self, message: &Message) {
        for envelope in message.envelopes() {
            let is_acknowledgement =
                envelope.method() == Some("notifications/subscriptions/acknowledged");
            let Some(params) = message.body(envelope).filter(|_| is_acknowledgement) else {
                continue;
            };
            if !params
                .at(&["_meta", SUBSCRIPTION])
                .is_some_and(|id| crate::message::same_id(id.raw(), &self.id))
            {
                continue;
            }
            let is_acknowledged = |kind: &Kind| {
                let Some(list) = kind.list() else {
                    return false;
                };
                let key = format!("{list}ListChanged");
                params
                    .at(&["notifications", &key])
                    .is_some_and(|says| says.raw() == "true")
            };
            self.acknowledged_lists.store(
                bits(
                    Kind::ALL
                        .iter()
                        .copied()
                        .filter(|kind| is_acknowledged(kind)),
                ),
                Ordering::Relaxed,
            );
        }
    }

    /// Returns the notification that a list has changed, if the subscription includes it.
    pub(super) fn notification(&self, kind: Kind) -> Option<String> {
        let is_acknowledged = self.acknowledged_lists.load(Ordering::Relaxed) & bits([kind]) != 0;
        let list = kind.list().filter(|_| is_acknowledged)?;
        let id = &self.id;
        let method = format!("notifications/{list}/list_changed");
        Some(format!(
            r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"_meta":{{"{SUBSCRIPTION}":{id}}}}}}}"#
        ))
    }
}

/// The `_meta` key that names the subscription of a message (2026-07-28,
/// `basic/patterns/subscriptions`).
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// The purpose of a call's stream, if changes are announced on it.
pub(super) enum StreamPurpose {
    /// The session's own stream.
    Session,
    /// A subscription.
    Subscription(Subscription),
}

impl StreamPurpose {
    /// Returns the purpose of a call's stream.
    pub(super) fn for_call(call: &Call) -> Option<Self> {
        match (&call.kind, call.context.era) {
            (CallKind::Listen, Era::Legacy) => Some(Self::Session),
            (CallKind::Send(message), Era::Modern) => {
                Subscription::parse(message).map(Self::Subscription)
            }
            _ => None,
        }
    }
}

fn bits(kinds: impl IntoIterator<Item = Kind>) -> u8 {
    kinds
        .into_iter()
        .fold(0, |bits, kind| bits | 1 << kind as u8)
}
