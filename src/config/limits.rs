//! Limits on resource use: `[limits]`.

use std::net::IpAddr;
use std::time::Duration;

use super::{CallLimits, StoredResultLimits};
use crate::detect::flow::TaintLimits;
use crate::detect::work::{self, WorkLimits};
use crate::message::ReadLimits;

/// Limits on resource use. In the file, the name of each limit includes its unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Limits on parsing one message: `message_bytes`, `strings_per_message`, `depth`.
    pub read: ReadLimits,
    /// Limits on the work of inspecting one message, beyond its own bytes:
    /// `unpacked_bytes_per_message`, `judged_bytes_per_message`.
    pub work: WorkLimits,
    /// Duration above which an inspection on a thread that carries traffic is counted and logged:
    /// `judging_milliseconds`.
    pub judging: Duration,
    /// Maximum length of a request head, in bytes: `header_bytes`.
    pub header_bytes: usize,
    /// Maximum number of open connections from agents: `connections`.
    pub connections: usize,
    /// Maximum number of these that have not presented a valid credential, if agents have
    /// credentials: `unauthenticated_connections`.
    pub unauthenticated_connections: usize,
    /// Maximum number of open connections from one remote address: `connections_per_address`. See
    /// [`Limits::per_address`].
    pub connections_per_address: Option<usize>,
    /// Maximum number of open connections to the admin port: `admin_connections`.
    pub admin_connections: usize,
    /// Maximum number of different wrong tokens that are checked per minute from one remote
    /// address: `wrong_tokens_per_minute`.
    pub wrong_tokens_per_minute: usize,
    /// Maximum number of tokens of one issuer whose verification is cached while they are valid:
    /// `verified_tokens`.
    pub verified_tokens: usize,
    /// Maximum number of texts from servers that are not judged again: `clean_texts`.
    pub clean_texts: usize,
    /// Maximum number of bytes of requests and responses in flight, of all agents:
    /// `bytes_in_flight`.
    pub bytes_in_flight: usize,
    /// The same for one agent: `bytes_in_flight_per_agent`.
    pub bytes_in_flight_per_agent: usize,
    /// Maximum number of calls in flight for one agent: `calls_per_agent`.
    pub calls_per_agent: usize,
    /// Maximum number of calls in flight to one upstream: `calls_per_upstream`.
    pub calls_per_upstream: usize,
    /// Limits on tool calls: number, rate and size.
    pub calls: CallLimits,
    /// Maximum number of legacy sessions that are remembered: `sessions`.
    pub sessions: usize,
    /// Time after which an unused session is forgotten: `session_idle_seconds`.
    pub session_idle: Duration,
    /// Time without any data after which a stream is ended: `stream_idle_seconds`.
    pub stream_idle: Duration,
    /// Idle time after which a comment is sent on an event stream to an agent; zero for never:
    /// `keep_alive_seconds`.
    pub keep_alive: Duration,
    /// Maximum time for an agent to send its request head and, separately, its body:
    /// `request_read_seconds`.
    pub request_read: Duration,
    /// Maximum number of child processes of one upstream: `children_per_upstream`.
    pub children_per_upstream: usize,
    /// Maximum number of server messages queued for a stream without a reader: `queued_messages`.
    pub queued_messages: usize,
    /// Maximum number of one agent's calls that wait for approval: `pending_approvals`.
    pub pending_approvals: usize,
    /// Maximum number of bytes of all calls that wait for approval: `pending_approval_bytes`.
    pub pending_approval_bytes: usize,
    /// Maximum number of pinned definitions of each kind for one upstream: `pinned_definitions`.
    pub pinned_definitions: usize,
    /// Maximum number of bytes of these: `pinned_definition_bytes`.
    pub pinned_definition_bytes: usize,
    /// Number of refusals of one tool by one rule, or of one call, after which further ones are
    /// shortened: `repeated_refusals`.
    pub repeated_refusals: usize,
    /// The period in which they are counted: `repeated_refusal_seconds`.
    pub repeated_refusal: Duration,
    /// Limits on what is remembered of content that an agent received: `flow_pieces`,
    /// `flow_quarantined_pieces`, `flow_message_bytes`, `flow_age_seconds`.
    pub flow: TaintLimits,
    /// Limits on stored results that were too long to deliver.
    pub stored_results: StoredResultLimits,
    /// Time for open calls to finish after SIGTERM: `drain_seconds`.
    pub drain: Duration,
}

impl Limits {
    /// The name of every limit in the config file.
    pub const NAMES: [&'static str; 46] = [
        "message_bytes",
        "strings_per_message",
        "depth",
        "batch_items",
        "values_per_message",
        work::UNPACKED,
        work::JUDGED,
        "judging_milliseconds",
        "header_bytes",
        "connections",
        "unauthenticated_connections",
        "connections_per_address",
        "admin_connections",
        "wrong_tokens_per_minute",
        "verified_tokens",
        "clean_texts",
        "bytes_in_flight",
        "bytes_in_flight_per_agent",
        "calls_per_agent",
        "calls_per_upstream",
        "calls_per_minute_per_agent",
        "calls_per_minute_per_upstream",
        "calls_per_minute",
        "concurrent_calls",
        "calls_per_session",
        "argument_bytes",
        "sessions",
        "session_idle_seconds",
        "stream_idle_seconds",
        "request_read_seconds",
        "children_per_upstream",
        "queued_messages",
        "pending_approvals",
        "pending_approval_bytes",
        "pinned_definitions",
        "pinned_definition_bytes",
        "repeated_refusals",
        "repeated_refusal_seconds",
        "flow_pieces",
        "flow_quarantined_pieces",
        "flow_message_bytes",
        "flow_age_seconds",
        "kept_results",
        "kept_result_bytes",
        "kept_result_seconds",
        "drain_seconds",
    ];

    /// Maximum number of connections from one remote address if `connections_per_address` is not
    /// set. Loopback addresses are then not limited: local agents and reverse proxies on the same
    /// host share them.
    const CONNECTIONS_PER_ADDRESS: usize = 1024;

    /// Returns the limit on open connections from a remote address.
    pub fn per_address(&self, address: IpAddr) -> usize {
        let fallback = if address.is_loopback() {
            usize::MAX
        } else {
            Self::CONNECTIONS_PER_ADDRESS
        };
        self.connections_per_address.unwrap_or(fallback)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            read: ReadLimits::default(),
            work: WorkLimits::default(),
            judging: Duration::from_millis(100),
            header_bytes: 32 << 10,
            connections: 4096,
            unauthenticated_connections: 512,
            connections_per_address: None,
            admin_connections: 64,
            wrong_tokens_per_minute: 30,
            verified_tokens: 1024,
            clean_texts: 16_384,
            bytes_in_flight: 256 << 20,
            bytes_in_flight_per_agent: 128 << 20,
            calls_per_agent: 256,
            calls_per_upstream: 512,
            calls: CallLimits::default(),
            sessions: 10_000,
            session_idle: Duration::from_secs(24 * 3600),
            stream_idle: Duration::from_secs(900),
            keep_alive: Duration::from_secs(15),
            request_read: Duration::from_secs(30),
            children_per_upstream: 32,
            queued_messages: 256,
            pending_approvals: 16,
            pending_approval_bytes: 16 << 20,
            pinned_definitions: 1000,
            pinned_definition_bytes: 4 << 20,
            repeated_refusals: 5,
            repeated_refusal: Duration::from_secs(60),
            flow: TaintLimits::default(),
            stored_results: StoredResultLimits::default(),
            drain: Duration::from_secs(20),
        }
    }
}
