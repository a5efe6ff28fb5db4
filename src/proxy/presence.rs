//! The connected agents: which upstreams they use, in which sessions, since when and how much.

use std::sync::atomic::Ordering;
use std::time::SystemTime;

use serde::Serialize;

use super::Gate;
use super::session::Session;
use crate::message::Message;
use crate::protocol::{Call, CallKind, SessionId};
use crate::record::unix_seconds;
use crate::text::cut;

/// Maximum number of sessions that are listed: the most recently used ones.
const LISTED: usize = 2048;
/// Maximum length of the stored name and version of a client, in bytes.
const CLIENT_BYTES: usize = 128;
/// The `_meta` key with which clients identify themselves in each request (2026-07-28).
const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";

/// The presence of a session, once it has made a call.
#[derive(Default)]
pub(super) struct Presence {
    pub(super) client: Option<Client>,
    last_call: Option<LastCall>,
}

struct LastCall {
    era: &'static str,
    since: SystemTime,
    last: SystemTime,
    calls: u64,
}

/// The client's own description of itself: `clientInfo`.
#[derive(Clone)]
pub(super) struct Client {
    name: String,
    version: Option<String>,
}

impl Client {
    /// Reads it from `initialize` (until 2025-11-25), or from the `_meta` of a request
    /// (2026-07-28).
    fn parse(message: &Message) -> Option<Self> {
        let envelope = message.single()?;
        let params = message.body(envelope)?;
        let info = match envelope.method() {
            Some("initialize") => params.get("clientInfo"),
            _ => params.at(&["_meta", CLIENT_INFO]),
        }?;
        let word = |key: &str| {
            info.get_str(key)
                .map(|text| cut(&text, CLIENT_BYTES).to_owned())
        };
        Some(Self {
            name: word("name")?,
            version: word("version"),
        })
    }
}

impl Presence {
    /// Records a call.
    pub(super) fn record_call(&mut self, call: &Call, now: SystemTime) {
        if let CallKind::Send(message) = &call.kind
            && let Some(client) = Client::parse(message)
        {
            self.client = Some(client);
        }
        let era = call.context.era.name();
        let last_call = self.last_call.get_or_insert(LastCall {
            era,
            since: now,
            last: now,
            calls: 0,
        });
        (last_call.era, last_call.last) = (era, now);
        last_call.calls += u64::from(!call.listens());
    }
}

/// A connected client: an agent at one upstream, in one session if it has any.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConnectedClient {
    /// The agent's name.
    pub agent: String,
    /// Its user, if its credential names one.
    pub user: Option<String>,
    /// The upstream's name.
    pub upstream: String,
    /// The name that the client gives for itself.
    pub client: Option<String>,
    /// The version that the client gives.
    pub client_version: Option<String>,
    /// A name for the session that is safe to display.
    pub session: Option<String>,
    /// `legacy` or `modern`.
    pub era: &'static str,
    /// Time of the first call, in seconds since 1970.
    pub since: u64,
    /// Time of the last call, in seconds since 1970.
    pub last: u64,
    /// Number of messages that it has sent.
    pub calls: u64,
    /// Number of messages in flight.
    pub open: usize,
    /// Number of streams on which it listens.
    pub streams: usize,
}

impl ConnectedClient {
    fn for_session(session: &Session) -> Option<Self> {
        let state = session.state();
        let Presence {
            client,
            last_call: seen,
        } = &state.presence;
        let last_call = seen.as_ref()?;
        let holder = &session.agent.holder;
        Some(Self {
            agent: holder.agent.to_string(),
            user: holder.user.as_ref().map(ToString::to_string),
            upstream: session.upstream.to_string(),
            client: client.as_ref().map(|client| client.name.clone()),
            client_version: client.as_ref().and_then(|client| client.version.clone()),
            session: session
                .id
                .as_ref()
                .map(SessionId::digest)
                .map(str::to_owned),
            era: last_call.era,
            since: unix_seconds(last_call.since),
            last: unix_seconds(last_call.last),
            calls: last_call.calls,
            open: session.calls.load(Ordering::Relaxed),
            streams: session.streams.load(Ordering::Relaxed),
        })
    }
}

impl Gate {
    /// Returns the connected clients.
    pub fn connected_clients(&self) -> Vec<ConnectedClient> {
        let mut clients: Vec<ConnectedClient> = self
            .sessions
            .live()
            .iter()
            .filter_map(|session| ConnectedClient::for_session(session))
            .collect();
        clients.sort_by_key(|one| std::cmp::Reverse(one.last));
        clients.truncate(LISTED);
        clients.sort_by(|a, b| {
            (&a.agent, &a.upstream, a.since, &a.session).cmp(&(
                &b.agent,
                &b.upstream,
                b.since,
                &b.session,
            ))
        });
        clients
    }
}
