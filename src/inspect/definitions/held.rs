//! Calls of tools whose definitions are waiting for approval.

use super::server::METHODS;
use super::{Key, Kind, Pins};
use crate::config::{ChangeAction, ChangeClass, ChangesConfig, Scope};
use crate::detect::Surface;
use crate::inspect::finding::GateFinding;
use crate::inspect::{Inspection, Question, Refusal};
use crate::message::{Envelope, Message};
use crate::rules::{Action, RuleId, Severity};

/// Used instead of a rule id if the definition of the called tool has changed.
pub const CHANGED: &str = "definition-changed";

const TITLE: &str = "The tool is no longer what it was when it was approved";

/// Handles calls of a tool whose definition is waiting for approval.
pub(in crate::inspect) struct HeldCallCheck<'a> {
    pub(in crate::inspect) pins: &'a Pins,
    pub(in crate::inspect) changes: &'a ChangesConfig,
}

impl HeldCallCheck<'_> {
    /// Refuses a call if the policy refuses calls of tools that have changed in this way.
    pub(in crate::inspect) fn check(
        &self,
        message: &Message,
        envelope: &Envelope,
        item: usize,
        inspection: &mut Inspection,
    ) -> Option<Refusal> {
        let (action, class, name) = self.call_action(message, envelope)?;
        let rule_action = if action == ChangeAction::Refuse {
            Action::Block
        } else {
            Action::Ask
        };
        let at = if message.is_batch() {
            format!("/{item}/params/name")
        } else {
            "/params/name".to_owned()
        };
        let gate_finding = GateFinding {
            rule: CHANGED,
            title: TITLE,
            severity: Severity::High,
            surface: Surface::Params,
            at,
            item,
            reading: class.name(),
        };
        inspection
            .findings
            .push(gate_finding.finding(rule_action, &name));
        let why = format!(
            "Its server changed its definition (`{}`). It is refused until a person has reviewed and approved the change: ask the \
             user, or continue without it.",
            class.name()
        );
        (rule_action == Action::Block).then(|| gate_finding.refusal(why))
    }

    /// Returns the question of the rules, if there is one, extended by the approval that a changed
    /// tool requires.
    pub(in crate::inspect) fn add(
        &self,
        question: Option<Question>,
        message: &Message,
        envelope: &Envelope,
        item: usize,
        scopes: &[Scope],
        through_agent: bool,
    ) -> Option<Question> {
        let Some((ChangeAction::Ask, class, _)) = self.call_action(message, envelope) else {
            return question;
        };
        let rule_id = RuleId::new(CHANGED);
        Some(match question {
            Some(mut question) => {
                question.rules.push(rule_id);
                question
            }
            None => Question {
                item,
                rules: vec![rule_id],
                title: TITLE.to_owned(),
                why: format!(
                    "Its server changed its definition (`{}`), and the change is not approved.",
                    class.name()
                ),
                severity: Severity::High,
                scopes: scopes.to_vec(),
                through_agent,
                private: Vec::new(),
            },
        })
    }

    /// Returns the policy's action for a call, the most severe class of the change, and the tool;
    /// `None` if the call is judged like any other. A server's description of itself applies to
    /// every tool.
    fn call_action(
        &self,
        message: &Message,
        envelope: &Envelope,
    ) -> Option<(ChangeAction, ChangeClass, Box<str>)> {
        if self.pins.pending_count() == 0 {
            return None;
        }
        let params = message
            .body(envelope)
            .filter(|_| envelope.method() == Some("tools/call"))?;
        let tool: Box<str> = params.get_str("name")?.into();
        let servers = METHODS.map(|method| Key {
            kind: Kind::Server,
            name: method.into(),
        });
        let keys = std::iter::once(Key {
            kind: Kind::Tool,
            name: tool.clone(),
        })
        .chain(servers);
        let (action, class) = keys
            .filter_map(|key| self.held_action(&key))
            .max_by_key(|(action, _)| *action)?;
        Some((action, class, tool))
    }

    fn held_action(&self, key: &Key) -> Option<(ChangeAction, ChangeClass)> {
        let pin = self.pins.get(key)?;
        let pending = pin.pending.as_ref()?;
        let class = pending
            .classes
            .iter()
            .copied()
            .max()
            .unwrap_or(ChangeClass::Other);
        match (
            self.changes.strictest_action(&pending.classes),
            &pin.content,
        ) {
            (ChangeAction::Pass, _) | (ChangeAction::Hold, Some(_)) => None,
            (ChangeAction::Ask, Some(_)) => Some((ChangeAction::Ask, class)),
            // Without its instructions, a server is still the same.
            (ChangeAction::Hold, None) if key.kind == Kind::Server => None,
            // Nothing of it has ever been forwarded.
            (_, None) | (ChangeAction::Refuse, _) => Some((ChangeAction::Refuse, class)),
        }
    }
}
