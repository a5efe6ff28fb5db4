//! A JSON-RPC message and its bytes. Parsing a message never changes it.

mod envelope;
mod hex;
mod json;
mod scan;
mod splice;
mod walk;

pub use envelope::{Envelope, Message, MessageKind, id_text, same_id};
pub use hex::{hex, unhex};
pub use json::{Json, Value, ValueKind};
pub use splice::{Edit, quote, splice};
pub use walk::{JsonString, Path, Role, Step, pointer};

enum_with_names! {
    /// The direction of a message, seen from the agent. Named as in rule files, logs and metrics.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Direction {
        /// To the server: arguments, and responses to the server's requests.
        Outbound = "outbound",
        /// To the agent: results, definitions, notifications, the server's requests.
        Inbound = "inbound",
    }
}

/// Limits on what is parsed as one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadLimits {
    /// Maximum length of a message, in bytes.
    pub message_bytes: usize,
    /// Maximum number of strings in a message, keys included.
    pub strings_per_message: usize,
    /// Maximum number of values in a message, keys included.
    pub values_per_message: usize,
    /// Maximum nesting depth of objects and arrays.
    pub depth: usize,
    /// Maximum number of messages in a batch.
    pub batch_items: usize,
}

impl ReadLimits {
    /// Returns the default limits, with messages of at most `message_bytes`.
    pub fn of_bytes(message_bytes: usize) -> Self {
        Self {
            message_bytes,
            ..Self::default()
        }
    }
}

impl Default for ReadLimits {
    fn default() -> Self {
        Self {
            message_bytes: 8 << 20,
            strings_per_message: 200_000,
            values_per_message: 1_000_000,
            depth: 64,
            batch_items: 200,
        }
    }
}

/// The reason why bytes are not a message. `at` is a byte offset from the start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// Not UTF-8.
    #[error("not UTF-8 at byte {at}")]
    NotUtf8 {
        /// Offset of the first invalid byte.
        at: usize,
    },
    #[error("not JSON: expected {expected} at byte {at}")]
    NotJson {
        /// Offset of the syntax error.
        at: usize,
        /// The token that was expected.
        expected: &'static str,
    },
    /// An object has the same key twice, which parsers resolve in different ways.
    #[error("an object has the same key twice (the second at byte {at})")]
    DoubledKey {
        /// Offset of the second key.
        at: usize,
    },
    /// A `\u` escape is half of a surrogate pair.
    #[error("half of a surrogate pair at byte {at}")]
    LoneSurrogate {
        /// Offset of the escape.
        at: usize,
    },
    /// Longer than the limit `message_bytes`.
    #[error("longer than {limit} bytes (limit `message_bytes`)")]
    TooLarge {
        /// The limit in force.
        limit: usize,
    },
    /// Nested deeper than the limit `depth`.
    #[error("nested deeper than {limit} (limit `depth`)")]
    TooDeep {
        /// The limit in force.
        limit: usize,
    },
    /// More strings than the limit `strings_per_message`.
    #[error("more than {limit} strings (limit `strings_per_message`)")]
    TooManyStrings {
        /// The limit in force.
        limit: usize,
    },
    /// More values than the limit `values_per_message`.
    #[error("more than {limit} values (limit `values_per_message`)")]
    TooManyValues {
        /// The limit in force.
        limit: usize,
    },
    /// More messages in a batch than the limit `batch_items`.
    #[error("more than {limit} messages in a batch (limit `batch_items`)")]
    TooManyItems {
        /// The limit in force.
        limit: usize,
    },
    /// Valid JSON, but not a JSON-RPC 2.0 message as MCP uses it.
    #[error("not a JSON-RPC message: {0}")]
    NotRpc(&'static str),
}

impl ParseError {
    /// Returns the JSON-RPC error code: −32700 if the text cannot be parsed, −32600 if its
    /// structure is invalid.
    pub fn code(&self) -> i32 {
        match self {
            Self::NotRpc(_) | Self::TooManyItems { .. } => -32600,
            _ => -32700,
        }
    }

    /// Returns the config name of the limit that was exceeded, if the error is about a limit.
    pub fn limit(&self) -> Option<&'static str> {
        match self {
            Self::TooLarge { .. } => Some("message_bytes"),
            Self::TooDeep { .. } => Some("depth"),
            Self::TooManyStrings { .. } => Some("strings_per_message"),
            Self::TooManyValues { .. } => Some("values_per_message"),
            Self::TooManyItems { .. } => Some("batch_items"),
            _ => None,
        }
    }
}
