//! The policy by which one upstream's traffic is judged.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::config::{
    ChangesConfig, ClassifierConfig, EvidenceLevel, FlowConfig, Limits, PolicyConfig, SchemaConfig,
    Scope, ToolLimits,
};
use crate::detect::flow::{DataLabels, Session};
use crate::detect::secret::SessionSecrets;
use crate::detect::url::Lookup;
use crate::detect::work::Budget;
use crate::detect::{AccessScope, Place, Surface};
use crate::document::Fault;
use crate::message::{Direction, Message};
use crate::protocol::{AuditId, Context};
use crate::rules::{Find, Library, RuleSet};
use crate::text::{Text, glob_matches};

use super::classify::{self, Classifier, Unclassified};
use super::clean_texts::{CleanTexts, PolicyId};
use super::confirm::Confirm;
use super::consequence::{question, refusal};
use super::context::InspectContext;
use super::definitions::{self, HeldCalls, ListComparison};
use super::ground;
use super::inbound::Inbound;
use super::instruction_files::InstructionFileSettings;
use super::memory::{Memory, SessionUpdate};
use super::outbound::Outbound;
use super::pages::Pages;
use super::read_only::ReadOnly;
use super::readers::Readers;
use super::rewrite::Outcome;
use super::string::{Judge, Site};
use super::tools::contract::Contract;
use super::tools::overlay::Overlays;
use super::truncate::Caps;
use super::{
    Coverage, Finding, Inspection, Mode, Refusal, SkipReason, Suppressions, Verdict, skip_reason,
};

/// The policy by which one upstream's traffic is judged. Immutable: a reload creates a new one.
#[derive(Clone, Debug)]
pub struct Policy {
    pub(super) id: PolicyId,
    /// The name in the config.
    pub name: Box<str>,
    /// Whether verdicts are enforced. Judging does not depend on it.
    pub mode: Mode,
    /// What is stored of messages as evidence.
    pub evidence: EvidenceLevel,
    pub(super) outbound: RuleSet,
    pub(super) inbound: RuleSet,
    /// The suppressions: findings that they match have no consequence.
    pub(super) suppressions: Suppressions,
    pub(super) caps: Caps,
    pub(super) pages: Pages,
    pub(super) instruction_files: InstructionFileSettings,
    /// The policy's settings for how arguments are read.
    pub(super) readers: Readers,
    pub(super) read_only: ReadOnly,
    /// Limits on calls of tools, by glob, most specific first.
    tools: Vec<(Box<str>, ToolLimits)>,
    pub(super) ground: Arc<AccessScope>,
    confirm: Confirm,
    /// The scopes that an approval may have, narrowest first.
    pub(super) scopes: Vec<Scope>,
    pub(super) through_agent: bool,
    /// The data flow labels of tools.
    pub(super) flow: Arc<FlowConfig>,
    /// Whether a rule depends on what was received earlier.
    pub(super) has_flow_rules: bool,
    /// Whether a rule searches for data that may be a number.
    pub(super) numbers: bool,
    /// The operator's changes to the definitions of tools.
    overlays: Arc<Overlays>,
    schema: SchemaConfig,
    /// How changed definitions are handled.
    changes: ChangesConfig,
    /// Timeout for resolving the names of hosts that a call would reach; `None` if they are not
    /// resolved.
    lookup_timeout: Option<Duration>,
    /// The external classifier for what servers send.
    classifier: Option<Arc<ClassifierConfig>>,
    /// Reasons for not inspecting content that block its message.
    blocking_reasons: Vec<SkipReason>,
}

/// The result of judging a text that is not a message.
#[derive(Clone, Debug)]
pub struct TextInspection {
    /// The decision of the rules.
    pub verdict: TextVerdict,
    /// The findings, strongest first.
    pub findings: Vec<Finding>,
    /// How much was inspected.
    pub coverage: Coverage,
    /// The state that the text adds for later messages.
    pub session_update: SessionUpdate,
}

/// The decision about a text that is not a message.
#[derive(Clone, Debug)]
pub enum TextVerdict {
    /// The text is forwarded unchanged.
    Pass,
    /// This text is forwarded instead.
    Rewrite(String),
    /// The text is not forwarded.
    Block(Refusal),
}

impl Policy {
    /// Selects the rules of both directions.
    ///
    /// # Errors
    /// Every override and pack that names nothing or cannot be applied.
    pub fn new(name: &str, config: &PolicyConfig, library: &Library) -> Result<Self, Vec<Fault>> {
        let (outbound, inbound) = library.rule_sets(config)?;
        let suppressions = Suppressions::new(&config.suppress, library)?;
        let read_only = ReadOnly::new(name, config, &outbound)?;
        let overlays = Overlays::new(name, config)?;
        let numbers = inbound
            .rules()
            .iter()
            .any(|rule| matches!(*rule.find, Find::Personal(_)));
        let has_flow_rules = outbound
            .rules()
            .iter()
            .any(|rule| matches!(*rule.find, Find::Flow(_)));
        Ok(Self {
            id: PolicyId::new(),
            name: name.into(),
            mode: if config.enforce {
                Mode::Enforce
            } else {
                Mode::Observe
            },
            outbound,
            inbound,
            suppressions,
            caps: Caps::new(config),
            pages: Pages::new(config),
            instruction_files: InstructionFileSettings::new(config),
            readers: Readers::new(config),
            read_only,
            tools: config
                .tools
                .iter()
                .map(|(glob, tool)| (glob.as_str().into(), tool.limits.clone()))
                .collect(),
            ground: Arc::new(ground::policy_scope(config)),
            confirm: Confirm::new(config),
            scopes: config.scopes.clone(),
            through_agent: config.through_agent,
            flow: Arc::new(config.flow.clone()),
            has_flow_rules,
            numbers,
            overlays: Arc::new(overlays),
            schema: config.schema,
            changes: config.changes.clone(),
            lookup_timeout: config.places.resolve,
            evidence: config.evidence,
            classifier: config.classifier.clone(),
            blocking_reasons: config.block_uninspected.clone(),
        })
    }

    /// Returns the limits on calls of a tool, with their glob: the most specific one that sets any.
    pub fn tool_limits(&self, tool: &str) -> Option<(&str, &ToolLimits)> {
        let mut fitting = self
            .tools
            .iter()
            .filter(|(glob, limits)| *limits != ToolLimits::default() && glob_matches(glob, tool));
        fitting.next().map(|(glob, limits)| (&**glob, limits))
    }

    /// Returns the timeout for resolving the names that an inspection has left open, if there are
    /// any and their addresses matter.
    pub fn resolve_timeout(&self, inspection: &Inspection) -> Option<Duration> {
        let is_open = !inspection.unresolved_names.names.is_empty()
            && !matches!(inspection.verdict, Verdict::Block(_));
        self.lookup_timeout.filter(|_| is_open)
    }

    /// Returns the classifier, and the texts to be scored, of a message that the rules do not
    /// already refuse.
    pub fn take_unclassified(
        &self,
        inspection: &mut Inspection,
    ) -> Option<(&Arc<ClassifierConfig>, Unclassified)> {
        let is_open =
            !inspection.unclassified.is_empty() && !matches!(inspection.verdict, Verdict::Block(_));
        let classifier = self.classifier.as_ref().filter(|_| is_open)?;
        Some((classifier, std::mem::take(&mut inspection.unclassified)))
    }

    /// Returns whether there is any rule, so that the state from earlier messages matters.
    pub fn has_rules(&self) -> bool {
        !self.outbound.rules().is_empty() || !self.inbound.rules().is_empty()
    }

    /// Returns the same rules with another mode.
    pub fn with_mode(&self, mode: Mode) -> Self {
        Self {
            mode,
            ..self.clone()
        }
    }

    /// Returns the same rules with another access scope for calls.
    pub fn with_ground(&self, ground: AccessScope) -> Self {
        Self {
            ground: Arc::new(ground),
            ..self.clone()
        }
    }

    /// Returns the same rules with other data flow labels of tools.
    pub fn with_flow(&self, flow: FlowConfig) -> Self {
        Self {
            flow: Arc::new(flow),
            ..self.clone()
        }
    }

    /// Returns the access scope of calls.
    pub fn ground(&self) -> &AccessScope {
        &self.ground
    }

    /// Compares what a message lists with what is pinned.
    pub fn compare_lists(
        &self,
        message: &Message,
        context: &Context,
        pins: &definitions::Pins,
        limits: &Limits,
    ) -> ListComparison {
        let max_size = (limits.pinned_definitions, limits.pinned_definition_bytes);
        definitions::Reader {
            pins,
            changes: &self.changes,
            rules: &self.inbound,
            mode: self.mode,
            max_size,
        }
        .read(message, context)
    }

    /// Returns whether another policy shows lists of tools in the same way, as far as the
    /// operator's changes are concerned.
    pub fn shows_tools_like(&self, other: &Self) -> bool {
        self.mode == other.mode && self.overlays.visible() == other.overlays.visible()
    }

    /// Returns whether another policy handles changed definitions in the same way.
    pub fn holds_like(&self, other: &Self) -> bool {
        (self.mode, &self.changes) == (other.mode, &other.changes)
    }

    /// Returns the bytes of a list of tools as shown to agents; `None` if it is unchanged.
    pub fn visible_list(&self, message: &Message, context: &Context) -> Option<Bytes> {
        if self.mode == Mode::Observe {
            None
        } else {
            self.overlays.apply_to_lists(message, context)
        }
    }

    /// Returns whether a tool is hidden from agents and cannot be called by them.
    pub fn hides(&self, tool: &str) -> bool {
        self.mode == Mode::Enforce && self.overlays.hides(tool)
    }

    /// Judges a message by itself, as [`Self::inspect`] does: nothing is known of its session, and
    /// its audit id is a new one.
    pub fn inspect_alone(
        &self,
        direction: Direction,
        message: &Message,
        context: &Context,
    ) -> Inspection {
        let audit = AuditId::generate();
        self.inspect(
            direction,
            message,
            context,
            audit,
            &InspectContext::default(),
        )
    }

    /// Judges a message, each item of a batch individually. `audit` identifies the quarantined
    /// content in notices.
    pub fn inspect(
        &self,
        direction: Direction,
        message: &Message,
        context: &Context,
        audit: AuditId,
        inspect_context: &InspectContext,
    ) -> Inspection {
        let mut inspection = Inspection {
            classified: inspect_context.classified.clone(),
            ..Inspection::default()
        };
        let classifier = self.classifier.as_deref().map(|config| Classifier {
            config,
            classified: inspect_context.classified.as_deref(),
        });
        let lookup = self
            .lookup_timeout
            .filter(|_| direction == Direction::Outbound)
            .map(|_| Lookup::new(inspect_context.answers.as_deref()));
        let secrets = inspect_context
            .memory
            .as_ref()
            .map(|memory| SessionSecrets::new(&memory.fingerprints, memory.upstream));
        let flow = inspect_context
            .memory
            .as_ref()
            .filter(|_| self.has_flow_rules)
            .map(Memory::session);
        let mut edits = Vec::new();
        let mut refusals = Vec::new();
        let mut questions = Vec::new();
        let budget = Budget::new(inspect_context.work);
        // A trace shows what was examined, and a classifier scores each text. Without a session,
        // nobody looks for secrets in a text.
        let clean_texts = inspect_context.clean_texts.as_deref().filter(|_| {
            !inspect_context.trace
                && classifier.is_none()
                && secrets.is_some()
                && !self.inbound.rules().is_empty()
        });
        for (item, envelope) in message.envelopes().iter().enumerate() {
            let findings_before = inspection.findings.len();
            let uninspected = inspection.coverage.uninspected.len();
            let exceeded = budget.exceeded().count();
            match direction {
                Direction::Inbound => {
                    let inbound = Inbound {
                        policy: self,
                        message,
                        envelope,
                        item,
                        context,
                        audit,
                        secrets: secrets.as_ref(),
                        paging: inspect_context.paging.as_ref(),
                        tools: inspect_context.tools.as_deref(),
                        flow: flow.as_ref(),
                        names: inspect_context
                            .names
                            .as_ref()
                            .map(|(names, server)| (&**names, &**server)),
                        classifier,
                        clean_texts,
                        stream_tail: &inspect_context.stream_tail,
                        trace: inspect_context.trace,
                        budget: &budget,
                    };
                    refusals.extend(inbound.inspect(&mut inspection, &mut edits));
                    refusals.extend(
                        classifier.and_then(|classifier| {
                            classifier.report_failure(item, &mut inspection)
                        }),
                    );
                }
                Direction::Outbound => {
                    let secrets = secrets.as_ref();
                    let lookup = lookup.as_ref();
                    let flow = flow.as_ref();
                    let budget = &budget;
                    Outbound {
                        policy: self,
                        message,
                        envelope,
                        item,
                        audit,
                        context: inspect_context,
                        secrets,
                        lookup,
                        flow,
                        budget,
                    }
                    .inspect(&mut inspection);
                }
            }
            if budget.exceeded().count() > exceeded {
                skip_reason::note_over_budget(message, item, uninspected, &mut inspection.coverage);
            }
            let findings = inspection
                .findings
                .get(findings_before..)
                .unwrap_or_default();
            refusals.extend(refusal(self.rules(direction), findings, item));
            refusals.extend(classify::refusal(findings, item));
            let mut question = question(self.rules(direction), findings, item, self);
            if let (Direction::Outbound, Some(pins)) = (direction, inspect_context.pins.as_deref())
            {
                let held_calls = HeldCalls {
                    pins,
                    changes: &self.changes,
                };
                question = held_calls.add(
                    question,
                    message,
                    envelope,
                    item,
                    &self.scopes,
                    self.through_agent,
                );
                refusals.extend(held_calls.check(message, envelope, item, &mut inspection));
            }
            questions.extend(self.confirm.add(
                question,
                direction,
                message,
                envelope,
                item,
                inspect_context,
            ));
            if direction == Direction::Outbound {
                let contract = Contract {
                    overlays: &self.overlays,
                    config: self.schema,
                    tools: inspect_context.tools.as_deref(),
                };
                refusals.extend(contract.check(message, envelope, item, &mut inspection));
            }
            refusals.extend(skip_reason::refuse(
                &self.blocking_reasons,
                item,
                uninspected,
                &mut inspection,
            ));
        }
        let is_full = clean_texts.is_some_and(CleanTexts::take_overflow);
        inspection.exceeded_limits = budget
            .exceeded()
            .chain(is_full.then_some("clean_texts"))
            .collect();
        inspection.coverage.readings = std::mem::take(&mut inspection.readings);
        inspection.unresolved_names = lookup.map(Lookup::into_unresolved).unwrap_or_default();
        inspection.session_update.secrets =
            secrets.map(SessionSecrets::into_update).unwrap_or_default();
        inspection.session_update.flow = flow.map(Session::into_update).unwrap_or_default();
        inspection
            .findings
            .sort_by_key(|finding| std::cmp::Reverse((finding.action, finding.severity)));
        inspection.verdict = match (refusals.is_empty(), questions.is_empty(), edits.is_empty()) {
            (false, ..) => Verdict::Block(refusals),
            (true, false, _) => Verdict::Ask(questions),
            (true, true, false) => Verdict::Rewrite(edits),
            (true, true, true) => Verdict::Pass,
        };
        inspection
    }

    /// Judges a text that is not a JSON-RPC message, such as the body of an HTTP error: always
    /// inbound.
    pub fn inspect_text(
        &self,
        text: &str,
        audit: AuditId,
        context: &InspectContext,
    ) -> TextInspection {
        let session = context
            .memory
            .as_ref()
            .filter(|_| self.has_flow_rules)
            .map(Memory::session);
        let flow = session
            .as_ref()
            .map(|session| self.flow.context(session, None, DataLabels::default()));
        let place = Place {
            surface: Surface::Error,
            flow,
            ..Place::default()
        };
        let budget = Budget::new(context.work);
        let place = Place {
            budget: Some(&budget),
            ..place
        };
        let mut findings = Vec::new();
        let mut coverage = Coverage {
            strings: 1,
            bytes: text.len(),
            ..Coverage::default()
        };
        let mut judge = Judge {
            rules: &self.inbound,
            suppressions: &self.suppressions,
            audit,
            item: 0,
            findings: &mut findings,
            readings: &mut coverage.readings,
            matches: Vec::new(),
            numbers: self.numbers,
            trace: context.trace,
            budget: &budget,
        };
        let outcome = judge.judge_string(
            &Text::new(text),
            &place,
            &Site {
                at: &String::new,
                opaque: &|| false,
                in_block: false,
            },
        );
        findings.sort_by_key(|finding| std::cmp::Reverse((finding.action, finding.severity)));
        let verdict = match (refusal(&self.inbound, &findings, 0), outcome) {
            (Some(refusal), _) => TextVerdict::Block(refusal),
            (None, Outcome::Replace(text) | Outcome::Withhold(text)) => TextVerdict::Rewrite(text),
            (None, Outcome::Keep) => TextVerdict::Pass,
        };
        let session_update = SessionUpdate {
            flow: session.map(Session::into_update).unwrap_or_default(),
            ..SessionUpdate::default()
        };
        TextInspection {
            verdict,
            findings,
            coverage,
            session_update,
        }
    }

    /// Returns the rules of one direction.
    pub fn rules(&self, direction: Direction) -> &RuleSet {
        match direction {
            Direction::Outbound => &self.outbound,
            Direction::Inbound => &self.inbound,
        }
    }

    /// Returns the digest that identifies the rule set of one direction in audit records.
    pub fn rules_digest(&self, direction: Direction) -> &str {
        self.rules(direction).digest()
    }
}
