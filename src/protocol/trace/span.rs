//! What is told of one step of a call.

use std::time::SystemTime;

use super::{Parent, SpanId, TraceId};

/// Maximum number of attributes of a span.
const ATTRIBUTES: usize = 32;

/// Where spans go.
pub trait SpanExporter: Send + Sync {
    /// Takes a span that has ended. Never waits.
    fn export(&self, span: Span);
}

/// A name and a value without secrets.
pub type Attribute = (&'static str, Box<str>);

/// Something that happened within a span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanEvent {
    pub name: &'static str,
    pub at: SystemTime,
    /// More of it.
    pub tells: Vec<Attribute>,
}

/// Which side of a call a span is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// Answers somebody.
    Server,
    /// Asks somebody.
    Client,
    /// Neither.
    Internal,
}

/// One step of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    pub trace: TraceId,
    /// Its name in it.
    pub id: SpanId,
    /// What caused it.
    pub parent: Option<SpanId>,
    /// What vendors had to say about the trace.
    pub state: Option<Box<str>>,
    /// Others that it has to do with.
    pub links: Vec<Parent>,
    /// Which side it is of.
    pub kind: SpanKind,
    /// What it is, for people: few different ones.
    pub name: Box<str>,
    /// When it began.
    pub begun: SystemTime,
    pub ended: SystemTime,
    pub tells: Vec<Attribute>,
    /// What happened in it.
    pub notes: Vec<SpanEvent>,
    /// What went wrong, in a word.
    pub error: Option<Box<str>>,
}

impl Span {
    /// One that begins now.
    pub fn begin(trace: TraceId, id: SpanId, kind: SpanKind, name: &str) -> Self {
        let now = SystemTime::now();
        Self {
            trace,
            id,
            parent: None,
            state: None,
            links: Vec::new(),
            kind,
            name: name.into(),
            begun: now,
            ended: now,
            tells: Vec::new(),
            notes: Vec::new(),
            error: None,
        }
    }

    /// Adds attributes; existing ones stay.
    pub fn add(&mut self, attributes: impl IntoIterator<Item = Attribute>) {
        for attribute in attributes {
            if self.tells.len() < ATTRIBUTES
                && !self.tells.iter().any(|(name, _)| *name == attribute.0)
            {
                self.tells.push(attribute);
            }
        }
    }
}
