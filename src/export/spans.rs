//! Encodes spans for OTLP.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::trace::v1::span::{Event, Link, SpanKind as Kind};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span as Sent, Status};
use prost::Message as _;

use super::resource::{ExportResource, nanos, text};
use super::send::Request;
use crate::protocol::trace::{Attribute, Parent, Span, SpanEvent, SpanKind};

/// The W3C trace flag `sampled`.
const SAMPLED: u32 = 1;
/// OTLP `SpanFlags`: it is known whether the parent is in another process, and (`REMOTE`) it is.
const REMOTE_KNOWN: u32 = 0x100;
const REMOTE: u32 = 0x200;

/// Returns the approximate length of an encoded span.
pub(super) fn bytes(span: &Span) -> usize {
    let attribute_bytes = |attributes: &[Attribute]| -> usize {
        attributes
            .iter()
            .map(|(name, value)| name.len() + 16 + value.len())
            .sum()
    };
    let state = span.state.as_ref().map_or(0, |state| state.len());
    160 + span.name.len()
        + state
        + attribute_bytes(&span.attributes)
        + span
            .events
            .iter()
            .map(|note| 48 + attribute_bytes(&note.attributes))
            .sum::<usize>()
}

/// Returns a request with these spans.
pub(super) fn request(spans: Vec<Span>, origin: &ExportResource) -> Request {
    let records = spans.len() as u64;
    let scope_spans = vec![ScopeSpans {
        scope: Some(origin.scope.clone()),
        spans: spans.into_iter().map(encode_span).collect(),
        ..ScopeSpans::default()
    }];
    let resource_spans = vec![ResourceSpans {
        resource: Some(origin.resource.clone()),
        scope_spans,
        ..ResourceSpans::default()
    }];
    Request {
        body: ExportTraceServiceRequest { resource_spans }
            .encode_to_vec()
            .into(),
        records,
    }
}

fn encode_span(span: Span) -> Sent {
    let remote = span.parent.is_some() && span.kind == SpanKind::Server;
    let error = span.error.as_ref().map(|error| text("error.type", error));
    Sent {
        trace_id: span.trace.0.to_vec(),
        span_id: span.id.0.to_vec(),
        parent_span_id: span
            .parent
            .map(|parent| parent.0.to_vec())
            .unwrap_or_default(),
        trace_state: span.state.map(String::from).unwrap_or_default(),
        flags: SAMPLED | REMOTE_KNOWN | if remote { REMOTE } else { 0 },
        name: span.name.into(),
        kind: match span.kind {
            SpanKind::Server => Kind::Server,
            SpanKind::Client => Kind::Client,
            SpanKind::Internal => Kind::Internal,
        } as i32,
        start_time_unix_nano: nanos(span.start),
        end_time_unix_nano: nanos(span.end),
        attributes: attributes(span.attributes).chain(error).collect(),
        events: span.events.into_iter().map(event).collect(),
        links: span.links.into_iter().map(link).collect(),
        status: span.error.map(|_| Status {
            code: StatusCode::Error as i32,
            message: String::new(),
        }),
        ..Sent::default()
    }
}

fn event(note: SpanEvent) -> Event {
    Event {
        time_unix_nano: nanos(note.at),
        name: note.name.to_owned(),
        attributes: attributes(note.attributes).collect(),
        dropped_attributes_count: 0,
    }
}

fn link(parent: Parent) -> Link {
    Link {
        trace_id: parent.trace.0.to_vec(),
        span_id: parent.span.0.to_vec(),
        trace_state: parent.state.map(String::from).unwrap_or_default(),
        flags: REMOTE_KNOWN | REMOTE | u32::from(parent.sampled),
        ..Link::default()
    }
}

fn attributes(pairs: Vec<Attribute>) -> impl Iterator<Item = KeyValue> {
    pairs.into_iter().map(|(name, value)| text(name, &value))
}
