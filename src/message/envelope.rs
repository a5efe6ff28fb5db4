//! The JSON-RPC 2.0 envelope, as MCP uses it.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::json::{Json, Value, ValueKind};
use super::scan::unescape;
use super::{ParseError, ReadLimits};

/// A body that holds one JSON-RPC message or a batch of them. The bytes are those received, and
/// they are forwarded unchanged unless a verdict edits them.
#[derive(Clone)]
pub struct Message(Arc<ParsedMessage>);

struct ParsedMessage {
    json: Json,
    envelopes: Envelopes,
}

/// The messages of a body.
enum Envelopes {
    Single([Envelope; 1]),
    Batch(Vec<Envelope>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageKind {
    /// Expects a response.
    Request { method: Box<str> },
    /// Expects no response.
    Notification { method: Box<str> },
    /// A successful response.
    Result,
    /// An error response.
    Error,
}

/// One message of a body: its kind and the location of its parts.
#[derive(Clone, Debug)]
pub struct Envelope {
    pub kind: MessageKind,
    node: u32,
    id: Option<u32>,
    body: Option<u32>,
}

impl Envelope {
    /// Returns the method of a request or notification.
    pub fn method(&self) -> Option<&str> {
        match &self.kind {
            MessageKind::Request { method } | MessageKind::Notification { method } => Some(method),
            _ => None,
        }
    }

    /// Returns whether the message is a request and so expects a response.
    pub fn is_request(&self) -> bool {
        matches!(self.kind, MessageKind::Request { .. })
    }

    /// Returns whether the message is a response to a request.
    pub fn is_answer(&self) -> bool {
        matches!(self.kind, MessageKind::Result | MessageKind::Error)
    }
}

impl Message {
    /// Parses a body strictly: as [`Json::parse`] does, and also checks the JSON-RPC 2.0 envelope
    /// (an id is a string or an integer; null only in an error response to an unreadable request).
    ///
    /// # Errors
    /// The body is not a message, or not a batch of at least one.
    pub fn parse(bytes: Bytes, limits: &ReadLimits) -> Result<Self, ParseError> {
        let json = Json::parse(bytes, limits)?;
        let root = json.root();
        if root.kind() != ValueKind::Array {
            let envelopes = Envelopes::Single([parse_envelope(root)?]);
            return Ok(Self(Arc::new(ParsedMessage { json, envelopes })));
        }
        let limit = limits.batch_items;
        if root.elements().nth(limit).is_some() {
            return Err(ParseError::TooManyItems { limit });
        }
        let envelopes = root
            .elements()
            .map(parse_envelope)
            .collect::<Result<Vec<_>, _>>()?;
        if envelopes.is_empty() {
            return Err(ParseError::NotRpc("an empty batch"));
        }
        Ok(Self(Arc::new(ParsedMessage {
            json,
            envelopes: Envelopes::Batch(envelopes),
        })))
    }

    /// Returns the bytes as received.
    pub fn bytes(&self) -> &Bytes {
        self.0.json.bytes()
    }

    /// Returns the whole body as JSON.
    pub fn root(&self) -> Value<'_> {
        self.0.json.root()
    }

    /// Returns whether the body is an array (allowed in MCP 2025-03-26 only).
    pub fn is_batch(&self) -> bool {
        matches!(self.0.envelopes, Envelopes::Batch(_))
    }

    /// Returns the messages of the body: a single one, or those of the batch.
    pub fn envelopes(&self) -> &[Envelope] {
        match &self.0.envelopes {
            Envelopes::Single(envelope) => envelope,
            Envelopes::Batch(envelopes) => envelopes,
        }
    }

    /// Returns the requests among the messages of the body.
    pub fn requests(&self) -> impl Iterator<Item = &Envelope> {
        self.envelopes()
            .iter()
            .filter(|envelope| envelope.is_request())
    }

    /// Returns the answers among the messages of the body.
    pub fn answers(&self) -> impl Iterator<Item = &Envelope> {
        self.envelopes()
            .iter()
            .filter(|envelope| envelope.is_answer())
    }

    /// Returns the message if the body is not a batch.
    pub fn single(&self) -> Option<&Envelope> {
        match &self.0.envelopes {
            Envelopes::Single([envelope]) => Some(envelope),
            Envelopes::Batch(_) => None,
        }
    }

    /// Returns `params`, `result` or `error` of the only message, if present.
    pub fn single_body(&self) -> Option<Value<'_>> {
        self.body(self.single()?)
    }

    /// Returns the JSON object of a message.
    pub fn value(&self, envelope: &Envelope) -> Value<'_> {
        self.0.json.value(envelope.node)
    }

    /// Returns `params`, `result` or `error`, if present.
    pub fn body(&self, envelope: &Envelope) -> Option<Value<'_>> {
        envelope.body.map(|node| self.0.json.value(node))
    }

    /// Returns the id as written (`1`, `"a"`), if present and not null.
    pub fn id(&self, envelope: &Envelope) -> Option<&str> {
        envelope.id.map(|node| self.0.json.value(node).raw())
    }

    /// Returns the byte range of one message of the body.
    pub fn span(&self, envelope: &Envelope) -> Range<usize> {
        self.value(envelope).span()
    }
}

/// Returns whether two ids, as written, name the same request for some client: `"\u0061"` equals
/// `"a"`, and `1` equals `"1"`, because the TypeScript and Python SDKs convert the id of a response
/// to a number before they look up its request.
pub fn same_id(a: &str, b: &str) -> bool {
    a == b || id_text(a) == id_text(b)
}

/// Returns the text of an id as written; it is the same for all spellings that [`same_id`] treats
/// as equal.
pub fn id_text(id: &str) -> Cow<'_, str> {
    match id.strip_prefix('"').and_then(|id| id.strip_suffix('"')) {
        Some(inner) if inner.contains('\\') => Cow::Owned(unescape(inner)),
        Some(inner) => Cow::Borrowed(inner),
        None if id == "-0" => Cow::Borrowed("0"),
        None => Cow::Borrowed(id),
    }
}

/// Keys with a meaning in an envelope or in `params`. Some servers match keys case-insensitively,
/// so a key that differs from one of these only in case is ambiguous.
const ENVELOPE_KEYS: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];
const PARAM_KEYS: [&str; 8] = [
    "name",
    "arguments",
    "uri",
    "_meta",
    "cursor",
    "inputResponses",
    "requestState",
    "task",
];

/// Applies the case folding that lenient parsers apply to keys: ASCII, and the two other characters
/// that fold into ASCII.
fn folds_to(key: &str, name: &str) -> bool {
    key != name
        && key.chars().count() == name.len()
        && key.chars().zip(name.chars()).all(|(k, n)| {
            let k = match k {
                '\u{17f}' => 's',
                '\u{212a}' => 'k',
                k => k.to_ascii_lowercase(),
            };
            k == n.to_ascii_lowercase()
        })
}

fn parse_envelope(value: Value<'_>) -> Result<Envelope, ParseError> {
    if value.kind() != ValueKind::Object {
        return Err(ParseError::NotRpc("it is not an object"));
    }
    let (mut version, mut id, mut method, mut params, mut result, mut error) =
        (None, None, None, None, None, None);
    for (key, member) in value.members() {
        let slot = match &*key {
            "jsonrpc" => &mut version,
            "id" => &mut id,
            "method" => &mut method,
            "params" => &mut params,
            "result" => &mut result,
            "error" => &mut error,
            key if ENVELOPE_KEYS.iter().any(|name| folds_to(key, name)) => {
                return Err(ParseError::NotRpc(
                    "a key differs from a JSON-RPC key in case only",
                ));
            }
            _ => continue,
        };
        *slot = Some(member);
    }
    if version.and_then(|v| v.str()).as_deref() != Some("2.0") {
        return Err(ParseError::NotRpc("`jsonrpc` is not \"2.0\""));
    }
    let null_id = id.is_some_and(|id| id.kind() == ValueKind::Null);
    let has_id = match id {
        Some(id) if id.kind() == ValueKind::String => true,
        Some(id) if id.kind() == ValueKind::Number && !id.raw().contains(['.', 'e', 'E']) => true,
        Some(_) if null_id => false,
        None => false,
        Some(_) => {
            return Err(ParseError::NotRpc(
                "`id` is neither a string nor an integer",
            ));
        }
    };
    let at = |value: Value<'_>| value.handle();
    let (kind, body) = match (method, result, error) {
        (Some(method), None, None) => {
            let Some(method) = method.str() else {
                return Err(ParseError::NotRpc("`method` is not a string"));
            };
            if null_id {
                return Err(ParseError::NotRpc("`id` is null"));
            }
            if let Some(params) = params {
                if !matches!(params.kind(), ValueKind::Object | ValueKind::Array) {
                    return Err(ParseError::NotRpc(
                        "`params` is neither an object nor an array",
                    ));
                }
                if params
                    .members()
                    .any(|(key, _)| PARAM_KEYS.iter().any(|name| folds_to(&key, name)))
                {
                    return Err(ParseError::NotRpc(
                        "a key of `params` differs from an MCP key in case only",
                    ));
                }
            }
            let method = method.into();
            (
                if has_id {
                    MessageKind::Request { method }
                } else {
                    MessageKind::Notification { method }
                },
                params,
            )
        }
        (None, Some(result), None) => {
            if !has_id {
                return Err(ParseError::NotRpc("a result without an id"));
            }
            (MessageKind::Result, Some(result))
        }
        (None, None, Some(error)) => {
            if error.kind() != ValueKind::Object {
                return Err(ParseError::NotRpc("`error` is not an object"));
            }
            (MessageKind::Error, Some(error))
        }
        (None, None, None) => {
            return Err(ParseError::NotRpc(
                "neither `method` nor `result` nor `error`",
            ));
        }
        _ => {
            return Err(ParseError::NotRpc(
                "more than one of `method`, `result` and `error`",
            ));
        }
    };
    Ok(Envelope {
        kind,
        node: at(value),
        id: if has_id { id.map(at) } else { None },
        body: body.map(at),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Message, ParseError> {
        Message::parse(
            Bytes::copy_from_slice(text.as_bytes()),
            &ReadLimits::default(),
        )
    }

    #[test]
    fn the_four_kinds() {
        let message =
            parse(r#"{"jsonrpc":"2.0","id":"a\"","method":"tools/call","params":{"name":"x"}}"#)
                .unwrap();
        let envelope = message.single().unwrap();
        assert_eq!(
            envelope.kind,
            MessageKind::Request {
                method: "tools/call".into()
            }
        );
        assert_eq!(message.id(envelope), Some(r#""a\"""#));
        assert_eq!(message.body(envelope).unwrap().raw(), r#"{"name":"x"}"#);
        assert_eq!(
            parse(r#"{"jsonrpc":"2.0","method":"n"}"#)
                .unwrap()
                .single()
                .unwrap()
                .kind,
            MessageKind::Notification { method: "n".into() }
        );
        assert_eq!(
            parse(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#)
                .unwrap()
                .single()
                .unwrap()
                .kind,
            MessageKind::Result
        );
        let error =
            parse(r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}"#).unwrap();
        assert_eq!(error.single().unwrap().kind, MessageKind::Error);
        assert_eq!(error.id(error.single().unwrap()), None);
    }

    #[test]
    fn an_id_may_be_spelled_in_two_ways() {
        for (a, b) in [
            (r#""a""#, r#""\u0061""#),
            (r#""\ud83d\ude00\/""#, r#""😀/""#),
            ("1", "1"),
            (r#""\"""#, r#""\u0022""#),
            (r#""1""#, "1"),
            ("0", "-0"),
        ] {
            assert!(same_id(a, b) && same_id(b, a), "{a} {b}");
        }
        for (a, b) in [
            (r#"" 1""#, "1"),
            (r#""01""#, "1"),
            ("1", "2"),
            (r#""a""#, r#""A""#),
            (r#""\\u0061""#, r#""a""#),
        ] {
            assert!(!same_id(a, b), "{a} {b}");
        }
    }

    #[test]
    fn a_batch_is_its_items() {
        let message =
            parse(r#"[{"jsonrpc":"2.0","id":1,"method":"a"}, {"jsonrpc":"2.0","method":"b"}]"#)
                .unwrap();
        assert!(message.is_batch() && message.single().is_none());
        let methods: Vec<_> = message
            .envelopes()
            .iter()
            .filter_map(Envelope::method)
            .collect();
        assert_eq!(methods, ["a", "b"]);
        assert_eq!(
            &message.bytes()[message.span(&message.envelopes()[1])],
            br#"{"jsonrpc":"2.0","method":"b"}"#
        );
    }

    #[test]
    fn what_is_no_message_is_refused_with_the_right_code() {
        for text in [
            "[]",
            "1",
            "\"x\"",
            "null",
            "{}",
            r#"{"jsonrpc":"1.0","method":"a"}"#,
            r#"{"jsonrpc":"2.0","method":"a","id":null}"#,
            r#"{"jsonrpc":"2.0","method":"a","id":1.5}"#,
            r#"{"jsonrpc":"2.0","method":"a","id":[]}"#,
            r#"{"jsonrpc":"2.0","method":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"a","result":{}}"#,
            r#"{"jsonrpc":"2.0","result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"a","params":"x"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"a","param\u017f":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","Arguments":{}}}"#,
        ] {
            let error = parse(text).map(|_| ()).unwrap_err();
            assert_eq!(error.code(), -32600, "{text}");
        }
        assert_eq!(parse("{").map(|_| ()).unwrap_err().code(), -32700);
    }
}
