//! The path of a line between an agent and a server that stand on pipes: the same judging as on the path of a call.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use http::HeaderMap;

use super::approve::{self, Approvals, Matter};
use super::budgets::{Budgets, Held};
use super::changed::{Declared, Subscriptions};
use super::classify::Classifiers;
use super::judge::{Carried, Case, Judged, Onward, Outcome};
use super::lists::{self, Shown};
use super::memories::Memories;
use super::pins::Store;
use super::releases::Releases;
use super::resolve::Resolver;
use crate::config::{Config, Limits};
use crate::document::Fault;
use crate::inspect::tools::Tools;
use crate::inspect::{Heard, Known, Mode, Policy};
use crate::message::{Direction, Envelope, Message, ParseError};
use crate::protocol::{CallError, Caller, Context, Era, UpstreamName, answer, headers};
use crate::record::{Event, Recorder};

mod access;
mod later;
mod look;
mod open;
mod released;
mod unread;

use later::InspectedLine;
pub use later::{Later, Step};
use open::{Open, Waited};

/// Most open requests remembered, so that their answers are judged with the tool that gave them. An older one's
/// answer is judged all the same, without it.
const OPEN: usize = 1024;

/// Judges the lines between one agent and one server.
pub struct Pipe {
    policy: Policy,
    recorder: Arc<Recorder>,
    limits: Limits,
    upstream: UpstreamName,
    caller: Caller,
    pins: Store,
    /// The name by which the server is pinned.
    pinned_as: Box<str>,
    declared: Declared,
    subscriptions: Subscriptions,
    open: Mutex<VecDeque<Open>>,
    budgets: Budgets,
    releases: Releases,
    tools: Tools,
    memories: Memories,
    pub(super) resolver: Resolver,
    classifiers: Classifiers,
    pub(super) approvals: Arc<Approvals>,
    /// Whether the agent's client puts forms to its user.
    pub(super) elicits: AtomicBool,
    /// The revision that both sides have agreed on.
    revision: Mutex<Option<Arc<str>>>,
    /// The last texts that the agent got.
    heard: Mutex<Heard>,
    /// Whether the server has printed text where messages belong.
    prints: AtomicBool,
}

/// What becomes of a line.
#[derive(Default)]
pub struct Passage {
    /// What goes on to the other side, line feed included; if nothing, the line is withheld.
    pub on: Option<Bytes>,
    /// Lines that go back to the sender.
    pub back: Vec<Bytes>,
    /// What waits for a person, and goes on or back later.
    pub later: Option<Box<Later>>,
}

impl Pipe {
    /// Between an agent and the server `upstream`, which is pinned by the name `pinned_as`.
    ///
    /// # Errors
    /// The approvals of earlier times, or the lock file, cannot be read.
    pub fn new(
        policy: Policy,
        recorder: Arc<Recorder>,
        config: &Config,
        upstream: UpstreamName,
        pinned_as: Box<str>,
    ) -> Result<Self, Vec<Fault>> {
        let limits = config.limits.clone();
        let pins = Store::open(config.pins.file.as_deref())?;
        let hint = "see what `file` under `[approval]` names";
        let fault = |error: std::io::Error| vec![Fault::of_file("approval.file", error.to_string(), Some(hint))];
        let approvals = Approvals::new(&config.approval, &limits, recorder.clone(), true).map_err(fault)?;
        let approvals = Arc::new(approvals.notified_by(approve::notifier(config, &recorder)?));
        let (open, tools, elicits) = (Mutex::default(), Tools::default(), AtomicBool::new(false));
        let memories = Memories::new(&config.limits, 1);
        let (budgets, resolver) = (Budgets::new(&config.limits), Resolver::default());
        let caller = access::caller(&config.access, &upstream);
        Ok(Self {
            policy,
            recorder,
            limits,
            upstream,
            caller,
            pins,
            pinned_as,
            declared: Declared::default(),
            subscriptions: Subscriptions::default(),
            open,
            budgets,
            releases: Releases::default(),
            tools,
            memories,
            resolver,
            classifiers: Classifiers::default(),
            approvals,
            elicits,
            revision: Mutex::default(),
            heard: Mutex::default(),
            prints: AtomicBool::new(false),
        })
    }

    /// Longest line that is read, in bytes: `message_bytes`.
    pub fn longest(&self) -> usize {
        self.limits.read.message_bytes
    }

    /// Who hears of what happens.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// A line from the agent, with the line feed that ends it. Where names are looked up, that holds up the thread, which
    /// must be one of a runtime for it.
    pub fn from_agent(&self, line: &Bytes) -> Passage {
        let Some((message, line)) = self.read(line, Direction::Outbound) else {
            return Passage { on: Some(line.clone()), ..Passage::default() };
        };
        let message = match message {
            Ok(message) => message,
            Err(error) => return self.unread_of_agent(&CallError::BadMessage(error)),
        };
        let mut context = self.context(era(&message), Arc::from([]));
        context.wire = self.wire(&message);
        context.trace = self.recorder.trace(&context, &HeaderMap::new(), &message);
        self.call(&message, line, &context).unwrap_or_else(|error| {
            self.tell_failed(&context, &error);
            let back = answer::unsent(&error, Some(&context), &message);
            Passage { back: back.into_iter().map(lined).collect(), ..Passage::default() }
        })
    }

    fn call(&self, message: &Message, line: Bytes, context: &Context) -> Result<Passage, CallError> {
        if self.approvals.take(message, context)? {
            return Ok(Passage::default());
        }
        let held = self.budgets.spend(message, context, &self.policy, Instant::now())?;
        if let Some(served) = self.served(message, context)? {
            return Ok(served);
        }
        if let Some(refused) = self.barred(message, context)? {
            return Ok(refused);
        }
        let restored = self.approvals.restored(context, message)?;
        let (message, line) = match &restored {
            Some(restored) => (&restored.message, lined(restored.message.bytes().clone())),
            None => (message, line),
        };
        let (repeats, rules) = (&self.approvals.repeats, self.policy.rules_digest(Direction::Outbound));
        if self.policy.mode == Mode::Enforce
            && let Some(reason) = repeats.known(context, message, rules, &self.recorder).map_err(CallError::Audit)?
        {
            let back = answer::refusals(context, message, &[Some(reason)]);
            return Ok(Passage { back: back.into_iter().map(lined).collect(), ..Passage::default() });
        }
        let judged = self.judge(Direction::Outbound, message, context, None)?;
        match judged.outbound(message)? {
            Onward::Pass => match self.released(self.releases.of_call(message, context), message, context)? {
                Some(released) => Ok(released),
                None => Ok(self.goes(message, line, context, None, held)),
            },
            Onward::Refused(mut refused) => {
                if let [Some(reason)] = refused.reasons.as_mut_slice() {
                    repeats.judged(context, message, rules, reason, &self.recorder);
                }
                // The server waits for an answer that is withheld: it is told.
                let on: Vec<Bytes> = refused.to_server.into_iter().map(lined).collect();
                let back = answer::refusals(context, message, &refused.reasons);
                Ok(Passage { on: some(on.concat()), back: back.into_iter().map(lined).collect(), later: None })
            }
            Onward::Ask(question) => {
                let call = InspectedLine { message, line, context, held };
                self.asks(question, judged.audit, call, restored.as_ref())
            }
        }
    }

    /// A call that goes on, at once or after a person's yes.
    pub(super) fn goes(
        &self,
        message: &Message,
        line: Bytes,
        context: &Context,
        approved: Option<Box<Matter>>,
        held: Held,
    ) -> Passage {
        if message.single().is_some_and(|envelope| envelope.method() == Some("initialize")) {
            self.elicits.store(approve::asks(message, Era::Legacy).form, Ordering::Relaxed);
        }
        self.subscriptions.asked(message);
        self.ask(message, context, approved, held);
        Passage { on: Some(line), ..Passage::default() }
    }

    /// A line from the server, with the line feed that ends it. Where a classifier is asked, that holds up the thread, which
    /// must be one of a runtime for it.
    pub fn from_server(&self, line: &Bytes) -> Passage {
        let Some((message, line)) = self.read(line, Direction::Inbound) else {
            return Passage { on: Some(line.clone()), ..Passage::default() };
        };
        let told = match message {
            Ok(message) => message,
            Err(error) => {
                return self.unread_line_of_server(&line, error);
            }
        };
        let (context, waited) = self.answers(&told);
        if context.is_stray(&told) {
            self.tell_failed(&context, &CallError::STRAY_ANSWER);
            return Passage::default();
        }
        self.agreed(&told, &context);
        let pins = self.pins.of(&self.pinned_as);
        let mut shown = match Shown::of(&self.policy, &told, &context, &pins, &self.limits, &self.recorder) {
            Ok(shown) => shown,
            Err(error) => {
                self.tell_failed(&context, &error);
                let on = broken(&told, Envelope::is_answer, &error, &context).concat();
                return Passage { on: some(on), ..Passage::default() };
            }
        };
        let message = shown.message(&told).clone();
        let judged = self.judge(Direction::Inbound, &message, &context, waited);
        let carried = judged.and_then(|judged| {
            let carried = judged.carry_out(&message, &context)?;
            if let Some(listed) = shown.listed().filter(|_| judged.goes_on()) {
                lists::keep(&self.pins, &self.pinned_as, &listed, self.policy.mode, &context, &self.recorder)?;
            }
            Ok(carried)
        });
        self.declared.learn(&told, &context);
        self.subscriptions.said(&told);
        match carried {
            Ok(Carried { outcome, to_server }) => {
                // What is learnt is what the server said and what is pinned: it is what its calls are held to.
                if outcome != Outcome::Nothing && self.tools.learn(shown.said(&told), &context) {
                    self.tell(Event::Limit { name: "tool_definitions" });
                }
                let on = match outcome {
                    Outcome::Same => Some(shown.other().map_or(line, |shown| lined(shown.bytes().to_vec()))),
                    Outcome::Other(bytes) => Some(lined(bytes)),
                    Outcome::Nothing => None,
                };
                Passage { on, back: to_server.into_iter().map(lined).collect(), later: None }
            }
            Err(error) => {
                self.tell_failed(&context, &error);
                let on = broken(&message, Envelope::is_answer, &error, &context).concat();
                Passage { on: some(on), back: broken(&message, Envelope::is_request, &error, &context), later: None }
            }
        }
    }

    /// Reads a line: `None` if it is blank. Gives the line as it may go on.
    fn read(&self, line: &Bytes, direction: Direction) -> Option<(Result<Message, ParseError>, Bytes)> {
        let end = line.len() - line.iter().rev().take_while(|byte| matches!(byte, b'\n' | b'\r')).count();
        if line.trim_ascii().is_empty() {
            return None;
        }
        let body = line.slice(..end);
        // Some readers end a line at a bare carriage return: they would see other messages than the one judged here.
        let (body, line) = if body.contains(&b'\r') {
            tracing::warn!(direction = direction.name(), "a line held a carriage return: it became a space");
            let plain: Bytes = body.iter().map(|byte| if *byte == b'\r' { b' ' } else { *byte }).collect();
            (plain.clone(), lined(plain))
        } else {
            (body, line.clone())
        };
        Some((Message::parse(body, &self.limits.read), line))
    }

    fn judge(
        &self,
        direction: Direction,
        message: &Message,
        context: &Context,
        waited: Option<Waited>,
    ) -> Result<Judged, CallError> {
        let (waited, call) = waited.map_or((None, None), |waited| (Some(waited.time), waited.call));
        let memory = self.memories.of(context);
        let links = context.era == Era::Modern || self.agreed_on().is_some_and(|revision| headers::has_links(&revision));
        let paging = if direction == Direction::Inbound { self.memories.pages.paging(links) } else { None };
        let (pins, names) = (self.pins.of(&self.pinned_as), self.pins.names());
        let inbound = direction == Direction::Inbound;
        let heard = inbound.then(|| self.heard.lock().unwrap_or_else(PoisonError::into_inner).clone());
        let known = Known {
            tools: Some(&self.tools),
            memory: Some(&memory),
            answers: None,
            paging: paging.as_ref(),
            pins: Some(&*pins),
            names: Some((&*names, &self.pinned_as)),
            classified: None,
            heard: heard.as_ref(),
            trace: false,
            work: self.limits.work,
        };
        let case = Case { policy: &self.policy, direction, message, context, waited, known, memories: &self.memories };
        let mut judged = case.judge(&self.recorder, &self.resolver, &self.classifiers, call)?;
        if inbound && judged.goes_on() {
            *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = judged.heard();
        }
        Ok(judged)
    }

    fn open(&self) -> MutexGuard<'_, VecDeque<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell_failed(&self, context: &Context, error: &CallError) {
        tracing::warn!(upstream = %self.upstream, "a line was withheld: {error}");
        let limit = error.limit().map(|name| Event::Limit { name });
        limit.into_iter().chain([Event::Failed { context, error }]).for_each(|event| self.tell(event));
    }

    fn tell(&self, event: Event<'_>) {
        if let Err(error) = self.recorder.tell(event) {
            tracing::error!(%error, "the audit log cannot be written");
        }
    }
}

fn era(message: &Message) -> Era {
    // Without headers there is nothing that the body could disagree with.
    headers::era(&HeaderMap::new(), Some(message)).unwrap_or(Era::Legacy)
}

/// The errors for those messages of a body whose senders wait for an answer that does not come.
fn broken(message: &Message, waits: fn(&Envelope) -> bool, error: &CallError, context: &Context) -> Vec<Bytes> {
    let waiting = message.envelopes().iter().filter(|envelope| waits(envelope));
    waiting.filter_map(|envelope| Some(lined(answer::broken(Some(message.id(envelope)?), error, context)))).collect()
}

fn some(lines: Vec<u8>) -> Option<Bytes> {
    if lines.is_empty() { None } else { Some(lines.into()) }
}

fn lined(text: impl Into<Vec<u8>>) -> Bytes {
    let mut line = text.into();
    line.push(b'\n');
    line.into()
}
