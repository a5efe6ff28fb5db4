//! Traces: which one a call belongs to, and the spans that describe the call if they are recorded.

mod parent;
mod span;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;

pub use parent::{Parent, TraceHeaders};
pub use span::{Attribute, Span, SpanEvent, SpanExporter, SpanKind};

/// The id of a trace (W3C Trace Context, 3.2.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceId(pub [u8; 16]);

/// The id of a span in a trace (W3C Trace Context, 3.2.2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpanId(pub [u8; 8]);

impl TraceId {
    /// Creates a new id.
    pub fn generate() -> Self {
        Self(*uuid::Uuid::new_v4().as_bytes())
    }
}

impl SpanId {
    /// Creates a new id. It is never zero: the version of the UUID is part of it.
    pub fn generate() -> Self {
        let (_, low) = uuid::Uuid::new_v4().as_u64_pair();
        Self(low.to_be_bytes())
    }

    /// Returns the id of the `n`th span under this one.
    fn child(self, n: u64) -> Self {
        // An odd factor keeps the counted ids apart from those that another process creates.
        Self(
            (u64::from_be_bytes(self.0).wrapping_add(n.wrapping_mul(0x9E37_79B9_7F4A_7C15)) | 1)
                .to_be_bytes(),
        )
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A call as a part of a trace. Its span, if one is recorded, ends when the last reference held by
/// the call is dropped.
#[derive(Clone)]
pub struct Trace {
    pub id: TraceId,
    /// The gate's own span of the call if one is recorded, otherwise the span that caused the call.
    pub span: SpanId,
    recorded: Weak<OpenSpan>,
    _open: Option<Arc<OpenSpan>>,
}

/// The recorded span of a call.
struct OpenSpan {
    exporter: Arc<dyn SpanExporter>,
    span: Mutex<Option<Span>>,
    /// The first error of the call.
    error: OnceLock<Box<str>>,
    children: AtomicU64,
}

impl Trace {
    /// Creates a trace for a call that is not recorded, caused by `parent`.
    pub fn unrecorded(parent: &Parent) -> Self {
        Self {
            id: parent.trace,
            span: parent.span,
            recorded: Weak::new(),
            _open: None,
        }
    }

    /// Creates a trace for a call whose `span` has begun. The span is exported to `exporter` when
    /// it ends.
    pub fn start(span: Span, exporter: Arc<dyn SpanExporter>) -> Self {
        let (id, span_id) = (span.trace, span.id);
        let span = Mutex::new(Some(span));
        let error = OnceLock::new();
        let children = AtomicU64::new(0);
        let open_span = Arc::new(OpenSpan {
            exporter,
            span,
            error,
            children,
        });
        Self {
            id,
            span: span_id,
            recorded: Arc::downgrade(&open_span),
            _open: Some(open_span),
        }
    }

    /// Returns a copy for work that outlives the call: the span does not wait for it.
    pub fn detached(&self) -> Self {
        Self {
            _open: None,
            ..self.clone()
        }
    }

    /// Reports whether a span is recorded and still open.
    pub fn is_recorded(&self) -> bool {
        self.recorded.strong_count() > 0
    }

    /// Adds attributes to the call's span.
    pub fn add_attributes(&self, attributes: impl IntoIterator<Item = Attribute>) {
        if let Some(open_span) = self.recorded.upgrade()
            && let Some(span) = open_span.span.lock().as_mut()
        {
            span.add(attributes);
        }
    }

    /// Records an error type; only the first one counts.
    pub fn record_error(&self, error: &str) {
        if let Some(open_span) = self.recorded.upgrade() {
            open_span.error.get_or_init(|| error.into());
        }
    }

    /// Exports a child span for a part of the call that began `ago` before now and took `took`.
    pub fn export_part(
        &self,
        kind: SpanKind,
        name: &str,
        ago: Duration,
        took: Duration,
        attributes: Vec<Attribute>,
        events: Vec<SpanEvent>,
    ) {
        let Some(open_span) = self.recorded.upgrade() else {
            return;
        };
        let now = SystemTime::now();
        let start = now.checked_sub(ago).unwrap_or(now);
        let mut child = Span::begin(
            self.id,
            self.span
                .child(open_span.children.fetch_add(1, Ordering::Relaxed) + 1),
            kind,
            name,
        );
        child.parent = Some(self.span);
        child.start = start;
        child.end = start.checked_add(took).unwrap_or(now).min(now);
        child.add(attributes);
        child.events = events;
        open_span.exporter.export(child);
    }
}

impl Drop for OpenSpan {
    fn drop(&mut self) {
        if let Some(mut span) = self.span.get_mut().take() {
            span.end = SystemTime::now().max(span.start);
            span.error = self.error.take();
            self.exporter.export(span);
        }
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Trace({}-{})", self.id, self.span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct RecordedSpans(Mutex<Vec<Span>>);

    impl SpanExporter for RecordedSpans {
        fn export(&self, span: Span) {
            self.0.lock().push(span);
        }
    }

    #[test]
    fn a_span_ends_with_the_last_that_holds_it() {
        let exporter = Arc::new(RecordedSpans::default());
        let trace = Trace::start(
            Span::begin(
                TraceId::generate(),
                SpanId::generate(),
                SpanKind::Server,
                "tools/call",
            ),
            exporter.clone(),
        );
        let id = trace.id;
        let span = trace.span;
        let trace = Arc::new(trace);
        let other = trace.clone();
        let outlived = trace.detached();
        trace.export_part(
            SpanKind::Internal,
            "judge",
            Duration::from_millis(9),
            Duration::from_millis(4),
            vec![],
            vec![],
        );
        trace.export_part(
            SpanKind::Client,
            "call",
            Duration::ZERO,
            Duration::ZERO,
            vec![],
            vec![],
        );
        trace.record_error("first");
        trace.record_error("second");
        drop(trace);
        assert_eq!(exporter.0.lock().len(), 2);
        outlived.add_attributes([("late", "but in time".into())]);
        drop(other);
        assert!(!outlived.is_recorded());
        outlived.record_error("too late");
        let spans = exporter.0.lock();
        let [first, second, root] = spans.as_slice() else {
            panic!("{spans:?}")
        };
        assert!(
            spans
                .iter()
                .all(|span| span.trace == id && span.end >= span.start)
        );
        assert_eq!(
            (root.id, root.parent, root.error.as_deref()),
            (span, None, Some("first"))
        );
        assert_eq!((first.parent, second.parent), (Some(span), Some(span)));
        assert!(first.id != second.id && first.id != span && second.id != span);
        assert_eq!(
            first.end.duration_since(first.start).unwrap(),
            Duration::from_millis(4)
        );
    }

    #[test]
    fn ids_are_written_as_w3c_has_them() {
        assert_eq!(TraceId([0xab; 16]).to_string(), "ab".repeat(16));
        assert_eq!(
            SpanId([1, 0, 0, 0, 0, 0, 0, 0x0f]).to_string(),
            "010000000000000f"
        );
        assert_ne!(TraceId::generate(), TraceId::generate());
        assert_ne!(SpanId::generate().0, [0; 8]);
    }
}
