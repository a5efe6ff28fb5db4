//! The span: one step of a call, as it is exported.

use std::time::SystemTime;

use super::{Parent, SpanId, TraceId};

/// Maximum number of attributes of a span.
const ATTRIBUTES: usize = 32;

/// The destination of spans.
pub trait SpanExporter: Send + Sync {
    /// Accepts a span that has ended. Never blocks.
    fn export(&self, span: Span);
}

/// A name and a value that contains no secrets.
pub type Attribute = (&'static str, Box<str>);

/// Something that happened within a span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanEvent {
    pub name: &'static str,
    pub at: SystemTime,
    pub attributes: Vec<Attribute>,
}

/// The role of a span in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// It answers a request.
    Server,
    /// It sends a request.
    Client,
    /// Neither.
    Internal,
}

/// One step of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    pub trace: TraceId,
    /// The id of this span in the trace.
    pub id: SpanId,
    /// The span that caused it.
    pub parent: Option<SpanId>,
    /// Vendor-specific state of the trace.
    pub state: Option<Box<str>>,
    /// Other related spans.
    pub links: Vec<Parent>,
    pub kind: SpanKind,
    /// A readable name, of low cardinality.
    pub name: Box<str>,
    pub start: SystemTime,
    pub end: SystemTime,
    pub attributes: Vec<Attribute>,
    /// Events within the span.
    pub events: Vec<SpanEvent>,
    /// The error type, in one word.
    pub error: Option<Box<str>>,
}

impl Span {
    /// Creates a span that begins now.
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
            start: now,
            end: now,
            attributes: Vec::new(),
            events: Vec::new(),
            error: None,
        }
    }

    /// Adds attributes; existing ones are kept.
    pub fn add(&mut self, attributes: impl IntoIterator<Item = Attribute>) {
        for attribute in attributes {
            if self.attributes.len() < ATTRIBUTES
                && !self.attributes.iter().any(|(name, _)| *name == attribute.0)
            {
                self.attributes.push(attribute);
            }
        }
    }
}
