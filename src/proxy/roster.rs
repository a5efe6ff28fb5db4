//! Who is connected: which agents use which upstreams, in which sessions, since when and how much.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;

use super::Gate;
use crate::message::Message;
use crate::protocol::{Ask, Call, Context, Holder, SessionId, UpstreamName};
use crate::text::cut;

/// Most entries; the one that was used longest ago makes room.
const ENTRIES: usize = 2048;
/// Longest name, and longest version, of a client that is kept, in bytes.
const CLIENT_BYTES: usize = 128;
/// Where clients name themselves in each request (2026-07-28).
const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";

/// Who uses what.
#[derive(Default)]
pub(super) struct Roster(Mutex<HashMap<Key, Entry>>);

type Key = (Holder, UpstreamName, Option<SessionId>);

struct Entry {
    client: Option<Client>,
    era: &'static str,
    since: SystemTime,
    last: SystemTime,
    calls: u64,
    open: Arc<AtomicUsize>,
    streams: Arc<AtomicUsize>,
}

/// What a client says of itself: `clientInfo`.
#[derive(Clone)]
struct Client {
    name: String,
    version: Option<String>,
}

impl Client {
    /// From `initialize` (until 2025-11-25), or from the `_meta` of a request (2026-07-28).
    fn of(message: &Message) -> Option<Self> {
        let envelope = message.single()?;
        let params = message.body(envelope)?;
        let info = match envelope.method() {
            Some("initialize") => params.get("clientInfo"),
            _ => params.at(&["_meta", CLIENT_INFO]),
        }?;
        let word = |key: &str| info.get(key)?.str().map(|text| cut(&text, CLIENT_BYTES).to_owned());
        Some(Self { name: word("name")?, version: word("version") })
    }
}

/// A call that is carried, or a stream that is open, for as long as this is kept.
pub(super) struct Here(Arc<AtomicUsize>);

impl Drop for Here {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One who is connected, to one upstream, in one session if it has any.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Present {
    /// The agent's name.
    pub agent: String,
    /// Its user, where its credential names one.
    pub user: Option<String>,
    /// The upstream's name.
    pub upstream: String,
    /// What the client calls itself, in its own words.
    pub client: Option<String>,
    /// The version that it names.
    pub client_version: Option<String>,
    /// The session, as logs name it.
    pub session: Option<String>,
    /// How it speaks MCP.
    pub era: &'static str,
    /// When it was first heard of, in seconds since 1970.
    pub since: u64,
    /// When last.
    pub last: u64,
    /// Messages that it has sent.
    pub calls: u64,
    /// How many of these are being carried now.
    pub open: usize,
    /// Streams on which it listens.
    pub streams: usize,
}

impl Roster {
    fn entries(&self) -> MutexGuard<'_, HashMap<Key, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a call.
    pub(super) fn enter(&self, call: &Call) -> Here {
        let (context, now) = (&call.context, SystemTime::now());
        let key = (context.holder(), context.upstream.clone(), context.session.clone());
        let mut entries = self.entries();
        if entries.len() >= ENTRIES && !entries.contains_key(&key) {
            let oldest = entries.iter().min_by_key(|(_, entry)| entry.last).map(|(key, _)| key.clone());
            oldest.map(|key| entries.remove(&key));
        }
        let said = if let Ask::Send(message) = &call.ask { Client::of(message) } else { None };
        // A session begins with the answer to `initialize`, which named the client.
        let opened = (key.0.clone(), key.1.clone(), None);
        let client = said.clone().or_else(|| entries.get(&opened).and_then(|entry| entry.client.clone()));
        let era = context.era.name();
        let new = || Entry { client, era, since: now, last: now, calls: 0, open: Arc::default(), streams: Arc::default() };
        let entry = entries.entry(key).or_insert_with(new);
        entry.last = now;
        entry.client = said.or(entry.client.take());
        let listens = match &call.ask {
            Ask::Listen => true,
            Ask::Send(message) => message.single().and_then(|envelope| envelope.method()) == Some("subscriptions/listen"),
            Ask::Close => false,
        };
        entry.calls += u64::from(!listens);
        let counter = if listens { &entry.streams } else { &entry.open };
        counter.fetch_add(1, Ordering::Relaxed);
        Here(counter.clone())
    }

    /// Forgets a session that was closed.
    pub(super) fn leave(&self, context: &Context) {
        self.entries().remove(&(context.holder(), context.upstream.clone(), context.session.clone()));
    }

    /// Forgets whoever used an upstream.
    pub(super) fn forget_upstream(&self, upstream: &UpstreamName) {
        self.entries().retain(|(_, of, _), _| of != upstream);
    }

    fn present(&self, idle: Duration) -> Vec<Present> {
        let mut entries = self.entries();
        entries.retain(|_, entry| entry.is_busy() || entry.last.elapsed().is_ok_and(|since| since < idle));
        let mut present: Vec<Present> = entries.iter().map(|(key, entry)| entry.shown(key)).collect();
        drop(entries);
        present.sort_by(|a, b| (&a.agent, &a.upstream, a.since, &a.session).cmp(&(&b.agent, &b.upstream, b.since, &b.session)));
        present
    }
}

impl Entry {
    fn is_busy(&self) -> bool {
        self.open.load(Ordering::Relaxed) + self.streams.load(Ordering::Relaxed) > 0
    }

    fn shown(&self, (holder, upstream, session): &Key) -> Present {
        let unix = |time: SystemTime| time.duration_since(UNIX_EPOCH).map(|since| since.as_secs()).unwrap_or_default();
        Present {
            agent: holder.agent.to_string(),
            user: holder.user.as_ref().map(ToString::to_string),
            upstream: upstream.to_string(),
            client: self.client.as_ref().map(|client| client.name.clone()),
            client_version: self.client.as_ref().and_then(|client| client.version.clone()),
            session: session.as_ref().map(|session| session.digest().to_owned()),
            era: self.era,
            since: unix(self.since),
            last: unix(self.last),
            calls: self.calls,
            open: self.open.load(Ordering::Relaxed),
            streams: self.streams.load(Ordering::Relaxed),
        }
    }
}

impl Gate {
    /// Who is connected.
    pub fn present(&self) -> Vec<Present> {
        self.sessions.roster.present(self.limits.session_idle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{AgentName, Caller, Era, Wire};

    fn call(agent: &str, session: Option<&str>, ask: Ask) -> Call {
        let (agent, upstream, session) = (AgentName(agent.into()), UpstreamName("u".into()), session.and_then(SessionId::new));
        let context = Context {
            agent,
            upstream,
            era: Era::Legacy,
            session,
            asked: [].into(),
            caller: Caller::default(),
            trace: None,
            wire: Wire::default(),
        };
        Call { ask, headers: http::HeaderMap::new(), context }
    }

    #[test]
    fn a_client_is_known_by_what_it_says_when_it_opens_its_session() {
        let roster = Roster::default();
        let send = |text: &str| {
            let message = Message::parse(text.to_owned().into(), &crate::message::ReadLimits::default()).unwrap();
            Ask::Send(message)
        };
        let named = || {
            let present = roster.present(Duration::from_secs(3600));
            present.into_iter().map(|one| (one.session.is_some(), one.client, one.client_version)).collect::<Vec<_>>()
        };
        let opens =
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"clientInfo":{"name":"inspector","version":"0.17"}}}"#;
        drop(roster.enter(&call("a", None, send(opens))));
        drop(roster.enter(&call("a", Some("s"), send(r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#))));
        let known = (Some("inspector".to_owned()), Some("0.17".to_owned()));
        assert_eq!(named(), [(false, known.0.clone(), known.1.clone()), (true, known.0, known.1)]);
        let modern = format!(
            r#"{{"jsonrpc":"2.0","id":2,"method":"ping","params":{{"_meta":{{"{CLIENT_INFO}":{{"name":"{}"}}}}}}}}"#,
            "n".repeat(1000)
        );
        drop(roster.enter(&call("b", None, send(&modern))));
        assert_eq!(named()[2], (false, Some("n".repeat(CLIENT_BYTES)), None), "bounded");
    }

    #[test]
    fn who_calls_and_listens_is_known_for_as_long_as_it_lasts() {
        let (roster, hour) = (Roster::default(), Duration::from_secs(3600));
        let listens = roster.enter(&call("a", Some("s"), Ask::Listen));
        drop(roster.enter(&call("a", Some("s"), Ask::Close)));
        drop(roster.enter(&call("b", None, Ask::Close)));
        let present = roster.present(hour);
        let told: Vec<_> = present.iter().map(|one| (&*one.agent, one.calls, one.open, one.streams)).collect();
        assert_eq!(told, [("a", 1, 0, 1), ("b", 1, 0, 0)]);
        assert!(present[0].session.as_ref().is_some_and(|session| session != "s"), "never the id itself");
        assert_eq!(roster.present(Duration::ZERO).len(), 1, "who listens is there however long it says nothing");
        drop(listens);
        assert_eq!(roster.present(hour)[0].streams, 0);
        roster.leave(&call("a", Some("s"), Ask::Close).context);
        assert!(roster.present(hour).is_empty());
    }

    #[test]
    fn it_is_bounded() {
        let roster = Roster::default();
        for number in 0..ENTRIES + 3 {
            roster.enter(&call(&format!("agent-{number}"), None, Ask::Close));
        }
        assert_eq!(roster.present(Duration::from_secs(3600)).len(), ENTRIES);
    }
}
