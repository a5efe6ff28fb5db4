//! The gate's `requestState` (2026-07-28, MRTR): what a call carried before approval was requested,
//! and the identity of its caller; authenticated, since it travels through the agent.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use bytes::Bytes;
use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::message::{Envelope, Json, Message, ReadLimits, quote};
use crate::protocol::{CallError, Context};

use super::digest::CallDigest;
use super::elicit::INPUT_KEY;

/// Prefix of the gate's own states.
const PREFIX: &str = "lychgate.1.";
/// Maximum length of a server's state, together with the answers to its questions, that the gate's
/// own state carries, in bytes.
const CARRIED_BYTES: usize = 64 << 10;

/// The key of this process.
pub(super) struct StateKey([u8; 32]);

/// A retried request, as it was before the gate requested approval.
pub(crate) struct RestoredRequest {
    /// The call as it would be without the gate.
    pub(crate) message: Message,
    /// The id of the approval request that it answers.
    pub(crate) id: String,
    /// The digest of the call that approval was requested for.
    pub(crate) digest: CallDigest,
    /// The answer, as JSON; `None` if there is none.
    pub(crate) answer: Option<Json>,
}

impl StateKey {
    /// Creates a random key.
    pub(super) fn new() -> Self {
        let mut key = [0; 32];
        for (part, uuid) in key
            .chunks_mut(16)
            .zip([uuid::Uuid::new_v4(), uuid::Uuid::new_v4()])
        {
            part.copy_from_slice(uuid.as_bytes());
        }
        Self(key)
    }

    fn mac(&self, payload: &str, context: &Context) -> Hmac<Sha256> {
        // HMAC accepts a key of any length.
        let mut mac = <Hmac<Sha256> as Mac>::new_from_slice(&self.0)
            .unwrap_or_else(|_| Hmac::new(&[0; 64].into()));
        let holder = context.holder().to_string();
        for part in [&*holder, &*context.upstream.0, payload] {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part.as_bytes());
        }
        mac
    }

    /// Returns the state that is sent with the question `id`; `None` if what the call carried is
    /// too long to include.
    pub(super) fn seal(
        &self,
        id: &str,
        digest: &CallDigest,
        context: &Context,
        message: &Message,
        envelope: &Envelope,
    ) -> Option<String> {
        let params = message.body(envelope);
        let raw = |key: &str| {
            params
                .and_then(|params| params.get(key))
                .map_or("null", |value| value.raw())
        };
        let state = raw("requestState");
        let answers = raw("inputResponses");
        if state.len() + answers.len() > CARRIED_BYTES {
            return None;
        }
        let payload = BASE64.encode(format!(
            r#"{{"id":{},"call":"{}","state":{state},"answers":{answers}}}"#,
            quote(id),
            digest.hex()
        ));
        let mac = BASE64.encode(self.mac(&payload, context).finalize().into_bytes());
        Some(format!("{PREFIX}{payload}.{mac}"))
    }

    /// Returns a retried request with the gate's parts removed; `None` if it answers no question of
    /// the gate.
    ///
    /// # Errors
    /// Its state has the gate's prefix and is invalid: another agent's, modified, or from an
    /// earlier process.
    pub(super) fn open(
        &self,
        context: &Context,
        message: &Message,
        limits: &ReadLimits,
    ) -> Result<Option<RestoredRequest>, CallError> {
        let Some(envelope) = message.single().filter(|envelope| envelope.is_request()) else {
            return Ok(None);
        };
        let Some(params) = message.body(envelope) else {
            return Ok(None);
        };
        let Some(state) = params.get_str("requestState") else {
            return Ok(None);
        };
        let Some(sealed) = state.strip_prefix(PREFIX) else {
            return Ok(None);
        };
        let invalid = || CallError::BadApproval;
        let (payload, mac) = sealed.split_once('.').ok_or_else(invalid)?;
        let mac = BASE64.decode(mac).map_err(|_| invalid())?;
        self.mac(payload, context)
            .verify_slice(&mac)
            .map_err(|_| invalid())?;
        let payload = BASE64.decode(payload).map_err(|_| invalid())?;
        let payload = Json::parse(payload.into(), limits).map_err(|_| invalid())?;
        let field = |key: &str| payload.root().get(key);
        let id = field("id")
            .and_then(|id| id.str())
            .ok_or_else(invalid)?
            .into_owned();
        let digest = field("call")
            .and_then(|call| call.str())
            .as_deref()
            .and_then(CallDigest::from_hex)
            .ok_or_else(invalid)?;
        let input = params
            .at(&["inputResponses", INPUT_KEY])
            .map(|answer| answer.raw().to_owned());
        let answer = input
            .map(|answer| Json::parse(answer.into(), limits))
            .transpose()
            .map_err(|_| invalid())?;

        let mut members: Vec<String> = Vec::new();
        for (key, value) in params
            .members()
            .filter(|(key, _)| !matches!(&**key, "requestState" | "inputResponses"))
        {
            members.push(format!("{}:{}", quote(&key), value.raw()));
        }
        for (key, name) in [("answers", "inputResponses"), ("state", "requestState")] {
            let value = field(key).filter(|value| value.raw() != "null");
            members.extend(value.map(|value| format!("{}:{}", quote(name), value.raw())));
        }
        let bytes = message.bytes();
        let span = params.span();
        let surrounding = bytes.get(..span.start).zip(bytes.get(span.end..));
        let (before, after) = surrounding.ok_or_else(invalid)?;
        let restored: Bytes = [
            before,
            format!("{{{}}}", members.join(",")).as_bytes(),
            after,
        ]
        .concat()
        .into();
        let message = Message::parse(restored, limits).map_err(CallError::BadMessage)?;
        Ok(Some(RestoredRequest {
            message,
            id,
            digest,
            answer,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{AgentName, Era, UpstreamName};

    fn context(agent: &str) -> Context {
        let agent = AgentName(agent.into());
        let upstream = UpstreamName("u".into());
        Context::new(agent, upstream, Era::Modern)
    }

    fn call(rest: &str) -> Message {
        let text = format!(
            r#"{{"jsonrpc":"2.0", "id":1,"method":"tools/call","params":{{"name":"t","arguments":{{"a": 1}}{rest}}}}}"#
        );
        Message::parse(text.into(), &ReadLimits::default()).unwrap()
    }

    fn seal_state(seal: &StateKey, message: &Message) -> String {
        let context = context("a");
        let envelope = message.single().unwrap();
        let digest = CallDigest::new(&context, message, envelope);
        seal.seal("q1", &digest, &context, message, envelope)
            .unwrap()
    }

    fn open_state(
        seal: &StateKey,
        agent: &str,
        state: &str,
    ) -> Result<Option<RestoredRequest>, CallError> {
        let rest = format!(
            r#","inputResponses":{{"lychgate-approval":{{"action":"accept"}}}},"requestState":{}"#,
            quote(state)
        );
        seal.open(&context(agent), &call(&rest), &ReadLimits::default())
    }

    #[test]
    fn the_call_comes_back_as_it_was() {
        let seal = StateKey::new();
        for rest in [
            "",
            r#","inputResponses":{"k":{"action":"accept"}},"requestState":"the server's""#,
        ] {
            let original = call(rest);
            let restored = open_state(&seal, "a", &seal_state(&seal, &original))
                .unwrap()
                .unwrap();
            assert_eq!(
                restored.message.bytes(),
                &Bytes::from(original.bytes().to_vec()).to_vec()
            );
            assert_eq!(restored.id, "q1");
            assert_eq!(
                restored.answer.unwrap().root().raw(),
                r#"{"action":"accept"}"#
            );
        }
    }

    #[test]
    fn only_the_gates_own_state_for_the_same_agent_opens() {
        let seal = StateKey::new();
        let state = seal_state(&seal, &call(""));
        assert!(
            matches!(open_state(&seal, "b", &state), Err(CallError::BadApproval)),
            "another agent's"
        );
        assert!(
            matches!(
                open_state(&StateKey::new(), "a", &state),
                Err(CallError::BadApproval)
            ),
            "another process's"
        );
        let end = if state.ends_with('A') { "Q" } else { "A" };
        let forged = [
            format!("{}{end}", state.get(..state.len() - 1).unwrap()),
            PREFIX.to_owned(),
            format!("{PREFIX}e30.e30"),
        ];
        for state in forged {
            assert!(
                matches!(open_state(&seal, "a", &state), Err(CallError::BadApproval)),
                "{state}"
            );
        }
        assert!(open_state(&seal, "a", "a server's own").unwrap().is_none());
        assert!(seal_state(&seal, &call("")).len() < 1000);
        let long = call(&format!(
            r#","requestState":"{}""#,
            "x".repeat(CARRIED_BYTES)
        ));
        let digest = CallDigest::new(&context("a"), &long, long.single().unwrap());
        assert!(
            seal.seal("q", &digest, &context("a"), &long, long.single().unwrap())
                .is_none()
        );
    }
}
