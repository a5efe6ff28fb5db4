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
const ASIDE: [&str; 3] = ["_meta", "inputResponses", "requestState"];

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
            .filter(|(key, _)| !ASIDE.contains(&&**key))
            .map(|(key, value)| (leaf(b's', key.as_bytes()), canonical(value)))
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

fn leaf(kind: u8, bytes: &[u8]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update([kind]);
    hash.update(bytes);
    hash.finalize().into()
}

/// A container whose values are still being digested.
struct OpenContainer<'j> {
    is_object: bool,
    left: Box<dyn Iterator<Item = (Option<String>, Value<'j>)> + 'j>,
    done: Vec<([u8; 32], [u8; 32])>,
    key: [u8; 32],
}

/// Returns the digest of a value: members are sorted by name, strings are compared unescaped.
/// Iterative.
fn canonical(root: Value<'_>) -> [u8; 32] {
    let mut open: Vec<OpenContainer<'_>> = Vec::new();
    let mut value = root;
    loop {
        let mut digest = match value.kind() {
            ValueKind::Object => {
                let left = Box::new(
                    value
                        .members()
                        .map(|(key, value)| (Some(key.into_owned()), value)),
                );
                open.push(OpenContainer {
                    is_object: true,
                    left,
                    done: Vec::new(),
                    key: [0; 32],
                });
                None
            }
            ValueKind::Array => {
                let left = Box::new(value.elements().map(|value| (None, value)));
                open.push(OpenContainer {
                    is_object: false,
                    left,
                    done: Vec::new(),
                    key: [0; 32],
                });
                None
            }
            ValueKind::String => Some(leaf(b's', value.str().unwrap_or_default().as_bytes())),
            ValueKind::Number | ValueKind::Bool | ValueKind::Null => {
                Some(leaf(b'v', value.raw().as_bytes()))
            }
        };
        loop {
            let Some(top) = open.last_mut() else {
                return digest.unwrap_or_default();
            };
            if let Some(digest) = digest.take() {
                top.done.push((top.key, digest));
            }
            match top.left.next() {
                Some((key, next)) => {
                    top.key = key.map_or([0; 32], |key| leaf(b's', key.as_bytes()));
                    value = next;
                    break;
                }
                None => {
                    if let Some(mut closed) = open.pop() {
                        if closed.is_object {
                            closed.done.sort_unstable();
                        }
                        let kind = if closed.is_object { b'o' } else { b'a' };
                        let inner: Vec<u8> = closed
                            .done
                            .iter()
                            .flat_map(|(key, value)| [*key, *value])
                            .flatten()
                            .collect();
                        digest = Some(leaf(kind, &inner));
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

    fn of(agent: &str, text: &str) -> CallDigest {
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
        let one = of(
            "a",
            &call(r#"{"name":"t","arguments":{"a":[1,{"x":"y"}],"b":"A"}}"#),
        );
        let same = r#" {"id": 2,"params":{"_meta":{"progressToken":7},"arguments":{"b":"\u0041","a":[1, {"x":"y"} ]},
            "requestState":"s","inputResponses":{},"name":"t"},"method":"tools/call","jsonrpc":"2.0"}"#;
        assert_eq!(of("a", same), one);
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
        let one = of("a", &call(plain));
        for other in others {
            assert_ne!(of("a", &call(other)), one, "{other}");
        }
        assert_ne!(of("b", &call(plain)), one, "another agent's");
        let deep = format!(
            r#"{{"name":"t","arguments":{}1{}}}"#,
            "[".repeat(60),
            "]".repeat(60)
        );
        assert_ne!(of("a", &call(&deep)), one);
    }
}
