//! One bidirectional stream shared by many calls: delivers each incoming message to its call.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::end::ChannelEnd;
use super::ids::{key, settles};
use super::in_flight_call::{InFlightCall, Listener};
use crate::config::Limits;
use crate::message::{Envelope, Message, ParseError, ReadLimits, Value};
use crate::protocol::{CallError, Era, UpstreamName, headers};

/// Routes the answers on one stream. Message ids are never rewritten: a call whose id is already in
/// flight uses another channel.
pub(super) struct Channel {
    pub(super) era: Era,
    pub(super) upstream: UpstreamName,
    read: ReadLimits,
    queued_messages: usize,
    /// Budget of bytes that may wait for readers. When it is used up, reading from the server stops
    /// until a reader catches up.
    room: Arc<Semaphore>,
    room_bytes: u32,
    state: Mutex<State>,
}

struct State {
    modern: bool,
    /// In order of arrival.
    calls: BTreeMap<u64, PendingRequest>,
    arrivals: u64,
    listener: Option<mpsc::UnboundedSender<Delivery>>,
    queue: VecDeque<Incoming>,
    ended: Option<ChannelEnd>,
    used: Instant,
}

struct PendingRequest {
    /// Requests without an answer so far.
    open: Vec<RequestKey>,
    tokens: Vec<Box<str>>,
    /// Whether it is a modern subscription: only messages that name it belong to it.
    subscribes: bool,
    to: mpsc::UnboundedSender<Delivery>,
}

/// A request's id: in comparable form, and as written.
struct RequestKey {
    key: Box<str>,
    raw: Box<str>,
}

/// A message on its way to a reader; it occupies room until it is read.
pub(super) struct Incoming {
    pub(super) message: Message,
    /// Whether it answers the last open request of its call.
    pub(super) last: bool,
    _room: Arc<OwnedSemaphorePermit>,
}

pub(super) type Delivery = Result<Incoming, CallError>;

/// Approximate memory cost of a message in addition to its bytes.
const MESSAGE_OVERHEAD_BYTES: usize = 1024;

impl Channel {
    pub(super) fn new(era: Era, upstream: UpstreamName, limits: &Limits) -> Arc<Self> {
        let room = limits
            .read
            .message_bytes
            .saturating_mul(2)
            .clamp(1 << 20, Semaphore::MAX_PERMITS.min(u32::MAX as usize));
        Arc::new(Self {
            era,
            upstream,
            read: limits.read.clone(),
            queued_messages: limits.queued_messages,
            room: Arc::new(Semaphore::new(room)),
            room_bytes: u32::try_from(room).unwrap_or(u32::MAX),
            state: Mutex::new(State {
                modern: era == Era::Modern,
                calls: BTreeMap::new(),
                arrivals: 0,
                listener: None,
                queue: VecDeque::new(),
                ended: None,
                used: Instant::now(),
            }),
        })
    }

    /// Registers a call before it is sent, so that no answer can arrive too early. Returns `None`
    /// if one of its ids, or in the modern era one of its progress tokens, is already in flight.
    ///
    /// # Errors
    /// The reason why the channel has ended.
    pub(super) fn register(
        self: &Arc<Self>,
        message: &Message,
    ) -> Result<Option<InFlightCall>, CallError> {
        let mut state = self.state.lock();
        if let Some(end) = &state.ended {
            return Err(end.error());
        }
        let mut open = Vec::new();
        let mut tokens = Vec::new();
        for envelope in message
            .envelopes()
            .iter()
            .filter(|envelope| envelope.is_request())
        {
            let id = message.value(envelope).get("id");
            if let (Some(key), Some(raw)) = (id.and_then(key), message.id(envelope)) {
                open.push(RequestKey {
                    key,
                    raw: raw.into(),
                });
            }
            let token = message
                .body(envelope)
                .and_then(|params| params.at(&["_meta", "progressToken"]));
            tokens.extend(token.and_then(key));
        }
        let modern = self.era == Era::Modern;
        let taken = state.calls.values().any(|call| {
            open.iter().any(|id| call.holds(&id.key))
                || (modern && tokens.iter().any(|token| call.tokens.contains(token)))
        });
        if taken {
            return Ok(None);
        }
        let subscribes =
            modern && message.single().and_then(Envelope::method) == Some("subscriptions/listen");
        let (to, from) = mpsc::unbounded_channel();
        state.arrivals += 1;
        let number = state.arrivals;
        state.used = Instant::now();
        state.calls.insert(
            number,
            PendingRequest {
                open,
                tokens,
                subscribes,
                to,
            },
        );
        let mut ticket = InFlightCall::new(self.clone(), number, from, subscribes);
        ticket.has_meta = headers::has_meta(message);
        Ok(Some(ticket))
    }

    /// Removes a call from the channel; returns the ids (as written) of its unanswered requests.
    pub(super) fn give_up(&self, number: u64) -> Vec<Box<str>> {
        let mut state = self.state.lock();
        state.used = Instant::now();
        let call = state.calls.remove(&number);
        call.map(|call| call.open.into_iter().map(|id| id.raw).collect())
            .unwrap_or_default()
    }

    /// Ends a request that its agent cancelled (2025-11-25, Cancellation), and its call if nothing
    /// else of it is open.
    pub(super) fn cancel(&self, id: Value<'_>) {
        let Some(key) = key(id) else { return };
        let mut state = self.state.lock();
        let Some((number, call)) = state.calls.iter_mut().find(|(_, call)| call.holds(&key)) else {
            return;
        };
        call.open.retain(|id| id.key != key);
        if call.open.is_empty() {
            drop(call.to.send(Err(CallError::Withdrawn)));
            let number = *number;
            state.calls.remove(&number);
        }
    }

    /// Reports whether a request with this id is in flight.
    pub(super) fn holds(&self, id: Value<'_>) -> bool {
        key(id).is_some_and(|key| {
            self.state
                .lock()
                .calls
                .values()
                .any(|call| call.holds(&key))
        })
    }

    /// Attaches the single reader of messages that belong to no call.
    ///
    /// # Errors
    /// `NotOffered` if there is one already; the reason why the channel has ended.
    pub(super) fn listen(self: &Arc<Self>) -> Result<Listener, CallError> {
        let mut state = self.state.lock();
        if let Some(end) = &state.ended {
            return Err(end.error());
        }
        if state
            .listener
            .as_ref()
            .is_some_and(|listener| !listener.is_closed())
        {
            return Err(CallError::NotOffered);
        }
        let (to, from) = mpsc::unbounded_channel();
        for waiting in state.queue.drain(..) {
            // Cannot fail: the receiver was created above.
            drop(to.send(Ok(waiting)));
        }
        state.listener = Some(to);
        state.used = Instant::now();
        Ok(Listener::new(self.clone(), from))
    }

    /// Marks the channel as used now.
    pub(super) fn touch(&self) {
        self.state.lock().used = Instant::now();
    }

    /// Returns how long the channel has been unused: zero while a call or a listener is open.
    pub(super) fn unused(&self) -> Duration {
        let state = self.state.lock();
        let listened = state
            .listener
            .as_ref()
            .is_some_and(|listener| !listener.is_closed());
        if listened || !state.calls.is_empty() {
            Duration::ZERO
        } else {
            state.used.elapsed()
        }
    }

    /// Waits until the channel has been unused for `time`.
    pub(super) async fn unused_for(&self, time: Duration) {
        loop {
            let left = time.saturating_sub(self.unused());
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left).await;
        }
    }

    /// Ends the channel: every open call fails, and later ones fail at once. The first reason is
    /// kept.
    pub(super) fn end(&self, end: ChannelEnd) {
        let mut state = self.state.lock();
        for call in std::mem::take(&mut state.calls).into_values() {
            // A call that is being given up does not need the reason.
            drop(call.to.send(Err(end.error())));
        }
        state.listener = None;
        state.queue.clear();
        state.ended.get_or_insert(end);
    }

    /// Returns the reason why the channel has ended, if it has.
    pub(super) fn ended(&self) -> Option<ChannelEnd> {
        self.state.lock().ended.clone()
    }

    /// Parses one message from the server and delivers it. Waits while readers are behind.
    ///
    /// # Errors
    /// Fails if it is not a message; it is then dropped.
    pub(super) async fn receive(&self, bytes: Bytes) -> Result<(), ParseError> {
        let json = bytes
            .iter()
            .find(|byte| !byte.is_ascii_whitespace())
            .is_some_and(|byte| matches!(byte, b'{' | b'['));
        let length = bytes.len();
        let message = match Message::parse(bytes, &self.read) {
            Ok(message) => message,
            Err(error) => {
                self.unreadable(&error, json);
                return Err(error);
            }
        };
        let room = Arc::new(self.make_room(length).await);
        let mut state = self.state.lock();
        if message.is_batch() && state.owners(&message) > 1 {
            for envelope in message.envelopes() {
                let item = message.bytes().slice(message.span(envelope));
                match Message::parse(item, &self.read) {
                    Ok(item) => self.deliver(&mut state, item, room.clone()),
                    Err(error) => {
                        tracing::warn!(upstream = %self.upstream, "an item of a batch is {error}")
                    }
                }
            }
        } else {
            self.deliver(&mut state, message, room);
        }
        Ok(())
    }

    fn unreadable(&self, error: &ParseError, json: bool) {
        // Servers print banners where they should not. But a line that begins like JSON may have
        // been the answer that a call waits for, and if only one call is open, it belongs to that
        // call.
        let mut state = self.state.lock();
        if json
            && state.calls.len() == 1
            && let Some((_, call)) = state.calls.pop_first()
        {
            drop(call.to.send(Err(CallError::NotMcp(error.clone()))));
        }
    }

    async fn make_room(&self, length: usize) -> OwnedSemaphorePermit {
        let wanted = u32::try_from(length.saturating_add(MESSAGE_OVERHEAD_BYTES))
            .unwrap_or(u32::MAX)
            .min(self.room_bytes);
        loop {
            if let Ok(room) = self.room.clone().try_acquire_many_owned(wanted) {
                return room;
            }
            // Messages that may never be read must not block messages that a reader waits for.
            if !self.drop_oldest(&mut self.state.lock()) {
                break;
            }
        }
        match self.room.clone().acquire_many_owned(wanted).await {
            Ok(room) => room,
            // The semaphore is never closed.
            Err(_) => std::future::pending().await,
        }
    }

    fn drop_oldest(&self, state: &mut State) -> bool {
        let dropped = state.queue.pop_front().is_some();
        if dropped {
            tracing::warn!(upstream = %self.upstream, limit = "queued_messages", "dropped a message without a reader");
        }
        dropped
    }

    fn deliver(&self, state: &mut State, message: Message, room: Arc<OwnedSemaphorePermit>) {
        state.used = Instant::now();
        let place = message
            .envelopes()
            .iter()
            .find_map(|envelope| state.owner(&message, envelope));
        let answers = message.envelopes().iter().any(Envelope::is_answer);
        let place = match place {
            Some(call) => Some(call),
            None if answers
                && message
                    .envelopes()
                    .iter()
                    .all(|e| e.is_answer() && message.id(e).is_some()) =>
            {
                return tracing::debug!(upstream = %self.upstream, "dropped an unexpected answer");
            }
            None if self.era == Era::Modern => match state.only_call() {
                Some(call) => Some(call),
                None => {
                    return tracing::debug!(upstream = %self.upstream, "dropped a message that belongs to no call");
                }
            },
            None => None,
        };
        let mut incoming = Incoming {
            message,
            last: false,
            _room: room,
        };
        if place.is_none()
            && let Some(listener) = &state.listener
        {
            match listener.send(Ok(incoming)) {
                Ok(()) => return,
                Err(unsent) => match unsent.0 {
                    Ok(back) => incoming = back,
                    Err(_) => return,
                },
            }
            state.listener = None;
        }
        let Some(call) = place.or_else(|| state.calls.keys().next().copied()) else {
            state.queue.push_back(incoming);
            if state.queue.len() > self.queued_messages {
                self.drop_oldest(state);
            }
            return;
        };
        state.hand_over(call, incoming);
    }
}

impl PendingRequest {
    fn holds(&self, key: &str) -> bool {
        self.open.iter().any(|id| &*id.key == key)
    }
}

impl State {
    /// Sends `incoming` to a call, and removes the call if none of its requests stay open.
    fn hand_over(&mut self, number: u64, mut incoming: Incoming) {
        let Some(call) = self.calls.get_mut(&number) else {
            return;
        };
        let before = call.open.len();
        for envelope in incoming.message.envelopes() {
            if let Some(key) = settles(&incoming.message, envelope, self.modern) {
                call.open.retain(|id| id.key != key);
            }
        }
        incoming.last = call.open.is_empty() && before > 0;
        let last = incoming.last;
        // A call that is being given up receives nothing more.
        drop(call.to.send(Ok(incoming)));
        if last {
            self.calls.remove(&number);
        }
    }

    /// Returns the call that the content of one message assigns it to.
    fn owner(&self, message: &Message, envelope: &Envelope) -> Option<u64> {
        let holder = |key: &str| {
            self.calls
                .iter()
                .find(|(_, call)| call.holds(key))
                .map(|(number, _)| *number)
        };
        if let Some(key) = settles(message, envelope, self.modern) {
            return holder(&key);
        }
        let params = message.body(envelope)?;
        if envelope.method() == Some("notifications/progress") {
            let token = key(params.get("progressToken")?)?;
            return self
                .calls
                .iter()
                .find(|(_, call)| call.tokens.contains(&token))
                .map(|(number, _)| *number);
        }
        let subscription = params
            .at(&["_meta", "io.modelcontextprotocol/subscriptionId"])
            .and_then(key)?;
        holder(&subscription)
    }

    fn owners(&self, message: &Message) -> usize {
        let mut owners: Vec<u64> = message
            .envelopes()
            .iter()
            .filter_map(|e| self.owner(message, e))
            .collect();
        owners.sort_unstable();
        owners.dedup();
        owners.len()
    }

    /// Returns the only call in flight, not counting subscriptions.
    fn only_call(&self) -> Option<u64> {
        let mut calls = self.calls.iter().filter(|(_, call)| !call.subscribes);
        match (calls.next(), calls.next()) {
            (Some((number, _)), None) => Some(*number),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
