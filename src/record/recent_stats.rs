//! Statistics of the last hour, for people who watch the console rather than a scraper. Collected
//! only after they are requested.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use serde::Serialize;

use crate::protocol::UpstreamName;

/// Length of a bucket, in seconds.
pub const BUCKET_SECONDS: u64 = 10;
/// Number of buckets that are kept: one hour.
const BUCKETS: u64 = 360;
/// Number of response times that are kept for each upstream.
const MAX_TIMES: usize = 128;
/// Maximum number of rules that are counted.
const MAX_RULES: usize = 8192;
/// Upper bounds of inspection times, in microseconds; a longer time counts as the last.
const BOUNDS_US: [u32; 16] = [
    5, 10, 15, 25, 40, 60, 100, 160, 250, 400, 650, 1000, 2500, 10_000, 25_000, 250_000,
];

/// The collected statistics.
#[derive(Default)]
pub(super) struct RecentStats {
    enabled: AtomicBool,
    stats: Mutex<Stats>,
}

#[derive(Default)]
struct Stats {
    buckets: VecDeque<Bucket>,
    upstreams: HashMap<UpstreamName, UpstreamTimes>,
    rules: BTreeMap<Box<str>, RuleHits>,
}

/// The statistics of one bucket.
#[derive(Default)]
struct Bucket {
    /// When the bucket began, in buckets since 1970.
    number: u64,
    counts: Counts,
    duration_counts: [u32; BOUNDS_US.len()],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Messages to servers that were inspected.
    pub outbound: u32,
    /// Messages to agents that were inspected.
    pub inbound: u32,
    /// Messages that were blocked.
    pub blocked: u32,
    /// Messages that required approval.
    pub asked: u32,
    /// Messages that were rewritten.
    pub rewritten: u32,
    /// Messages with at least one injection finding.
    pub injections: u32,
    /// Total number of injection findings.
    pub injection_matches: u32,
    /// Calls that failed.
    pub failed: u32,
}

/// A bucket as displayed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StatsBucket {
    /// When the bucket began, in seconds since 1970.
    pub at: u64,
    #[serde(flatten)]
    pub counts: Counts,
    /// Median inspection time of a body, in microseconds, if there were any.
    pub p50_us: Option<u32>,
    /// 99th percentile of the inspection time, in microseconds.
    pub p99_us: Option<u32>,
}

/// The number of matches of a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RuleHits {
    /// Number of matches since the start.
    pub count: u64,
    /// Time of the last match, in seconds since 1970.
    pub last: u64,
}

/// The collected statistics of an upstream.
#[derive(Default)]
struct UpstreamTimes {
    response_times: VecDeque<Duration>,
    calls: u64,
    blocked: u64,
    failed: u64,
}

/// The statistics of an upstream as displayed.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct UpstreamStats {
    /// Messages to the upstream that were inspected.
    pub calls: u64,
    /// Messages that were blocked, in both directions.
    pub blocked: u64,
    /// Calls that failed.
    pub failed: u64,
    /// Median of the last response times, in milliseconds.
    pub p50_ms: Option<f64>,
    /// 95th percentile of the last response times, in milliseconds.
    pub p95_ms: Option<f64>,
}

/// The properties of an inspected message that are counted.
pub(super) struct JudgedMessage<'a, R> {
    pub(super) upstream: &'a UpstreamName,
    pub(super) outbound: bool,
    pub(super) outcome: &'a str,
    /// Number of injection findings.
    pub(super) injection_matches: usize,
    pub(super) rules: R,
    pub(super) response_time: Option<Duration>,
}

impl RecentStats {
    /// Starts collecting.
    pub(super) fn start(&self) {
        self.enabled.store(true, Ordering::Relaxed);
    }

    /// Adds earlier counts, the oldest first.
    pub(super) fn restore(&self, earlier: impl Iterator<Item = (u64, Counts)>) {
        let mut stats = self.stats.lock();
        for (at, counts) in earlier {
            stats.bucket(at).counts.add(counts);
        }
    }

    /// Reports whether statistics are collected.
    pub(super) fn is_on(&self) -> bool {
        self.enabled.load(Ordering::Relaxed)
    }

    /// Records the inspection time of a body.
    pub(super) fn count_duration(&self, duration: Duration) {
        if !self.is_on() {
            return;
        }
        let micros = u32::try_from(duration.as_micros()).unwrap_or(u32::MAX);
        let index = BOUNDS_US
            .iter()
            .position(|bound| micros <= *bound)
            .unwrap_or(BOUNDS_US.len() - 1);
        if let Some(count) = self
            .stats
            .lock()
            .bucket(now())
            .duration_counts
            .get_mut(index)
        {
            *count = count.saturating_add(1);
        }
    }

    /// Counts an inspected message.
    pub(super) fn count_message<'r>(
        &self,
        message: JudgedMessage<'_, impl Iterator<Item = &'r str>>,
    ) {
        if !self.is_on() {
            return;
        }
        let at = now();
        let mut stats = self.stats.lock();
        let counts = &mut stats.bucket(at).counts;
        *(if message.outbound {
            &mut counts.outbound
        } else {
            &mut counts.inbound
        }) += 1;
        match message.outcome {
            "block" => counts.blocked += 1,
            "ask" => counts.asked += 1,
            "rewrite" => counts.rewritten += 1,
            _ => {}
        }
        counts.injections += u32::from(message.injection_matches > 0);
        let matches = u32::try_from(message.injection_matches).unwrap_or(u32::MAX);
        counts.injection_matches = counts.injection_matches.saturating_add(matches);
        let times = stats.times(message.upstream);
        times.calls += u64::from(message.outbound);
        times.blocked += u64::from(message.outcome == "block");
        if let Some(waited) = message.response_time {
            if times.response_times.len() >= MAX_TIMES {
                times.response_times.pop_front();
            }
            times.response_times.push_back(waited);
        }
        for rule in message.rules {
            if stats.rules.len() >= MAX_RULES && !stats.rules.contains_key(rule) {
                continue;
            }
            if !stats.rules.contains_key(rule) {
                stats.rules.insert(rule.into(), RuleHits::default());
            }
            if let Some(hits) = stats.rules.get_mut(rule) {
                *hits = RuleHits {
                    count: hits.count + 1,
                    last: at,
                };
            }
        }
    }

    /// Counts a call that was refused without inspection, since it was refused before.
    pub(super) fn count_refused_unjudged(&self, upstream: &UpstreamName, rule: &str) {
        let rules = std::iter::once(rule);
        self.count_message(JudgedMessage {
            upstream,
            outbound: true,
            outcome: "block",
            injection_matches: 0,
            rules,
            response_time: None,
        });
    }

    /// Counts a failed call.
    pub(super) fn count_failed(&self, upstream: &UpstreamName) {
        if self.is_on() {
            let mut stats = self.stats.lock();
            stats.bucket(now()).counts.failed += 1;
            stats.times(upstream).failed += 1;
        }
    }

    /// Returns the buckets of the last hour, the oldest first; those without traffic are omitted.
    pub(super) fn last_hour(&self) -> Vec<StatsBucket> {
        let mut stats = self.stats.lock();
        stats.bucket(now());
        stats
            .buckets
            .iter()
            .filter(|bucket| bucket.counts != Counts::default() || bucket.total() > 0)
            .map(Bucket::snapshot)
            .collect()
    }

    /// Returns the number of matches of each rule.
    pub(super) fn rule_hits(&self) -> BTreeMap<Box<str>, RuleHits> {
        self.stats.lock().rules.clone()
    }

    /// Returns the statistics of an upstream.
    pub(super) fn upstream_stats(&self, upstream: &UpstreamName) -> UpstreamStats {
        self.stats
            .lock()
            .upstreams
            .get(upstream)
            .map(UpstreamTimes::snapshot)
            .unwrap_or_default()
    }
}

impl Counts {
    fn add(&mut self, other: Self) {
        let Self {
            outbound,
            inbound,
            blocked,
            asked,
            rewritten,
            injections,
            injection_matches,
            failed,
        } = other;
        self.outbound += outbound;
        self.inbound += inbound;
        self.blocked += blocked;
        self.asked += asked;
        self.rewritten += rewritten;
        self.injections += injections;
        self.injection_matches = self.injection_matches.saturating_add(injection_matches);
        self.failed += failed;
    }
}

impl Stats {
    /// Returns the bucket of a time, in seconds since 1970, and removes those that are too old.
    fn bucket(&mut self, at: u64) -> &mut Bucket {
        let number = at / BUCKET_SECONDS;
        while self
            .buckets
            .front()
            .is_some_and(|oldest| oldest.number + BUCKETS <= number)
        {
            self.buckets.pop_front();
        }
        // If the clock was set back, counting continues in the last bucket.
        if self.buckets.back().is_none_or(|last| last.number < number) {
            self.buckets.push_back(Bucket {
                number,
                ..Bucket::default()
            });
        }
        let last = self.buckets.len() - 1;
        #[allow(
            clippy::indexing_slicing,
            reason = "one was just put there if there was none"
        )]
        &mut self.buckets[last]
    }

    /// Returns the times of an upstream. Their number is limited by the config.
    fn times(&mut self, upstream: &UpstreamName) -> &mut UpstreamTimes {
        self.upstreams.entry(upstream.clone()).or_default()
    }
}

impl Bucket {
    fn total(&self) -> u32 {
        self.duration_counts
            .iter()
            .fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Returns the bound below which the inspection times of this share of all bodies are.
    fn quantile(&self, share: f64) -> Option<u32> {
        let total = self.total();
        let mut sum = 0;
        let threshold = (f64::from(total) * share).ceil();
        let is_reached = |count: &u32| {
            sum += count;
            f64::from(sum) >= threshold
        };
        let place = self
            .duration_counts
            .iter()
            .position(is_reached)
            .filter(|_| total > 0)?;
        BOUNDS_US.get(place).copied()
    }

    fn snapshot(&self) -> StatsBucket {
        StatsBucket {
            at: self.number * BUCKET_SECONDS,
            counts: self.counts,
            p50_us: self.quantile(0.5),
            p99_us: self.quantile(0.99),
        }
    }
}

impl UpstreamTimes {
    fn snapshot(&self) -> UpstreamStats {
        let mut sorted: Vec<Duration> = self.response_times.iter().copied().collect();
        sorted.sort_unstable();
        let percentile = |percent: usize| {
            let place = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
            sorted
                .get(place)
                .map(|time| (time.as_secs_f64() * 1e4).round() / 10.0)
        };
        let Self {
            calls,
            blocked,
            failed,
            ..
        } = *self;
        UpstreamStats {
            calls,
            blocked,
            failed,
            p50_ms: percentile(50),
            p95_ms: percentile(95),
        }
    }
}

/// Returns the current time, in seconds since 1970.
pub(super) fn now() -> u64 {
    unix_seconds(SystemTime::now())
}

/// Returns the seconds from 1970 to a time; 0 if it is earlier.
pub fn unix_seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged_message<'a, const N: usize>(
        upstream: &'a UpstreamName,
        outcome: &'a str,
        rules: [&'static str; N],
    ) -> JudgedMessage<'a, std::array::IntoIter<&'static str, N>> {
        JudgedMessage {
            upstream,
            outbound: true,
            outcome,
            injection_matches: 2,
            rules: rules.into_iter(),
            response_time: Some(Duration::from_micros(1500)),
        }
    }

    #[test]
    fn what_happens_is_counted_once_it_is_asked_for() {
        let pulse = RecentStats::default();
        let upstream = UpstreamName("u".into());
        pulse.count_message(judged_message(&upstream, "block", ["a"]));
        assert!(pulse.last_hour().is_empty() && pulse.rule_hits().is_empty());
        pulse.start();
        pulse.count_message(judged_message(&upstream, "block", ["a", "b", "a"]));
        pulse.count_duration(Duration::from_micros(12));
        pulse.count_duration(Duration::from_secs(3));
        pulse.count_failed(&upstream);
        let hour = pulse.last_hour();
        let all = |count_of: fn(&Counts) -> u32| {
            hour.iter()
                .map(|moment| count_of(&moment.counts))
                .sum::<u32>()
        };
        assert_eq!(
            (all(|c| c.outbound), all(|c| c.blocked), all(|c| c.failed)),
            (1, 1, 1)
        );
        assert_eq!(
            (all(|c| c.injections), all(|c| c.injection_matches)),
            (1, 2),
            "messages, and matches in them"
        );
        assert!(
            hour.iter()
                .any(|moment| moment.p50_us == Some(15) || moment.p99_us == Some(250_000)),
            "{hour:?}"
        );
        assert_eq!(
            (pulse.rule_hits()["a"].count, pulse.rule_hits()["b"].count),
            (2, 1)
        );
        let served = pulse.upstream_stats(&upstream);
        assert_eq!(
            (served.calls, served.blocked, served.failed, served.p50_ms),
            (1, 1, 1, Some(1.5))
        );
        assert_eq!(
            pulse.upstream_stats(&UpstreamName("none".into())),
            UpstreamStats::default()
        );
    }

    #[test]
    fn a_call_refused_without_being_judged_counts_as_refused() {
        let pulse = RecentStats::default();
        let upstream = UpstreamName("u".into());
        pulse.start();
        pulse.count_refused_unjudged(&upstream, "a");
        let counts = pulse.last_hour().first().unwrap().counts;
        assert_eq!(
            (counts.outbound, counts.blocked, counts.injections),
            (1, 1, 0)
        );
        assert_eq!(
            (
                pulse.rule_hits()["a"].count,
                pulse.upstream_stats(&upstream).blocked
            ),
            (1, 1)
        );
    }

    #[test]
    fn it_is_bounded_in_time() {
        let mut felt = Stats::default();
        for at in 0..BUCKETS * 3 {
            felt.bucket(at * BUCKET_SECONDS).counts.outbound += 1;
        }
        assert_eq!(felt.buckets.len() as u64, BUCKETS);
        felt.bucket(0).counts.outbound += 1;
        assert_eq!(
            felt.buckets
                .back()
                .map(|last| (last.number, last.counts.outbound)),
            Some((BUCKETS * 3 - 1, 2))
        );
    }
}
