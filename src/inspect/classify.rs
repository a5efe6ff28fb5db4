//! The external classifier: which texts it scores, and the consequences of the scores. The request
//! itself is made elsewhere, between two judgements of a message; here its result is an input like
//! any other.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use crate::config::{ClassifierConfig, ClassifierScope};
use crate::detect::{Place, Surface};
use crate::message::Role;
use crate::protocol::AuditId;
use crate::rules::{Action, Severity};
use crate::text::Text;

use super::finding::{Detail, GateFinding};
use super::rewrite::{MARK, Outcome, WithheldPassages, without_notices};
use super::string::{Judge, Site};
use super::wrap::{WARNING, wrap_text};
use super::{Finding, Inspection, Refusal};

/// The rule id of the classifier's findings.
const RULE: &str = "classifier";
/// The rule id of the finding when there are no scores.
const FAILED: &str = "classifier-failed";
/// Maximum number of texts of one message that are scored.
const TEXTS: usize = 1024;

/// Texts that a classifier has to score, in the order of the message, without duplicates.
#[derive(Clone, Debug, Default)]
pub struct Unclassified {
    pub texts: Vec<UnscoredText>,
    /// Whether there are more texts than the limits allow: then none is scored.
    pub too_many: bool,
    bytes: usize,
}

/// A text that a classifier has to score, after the rules have been applied to it.
#[derive(Clone, Debug)]
pub struct UnscoredText {
    pub text: String,
    /// The part of the message that contains the text.
    pub surface: Surface,
    /// The tool that returned the text, or whose definition contains it.
    pub tool: Option<String>,
    /// The place, as a JSON pointer.
    pub at: String,
}

/// The result of a request to the classifier.
#[derive(Clone, Debug)]
pub struct Classified {
    /// The classifier's name, as it reports it.
    pub name: String,
    /// The classifier's version, as it reports it.
    pub version: Option<String>,
    /// The score of each text, or the reason why there are no scores.
    pub scores: Result<HashMap<String, f64>, ClassifierFailure>,
    /// The duration of the request.
    pub duration: Duration,
}

enum_with_names! {
    /// The reason why there are no scores. Named as in the audit log and metrics.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ClassifierFailure {
        /// There was no response in time.
        Timeout = "timeout",
        /// All concurrency slots were in use until the timeout.
        Busy = "busy",
        /// The classifier could not be reached, or the connection broke.
        Unreachable = "unreachable",
        /// The response was not the requested scores.
        BadAnswer = "bad-answer",
        /// The message contains more text than is scored at once.
        TooLarge = "too-large",
    }
}

impl ClassifierFailure {
    fn describe(self) -> &'static str {
        match self {
            Self::Timeout => "did not answer in time",
            Self::Busy => "had no place free",
            Self::Unreachable => "could not be reached",
            Self::BadAnswer => "gave an answer that cannot be used",
            Self::TooLarge => "is not asked about texts as long as these",
        }
    }
}

impl Classified {
    /// Returns the highest score, if there is any.
    pub fn highest(&self) -> Option<f64> {
        self.scores
            .as_ref()
            .ok()?
            .values()
            .copied()
            .reduce(f64::max)
    }

    /// Returns the outcome in a word: `unflagged`, `flagged`, or the reason why there are no
    /// scores.
    pub fn outcome(&self, findings: &[Finding]) -> &'static str {
        match &self.scores {
            Err(failure) => failure.name(),
            Ok(_) if findings.iter().any(|finding| finding.rule.as_str() == RULE) => "flagged",
            Ok(_) => "unflagged",
        }
    }

    /// Returns the classifier's name, with its version.
    pub fn name_and_version(&self) -> String {
        self.version.as_ref().map_or_else(
            || self.name.clone(),
            |version| format!("{} {version}", self.name),
        )
    }

    fn score(&self, text: &str) -> Option<f64> {
        self.scores.as_ref().ok()?.get(text).copied()
    }
}

/// The classifier's config and scores for judging one message.
#[derive(Clone, Copy)]
pub(super) struct Classifier<'a> {
    pub(super) config: &'a ClassifierConfig,
    /// The result; `None` as long as no request was made.
    pub(super) classified: Option<&'a Classified>,
}

impl Classifier<'_> {
    /// Records that there are no scores, and returns a refusal if the message is refused because of
    /// it.
    pub(super) fn report_failure(
        &self,
        item: usize,
        inspection: &mut Inspection,
    ) -> Option<Refusal> {
        let failure = *self.classified?.scores.as_ref().err()?;
        let gate_finding = GateFinding {
            rule: FAILED,
            title: "The external classifier could not be asked",
            severity: Severity::Medium,
            surface: Surface::Other,
            at: String::new(),
            item,
            reading: failure.name(),
        };
        let action = if self.config.passes_on_failure {
            Action::Log
        } else {
            Action::Block
        };
        inspection.findings.push(gate_finding.finding(action, ""));
        let why = format!(
            "It {}, and the policy lets nothing pass unasked. Try again later or ask for less, or tell the user of it.",
            failure.describe()
        );
        (action == Action::Block).then(|| gate_finding.refusal(why))
    }

    /// Returns the outcome for a text that has the given `outcome` after the rules. Before the
    /// classifier has been called, the text is added to `unclassified`.
    pub(super) fn judge(
        &self,
        text: &Text<'_>,
        outcome: Outcome,
        judge: &mut Judge<'_, '_>,
        place: &Place<'_>,
        site: &Site<'_>,
        unclassified: &mut Unclassified,
    ) -> Outcome {
        let remaining = match &outcome {
            Outcome::Keep => text.raw(),
            Outcome::Replace(replacement) => strip_notices(replacement),
            Outcome::Withhold(_) => return outcome,
        };
        if place.role != Role::Value || remaining.len() < self.config.least_bytes || (site.opaque)()
        {
            return outcome;
        }
        match self.classified {
            None => {
                if self.config.ask_about == ClassifierScope::All || signals(judge, remaining, place)
                {
                    unclassified.add(remaining, place, site, self.config.text_bytes);
                }
                outcome
            }
            Some(classified) => match classified
                .score(remaining)
                .filter(|score| *score >= self.config.threshold)
            {
                Some(score) => {
                    let new_outcome =
                        self.apply_action(remaining, outcome.clone(), judge.audit, place.surface);
                    let finding = GateFinding {
                        rule: RULE,
                        title: "An external classifier takes it for an attack",
                        severity: Severity::High,
                        surface: place.surface,
                        at: (site.at)(),
                        item: judge.item,
                        reading: RULE,
                    };
                    judge.findings.push(Finding {
                        detail: Some(Detail::Score {
                            score,
                            classifier: classified.name_and_version(),
                        }),
                        ..finding.finding(self.config.action, remaining)
                    });
                    if let Some(flow) = place.flow.filter(|_| self.config.action > Action::Log) {
                        flow.session.record_withheld(remaining);
                    }
                    new_outcome
                }
                None => outcome,
            },
        }
    }

    /// Returns the outcome of the configured action for a text that the classifier takes for an
    /// attack.
    fn apply_action(
        &self,
        text: &str,
        outcome: Outcome,
        audit: AuditId,
        surface: Surface,
    ) -> Outcome {
        let rules = BTreeSet::from([RULE]);
        let withheld = |passages| WithheldPassages {
            passages,
            rules: rules.clone(),
        };
        match self.config.action {
            Action::Quarantine => Outcome::Replace(withheld(1).notice(surface, audit) + MARK),
            Action::Withhold => Outcome::Withhold(withheld(0).block_notice(surface, audit)),
            Action::Wrap => match wrap_text(text, &rules, audit) {
                Some(wrapped) => Outcome::Replace(wrapped),
                None => Outcome::Withhold(withheld(0).block_notice(surface, audit)),
            },
            _ => outcome,
        }
    }
}

/// Returns the refusal of a message that a classifier has blocked.
pub(super) fn refusal(findings: &[Finding], item: usize) -> Option<Refusal> {
    let blocks =
        |finding: &&Finding| finding.rule.as_str() == RULE && finding.action == Action::Block;
    let finding = findings.iter().find(blocks)?;
    let why = "Go on without this answer, or ask the user to look at it.".to_owned();
    Some(Refusal {
        item,
        rule: finding.rule.clone(),
        title: finding.title.clone(),
        why,
    })
}

impl Unclassified {
    fn add(&mut self, text: &str, place: &Place<'_>, site: &Site<'_>, most_bytes: usize) {
        if self.too_many || self.texts.iter().any(|known| known.text == text) {
            return;
        }
        self.bytes += text.len();
        self.too_many = self.bytes > most_bytes || self.texts.len() >= TEXTS;
        if self.too_many {
            self.texts.clear();
            return;
        }
        let tool = place.tool.map(str::to_owned);
        let at = (site.at)();
        self.texts.push(UnscoredText {
            text: text.to_owned(),
            surface: place.surface,
            tool,
            at,
        });
    }

    /// Returns whether there is nothing to score.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty() && !self.too_many
    }
}

/// Returns whether a text contains any signal of an attack, even one that is not a finding by
/// itself.
fn signals(judge: &Judge<'_, '_>, text: &str, place: &Place<'_>) -> bool {
    let mut matches = Vec::new();
    judge.rules.scan(
        &Text::new(text),
        &Place {
            trial: true,
            ..*place
        },
        &mut matches,
    );
    matches
        .iter()
        .any(|found| !judge.is_markup_rule(found.rule))
}

/// Returns a text without the lines that the gate has put above it: they name attacks but are none.
fn strip_notices(text: &str) -> &str {
    let without_warning = text.split_once('\n').filter(|_| text.starts_with(WARNING));
    without_notices(without_warning.map_or(text, |(_, rest)| rest))
}
