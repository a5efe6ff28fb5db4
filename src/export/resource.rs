//! The resource and the scope of every request, which identify the sender.

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;

use crate::config::OtlpConfig;

/// The part that is the same for every request.
pub(super) struct ExportResource {
    /// Identifies the process.
    pub(super) resource: Resource,
    /// Identifies the program.
    pub(super) scope: InstrumentationScope,
}

impl ExportResource {
    /// Describes this process. Attributes in the config take precedence over the built-in ones
    /// (OpenTelemetry, semantic conventions, Service).
    pub(super) fn new(config: &OtlpConfig) -> Self {
        let version = env!("CARGO_PKG_VERSION");
        let instance = uuid::Uuid::new_v4().to_string();
        let defaults = [
            ("service.name", "lychgate"),
            ("service.version", version),
            ("service.instance.id", &instance),
        ];
        let defaults = defaults
            .into_iter()
            .filter(|(name, _)| !config.resource.contains_key(*name));
        let configured = config
            .resource
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        Self {
            resource: Resource {
                attributes: defaults
                    .chain(configured)
                    .map(|(name, value)| text(name, value))
                    .collect(),
                ..Resource::default()
            },
            scope: InstrumentationScope {
                name: "lychgate".to_owned(),
                version: version.to_owned(),
                ..InstrumentationScope::default()
            },
        }
    }
}

/// Returns an attribute with a text.
pub(super) fn text(name: &str, value: &str) -> KeyValue {
    attribute(name, Value::StringValue(value.to_owned()))
}

pub(super) fn attribute(name: &str, value: Value) -> KeyValue {
    KeyValue {
        key: name.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}

/// Converts a time to that of OTLP: nanoseconds since 1970.
pub(super) fn nanos(time: std::time::SystemTime) -> u64 {
    let since = time
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
