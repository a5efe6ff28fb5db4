//! Export of logs, traces and metrics over OTLP: `[otlp]`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// A collector, and what is exported to it. In the file, the name of each limit includes its unit.
#[derive(Clone, PartialEq)]
pub struct OtlpConfig {
    /// The base URL, to which `/v1/logs`, `/v1/traces` and `/v1/metrics` are appended: `endpoint`.
    pub endpoint: String,
    /// Headers to send, by name. Values may be secrets.
    pub headers: Vec<(String, String)>,
    /// PEM file of CA certificates to trust instead of the system's.
    pub ca: Option<PathBuf>,
    /// Whether audit lines are exported.
    pub logs: bool,
    /// Whether spans of calls are exported.
    pub traces: bool,
    /// Whether metrics are exported.
    pub metrics: bool,
    /// The fraction of the traces beginning at the gate that is recorded, from 0 to 1:
    /// `sample_ratio`.
    pub sample_ratio: f64,
    /// Resource attributes of the gate, such as `service.name`: `resource`.
    pub resource: BTreeMap<String, String>,
    /// How long lines and spans are collected before they are sent: `interval_ms`.
    pub interval: Duration,
    /// Interval at which metrics are read: `metrics_interval_ms`.
    pub metrics_interval: Duration,
    /// Maximum time for one request, from connecting to the last byte of the response:
    /// `timeout_ms`.
    pub timeout: Duration,
    /// Maximum number of lines, and of spans, that wait to be sent: `queue_records`. Further ones
    /// are dropped and counted.
    pub queue_records: usize,
    /// The same in bytes: `queue_bytes`.
    pub queue_bytes: usize,
    /// Maximum number of lines or spans in one request: `batch_records`.
    pub batch_records: usize,
    /// The same in bytes, as estimated before they are encoded: `batch_bytes`.
    pub batch_bytes: usize,
}

impl OtlpConfig {
    /// Returns the config of the collector at `endpoint`, with defaults for everything else.
    pub fn new(endpoint: String) -> Self {
        Self {
            endpoint,
            headers: vec![],
            ca: None,
            logs: true,
            traces: true,
            metrics: true,
            sample_ratio: 1.0,
            resource: BTreeMap::new(),
            interval: Duration::from_secs(5),
            metrics_interval: Duration::from_secs(60),
            timeout: Duration::from_secs(10),
            queue_records: 8192,
            queue_bytes: 16 << 20,
            batch_records: 512,
            batch_bytes: 1 << 20,
        }
    }
}

impl fmt::Debug for OtlpConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OtlpConfig")
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}
