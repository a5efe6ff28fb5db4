//! Definitions of MCP itself, and the types that are passed along the path of a call.

mod access;
pub mod answer;
mod caller;
mod context;
mod error;
mod exchange;
pub mod headers;
mod in_flight;
mod instruction_file;
pub mod opaque;
mod process;
mod random;
mod source_url;
pub mod sse;
mod target;
pub mod trace;

pub use access::{Access, DenialReason, ItemKind};
pub use caller::{Caller, Holder};
pub use context::{
    AgentName, AgentTransport, AgentWire, AuditId, CallTarget, Context, Era, OpenRequest,
    SessionId, UpstreamName,
};
pub use error::{CallError, Side};
pub use exchange::{Call, CallKind, Frame, Frames, Framing, Payload, Reply};
pub use in_flight::{BYTES_IN_FLIGHT, BYTES_IN_FLIGHT_PER_AGENT, InFlight, Reservation};
pub use instruction_file::names_instruction_file;
pub use process::{ProcessFault, ProcessFaultKind, ProcessOutput};
pub use random::secret;
pub use source_url::{is_web_url, names_source_file};
pub use trace::Trace;

/// The first revision without sessions (`docs/specification/2026-07-28`).
pub const MODERN: &str = "2026-07-28";

/// The media type of one JSON message.
pub const JSON: &str = "application/json";
/// The media types of responses that clients must accept (2025-03-26, Transports).
pub const JSON_OR_EVENTS: &str = "application/json, text/event-stream";
/// The `User-Agent` of the gate's own requests.
pub const USER_AGENT: &str = concat!("lychgate/", env!("CARGO_PKG_VERSION"));

/// Header names in lower case, as `http` requires them.
pub mod header {
    /// Names the session, from 2025-03-26 to 2025-11-25.
    pub const SESSION: &str = "mcp-session-id";
    /// Names the revision, from 2025-06-18.
    pub const VERSION: &str = "mcp-protocol-version";
    /// Mirrors `method`, from 2026-07-28.
    pub const METHOD: &str = "mcp-method";
    /// Mirrors the name or URI of the request's target, from 2026-07-28.
    pub const NAME: &str = "mcp-name";
    /// Prefix of headers that mirror annotated arguments, from 2026-07-28.
    pub const PARAM: &str = "mcp-param-";
    /// Names the last event received, to resume an event stream.
    pub const LAST_EVENT_ID: &str = "last-event-id";
}
