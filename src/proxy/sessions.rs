//! Legacy sessions: whose they are, and what was asked in them.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::approve::Elicits;
use super::roster::Roster;
use crate::message::{Envelope, Message, same_id};
use crate::protocol::{Asked, CallError, Context, Era, Holder, Reply, SessionId, UpstreamName, answer, headers};

/// Maximum number of open requests per session, for answers that come on another stream than their request's.
const OPEN: usize = 256;
/// Maximum number of answered requests per session, for answers that are sent again on a resumed stream.
const ANSWERED: usize = 32;

/// Who opened which session. Bounded; a session that is not used is forgotten.
pub(super) struct Sessions {
    known: Mutex<HashMap<(UpstreamName, SessionId), Session>>,
    /// Where a server opens no sessions: the requests of each holder, and what its last `initialize` said.
    without: Mutex<HashMap<(Holder, UpstreamName), (Requests, Elicits)>>,
    most: usize,
    idle: Duration,
    /// Who is connected, for people to see.
    pub(super) roster: Roster,
}

struct Session {
    id: SessionId,
    holder: Holder,
    used: Instant,
    requests: Requests,
    /// What the client puts to its user.
    elicits: Elicits,
}

/// The last requests of a session.
#[derive(Default)]
struct Requests {
    open: VecDeque<Asked>,
    answered: VecDeque<Asked>,
}

impl Requests {
    fn add(&mut self, asked: &[Asked]) {
        self.open.extend(asked.iter().cloned());
        let extra = self.open.len().saturating_sub(OPEN);
        self.open.drain(..extra);
    }

    fn answer(&mut self, id: &str) {
        let exact = self.open.iter().position(|asked| *asked.id == *id);
        let at = exact.or_else(|| self.open.iter().position(|asked| same_id(&asked.id, id)));
        self.answered.extend(at.and_then(|at| self.open.remove(at)));
        let extra = self.answered.len().saturating_sub(ANSWERED);
        self.answered.drain(..extra);
    }

    /// All of them, those that are open last.
    fn all(&self) -> Arc<[Asked]> {
        self.answered.iter().chain(&self.open).cloned().collect()
    }
}

impl Sessions {
    pub(super) fn new(most: usize, idle: Duration) -> Self {
        Self { known: Mutex::default(), without: Mutex::default(), most, idle, roster: Roster::default() }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<(UpstreamName, SessionId), Session>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses a session that this agent did not open, and one that is not known alike: its client starts anew. The id in the
    /// context becomes the one that is kept with the session, whose digest is computed once.
    pub(super) fn admit(&self, context: &mut Context) -> Result<(), CallError> {
        let Some(session) = &context.session else { return Ok(()) };
        let mut known = self.known();
        match known.get_mut(&(context.upstream.clone(), session.clone())) {
            Some(entry) if context.is_of(&entry.holder) && entry.used.elapsed() < self.idle => {
                entry.used = Instant::now();
                context.session = Some(entry.id.clone());
                Ok(())
            }
            _ => Err(CallError::UnknownSession),
        }
    }

    /// Remembers a session that a reply opens; for the reply to `initialize`, `elicits` is what its client
    /// puts to its user.
    pub(super) fn learn(&self, context: &Context, reply: &Reply, elicits: Option<Elicits>) {
        let Some(session) = answer::session(reply) else {
            if let (Some(elicits), true) = (elicits, context.session.is_none() && reply.status.is_success()) {
                self.of_holder(context, |(_, of_client)| *of_client = elicits);
            }
            return;
        };
        if !reply.status.is_success() || context.session.as_ref() == Some(&session) {
            return;
        }
        let mut known = self.known();
        if known.len() >= self.most {
            let idle = self.idle;
            known.retain(|_, session| session.used.elapsed() < idle);
            // Still full: the one that was not used for longest makes room.
            if known.len() >= self.most {
                let oldest = known.iter().min_by_key(|(_, session)| session.used).map(|(key, _)| key.clone());
                oldest.map(|key| known.remove(&key));
            }
        }
        let mut requests = Requests::default();
        requests.add(&context.asked);
        // A server that hands out an id which another agent holds does not make it this agent's.
        known.entry((context.upstream.clone(), session.clone())).or_insert(Session {
            id: session,
            holder: context.holder(),
            used: Instant::now(),
            requests,
            elicits: elicits.unwrap_or_default(),
        });
    }

    /// What the client of a session has said that it puts to its user.
    pub(super) fn elicits(&self, context: &Context) -> Elicits {
        match &context.session {
            Some(session) => {
                let known = self.known();
                known.get(&(context.upstream.clone(), session.clone())).map(|session| session.elicits).unwrap_or_default()
            }
            None => {
                let without = self.without.lock().unwrap_or_else(PoisonError::into_inner);
                without.get(&(context.holder(), context.upstream.clone())).map(|(_, elicits)| *elicits).unwrap_or_default()
            }
        }
    }

    /// Forgets a session that was closed.
    pub(super) fn forget(&self, context: &Context) {
        if let Some(session) = &context.session {
            self.known().remove(&(context.upstream.clone(), session.clone()));
            self.roster.leave(context);
        }
    }

    /// Forgets all sessions of an upstream.
    pub(super) fn forget_upstream(&self, upstream: &UpstreamName) {
        self.known().retain(|(of, _), _| of != upstream);
        self.without.lock().unwrap_or_else(PoisonError::into_inner).retain(|(_, of), _| of != upstream);
        self.roster.forget_upstream(upstream);
    }

    /// Records the requests of a message as open, and returns them.
    pub(super) fn asking(&self, context: &Context, message: &Message) -> Arc<[Asked]> {
        let asked = headers::asked(message);
        if !asked.is_empty() {
            self.of_requests(context, |requests| requests.add(&asked));
        }
        asked.into()
    }

    /// The open requests of a session, and the last ones that were answered. Where the server opens no sessions, those of
    /// the same holder. A modern request belongs to no session.
    pub(super) fn asked(&self, context: &Context) -> Arc<[Asked]> {
        self.of_requests(context, |requests| requests.all()).unwrap_or_else(|| Arc::from([]))
    }

    /// Records that the requests which a message answers are no longer open.
    pub(super) fn answered(&self, context: &Context, message: &Message) {
        if message.envelopes().iter().any(Envelope::is_answer) {
            let answers = message.envelopes().iter().filter(|envelope| envelope.is_answer());
            self.of_requests(context, |requests| {
                answers.filter_map(|envelope| message.id(envelope)).for_each(|id| requests.answer(id));
            });
        }
    }

    fn of_requests<T>(&self, context: &Context, with: impl FnOnce(&mut Requests) -> T) -> Option<T> {
        match (&context.session, context.era) {
            (Some(session), _) => {
                let mut known = self.known();
                known.get_mut(&(context.upstream.clone(), session.clone())).map(|session| with(&mut session.requests))
            }
            (None, Era::Legacy) => Some(self.of_holder(context, |(requests, _)| with(requests))),
            (None, Era::Modern) => None,
        }
    }

    fn of_holder<T>(&self, context: &Context, with: impl FnOnce(&mut (Requests, Elicits)) -> T) -> T {
        let mut without = self.without.lock().unwrap_or_else(PoisonError::into_inner);
        let holder = (context.holder(), context.upstream.clone());
        if without.len() >= self.most && !without.contains_key(&holder) {
            without.clear();
        }
        with(without.entry(holder).or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::ReadLimits;
    use crate::protocol::{AgentName, Caller, Wire};
    use http::StatusCode;

    const FORM: Elicits = Elicits { form: true, url: false };

    fn context(agent: &str, session: Option<&str>) -> Context {
        let session = session.and_then(SessionId::new);
        Context {
            agent: AgentName(agent.into()),
            upstream: UpstreamName("u".into()),
            era: Era::Legacy,
            session,
            asked: [].into(),
            caller: Caller::default(),
            trace: None,
            wire: Wire::default(),
        }
    }

    fn opening(id: &str) -> Reply {
        let mut reply = answer::empty(StatusCode::OK);
        reply.headers.insert(crate::protocol::header::SESSION, id.parse().unwrap());
        reply
    }

    #[test]
    fn a_session_belongs_to_the_agent_that_opened_it() {
        let sessions = Sessions::new(10, Duration::from_secs(60));
        sessions.learn(&context("a", None), &opening("s1"), None);
        assert!(sessions.admit(&mut context("a", Some("s1"))).is_ok());
        assert!(matches!(sessions.admit(&mut context("b", Some("s1"))), Err(CallError::UnknownSession)));
        assert!(sessions.admit(&mut context("a", Some("s2"))).is_err());
        sessions.learn(&context("b", None), &opening("s1"), None);
        assert!(sessions.admit(&mut context("b", Some("s1"))).is_err(), "not taken over");
        sessions.forget(&context("a", Some("s1")));
        assert!(sessions.admit(&mut context("a", Some("s1"))).is_err());
    }

    #[test]
    fn a_session_belongs_to_one_user_of_its_agent() {
        let sessions = Sessions::new(10, Duration::from_secs(60));
        let of = |user: Option<&str>, session: Option<&str>| {
            let caller = Caller { user: user.map(Into::into), ..Caller::default() };
            Context { caller, ..context("a", session) }
        };
        sessions.learn(&of(Some("ann"), None), &opening("s1"), Some(FORM));
        assert!(sessions.admit(&mut of(Some("ann"), Some("s1"))).is_ok());
        for other in [Some("bob"), None] {
            assert!(matches!(sessions.admit(&mut of(other, Some("s1"))), Err(CallError::UnknownSession)), "{other:?}");
        }
        sessions.learn(&of(Some("ann"), None), &answer::empty(StatusCode::OK), Some(FORM));
        assert!(sessions.elicits(&of(Some("ann"), None)).form && !sessions.elicits(&of(Some("bob"), None)).form);
    }

    #[test]
    fn sessions_are_bounded() {
        let sessions = Sessions::new(2, Duration::from_secs(60));
        for id in ["s1", "s2", "s3"] {
            sessions.learn(&context("a", None), &opening(id), None);
        }
        assert!(sessions.admit(&mut context("a", Some("s1"))).is_err());
        assert!(sessions.admit(&mut context("a", Some("s3"))).is_ok());
        let sessions = Sessions::new(2, Duration::ZERO);
        sessions.learn(&context("a", None), &opening("s1"), None);
        assert!(sessions.admit(&mut context("a", Some("s1"))).is_err(), "idle");
    }

    #[test]
    fn open_requests_are_remembered_until_they_are_answered() {
        let sessions = Sessions::new(2, Duration::from_secs(60));
        sessions.learn(&context("a", None), &opening("s1"), None);
        let parse = |text: &'static str| Message::parse(text.into(), &ReadLimits::default()).unwrap();
        let context = context("a", Some("s1"));
        sessions.asking(&context, &parse(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}"#));
        assert_eq!(sessions.asked(&context)[0].tool.as_deref(), Some("t"));
        sessions.asking(&context, &parse(r#"{"jsonrpc":"2.0","id":"1","method":"tools/call","params":{"name":"u"}}"#));
        let open = |sessions: &Sessions| {
            sessions
                .of_requests(&context, |requests| requests.open.iter().filter_map(|asked| asked.tool.clone()).collect::<Vec<_>>())
        };
        sessions.answered(&context, &parse(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#));
        assert_eq!(open(&sessions).unwrap(), ["u".into()], "the request with the same spelling");
        assert_eq!(sessions.asked(&context).len(), 2, "its answer may be sent again on a resumed stream");
        sessions.answered(&context, &parse(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#));
        assert!(open(&sessions).unwrap().is_empty(), "clients take `1` for `\"1\"`");
    }
}
