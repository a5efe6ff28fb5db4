//! Legacy sessions of servers that have none of their own on the wire: stdio children and HTTP+SSE
//! streams. Each session is one link to the server, and belongs to the agent that opened it.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::{Either, select};
use http::{HeaderMap, HeaderValue, StatusCode};
use parking_lot::Mutex;

use super::body::MaxSilence;
use super::channel::Channel;
use super::end::ChannelEnd;
use super::http::{empty_reply, is_initialize};
use super::in_flight_call::{InFlightCall, OpenedReply};
use crate::config::{Limits, UpstreamConfig};
use crate::message::{Message, ParseError};
use crate::protocol::{
    Call, CallError, CallKind, Context, Frames, Framing, Holder, ProcessFault, ProcessFaultKind,
    Reply, SessionId, header,
};

/// A connection to the server: a child process, or a stream and its endpoint.
pub(super) trait ServerLink: Send + Sync {
    /// Returns the channel on which its messages arrive.
    fn channel(&self) -> &Arc<Channel>;
    /// Sends a message to the server, within `time`.
    fn send(
        &self,
        message: &Message,
        time: Duration,
    ) -> impl Future<Output = Result<(), CallError>> + Send;
    /// Lets a dropped ticket send `notifications/cancelled`, if the transport can.
    fn enable_cancellation(&self, ticket: &mut InFlightCall);
    /// Returns the error of a call that began at `_began`, with what the transport knows about its
    /// cause.
    fn explain(&self, error: CallError, _began: Instant) -> CallError {
        error
    }
    /// Ends the link in the background.
    fn close(&self);
}

/// How long the session of a process that ended is remembered, so that its agent learns why it is
/// over.
const ENDED_SESSION_LIFETIME: Duration = Duration::from_secs(600);

/// Timeouts for answers.
#[derive(Clone, Copy)]
pub(super) struct Timeouts {
    pub(super) initialize: Duration,
    pub(super) request: Duration,
    pub(super) idle: Duration,
}

impl Timeouts {
    pub(super) fn new(config: &UpstreamConfig, limits: &Limits) -> Self {
        Self {
            initialize: config.initialize_timeout,
            request: config.request_timeout,
            idle: limits.stream_idle,
        }
    }

    fn timeout_for(&self, message: &Message) -> Duration {
        if is_initialize(message) {
            self.initialize
        } else {
            self.request
        }
    }
}

/// Sends a call's requests over a link and waits for the first message of the answer. Returns
/// `None` if their ids are already in flight there.
pub(super) async fn request_reply<L: ServerLink>(
    link: &L,
    message: &Message,
    timeouts: &Timeouts,
) -> Result<Option<OpenedReply>, CallError> {
    match link.channel().register(message)? {
        Some(ticket) => send_registered(link, ticket, message, timeouts)
            .await
            .map(Some),
        None => Ok(None),
    }
}

/// Like [`request_reply`], with a ticket that has already been registered.
pub(super) async fn send_registered<L: ServerLink>(
    link: &L,
    mut ticket: InFlightCall,
    message: &Message,
    timeouts: &Timeouts,
) -> Result<OpenedReply, CallError> {
    let began = Instant::now();
    let timeout = timeouts.timeout_for(message);
    let gap = if ticket.is_subscription {
        MaxSilence::Idle(timeouts.idle)
    } else {
        MaxSilence::Answer(timeouts.request, timeouts.idle)
    };
    // `initialize` must not be cancelled (2025-11-25, Cancellation).
    if !is_initialize(message) {
        link.enable_cancellation(&mut ticket);
    }
    // An answer may arrive before the server has confirmed that it received the request.
    let opened = match select(
        pin!(link.send(message, timeout)),
        pin!(ticket.reply(timeout, gap)),
    )
    .await
    {
        Either::Left((Ok(()), reply)) => reply.await,
        Either::Left((Err(error), _)) => Err(error),
        Either::Right((reply, _)) => reply,
    };
    opened.map_err(|error| link.explain(error, began))
}

/// Returns the reply to a request; if its agent cancelled it, the reply is a stream that ends
/// without an answer.
pub(super) fn or_cancelled(outcome: Result<Reply, CallError>) -> Result<Reply, CallError> {
    let Err(CallError::Withdrawn) = outcome else {
        return outcome;
    };
    let frames = Frames::empty();
    Ok(Reply {
        status: StatusCode::OK,
        headers: HeaderMap::new(),
        framing: Framing::Events,
        frames,
    })
}

/// The sessions of one upstream.
pub(super) struct Sessions<L> {
    slots: Mutex<HashMap<SessionId, SessionSlot<L>>>,
    limit: usize,
    timeouts: Timeouts,
}

struct SessionSlot<L> {
    holder: Holder,
    link: Arc<L>,
}

impl<L: ServerLink> SessionSlot<L> {
    fn is_open(&self) -> bool {
        self.link.channel().end_reason().is_none()
    }
}

impl<L: ServerLink> Sessions<L> {
    pub(super) fn new(limit: usize, timeouts: Timeouts) -> Self {
        Self {
            slots: Mutex::default(),
            limit,
            timeouts,
        }
    }

    /// Sends a legacy call. `connect` creates a new link for a new session.
    pub(super) async fn dispatch(
        &self,
        call: &Call,
        connect: impl Future<Output = Result<Arc<L>, CallError>> + Send,
    ) -> Result<Reply, CallError> {
        let context = &call.context;
        match (&call.kind, &context.session) {
            (CallKind::Send(message), None) if is_initialize(message) && !message.is_batch() => {
                self.open(context, connect.await?, message).await
            }
            (CallKind::Send(_), None) => Err(CallError::UnknownSession),
            (CallKind::Send(message), Some(session)) => {
                let link = self.find(context, session)?;
                if message.requests().next().is_some() {
                    let opened = request_reply(&*link, message, &self.timeouts).await?;
                    let id_in_use = CallError::BadMessage(ParseError::NotRpc(
                        "its id is that of a request still in flight",
                    ));
                    return opened.map(|opened| opened.reply).ok_or(id_in_use);
                }
                link.channel().touch();
                link.send(message, self.timeouts.request).await?;
                let cancellations = message
                    .envelopes()
                    .iter()
                    .filter(|envelope| envelope.method() == Some("notifications/cancelled"));
                let ids =
                    cancellations.filter_map(|envelope| message.body(envelope)?.get("requestId"));
                ids.for_each(|id| link.channel().cancel(id));
                Ok(empty_reply(StatusCode::ACCEPTED, HeaderMap::new()))
            }
            (CallKind::Listen, Some(session)) => {
                let link = self.find(context, session)?;
                Ok(link
                    .channel()
                    .listen()?
                    .reply(MaxSilence::Idle(self.timeouts.idle)))
            }
            (CallKind::Close, Some(session)) => {
                let link = self.find(context, session)?;
                self.slots.lock().remove(session);
                link.close();
                Ok(empty_reply(StatusCode::NO_CONTENT, HeaderMap::new()))
            }
            (CallKind::Listen | CallKind::Close, None) => Err(CallError::NotOffered),
        }
    }

    async fn open(
        &self,
        context: &Context,
        link: Arc<L>,
        message: &Message,
    ) -> Result<Reply, CallError> {
        let opened = request_reply(&*link, message, &self.timeouts).await;
        let OpenedReply {
            mut reply,
            is_error,
        } = match opened {
            Ok(Some(opened)) => opened,
            Ok(None) => return Err(CallError::BadReply("a new session is busy")),
            Err(error) => {
                link.close();
                return Err(error);
            }
        };
        if is_error {
            link.close();
            return Ok(reply);
        }
        let id = uuid::Uuid::new_v4().to_string();
        let Some(session) = SessionId::new(&id) else {
            return Err(CallError::UnknownSession);
        };
        let mut slots = self.slots.lock();
        slots.retain(|_, held| {
            held.is_open() || held.link.channel().idle_time() < ENDED_SESSION_LIFETIME
        });
        if slots.len() >= self.limit {
            slots.retain(|_, held| held.is_open());
        }
        if slots.len() >= self.limit {
            link.close();
            return Err(CallError::Limit("sessions"));
        }
        slots.insert(
            session,
            SessionSlot {
                holder: context.holder(),
                link,
            },
        );
        if let Ok(id) = HeaderValue::from_str(&id) {
            reply.headers.insert(header::SESSION, id);
        }
        Ok(reply)
    }

    /// Closes the least recently used of an agent's sessions, if it has been unused for `min_idle`
    /// at least. Reports whether there was one.
    pub(super) fn retire(&self, holder: &Holder, min_idle: Duration) -> bool {
        let mut slots = self.slots.lock();
        let open_slots = slots
            .iter()
            .filter(|(_, slot)| slot.holder == *holder && slot.is_open());
        let unused =
            open_slots.map(|(session, slot)| (slot.link.channel().idle_time(), session.clone()));
        let oldest = unused
            .filter(|(unused, _)| *unused >= min_idle)
            .max_by_key(|(unused, _)| *unused);
        let removed = oldest.and_then(|(_, session)| slots.remove(&session));
        if let Some(slot) = &removed {
            slot.link.close();
        }
        removed.is_some()
    }

    fn find(&self, context: &Context, session: &SessionId) -> Result<Arc<L>, CallError> {
        let mut slots = self.slots.lock();
        let found = slots
            .get(session)
            .filter(|slot| context.belongs_to(&slot.holder))
            .ok_or(CallError::UnknownSession)?;
        match found.link.channel().end_reason() {
            None => Ok(found.link.clone()),
            Some(ChannelEnd::Process(fault)) => {
                let kind = ProcessFaultKind::SessionEnded;
                Err(CallError::Process(Box::new(ProcessFault {
                    kind,
                    ..ProcessFault::clone(&fault)
                })))
            }
            Some(_) => {
                slots.remove(session);
                Err(CallError::UnknownSession)
            }
        }
    }
}
