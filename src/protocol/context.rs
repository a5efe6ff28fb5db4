//! The context of a message: its sender, its receiver, and what it is a part of.

use std::borrow::{Borrow, Cow};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use uuid::{Builder, Uuid};

use super::{Caller, MODERN, Trace, random};
use crate::message::{Envelope, Message, same_id};

/// An agent's name, from the config (`local` if agents need not authenticate).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AgentName(pub Arc<str>);

/// An upstream's name, from the config.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UpstreamName(pub Arc<str>);

impl Borrow<str> for UpstreamName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AgentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for UpstreamName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A legacy session's id: opaque here, and a credential, so `Debug` hides it.
#[derive(Clone)]
pub struct SessionId(Arc<Id>);

struct Id {
    text: Box<str>,
    /// Computed once for each id.
    digest: OnceLock<Box<str>>,
}

impl PartialEq for SessionId {
    fn eq(&self, other: &Self) -> bool {
        self.0.text == other.0.text
    }
}

impl Eq for SessionId {}

impl Hash for SessionId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.text.hash(state);
    }
}

impl SessionId {
    /// Accepts an id of visible ASCII (0x21–0x7E) and at most 1024 bytes (2025-03-26, Session
    /// Management).
    pub fn new(id: &str) -> Option<Self> {
        let fits =
            !id.is_empty() && id.len() <= 1024 && id.bytes().all(|b| (0x21..=0x7E).contains(&b));
        fits.then(|| {
            Self(Arc::new(Id {
                text: id.into(),
                digest: OnceLock::new(),
            }))
        })
    }

    /// Returns the id itself, for the wire only.
    pub fn expose(&self) -> &str {
        &self.0.text
    }

    /// Returns a name for the session that is safe to log: the start of the id's SHA-256.
    pub fn digest(&self) -> &str {
        use sha2::{Digest, Sha256};
        let digest = || {
            crate::message::hex(
                Sha256::digest(self.0.text.as_bytes())
                    .get(..6)
                    .unwrap_or_default(),
            )
            .into()
        };
        self.0.digest.get_or_init(digest)
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionId({})", self.digest())
    }
}

/// The id of one judged message in the audit log, in answers and in quarantine notices. A UUID of
/// version 7 (RFC 9562).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AuditId(pub Uuid);

impl AuditId {
    /// Creates an id greater than all earlier ones of this process: event lists are sorted by it.
    pub fn generate() -> Self {
        let Some(random) = random::bytes::<8>() else {
            return Self(Uuid::now_v7());
        };
        let tick = next_tick(SystemTime::now());
        let [.., high, low] = (tick & 0xFFF).to_be_bytes();
        let [a, b, c, d, e, f, g, h] = random;
        Self(
            Builder::from_unix_timestamp_millis(tick >> 12, &[high, low, a, b, c, d, e, f, g, h])
                .into_uuid(),
        )
    }
}

/// Returns the time in 4,096ths of a millisecond, or the last value plus one if the time is no
/// greater than that (RFC 9562, section 6.2, method 3).
fn next_tick(now: SystemTime) -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let since_1970 = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = since_1970.as_secs();
    let nanos = u64::from(since_1970.subsec_nanos());
    let milliseconds = seconds * 1000 + nanos / 1_000_000;
    let rest = nanos % 1_000_000;
    let ticks = (milliseconds << 12) + (rest << 12) / 1_000_000;
    let next = |last: u64| ticks.max(last.saturating_add(1));
    let last = LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| {
        Some(next(last))
    });
    next(last.unwrap_or_default())
}

impl fmt::Display for AuditId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

enum_with_names! {
    /// The generation of MCP that a peer uses. Named as in the audit log.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Era {
        /// With `initialize` and sessions: 2024-11-05 to 2025-11-25.
        Legacy = "legacy",
        /// Without sessions, each request complete in itself: 2026-07-28.
        Modern = "modern",
    }
}

/// The transport between an agent and the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentTransport {
    /// HTTP.
    Http,
    /// Standard input and output.
    Pipe,
}

impl AgentTransport {
    /// Returns the name of the underlying transport in OpenTelemetry (`network.transport`).
    pub fn transport(self) -> &'static str {
        match self {
            Self::Http => "tcp",
            Self::Pipe => "pipe",
        }
    }
}

/// The revisions of MCP so far.
const REVISIONS: [&str; 5] = [
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
    MODERN,
];

/// How an agent's messages arrive, as far as that is known.
#[derive(Clone, Debug, Default)]
pub struct AgentWire {
    /// The transport.
    pub transport: Option<AgentTransport>,
    /// The revision of MCP that the messages declare, or that both sides have negotiated.
    pub revision: Option<Cow<'static, str>>,
    /// The line end of the message's line, for a pipe.
    pub line_end: Option<Bytes>,
}

impl AgentWire {
    /// Creates the description for messages that declare their revision. A text that cannot be the
    /// name of a revision is ignored.
    pub fn new(transport: AgentTransport, revision: Option<&str>) -> Self {
        let is_name = |text: &&str| {
            text.len() <= 32
                && text
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
        };
        let revision = revision.filter(is_name).map(|text| {
            match REVISIONS.into_iter().find(|known| *known == text) {
                Some(known) => Cow::Borrowed(known),
                None => Cow::Owned(text.to_owned()),
            }
        });
        Self {
            transport: Some(transport),
            revision,
            line_end: None,
        }
    }

    /// Reports whether messages arrive as lines, without headers of their own.
    pub fn is_pipe(&self) -> bool {
        self.transport == Some(AgentTransport::Pipe)
    }
}

/// A request that waits for its answer, with the facts that are needed to judge the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenRequest {
    /// Its id, as written.
    pub id: Arc<str>,
    pub method: Arc<str>,
    /// The tool, prompt or resource it names.
    pub tool: Option<Arc<str>>,
    /// Whether it requests a later page of a list.
    pub continues: bool,
    /// The kind of target that it names.
    pub target: CallTarget,
}

/// The kind of target that a request names, as far as it affects how its answer is inspected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallTarget {
    /// Neither a file nor a web address, or unknown.
    #[default]
    Other,
    /// A path, and no web address.
    File,
    /// The path or URI of a file that instructs agents (`AGENTS.md`), and of no other file.
    InstructionFile,
    /// A web address.
    Web,
}

/// The context of a message: its sender, its receiver, and what it is a part of.
#[derive(Clone, Debug)]
pub struct Context {
    /// The agent.
    pub agent: AgentName,
    /// The server.
    pub upstream: UpstreamName,
    /// The agent's generation of MCP.
    pub era: Era,
    /// The legacy session, once there is one.
    pub session: Option<SessionId>,
    /// The requests that the current reply may answer.
    pub requests: Arc<[OpenRequest]>,
    /// The user and the access rights behind the agent.
    pub caller: Caller,
    /// The trace that it is part of, if any.
    pub trace: Option<Arc<Trace>>,
    /// How it arrived.
    pub wire: AgentWire,
}

impl Context {
    /// Creates the context of a message between an agent and a server of which nothing else is
    /// known yet.
    pub fn new(agent: AgentName, upstream: UpstreamName, era: Era) -> Self {
        Self {
            agent,
            upstream,
            era,
            session: None,
            requests: Arc::default(),
            caller: Caller::default(),
            trace: None,
            wire: AgentWire::default(),
        }
    }

    /// Returns the request that an answer with this id (as written) belongs to: the one with the
    /// same spelling if there is one, otherwise the last one whose id some client treats as equal.
    pub fn open_request(&self, id: &str) -> Option<&OpenRequest> {
        let latest = || self.requests.iter().rev();
        latest()
            .find(|request| *request.id == *id)
            .or_else(|| latest().find(|request| same_id(&request.id, id)))
    }

    /// Returns the answers in a message, each with the request that it belongs to, if it is known.
    pub fn answers<'m>(
        &'m self,
        message: &'m Message,
    ) -> impl Iterator<Item = (&'m Envelope, Option<&'m OpenRequest>)> {
        message.answers().map(|envelope| {
            let request = message.id(envelope).and_then(|id| self.open_request(id));
            (envelope, request)
        })
    }

    /// Reports whether a message answers a request that is not among `asked`: it would be inspected
    /// without the facts about its call. An error without an id answers none.
    pub fn is_stray(&self, message: &Message) -> bool {
        message.answers().any(|envelope| {
            message
                .id(envelope)
                .is_some_and(|id| self.open_request(id).is_none())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_audit_id_is_greater_than_the_last_and_has_the_time() {
        let before = SystemTime::now();
        let ids: Vec<AuditId> = (0..10_000).map(|_| AuditId::generate()).collect();
        assert!(ids.is_sorted_by(|one, other| one.0 < other.0));
        let (seconds, nanos) = ids[0].0.get_timestamp().unwrap().to_unix();
        let time = UNIX_EPOCH + std::time::Duration::new(seconds, nanos);
        assert!(
            time + std::time::Duration::from_millis(1) >= before
                && time <= before + std::time::Duration::from_secs(60)
        );
        assert_eq!(ids[0].0.get_version_num(), 7);
    }
}
