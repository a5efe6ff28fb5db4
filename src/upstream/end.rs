//! How a channel ends, and the error of the calls that were open on it.

use std::io;
use std::sync::Arc;

use crate::message::ParseError;
use crate::protocol::{CallError, ProcessFault};

/// The reason why a channel carries no more messages.
#[derive(Clone, Debug)]
pub(super) enum ChannelEnd {
    /// The server went away, or was shut down.
    Gone(Arc<str>),
    /// The server's process exited or was lost.
    Process(Arc<ProcessFault>),
    /// Its session was closed by the agent or by the gate: the server is not at fault.
    Closed,
    /// It sent a message longer than `message_bytes`.
    TooLarge(usize),
}

impl ChannelEnd {
    pub(super) fn error(&self) -> CallError {
        match self {
            Self::Gone(why) => {
                CallError::Connect(io::Error::new(io::ErrorKind::BrokenPipe, why.to_string()))
            }
            Self::Process(fault) => CallError::Process(Box::new(ProcessFault::clone(fault))),
            Self::Closed => CallError::UnknownSession,
            Self::TooLarge(limit) => CallError::NotMcp(ParseError::TooLarge { limit: *limit }),
        }
    }
}
