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
use super::http::{empty, initializes};
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
    fn arm(&self, ticket: &mut InFlightCall);
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
const REMEMBERED: Duration = Duration::from_secs(600);

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

    fn first(&self, message: &Message) -> Duration {
        if initializes(message) {
            self.initialize
        } else {
            self.request
        }
    }
}

/// Sends a call's requests over a link and waits for the first message of the answer. Returns
/// `None` if their ids are already in flight there.
pub(super) async fn ask<L: ServerLink>(
    link: &L,
    message: &Message,
    patience: &Timeouts,
) -> Result<Option<OpenedReply>, CallError> {
    match link.channel().register(message)? {
        Some(ticket) => asked(link, ticket, message, patience).await.map(Some),
        None => Ok(None),
    }
}

/// Like [`ask`], with a ticket that has already been registered.
pub(super) async fn asked<L: ServerLink>(
    link: &L,
    mut ticket: InFlightCall,
    message: &Message,
    patience: &Timeouts,
) -> Result<OpenedReply, CallError> {
    let began = Instant::now();
    let first = patience.first(message);
    let gap = if ticket.subscribes {
        MaxSilence::Idle(patience.idle)
    } else {
        MaxSilence::Answer(patience.request, patience.idle)
    };
    // `initialize` must not be cancelled (2025-11-25, Cancellation).
    if !initializes(message) {
        link.arm(&mut ticket);
    }
    // An answer may arrive before the server has confirmed that it received the request.
    let opened = match select(
        pin!(link.send(message, first)),
        pin!(ticket.reply(first, gap)),
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
    held: Mutex<HashMap<SessionId, SessionSlot<L>>>,
    most: usize,
    patience: Timeouts,
}

struct SessionSlot<L> {
    holder: Holder,
    link: Arc<L>,
}

impl<L: ServerLink> SessionSlot<L> {
    fn is_open(&self) -> bool {
        self.link.channel().ended().is_none()
    }
}

impl<L: ServerLink> Sessions<L> {
    pub(super) fn new(most: usize, patience: Timeouts) -> Self {
        Self {
            held: Mutex::default(),
            most,
            patience,
        }
    }

    /// Sends a legacy call. `connect` creates a new link for a new session.
    pub(super) async fn carry(
        &self,
        call: &Call,
        connect: impl Future<Output = Result<Arc<L>, CallError>> + Send,
    ) -> Result<Reply, CallError> {
        let context = &call.context;
        match (&call.ask, &context.session) {
            (CallKind::Send(message), None) if initializes(message) && !message.is_batch() => {
                self.open(context, connect.await?, message).await
            }
            (CallKind::Send(_), None) => Err(CallError::UnknownSession),
            (CallKind::Send(message), Some(session)) => {
                let link = self.find(context, session)?;
                if message
                    .envelopes()
                    .iter()
                    .any(|envelope| envelope.is_request())
                {
                    let opened = ask(&*link, message, &self.patience).await?;
                    let taken = CallError::BadMessage(ParseError::NotRpc(
                        "its id is that of a request still in flight",
                    ));
                    return opened.map(|opened| opened.reply).ok_or(taken);
                }
                link.channel().touch();
                link.send(message, self.patience.request).await?;
                let cancelled = message
                    .envelopes()
                    .iter()
                    .filter(|envelope| envelope.method() == Some("notifications/cancelled"));
                let ids = cancelled.filter_map(|envelope| message.body(envelope)?.get("requestId"));
                ids.for_each(|id| link.channel().cancel(id));
                Ok(empty(StatusCode::ACCEPTED, HeaderMap::new()))
            }
            (CallKind::Listen, Some(session)) => {
                let link = self.find(context, session)?;
                Ok(link
                    .channel()
                    .listen()?
                    .reply(MaxSilence::Idle(self.patience.idle)))
            }
            (CallKind::Close, Some(session)) => {
                let link = self.find(context, session)?;
                self.held.lock().remove(session);
                link.close();
                Ok(empty(StatusCode::NO_CONTENT, HeaderMap::new()))
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
        let opened = ask(&*link, message, &self.patience).await;
        let OpenedReply { mut reply, refused } = match opened {
            Ok(Some(opened)) => opened,
            Ok(None) => return Err(CallError::BadReply("a new session is busy")),
            Err(error) => {
                link.close();
                return Err(error);
            }
        };
        if refused {
            link.close();
            return Ok(reply);
        }
        let id = uuid::Uuid::new_v4().to_string();
        let Some(session) = SessionId::new(&id) else {
            return Err(CallError::UnknownSession);
        };
        let mut held = self.held.lock();
        held.retain(|_, held| held.is_open() || held.link.channel().unused() < REMEMBERED);
        if held.len() >= self.most {
            held.retain(|_, held| held.is_open());
        }
        if held.len() >= self.most {
            link.close();
            return Err(CallError::Limit("sessions"));
        }
        held.insert(
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

    /// Closes the least recently used of an agent's sessions, if it has been unused for `abandoned`
    /// at least. Reports whether there was one.
    pub(super) fn retire(&self, holder: &Holder, abandoned: Duration) -> bool {
        let mut held = self.held.lock();
        let own = held
            .iter()
            .filter(|(_, held)| held.holder == *holder && held.is_open());
        let unused = own.map(|(session, held)| (held.link.channel().unused(), session.clone()));
        let oldest = unused
            .filter(|(unused, _)| *unused >= abandoned)
            .max_by_key(|(unused, _)| *unused);
        let retired = oldest.and_then(|(_, session)| held.remove(&session));
        if let Some(held) = &retired {
            held.link.close();
        }
        retired.is_some()
    }

    fn find(&self, context: &Context, session: &SessionId) -> Result<Arc<L>, CallError> {
        let mut held = self.held.lock();
        let found = held
            .get(session)
            .filter(|held| context.is_of(&held.holder))
            .ok_or(CallError::UnknownSession)?;
        match found.link.channel().ended() {
            None => Ok(found.link.clone()),
            Some(ChannelEnd::Process(fault)) => {
                let kind = ProcessFaultKind::SessionEnded;
                Err(CallError::Process(Box::new(ProcessFault {
                    kind,
                    ..ProcessFault::clone(&fault)
                })))
            }
            Some(_) => {
                held.remove(session);
                Err(CallError::UnknownSession)
            }
        }
    }
}
