//! Errors on the path of a call, and which side is at fault.

use std::io;
use std::time::Duration;

use super::process::{ProcessFault, ProcessFaultKind};
use crate::message::ParseError;

enum_with_names! {
    /// The side that is at fault: a metric label, and the basis of the status class. Named as in
    /// the audit log and metrics.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Side {
        /// The agent's.
        Agent = "agent",
        /// The server's.
        Server = "server",
        /// The gateway's own.
        Gateway = "gateway",
    }
}

/// An error between accepting a call and returning its reply. `Display` shows one level, `source`
/// the rest.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The agent's body is not a message.
    #[error("cannot read the request body: {0}")]
    BadMessage(#[source] ParseError),
    /// A header disagrees with the body, or a required header is missing (2026-07-28, Header
    /// Validation).
    #[error("header mismatch: {0}")]
    HeaderMismatch(String),
    /// `_meta` of a modern request lacks a required member.
    #[error("the request's `_meta` lacks {0}")]
    BadMeta(&'static str),
    /// A batch in a revision that does not support batches.
    #[error("batches are supported only in revision 2025-03-26")]
    NoBatches,
    /// The body has an unsupported media type.
    #[error("{0}")]
    MediaType(&'static str),
    /// The connection broke off before the agent's request was complete.
    #[error("the request was interrupted")]
    BrokenOff(#[source] io::Error),
    /// The session is unknown or belongs to another agent.
    #[error("no such session")]
    UnknownSession,
    /// The upstream does not offer the requested method (GET, DELETE).
    #[error("not offered by this server")]
    NotOffered,
    /// A retried request carries an approval that the gateway did not issue, or that is for another
    /// call.
    #[error("the approval in the request's `requestState` is not valid")]
    BadApproval,
    /// The agent cancelled its request while it waited.
    #[error("the request was cancelled")]
    Withdrawn,
    /// A limit of the config was reached.
    #[error("the limit `{0}` was reached")]
    Limit(&'static str),
    /// More calls in a minute than a limit of the config allows.
    #[error("the limit `{limit}` was reached")]
    TooFast {
        /// Its name in the config.
        limit: &'static str,
        /// How long until the next call is allowed.
        wait: Duration,
    },
    /// More calls in a session than a limit of the config allows.
    #[error("the limit `{limit}` was reached: {most} calls")]
    BudgetSpent {
        /// Its name in the config.
        limit: &'static str,
        /// Maximum number of calls.
        most: u32,
    },
    /// A call's arguments are longer than a limit of the config allows.
    #[error("the arguments are longer than the limit `{limit}`: {most} bytes")]
    TooLong {
        /// Its name in the config.
        limit: &'static str,
        /// Maximum length in bytes.
        most: usize,
    },
    /// The upstream cannot be reached, or broke off.
    #[error("cannot reach the server")]
    Connect(#[source] io::Error),
    /// The process of a stdio server ended, or prints text instead of answers.
    #[error("{0}")]
    Process(Box<ProcessFault>),
    /// The process of a stdio server cannot be started; the reason, in the gateway's own words.
    #[error("cannot start the server's process: {0}")]
    NotStarted(#[source] io::Error),
    /// The upstream sent something that is not MCP.
    #[error("invalid answer from the server: {0}")]
    NotMcp(#[source] ParseError),
    /// The upstream broke the rules of its transport.
    #[error("invalid answer from the server: {0}")]
    BadReply(&'static str),
    /// The upstream did not answer in time.
    #[error("the server did not answer within {} s", .0.as_secs_f32())]
    Silent(Duration),
    /// The upstream requires authentication.
    #[error("the server requires authentication")]
    AuthRequired,
    /// A user has to log in at the upstream first. `Display` does not contain the link: it is a
    /// secret.
    #[error("authentication required for the upstream")]
    LoginRequired {
        /// The page to open; `None` if the gate has none to show.
        link: Option<Box<str>>,
    },
    /// There is no token for the upstream; the reason, in the gate's own words.
    #[error("the gateway is not logged in: {0}")]
    NoToken(String),
    /// The audit log is required and cannot be written.
    #[error("cannot write the audit log")]
    Audit(#[source] io::Error),
    /// The gateway is shutting down.
    #[error("the gateway is shutting down")]
    Draining,
}

impl CallError {
    /// The server returned a web page.
    pub const WEB_PAGE: Self =
        Self::BadReply("it is a web page (HTML), not MCP; `url` does not lead to an MCP endpoint");
    /// The server answered a request that is not open.
    pub const STRAY_ANSWER: Self = Self::BadReply("it does not match an open request");

    /// Returns the side that is at fault.
    pub fn side(&self) -> Side {
        match self {
            // The server's fault was already counted when the process ended.
            Self::Process(fault) if fault.kind == ProcessFaultKind::SessionEnded => Side::Agent,
            Self::BadMessage(_)
            | Self::HeaderMismatch(_)
            | Self::BadMeta(_)
            | Self::NoBatches
            | Self::MediaType(_)
            | Self::BrokenOff(_)
            | Self::UnknownSession
            | Self::BadApproval
            | Self::Withdrawn
            | Self::NotOffered => Side::Agent,
            Self::TooFast { .. }
            | Self::BudgetSpent { .. }
            | Self::TooLong { .. }
            | Self::Limit(_)
            | Self::LoginRequired { .. }
            | Self::NoToken(_)
            | Self::Audit(_)
            | Self::Draining => Side::Gateway,
            Self::Connect(_)
            | Self::NotStarted(_)
            | Self::Process(_)
            | Self::NotMcp(_)
            | Self::BadReply(_)
            | Self::Silent(_)
            | Self::AuthRequired => Side::Server,
        }
    }

    /// Returns a short, stable name for the error (`error.type` of OpenTelemetry).
    pub fn name(&self) -> &'static str {
        match self {
            Self::BadMessage(_) => "bad_message",
            Self::HeaderMismatch(_) => "header_mismatch",
            Self::BadMeta(_) => "bad_meta",
            Self::NoBatches => "no_batches",
            Self::MediaType(_) => "media_type",
            Self::BrokenOff(_) => "broken_off",
            Self::UnknownSession => "unknown_session",
            Self::NotOffered => "not_offered",
            Self::BadApproval => "bad_approval",
            Self::Withdrawn => "cancelled",
            Self::Limit(_)
            | Self::TooFast { .. }
            | Self::BudgetSpent { .. }
            | Self::TooLong { .. } => "limit",
            Self::Connect(_) | Self::NotStarted(_) => "unreachable",
            Self::NotMcp(_) | Self::BadReply(_) => "bad_reply",
            Self::Process(fault) => match fault.kind {
                ProcessFaultKind::Ended => "unreachable",
                ProcessFaultKind::SessionEnded => "unknown_session",
                ProcessFaultKind::NoAnswer => "timeout",
            },
            Self::Silent(_) => "timeout",
            Self::AuthRequired | Self::LoginRequired { .. } | Self::NoToken(_) => "auth_required",
            Self::Audit(_) => "audit",
            Self::Draining => "draining",
        }
    }

    /// Reports whether the model receives it as a tool result: errors that it can act on, or pass
    /// on to its user.
    pub fn is_for_model(&self) -> bool {
        matches!(
            self,
            Self::AuthRequired
                | Self::LoginRequired { .. }
                | Self::NoToken(_)
                | Self::TooFast { .. }
                | Self::BudgetSpent { .. }
                | Self::TooLong { .. }
        ) || matches!(self, Self::Limit("concurrent_calls"))
    }

    /// Returns the limit that was reached, if any, by its name in the config.
    pub fn limit(&self) -> Option<&'static str> {
        match self {
            Self::Limit(name) => Some(name),
            Self::TooFast { limit, .. }
            | Self::BudgetSpent { limit, .. }
            | Self::TooLong { limit, .. } => Some(limit),
            Self::BadMessage(error) | Self::NotMcp(error) => error.limit(),
            _ => None,
        }
    }
}
