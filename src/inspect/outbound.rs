//! Judges messages from an agent to a server. Outbound messages are never rewritten.

use crate::detect::command::Script;
use crate::detect::flow::{DataLabels, FlowContext, Session};
use crate::detect::secret::SessionSecrets;
use crate::detect::url::Lookup;
use crate::detect::work::Budget;
use crate::detect::{Details, OutboundDetails, Place, ReadAs, Surface};
use crate::message::{Envelope, Message, Path, Role, Step, pointer};
use crate::protocol::AuditId;
use crate::text::Text;

use super::arguments::place_arguments;
use super::files;
use super::string::{Judge, Site};
use super::{Coverage, InspectContext, Inspection, Policy, SkipReason, Uninspected, surface};

/// One message of a body, on its way to a server.
pub(super) struct Outbound<'a> {
    pub(super) policy: &'a Policy,
    pub(super) message: &'a Message,
    pub(super) envelope: &'a Envelope,
    pub(super) item: usize,
    pub(super) audit: AuditId,
    pub(super) context: &'a InspectContext,
    pub(super) secrets: Option<&'a SessionSecrets<'a>>,
    pub(super) lookup: Option<&'a Lookup<'a>>,
    pub(super) flow: Option<&'a Session<'a>>,
    /// The remaining work of the message.
    pub(super) budget: &'a Budget,
}

impl Outbound<'_> {
    /// Judges every string of the message; adds findings and coverage to `inspection`.
    pub(super) fn inspect(&self, inspection: &mut Inspection) {
        if self.policy.outbound.rules().is_empty() && !self.policy.ground.roots.is_set() {
            return self.count_strings(&mut inspection.coverage);
        }
        let method = self.envelope.method();
        let body = self.message.body(self.envelope);
        let tool = body
            .filter(|_| method == Some("tools/call"))
            .and_then(|body| body.get_str("name"));
        let mut judge = Judge {
            rules: &self.policy.outbound,
            suppressions: &self.policy.suppressions,
            audit: self.audit,
            item: self.item,
            budget: self.budget,
            findings: &mut inspection.findings,
            readings: &mut inspection.readings,
            matches: Vec::new(),
            numbers: false,
            trace: self.context.trace,
        };
        let coverage = &mut inspection.coverage;
        let definition = tool.as_deref().and_then(|tool| {
            self.context
                .tools
                .as_ref()
                .and_then(|tools| tools.definition(tool))
        });
        let labels = definition
            .as_ref()
            .map_or_else(DataLabels::default, |definition| definition.data_labels());
        let flow = self
            .flow
            .map(|session| self.policy.flow.context(session, tool.as_deref(), labels));
        let schema = definition
            .as_ref()
            .and_then(|definition| definition.schema());
        let outbound = OutboundDetails {
            lookup: self.lookup,
            ..OutboundDetails::default()
        };
        let base = Place {
            details: Details::Outbound(outbound),
            method,
            tool: tool.as_deref(),
            scope: Some(&self.policy.ground),
            session_secrets: self.secrets,
            budget: Some(self.budget),
            flow: flow.map(|flow| FlowContext { schema, ..flow }),
            ..Place::default()
        };
        let prefix = if self.message.is_batch() {
            format!("/{}", self.item)
        } else {
            String::new()
        };
        self.message.value(self.envelope).strings(|path, string| {
            if tool.is_some() && is_argument(path) {
                return;
            }
            coverage.strings += 1;
            coverage.bytes += string.value.len();
            if surface::is_fixed(path, string.role, &string.value) {
                return;
            }
            // A resource that is read is usually a file.
            let resource =
                matches!(method, Some("resources/read" | "resources/subscribe")) && is_uri(path);
            let read_as = if resource { ReadAs::Path } else { ReadAs::Text };
            let place = Place {
                surface: surface::outbound_surface(self.envelope, path),
                role: string.role,
                details: Details::Outbound(OutboundDetails {
                    read_as,
                    ..outbound
                }),
                ..base
            };
            judge.judge_string(
                &Text::new(string.value),
                &place,
                &Site::opaque(&|| prefix.clone() + &pointer(path)),
            );
        });
        let call_place = Place {
            surface: Surface::Arguments,
            ..base
        };
        if let Some(tool) = tool.as_deref() {
            let mut matches = Vec::new();
            judge.rules.scan_call(&call_place, &mut matches);
            judge.record_matches(
                matches,
                tool,
                &call_place,
                &Site::opaque(&|| format!("{prefix}/params/name")),
            );
        }
        let arguments = body
            .filter(|_| tool.is_some())
            .and_then(|body| body.get("arguments"));
        let Some((tool, arguments)) = tool.as_deref().zip(arguments) else {
            return;
        };
        let units = place_arguments(tool, arguments, &self.policy.readers, definition.as_deref());
        let read_only = self.policy.read_only.for_call(tool, &units);
        let written = units.written_texts(tool);
        let sources = units.source_texts(&written);
        for unit in &units.units {
            if !unit.joined {
                coverage.strings += 1;
                coverage.bytes += unit.text.len();
            }
            if unit.read_as == ReadAs::Path
                && unit.role == Role::Value
                && !self.policy.ground.roots.resolves_links()
                && self.policy.ground.roots.is_set()
            {
                let at = prefix.clone() + &units.pointer(unit);
                coverage.uninspected.push(Uninspected {
                    at,
                    reason: SkipReason::Links,
                    bytes: unit.text.len(),
                });
            }
            let script = matches!(unit.read_as, ReadAs::Shell | ReadAs::Code(_))
                .then(|| self.parse_script(&unit.text, unit.read_as));
            let place = Place {
                surface: Surface::Arguments,
                role: unit.role,
                details: Details::Outbound(OutboundDetails {
                    argument: Some(&unit.argument),
                    read_as: unit.read_as,
                    read_only: read_only.covers(unit),
                    source_code: matches!(unit.read_as, ReadAs::Code(_))
                        || sources
                            .iter()
                            .any(|source| std::ptr::eq(*source, &*unit.text)),
                    script: script.as_ref(),
                    ..outbound
                }),
                ..base
            };
            judge.judge_string(
                &Text::new(&*unit.text),
                &place,
                &Site::opaque(&|| prefix.clone() + &units.pointer(unit)),
            );
            if let Some(script) = script.as_ref().filter(|_| self.context.memory.is_some()) {
                files::record_script_effects(
                    script,
                    !unit.joined,
                    &mut inspection.session_update.files,
                );
            }
        }
        for (code, read_as) in written.iter().flat_map(|text| text.code()) {
            let script = self.parse_script(&code, read_as).as_source();
            let mut matches = Vec::new();
            judge.rules.scan_written(&script, &call_place, &mut matches);
            judge.record_matches(
                matches,
                "",
                &call_place,
                &Site::opaque(&|| format!("{prefix}/params/arguments")),
            );
        }
        let value_units = || {
            units
                .units
                .iter()
                .filter(|unit| unit.role == Role::Value && !unit.joined)
        };
        let pieces: Vec<&str> = value_units().map(|unit| &*unit.text).collect();
        judge.judge_pieces(
            &pieces,
            &call_place,
            &Site::opaque(&|| format!("{prefix}/params/arguments")),
        );
        let Some(memory) = &self.context.memory else {
            return;
        };
        files::record_written_files(tool, &units, &written, &mut inspection.session_update.files);
        for unit in value_units() {
            for pieces in memory.combined_values(tool, &unit.argument, &unit.text) {
                let at = || prefix.clone() + &units.pointer(unit);
                judge.judge_pieces(&pieces, &call_place, &Site::opaque(&at));
            }
            inspection
                .session_update
                .store_piece(memory, tool, &unit.argument, &unit.text);
        }
    }

    /// Counts the strings of a message to which no rule applies: how each argument is read does not
    /// matter then.
    fn count_strings(&self, coverage: &mut Coverage) {
        self.message.value(self.envelope).strings(|_, string| {
            coverage.strings += 1;
            coverage.bytes += string.value.len();
        });
    }

    /// Parses a string that is executed, in view of what earlier calls have written.
    fn parse_script<'t>(&self, text: &'t str, read_as: ReadAs) -> Script<'t>
    where
        Self: 't,
    {
        let script = Script::new(text, read_as).with_programs(self.policy.outbound.programs());
        match self
            .context
            .memory
            .as_ref()
            .map(|memory| &*memory.files)
            .filter(|files| !files.is_empty())
        {
            Some(files) => script.with_written_files(files),
            None => script,
        }
    }
}

/// Returns whether a string is the URI of a resource.
fn is_uri(path: &Path<'_>) -> bool {
    matches!(path, [Step::Key(params), Step::Key(uri)] if params == "params" && uri == "uri")
}

/// Returns whether a string is among the arguments of a tool call.
fn is_argument(path: &Path<'_>) -> bool {
    matches!(path, [Step::Key(params), Step::Key(arguments), _, ..] if params == "params" && arguments == "arguments")
}
