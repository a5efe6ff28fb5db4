//! Headers that mirror the body, and which of an agent's headers travel on.
//!
//! MCP 2026-07-28 (`basic/transports/streamable-http`, Header Validation): whoever reads the body refuses a
//! request whose headers say something else, so that nothing behind is led astray by them.

use std::borrow::Cow;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::target::target;
use super::{CallError, Era, MODERN, OpenRequest, header};
use crate::message::{Envelope, Message, Value, ValueKind};

/// The `_meta` key that makes a request a modern one.
pub const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// Where the arguments of a tool are mirrored, as its definition says (`x-mcp-header`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mirror {
    /// What follows `Mcp-Param-`, in lower case.
    pub header: String,
    /// The names that lead from `arguments` to the value.
    pub path: Vec<String>,
}

/// Headers of an agent that reach the upstream. All others stay here: credentials, cookies, forwarding, hop-by-hop.
pub fn travelling(headers: HeaderMap) -> HeaderMap {
    const TRAVEL: [&str; 10] = [
        "accept",
        header::SESSION,
        header::VERSION,
        header::METHOD,
        header::NAME,
        header::LAST_EVENT_ID,
        "traceparent",
        "tracestate",
        "baggage",
        "cache-control",
    ];
    without(headers, |name| {
        !TRAVEL.contains(&name.as_str()) && !name.as_str().starts_with(header::PARAM)
    })
}

/// Headers without those of some names. The map is changed in place: `hyper` uses it again for the next message of the
/// connection that it is written to.
pub fn without(mut headers: HeaderMap, drops: impl Fn(&HeaderName) -> bool) -> HeaderMap {
    let dropped: Vec<HeaderName> = headers.keys().filter(|name| drops(name)).cloned().collect();
    for name in dropped {
        headers.remove(name);
    }
    headers
}

/// The same headers, copied out of the buffer that they were read into: it is freed as soon as nothing refers to it.
pub fn copied(mut headers: HeaderMap) -> HeaderMap {
    for value in headers.values_mut() {
        if let Ok(mut copy) = HeaderValue::from_bytes(value.as_bytes()) {
            copy.set_sensitive(value.is_sensitive());
            *value = copy;
        }
    }
    headers
}

/// The same headers in a map with little room for more. `hyper` keeps the map for as long as the body lasts.
pub fn compact(headers: HeaderMap) -> HeaderMap {
    let mut compact = HeaderMap::with_capacity(headers.len() + 1);
    compact.extend(headers);
    compact
}

/// Refuses a header that may be there once only and is there twice.
///
/// # Errors
/// [`CallError::HeaderMismatch`], naming it.
pub fn single(headers: &HeaderMap) -> Result<(), CallError> {
    if headers.len() == headers.keys_len() {
        return Ok(());
    }
    let doubled = |name: &str| headers.get_all(name).iter().nth(1).is_some();
    let fixed = [
        header::SESSION,
        header::VERSION,
        header::METHOD,
        header::NAME,
        header::LAST_EVENT_ID,
        "content-type",
        "authorization",
    ];
    let name = fixed.into_iter().find(|name| doubled(name));
    let param = || {
        headers
            .keys()
            .map(http::HeaderName::as_str)
            .find(|name| name.starts_with(header::PARAM) && doubled(name))
    };
    match name.or_else(param) {
        Some(name) => Err(CallError::HeaderMismatch(format!(
            "`{name}` is there more than once"
        ))),
        None => Ok(()),
    }
}

/// The era of what an agent sends: its body decides, the header only cross-checks. Without a body the header says it.
///
/// # Errors
/// A modern header over a request without the `_meta` that modern requests carry.
pub fn era(headers: &HeaderMap, message: Option<&Message>) -> Result<Era, CallError> {
    let by_header = match text(headers, header::VERSION) {
        // Revisions are dates, so later ones sort after.
        Some(version)
            if version.as_bytes() >= MODERN.as_bytes() && version.len() == MODERN.len() =>
        {
            Era::Modern
        }
        _ => Era::Legacy,
    };
    let Some((message, envelope)) = message.and_then(|m| m.single().map(|e| (m, e))) else {
        return Ok(by_header);
    };
    if meta_version(message, envelope).is_some() {
        return Ok(Era::Modern);
    }
    if by_header == Era::Modern && envelope.is_request() {
        return Err(CallError::BadMeta(META_VERSION));
    }
    Ok(by_header)
}

/// Refuses a message whose headers say something else than its body, or that lacks those its revision demands.
/// `mirrors` are those of the tool that is called, if its definition was seen.
///
/// # Errors
/// [`CallError::HeaderMismatch`], naming the header.
pub fn agree(
    headers: &HeaderMap,
    message: &Message,
    era: Era,
    mirrors: Option<&[Mirror]>,
) -> Result<(), CallError> {
    let Some(envelope) = message.single() else {
        return Ok(());
    };
    let must = era == Era::Modern && envelope.is_request();
    if let Some(version) = meta_version(message, envelope) {
        check(headers, header::VERSION, Some(&version), must)?;
    }
    if let Some(method) = envelope.method() {
        check(headers, header::METHOD, Some(method), must)?;
    }
    let name = named(message, envelope);
    check(
        headers,
        header::NAME,
        name.as_deref(),
        must && name.is_some(),
    )?;
    params(
        headers,
        message
            .body(envelope)
            .and_then(|params| params.get("arguments")),
        mirrors,
        must,
    )
}

/// Whether a client that sent these headers knows links to resources among the blocks of results.
pub fn knows_links(headers: &HeaderMap, era: Era) -> bool {
    let version = headers
        .get(header::VERSION)
        .and_then(|version| version.to_str().ok());
    era == Era::Modern || version.is_some_and(has_links)
}

/// Whether a revision has such links.
pub fn has_links(version: &str) -> bool {
    version >= "2025-06-18"
}

/// The requests of a message, as far as judging their answers needs them.
pub fn requests(message: &Message) -> Vec<OpenRequest> {
    let requests = message
        .envelopes()
        .iter()
        .filter(|envelope| envelope.is_request());
    let asked = requests.filter_map(|envelope| {
        let tool = named(message, envelope).map(|name| name.into());
        let continues = message
            .body(envelope)
            .is_some_and(|params| params.get("cursor").is_some());
        Some(OpenRequest {
            id: message.id(envelope)?.into(),
            method: envelope.method()?.into(),
            tool,
            continues,
            target: target(envelope.method()?, message.body(envelope)),
        })
    });
    asked.collect()
}

/// What `Mcp-Name` mirrors: the tool, prompt, resource or task that a request is about.
pub fn named<'m>(message: &'m Message, envelope: &Envelope) -> Option<Cow<'m, str>> {
    let key = match envelope.method()? {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return None,
    };
    message.body(envelope)?.get(key)?.str()
}

fn meta_version<'m>(message: &'m Message, envelope: &Envelope) -> Option<Cow<'m, str>> {
    message.body(envelope)?.at(&["_meta", META_VERSION])?.str()
}

/// Whether a modern request has the `_meta` that its server has to refuse it without (2026-07-28, Basic, `_meta`).
pub fn has_meta(message: &Message) -> bool {
    let body = message.single().and_then(|envelope| message.body(envelope));
    let capabilities = body.and_then(|body| body.at(&["_meta", META_CAPABILITIES]));
    capabilities.is_some_and(|value| value.kind() == ValueKind::Object)
}

/// The revision that a request says it is of.
pub fn version<'m>(headers: &'m HeaderMap, message: Option<&'m Message>) -> Option<Cow<'m, str>> {
    let of_message = message.and_then(|message| meta_version(message, message.single()?));
    of_message.or_else(|| text(headers, header::VERSION).map(Cow::Borrowed))
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn check(
    headers: &HeaderMap,
    name: &'static str,
    body: Option<&str>,
    must: bool,
) -> Result<(), CallError> {
    match (headers.get(name), body) {
        (None, _) if must => Err(CallError::HeaderMismatch(format!("`{name}` is missing"))),
        (None, _) => Ok(()),
        // A mirror of something that the request does not name says nothing that could disagree.
        (Some(_), None) => Ok(()),
        (Some(value), Some(body)) if unwrap(value).as_deref() == Some(body) => Ok(()),
        (Some(_), Some(_)) => Err(CallError::HeaderMismatch(format!(
            "`{name}` does not equal the body"
        ))),
    }
}

/// A header's value, taken out of `=?base64?…?=` where it is wrapped so. `None` where it is not legal.
fn unwrap(value: &HeaderValue) -> Option<Cow<'_, str>> {
    let text = value.to_str().ok()?.trim_matches([' ', '\t']);
    match text
        .strip_prefix("=?base64?")
        .and_then(|rest| rest.strip_suffix("?="))
    {
        Some(wrapped) => String::from_utf8(BASE64_STANDARD.decode(wrapped).ok()?)
            .ok()
            .map(Cow::Owned),
        None => Some(Cow::Borrowed(text)),
    }
}

/// `must`: whether the revision demands a header for every annotated argument; earlier ones know no such headers.
fn params(
    headers: &HeaderMap,
    arguments: Option<Value<'_>>,
    mirrors: Option<&[Mirror]>,
    must: bool,
) -> Result<(), CallError> {
    let sent: Vec<_> = headers
        .iter()
        .filter_map(|(name, value)| Some((name.as_str().strip_prefix(header::PARAM)?, value)))
        .collect();
    if sent.is_empty() && mirrors.is_none_or(<[Mirror]>::is_empty) {
        return Ok(());
    }
    let at = |path: &[String]| {
        let found = path
            .iter()
            .try_fold(arguments?, |value, key| value.get(key))?;
        (found.kind() != ValueKind::Null).then_some(found)
    };
    let differs = |name: &str| {
        CallError::HeaderMismatch(format!("`{}{name}` does not equal the body", header::PARAM))
    };
    for (name, value) in &sent {
        let says = unwrap(value).ok_or_else(|| differs(name))?;
        let agrees = match mirrors
            .and_then(|mirrors| mirrors.iter().find(|mirror| mirror.header == *name))
        {
            Some(mirror) => at(&mirror.path).is_some_and(|argument| equals(argument, &says)),
            // The definition was not seen, so where the value belongs is not known: it must at least stand in the arguments.
            None => arguments.is_some_and(|arguments| {
                let mut stands = false;
                arguments.walk(|_, value, _| stands |= equals(value, &says));
                stands
            }),
        };
        if !agrees {
            return Err(differs(name));
        }
    }
    for mirror in mirrors.filter(|_| must).unwrap_or_default() {
        if at(&mirror.path).is_some() && !sent.iter().any(|(name, _)| *name == mirror.header) {
            return Err(CallError::HeaderMismatch(format!(
                "`{}{}` is missing",
                header::PARAM,
                mirror.header
            )));
        }
    }
    Ok(())
}

/// Whether an argument says what a header says: strings and booleans to the letter, integers by number.
fn equals(argument: Value<'_>, says: &str) -> bool {
    match argument.kind() {
        ValueKind::String => argument.str().as_deref() == Some(says),
        ValueKind::Bool => argument.raw() == says,
        ValueKind::Number => {
            argument.raw() == says
                || integer(argument.raw()).is_some_and(|n| integer(says) == Some(n))
        }
        _ => false,
    }
}

/// An integer within ±(2^53−1), however it is written (`42`, `42.0`, `4.2e1`).
fn integer(text: &str) -> Option<i64> {
    if let Ok(number) = text.parse::<i64>() {
        return Some(number);
    }
    let number = text.parse::<f64>().ok()?;
    (number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_991.0).then_some(number as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::ReadLimits;

    fn message(params: &str) -> Message {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
        Message::parse(text.into(), &ReadLimits::default()).unwrap()
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (http::HeaderName::from_static(name), value.parse().unwrap()))
            .collect()
    }

    const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;

    #[test]
    fn the_body_decides_the_era() {
        let modern = message(&format!(r#"{{"name":"x",{META}}}"#));
        let legacy = message(r#"{"name":"x"}"#);
        let new = headers(&[("mcp-protocol-version", "2026-07-28")]);
        let old = headers(&[("mcp-protocol-version", "2025-11-25")]);
        assert_eq!(era(&old, Some(&modern)).unwrap(), Era::Modern);
        assert_eq!(era(&old, Some(&legacy)).unwrap(), Era::Legacy);
        assert_eq!(era(&new, None).unwrap(), Era::Modern);
        assert!(matches!(
            era(&new, Some(&legacy)),
            Err(CallError::BadMeta(_))
        ));
    }

    #[test]
    fn headers_must_say_what_the_body_says() {
        let body = message(&format!(r#"{{"name":"größe",{META}}}"#));
        let all = [
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", "=?base64?Z3LDtsOfZQ==?="),
        ];
        let agree = |pairs: &[(&'static str, &str)]| {
            agree(&headers(pairs), &body, Era::Modern, None).is_ok()
        };
        assert!(agree(&all));
        for index in 0..3 {
            let mut without = all.to_vec();
            without.remove(index);
            assert!(!agree(&without), "missing {}", all[index].0);
            let mut other = all.to_vec();
            other[index].1 = "other";
            assert!(!agree(&other), "other {}", all[index].0);
        }
    }

    #[test]
    fn mirrored_arguments_must_agree() {
        let body =
            message(r#"{"name":"x","arguments":{"region":"eu","deep":{"n":42},"gone":null}}"#);
        let mirrors = [
            Mirror {
                header: "region".into(),
                path: vec!["region".into()],
            },
            Mirror {
                header: "n".into(),
                path: vec!["deep".into(), "n".into()],
            },
            Mirror {
                header: "gone".into(),
                path: vec!["gone".into()],
            },
        ];
        let arguments = body
            .single()
            .and_then(|envelope| body.body(envelope)?.get("arguments"));
        let agree = |pairs: &[(&'static str, &str)], mirrors| {
            params(&headers(pairs), arguments, mirrors, true).is_ok()
        };
        assert!(agree(
            &[("mcp-param-region", "eu"), ("mcp-param-n", "42.0")],
            Some(&mirrors[..])
        ));
        assert!(!agree(
            &[("mcp-param-region", "us"), ("mcp-param-n", "42")],
            Some(&mirrors[..])
        ));
        assert!(
            !agree(&[("mcp-param-region", "eu")], Some(&mirrors[..])),
            "one is missing"
        );
        assert!(
            agree(&[("mcp-param-any", "eu")], None),
            "not known, but it stands in the arguments"
        );
        assert!(
            !agree(&[("mcp-param-any", "secret")], None),
            "not known, and nowhere in the body"
        );
        assert!(agree(&[], None));
        assert!(
            params(&headers(&[]), arguments, Some(&mirrors[..]), false).is_ok(),
            "earlier revisions know no such headers"
        );
        assert!(
            params(
                &headers(&[("mcp-param-region", "us")]),
                arguments,
                Some(&mirrors[..]),
                false
            )
            .is_err()
        );
    }

    #[test]
    fn only_named_headers_travel() {
        let sent = headers(&[
            ("authorization", "Bearer x"),
            ("cookie", "a=b"),
            ("x-forwarded-for", "::1"),
            ("mcp-param-a", "1"),
            ("accept", "*/*"),
        ]);
        let out = travelling(sent);
        let mut names: Vec<_> = out.keys().map(|name| name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["accept", "mcp-param-a"]);
        let mut twice = headers(&[("mcp-method", "a")]);
        twice.append("mcp-method", "b".parse().unwrap());
        assert!(single(&twice).is_err());
    }
}
