//! The trace of a call, and the contents of its spans. Names are those of OpenTelemetry's semantic
//! conventions for MCP where they define one.

use std::sync::Arc;
use std::time::SystemTime;

use http::HeaderMap;

use super::audit::Body;
use super::entry::member;
use super::entry::object::finding;
use super::item::Item;
use super::redact::Redactor;
use super::{Approval, Recorder};
use crate::inspect::Finding;
use crate::message::{Direction, Message};
use crate::protocol::trace::{
    Attribute, Parent, Span, SpanEvent, SpanId, SpanKind, TraceHeaders, TraceId,
};
use crate::protocol::{AgentTransport, Call, CallError, Context, Trace, headers};

/// Maximum number of findings in a span.
const MAX_FINDINGS: usize = 32;
/// Replaces a method or a name that is not valid.
const OTHER: &str = "_OTHER";

impl Recorder {
    /// Returns the trace that a call over HTTP belongs to, like [`Self::trace`].
    pub fn trace_call(&self, call: &Call) -> Option<Arc<Trace>> {
        self.trace(&call.context, &call.headers, call.kind.message()?)
    }

    /// Returns the trace that a call belongs to, if its agent names one or spans of it are
    /// recorded. Its span begins now.
    pub fn trace(
        &self,
        context: &Context,
        headers: &HeaderMap,
        message: &Message,
    ) -> Option<Arc<Trace>> {
        let TraceHeaders {
            parent,
            carrier: links,
        } = TraceHeaders::extract(headers, message);
        let exporters = self.exporters.get();
        let (id, exporter) = match (&parent, exporters) {
            (Some(parent), Some(outlets)) => (
                parent.trace,
                outlets.spans.as_ref().filter(|_| parent.sampled),
            ),
            (None, Some(outlets)) if outlets.spans.is_some() => {
                let id = TraceId::generate();
                (id, outlets.sampling_exporter(id))
            }
            _ => return parent.map(|parent| Arc::new(Trace::unrecorded(&parent))),
        };
        let has_request = message
            .envelopes()
            .iter()
            .any(|envelope| envelope.method().is_some());
        let Some(span_exporter) = exporter.filter(|_| has_request) else {
            return parent.map(|parent| Arc::new(Trace::unrecorded(&parent)));
        };
        let mut span = Span::begin(
            id,
            SpanId::generate(),
            SpanKind::Server,
            &self.audit.name(&name(message)),
        );
        if let Some(parent) = parent {
            span.parent = Some(parent.span);
            span.state = self.safe_state(&parent);
        }
        span.links = links
            .into_iter()
            .map(|linked| Parent {
                state: self.safe_state(&linked),
                ..linked
            })
            .collect();
        span.add(self.attributes(context, message));
        Some(Arc::new(Trace::start(span, span_exporter.clone())))
    }

    /// Returns a `tracestate`, unless something in it would be masked in the audit log.
    fn safe_state(&self, parent: &Parent) -> Option<Box<str>> {
        parent
            .state
            .clone()
            .filter(|state| self.audit.name(state) == **state)
    }

    fn attributes(&self, context: &Context, message: &Message) -> Vec<Attribute> {
        let mut out: Vec<Attribute> = Vec::with_capacity(16);
        let text = |text: &str| (&*self.audit.name(text)).into();
        if let Some(envelope) = message.single() {
            let method = envelope.method().unwrap_or_default();
            out.push((member::method::NAME, text(method)));
            let object_name = headers::target_name(message, envelope);
            match (method, object_name) {
                ("tools/call", Some(tool)) => {
                    out.push((member::operation::NAME, "execute_tool".into()));
                    out.push((member::tool::NAME, text(&tool)));
                }
                ("prompts/get", Some(prompt)) => out.push((member::prompt::NAME, text(&prompt))),
                _ => {}
            }
            if let Some(id) = message.id(envelope).filter(|_| envelope.is_request()) {
                out.push((member::request::NAME, text(id.trim_matches('"'))));
            }
        }
        if let Some(revision) = &context.wire.revision {
            out.push((member::revision::NAME, (&**revision).into()));
        }
        if let Some(session) = &context.session {
            out.push((member::session::NAME, session.digest().into()));
        }
        if let Some(carrier) = context.wire.transport {
            out.push((member::transport::NAME, carrier.transport().into()));
        }
        if context.wire.transport == Some(AgentTransport::Http) {
            out.push(("network.protocol.name", "http".into()));
        }
        out.push((member::agent::NAME, (&*context.agent.0).into()));
        out.push((member::upstream::NAME, (&*context.upstream.0).into()));
        out
    }

    /// Records an inspected body in the spans of its call.
    pub(super) fn trace_judged(&self, body: &Body<'_>, items: &[Item<'_>]) {
        let Some(trace) = body
            .context
            .trace
            .as_deref()
            .filter(|trace| trace.is_recorded())
        else {
            return;
        };
        let took = body.inspection_time.unwrap_or_default();
        let now = SystemTime::now();
        let findings = items.iter().flat_map(|item| item.findings.iter().copied());
        let events = findings
            .take(MAX_FINDINGS)
            .map(|finding| finding_event(finding, now))
            .collect();
        let worst = items
            .iter()
            .find(|item| item.verdict == "block")
            .or(items.iter().find(|item| item.verdict != "pass"));
        let mut attributes: Vec<Attribute> =
            vec![(member::audit::NAME, body.audit.to_string().as_str().into())];
        attributes.push((
            member::verdict::NAME,
            worst.map_or("pass", |item| item.outcome(body.mode)).into(),
        ));
        if let Some(worst) = worst.filter(|worst| worst.outcome(body.mode) != worst.verdict) {
            attributes.push((member::would::NAME, worst.verdict.into()));
        }
        let rule = worst.and_then(|item| item.refused_by);
        if let (Some(rule), "block") = (rule, worst.map_or("pass", |item| item.outcome(body.mode)))
        {
            attributes.push((member::rule::NAME, rule.as_str().into()));
            trace.add_attributes([(member::rule::NAME, rule.as_str().into())]);
            trace.record_error("blocked");
        }
        let name = match body.direction {
            Direction::Outbound => "judge outbound",
            Direction::Inbound => "judge inbound",
        };
        if let (Some(waited), true) = (body.response_time, items.iter().any(|item| item.is_answer))
        {
            let upstream = vec![(member::upstream::NAME, (&*body.context.upstream.0).into())];
            trace.export_part(
                SpanKind::Client,
                "call upstream",
                waited + took,
                waited,
                upstream,
                vec![],
            );
        }
        trace.export_part(SpanKind::Internal, name, took, took, attributes, events);
        if body.direction == Direction::Inbound {
            items
                .iter()
                .filter(|item| item.is_answer)
                .for_each(|item| trace_answer_error(trace, item));
        }
    }

    /// Records a failed call in its span.
    pub(super) fn trace_failure(&self, context: &Context, error: &CallError) {
        if let Some(trace) = &context.trace {
            trace.add_attributes([(member::side::NAME, error.side().name().into())]);
            trace.record_error(error.name());
        }
    }

    /// Records an approval request in the span of its call.
    pub(super) fn trace_approval(&self, approval: &Approval<'_>) {
        let Some(trace) = &approval.context.trace else {
            return;
        };
        trace.add_attributes(
            [(member::outcome::NAME, approval.outcome.into())]
                .into_iter()
                .filter(|_| approval.outcome != "asked"),
        );
        if matches!(
            approval.outcome,
            "denied" | "expired" | "cancelled" | "nobody"
        ) {
            trace.record_error(approval.outcome);
        }
        if let Some(took) = approval.duration {
            let attributes = vec![
                (member::outcome::NAME, approval.outcome.into()),
                (member::way::NAME, approval.way.into()),
            ];
            trace.export_part(
                SpanKind::Internal,
                "ask a person",
                took,
                took,
                attributes,
                vec![],
            );
        }
    }
}

/// Records a call that was refused without inspection, since it was refused before.
pub(super) fn trace_repeated_refusal(context: &Context, rule: &str) {
    if let Some(trace) = &context.trace {
        trace.add_attributes([(member::rule::NAME, rule.into())]);
        trace.record_error("blocked");
    }
}

/// Records the error that the upstream reports.
fn trace_answer_error(trace: &Trace, item: &Item<'_>) {
    match (item.kind, item.body) {
        ("error", body) => {
            let code = body
                .and_then(|error| error.get("code"))
                .map(|code| code.raw())
                .filter(|code| code.parse::<i64>().is_ok());
            trace.add_attributes(code.map(|code| (member::status::NAME, code.into())));
            trace.record_error(code.unwrap_or(OTHER));
        }
        (_, Some(result))
            if result
                .get("isError")
                .is_some_and(|is_error| is_error.raw() == "true") =>
        {
            trace.record_error("tool_error")
        }
        _ => {}
    }
}

fn finding_event(finding: &Finding, at: SystemTime) -> SpanEvent {
    let attributes: Vec<Attribute> = vec![
        (finding::rule::NAME, finding.rule.as_str().into()),
        (finding::severity::NAME, finding.severity.name().into()),
        (finding::action::NAME, finding.action.name().into()),
        (finding::surface::NAME, finding.surface.name().into()),
    ];
    SpanEvent {
        name: "lychgate.finding",
        at,
        attributes,
    }
}

/// Returns a span's name: the method, and the tool or prompt. Both are text of an agent: those that
/// are not valid names, or may be secrets, are not used, so that spans have few different names.
fn name(message: &Message) -> String {
    let Some(envelope) = message.single() else {
        return "batch".to_owned();
    };
    let method = envelope
        .method()
        .filter(|method| is_name(method))
        .unwrap_or(OTHER);
    let named = headers::target_name(message, envelope)
        .filter(|_| matches!(method, "tools/call" | "prompts/get"));
    match named.filter(|name| is_name(name)) {
        Some(name) => format!("{method} {name}"),
        None => method.to_owned(),
    }
}

fn is_name(text: &str) -> bool {
    let is_word = text
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte));
    is_word
        && (1..=64).contains(&text.len())
        && Redactor::shared().is_some_and(|redactor| redactor.text(text, 64) == text)
}
