//! Encodes the metrics of the admin port for OTLP, with the same names, labels and numbers.

use std::time::SystemTime;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint,
    ResourceMetrics, ScopeMetrics, Sum,
};
use prometheus::proto::{Metric as Series, MetricFamily, MetricType};
use prost::Message as _;

use super::resource::{ExportResource, nanos, text};
use super::send::Request;

/// Returns requests with all families. Each has at most `limit` points, unless a single family has
/// more.
pub(super) fn requests(
    families: &[MetricFamily],
    origin: &ExportResource,
    start: SystemTime,
    limit: usize,
) -> Vec<Request> {
    let start_nanos = nanos(start);
    let now = nanos(SystemTime::now());
    let mut out = Vec::new();
    let mut metrics = Vec::new();
    let mut points = 0;
    for family in families {
        let series_count = family.get_metric().len();
        if points > 0 && points + series_count > limit {
            out.push(request(std::mem::take(&mut metrics), points, origin));
            points = 0;
        }
        metrics.extend(metric(family, start_nanos, now));
        points += series_count;
    }
    if points > 0 {
        out.push(request(metrics, points, origin));
    }
    out
}

fn request(metrics: Vec<Metric>, points: usize, origin: &ExportResource) -> Request {
    let scope_metrics = vec![ScopeMetrics {
        scope: Some(origin.scope.clone()),
        metrics,
        ..ScopeMetrics::default()
    }];
    let resource = Some(origin.resource.clone());
    let resource_metrics = vec![ResourceMetrics {
        resource,
        scope_metrics,
        ..ResourceMetrics::default()
    }];
    Request {
        body: ExportMetricsServiceRequest { resource_metrics }
            .encode_to_vec()
            .into(),
        records: points as u64,
    }
}

fn metric(family: &MetricFamily, start_nanos: u64, now: u64) -> Option<Metric> {
    let series = family.get_metric().iter();
    let temporality = AggregationTemporality::Cumulative as i32;
    let data = match family.get_field_type() {
        MetricType::COUNTER => Data::Sum(Sum {
            data_points: series
                .map(|one| number(one, one.get_counter().get_value(), start_nanos, now))
                .collect(),
            aggregation_temporality: temporality,
            is_monotonic: true,
        }),
        MetricType::GAUGE => Data::Gauge(Gauge {
            data_points: series
                .map(|one| number(one, one.get_gauge().get_value(), 0, now))
                .collect(),
        }),
        MetricType::HISTOGRAM => Data::Histogram(Histogram {
            data_points: series.map(|one| histogram(one, start_nanos, now)).collect(),
            aggregation_temporality: temporality,
        }),
        MetricType::SUMMARY | MetricType::UNTYPED => return None,
    };
    let name = family.name().to_owned();
    Some(Metric {
        unit: unit(&name).to_owned(),
        name,
        description: family.help().to_owned(),
        data: Some(data),
        ..Metric::default()
    })
}

fn number(series: &Series, value: f64, start_nanos: u64, now: u64) -> NumberDataPoint {
    NumberDataPoint {
        attributes: labels(series),
        start_time_unix_nano: start_nanos,
        time_unix_nano: now,
        value: Some(Value::AsDouble(value)),
        ..NumberDataPoint::default()
    }
}

/// Encodes a histogram. Buckets of OTLP count values between two bounds; those of Prometheus count
/// all values below one.
fn histogram(series: &Series, start_nanos: u64, now: u64) -> HistogramDataPoint {
    let data = series.get_histogram();
    let count = data.get_sample_count();
    let bounded = || {
        data.get_bucket()
            .iter()
            .filter(|bucket| bucket.upper_bound().is_finite())
    };
    let mut below = 0;
    let mut bucket_counts: Vec<u64> = bounded()
        .map(|bucket| {
            let within = bucket.cumulative_count().saturating_sub(below);
            below = bucket.cumulative_count();
            within
        })
        .collect();
    bucket_counts.push(count.saturating_sub(below));
    HistogramDataPoint {
        attributes: labels(series),
        start_time_unix_nano: start_nanos,
        time_unix_nano: now,
        count,
        sum: Some(data.get_sample_sum()),
        explicit_bounds: bounded().map(|bucket| bucket.upper_bound()).collect(),
        bucket_counts,
        ..HistogramDataPoint::default()
    }
}

fn labels(series: &Series) -> Vec<KeyValue> {
    series
        .get_label()
        .iter()
        .map(|label| text(label.name(), label.value()))
        .collect()
}

/// Returns the UCUM unit of a metric, which its Prometheus name contains.
fn unit(name: &str) -> &'static str {
    let base = name.strip_suffix("_total").unwrap_or(name);
    if base.ends_with("_seconds") {
        "s"
    } else if base.ends_with("_bytes") {
        "By"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::OtlpConfig;
    use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, IntGauge, Opts, Registry};

    #[test]
    fn every_kind_says_the_same_as_its_text() {
        let registry = Registry::new();
        let counter = IntCounterVec::new(Opts::new("calls_total", "Calls."), &["who"]).unwrap();
        let gauge = IntGauge::new("held_bytes", "Held.").unwrap();
        let histogram = HistogramVec::new(
            HistogramOpts::new("took_seconds", "Took.").buckets(vec![0.1, 1.0]),
            &["who"],
        )
        .unwrap();
        registry.register(Box::new(counter.clone())).unwrap();
        registry.register(Box::new(gauge.clone())).unwrap();
        registry.register(Box::new(histogram.clone())).unwrap();
        counter.with_label_values(&["ann"]).inc_by(3);
        counter.with_label_values(&["bob"]).inc_by(0);
        gauge.set(-7);
        [0.05, 0.5, 0.6, 5.0]
            .iter()
            .for_each(|value| histogram.with_label_values(&["ann"]).observe(*value));
        let origin = ExportResource::new(&OtlpConfig::new(String::new()));
        let all = requests(&registry.gather(), &origin, SystemTime::UNIX_EPOCH, 3);
        assert_eq!(
            all.iter()
                .map(|request| request.records)
                .collect::<Vec<_>>(),
            [3, 1]
        );
        let metrics: Vec<Metric> = all
            .into_iter()
            .flat_map(|request| {
                ExportMetricsServiceRequest::decode(request.body)
                    .unwrap()
                    .resource_metrics
            })
            .flat_map(|of_resource| of_resource.scope_metrics)
            .flat_map(|of_scope| of_scope.metrics)
            .collect();
        let named = |name: &str| metrics.iter().find(|metric| metric.name == name).unwrap();
        let Some(Data::Sum(sum)) = &named("calls_total").data else {
            panic!()
        };
        assert!(sum.is_monotonic && sum.aggregation_temporality == 2);
        let values: Vec<_> = sum
            .data_points
            .iter()
            .map(|point| (point.attributes.clone(), point.value))
            .collect();
        let expected = [("ann", 3.0), ("bob", 0.0)]
            .map(|(who, n)| (vec![text("who", who)], Some(Value::AsDouble(n))));
        assert_eq!(values, expected);
        let Some(Data::Gauge(held)) = &named("held_bytes").data else {
            panic!()
        };
        assert_eq!(
            (held.data_points[0].value, &*named("held_bytes").unit),
            (Some(Value::AsDouble(-7.0)), "By")
        );
        let Some(Data::Histogram(took)) = &named("took_seconds").data else {
            panic!()
        };
        let point = &took.data_points[0];
        assert_eq!(
            (
                point.count,
                &point.bucket_counts[..],
                &point.explicit_bounds[..]
            ),
            (4, &[1, 2, 1][..], &[0.1, 1.0][..])
        );
        assert!((point.sum.unwrap() - 6.15).abs() < 1e-9);
        assert_eq!(
            (
                &*named("took_seconds").unit,
                &*named("took_seconds").description
            ),
            ("s", "Took.")
        );
    }
}
