//! Bounds on everything: `[limits]`.

use std::net::IpAddr;
use std::time::Duration;

use super::{CallLimits, StoredResultLimits};
use crate::detect::flow::TraceLimits;
use crate::detect::work::{self, WorkLimits};
use crate::message::ReadLimits;

/// Bounds on everything. In the file each has its unit in its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// What is read as one message: `message_bytes`, `strings_per_message`, `depth`.
    pub read: ReadLimits,
    /// What judging one message may cost beyond its own bytes: `unpacked_bytes_per_message`, `judged_bytes_per_message`.
    pub work: WorkLimits,
    /// A judgement that takes longer than this on a thread that carries traffic is counted and logged:
    /// `judging_milliseconds`.
    pub judging: Duration,
    /// Longest request head, in bytes: `header_bytes`.
    pub header_bytes: usize,
    /// Open connections from agents: `connections`.
    pub connections: usize,
    /// Those among them that have not shown a valid credential, where agents have one: `unauthenticated_connections`.
    pub unauthenticated_connections: usize,
    /// Open connections from one remote address: `connections_per_address`. See [`Limits::per_address`].
    pub connections_per_address: Option<usize>,
    /// Open connections to the admin port: `admin_connections`.
    pub admin_connections: usize,
    /// Different wrong tokens that are checked from one remote address: `wrong_tokens_per_minute`.
    pub wrong_tokens_per_minute: usize,
    /// Tokens of one issuer whose verification is cached while they are valid: `verified_tokens`.
    pub verified_tokens: usize,
    /// Bytes of requests and answers in flight, of all agents: `bytes_in_flight`.
    pub bytes_in_flight: usize,
    /// The same of one agent: `bytes_in_flight_per_agent`.
    pub bytes_in_flight_per_agent: usize,
    /// Calls in flight for one agent: `calls_per_agent`.
    pub calls_per_agent: usize,
    /// Calls in flight to one upstream: `calls_per_upstream`.
    pub calls_per_upstream: usize,
    /// Calls of tools: how many, how fast, how large.
    pub calls: CallLimits,
    /// Legacy sessions remembered: `sessions`.
    pub sessions: usize,
    /// A session not used for this long is forgotten: `session_idle_seconds`.
    pub session_idle: Duration,
    /// A stream on which nothing came for this long ends: `stream_idle_seconds`.
    pub stream_idle: Duration,
    /// An event stream to an agent gets a comment after this long a silence; zero for none: `keep_alive_seconds`.
    pub keep_alive: Duration,
    /// Time for an agent to send its request head and, again, its body: `request_read_seconds`.
    pub request_read: Duration,
    /// Child processes of one upstream: `children_per_upstream`.
    pub children_per_upstream: usize,
    /// Server messages queued for a stream without a reader, by count: `queued_messages`.
    pub queued_messages: usize,
    /// Calls of one agent that wait for a person: `pending_approvals`.
    pub pending_approvals: usize,
    /// Bytes of all calls that a person is asked about: `pending_approval_bytes`.
    pub pending_approval_bytes: usize,
    /// Definitions of each kind that are pinned of one upstream: `pinned_definitions`.
    pub pinned_definitions: usize,
    /// Bytes of them: `pinned_definition_bytes`.
    pub pinned_definition_bytes: usize,
    /// So many refusals of one tool by one rule, or of one call, and further ones are cut short: `repeated_refusals`.
    pub repeated_refusals: usize,
    /// Within this time: `repeated_refusal_seconds`.
    pub repeated_refusal: Duration,
    /// What is remembered of what came in to an agent: `flow_pieces`, `flow_quarantined_pieces`, `flow_message_bytes`,
    /// `flow_age_seconds`.
    pub flow: TraceLimits,
    /// What is kept of results that were too long.
    pub kept: StoredResultLimits,
    /// Time that open calls get to end after SIGTERM: `drain_seconds`.
    pub drain: Duration,
}

impl Limits {
    /// Every limit, by its name in the file.
    pub const NAMES: [&'static str; 45] = [
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

    /// Connections from one remote address that are allowed when `connections_per_address` is not set. Loopback addresses
    /// are not limited then: local agents and reverse proxies on the same host share them.
    const CONNECTIONS_PER_ADDRESS: usize = 1024;

    /// The limit on open connections from a remote address.
    pub fn per_address(&self, address: IpAddr) -> usize {
        let unset = if address.is_loopback() {
            usize::MAX
        } else {
            Self::CONNECTIONS_PER_ADDRESS
        };
        self.connections_per_address.unwrap_or(unset)
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
            flow: TraceLimits::default(),
            kept: StoredResultLimits::default(),
            drain: Duration::from_secs(20),
        }
    }
}
