//! Where a string is in a message: what rules and detectors need to know of it beside its text.

use super::{AccessScope, ReadAs, command, flow, secret, shadow, signal, url, work};
use crate::config::RenderPages;
use crate::message::{Direction, Role};

enum_with_names! {
    /// The part of a message a string belongs to. Names are metric labels and rule-file words.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Surface {
        /// Outbound: `params.arguments` of `tools/call`.
        Arguments = "arguments",
        /// Outbound: any other string of a request or notification.
        Params = "params",
        /// Outbound: an answer to a server's question.
        Answer = "answer",
        /// Inbound: text of a tool result's `content`, and of anything else that a call gives back.
        Content = "content",
        /// Inbound: `structuredContent`.
        Structured = "structured",
        /// Inbound: tools, prompts, resources and templates as lists describe them.
        Definition = "definition",
        /// Inbound: `instructions` and server information.
        Instructions = "instructions",
        /// Inbound: messages of `prompts/get`.
        Prompt = "prompt",
        /// Inbound: contents of `resources/read`.
        Resource = "resource",
        /// Inbound: JSON-RPC errors, and HTTP bodies that are not JSON-RPC.
        Error = "error",
        /// Inbound: log, progress and other notifications.
        Notification = "notification",
        /// Inbound: what a server asks of the agent or its user (elicitation, sampling, roots).
        Question = "question",
        /// Either way: a string that belongs to no surface above.
        #[default]
        Other = "other",
    }
}

impl Surface {
    /// Reports whether the strings describe the server, rather than being data that it returns.
    pub fn describes_server(self) -> bool {
        matches!(self, Self::Definition | Self::Instructions)
    }
}

/// Where a string is in a message.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place<'a> {
    /// The part of the message.
    pub surface: Surface,
    /// The method of the request, or of the request that this answers.
    pub method: Option<&'a str>,
    /// The tool that is called, that answers, or that is described.
    pub tool: Option<&'a str>,
    /// Key or value.
    pub role: Role,
    /// Properties that exist in one direction only.
    pub details: Details<'a>,
    /// The hosts and paths that the call may reach; `None` if nothing is known of it.
    pub scope: Option<&'a AccessScope>,
    /// The secrets that the session has seen, with their sources.
    pub session_secrets: Option<&'a secret::SessionSecrets<'a>>,
    /// The data that the agent has received, and the policy's labels of the tool; `None` if data
    /// flow is not tracked.
    pub flow: Option<flow::FlowContext<'a>>,
    /// The remaining work of the message; `None` if a text is judged by itself.
    pub budget: Option<&'a work::Budget>,
    /// Whether a rule's own case is tried: signals are then reported even if they add up to
    /// nothing.
    pub trial: bool,
}

/// Properties of a string that exist in one direction only. The variant is the direction of the
/// message.
#[derive(Clone, Copy, Debug)]
pub enum Details<'a> {
    /// From a server to an agent.
    Inbound(InboundDetails<'a>),
    /// From an agent to a server.
    Outbound(OutboundDetails<'a>),
}

/// Properties of a string from a server.
#[derive(Clone, Copy, Debug, Default)]
pub struct InboundDetails<'a> {
    /// Whether markup hides the text from a person.
    pub hidden: bool,
    /// Which texts are rendered as pages.
    pub render: RenderPages,
    /// Whether the text is a file that instructs agents, in which orders are no sign of an attack.
    pub instruction_file: bool,
    /// Whether the text is in a record that has the label of an attack, as in fixtures of tests.
    pub labelled_sample: bool,
    /// Judges commands that a text orders its reader to run; `None` if they are not judged.
    pub ordered_commands: Option<&'a dyn signal::OrderedCommands>,
    /// The tools that a definition is compared with.
    pub known_tools: Option<&'a shadow::KnownTools<'a>>,
}

/// Properties of a string from an agent.
#[derive(Clone, Copy, Debug, Default)]
pub struct OutboundDetails<'a> {
    /// The argument: names joined by dots, without indices (`steps.command`).
    pub argument: Option<&'a str>,
    /// How the receiver reads the string.
    pub read_as: ReadAs,
    /// Whether it is SQL that may only read.
    pub read_only: bool,
    /// Whether it is code that is run, or the text of a file whose text a program runs or obeys.
    pub source_code: bool,
    /// What the string does when it is run, if a shell or an interpreter reads it.
    pub script: Option<&'a command::Script<'a>>,
    /// The addresses of host names; `None` if they are not looked up.
    pub lookup: Option<&'a url::Lookup<'a>>,
}

impl Default for Details<'_> {
    fn default() -> Self {
        Self::Inbound(InboundDetails::default())
    }
}

impl<'a> Place<'a> {
    /// The direction of the message.
    pub fn direction(&self) -> Direction {
        match self.details {
            Details::Inbound(_) => Direction::Inbound,
            Details::Outbound(_) => Direction::Outbound,
        }
    }

    /// The properties of a string from a server; the defaults for one from an agent.
    pub fn inbound(&self) -> InboundDetails<'a> {
        match self.details {
            Details::Inbound(inbound) => inbound,
            Details::Outbound(_) => InboundDetails::default(),
        }
    }

    /// The properties of a string from an agent; the defaults for one from a server.
    pub fn outbound(&self) -> OutboundDetails<'a> {
        match self.details {
            Details::Inbound(_) => OutboundDetails::default(),
            Details::Outbound(outbound) => outbound,
        }
    }

    /// The same place, for text that markup hides from a person or not.
    pub fn with_hidden(&self, hidden: bool) -> Self {
        self.with_inbound(InboundDetails {
            hidden,
            ..self.inbound()
        })
    }

    /// The same place, for text in a record that has the label of an attack.
    pub fn with_labelled_sample(&self) -> Self {
        self.with_inbound(InboundDetails {
            labelled_sample: true,
            ..self.inbound()
        })
    }

    fn with_inbound(&self, details: InboundDetails<'a>) -> Self {
        Self {
            details: Details::Inbound(details),
            ..*self
        }
    }
}
