//! Audit lines of everything but judging.

use crate::protocol::{AuditId, CallError, Context, Side};
use crate::rules::{RuleId, Severity};

use super::approval::Approval;
use super::audit::{Audit, context, finish, start};
use super::definition::DefinitionChange;
use super::names;

/// Most faults or sentences of a line.
const SENTENCES: usize = 50;

impl Audit {
    /// The line of a call that failed.
    pub(super) fn failed(&self, of: &Context, error: &CallError) -> String {
        let mut line = start("failed", if error.side() == Side::Agent { Severity::Low } else { Severity::Medium });
        context(&mut line, of);
        if let [asked] = &*of.asked {
            line.text(names::METHOD, &self.name(&asked.method));
            if &*asked.method == "tools/call" {
                line.maybe(names::TOOL, asked.tool.as_deref().map(|tool| self.name(tool)).as_deref());
            }
        }
        line.text(names::SIDE, error.side().name());
        line.text(names::ERROR, error.name());
        line.text(names::ERROR_MESSAGE, &self.chain(error));
        finish(line)
    }

    /// The line of what happened to a question to a person.
    pub(super) fn approval(&self, approval: &Approval<'_>) -> String {
        let mut line = start("approval", Severity::Info);
        if let Some(audit) = approval.audit {
            line.id(names::AUDIT, audit);
        }
        context(&mut line, approval.context);
        line.maybe(names::APPROVAL, Some(approval.id).filter(|id| !id.is_empty()));
        line.text(names::TOOL, &self.name(approval.tool));
        line.texts(names::RULES, approval.rules.iter().map(RuleId::as_str));
        line.text(names::OUTCOME, approval.outcome);
        line.text(names::WAY, approval.way);
        line.maybe(names::SCOPE, approval.scope);
        line.maybe(names::BY, approval.by.map(|by| self.name(by)).as_deref());
        if let Some(took) = approval.took {
            line.number(names::OPEN_MS, took.as_millis());
        }
        finish(line)
    }

    /// The line of a call that was refused just like this again and again.
    pub(super) fn refused_again(&self, audit: Option<AuditId>, of: &Context, tool: &str, rule: &str, times: usize) -> String {
        let mut line = start("refused_again", Severity::Medium);
        if let Some(audit) = audit {
            line.id(names::AUDIT, audit);
        }
        context(&mut line, of);
        line.text(names::TOOL, &self.name(tool));
        line.text(names::VERDICT, "block");
        line.text(names::DISPOSITION, "Blocked");
        line.text(names::RULE, rule);
        line.number(names::TIMES, times);
        finish(line)
    }

    /// The line of a list of tools that agents do not see as the server told it.
    pub(super) fn overlaid(&self, of: &Context, policy: &str, told_bytes: usize, shown_bytes: usize) -> String {
        let mut line = start("overlaid", Severity::Info);
        context(&mut line, of);
        line.text(names::POLICY, policy);
        line.number(names::BYTES, told_bytes);
        line.number(names::SHOWN_BYTES, shown_bytes);
        finish(line)
    }

    /// The line of a definition that is not what it was.
    pub(super) fn definition(&self, change: &DefinitionChange<'_>) -> String {
        let mut line = start("definition", if change.action == "pass" { Severity::Low } else { Severity::High });
        match change.context {
            Some(of) => context(&mut line, of),
            None => line.text(names::UPSTREAM, &change.upstream.0),
        }
        line.text(names::THING, change.kind);
        line.text(names::NAME, &self.name(change.name));
        line.texts(names::CLASSES, change.classes.iter().map(|class| class.name()));
        line.text(names::ACTION, change.action);
        line.maybe(names::PINNED_SHA256, change.old);
        line.maybe(names::LISTED_SHA256, change.new);
        finish(line)
    }
}

/// The line of a request that was turned away.
pub(super) fn turned_away(reason: &str) -> String {
    let mut line = start("turned_away", Severity::Low);
    line.text(names::DISPOSITION, "Blocked");
    line.text(names::REASON, reason);
    finish(line)
}

/// The line of a part of an answer that an agent asks for.
pub(super) fn page(page: &super::Page<'_>) -> String {
    let mut line = start("page", Severity::Info);
    context(&mut line, page.context);
    line.text(names::OUTCOME, page.outcome);
    line.number(names::BYTES, page.bytes);
    finish(line)
}

/// The line of something that became of a message in quarantine. Its id is that of the line of the message.
pub(super) fn quarantined(what: &super::Quarantined<'_>) -> String {
    let mut line = start("quarantine", if what.by.is_some() { Severity::Medium } else { Severity::Info });
    line.id(names::AUDIT, what.audit);
    line.text(names::OUTCOME, what.outcome);
    line.maybe(names::AGENT, what.agent);
    line.maybe(names::UPSTREAM, what.upstream);
    line.maybe(names::PRINCIPAL, what.by);
    line.maybe(names::REASON, what.reason);
    line.maybe(names::WAY, what.way);
    finish(line)
}

/// The line of a login at a server.
pub(super) fn login(login: &super::Login<'_>) -> String {
    let mut line =
        start("login", if matches!(login.outcome, "logged_in" | "renewed") { Severity::Info } else { Severity::Medium });
    line.text(names::UPSTREAM, login.upstream);
    line.text(names::PRINCIPAL, login.principal);
    line.text(names::OUTCOME, login.outcome);
    line.maybe(names::ERROR_MESSAGE, login.error);
    if let Some(unix) = login.expires_unix {
        line.number(names::EXPIRES_UNIX, unix);
    }
    finish(line)
}

/// The line of a reload.
pub(super) fn reloaded(rules: usize, weakened: &[String]) -> String {
    let mut line = start("reloaded", if weakened.is_empty() { Severity::Info } else { Severity::High });
    line.number(names::RULE_COUNT, rules);
    line.texts(names::WEAKENED, weakened.iter().take(SENTENCES));
    finish(line)
}

/// The line of definitions of a server that was not known.
pub(super) fn pinned(of: &Context, count: usize) -> String {
    let mut line = start("pinned", Severity::Info);
    context(&mut line, of);
    line.number(names::COUNT, count);
    finish(line)
}

/// The line of a lock file that was read anew.
pub(super) fn pins_reloaded(upstreams: &[&str]) -> String {
    let mut line = start("pins_reloaded", Severity::Info);
    line.texts(names::UPSTREAMS, upstreams.iter().take(SENTENCES));
    finish(line)
}

/// The line of a file that was refused.
pub(super) fn faults(event: &'static str, faults: &[crate::document::Fault]) -> String {
    let mut line = start(event, Severity::High);
    line.number(names::COUNT, faults.len());
    line.texts(names::FAULTS, faults.iter().take(SENTENCES).map(ToString::to_string));
    finish(line)
}
