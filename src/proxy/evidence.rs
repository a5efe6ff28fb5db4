//! Storage of judged messages: whole as evidence, if the policy requires it, and in quarantine if
//! something was withheld from them.

use std::time::SystemTime;

use super::Gate;
use super::judge::Subject;
use super::route::OpenCall;
use crate::approval::CallDigest;
use crate::config::EvidenceLevel;
use crate::inspect::{Finding, Inspection, Mode, Policy, Verdict};
use crate::message::{Direction, Edit, Envelope, Message};
use crate::protocol::{AuditId, Context, headers};
use crate::record::Recorder;
use crate::record::stores::{MessageInfo, StoredMessage};
use crate::rules::Action;
use crate::text::cut;

/// Maximum number of places and rules that are listed, and maximum length of a pointer in bytes.
const MAX_NAMED: usize = 64;
const POINTER_BYTES: usize = 512;

impl Subject<'_> {
    /// Returns the message for the quarantine, if something of it is withheld from the agent.
    /// `open` is the call that it answers.
    pub(super) fn quarantined_message(
        &self,
        inspection: &Inspection,
        open: Option<&OpenCall>,
    ) -> Option<StoredMessage> {
        let is_withheld = matches!(inspection.verdict, Verdict::Rewrite(_) | Verdict::Block(_))
            && inspection
                .findings
                .iter()
                .any(|finding| finding.action >= Action::Quarantine);
        let inbound = self.direction == Direction::Inbound && self.policy.mode == Mode::Enforce;
        // Only an answer can be released as an answer later.
        let is_reply = self.message.single().is_some_and(Envelope::is_answer);
        let call = || open.filter(|_| is_reply).and_then(OpenCall::digest);
        (is_withheld && inbound).then(|| self.to_stored_message(inspection, call()))
    }

    /// Offers the message to the evidence store, if the policy requires it.
    pub(super) fn offer(&self, recorder: &Recorder, inspection: &Inspection) {
        if self.policy.evidence == EvidenceLevel::Sealed
            && let Some(evidence) = recorder.evidence()
        {
            evidence.offer(self.to_stored_message(inspection, None));
        }
    }

    fn to_stored_message(
        &self,
        inspection: &Inspection,
        call: Option<CallDigest>,
    ) -> StoredMessage {
        let Self {
            ref policy,
            direction,
            message,
            context,
            audit,
            ..
        } = *self;
        let (method, tool) = method_and_tool(message, context);
        let quarantined = inspection
            .findings
            .iter()
            .filter(|finding| finding.action >= Action::Quarantine);
        let info = MessageInfo {
            method,
            tool,
            call: call.map(|call| call.hex()),
            bytes: message.bytes().len() as u64,
            ..message_info(policy, direction, context, audit, quarantined)
        };
        StoredMessage {
            info,
            message: message.bytes().clone(),
        }
    }
}

impl Gate {
    /// Stores the message in quarantine, if there is one; returns whether it was stored.
    pub(super) async fn store_in_quarantine(&self, message: Option<StoredMessage>) -> bool {
        let Some(message) = message.filter(|_| self.recorder.quarantine().is_some()) else {
            return false;
        };
        let recorder = self.recorder.clone();
        tokio::task::spawn_blocking(move || recorder.quarantine_message(&message))
            .await
            .unwrap_or(false)
    }

    /// Stores a text that is not a message, if something of it is withheld; returns whether it was
    /// stored.
    pub(super) async fn store_text_in_quarantine(
        &self,
        text: &str,
        policy: &Policy,
        context: &Context,
        audit: AuditId,
        findings: &[Finding],
    ) -> bool {
        let quarantined = || {
            findings
                .iter()
                .filter(|finding| finding.action >= Action::Quarantine)
        };
        let is_withheld = policy.mode == Mode::Enforce
            && quarantined().next().is_some()
            && self.recorder.quarantine().is_some();
        let message = is_withheld.then(|| {
            let info = MessageInfo {
                bytes: text.len() as u64,
                ..message_info(policy, Direction::Inbound, context, audit, quarantined())
            };
            StoredMessage {
                info,
                message: text.to_owned().into(),
            }
        });
        self.store_in_quarantine(message).await
    }
}

/// Returns the metadata that every message has.
fn message_info<'f>(
    policy: &Policy,
    direction: Direction,
    context: &Context,
    audit: AuditId,
    findings: impl Iterator<Item = &'f Finding>,
) -> MessageInfo {
    let findings: Vec<&Finding> = findings.take(MAX_NAMED).collect();
    let mut rules: Vec<String> = findings
        .iter()
        .map(|finding| finding.rule.to_string())
        .collect();
    rules.sort();
    rules.dedup();
    let mut withheld: Vec<String> = findings
        .iter()
        .map(|finding| cut(&finding.at, POINTER_BYTES).to_owned())
        .collect();
    withheld.sort();
    withheld.dedup();
    MessageInfo {
        audit,
        at: SystemTime::now(),
        direction,
        agent: context.agent.to_string(),
        user: context.caller.user.as_deref().map(str::to_owned),
        upstream: context.upstream.to_string(),
        method: None,
        tool: None,
        policy: policy.name.to_string(),
        era: context.era.name().to_owned(),
        call: None,
        withheld,
        why: rules,
        bytes: 0,
    }
}

/// Returns the method and the tool of a single message; for an answer, those of its request.
fn method_and_tool(message: &Message, context: &Context) -> (Option<String>, Option<String>) {
    let Some(envelope) = message.single() else {
        return (None, None);
    };
    let owned = |text: &str| cut(text, POINTER_BYTES).to_owned();
    if !envelope.is_answer() {
        return (
            envelope.method().map(owned),
            headers::target_name(message, envelope).map(|named| owned(&named)),
        );
    }
    let request = message.id(envelope).and_then(|id| context.open_request(id));
    (
        request.map(|asked| owned(&asked.method)),
        request.and_then(|asked| asked.tool.as_deref()).map(owned),
    )
}

/// The note that an agent reads about stored content. It names no command: an agent that runs it
/// would read the withheld content.
pub(super) const STORED_NOTE: &str = "kept for review by a person";

/// Adds to the first notice of withheld content that it was stored. Not in `structuredContent`,
/// which has to fit its schema.
pub(super) fn add_stored_note(edits: &mut [Edit], message: &Message, audit: AuditId) {
    let notice = format!("quarantine {audit}]");
    let structured = message
        .envelopes()
        .iter()
        .filter_map(|envelope| message.body(envelope)?.get("structuredContent"));
    let structured: Vec<_> = structured.map(|value| value.span()).collect();
    let is_editable = |edit: &&mut Edit| {
        edit.replacement.contains(&notice)
            && !structured
                .iter()
                .any(|span| span.contains(&edit.span.start))
    };
    if let Some(edit) = edits.iter_mut().find(is_editable) {
        edit.replacement = with_stored_note(&edit.replacement, audit);
    }
}

/// Returns the text with the note in its first notice that the content was stored.
pub(super) fn with_stored_note(text: &str, audit: AuditId) -> String {
    text.replacen(
        &format!("quarantine {audit}]"),
        &format!("quarantine {audit}: {STORED_NOTE}]"),
        1,
    )
}
