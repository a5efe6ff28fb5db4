//! The call that an approver is asked about.

use std::sync::Arc;

use crate::config::Scope;
use crate::inspect::Question;
use crate::message::{Envelope, Message};
use crate::protocol::{Context, headers};
use crate::record::Approval;
use crate::rules::{RuleId, Severity};

use super::digest::CallDigest;
use super::render;

/// Maximum length of the rendered part of a call, in bytes.
const SHOWN_BYTES: usize = 64 << 10;

/// A call that an approver is asked about.
#[derive(Clone, Debug)]
pub(crate) struct ApprovalRequest {
    pub(crate) context: Context,
    pub(crate) digest: CallDigest,
    /// The tool, rendered for display; for other requests, the method.
    pub(crate) tool: String,
    /// The same name as sent: names that look alike once truncated are still distinct.
    pub(super) name: Box<str>,
    pub(crate) rules: Vec<RuleId>,
    pub(crate) title: String,
    pub(crate) why: String,
    pub(crate) severity: Severity,
    /// The scopes that an approval may have, narrowest first.
    pub(crate) scopes: Vec<Scope>,
    /// Everything that would be sent, rendered for display.
    pub(crate) rendered: String,
    /// The arguments with secrets masked, as JSON, if notifications are enabled.
    pub(super) masked_arguments: Option<String>,
    /// The id of the request, as written.
    pub(super) request_id: Box<str>,
    pub(super) bytes: usize,
}

impl ApprovalRequest {
    /// Creates the request for a call.
    pub(crate) fn new(
        question: &Question,
        context: &Context,
        message: &Message,
        envelope: &Envelope,
    ) -> Self {
        let tool = headers::target_name(message, envelope)
            .filter(|_| envelope.method() == Some("tools/call"));
        let tool = tool.unwrap_or_else(|| envelope.method().unwrap_or_default().into());
        Self {
            // The request may outlive the call.
            context: Context {
                trace: context
                    .trace
                    .as_ref()
                    .map(|trace| Arc::new(trace.detached())),
                ..context.clone()
            },
            digest: CallDigest::new(context, message, envelope),
            tool: render::line(&tool, 256),
            name: tool.into(),
            rules: question.rules.clone(),
            title: question.title.clone(),
            why: question.why.clone(),
            severity: question.severity,
            scopes: question.scopes.clone(),
            rendered: render::render(message, envelope, SHOWN_BYTES),
            masked_arguments: None,
            request_id: message.id(envelope).unwrap_or_default().into(),
            bytes: message.bytes().len(),
        }
    }

    /// Returns whether both are the same call of the same session.
    pub(super) fn is_same_call(&self, other: &Self) -> bool {
        self.digest == other.digest && self.belongs_to(&other.context)
    }

    pub(super) fn belongs_to(&self, context: &Context) -> bool {
        let own = &self.context;
        (own.holder(), &own.upstream, &own.session)
            == (context.holder(), &context.upstream, &context.session)
    }

    /// Returns the audit event of the request, to be completed by the caller.
    pub(super) fn event<'a>(&'a self, id: &'a str) -> Approval<'a> {
        Approval {
            context: &self.context,
            audit: None,
            id,
            tool: &self.tool,
            rules: &self.rules,
            outcome: "",
            way: "none",
            scope: None,
            approver: None,
            duration: None,
        }
    }
}
