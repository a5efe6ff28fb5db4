//! What one upstream's traffic is judged by.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::config::{
    ChangesConfig, ClassifierConfig, FlowConfig, Keeps, Limits, PolicyConfig, SchemaConfig, Scope,
    ToolLimits,
};
use crate::detect::flow::{Session, Sides};
use crate::detect::secret::Seen;
use crate::detect::url::Lookup;
use crate::detect::work::Budget;
use crate::detect::{Ground, Place, Surface};
use crate::document::Fault;
use crate::message::{Direction, Message};
use crate::protocol::{AuditId, Context};
use crate::rules::{Find, Library, RuleSet};
use crate::text::{Text, glob_fits};

use super::caps::Caps;
use super::classify::{self, Classifier, Unclassified};
use super::confirm::Confirm;
use super::consequence::{question, refusal};
use super::context::InspectContext;
use super::definitions::{self, HeldCalls, Listed};
use super::ground;
use super::inbound::Inbound;
use super::instruction_files::InstructionFileSettings;
use super::memory::{Learnt, Memory};
use super::outbound::Outbound;
use super::pages::Pages;
use super::read_only::ReadOnly;
use super::readers::Readers;
use super::rewrite::Outcome;
use super::string::{Judge, Site};
use super::tools::contract::Contract;
use super::tools::overlay::Overlays;
use super::{Coverage, Finding, Inspection, Mode, Refusal, Suppressions, Unread, Verdict, unread};

/// What one upstream's traffic is judged by. Immutable: a reload makes a new one.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Its name in the config.
    pub name: Box<str>,
    /// Whether verdicts are carried out. Judging does not depend on it.
    pub mode: Mode,
    /// What is kept of messages for later.
    pub evidence: Keeps,
    pub(super) outbound: RuleSet,
    pub(super) inbound: RuleSet,
    /// What of their findings is to have no consequence.
    pub(super) suppressions: Suppressions,
    pub(super) caps: Caps,
    pub(super) pages: Pages,
    pub(super) instruction_files: InstructionFileSettings,
    /// What the policy says of who reads an argument.
    pub(super) readers: Readers,
    pub(super) read_only: ReadOnly,
    /// Limits on calls of tools, by glob, the nearest first.
    tools: Vec<(Box<str>, ToolLimits)>,
    pub(super) ground: Arc<Ground>,
    confirm: Confirm,
    /// What a person's yes may be for, the narrowest first.
    pub(super) scopes: Vec<Scope>,
    pub(super) through_agent: bool,
    /// Which tools give and take what.
    pub(super) flow: Arc<FlowConfig>,
    /// Whether a rule asks for what came in before.
    pub(super) follows: bool,
    /// Whether a rule asks for data that may be a number.
    pub(super) numbers: bool,
    /// What the operator makes of the tools.
    overlays: Arc<Overlays>,
    schema: SchemaConfig,
    /// What is done about definitions that change.
    changes: ChangesConfig,
    /// Time to look up the names of hosts that a call would reach; `None` if they are not looked up.
    resolve: Option<Duration>,
    /// Who else is asked about what servers say.
    classifier: Option<Arc<ClassifierConfig>>,
    /// Reasons for not inspecting content that block its message.
    blocked: Vec<Unread>,
}

/// What judging a text that is no message gives.
#[derive(Clone, Debug)]
pub struct TextInspection {
    /// What the rules want done.
    pub verdict: TextVerdict,
    /// What was found, strongest first.
    pub findings: Vec<Finding>,
    /// How much was looked at.
    pub coverage: Coverage,
    /// What is worth remembering of it.
    pub learnt: Learnt,
}

/// What becomes of a text that is no message.
#[derive(Clone, Debug)]
pub enum TextVerdict {
    /// It goes on as it came.
    Pass,
    /// This goes on in its place.
    Rewrite(String),
    /// It does not go on.
    Block(Refusal),
}

impl Policy {
    /// Chooses the rules of both directions.
    ///
    /// # Errors
    /// Every override and pack that names nothing or cannot be carried out.
    pub fn new(name: &str, config: &PolicyConfig, library: &Library) -> Result<Self, Vec<Fault>> {
        let (outbound, inbound) = library.sets(config)?;
        let suppressions = Suppressions::new(&config.suppress, library)?;
        let read_only = ReadOnly::new(name, config, &outbound)?;
        let overlays = Overlays::new(name, config)?;
        let numbers = inbound
            .rules()
            .iter()
            .any(|rule| matches!(*rule.find, Find::Personal(_)));
        let follows = outbound
            .rules()
            .iter()
            .any(|rule| matches!(*rule.find, Find::Flow(_)));
        Ok(Self {
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
            ground: Arc::new(ground::of_policy(config)),
            confirm: Confirm::new(config),
            scopes: config.scopes.clone(),
            through_agent: config.through_agent,
            flow: Arc::new(config.flow.clone()),
            follows,
            numbers,
            overlays: Arc::new(overlays),
            schema: config.schema,
            changes: config.changes.clone(),
            resolve: config.places.resolve,
            evidence: config.evidence,
            classifier: config.classifier.clone(),
            blocked: config.block_uninspected.clone(),
        })
    }

    /// The limits on calls of a tool, and the glob that they stand with: the nearest that sets any.
    pub fn tool_limits(&self, tool: &str) -> Option<(&str, &ToolLimits)> {
        let mut fitting = self
            .tools
            .iter()
            .filter(|(glob, limits)| *limits != ToolLimits::default() && glob_fits(glob, tool));
        fitting.next().map(|(glob, limits)| (&**glob, limits))
    }

    /// The time to look up the names that an inspection has left open, if there are any and it matters what they are.
    pub fn to_resolve(&self, inspection: &Inspection) -> Option<Duration> {
        let open =
            !inspection.wanted.names.is_empty() && !matches!(inspection.verdict, Verdict::Block(_));
        self.resolve.filter(|_| open)
    }

    /// Whom to ask about which texts of a message that rules do not refuse anyway.
    pub fn to_classify(
        &self,
        inspection: &mut Inspection,
    ) -> Option<(&Arc<ClassifierConfig>, Unclassified)> {
        let open =
            !inspection.unclassified.is_empty() && !matches!(inspection.verdict, Verdict::Block(_));
        let classifier = self.classifier.as_ref().filter(|_| open)?;
        Some((classifier, std::mem::take(&mut inspection.unclassified)))
    }

    /// Whether there is any rule, so that what earlier messages left behind matters.
    pub fn has_rules(&self) -> bool {
        !self.outbound.rules().is_empty() || !self.inbound.rules().is_empty()
    }

    /// The same rules under another mode.
    pub fn with_mode(&self, mode: Mode) -> Self {
        Self {
            mode,
            ..self.clone()
        }
    }

    /// The same rules for calls that may reach elsewhere.
    pub fn with_ground(&self, ground: Ground) -> Self {
        Self {
            ground: Arc::new(ground),
            ..self.clone()
        }
    }

    /// The same rules for tools that give and take other data.
    pub fn with_flow(&self, flow: FlowConfig) -> Self {
        Self {
            flow: Arc::new(flow),
            ..self.clone()
        }
    }

    /// Where calls may reach.
    pub fn ground(&self) -> &Ground {
        &self.ground
    }

    /// What a message lists against what is pinned.
    pub fn listed(
        &self,
        message: &Message,
        context: &Context,
        pins: &definitions::Pins,
        limits: &Limits,
    ) -> Listed {
        let most = (limits.pinned_definitions, limits.pinned_definition_bytes);
        definitions::Reader {
            pins,
            changes: &self.changes,
            rules: &self.inbound,
            mode: self.mode,
            most,
        }
        .read(message, context)
    }

    /// Whether lists of tools look the same by another policy, as far as the operator's words go.
    pub fn shows_tools_like(&self, other: &Self) -> bool {
        self.mode == other.mode && self.overlays.shown() == other.overlays.shown()
    }

    /// Whether definitions that change are treated the same by another policy.
    pub fn holds_like(&self, other: &Self) -> bool {
        (self.mode, &self.changes) == (other.mode, &other.changes)
    }

    /// The bytes of a list of tools as agents are to see it; `None` if that is as it came.
    pub fn shown(&self, message: &Message, context: &Context) -> Option<Bytes> {
        if self.mode == Mode::Observe {
            None
        } else {
            self.overlays.show(message, context)
        }
    }

    /// Whether agents neither see a tool nor may call it.
    pub fn hides(&self, tool: &str) -> bool {
        self.mode == Mode::Enforce && self.overlays.hides(tool)
    }

    /// Judges a message, each item of a batch by itself. `audit` names the quarantine in what it withholds.
    pub fn inspect(
        &self,
        direction: Direction,
        message: &Message,
        context: &Context,
        audit: AuditId,
        known: &InspectContext,
    ) -> Inspection {
        let mut inspection = Inspection {
            classified: known.classified.clone(),
            ..Inspection::default()
        };
        let classifier = self.classifier.as_deref().map(|config| Classifier {
            config,
            said: known.classified.as_deref(),
        });
        let lookup = self
            .resolve
            .filter(|_| direction == Direction::Outbound)
            .map(|_| Lookup::new(known.answers.as_deref()));
        let seen = known
            .memory
            .as_ref()
            .map(|memory| Seen::new(&memory.prints, memory.from));
        let flow = known
            .memory
            .as_ref()
            .filter(|_| self.follows)
            .map(Memory::session);
        let mut edits = Vec::new();
        let mut refusals = Vec::new();
        let mut questions = Vec::new();
        let budget = Budget::new(known.work);
        for (item, envelope) in message.envelopes().iter().enumerate() {
            let found = inspection.findings.len();
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
                        seen: seen.as_ref(),
                        paging: known.paging.as_ref(),
                        tools: known.tools.as_deref(),
                        flow: flow.as_ref(),
                        names: known
                            .names
                            .as_ref()
                            .map(|(names, server)| (&**names, &**server)),
                        classifier,
                        heard: &known.heard,
                        trace: known.trace,
                        budget: &budget,
                    };
                    refusals.extend(inbound.inspect(&mut inspection, &mut edits));
                    refusals.extend(
                        classifier.and_then(|classifier| classifier.failed(item, &mut inspection)),
                    );
                }
                Direction::Outbound => {
                    let seen = seen.as_ref();
                    let lookup = lookup.as_ref();
                    let flow = flow.as_ref();
                    let budget = &budget;
                    Outbound {
                        policy: self,
                        message,
                        envelope,
                        item,
                        audit,
                        known,
                        seen,
                        lookup,
                        flow,
                        budget,
                    }
                    .inspect(&mut inspection);
                }
            }
            if budget.exceeded().count() > exceeded {
                unread::note_over_budget(message, item, uninspected, &mut inspection.coverage);
            }
            let found = inspection.findings.get(found..).unwrap_or_default();
            refusals.extend(refusal(self.rules(direction), found, item));
            refusals.extend(classify::refusal(found, item));
            let mut question = question(self.rules(direction), found, item, self);
            if let (Direction::Outbound, Some(pins)) = (direction, known.pins.as_deref()) {
                let held = HeldCalls {
                    pins,
                    changes: &self.changes,
                };
                question = held.add(
                    question,
                    (message, envelope, item),
                    &self.scopes,
                    self.through_agent,
                );
                refusals.extend(held.check(message, envelope, item, &mut inspection));
            }
            questions.extend(
                self.confirm
                    .add(question, direction, message, envelope, item, known),
            );
            if direction == Direction::Outbound {
                let contract = Contract {
                    overlays: &self.overlays,
                    config: self.schema,
                    tools: known.tools.as_deref(),
                };
                refusals.extend(contract.check(message, envelope, item, &mut inspection));
            }
            refusals.extend(unread::refuse(
                &self.blocked,
                item,
                uninspected,
                &mut inspection,
            ));
        }
        inspection.limits_hit = budget.exceeded().collect();
        inspection.coverage.readings = std::mem::take(&mut inspection.readings);
        inspection.wanted = lookup.map(Lookup::wanted).unwrap_or_default();
        inspection.learnt.secrets = seen.map(Seen::learnt).unwrap_or_default();
        inspection.learnt.flow = flow.map(Session::learnt).unwrap_or_default();
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

    /// Judges a text that is no JSON-RPC message, such as the body of an HTTP error: always inbound.
    pub fn inspect_text(
        &self,
        text: &str,
        audit: AuditId,
        known: &InspectContext,
    ) -> TextInspection {
        let session = known
            .memory
            .as_ref()
            .filter(|_| self.follows)
            .map(Memory::session);
        let flow = session
            .as_ref()
            .map(|session| self.flow.here(session, None, Sides::default()));
        let place = Place {
            surface: Surface::Error,
            flow,
            ..Place::default()
        };
        let budget = Budget::new(known.work);
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
            trace: known.trace,
            budget: &budget,
        };
        let outcome = judge.string(
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
        let learnt = Learnt {
            flow: session.map(Session::learnt).unwrap_or_default(),
            ..Learnt::default()
        };
        TextInspection {
            verdict,
            findings,
            coverage,
            learnt,
        }
    }

    /// The rules of one direction.
    pub fn rules(&self, direction: Direction) -> &RuleSet {
        match direction {
            Direction::Outbound => &self.outbound,
            Direction::Inbound => &self.inbound,
        }
    }

    /// Names the rule set of one direction in audit records.
    pub fn rules_digest(&self, direction: Direction) -> &str {
        self.rules(direction).digest()
    }
}
