//! Identifies a call by its content, however its JSON is written.

use sha2::{Digest as _, Sha256};

use crate::message::{Envelope, Message, Value, ValueKind};
use crate::protocol::Context;

/// The digest of what one agent, for one user, requests of one upstream: equal for calls that
/// differ only in their id, their `_meta` and the order of members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CallDigest([u8; 32]);

/// Members of `params` that are not part of the content of a call: the client's metadata, and the
/// answers to the server's questions, which are judged separately (2026-07-28, MRTR).
const EXCLUDED_MEMBERS: [&str; 3] = ["_meta", "inputResponses", "requestState"];

impl CallDigest {
    /// Computes the digest of a request.
    pub(crate) fn new(context: &Context, message: &Message, envelope: &Envelope) -> Self {
        let mut hash = Sha256::new();
        let holder = context.holder().to_string();
        for part in [
            &*holder,
            &*context.upstream.0,
            envelope.method().unwrap_or_default(),
        ] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        let members = message
            .body(envelope)
            .into_iter()
            .flat_map(|params| params.members());
        let mut parts: Vec<([u8; 32], [u8; 32])> = members
            .filter(|(key, _)| !EXCLUDED_MEMBERS.contains(&&**key))
            .map(|(key, value)| (leaf_digest(b's', key.as_bytes()), canonical_digest(value)))
            .collect();
        parts.sort_unstable();
        parts.iter().for_each(|(key, value)| {
            hash.update(key);
            hash.update(value);
        });
        Self(hash.finalize().into())
    }

    /// Encodes the digest in hex.
    pub(crate) fn hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Decodes a digest from hex.
    pub(crate) fn from_hex(text: &str) -> Option<Self> {
        let mut out = [0; 32];
        if text.len() != 64 || !text.is_ascii() {
            return None;
        }
        for (n, byte) in out.iter_mut().enumerate() {
            *byte = u8::from_str_radix(text.get(2 * n..2 * n + 2)?, 16).ok()?;
        }
        Some(Self(out))
    }
}

fn leaf_digest(kind: u8, bytes: &[u8]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update([kind]);
    hash.update(bytes);
    hash.finalize().into()
}

/// A container whose values are still being digested.
struct OpenContainer<'j> {
    is_object: bool,
    remaining: Box<dyn Iterator<Item = (Option<String>, Value<'j>)> + 'j>,
    digests: Vec<([u8; 32], [u8; 32])>,
    key: [u8; 32],
}

/// Returns the digest of a value: members are sorted by name, strings are compared unescaped.
/// Iterative.
fn canonical_digest(root: Value<'_>) -> [u8; 32] {
    let mut containers: Vec<OpenContainer<'_>> = Vec::new();
    let mut value = root;
    loop {
        let mut digest = match value.kind() {
            ValueKind::Object => {
                let remaining = Box::new(
                    value
                        .members()
                        .map(|(key, value)| (Some(key.into_owned()), value)),
                );
                containers.push(OpenContainer {
                    is_object: true,
                    remaining,
                    digests: Vec::new(),
                    key: [0; 32],
                });
                None
            }
            ValueKind::Array => {
                let remaining = Box::new(value.elements().map(|value| (None, value)));
                containers.push(OpenContainer {
                    is_object: false,
                    remaining,
                    digests: Vec::new(),
                    key: [0; 32],
                });
                None
            }
            ValueKind::String => Some(leaf_digest(
                b's',
                value.str().unwrap_or_default().as_bytes(),
            )),
            ValueKind::Number | ValueKind::Bool | ValueKind::Null => {
                Some(leaf_digest(b'v', value.raw().as_bytes()))
            }
        };
        loop {
            let Some(top) = containers.last_mut() else {
                return digest.unwrap_or_default();
            };
            if let Some(digest) = digest.take() {
                top.digests.push((top.key, digest));
            }
            match top.remaining.next() {
                Some((key, next)) => {
                    top.key = key.map_or([0; 32], |key| leaf_digest(b's', key.as_bytes()));
                    value = next;
                    break;
                }
                None => {
                    if let Some(mut closed) = containers.pop() {
                        if closed.is_object {
                            closed.digests.sort_unstable();
                        }
                        let kind = if closed.is_object { b'o' } else { b'a' };
                        let inner: Vec<u8> = closed
                            .digests
                            .iter()
                            .flat_map(|(key, value)| [*key, *value])
                            .flatten()
                            .collect();
                        digest = Some(leaf_digest(kind, &inner));
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::ReadLimits;
    use crate::protocol::{AgentName, Era, UpstreamName};

    fn digest_of(agent: &str, text: &str) -> CallDigest {
        let agent = AgentName(agent.into());
        let upstream = UpstreamName("u".into());
        let context = Context::new(agent, upstream, Era::Legacy);
        let message = Message::parse(text.to_owned().into(), &ReadLimits::default()).unwrap();
        CallDigest::new(&context, &message, message.single().unwrap())
    }

    fn call(params: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#)
    }

    #[test]
    fn the_same_call_written_otherwise_is_the_same() {
        let one = digest_of(
            "a",
            &call(r#"{"name":"t","arguments":{"a":[1,{"x":"y"}],"b":"A"}}"#),
        );
        let same = r#" {"id": 2,"params":{"_meta":{"progressToken":7},"arguments":{"b":"\u0041","a":[1, {"x":"y"} ]},
            "requestState":"s","inputResponses":{},"name":"t"},"method":"tools/call","jsonrpc":"2.0"}"#;
        assert_eq!(digest_of("a", same), one);
        assert_eq!(CallDigest::from_hex(&one.hex()), Some(one));
        assert_eq!(CallDigest::from_hex("é"), None);
    }

    #[test]
    fn any_other_call_is_another() {
        let plain = r#"{"name":"t","arguments":{"a":["x","y"],"b":{"c":1}}}"#;
        let others = [
            r#"{"name":"u","arguments":{"a":["x","y"],"b":{"c":1}}}"#,
            r#"{"name":"t","arguments":{"a":["y","x"],"b":{"c":1}}}"#,
            r#"{"name":"t","arguments":{"a":["x","y"],"b":{"c":"1"}}}"#,
            r#"{"name":"t","arguments":{"a":["x",["y"]],"b":{"c":1}}}"#,
            r#"{"name":"t","arguments":{"a":["x","y"],"b":[{"c":1}]}}"#,
            r#"{"name":"t","arguments":{"a":["x","y"],"b":{"c":1},"d":null}}"#,
            r#"{"name":"t","arguments":{"a":["x","y"],"b":{"c":1}},"task":{"ttl":1}}"#,
        ];
        let one = digest_of("a", &call(plain));
        for other in others {
            assert_ne!(digest_of("a", &call(other)), one, "{other}");
        }
        assert_ne!(digest_of("b", &call(plain)), one, "another agent's");
        let deep = format!(
            r#"{{"name":"t","arguments":{}1{}}}"#,
            "[".repeat(60),
            "]".repeat(60)
        );
        assert_ne!(digest_of("a", &call(&deep)), one);
    }
}
