//! Logins that a call requires, presented to the user by the agent's own client if it supports
//! that.

use http::StatusCode;

use super::Gate;
use super::route::OpenCall;
use crate::approval::{Approvals, declared_modes};
use crate::message::quote;
use crate::protocol::{CallError, Era, Reply, answer};

/// Tells a client to have its user open links, and to repeat the call (2025-11-25, Elicitation, URL
/// mode).
const URL_ELICITATION_REQUIRED: i32 = -32042;
/// The key of the login in `inputRequests`, and the prefix of its id.
const INPUT_KEY: &str = "lychgate-login";

impl Gate {
    /// Returns the answer to a call that requires a login, in a form that its client supports: as a
    /// link for its user, if the client has declared that capability. Returns `None` if the answer
    /// is a plain error text as for any other failure.
    pub(super) fn login_request(&self, error: &CallError, open: &OpenCall) -> Option<Reply> {
        let (CallError::LoginRequired { link: Some(link) }, Some(message)) =
            (error, open.sent_message())
        else {
            return None;
        };
        let context = open.context();
        let id = message
            .single()
            .filter(|envelope| envelope.is_request())
            .and_then(|envelope| message.id(envelope))?;
        let text = quote(&format!(
            "lychgate asks you to log in to the server `{}` for the agent `{}`.",
            context.upstream, context.agent
        ));
        let link = quote(link);
        let body = match context.era {
            Era::Modern
                if Approvals::accepts_input(message)
                    && declared_modes(message, Era::Modern).url =>
            {
                let params = format!(r#"{{"mode":"url","message":{text},"url":{link}}}"#);
                let input_requests = format!(
                    r#"{{"{INPUT_KEY}":{{"method":"elicitation/create","params":{params}}}}}"#
                );
                answer::input_required(
                    id,
                    &input_requests,
                    &self.approvals.seal_login_state(context, message)?,
                )
            }
            // The call that opens a session declares the capability itself.
            Era::Legacy
                if open.route.session.state().elicitation.url
                    || declared_modes(message, Era::Legacy).url =>
            {
                let elicitation = format!("{INPUT_KEY}-{}", uuid::Uuid::new_v4().simple());
                let data = format!(
                    r#"{{"elicitations":[{{"mode":"url","elicitationId":"{elicitation}","message":{text},"url":{link}}}]}}"#
                );
                answer::error(
                    Some(id),
                    URL_ELICITATION_REQUIRED,
                    "authentication required for the upstream",
                    Some(&data),
                )
            }
            _ => return None,
        };
        self.record_failure(context, error);
        Some(answer::body_reply(StatusCode::OK, body))
    }
}
