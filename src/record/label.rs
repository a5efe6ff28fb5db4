//! Labels of metrics, and the only code that limits their values. Labels that follow what agents
//! and servers send would grow without limit, and with them the memory of the gate and of every
//! scraper.

use std::collections::hash_map::RandomState;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use prometheus::core::{Collector, MetricVec, MetricVecBuilder};
use prometheus::{
    Counter, Error, Gauge, HistogramOpts, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Opts,
    Registry,
};

use super::redact::Redactor;
use super::table::{self, Kind, Metric};

/// The label value that replaces one that is not permitted.
pub const OTHER: &str = "other";
/// Maximum number of series of one metric with values of [`Values::Given`]; in further series these
/// are `other`.
pub const GIVEN_SERIES: usize = 8192;
/// Maximum length of a label value, in bytes.
const MAX_VALUE_BYTES: usize = 200;
/// Maximum length of a tool name according to MCP (2025-11-25, Tool Names).
const MAX_NAME_BYTES: usize = 128;

/// A label of a metric.
#[derive(Clone, Copy, Debug)]
pub struct Label {
    pub name: &'static str,
    /// The permitted values.
    pub values: Values,
}

/// The permitted values of a label. Any other value counts as [`OTHER`], and in
/// [`table::LABELS_CAPPED`].
#[derive(Clone, Copy, Debug)]
pub enum Values {
    /// These words.
    Fixed(&'static [&'static str]),
    /// Names chosen by the operator or by this program, up to this number; the text describes their
    /// source.
    Named(&'static str, usize),
    /// Names chosen by agents or servers, of which there may be any number with any content. Only
    /// names that MCP permits are accepted, and, as in the audit log, nothing that is or may be a
    /// secret. The number is the maximum for each upstream, if the metric has a label for it.
    Given(&'static str, usize),
}

/// Values by the upstream that they are counted for, or by an empty key.
type Scopes = HashMap<Box<str>, HashSet<Box<str>>>;

/// The label values seen by the process.
struct LabelValues {
    /// By label, and by upstream where values are limited per upstream.
    values: RwLock<HashMap<&'static str, Scopes>>,
    capped: IntCounterVec,
}

impl LabelValues {
    /// Reports whether a label may have this value: a known one, or a new one while there is room.
    fn admits(&self, label: &Label, upstream: &str, value: &str) -> bool {
        let limit = match label.values {
            Values::Fixed(words) => return value.is_empty() || words.contains(&value),
            Values::Named(_, most) if is_clean(value) => most,
            Values::Given(_, most) if value.is_empty() || is_tool_name(value) => most,
            Values::Named(..) | Values::Given(..) => return false,
        };
        let scope = if matches!(label.values, Values::Given(..)) {
            upstream
        } else {
            ""
        };
        if matches!(value, "" | OTHER) {
            return true;
        }
        let seen = self.values.read();
        if let Some(known) = seen.get(label.name).and_then(|of| of.get(scope))
            && (known.contains(value) || known.len() >= limit)
        {
            return known.contains(value);
        }
        drop(seen);
        let is_given = matches!(label.values, Values::Given(..));
        if is_given
            && Redactor::shared()
                .is_none_or(|redactor| redactor.text(value, MAX_NAME_BYTES) != value)
        {
            return false;
        }
        let mut seen = self.values.write();
        let known = seen
            .entry(label.name)
            .or_default()
            .entry(scope.into())
            .or_default();
        known.len() < limit && (known.insert(value.into()) || known.contains(value))
    }
}

fn is_clean(value: &str) -> bool {
    value.len() <= MAX_VALUE_BYTES && !value.chars().any(char::is_control)
}

fn is_tool_name(value: &str) -> bool {
    value.len() <= MAX_NAME_BYTES
        && value
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'/'))
}

/// All series of one metric. A series is selected by label values, of which those that are not
/// permitted are replaced by [`OTHER`].
pub(super) struct Family<S> {
    metric: Metric,
    series: S,
    label_values: Arc<LabelValues>,
    hasher: RandomState,
    /// Hashes of the series with a value of [`Values::Given`]. Two series with the same hash raise
    /// the limit by one.
    given_series: Mutex<HashSet<u64>>,
}

pub(super) type Counters = Family<IntCounterVec>;
pub(super) type Gauges = Family<IntGaugeVec>;
pub(super) type Histograms = Family<HistogramVec>;

impl<B: MetricVecBuilder> Family<MetricVec<B>> {
    /// Returns the series with these label values, given in the order of the table.
    pub(super) fn with(&self, values: &[&str]) -> B::M {
        self.series.with_label_values(&self.capped_values(values))
    }

    /// Creates the series of an upstream at zero, for each word of the label after it.
    pub(super) fn announce(&self, upstream: &str) {
        if let [
            _,
            Label {
                values: Values::Fixed(words),
                ..
            },
        ] = self.metric.labels
        {
            words
                .iter()
                .for_each(|word| drop(self.with(&[upstream, word])));
        }
    }

    /// Removes a series.
    pub(super) fn forget(&self, values: &[&str]) {
        // There may have been none.
        drop(self.series.remove_label_values(&self.capped_values(values)));
    }

    fn capped_values<'v>(&self, values: &[&'v str]) -> Vec<&'v str> {
        let labels = self.metric.labels;
        let upstream = labels
            .iter()
            .position(|label| label.name == "upstream")
            .and_then(|at| values.get(at))
            .unwrap_or(&"");
        let mut has_given = false;
        let mut capped: Vec<&str> = values
            .iter()
            .zip(labels)
            .map(|(value, label)| {
                if !self.label_values.admits(label, upstream, value) {
                    self.count_capped(label);
                    return OTHER;
                }
                has_given |=
                    matches!(label.values, Values::Given(..)) && !matches!(*value, "" | OTHER);
                value
            })
            .collect();
        if has_given && !self.has_room(&capped) {
            for (value, label) in capped.iter_mut().zip(labels) {
                if matches!(label.values, Values::Given(..)) {
                    self.count_capped(label);
                    *value = OTHER;
                }
            }
        }
        capped
    }

    fn has_room(&self, values: &[&str]) -> bool {
        let hash = self.hasher.hash_one(values);
        let mut given = self.given_series.lock();
        given.contains(&hash) || (given.len() < GIVEN_SERIES && given.insert(hash))
    }

    fn count_capped(&self, label: &Label) {
        self.label_values
            .capped
            .with_label_values(&[self.metric.name, label.name])
            .inc();
    }
}

/// Creates metrics from the table and registers them.
pub(super) struct Maker {
    registry: Registry,
    label_values: Arc<LabelValues>,
}

impl Maker {
    /// # Errors
    /// Never, unless the table is invalid.
    pub(super) fn new() -> Result<Self, Error> {
        let registry = Registry::new();
        let metric = table::LABELS_CAPPED;
        let capped = IntCounterVec::new(options(metric), &metric.label_names())?;
        registry.register(Box::new(capped.clone()))?;
        for metric in table::METRICS {
            for label in metric
                .labels
                .iter()
                .filter(|label| matches!(label.values, Values::Given(..)))
            {
                capped.with_label_values(&[metric.name, label.name]);
            }
        }
        Ok(Self {
            registry,
            label_values: Arc::new(LabelValues {
                values: RwLock::default(),
                capped,
            }),
        })
    }

    /// Returns the registry with the created metrics.
    pub(super) fn registry(self) -> Registry {
        self.registry
    }

    /// Creates counters. Those with a single label of fixed values exist at once, at zero.
    pub(super) fn counters(&self, metric: Metric) -> Result<Counters, Error> {
        let family = self.family(
            metric,
            IntCounterVec::new(options(metric), &metric.label_names())?,
        )?;
        if let [
            Label {
                values: Values::Fixed(words),
                ..
            },
        ] = metric.labels
        {
            words.iter().for_each(|word| drop(family.with(&[word])));
        }
        Ok(family)
    }

    /// Creates a counter without labels.
    pub(super) fn counter(&self, metric: Metric) -> Result<Counter, Error> {
        self.register(Counter::with_opts(options(metric))?)
    }

    pub(super) fn gauges(&self, metric: Metric) -> Result<Gauges, Error> {
        self.family(
            metric,
            IntGaugeVec::new(options(metric), &metric.label_names())?,
        )
    }

    /// Creates an integer gauge without labels.
    pub(super) fn level(&self, metric: Metric) -> Result<IntGauge, Error> {
        self.register(IntGauge::with_opts(options(metric))?)
    }

    /// Creates a gauge without labels.
    pub(super) fn gauge(&self, metric: Metric) -> Result<Gauge, Error> {
        self.register(Gauge::with_opts(options(metric))?)
    }

    pub(super) fn histograms(&self, metric: Metric) -> Result<Histograms, Error> {
        let buckets = match metric.kind {
            Kind::Histogram(buckets) => buckets.to_vec(),
            Kind::Counter | Kind::Gauge => Vec::new(),
        };
        let options = HistogramOpts::new(metric.name, metric.help).buckets(buckets);
        self.family(metric, HistogramVec::new(options, &metric.label_names())?)
    }

    fn family<B: MetricVecBuilder + 'static>(
        &self,
        metric: Metric,
        series: MetricVec<B>,
    ) -> Result<Family<MetricVec<B>>, Error> {
        let series = self.register(series)?;
        Ok(Family {
            metric,
            series,
            label_values: self.label_values.clone(),
            hasher: RandomState::new(),
            given_series: Mutex::default(),
        })
    }

    fn register<C: Collector + Clone + 'static>(&self, metric: C) -> Result<C, Error> {
        self.registry.register(Box::new(metric.clone()))?;
        Ok(metric)
    }
}

fn options(metric: Metric) -> Opts {
    Opts::new(metric.name, metric.help)
}

#[cfg(test)]
mod tests;
