//! Where logs, traces and metrics go over OTLP: `[otlp]`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// A collector, and what it gets. In the file each bound has its unit in its name.
#[derive(Clone, PartialEq)]
pub struct OtlpConfig {
    /// Where it is; `/v1/logs`, `/v1/traces` and `/v1/metrics` are added: `endpoint`.
    pub endpoint: String,
    /// Headers to send, by name. Values may be secrets.
    pub headers: Vec<(String, String)>,
    /// PEM file of authorities to trust instead of the system's.
    pub ca: Option<PathBuf>,
    /// Whether it gets the audit lines.
    pub logs: bool,
    /// Whether it gets spans of calls.
    pub traces: bool,
    /// Whether it gets the metrics.
    pub metrics: bool,
    /// Of the traces that begin at the gate, how many are recorded: `sample_ratio`, from 0 to 1.
    pub sample_ratio: f64,
    /// Attributes of the gate, such as `service.name`: `resource`.
    pub resource: BTreeMap<String, String>,
    /// How long lines and spans are gathered: `interval_ms`.
    pub interval: Duration,
    /// Time between two looks at the metrics: `metrics_interval_ms`.
    pub metrics_interval: Duration,
    /// Time for one request, from connecting to the last byte of the answer: `timeout_ms`.
    pub timeout: Duration,
    /// Lines, and spans, that wait to be sent: `queue_records`. More are dropped and counted.
    pub queue_records: usize,
    /// The same in bytes: `queue_bytes`.
    pub queue_bytes: usize,
    /// Lines or spans of one request: `batch_records`.
    pub batch_records: usize,
    /// The same in bytes, as far as they are known before they are written: `batch_bytes`.
    pub batch_bytes: usize,
}

impl OtlpConfig {
    /// The collector at `endpoint`, all else at its default.
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
