//! Encodes audit lines as OTLP log records, which contain the members of the line and nothing more.

use std::time::SystemTime;

use bytes::Bytes;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValue, KeyValueList};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs, SeverityNumber};
use prost::Message as _;

use super::resource::{ExportResource, attribute, nanos};
use super::send::Request;
use crate::message::{Json, ReadLimits, Value, ValueKind};
use crate::record::entry::member;

/// Maximum depth to which a line is encoded as attributes; deeper values remain JSON.
const MAX_DEPTH: usize = 8;
/// Members that are fields of a record and therefore no attributes.
const RECORD_FIELDS: [&str; 4] = [
    member::time::NAME,
    member::event::NAME,
    member::trace::NAME,
    member::span::NAME,
];

/// Returns a request with these lines.
pub(super) fn request(lines: &[Box<str>], origin: &ExportResource) -> Request {
    let log_records = lines.iter().map(|line| record(line)).collect();
    let scope_logs = vec![ScopeLogs {
        scope: Some(origin.scope.clone()),
        log_records,
        ..ScopeLogs::default()
    }];
    let resource_logs = vec![ResourceLogs {
        resource: Some(origin.resource.clone()),
        scope_logs,
        ..ResourceLogs::default()
    }];
    Request {
        body: ExportLogsServiceRequest { resource_logs }
            .encode_to_vec()
            .into(),
        records: lines.len() as u64,
    }
}

fn record(line: &str) -> LogRecord {
    let mut record = LogRecord {
        observed_time_unix_nano: nanos(SystemTime::now()),
        ..LogRecord::default()
    };
    let limits = ReadLimits::of_bytes(line.len());
    let Ok(line) = Json::parse(Bytes::copy_from_slice(line.as_bytes()), &limits) else {
        // All lines of the gate can be parsed. Anything else is at least not lost.
        record.body = Some(AnyValue {
            value: Some(Any::StringValue(line.to_owned())),
        });
        return record;
    };
    let root = line.root();
    let text = |name: &str| root.get_str(name);
    let time = text(member::time::NAME).and_then(|time| humantime::parse_rfc3339(&time).ok());
    record.time_unix_nano = time.map(nanos).unwrap_or_default();
    record.event_name = text(member::event::NAME)
        .map(|event| format!("lychgate.{event}"))
        .unwrap_or_default();
    record.trace_id = text(member::trace::NAME)
        .and_then(|id| bytes(&id))
        .unwrap_or_default();
    record.span_id = text(member::span::NAME)
        .and_then(|id| bytes(&id))
        .unwrap_or_default();
    record.severity_text = text(member::severity::NAME)
        .map(String::from)
        .unwrap_or_default();
    record.severity_number = severity(&record.severity_text) as i32;
    record.body = Some(AnyValue {
        value: Some(Any::StringValue(body_text(root))),
    });
    let members = root
        .members()
        .filter(|(name, _)| !RECORD_FIELDS.contains(&&**name));
    record.attributes = members
        .map(|(name, value)| attribute(&name, to_any(value, MAX_DEPTH)))
        .collect();
    record
}

/// Returns a short summary of the line for readers.
fn body_text(root: Value<'_>) -> String {
    let text = |name: &str| root.get_str(name);
    let mut out = text(member::event::NAME)
        .map(String::from)
        .unwrap_or_default();
    for name in [
        member::direction::NAME,
        member::method::NAME,
        member::tool::NAME,
        member::upstream::NAME,
        member::verdict::NAME,
        member::rule::NAME,
        member::outcome::NAME,
        member::error::NAME,
    ] {
        if let Some(word) = text(name) {
            out.push(' ');
            out.push_str(&word);
        }
    }
    out
}

/// Converts a severity of OCSF.
fn severity(word: &str) -> SeverityNumber {
    match word.to_ascii_lowercase().as_str() {
        "low" => SeverityNumber::Info2,
        "medium" => SeverityNumber::Warn,
        "high" => SeverityNumber::Error,
        "critical" => SeverityNumber::Error3,
        "fatal" => SeverityNumber::Fatal,
        _ => SeverityNumber::Info,
    }
}

fn to_any(value: Value<'_>, depth: usize) -> Any {
    match value.kind() {
        ValueKind::Object | ValueKind::Array if depth == 0 => {
            Any::StringValue(value.raw().to_owned())
        }
        ValueKind::Object => Any::KvlistValue(KeyValueList {
            values: value
                .members()
                .map(|(name, value)| attribute(&name, to_any(value, depth - 1)))
                .collect::<Vec<KeyValue>>(),
        }),
        ValueKind::Array => Any::ArrayValue(ArrayValue {
            values: value
                .elements()
                .map(|value| AnyValue {
                    value: Some(to_any(value, depth - 1)),
                })
                .collect(),
        }),
        ValueKind::String => Any::StringValue(value.str().unwrap_or_default().into_owned()),
        ValueKind::Bool => Any::BoolValue(value.raw() == "true"),
        ValueKind::Number => match (value.raw().parse(), value.raw().parse()) {
            (Ok(whole), _) => Any::IntValue(whole),
            (_, Ok(number)) => Any::DoubleValue(number),
            _ => Any::StringValue(value.raw().to_owned()),
        },
        ValueKind::Null => Any::StringValue("null".to_owned()),
    }
}

/// Decodes hexadecimal digits.
fn bytes(hex: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = hex
        .chars()
        .map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
        .collect();
    digits
        .filter(|digits| digits.len() % 2 == 0)?
        .chunks_exact(2)
        .map(|pair| Some(pair.first()? << 4 | pair.get(1)?))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, UNIX_EPOCH};

    #[test]
    fn a_record_says_what_its_line_says() {
        let line = format!(
            r#"{{"{}":"2026-11-22T20:00:00.125Z","{}":"judged","{}":"High","{}":"{}","{}":"b7ad6b7169203331","{}":"block","{}":12,"f":0.5,"yes":true,"list":["a",{{"b":null}}]}}"#,
            member::time::NAME,
            member::event::NAME,
            member::severity::NAME,
            member::trace::NAME,
            "ab".repeat(16),
            member::span::NAME,
            member::verdict::NAME,
            member::bytes::NAME,
        );
        let record = record(&line);
        assert_eq!(
            record.time_unix_nano,
            nanos(UNIX_EPOCH + Duration::from_millis(1_795_377_600_125))
        );
        assert_eq!(
            (
                &*record.event_name,
                &*record.severity_text,
                record.severity_number
            ),
            ("lychgate.judged", "High", 17)
        );
        assert_eq!(
            (record.trace_id, record.span_id),
            (
                vec![0xab; 16],
                vec![0xb7, 0xad, 0x6b, 0x71, 0x69, 0x20, 0x33, 0x31]
            )
        );
        assert_eq!(
            record.body.unwrap().value,
            Some(Any::StringValue("judged block".to_owned()))
        );
        let attribute_value = |name: &str| {
            let found = record
                .attributes
                .iter()
                .find(|attribute| attribute.key == name);
            found
                .and_then(|attribute| attribute.value.clone())
                .and_then(|value| value.value)
        };
        assert_eq!(
            attribute_value(member::bytes::NAME),
            Some(Any::IntValue(12))
        );
        assert_eq!(
            (attribute_value("f"), attribute_value("yes")),
            (Some(Any::DoubleValue(0.5)), Some(Any::BoolValue(true)))
        );
        let Some(Any::ArrayValue(list)) = attribute_value("list") else {
            panic!()
        };
        assert_eq!(list.values[0].value, Some(Any::StringValue("a".to_owned())));
        assert!(
            RECORD_FIELDS
                .iter()
                .all(|name| attribute_value(name).is_none()),
            "no field stands twice"
        );
    }

    #[test]
    fn what_is_too_deep_stays_as_it_is_and_nothing_is_lost() {
        let deep = format!(
            r#"{{"event":"x","d":{}1{}}}"#,
            r#"{"d":"#.repeat(20),
            "}".repeat(20)
        );
        let decoded = ExportLogsServiceRequest::decode(
            request(
                &[deep.into()],
                &ExportResource::new(&crate::config::OtlpConfig::new(String::new())),
            )
            .body,
        );
        assert!(format!("{decoded:?}").contains(r#"{\"d\":{\"d\":"#));
        let odd = record("not JSON");
        assert_eq!(
            odd.body.unwrap().value,
            Some(Any::StringValue("not JSON".to_owned()))
        );
        assert_eq!(bytes("abc"), None);
    }
}
