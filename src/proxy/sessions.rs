//! Legacy sessions: whose they are, and what was asked in them.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::approve::Elicits;
use super::roster::Roster;
use crate::message::{Message, same_id};
use crate::protocol::{Asked, CallError, Context, Holder, Reply, SessionId, UpstreamName, answer, headers};

/// Most open requests remembered of a session, for answers that come on another stream than their request's.
const ASKED: usize = 256;

/// Who opened which session. Bounded; a session that is not used is forgotten.
pub(super) struct Sessions {
    known: Mutex<HashMap<(UpstreamName, SessionId), Session>>,
    /// Where a server opens no sessions: what the last `initialize` of each holder said.
    without: Mutex<HashMap<(Holder, UpstreamName), Elicits>>,
    most: usize,
    idle: Duration,
    /// Who is connected, for people to see.
    pub(super) roster: Roster,
}

struct Session {
    holder: Holder,
    used: Instant,
    asked: VecDeque<Asked>,
    /// What the client puts to its user.
    elicits: Elicits,
}

impl Sessions {
    pub(super) fn new(most: usize, idle: Duration) -> Self {
        Self { known: Mutex::default(), without: Mutex::default(), most, idle, roster: Roster::default() }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<(UpstreamName, SessionId), Session>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses a session that this agent did not open, and one that is not known alike: its client starts anew.
    pub(super) fn admit(&self, context: &Context) -> Result<(), CallError> {
        let Some(session) = &context.session else { return Ok(()) };
        let mut known = self.known();
        match known.get_mut(&(context.upstream.clone(), session.clone())) {
            Some(entry) if context.is_of(&entry.holder) && entry.used.elapsed() < self.idle => {
                entry.used = Instant::now();
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
                let mut without = self.without.lock().unwrap_or_else(PoisonError::into_inner);
                if without.len() >= self.most {
                    without.clear();
                }
                without.insert((context.holder(), context.upstream.clone()), elicits);
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
        let asked = context.asked.iter().cloned().collect();
        // A server that hands out an id which another agent holds does not make it this agent's.
        known.entry((context.upstream.clone(), session)).or_insert(Session {
            holder: context.holder(),
            used: Instant::now(),
            asked,
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
                without.get(&(context.holder(), context.upstream.clone())).copied().unwrap_or_default()
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

    /// Notes the requests of a message as open, and gives them.
    pub(super) fn asking(&self, context: &Context, message: &Message) -> Arc<[Asked]> {
        let asked = headers::asked(message);
        if let (Some(session), false) = (&context.session, asked.is_empty())
            && let Some(entry) = self.known().get_mut(&(context.upstream.clone(), session.clone()))
        {
            entry.asked.extend(asked.iter().cloned());
            let extra = entry.asked.len().saturating_sub(ASKED);
            entry.asked.drain(..extra);
        }
        asked.into()
    }

    /// The requests that are open in a session.
    pub(super) fn asked(&self, context: &Context) -> Arc<[Asked]> {
        let Some(session) = &context.session else { return Arc::from([]) };
        let known = self.known();
        let entry = known.get(&(context.upstream.clone(), session.clone()));
        entry.map_or_else(|| Arc::from([]), |entry| entry.asked.iter().cloned().collect())
    }

    /// Notes that the requests which a message answers are open no more.
    pub(super) fn answered(&self, context: &Context, message: &Message) {
        let Some(session) = &context.session else { return };
        if !message.envelopes().iter().any(crate::message::Envelope::is_answer) {
            return;
        }
        if let Some(entry) = self.known().get_mut(&(context.upstream.clone(), session.clone())) {
            for envelope in message.envelopes() {
                entry.asked.retain(|asked| message.id(envelope).is_none_or(|id| !same_id(&asked.id, id)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::ReadLimits;
    use crate::protocol::{AgentName, Caller, Era, Wire};
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
        assert!(sessions.admit(&context("a", Some("s1"))).is_ok());
        assert!(matches!(sessions.admit(&context("b", Some("s1"))), Err(CallError::UnknownSession)));
        assert!(sessions.admit(&context("a", Some("s2"))).is_err());
        sessions.learn(&context("b", None), &opening("s1"), None);
        assert!(sessions.admit(&context("b", Some("s1"))).is_err(), "not taken over");
        sessions.forget(&context("a", Some("s1")));
        assert!(sessions.admit(&context("a", Some("s1"))).is_err());
    }

    #[test]
    fn a_session_belongs_to_one_user_of_its_agent() {
        let sessions = Sessions::new(10, Duration::from_secs(60));
        let of = |user: Option<&str>, session: Option<&str>| {
            let caller = Caller { user: user.map(Into::into), ..Caller::default() };
            Context { caller, ..context("a", session) }
        };
        sessions.learn(&of(Some("ann"), None), &opening("s1"), Some(FORM));
        assert!(sessions.admit(&of(Some("ann"), Some("s1"))).is_ok());
        for other in [Some("bob"), None] {
            assert!(matches!(sessions.admit(&of(other, Some("s1"))), Err(CallError::UnknownSession)), "{other:?}");
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
        assert!(sessions.admit(&context("a", Some("s1"))).is_err());
        assert!(sessions.admit(&context("a", Some("s3"))).is_ok());
        let sessions = Sessions::new(2, Duration::ZERO);
        sessions.learn(&context("a", None), &opening("s1"), None);
        assert!(sessions.admit(&context("a", Some("s1"))).is_err(), "idle");
    }

    #[test]
    fn open_requests_are_remembered_until_they_are_answered() {
        let sessions = Sessions::new(2, Duration::from_secs(60));
        sessions.learn(&context("a", None), &opening("s1"), None);
        let parse = |text: &'static str| Message::parse(text.into(), &ReadLimits::default()).unwrap();
        let context = context("a", Some("s1"));
        sessions.asking(&context, &parse(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}"#));
        assert_eq!(sessions.asked(&context)[0].tool.as_deref(), Some("t"));
        sessions.answered(&context, &parse(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#));
        assert!(sessions.asked(&context).is_empty());
    }
}
