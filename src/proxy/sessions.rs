//! The table of sessions: which agent opened which, looked up once per call. Bounded; unused
//! entries are forgotten.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::agent_memory::AgentMemory;
use super::session::{AgentRecord, Session};
use crate::approval::{ElicitationSupport, declared_modes};
use crate::config::Limits;
use crate::detect::flow::TaintLimits;
use crate::message::Message;
use crate::protocol::{CallError, Context, Era, Holder, Reply, SessionId, UpstreamName, answer};

/// The sessions of all agents.
pub(super) struct Sessions {
    table: Mutex<Table>,
    /// Maximum number of sessions, and of agents outside of sessions.
    max_sessions: usize,
    idle: Duration,
    calls_per_agent: usize,
    flow: TaintLimits,
}

#[derive(Default)]
struct Table {
    /// Sessions that servers have opened (2025-03-26, Session Management).
    by_id: HashMap<(UpstreamName, SessionId), Arc<Session>>,
    /// Calls outside of sessions: one record for each agent at each upstream.
    sessionless: HashMap<(UpstreamName, Holder), Arc<Session>>,
    agents: HashMap<Holder, Arc<AgentRecord>>,
}

impl Sessions {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            table: Mutex::default(),
            max_sessions: limits.sessions,
            idle: limits.session_idle,
            calls_per_agent: limits.calls_per_agent,
            flow: limits.flow,
        }
    }

    /// Returns the session of a call. The id in the context is replaced by the one stored with the
    /// session, whose digest is computed once.
    ///
    /// # Errors
    /// Fails if the agent has not opened the session, or it is unknown: its client then starts a
    /// new one.
    pub(super) fn admit(&self, context: &mut Context) -> Result<Arc<Session>, CallError> {
        let now = Instant::now();
        let Some(id) = context.session.take() else {
            return Ok(self.sessionless_record(context, now));
        };
        let key = (context.upstream.clone(), id);
        let session = self
            .table
            .lock()
            .by_id
            .get(&key)
            .cloned()
            .filter(|session| session.belongs_to(context));
        let session = session.ok_or(CallError::UnknownSession)?;
        {
            let mut state = session.state();
            if now.duration_since(state.last_used) >= self.idle {
                return Err(CallError::UnknownSession);
            }
            state.last_used = now;
        }
        context.session.clone_from(&session.id);
        Ok(session)
    }

    /// Returns the record of an agent's calls to an upstream outside of sessions.
    fn sessionless_record(&self, context: &Context, now: Instant) -> Arc<Session> {
        let key = (context.upstream.clone(), context.holder());
        let mut table = self.table.lock();
        if let Some(session) = table.sessionless.get(&key) {
            session.state().last_used = now;
            return session.clone();
        }
        let agent = self.agent(&mut table, &key.1, now);
        let session = Arc::new(Session::new(agent, key.0.clone(), None, now));
        make_room(&mut table.sessionless, self.max_sessions, self.idle, now);
        table.sessionless.insert(key, session.clone());
        session
    }

    fn agent(&self, table: &mut Table, holder: &Holder, now: Instant) -> Arc<AgentRecord> {
        if let Some(agent) = table.agents.get(holder) {
            return agent.clone();
        }
        // An agent with a session or a call keeps its record: a second record would give it its
        // slots again.
        if table.agents.len() >= self.max_sessions {
            let idle = |agent: &AgentRecord| now.duration_since(agent.memory().last_used);
            table
                .agents
                .retain(|_, agent| Arc::strong_count(agent) > 1 || idle(agent) < self.idle);
            if table.agents.len() >= self.max_sessions {
                let unused = table
                    .agents
                    .iter()
                    .filter(|(_, agent)| Arc::strong_count(agent) == 1);
                let oldest = unused
                    .max_by_key(|(_, agent)| idle(agent))
                    .map(|(holder, _)| holder.clone());
                oldest.map(|holder| table.agents.remove(&holder));
            }
        }
        let agent = AgentRecord::new(
            holder.clone(),
            self.calls_per_agent,
            AgentMemory::new(self.flow, now),
        );
        table
            .agents
            .entry(holder.clone())
            .or_insert(Arc::new(agent))
            .clone()
    }

    /// Records the session that a reply opens, and which questions the client that sent `message`
    /// presents to its user.
    pub(super) fn observe(
        &self,
        asker: &Session,
        context: &Context,
        message: Option<&Message>,
        reply: &Reply,
    ) {
        if !reply.status.is_success() {
            return;
        }
        let elicitation = message.and_then(requested_elicitation);
        let Some(id) = answer::opened_session(reply) else {
            if let (Some(elicitation), None) = (elicitation, &context.session) {
                asker.state().elicitation = elicitation;
            }
            return;
        };
        if context.session.as_ref() == Some(&id) {
            return;
        }
        let now = Instant::now();
        let mut table = self.table.lock();
        let key = (context.upstream.clone(), id.clone());
        // A server that hands out an id which belongs to another agent does not make it this
        // agent's session.
        if table.by_id.contains_key(&key) {
            return;
        }
        make_room(&mut table.by_id, self.max_sessions, self.idle, now);
        let session = Session::new(asker.agent.clone(), context.upstream.clone(), Some(id), now);
        {
            // A session begins with the answer to `initialize`, whose request named the client.
            let client = asker.state().presence.client.clone();
            let mut state = session.state();
            state.presence.client = client;
            state.elicitation = elicitation.unwrap_or_default();
        }
        session.add_requests(&context.requests);
        table.by_id.insert(key, Arc::new(session));
    }

    /// Forgets a session that was closed.
    pub(super) fn forget(&self, context: &Context) {
        if let Some(session) = &context.session {
            self.table
                .lock()
                .by_id
                .remove(&(context.upstream.clone(), session.clone()));
        }
    }

    /// Forgets all sessions of an upstream.
    pub(super) fn forget_upstream(&self, upstream: &UpstreamName) {
        let mut table = self.table.lock();
        table.by_id.retain(|(of, _), _| of != upstream);
        table.sessionless.retain(|(of, _), _| of != upstream);
    }

    /// Returns the sessions that are busy or were used recently.
    pub(super) fn live(&self) -> Vec<Arc<Session>> {
        let table = self.table.lock();
        let now = Instant::now();
        let sessions = table.by_id.values().chain(table.sessionless.values());
        sessions
            .filter(|session| {
                session.is_busy() || now.duration_since(session.state().last_used) < self.idle
            })
            .cloned()
            .collect()
    }
}

/// Returns the kinds of questions that the client of a message presents to its user, if the message
/// opens a session.
fn requested_elicitation(message: &Message) -> Option<ElicitationSupport> {
    let is_initialize = message
        .single()
        .is_some_and(|envelope| envelope.method() == Some("initialize"));
    is_initialize.then(|| declared_modes(message, Era::Legacy))
}

/// Makes room for one more session: removes idle ones, otherwise the least recently used one.
fn make_room<K: Clone + Eq + Hash>(
    sessions: &mut HashMap<K, Arc<Session>>,
    max_sessions: usize,
    idle: Duration,
    now: Instant,
) {
    if sessions.len() < max_sessions {
        return;
    }
    sessions.retain(|_, session| now.duration_since(session.state().last_used) < idle);
    if sessions.len() >= max_sessions {
        let oldest = sessions
            .iter()
            .min_by_key(|(_, session)| session.state().last_used)
            .map(|(key, _)| key.clone());
        oldest.map(|key| sessions.remove(&key));
    }
}

#[cfg(test)]
mod tests;
