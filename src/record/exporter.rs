//! Exporters, which receive audit lines and spans in addition to the log and the metrics.

use std::sync::Arc;

use prometheus::IntCounter;

use super::label::{Counters, Maker};
use super::{Recorder, table};
use crate::protocol::trace::{SpanExporter, TraceId};

/// Exports audit lines.
pub trait LineExporter: Send + Sync {
    /// Exports one line, given without its terminating line feed. Never blocks.
    fn export(&self, line: &str);
}

/// The exporters of a recorder.
#[derive(Default)]
pub struct Exporters {
    /// Receives the audit lines.
    pub lines: Option<Arc<dyn LineExporter>>,
    /// Receives the spans of calls.
    pub spans: Option<Arc<dyn SpanExporter>>,
    /// The fraction of traces that are sampled, from 0 to 1, of those that begin here. For other
    /// traces the sender decides.
    pub ratio: f64,
}

impl Exporters {
    /// Reports whether audit lines are exported.
    pub(super) fn exports_lines(&self) -> bool {
        self.lines.is_some()
    }

    /// Exports audit lines, each of which ends in a line feed.
    pub(super) fn lines(&self, lines: &str) {
        if let Some(exporter) = &self.lines {
            lines.lines().for_each(|line| exporter.export(line));
        }
    }

    /// Returns the exporter for the spans of a trace that begins here, if the trace is sampled. The
    /// choice depends on the last seven bytes of the trace id, which W3C Trace Context defines as
    /// the random part, so that other systems that sample by them make the same choice.
    pub(super) fn sampling_exporter(&self, trace: TraceId) -> Option<&Arc<dyn SpanExporter>> {
        let [.., a, b, c, d, e, f, g] = trace.0;
        let random = u64::from_be_bytes([0, a, b, c, d, e, f, g]);
        #[allow(
            clippy::cast_precision_loss,
            reason = "56 bits of a number between 0 and 1 are more than anybody asks for"
        )]
        let share = random as f64 / (1_u64 << 56) as f64;
        self.spans.as_ref().filter(|_| share < self.ratio)
    }
}

/// Counters for the exported records of one signal.
#[derive(Clone)]
pub struct ExportCounts {
    /// Accepted by the collector.
    pub accepted: IntCounter,
    /// Rejected by the collector.
    pub rejected: IntCounter,
    /// No valid response after all retries.
    pub failed: IntCounter,
    /// Dropped because the queue was full.
    pub dropped: IntCounter,
}

/// The counters of all signals.
pub(super) struct ExportCounters(Counters);

impl ExportCounters {
    /// Creates the counters, all at zero.
    pub(super) fn new(maker: &Maker) -> Result<Self, prometheus::Error> {
        let counters = Self(maker.counters(table::EXPORTED)?);
        ["logs", "traces", "metrics"]
            .into_iter()
            .for_each(|signal| drop(counters.for_signal(signal)));
        Ok(counters)
    }

    fn for_signal(&self, signal: &str) -> ExportCounts {
        let count = |outcome| self.0.with(&[signal, outcome]);
        let accepted = count("accepted");
        let rejected = count("rejected");
        ExportCounts {
            accepted,
            rejected,
            failed: count("failed"),
            dropped: count("dropped"),
        }
    }
}

impl Recorder {
    /// Returns the metrics as metric families.
    pub fn gather(&self) -> Vec<prometheus::proto::MetricFamily> {
        self.metrics.gather()
    }

    /// Returns the counters for the records of one signal that are exported to a collector.
    pub fn export_counts(&self, signal: &'static str) -> ExportCounts {
        self.metrics.exports.for_signal(signal)
    }

    /// Sets the exporters. Must be called once, at startup.
    pub fn set_exporters(&self, new_exporters: Exporters) {
        if self.exporters.set(new_exporters).is_err() {
            tracing::error!("exporters are already set");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::trace::Span;

    struct NullExporter;

    impl SpanExporter for NullExporter {
        fn export(&self, _: Span) {}
    }

    #[test]
    fn about_so_many_traces_are_chosen_as_the_ratio_says() {
        let chosen = |ratio| {
            let outlets = Exporters {
                spans: Some(Arc::new(NullExporter)),
                ratio,
                ..Exporters::default()
            };
            (0..2000)
                .filter(|_| outlets.sampling_exporter(TraceId::generate()).is_some())
                .count()
        };
        assert_eq!((chosen(0.0), chosen(1.0)), (0, 2000));
        assert!((350..650).contains(&chosen(0.25)), "{}", chosen(0.25));
        let least = TraceId([
            0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0,
        ]);
        let outlets = Exporters {
            spans: Some(Arc::new(NullExporter)),
            ratio: 0.001,
            ..Exporters::default()
        };
        assert!(
            outlets.sampling_exporter(least).is_some()
                && outlets.sampling_exporter(TraceId([0xff; 16])).is_none()
        );
    }
}
