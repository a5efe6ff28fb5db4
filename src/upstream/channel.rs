//! One bidirectional stream shared by many calls: delivers each incoming message to its call.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::end::ChannelEnd;
use super::ids::{closed_request_key, key};
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
    budget: Arc<Semaphore>,
    budget_bytes: u32,
    state: Mutex<State>,
}

struct State {
    is_modern: bool,
    /// In order of arrival.
    calls: BTreeMap<u64, PendingRequest>,
    arrivals: u64,
    listener: Option<mpsc::UnboundedSender<Delivery>>,
    queue: VecDeque<Incoming>,
    end_reason: Option<ChannelEnd>,
    last_used: Instant,
}

struct PendingRequest {
    /// Requests without an answer so far.
    unanswered: Vec<RequestKey>,
    tokens: Vec<Box<str>>,
    /// Whether it is a modern subscription: only messages that name it belong to it.
    is_subscription: bool,
    sender: mpsc::UnboundedSender<Delivery>,
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
    pub(super) is_last: bool,
    _permit: Arc<OwnedSemaphorePermit>,
}

pub(super) type Delivery = Result<Incoming, CallError>;

/// Approximate memory cost of a message in addition to its bytes.
const MESSAGE_OVERHEAD_BYTES: usize = 1024;

impl Channel {
    pub(super) fn new(era: Era, upstream: UpstreamName, limits: &Limits) -> Arc<Self> {
        let budget = limits
            .read
            .message_bytes
            .saturating_mul(2)
            .clamp(1 << 20, Semaphore::MAX_PERMITS.min(u32::MAX as usize));
        Arc::new(Self {
            era,
            upstream,
            read: limits.read.clone(),
            queued_messages: limits.queued_messages,
            budget: Arc::new(Semaphore::new(budget)),
            budget_bytes: u32::try_from(budget).unwrap_or(u32::MAX),
            state: Mutex::new(State {
                is_modern: era == Era::Modern,
                calls: BTreeMap::new(),
                arrivals: 0,
                listener: None,
                queue: VecDeque::new(),
                end_reason: None,
                last_used: Instant::now(),
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
        if let Some(end) = &state.end_reason {
            return Err(end.error());
        }
        let mut unanswered = Vec::new();
        let mut tokens = Vec::new();
        for envelope in message.requests() {
            let id = message.value(envelope).get("id");
            if let (Some(key), Some(raw)) = (id.and_then(key), message.id(envelope)) {
                unanswered.push(RequestKey {
                    key,
                    raw: raw.into(),
                });
            }
            let token = message
                .body(envelope)
                .and_then(|params| params.at(&["_meta", "progressToken"]));
            tokens.extend(token.and_then(key));
        }
        let is_modern = self.era == Era::Modern;
        let is_taken = state.calls.values().any(|call| {
            unanswered.iter().any(|id| call.has_request(&id.key))
                || (is_modern && tokens.iter().any(|token| call.tokens.contains(token)))
        });
        if is_taken {
            return Ok(None);
        }
        let is_subscription = is_modern
            && message.single().and_then(Envelope::method) == Some("subscriptions/listen");
        let (sender, receiver) = mpsc::unbounded_channel();
        state.arrivals += 1;
        let number = state.arrivals;
        state.last_used = Instant::now();
        state.calls.insert(
            number,
            PendingRequest {
                unanswered,
                tokens,
                is_subscription,
                sender,
            },
        );
        let mut ticket = InFlightCall::new(self.clone(), number, receiver, is_subscription);
        ticket.has_meta = headers::has_meta(message);
        Ok(Some(ticket))
    }

    /// Removes a call from the channel; returns the ids (as written) of its unanswered requests.
    pub(super) fn remove_call(&self, number: u64) -> Vec<Box<str>> {
        let mut state = self.state.lock();
        state.last_used = Instant::now();
        let call = state.calls.remove(&number);
        call.map(|call| call.unanswered.into_iter().map(|id| id.raw).collect())
            .unwrap_or_default()
    }

    /// Ends a request that its agent cancelled (2025-11-25, Cancellation), and its call if nothing
    /// else of it is open.
    pub(super) fn cancel(&self, id: Value<'_>) {
        let Some(key) = key(id) else { return };
        let mut state = self.state.lock();
        let Some((number, call)) = state
            .calls
            .iter_mut()
            .find(|(_, call)| call.has_request(&key))
        else {
            return;
        };
        call.unanswered.retain(|id| id.key != key);
        if call.unanswered.is_empty() {
            drop(call.sender.send(Err(CallError::Withdrawn)));
            let number = *number;
            state.calls.remove(&number);
        }
    }

    /// Reports whether a request with this id is in flight.
    pub(super) fn has_request(&self, id: Value<'_>) -> bool {
        key(id).is_some_and(|key| {
            self.state
                .lock()
                .calls
                .values()
                .any(|call| call.has_request(&key))
        })
    }

    /// Attaches the single reader of messages that belong to no call.
    ///
    /// # Errors
    /// `NotOffered` if there is one already; the reason why the channel has ended.
    pub(super) fn listen(self: &Arc<Self>) -> Result<Listener, CallError> {
        let mut state = self.state.lock();
        if let Some(end) = &state.end_reason {
            return Err(end.error());
        }
        if state
            .listener
            .as_ref()
            .is_some_and(|listener| !listener.is_closed())
        {
            return Err(CallError::NotOffered);
        }
        let (sender, receiver) = mpsc::unbounded_channel();
        for queued in state.queue.drain(..) {
            // Cannot fail: the receiver was created above.
            drop(sender.send(Ok(queued)));
        }
        state.listener = Some(sender);
        state.last_used = Instant::now();
        Ok(Listener::new(self.clone(), receiver))
    }

    /// Marks the channel as used now.
    pub(super) fn touch(&self) {
        self.state.lock().last_used = Instant::now();
    }

    /// Returns how long the channel has been unused: zero while a call or a listener is open.
    pub(super) fn idle_time(&self) -> Duration {
        let state = self.state.lock();
        let has_listener = state
            .listener
            .as_ref()
            .is_some_and(|listener| !listener.is_closed());
        if has_listener || !state.calls.is_empty() {
            Duration::ZERO
        } else {
            state.last_used.elapsed()
        }
    }

    /// Waits until the channel has been unused for `time`.
    pub(super) async fn wait_until_idle(&self, time: Duration) {
        loop {
            let remaining = time.saturating_sub(self.idle_time());
            if remaining.is_zero() {
                return;
            }
            tokio::time::sleep(remaining).await;
        }
    }

    /// Ends the channel: every open call fails, and later ones fail at once. The first reason is
    /// kept.
    pub(super) fn end(&self, end: ChannelEnd) {
        let mut state = self.state.lock();
        for call in std::mem::take(&mut state.calls).into_values() {
            // A call that is being given up does not need the reason.
            drop(call.sender.send(Err(end.error())));
        }
        state.listener = None;
        state.queue.clear();
        state.end_reason.get_or_insert(end);
    }

    /// Returns the reason why the channel has ended, if it has.
    pub(super) fn end_reason(&self) -> Option<ChannelEnd> {
        self.state.lock().end_reason.clone()
    }

    /// Parses one message from the server and delivers it. Waits while readers are behind.
    ///
    /// # Errors
    /// Fails if it is not a message; it is then dropped.
    pub(super) async fn receive(&self, bytes: Bytes) -> Result<(), ParseError> {
        let is_json = bytes
            .iter()
            .find(|byte| !byte.is_ascii_whitespace())
            .is_some_and(|byte| matches!(byte, b'{' | b'['));
        let length = bytes.len();
        let message = match Message::parse(bytes, &self.read) {
            Ok(message) => message,
            Err(error) => {
                self.report_unreadable(&error, is_json);
                return Err(error);
            }
        };
        let permit = Arc::new(self.make_room(length).await);
        let mut state = self.state.lock();
        if message.is_batch() && state.count_owners(&message) > 1 {
            for envelope in message.envelopes() {
                let item = message.bytes().slice(message.span(envelope));
                match Message::parse(item, &self.read) {
                    Ok(item) => self.deliver(&mut state, item, permit.clone()),
                    Err(error) => {
                        tracing::warn!(upstream = %self.upstream, "an item of a batch is {error}")
                    }
                }
            }
        } else {
            self.deliver(&mut state, message, permit);
        }
        Ok(())
    }

    fn report_unreadable(&self, error: &ParseError, is_json: bool) {
        // Servers print banners where they should not. But a line that begins like JSON may have
        // been the answer that a call waits for, and if only one call is open, it belongs to that
        // call.
        let mut state = self.state.lock();
        if is_json
            && state.calls.len() == 1
            && let Some((_, call)) = state.calls.pop_first()
        {
            drop(call.sender.send(Err(CallError::NotMcp(error.clone()))));
        }
    }

    async fn make_room(&self, length: usize) -> OwnedSemaphorePermit {
        let permits = u32::try_from(length.saturating_add(MESSAGE_OVERHEAD_BYTES))
            .unwrap_or(u32::MAX)
            .min(self.budget_bytes);
        loop {
            if let Ok(permit) = self.budget.clone().try_acquire_many_owned(permits) {
                return permit;
            }
            // Messages that may never be read must not block messages that a reader waits for.
            if !self.drop_oldest(&mut self.state.lock()) {
                break;
            }
        }
        match self.budget.clone().acquire_many_owned(permits).await {
            Ok(permit) => permit,
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

    fn deliver(&self, state: &mut State, message: Message, permit: Arc<OwnedSemaphorePermit>) {
        state.last_used = Instant::now();
        let owner = message
            .envelopes()
            .iter()
            .find_map(|envelope| state.owner(&message, envelope));
        let has_answers = message.envelopes().iter().any(Envelope::is_answer);
        let owner = match owner {
            Some(call) => Some(call),
            None if has_answers
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
            is_last: false,
            _permit: permit,
        };
        if owner.is_none()
            && let Some(listener) = &state.listener
        {
            match listener.send(Ok(incoming)) {
                Ok(()) => return,
                Err(unsent) => match unsent.0 {
                    Ok(returned) => incoming = returned,
                    Err(_) => return,
                },
            }
            state.listener = None;
        }
        let Some(call) = owner.or_else(|| state.calls.keys().next().copied()) else {
            state.queue.push_back(incoming);
            if state.queue.len() > self.queued_messages {
                self.drop_oldest(state);
            }
            return;
        };
        state.send_to_call(call, incoming);
    }
}

impl PendingRequest {
    fn has_request(&self, key: &str) -> bool {
        self.unanswered.iter().any(|id| &*id.key == key)
    }
}

impl State {
    /// Sends `incoming` to a call, and removes the call if none of its requests stay open.
    fn send_to_call(&mut self, number: u64, mut incoming: Incoming) {
        let Some(call) = self.calls.get_mut(&number) else {
            return;
        };
        let unanswered_before = call.unanswered.len();
        for envelope in incoming.message.envelopes() {
            if let Some(key) = closed_request_key(&incoming.message, envelope, self.is_modern) {
                call.unanswered.retain(|id| id.key != key);
            }
        }
        incoming.is_last = call.unanswered.is_empty() && unanswered_before > 0;
        let is_last = incoming.is_last;
        // A call that is being given up receives nothing more.
        drop(call.sender.send(Ok(incoming)));
        if is_last {
            self.calls.remove(&number);
        }
    }

    /// Returns the call that the content of one message assigns it to.
    fn owner(&self, message: &Message, envelope: &Envelope) -> Option<u64> {
        let holder = |key: &str| {
            self.calls
                .iter()
                .find(|(_, call)| call.has_request(key))
                .map(|(number, _)| *number)
        };
        if let Some(key) = closed_request_key(message, envelope, self.is_modern) {
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

    fn count_owners(&self, message: &Message) -> usize {
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
        let mut calls = self.calls.iter().filter(|(_, call)| !call.is_subscription);
        match (calls.next(), calls.next()) {
            (Some((number, _)), None) => Some(*number),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
