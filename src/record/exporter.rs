//! Who hears of what is told beside the log and the counters.

use std::sync::Arc;

use prometheus::IntCounter;

use super::label::{Counters, Maker};
use super::{Recorder, table};
use crate::protocol::trace::{SpanExporter, TraceId};

/// Takes audit lines to somewhere else.
pub trait LineExporter: Send + Sync {
    /// Takes one line, without the line feed that ends it. Never waits.
    fn export(&self, line: &str);
}

/// Receivers of records, beside the log and the counters.
#[derive(Default)]
pub struct Exporters {
    /// Takes the audit lines.
    pub lines: Option<Arc<dyn LineExporter>>,
    /// Takes the spans of calls.
    pub spans: Option<Arc<dyn SpanExporter>>,
    /// Of the traces that begin here, how many are recorded: from 0 to 1. Of others their sender says it.
    pub ratio: f64,
}

impl Exporters {
    /// Whether it receives lines.
    pub(super) fn exports_lines(&self) -> bool {
        self.lines.is_some()
    }

    /// Hands lines on, each of which ends in a line feed.
    pub(super) fn lines(&self, lines: &str) {
        if let Some(outlet) = &self.lines {
            lines.lines().for_each(|line| outlet.export(line));
        }
    }

    /// Where spans of a trace go that begins here, if it is one that is recorded. By the last seven bytes of its name, which
    /// are those that W3C has made at random, so that others who go by them come to the same choice.
    pub(super) fn sampled(&self, trace: TraceId) -> Option<&Arc<dyn SpanExporter>> {
        let [.., a, b, c, d, e, f, g] = trace.0;
        let drawn = u64::from_be_bytes([0, a, b, c, d, e, f, g]);
        #[allow(
            clippy::cast_precision_loss,
            reason = "56 bits of a number between 0 and 1 are more than anybody asks for"
        )]
        let share = drawn as f64 / (1_u64 << 56) as f64;
        self.spans.as_ref().filter(|_| share < self.ratio)
    }
}

/// Counts what became of the records of one signal.
#[derive(Clone)]
pub struct ExportCounts {
    /// The collector has them.
    pub accepted: IntCounter,
    /// The collector does not want them.
    pub rejected: IntCounter,
    /// No answer, or none that can be read, after all tries.
    pub failed: IntCounter,
    /// There was no room for them while others waited.
    pub dropped: IntCounter,
}

/// The counters of all signals.
pub(super) struct ExportCounters(Counters);

impl ExportCounters {
    /// All at zero.
    pub(super) fn new(made: &Maker) -> Result<Self, prometheus::Error> {
        let counters = Self(made.counters(table::EXPORTED)?);
        ["logs", "traces", "metrics"]
            .into_iter()
            .for_each(|signal| drop(counters.of(signal)));
        Ok(counters)
    }

    fn of(&self, signal: &str) -> ExportCounts {
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
    /// The same as families of metrics.
    pub fn gather(&self) -> Vec<prometheus::proto::MetricFamily> {
        self.metrics.gather()
    }

    /// Counts what becomes of the records of one signal that go to a collector.
    pub fn export_counts(&self, signal: &'static str) -> ExportCounts {
        self.metrics.exports.of(signal)
    }

    /// Sends records to exporters from now on. To be called once, at the start.
    pub fn set_exporters(&self, outlets: Exporters) {
        if self.exporters.set(outlets).is_err() {
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
                .filter(|_| outlets.sampled(TraceId::make()).is_some())
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
        assert!(outlets.sampled(least).is_some() && outlets.sampled(TraceId([0xff; 16])).is_none());
    }
}
