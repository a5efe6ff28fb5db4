//! The session of an agent with a server over standard input and output: each line is a call, or a
//! message from the server, and is checked as on other transports.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use http::HeaderMap;
use http::header::{ACCEPT, HeaderValue};
use parking_lot::Mutex;

use super::open_calls::{AnsweredCalls, OpenCalls};
use super::route::{OpenCall, Route};
use super::session::Permit;
use super::{Gate, Policies};
use crate::config::{AccessConfig, Config};
use crate::document::Fault;
use crate::inspect::Policy;
use crate::message::{Direction, Envelope, Message, ParseError};
use crate::pins::PinStore;
use crate::protocol::sse::Fields;
use crate::protocol::{
    AgentName, AgentTransport, AgentWire, Call, CallError, CallKind, Caller, Context, Era, Frame,
    Frames, Framing, JSON_OR_EVENTS, Payload, UpstreamName, answer, header, headers,
};
use crate::record::{Recorder, printable};
use crate::upstream::{ServerInput, Upstream};

/// Maximum number of bytes of a line that are logged.
const BEGINNING_BYTES: usize = 160;

/// The session of one agent with one server.
pub struct LineSession {
    gate: Arc<Gate>,
    route: Route,
    name: UpstreamName,
    caller: Caller,
    input: Arc<ServerInput>,
    /// The revision that both sides have negotiated.
    revision: Mutex<Option<Arc<str>>>,
    /// Whether the server has printed text in place of messages.
    has_printed: AtomicBool,
}

/// The result of a line from the agent.
pub enum Answer {
    /// Lines for the agent, available now.
    Lines(Vec<Bytes>),
    /// Messages for the agent, as they arrive: the call waits for approval.
    Stream(Frames),
}

impl LineSession {
    /// Creates a session between an agent and the server `name`, which is pinned under the name
    /// `pinned_as`.
    ///
    /// # Errors
    /// Fails if the stored approvals or the lock file cannot be read.
    pub fn new(
        policy: Policy,
        recorder: Arc<Recorder>,
        config: &Config,
        name: UpstreamName,
        pinned_as: Box<str>,
    ) -> Result<Self, Vec<Fault>> {
        let input = Arc::<ServerInput>::default();
        let policies = Policies::from([(name.clone(), Arc::new(policy))]);
        let pins = PinStore::open(config.pins.file.as_deref())?.with_alias(&name.0, pinned_as);
        let gate = Gate::build(
            vec![(name.clone(), Upstream::wrapped(input.clone()))],
            policies,
            recorder,
            config,
            pins,
            true,
        )?;
        let missing = || {
            vec![Fault::of_file(
                "wrap",
                "the gate has no upstream".to_owned(),
                None,
            )]
        };
        let upstream = gate.upstreams.get(&name).ok_or_else(missing)?;
        let caller = caller(&config.access, &name);
        let mut context = Context {
            caller: caller.clone(),
            ..Context::new(local(), name.clone(), Era::Legacy)
        };
        let route = gate.route(upstream, &mut context).map_err(|_| missing())?;
        let revision = Mutex::default();
        let has_printed = AtomicBool::new(false);
        Ok(Self {
            gate: Arc::new(gate),
            route,
            name,
            caller,
            input,
            revision,
            has_printed,
        })
    }

    /// Returns the standard input of the server.
    pub fn input(&self) -> &Arc<ServerInput> {
        &self.input
    }

    /// Returns the gate that carries the calls.
    pub fn gate(&self) -> &Arc<Gate> {
        &self.gate
    }

    /// Returns the maximum length of a line in bytes: `message_bytes`.
    pub fn max_line_bytes(&self) -> usize {
        self.gate.limits().read.message_bytes
    }

    /// Forgets the open calls, since they will not be answered any more.
    pub fn close(&self) {
        self.open().inspect(|open| open.clear());
    }

    /// Carries a non-blank line from the agent. When it returns, the line has been written to the
    /// server or has its answer.
    pub async fn handle_agent_line(&self, line: &Bytes) -> Answer {
        let line = replace_returns(line, Direction::Outbound);
        let (body, end) = split_end(&line);
        let message = match self.parse(body) {
            Ok(message) => message,
            Err(error) => return Answer::Lines(vec![self.answer_unreadable(error)]),
        };
        let call = self.call(message.clone(), end);
        let context = call.context.clone();
        let reply = match self.gate.carry(call).await {
            Ok(reply) => reply,
            Err(error) => {
                self.log_withheld(&error);
                return Answer::Lines(
                    answer::unsent_answers(&error, Some(&context), &message)
                        .into_iter()
                        .map(one_line)
                        .collect(),
                );
            }
        };
        if reply.framing == Framing::Events {
            return Answer::Stream(reply.frames);
        }
        let frames = reply
            .frames
            .filter_map(|frame| async { frame.ok()?.text().map(|text| one_line(text.clone())) });
        Answer::Lines(frames.collect().await)
    }

    /// Returns the answer for a line from the agent that was longer than [`Self::max_line_bytes`].
    pub fn refuse_long_agent_line(&self) -> Bytes {
        self.answer_unreadable(ParseError::TooLarge {
            limit: self.max_line_bytes(),
        })
    }

    /// Judges a non-blank line from the server; returns the text for the agent.
    pub async fn handle_server_line(&self, line: &Bytes) -> Option<Bytes> {
        let line = replace_returns(line, Direction::Inbound);
        let message = match self.parse(split_end(&line).0) {
            Ok(message) => message,
            Err(error) => return self.withhold_unreadable(&line, error),
        };
        let AnsweredCalls { call, is_stray } = self.open()?.take_answered(&message);
        let call = call.unwrap_or_else(|| Arc::new(self.unsolicited_call(&message)));
        let context = call.context();
        if is_stray {
            self.withhold(context, &CallError::STRAY_ANSWER);
            return None;
        }
        self.store_revision(&message, context);
        let frame = Frame {
            payload: Payload::Message(message.clone()),
            fields: Fields::default(),
        };
        let result = self.gate.judge_frame(frame, Framing::Events, &call).await;
        self.open().inspect(|open| open.observe(&message));
        match result.map(|frame| frame.map(|frame| frame.payload)) {
            Ok(Some(Payload::Message(_))) => Some(line),
            Ok(Some(Payload::Inspected(text))) => Some(one_line(text)),
            Ok(_) => None,
            Err(error) => {
                self.withhold(context, &error);
                for error in error_answers(&message, Envelope::is_request, &error, context) {
                    self.gate.send_to_server(&call.call, &call.route, error);
                }
                let answers = error_answers(&message, Envelope::is_answer, &error, context);
                let answers: Vec<Bytes> = answers.map(one_line).collect();
                (!answers.is_empty()).then(|| answers.concat().into())
            }
        }
    }

    /// Returns the text for the agent in place of a line from the server that was longer than
    /// [`Self::max_line_bytes`].
    pub fn refuse_long_server_line(&self) -> Option<Bytes> {
        self.withhold_answer(
            &CallError::NotMcp(ParseError::TooLarge {
                limit: self.max_line_bytes(),
            }),
            true,
        )
    }

    /// Returns notifications for the agent about lists that change because of the gate itself.
    pub fn list_notifications(&self) -> impl Stream<Item = Bytes> + Send + use<> {
        let upstream = self.route.upstream.clone();
        let notifications = move |kind| {
            let subscription_notifications = upstream
                .open_calls
                .as_ref()
                .map(|open| open.notifications(kind))
                .unwrap_or_default();
            upstream
                .declared_lists
                .notification(kind)
                .into_iter()
                .chain(subscription_notifications)
        };
        let frames = self.gate.list_changes.insert_notifications(
            Frames::stream(stream::pending()),
            self.name.clone(),
            notifications,
        );
        frames.filter_map(|frame| async { frame.ok()?.text().map(|text| one_line(text.clone())) })
    }

    fn open(&self) -> Option<&OpenCalls> {
        self.route.upstream.open_calls.as_ref()
    }

    fn parse(&self, body: Bytes) -> Result<Message, ParseError> {
        Message::parse(body, &self.gate.limits().read)
    }

    fn call(&self, message: Message, line_end: Bytes) -> Box<Call> {
        let mut context = self.context(&message);
        context.wire.line_end = Some(line_end);
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static(JSON_OR_EVENTS));
        let revision = self
            .negotiated_revision()
            .and_then(|revision| HeaderValue::from_str(&revision).ok());
        revision.and_then(|revision| headers.insert(header::VERSION, revision));
        Box::new(Call {
            kind: CallKind::Send(message),
            headers,
            context,
        })
    }

    /// Returns the context of a message.
    fn context(&self, message: &Message) -> Context {
        // Without headers there is nothing that the body could disagree with.
        let no_headers = HeaderMap::new();
        let era = headers::era(&no_headers, Some(message)).unwrap_or(Era::Legacy);
        let revision = self.negotiated_revision();
        let wire = AgentWire::new(
            AgentTransport::Pipe,
            headers::version(&no_headers, Some(message))
                .as_deref()
                .or(revision.as_deref()),
        );
        Context {
            era,
            wire,
            ..self.base_context()
        }
    }

    fn base_context(&self) -> Context {
        Context {
            caller: self.caller.clone(),
            wire: AgentWire::new(AgentTransport::Pipe, self.negotiated_revision().as_deref()),
            ..Context::new(local(), self.name.clone(), Era::Legacy)
        }
    }

    /// Returns the call for a message from the server that answers none: a call that only listens.
    fn unsolicited_call(&self, message: &Message) -> OpenCall {
        let call = Call {
            kind: CallKind::Listen,
            headers: HeaderMap::new(),
            context: self.context(message),
        };
        OpenCall::new(Box::new(call), self.route.clone(), Permit::default(), None)
    }

    /// Stores the negotiated revision, if the message contains it.
    fn store_revision(&self, message: &Message, context: &Context) {
        let initialized = context
            .requests
            .iter()
            .any(|request| &*request.method == "initialize");
        let result = message
            .single()
            .filter(|_| initialized)
            .and_then(|envelope| message.body(envelope));
        if let Some(version) = result.and_then(|result| result.get_str("protocolVersion")) {
            *self.revision.lock() = Some(version.as_ref().into());
        }
    }

    fn negotiated_revision(&self) -> Option<Arc<str>> {
        self.revision.lock().clone()
    }

    fn answer_unreadable(&self, error: ParseError) -> Bytes {
        let error = CallError::BadMessage(error);
        let context = self.base_context();
        self.withhold(&context, &error);
        one_line(answer::missing_answer_error(None, &error, &context))
    }

    fn withhold_unreadable(&self, line: &[u8], error: ParseError) -> Option<Bytes> {
        // A server that logs to its standard output sends no message: nothing waits for that line.
        let is_message = matches!(line.trim_ascii_start().first(), Some(b'{' | b'['));
        if !is_message && !self.has_printed.swap(true, Ordering::Relaxed) {
            let begins = printable(line, &[], BEGINNING_BYTES);
            tracing::warn!(
                upstream = %self.name, %begins,
                "the server wrote a line to standard output that is not an MCP message; it must log to standard error"
            );
        }
        self.withhold_answer(&CallError::NotMcp(error), is_message)
    }

    /// Withholds a line that cannot be parsed. If it was `meant` as a message and exactly one
    /// request is open, it was the answer to that request, which then gets an error, so that the
    /// agent does not wait forever.
    fn withhold_answer(&self, error: &CallError, meant: bool) -> Option<Bytes> {
        let Some((id, call)) = self.open().filter(|_| meant).and_then(OpenCalls::single) else {
            self.withhold(&self.base_context(), error);
            return None;
        };
        self.withhold(call.context(), error);
        Some(one_line(answer::missing_answer_error(
            Some(&id),
            error,
            call.context(),
        )))
    }

    fn withhold(&self, context: &Context, error: &CallError) {
        self.log_withheld(error);
        self.gate.record_failure(context, error);
    }

    fn log_withheld(&self, error: &CallError) {
        tracing::warn!(upstream = %self.name, "line withheld: {error}");
    }
}

fn local() -> AgentName {
    AgentName("local".into())
}

/// Returns the caller: the agent `local` of the config's `[access]` tables. Complete denial is more
/// likely a mistake than intended, so it is logged.
fn caller(tables: &[Arc<AccessConfig>], upstream: &UpstreamName) -> Caller {
    let caller = Caller::new(&local(), None, &[], tables);
    if let Some(Err(why)) = caller
        .access
        .as_ref()
        .map(|access| access.check_upstream(upstream))
    {
        tracing::warn!(%upstream, %why, "access to this server is denied");
    }
    caller
}

/// Returns the line without bare carriage returns. Some readers end a line at one: they would see
/// other messages than the one judged here.
fn replace_returns(line: &Bytes, direction: Direction) -> Bytes {
    let (body, _) = split_end(line);
    if !body.contains(&b'\r') {
        return line.clone();
    }
    tracing::warn!(
        direction = direction.name(),
        "replaced a carriage return in a line by a space"
    );
    one_line(body)
}

/// Splits a line into its content and its line end.
fn split_end(line: &Bytes) -> (Bytes, Bytes) {
    let end = line.len()
        - line
            .iter()
            .rev()
            .take_while(|byte| matches!(byte, b'\n' | b'\r'))
            .count();
    (line.slice(..end), line.slice(end..))
}

/// Returns the errors for those messages of a body whose senders wait for an answer that will not
/// arrive.
fn error_answers(
    message: &Message,
    expects_answer: fn(&Envelope) -> bool,
    error: &CallError,
    context: &Context,
) -> impl Iterator<Item = String> {
    let waiting = message
        .envelopes()
        .iter()
        .filter(move |envelope| expects_answer(envelope));
    waiting.filter_map(move |envelope| {
        Some(answer::missing_answer_error(
            Some(message.id(envelope)?),
            error,
            context,
        ))
    })
}

/// Writes a message as one line: its raw line breaks, which in JSON can only be white space, become
/// spaces.
pub fn one_line(message: impl Into<Vec<u8>>) -> Bytes {
    let mut line = message.into();
    line.iter_mut()
        .filter(|byte| matches!(byte, b'\n' | b'\r'))
        .for_each(|byte| *byte = b' ');
    line.push(b'\n');
    line.into()
}
