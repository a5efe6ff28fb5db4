//! Series of metrics that every message increases. They are looked up once, since each lookup by
//! labels checks and hashes the labels.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use prometheus::{Histogram, IntCounter};

use super::label::{Counters, Histograms};
use crate::message::Direction;
use crate::protocol::UpstreamName;

/// The verdicts of each direction.
const VERDICTS: [(Direction, [&str; 3]); 2] = [
    (Direction::Outbound, ["pass", "ask", "block"]),
    (Direction::Inbound, ["pass", "rewrite", "block"]),
];

/// The histograms of a metric whose only label is the direction: outbound, inbound.
pub(super) struct ByDirection([Histogram; 2]);

impl ByDirection {
    pub(super) fn new(histograms: &Histograms) -> Self {
        Self(
            [Direction::Outbound, Direction::Inbound]
                .map(|direction| histograms.with(&[direction.name()])),
        )
    }

    pub(super) fn observe(&self, direction: Direction, duration: Duration) {
        let [outbound, inbound] = &self.0;
        let histogram = if direction == Direction::Outbound {
            outbound
        } else {
            inbound
        };
        histogram.observe(duration.as_secs_f64());
    }
}

/// The series of the upstreams of the config.
#[derive(Default)]
pub(super) struct UpstreamSeries(ArcSwap<HashMap<UpstreamName, Series>>);

struct Series {
    /// In the order of [`VERDICTS`].
    messages: [[IntCounter; 3]; 2],
    response_time: Histogram,
}

impl UpstreamSeries {
    /// Looks up the series of these upstreams, and creates those that do not exist yet.
    pub(super) fn resolve<'u>(
        &self,
        upstreams: impl Iterator<Item = &'u UpstreamName>,
        messages: &Counters,
        response_times: &Histograms,
    ) {
        let series_of = |upstream: &UpstreamName| Series {
            messages: VERDICTS.map(|(direction, verdicts)| {
                verdicts.map(|verdict| messages.with(&[&*upstream.0, direction.name(), verdict]))
            }),
            response_time: response_times.with(&[&*upstream.0]),
        };
        self.0.store(Arc::new(
            upstreams
                .map(|upstream| (upstream.clone(), series_of(upstream)))
                .collect(),
        ));
    }

    /// Counts a message with its verdict, and the time until its answer. Returns `false` if the
    /// upstream or the verdict has no series here.
    pub(super) fn count(
        &self,
        upstream: &UpstreamName,
        direction: Direction,
        verdict: &str,
        response_time: Option<f64>,
    ) -> bool {
        let series_map = self.0.load();
        let Some(series) = series_map.get(upstream) else {
            return false;
        };
        let mut counters = VERDICTS
            .iter()
            .zip(&series.messages)
            .filter(|((of, _), _)| *of == direction);
        let counter = counters.find_map(|((_, verdicts), counters)| {
            verdicts
                .iter()
                .zip(counters)
                .find(|(known, _)| **known == verdict)
                .map(|(_, counter)| counter)
        });
        let Some(counter) = counter else { return false };
        counter.inc();
        response_time
            .into_iter()
            .for_each(|seconds| series.response_time.observe(seconds));
        true
    }
}
