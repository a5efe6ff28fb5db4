//! What a person is asked about.

use std::sync::Arc;

use crate::config::Scope;
use crate::inspect::Question;
use crate::message::{Envelope, Message};
use crate::protocol::{Context, headers};
use crate::record::Approval;
use crate::rules::{RuleId, Severity};

use super::digest::CallDigest;
use super::render;

/// Longest part of a call that is kept to be shown, in bytes.
const SHOWN_BYTES: usize = 64 << 10;

/// A call that a person is asked about.
#[derive(Clone, Debug)]
pub(crate) struct ApprovalRequest {
    pub(crate) context: Context,
    pub(crate) digest: CallDigest,
    /// The tool, to be read by a person; the method of what calls none.
    pub(crate) tool: String,
    /// The same as it was sent: names that look alike where they are cut are not one.
    pub(super) name: Box<str>,
    pub(crate) rules: Vec<RuleId>,
    pub(crate) title: String,
    pub(crate) why: String,
    pub(crate) severity: Severity,
    /// What a yes may be for, the narrowest first.
    pub(crate) scopes: Vec<Scope>,
    /// All that would be sent, to be read by a person.
    pub(crate) shown: String,
    /// Its arguments with secrets masked, where people are notified of it: JSON.
    pub(super) masked: Option<String>,
    /// The id of the request, as written.
    pub(super) request: Box<str>,
    pub(super) bytes: usize,
}

impl ApprovalRequest {
    /// What is asked about a call.
    pub(crate) fn new(
        question: &Question,
        context: &Context,
        message: &Message,
        envelope: &Envelope,
    ) -> Self {
        let tool =
            headers::named(message, envelope).filter(|_| envelope.method() == Some("tools/call"));
        let tool = tool.unwrap_or_else(|| envelope.method().unwrap_or_default().into());
        Self {
            // The question may outlive the call.
            context: Context {
                trace: context
                    .trace
                    .as_ref()
                    .map(|trace| Arc::new(trace.outlived())),
                ..context.clone()
            },
            digest: CallDigest::of(context, message, envelope),
            tool: render::line(&tool, 256),
            name: tool.into(),
            rules: question.rules.clone(),
            title: question.title.clone(),
            why: question.why.clone(),
            severity: question.severity,
            scopes: question.scopes.clone(),
            shown: render::render(message, envelope, SHOWN_BYTES),
            masked: None,
            request: message.id(envelope).unwrap_or_default().into(),
            bytes: message.bytes().len(),
        }
    }

    /// Whether it is the same call of the same session.
    pub(super) fn is_same_call(&self, other: &Self) -> bool {
        self.digest == other.digest && self.is_of(&other.context)
    }

    pub(super) fn is_of(&self, context: &Context) -> bool {
        let own = &self.context;
        (own.holder(), &own.upstream, &own.session)
            == (context.holder(), &context.upstream, &context.session)
    }

    /// Its audit event, to be completed.
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
            by: None,
            took: None,
        }
    }
}
