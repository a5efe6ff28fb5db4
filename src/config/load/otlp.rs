//! Loading of `[otlp]`.

use std::collections::BTreeMap;

use crate::config::OtlpConfig;
use crate::document::Table;

use super::classifier::{fraction, is_unencrypted_remote};
use super::upstream::{check_url, fault_without_tls, headers};
use super::values::Reader;

/// Maximum number of resource attributes, and maximum length of their names and values, in bytes.
const ATTRIBUTES: usize = 64;
const ATTRIBUTE_BYTES: usize = 1024;

/// Reads `[otlp]`, if present. Settings from environment variables are ignored, so that every
/// export is visible in the config file.
pub(super) fn otlp(root: &Table<'_>, reader: &Reader<'_>) -> Option<OtlpConfig> {
    let table = root.table("otlp")?;
    let endpoint = table.required(
        "endpoint",
        "the collector's URL, such as `http://127.0.0.1:4318`",
    );
    let allows_plain_http = table.boolean("allow_plain_http") == Some(true);
    if let Some(url) = &endpoint {
        let is_https = check_url(&table, url, "endpoint");
        let path = url.value.trim_end_matches('/');
        let signals = ["/v1/logs", "/v1/traces", "/v1/metrics"];
        if url.value.contains('?') {
            let hint = "put keys into `headers`, as `{ env = … }` or `{ file = … }`";
            table.fault_at(&url.place, "`endpoint` contains a query", Some(hint));
        } else if signals.iter().any(|signal| path.ends_with(signal)) {
            let hint = "remove `/v1/…`: the gate appends it for each signal";
            let message = "`endpoint` is the URL of a single signal";
            table.fault_at(&url.place, message, Some(hint));
        } else if is_unencrypted_remote(&url.value) && !allows_plain_http {
            let hint = "it receives audit lines: use `https://`, run a collector on this machine, or set `allow_plain_http = true`";
            let message = "the collector would be contacted without encryption";
            table.fault_at(&url.place, message, Some(hint));
        }
        if !is_https && table.has("ca") {
            fault_without_tls(&table, "ca");
        }
    }
    let mut config = OtlpConfig::new(endpoint.map(|url| url.value).unwrap_or_default());
    config.headers = headers(&table, reader);
    config.ca = reader.file(&table, "ca");
    config.logs = table.flag("logs", config.logs);
    config.traces = table.flag("traces", config.traces);
    config.metrics = table.flag("metrics", config.metrics);
    config.sample_ratio = fraction(&table, "sample_ratio").unwrap_or(config.sample_ratio);
    config.resource = resource(&table);
    let milliseconds = |key: &str, most: u64, base| table.duration(key, 50..=most, base);
    config.interval = milliseconds("interval_ms", 3_600_000, config.interval);
    config.metrics_interval =
        milliseconds("metrics_interval_ms", 3_600_000, config.metrics_interval);
    config.timeout = milliseconds("timeout_ms", 120_000, config.timeout);
    config.queue_records = table.count("queue_records", 1..=10_000_000, config.queue_records);
    config.queue_bytes = table.count("queue_bytes", 1024..=1 << 32, config.queue_bytes);
    config.batch_records = table.count("batch_records", 1..=100_000, config.batch_records);
    config.batch_bytes = table.count("batch_bytes", 1024..=64 << 20, config.batch_bytes);
    if !config.logs && !config.traces && !config.metrics {
        let message = "all signals are disabled";
        let hint = "enable `logs`, `traces` or `metrics`, or remove `[otlp]`";
        table.fault(message, Some(hint));
    }
    table.finish();
    Some(config)
}

fn resource(table: &Table<'_>) -> BTreeMap<String, String> {
    let Some(all) = table.table("resource") else {
        return BTreeMap::new();
    };
    let mut out = BTreeMap::new();
    for name in all.sorted_keys() {
        if all.is_table(&name.value) {
            all.mark_known(&name.value);
            let hint = "quote the whole name, as in `\"service.name\" = \"gate\"`";
            let message = format!("`{}` is not a string", name.value.escape_debug());
            all.fault_at(&name.place, message, Some(hint));
            continue;
        }
        let Some(value) = all.string(&name.value) else {
            continue;
        };
        if name.value.len() > ATTRIBUTE_BYTES
            || value.value.len() > ATTRIBUTE_BYTES
            || out.len() == ATTRIBUTES
        {
            let message = format!(
                "`resource` has at most {ATTRIBUTES} attributes, each of up to {ATTRIBUTE_BYTES} bytes"
            );
            all.fault_at(&name.place, message, None);
        }
        out.insert(name.value, value.value);
    }
    all.finish();
    out
}
