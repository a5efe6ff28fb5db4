//! The approval request as agents present it to their users, by form mode elicitation (2025-06-18
//! to 2026-07-28), and its answer.

use crate::config::Scope;
use crate::inspect::{FIRST_USE, FIRST_WRITE};
use crate::message::{Envelope, Message, Value, ValueKind, quote};
use crate::protocol::Era;

use super::{ApprovalRequest, render};

/// Prefix of the ids of the gate's own requests; responses to them are not forwarded.
pub(crate) const ID_PREFIX: &str = "lychgate-approval-";
/// The name of the gate's request in `inputRequests`.
pub(crate) const INPUT_KEY: &str = "lychgate-approval";
/// Maximum length of the part of a call that is shown in a form, in bytes.
pub(crate) const FORM_BYTES: usize = 8 << 10;
/// The `_meta` key under which modern requests declare the client's capabilities.
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// The user's response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ElicitResponse {
    /// Approved, with this scope.
    Approved(Scope),
    /// Denied, or the form was closed without an answer.
    Denied,
    /// The client could not ask its user.
    Unavailable,
}

/// The elicitation modes that a client supports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ElicitationSupport {
    pub(crate) form: bool,
    /// URL mode (2025-11-25 and later).
    pub(crate) url: bool,
}

/// Returns the elicitation modes that a request declares: `initialize` of earlier revisions for a
/// session, every request of 2026-07-28 for itself.
pub(crate) fn elicitation_support(
    message: &Message,
    envelope: &Envelope,
    era: Era,
) -> ElicitationSupport {
    let unsupported = ElicitationSupport::default();
    let Some(params) = message.body(envelope) else {
        return unsupported;
    };
    let capabilities = match era {
        Era::Legacy => params.get("capabilities"),
        Era::Modern => params.at(&["_meta", CAPABILITIES]),
    };
    let Some(elicitation) = capabilities.and_then(|capabilities| capabilities.get("elicitation"))
    else {
        return unsupported;
    };
    if elicitation.kind() != ValueKind::Object {
        return unsupported;
    }
    let url = elicitation.get("url").is_some();
    // An empty capability means form mode (2025-11-25, Elicitation, Capabilities).
    ElicitationSupport {
        form: elicitation.members().next().is_none() || elicitation.get("form").is_some() || !url,
        url,
    }
}

/// Returns the params of `elicitation/create`.
pub(crate) fn form(request: &ApprovalRequest) -> String {
    let (ApprovalRequest { title, why, .. }, excerpt) =
        (request, render::truncate(&request.rendered, FORM_BYTES));
    let rules: Vec<String> = request
        .rules
        .iter()
        .map(|rule| format!("`{rule}`"))
        .collect();
    let text = format!(
        "lychgate asks for the agent `{}`: send this call to the server `{}`?\n\n{title} (rule {}). {why}\n\n\
         The exact call is below; text after a bar comes from the agent, not from lychgate:\n{excerpt}",
        request.context.agent,
        request.context.upstream,
        rules.join(", "),
    );
    let labels: Vec<String> = request
        .scopes
        .iter()
        .map(|scope| quote(label(*scope, request)))
        .collect();
    let words: Vec<String> = request
        .scopes
        .iter()
        .map(|scope| quote(scope.name()))
        .collect();
    format!(
        r#"{{"message":{},"requestedSchema":{{"type":"object","properties":{{"allow":{{"type":"string","title":"Allow","enum":[{}],"enumNames":[{}]}}}},"required":["allow"]}}}}"#,
        quote(&text),
        words.join(","),
        labels.join(",")
    )
}

fn label(scope: Scope, request: &ApprovalRequest) -> &'static str {
    let is_first_rule = request
        .rules
        .iter()
        .all(|rule| [FIRST_WRITE, FIRST_USE].contains(&rule.as_str()));
    match scope {
        Scope::Once => "this once",
        Scope::Session if is_first_rule => "this call, and do not ask again in this session",
        Scope::Session => "this tool, for these rules, in this session",
        Scope::Call => "this exact call, until the gateway restarts",
        Scope::Always => "this exact call, permanently",
    }
}

/// Parses an `ElicitResult`, whether it is the result of a response or one of `inputResponses`.
/// Anything that is not a clear approval is a denial; an approval that names no scope has the
/// narrowest.
pub(crate) fn read_response(result: Option<Value<'_>>, scopes: &[Scope]) -> ElicitResponse {
    let Some(result) = result else {
        return ElicitResponse::Unavailable;
    };
    if result.get_str("action").as_deref() != Some("accept") {
        return ElicitResponse::Denied;
    }
    let scope_name = result
        .at(&["content", "allow"])
        .and_then(|allow| allow.str());
    let scope = match &scope_name {
        Some(word) => Scope::named(word).filter(|scope| scopes.contains(scope)),
        None => scopes.first().copied(),
    };
    scope.map_or(ElicitResponse::Denied, ElicitResponse::Approved)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Json, ReadLimits};

    #[test]
    fn only_a_plain_yes_is_one() {
        let scopes = [Scope::Once, Scope::Session];
        let response = |text: &'static str| {
            let json = Json::parse(text.into(), &ReadLimits::default()).unwrap();
            read_response(Some(json.root()), &scopes)
        };
        assert_eq!(
            response(r#"{"action":"accept","content":{"allow":"session"}}"#),
            ElicitResponse::Approved(Scope::Session)
        );
        assert_eq!(
            response(r#"{"action":"accept"}"#),
            ElicitResponse::Approved(Scope::Once)
        );
        for no in [
            r#"{"action":"accept","content":{"allow":"always"}}"#,
            r#"{"action":"accept","content":{"allow":"everything"}}"#,
            r#"{"action":"decline"}"#,
            r#"{"action":"cancel"}"#,
            r#"{"action":true}"#,
            r#"{}"#,
            r#""accept""#,
        ] {
            assert_eq!(response(no), ElicitResponse::Denied, "{no}");
        }
        assert_eq!(read_response(None, &scopes), ElicitResponse::Unavailable);
    }

    #[test]
    fn what_clients_offer() {
        let support = |params: &str, era| {
            let text =
                format!(r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{params}}}"#);
            let message = Message::parse(text.into(), &ReadLimits::default()).unwrap();
            elicitation_support(&message, message.single().unwrap(), era)
        };
        let modes = |form, url| ElicitationSupport { form, url };
        for (params, expected) in [
            (r#"{"capabilities":{"elicitation":{}}}"#, modes(true, false)),
            (
                r#"{"capabilities":{"elicitation":{"form":{},"url":{}}}}"#,
                modes(true, true),
            ),
            (
                r#"{"capabilities":{"elicitation":{"url":{}}}}"#,
                modes(false, true),
            ),
            (r#"{"capabilities":{"sampling":{}}}"#, modes(false, false)),
        ] {
            assert_eq!(support(params, Era::Legacy), expected, "{params}");
        }
        let modern =
            r#"{"_meta":{"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}"#;
        assert_eq!(
            (support(modern, Era::Modern), support(modern, Era::Legacy)),
            (modes(true, false), modes(false, false))
        );
    }
}
