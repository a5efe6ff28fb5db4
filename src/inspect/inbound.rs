//! Judges messages from a server to an agent.

mod text;

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::detect::flow::{DataLabels, FlowContext, Session};
use crate::detect::secret::SessionSecrets;
use crate::detect::shadow::{KnownTools, Names};
use crate::detect::work::Budget;
use crate::detect::{Details, InboundDetails, Place, Surface};
use crate::message::{
    Edit, Envelope, Message, MessageKind, Path, Role, Step, Value, ValueKind, pointer, quote,
};
use crate::protocol::{AuditId, Context, opaque::is_opaque};
use crate::rules::{Action, Severity};
use crate::text::Text;

use super::binary;
use super::blocks;
use super::classify::Classifier;
use super::clean_texts::CleanTexts;
use super::cross_block::{CrossBlockText, StreamTail, judge_rows};
use super::finding::GateFinding;
use super::instruction_files::may_hold_file;
use super::numbered_parts::NumberedParts;
use super::ordered_commands::OrderedCommands;
use super::result_size::{broken_digests, quarter_tokens};
use super::rewrite::Outcome;
use super::string::{Judge, Site};
use super::tools::Tools;
use super::truncate::{Paging, counted_surface};
use super::{Inspection, Policy, Refusal, surface};

/// One message of a body, on its way to an agent.
pub(super) struct Inbound<'a> {
    pub(super) policy: &'a Policy,
    pub(super) message: &'a Message,
    pub(super) envelope: &'a Envelope,
    pub(super) item: usize,
    pub(super) context: &'a Context,
    pub(super) audit: AuditId,
    pub(super) secrets: Option<&'a SessionSecrets<'a>>,
    /// The server's tools, as far as they are known.
    pub(super) tools: Option<&'a Tools>,
    pub(super) flow: Option<&'a Session<'a>>,
    /// How text that does not fit is stored, if it is.
    pub(super) paging: Option<&'a Paging>,
    pub(super) names: Option<(&'a Names, &'a str)>,
    /// The external classifier, if one is configured.
    pub(super) classifier: Option<Classifier<'a>>,
    /// Texts that are not judged again, if the gate remembers any.
    pub(super) clean_texts: Option<&'a CleanTexts>,
    /// The last texts that the agent received on the same stream.
    pub(super) stream_tail: &'a StreamTail,
    /// Whether findings contain the text in which they were found.
    pub(super) trace: bool,
    /// The remaining work of the message.
    pub(super) budget: &'a Budget,
}

impl Inbound<'_> {
    /// Judges every string of the message; adds findings and coverage to `inspection`, and changes
    /// to `edits`. Returns a refusal if the edited response cannot conform to what its server
    /// declared.
    pub(super) fn inspect(
        &self,
        inspection: &mut Inspection,
        edits: &mut Vec<Edit>,
    ) -> Option<Refusal> {
        let request = self
            .message
            .id(self.envelope)
            .filter(|_| self.envelope.is_answer())
            .and_then(|id| self.context.open_request(id));
        let method = request
            .map(|asked| &*asked.method)
            .or(self.envelope.method());
        // Values that the operator guards may come back, too.
        let ground = Some(&*self.policy.ground);
        let request_tool = request.and_then(|asked| asked.tool.as_deref());
        let flow = self
            .flow
            .map(|session| self.flow_context(session, request_tool));
        let first_edit = edits.len();
        let mut content_bytes = 0;
        let mut structured_bytes = 0;
        // The containers of the current value, and the name of the tool or other item that is
        // described there.
        let mut holders: Vec<Value<'_>> = Vec::new();
        let mut item_name: Option<Cow<'_, str>> = None;
        let mut cross_block = CrossBlockText::after(self.stream_tail);
        let mut stream_tail = self.stream_tail.clone();
        let mut numbered_parts = NumberedParts::default();
        // Entries of lists that are removed whole, by their start offset.
        let mut removed_entries = BTreeSet::new();
        let mut judge = Judge {
            rules: &self.policy.inbound,
            suppressions: &self.policy.suppressions,
            audit: self.audit,
            item: self.item,
            budget: self.budget,
            findings: &mut inspection.findings,
            readings: &mut inspection.readings,
            matches: Vec::new(),
            numbers: self.policy.numbers,
            trace: self.trace,
        };
        let listed_names = self.listed_names(method);
        let nobody = Names::default();
        let (all, server) = self.names.unwrap_or((&nobody, ""));
        let known_tools = listed_names.as_ref().map(|here| KnownTools {
            all_servers: all,
            same_list: here,
            server,
        });
        let coverage = &mut inspection.coverage;
        let result_size = &mut inspection.result_size;
        let unclassified = &mut inspection.unclassified;
        let is_result = self.envelope.kind == MessageKind::Result;
        let rendering = self.policy.pages.for_request(request);
        let ordered_commands = OrderedCommands::new(&self.policy.outbound, &self.policy.ground);
        let is_instruction_file = self.policy.instruction_files.is_answer_to(request);
        self.message.value(self.envelope).walk(|path, value, role| {
            if matches!(value.kind(), ValueKind::Object | ValueKind::Array) {
                holders.truncate(path.len());
                holders.push(value);
                if path.len() == 3 {
                    item_name = value.get_str("name");
                }
                return;
            }
            let string = value.str();
            if string.is_none() && !self.policy.numbers {
                return;
            }
            if let Some(string) = &string
                && surface::is_fixed(path, role, string)
            {
                coverage.strings += 1;
                coverage.bytes += string.len();
                if is_result {
                    result_size.quarter_tokens += quarter_tokens(string);
                }
                return;
            }
            let surface = surface::inbound_surface(self.envelope, request, path);
            let tool = if surface == Surface::Definition {
                item_name.as_deref()
            } else {
                request_tool
            };
            let known_tools = known_tools.as_ref();
            let budget = Some(self.budget);
            let render = rendering.within(holders.last().copied());
            let place = Place {
                surface,
                method,
                tool,
                role,
                session_secrets: self.secrets,
                scope: ground,
                flow,
                budget,
                details: Details::Inbound(InboundDetails {
                    known_tools,
                    render,
                    instruction_file: is_instruction_file && may_hold_file(surface),
                    ordered_commands: Some(&ordered_commands),
                    ..InboundDetails::default()
                }),
                ..Place::default()
            };
            let at = || self.pointer(path);
            let block = blocks::block_depth(path)
                .and_then(|depth| holders.get(depth))
                .copied();
            let entry = blocks::entry_depth(path)
                .and_then(|depth| holders.get(depth))
                .copied();
            let opaque = || is_opaque(path, role);
            let site = Site {
                at: &at,
                opaque: &opaque,
                in_block: block.is_some() || entry.is_some(),
            };
            let Some(string) = string else {
                edits.extend(
                    judge
                        .judge_number(path, value, &place, &site)
                        .map(|replacement| Edit::json(value.span(), quote(&replacement))),
                );
                return;
            };
            if role == Role::Value {
                let holder = path.len().checked_sub(1).and_then(|at| holders.get(at));
                if let Some((declared, bytes, exact)) =
                    holder.and_then(|holder| block_data(path, *holder, &string))
                {
                    let contents = binary::open(&bytes, self.budget);
                    let site = Site {
                        at: &at,
                        opaque: &|| true,
                        in_block: block.is_some(),
                    };
                    let block_notice = judge.judge_contents(
                        &contents,
                        &declared,
                        &place,
                        &site,
                        coverage,
                        string.len(),
                    );
                    let block_edit = block_notice
                        .zip(block)
                        .map(|(notice, block)| blocks::replace_block(block, path, &notice));
                    let is_binary = exact || block_edit.is_some();
                    edits.extend(block_edit);
                    if is_binary {
                        return;
                    }
                }
            }
            coverage.strings += 1;
            coverage.bytes += string.len();
            let mut length = string.len();
            let mut tokens = if is_result {
                quarter_tokens(&string)
            } else {
                0
            };
            let text = Text::new(string);
            let inner_span = value.span().start + 1..value.span().end.saturating_sub(1);
            let continues = role == Role::Value && surface::reads_on(surface, path);
            if continues && !judge.rules.rules().is_empty() {
                cross_block.add(text.raw(), inner_span.clone());
            }
            if role == Role::Value && surface == Surface::Definition {
                numbered_parts.add(text.raw(), inner_span.clone());
            }
            let findings_before = judge.findings.len();
            let mut outcome = self.judge_text(&text, &place, &site, block, &mut judge, coverage);
            if let Some(classifier) = self.classifier {
                outcome = classifier.judge(&text, outcome, &mut judge, &place, &site, unclassified);
            }
            // Lists of tools come from their provider, and are not data that the tools return.
            if let Some(tool_flow) = flow.filter(|_| !surface.describes_server()) {
                match &outcome {
                    Outcome::Keep => tool_flow.record_received(&text),
                    Outcome::Replace(replacement) => {
                        tool_flow.record_received(&Text::new(replacement.as_str()))
                    }
                    Outcome::Withhold(_) => {}
                }
            }
            if let Some(entry) = entry {
                // Only the entry is removed from a list: without the other entries the server would
                // be of no use.
                let blocked = judge
                    .findings
                    .iter_mut()
                    .skip(findings_before)
                    .filter(|finding| finding.action == Action::Block);
                let is_blocked = blocked
                    .map(|finding| finding.action = Action::Withhold)
                    .count()
                    > 0;
                if is_blocked || opaque() && matches!(outcome, Outcome::Withhold(_)) {
                    removed_entries.insert(entry.span().start);
                    return;
                }
            }
            match &outcome {
                Outcome::Keep if continues => stream_tail.add(text.raw()),
                _ if continues => stream_tail.clear(),
                _ => {}
            }
            match outcome {
                Outcome::Keep => {}
                Outcome::Replace(replacement) => {
                    length = replacement.len();
                    tokens = quarter_tokens(&replacement);
                    edits.push(Edit::text(inner_span, replacement));
                }
                Outcome::Withhold(notice) => {
                    length = notice.len();
                    edits.push(block.map_or_else(
                        || Edit::text(inner_span, &*notice),
                        |block| blocks::replace_block(block, path, &notice),
                    ));
                }
            }
            result_size.quarter_tokens += tokens;
            match counted_surface(surface, path, role) {
                Some(Surface::Structured) => structured_bytes += length,
                Some(_) => content_bytes += length,
                None => {}
            }
        });
        let place = Place {
            surface: if is_result {
                Surface::Content
            } else {
                Surface::Notification
            },
            method,
            tool: request_tool,
            session_secrets: self.secrets,
            scope: ground,
            flow,
            budget: Some(self.budget),
            details: Details::Inbound(InboundDetails {
                instruction_file: is_instruction_file && is_result,
                ordered_commands: Some(&ordered_commands),
                ..InboundDetails::default()
            }),
            ..Place::default()
        };
        let at = || {
            if is_result {
                "/result/content"
            } else {
                "/params"
            }
            .to_owned()
        };
        let site = Site {
            at: &at,
            opaque: &|| false,
            in_block: false,
        };
        if cross_block.judge(&mut judge, &place, &site, edits, self.message.bytes()) {
            stream_tail.clear();
        }
        for whole in numbered_parts.wholes() {
            let at = || self.pointer(&[Step::Key("result".into())]);
            let place = Place {
                surface: Surface::Definition,
                ..place
            };
            whole.judge(
                &mut judge,
                &place,
                &Site { at: &at, ..site },
                edits,
                self.message.bytes(),
            );
        }
        if let Some(structured) = self
            .message
            .body(self.envelope)
            .and_then(|body| body.get("structuredContent"))
        {
            let place = Place {
                surface: Surface::Structured,
                ..place
            };
            let at = || {
                self.pointer(&[
                    Step::Key("result".into()),
                    Step::Key("structuredContent".into()),
                ])
            };
            let site = Site { at: &at, ..site };
            judge_rows(
                structured,
                &mut judge,
                &place,
                &site,
                edits,
                self.message.bytes(),
            );
        }
        inspection.stream_tail = stream_tail;
        edits.extend(blocks::remove_entries(
            self.message.body(self.envelope),
            &removed_entries,
        ));
        blocks::drop_nested_edits(edits, first_edit);
        if is_result && surface::is_tool_result(request) {
            self.shorten(
                request_tool,
                content_bytes,
                structured_bytes,
                edits,
                first_edit,
                &mut inspection.result_size,
            );
        }
        let new_edits = edits.get_mut(first_edit..).unwrap_or_default();
        let broken = broken_digests(self.message, self.envelope, new_edits, |path| {
            self.pointer(path)
        });
        inspection.result_size.broken_digests.extend(broken);
        self.fit_output_schema(request_tool, new_edits, inspection)
    }

    /// Ensures that the edited `structuredContent` conforms to its schema. If it cannot, the
    /// response is refused.
    fn fit_output_schema(
        &self,
        tool: Option<&str>,
        edits: &mut [Edit],
        inspection: &mut Inspection,
    ) -> Option<Refusal> {
        let structured = self.message.body(self.envelope)?.get("structuredContent")?;
        let span = structured.span();
        let mut inner_edits: Vec<&mut Edit> = edits
            .iter_mut()
            .filter(|edit| span.contains(&edit.span.start))
            .collect();
        if inner_edits.is_empty() {
            return None;
        }
        let tools = self.tools.filter(|tools| !tools.is_stale())?;
        tools
            .definition(tool?)?
            .fit(structured, &mut inner_edits)
            .err()?;
        let gate_finding = GateFinding {
            rule: "output-schema",
            title: "What is left of the answer does not fit the tool's output schema",
            severity: Severity::Medium,
            surface: Surface::Structured,
            at: self.pointer(&[
                Step::Key("result".into()),
                Step::Key("structuredContent".into()),
            ]),
            item: self.item,
            reading: "schema",
        };
        inspection
            .findings
            .push(gate_finding.finding(Action::Block, structured.raw()));
        let why = "A part of it was to be withheld or cut off, and the schema leaves no room for that. Go on without this \
                   answer, ask for less of it, or ask the user to look at it.";
        Some(gate_finding.refusal(why.to_owned()))
    }

    /// Returns the data flow context of a tool's response.
    fn flow_context<'s>(&self, session: &'s Session<'s>, tool: Option<&str>) -> FlowContext<'s> {
        let definition = tool.and_then(|tool| self.tools.and_then(|tools| tools.definition(tool)));
        let labels =
            definition.map_or_else(DataLabels::default, |definition| definition.data_labels());
        self.policy.flow.context(session, tool, labels)
    }

    /// Returns the names of the tools that the message lists, if it is a list of tools.
    fn listed_names(&self, method: Option<&str>) -> Option<Names> {
        let tools = self
            .message
            .body(self.envelope)
            .filter(|_| method == Some("tools/list"))?
            .get("tools")?;
        let (mut names, server) = (
            Names::default(),
            self.names.map_or("", |(_, server)| server),
        );
        let tool_names = tools.elements().filter_map(|tool| tool.get_str("name"));
        tool_names.for_each(|name| names.add(server, &name));
        Some(names)
    }

    pub(super) fn pointer(&self, path: &Path<'_>) -> String {
        if self.message.is_batch() {
            format!("/{}{}", self.item, pointer(path))
        } else {
            pointer(path)
        }
    }
}

/// Returns the declared type and the bytes of a binary block, if the string at `path` is one, and
/// whether the string is strictly valid base64. If it is not, it is judged both as text and as what
/// a decoder that skips other characters returns.
fn block_data(path: &Path<'_>, holder: Value<'_>, string: &str) -> Option<(String, Vec<u8>, bool)> {
    let declared = binary::declared_type(path, holder)?;
    match binary::decode_base64(string) {
        Some(bytes) => Some((declared, bytes, true)),
        None => Some((
            declared,
            binary::decode_leniently(string.as_bytes())?,
            false,
        )),
    }
}
