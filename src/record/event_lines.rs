//! The audit lines of events other than inspected messages.

use std::borrow::Cow;

use super::access_denied::AccessDenied;
use super::approval::Approval;
use super::audit::{Audit, caller_identity};
use super::definition::DefinitionChange;
use super::entry::event::{self, Event as _};
use super::{Login, QuarantineEvent, ResultPage};
use crate::document::Fault;
use crate::protocol::{AuditId, CallError, Context, Side};
use crate::rules::{RuleId, Severity};
use crate::text::cut;

/// Maximum number of faults or sentences in a line.
const MAX_SENTENCES: usize = 50;
/// Maximum length of the name of an object in an access denial, in bytes.
const MAX_NAME_BYTES: usize = 256;

impl Audit {
    /// Returns the line of a failed call.
    pub(super) fn failure_line(&self, context: &Context, error: &CallError) -> String {
        let request = if let [asked] = &*context.requests {
            Some(asked)
        } else {
            None
        };
        let tool = request
            .filter(|asked| &*asked.method == "tools/call")
            .and_then(|asked| asked.tool.as_deref());
        event::Failed {
            who: caller_identity(context),
            method: request.map(|asked| self.name(&asked.method)),
            tool: tool.map(|tool| self.name(tool)),
            side: error.side().name(),
            error: error.name().into(),
            error_message: self.describe_error(error).into(),
        }
        .line(if error.side() == Side::Agent {
            Severity::Low
        } else {
            Severity::Medium
        })
    }

    /// Returns the line of an approval request.
    pub(super) fn approval_line(&self, approval: &Approval<'_>) -> String {
        event::Approval {
            audit: approval.audit,
            who: caller_identity(approval.context),
            approval: Some(approval.id).filter(|id| !id.is_empty()).map(Cow::from),
            tool: self.name(approval.tool),
            rules: &|list| list.texts(approval.rules.iter().map(RuleId::as_str)),
            outcome: approval.outcome,
            way: approval.way,
            scope: approval.scope,
            by: approval.approver.map(|by| self.name(by)),
            open_ms: approval
                .duration
                .map(|took| u64::try_from(took.as_millis()).unwrap_or(u64::MAX)),
        }
        .line(Severity::Info)
    }

    /// Returns the line of a call that is refused repeatedly for the same reason.
    pub(super) fn repeated_refusal_line(
        &self,
        audit: Option<AuditId>,
        context: &Context,
        tool: &str,
        rule: &str,
        times: usize,
    ) -> String {
        event::RefusedAgain {
            audit,
            who: caller_identity(context),
            tool: self.name(tool),
            verdict: "block",
            disposition: "Blocked",
            rule: rule.into(),
            times: times as u64,
        }
        .line(Severity::Medium)
    }

    /// Returns the line of a list of tools that was changed for agents.
    pub(super) fn overlay_line(
        &self,
        context: &Context,
        policy: &str,
        received_bytes: usize,
        shown_bytes: usize,
    ) -> String {
        event::Overlaid {
            who: caller_identity(context),
            policy: policy.into(),
            bytes: received_bytes as u64,
            shown_bytes: shown_bytes as u64,
        }
        .line(Severity::Info)
    }

    /// Returns the line of a definition that differs from the pinned one.
    pub(super) fn definition_line(&self, change: &DefinitionChange<'_>) -> String {
        let caller = change.context.map(caller_identity);
        let caller = caller.as_ref();
        event::Definition {
            agent: caller.map(|who| who.agent.clone()),
            user: caller.and_then(|who| who.user.clone()),
            session: caller.and_then(|who| who.session.clone()),
            upstream: caller.map_or_else(
                || Cow::from(&*change.upstream.0),
                |who| who.upstream.clone(),
            ),
            era: caller.map(|who| who.era),
            revision: caller.and_then(|who| who.revision.clone()),
            transport: caller.and_then(|who| who.transport),
            trace: caller.and_then(|who| who.trace.clone()),
            span: caller.and_then(|who| who.span.clone()),
            thing: change.kind.into(),
            name: self.name(change.name),
            classes: &|list| list.texts(change.classes.iter().map(|class| class.name())),
            action: change.action,
            pinned_sha256: change.old.map(Cow::from),
            listed_sha256: change.new.map(Cow::from),
        }
        .line(if change.action == "pass" {
            Severity::Low
        } else {
            Severity::High
        })
    }
}

/// Returns the line of a rejected request.
pub(super) fn rejected(reason: &str) -> String {
    event::TurnedAway {
        disposition: "Blocked",
        reason: reason.into(),
    }
    .line(Severity::Low)
}

/// Returns the line of a request for an object that the caller has no access to.
pub(super) fn access_denied(denial: &AccessDenied<'_>) -> String {
    event::Denied {
        agent: Cow::from(&*denial.agent.0),
        user: denial.caller.user.as_deref().map(Cow::from),
        upstream: Cow::from(&*denial.upstream.0),
        thing: denial.kind.into(),
        name: cut(denial.name, MAX_NAME_BYTES).into(),
        disposition: "Blocked",
        why: denial.why.into(),
    }
    .line(Severity::Medium)
}

/// Returns the line of a requested part of a result.
pub(super) fn page(page: &ResultPage<'_>) -> String {
    event::Page {
        who: caller_identity(page.context),
        outcome: page.outcome,
        bytes: page.bytes as u64,
    }
    .line(Severity::Info)
}

/// Returns the line of an event in the quarantine. Its id is that of the line of the message.
pub(super) fn quarantined(change: &QuarantineEvent<'_>) -> String {
    event::Quarantine {
        audit: change.audit,
        outcome: change.outcome,
        agent: change.agent.map(Cow::from),
        upstream: change.upstream.map(Cow::from),
        principal: change.person.map(Cow::from),
        reason: change.reason.map(Cow::from),
        way: change.delivery,
    }
    .line(if change.person.is_some() {
        Severity::Medium
    } else {
        Severity::Info
    })
}

/// Returns the line of a login at an upstream.
pub(super) fn login(login: &Login<'_>) -> String {
    event::Login {
        upstream: login.upstream.into(),
        principal: login.principal.into(),
        outcome: login.outcome,
        error_message: login.error.map(Cow::from),
        expires_unix: login.expires_unix,
    }
    .line(if matches!(login.outcome, "logged_in" | "renewed") {
        Severity::Info
    } else {
        Severity::Medium
    })
}

/// Returns the line of a reload.
pub(super) fn reloaded(rules: usize, weakened: &[String]) -> String {
    event::Reloaded {
        rule_count: rules as u64,
        weakened: &|list| list.texts(weakened.iter().take(MAX_SENTENCES)),
    }
    .line(if weakened.is_empty() {
        Severity::Info
    } else {
        Severity::High
    })
}

/// Returns the line of a rejected reload.
pub(super) fn reload_refused(faults: &[Fault]) -> String {
    event::ReloadRefused {
        count: faults.len() as u64,
        faults: &|list| list.texts(sentences(faults)),
    }
    .line(Severity::High)
}

/// Returns the line of newly pinned definitions of a new server.
pub(super) fn pinned(context: &Context, count: usize) -> String {
    event::Pinned {
        who: caller_identity(context),
        count: count as u64,
    }
    .line(Severity::Info)
}

/// Returns the line of a reloaded lock file.
pub(super) fn pins_reloaded(upstreams: &[&str]) -> String {
    event::PinsReloaded {
        upstreams: &|list| list.texts(upstreams.iter().take(MAX_SENTENCES)),
    }
    .line(Severity::Info)
}

/// Returns the line of a lock file that cannot be used.
pub(super) fn pins_refused(faults: &[Fault]) -> String {
    event::PinsRefused {
        count: faults.len() as u64,
        faults: &|list| list.texts(sentences(faults)),
    }
    .line(Severity::High)
}

fn sentences(faults: &[Fault]) -> impl Iterator<Item = String> {
    faults.iter().take(MAX_SENTENCES).map(ToString::to_string)
}
