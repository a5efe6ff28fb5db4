//! Trace context sent by a peer: `traceparent` and `tracestate` of W3C Trace Context, in headers or
//! in `params._meta` (MCP 2026-07-28, `basic`, `_meta`; SEP-414). It is untrusted: malformed values
//! are ignored.

use std::borrow::Cow;

use http::HeaderMap;

use super::{SpanId, TraceId};
use crate::message::{Message, unhex};

/// The header, and the key in `_meta`.
const PARENT: &str = "traceparent";
const STATE: &str = "tracestate";
/// Maximum length of a `tracestate` that is kept, in bytes: the length that W3C requires everyone
/// to propagate.
const STATE_BYTES: usize = 512;
/// Maximum number of members of a `tracestate` (W3C Trace Context, 3.3.1.1).
const STATE_MEMBERS: usize = 32;
/// Length of a `traceparent` of version 00.
const PARENT_BYTES: usize = 55;

/// A span of another system, as the peer reported it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parent {
    pub trace: TraceId,
    pub span: SpanId,
    /// Whether its sender records it.
    pub sampled: bool,
    /// Vendor-specific state, if it is well-formed; at most 512 bytes.
    pub state: Option<Box<str>>,
}

/// The trace context of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceHeaders {
    /// The span that caused it.
    pub parent: Option<Parent>,
    /// The span of the HTTP request that carried it, if that is a different one.
    pub carrier: Option<Parent>,
}

impl TraceHeaders {
    /// Reads headers and message. The context in the message takes precedence over that in the
    /// headers: one HTTP request may carry several messages, and may be sent by a component between
    /// agent and gate (OpenTelemetry, semantic conventions for MCP, Context propagation).
    pub fn extract(headers: &HeaderMap, message: &Message) -> Self {
        let carrier = from_headers(headers);
        match from_message(message) {
            None => Self {
                parent: carrier,
                carrier: None,
            },
            Some(parent) => Self {
                carrier: carrier.filter(|carrier| carrier.span != parent.span),
                parent: Some(parent),
            },
        }
    }
}

fn from_headers(headers: &HeaderMap) -> Option<Parent> {
    let mut parents = headers.get_all(PARENT).iter();
    let (header, None) = (parents.next()?, parents.next()) else {
        return None;
    };
    let states: Option<Vec<&str>> = headers
        .get_all(STATE)
        .iter()
        .map(|value| value.to_str().ok())
        .collect();
    parse(
        header.to_str().ok()?,
        states.map(|states| states.join(",")).as_deref(),
    )
}

fn from_message(message: &Message) -> Option<Parent> {
    let meta = message.single_body()?.get("_meta")?;
    let state = meta.get_str(STATE);
    let parent: Cow<'_, str> = meta.get_str(PARENT)?;
    parse(&parent, state.as_deref())
}

fn parse(parent: &str, state: Option<&str>) -> Option<Parent> {
    let version = parent.get(..2)?;
    let rest = parent.get(2..)?;
    // A later version may append further fields (W3C Trace Context, 3.2.4).
    let fits = match unhex::<1>(version)? {
        [0xff] => false,
        [0] => parent.len() == PARENT_BYTES,
        _ => {
            parent.len() == PARENT_BYTES
                || parent
                    .get(PARENT_BYTES..)
                    .is_some_and(|more| more.starts_with('-'))
        }
    };
    let mut fields = rest
        .strip_prefix('-')
        .filter(|_| fits && parent.len() <= STATE_BYTES)?
        .split('-');
    let trace = unhex(fields.next()?).filter(|id| *id != [0; 16])?;
    let span = unhex(fields.next()?).filter(|id| *id != [0; 8])?;
    let [flags] = unhex(fields.next()?)?;
    let state = state.filter(|state| is_state(state)).map(Into::into);
    Some(Parent {
        trace: TraceId(trace),
        span: SpanId(span),
        sampled: flags & 1 == 1,
        state,
    })
}

/// Reports whether a `tracestate` is well-formed: members `key=value`, each key once (W3C Trace
/// Context, 3.3.1.3).
fn is_state(state: &str) -> bool {
    if state.is_empty() || state.len() > STATE_BYTES {
        return false;
    }
    let mut keys = Vec::new();
    for member in state
        .split(',')
        .map(|member| member.trim_matches([' ', '\t']))
        .filter(|member| !member.is_empty())
    {
        let Some((key, value)) = member.split_once('=') else {
            return false;
        };
        if !is_key(key) || !is_value(value) || keys.contains(&key) || keys.len() == STATE_MEMBERS {
            return false;
        }
        keys.push(key);
    }
    !keys.is_empty()
}

fn is_key(key: &str) -> bool {
    let starts = key.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    let within =
        |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'*' | b'/' | b'@');
    starts && key.len() <= 256 && key.bytes().all(within) && key.matches('@').count() <= 1
}

fn is_value(value: &str) -> bool {
    !value.is_empty()
        && value.len() <= 256
        && value
            .bytes()
            .all(|byte| matches!(byte, b' '..=b'~') && byte != b'=')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::ReadLimits;

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const OTHER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";

    fn message(meta: &str) -> Message {
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","_meta":{{{meta}}}}}}}"#
        );
        Message::parse(text.into(), &ReadLimits::default()).unwrap()
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut out = HeaderMap::new();
        pairs.iter().for_each(|(name, value)| {
            out.append(*name, value.parse().unwrap());
        });
        out
    }

    #[test]
    fn what_is_well_formed_is_read() {
        let trace_headers = TraceHeaders::extract(
            &headers(&[
                (PARENT, GOOD),
                (STATE, "rojo=00f067aa0ba902b7"),
                (STATE, "congo=t61"),
            ]),
            &message(""),
        );
        let parent = trace_headers.parent.unwrap();
        assert_eq!(
            (parent.trace.to_string(), parent.span.to_string()),
            (
                GOOD.get(3..35).unwrap().into(),
                GOOD.get(36..52).unwrap().into()
            )
        );
        assert!(parent.sampled);
        assert_eq!(
            parent.state.as_deref(),
            Some("rojo=00f067aa0ba902b7,congo=t61")
        );
        assert_eq!(trace_headers.carrier, None);
        let later = parse(&format!("cc{}-what-comes", GOOD.get(2..).unwrap()), None).unwrap();
        assert!(later.sampled, "a later version may say more");
        assert!(!parse(OTHER, None).unwrap().sampled);
    }

    #[test]
    fn what_stands_in_the_message_counts_first_and_the_other_is_its_carrier() {
        let both = TraceHeaders::extract(
            &headers(&[(PARENT, GOOD)]),
            &message(&format!(r#""traceparent":"{OTHER}","tracestate":"a=b""#)),
        );
        assert_eq!(
            both.parent
                .as_ref()
                .map(|parent| parent.trace.to_string())
                .as_deref(),
            Some(OTHER.get(3..35).unwrap())
        );
        assert_eq!(
            both.parent.and_then(|parent| parent.state).as_deref(),
            Some("a=b")
        );
        assert_eq!(
            both.carrier
                .map(|carrier| carrier.span.to_string())
                .as_deref(),
            Some(GOOD.get(36..52).unwrap())
        );
        let same = TraceHeaders::extract(
            &headers(&[(PARENT, GOOD)]),
            &message(&format!(r#""traceparent":"{GOOD}""#)),
        );
        assert!(same.parent.is_some() && same.carrier.is_none());
        let invalid =
            TraceHeaders::extract(&headers(&[(PARENT, GOOD)]), &message(r#""traceparent":7"#));
        assert!(
            invalid.parent.is_some(),
            "what is malformed in one place does not hide the other"
        );
    }

    #[test]
    fn what_is_malformed_is_not_there() {
        for malformed in [
            "",
            "00",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319-cb7ad6b7169203331-001",
            "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01.",
            "ä0-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ] {
            assert_eq!(parse(malformed, None), None, "{malformed}");
        }
        assert_eq!(
            parse(
                &format!("01{}-{}", GOOD.get(2..).unwrap(), "x".repeat(600)),
                None
            ),
            None,
            "nothing without bounds"
        );
        let twice =
            TraceHeaders::extract(&headers(&[(PARENT, GOOD), (PARENT, OTHER)]), &message(""));
        assert_eq!(twice, TraceHeaders::default());
        for malformed in [
            "",
            ",",
            "a",
            "a=",
            "A=b",
            "a=b,a=c",
            "a=b=c",
            "a=\u{e4}",
            &format!("a={}", "x".repeat(300)),
            &"k=v,".repeat(200),
        ] {
            assert_eq!(
                parse(GOOD, Some(malformed)).unwrap().state,
                None,
                "{malformed}"
            );
        }
        let most: Vec<String> = (0..33).map(|n| format!("k{n}=v")).collect();
        assert_eq!(parse(GOOD, Some(&most.join(","))).unwrap().state, None);
    }
}
