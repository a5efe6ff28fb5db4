//! Headers that mirror the body, and which of an agent's headers are forwarded.
//!
//! MCP 2026-07-28 (`basic/transports/streamable-http`, Header Validation): a component that reads
//! the body refuses a request whose headers disagree with it, so that components behind it are not
//! misled by the headers.

use std::borrow::Cow;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::target::find_target;
use super::{CallError, Era, MODERN, OpenRequest, header};
use crate::message::{Envelope, Message, Value, ValueKind};

/// The `_meta` key that marks a request as modern.
pub const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// A header that mirrors an argument of a tool, as its definition declares (`x-mcp-header`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mirror {
    /// The part after `Mcp-Param-`, in lower case.
    pub header: String,
    /// The path of names from `arguments` to the value.
    pub path: Vec<String>,
}

/// Keeps the headers of an agent that reach the upstream. All others are dropped: credentials,
/// cookies, forwarding, hop-by-hop.
pub fn keep_forwarded(headers: HeaderMap) -> HeaderMap {
    const FORWARDED: [&str; 10] = [
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
    remove_headers(headers, |name| {
        !FORWARDED.contains(&name.as_str()) && !name.as_str().starts_with(header::PARAM)
    })
}

/// Removes the headers whose names match. The map is changed in place: `hyper` reuses it for the
/// next message of the connection that it is written to.
pub fn remove_headers(
    mut headers: HeaderMap,
    is_removed: impl Fn(&HeaderName) -> bool,
) -> HeaderMap {
    let removed: Vec<HeaderName> = headers
        .keys()
        .filter(|name| is_removed(name))
        .cloned()
        .collect();
    for name in removed {
        headers.remove(name);
    }
    headers
}

/// Copies the header values out of the buffer that they were read into, so that the buffer is freed
/// as soon as nothing else refers to it.
pub fn copy_values(mut headers: HeaderMap) -> HeaderMap {
    for value in headers.values_mut() {
        if let Ok(mut copy) = HeaderValue::from_bytes(value.as_bytes()) {
            copy.set_sensitive(value.is_sensitive());
            *value = copy;
        }
    }
    headers
}

/// Moves the headers into a map with little spare capacity. `hyper` keeps the map for as long as
/// the body lasts.
pub fn compact(headers: HeaderMap) -> HeaderMap {
    let mut compact = HeaderMap::with_capacity(headers.len() + 1);
    compact.extend(headers);
    compact
}

/// Refuses a repeated header that may occur only once.
///
/// # Errors
/// [`CallError::HeaderMismatch`] with the name of the header.
pub fn check_unique(headers: &HeaderMap) -> Result<(), CallError> {
    if headers.len() == headers.keys_len() {
        return Ok(());
    }
    let is_repeated = |name: &str| headers.get_all(name).iter().nth(1).is_some();
    let fixed = [
        header::SESSION,
        header::VERSION,
        header::METHOD,
        header::NAME,
        header::LAST_EVENT_ID,
        "content-type",
        "authorization",
    ];
    let name = fixed.into_iter().find(|name| is_repeated(name));
    let param = || {
        headers
            .keys()
            .map(http::HeaderName::as_str)
            .find(|name| name.starts_with(header::PARAM) && is_repeated(name))
    };
    match name.or_else(param) {
        Some(name) => Err(CallError::HeaderMismatch(format!(
            "`{name}` is there more than once"
        ))),
        None => Ok(()),
    }
}

/// Returns the era of an agent's request: the body decides, the header is only a cross-check.
/// Without a body, the header decides.
///
/// # Errors
/// Fails if a request has a modern header but not the `_meta` that modern requests carry.
pub fn era(headers: &HeaderMap, message: Option<&Message>) -> Result<Era, CallError> {
    let header_era = match header_text(headers, header::VERSION) {
        // Revisions are dates, so later ones sort after earlier ones.
        Some(version)
            if version.as_bytes() >= MODERN.as_bytes() && version.len() == MODERN.len() =>
        {
            Era::Modern
        }
        _ => Era::Legacy,
    };
    let Some((message, envelope)) = message.and_then(|m| m.single().map(|e| (m, e))) else {
        return Ok(header_era);
    };
    if meta_version(message, envelope).is_some() {
        return Ok(Era::Modern);
    }
    if header_era == Era::Modern && envelope.is_request() {
        return Err(CallError::BadMeta(META_VERSION));
    }
    Ok(header_era)
}

/// Refuses a message whose headers disagree with its body, or that lacks headers that its revision
/// requires. `mirrors` are those of the called tool, if its definition is known.
///
/// # Errors
/// [`CallError::HeaderMismatch`] with the name of the header.
pub fn check_agreement(
    headers: &HeaderMap,
    message: &Message,
    era: Era,
    mirrors: Option<&[Mirror]>,
) -> Result<(), CallError> {
    let Some(envelope) = message.single() else {
        return Ok(());
    };
    let required = era == Era::Modern && envelope.is_request();
    if let Some(version) = meta_version(message, envelope) {
        check(headers, header::VERSION, Some(&version), required)?;
    }
    if let Some(method) = envelope.method() {
        check(headers, header::METHOD, Some(method), required)?;
    }
    let name = target_name(message, envelope);
    check(
        headers,
        header::NAME,
        name.as_deref(),
        required && name.is_some(),
    )?;
    check_params(
        headers,
        message
            .body(envelope)
            .and_then(|params| params.get("arguments")),
        mirrors,
        required,
    )
}

/// Reports whether a client that sent these headers supports resource links among the content
/// blocks of results.
pub fn supports_links(headers: &HeaderMap, era: Era) -> bool {
    let version = headers
        .get(header::VERSION)
        .and_then(|version| version.to_str().ok());
    era == Era::Modern || version.is_some_and(has_links)
}

/// Reports whether a revision has resource links.
pub fn has_links(version: &str) -> bool {
    version >= "2025-06-18"
}

/// Sets headers to fixed values.
pub fn set(headers: &mut HeaderMap, values: impl IntoIterator<Item = (HeaderName, &'static str)>) {
    for (name, value) in values {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

/// Returns the requests of a message, with the facts that are needed to judge their answers.
pub fn requests(message: &Message) -> Vec<OpenRequest> {
    let open_requests = message.requests().filter_map(|envelope| {
        let tool = target_name(message, envelope).map(|name| name.into());
        let continues = message
            .body(envelope)
            .is_some_and(|params| params.get("cursor").is_some());
        Some(OpenRequest {
            id: message.id(envelope)?.into(),
            method: envelope.method()?.into(),
            tool,
            continues,
            target: find_target(envelope.method()?, message.body(envelope)),
        })
    });
    open_requests.collect()
}

/// Returns the value that `Mcp-Name` mirrors: the tool, prompt, resource or task that a request
/// names.
pub fn target_name<'m>(message: &'m Message, envelope: &Envelope) -> Option<Cow<'m, str>> {
    let key = match envelope.method()? {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return None,
    };
    message.body(envelope)?.get_str(key)
}

fn meta_version<'m>(message: &'m Message, envelope: &Envelope) -> Option<Cow<'m, str>> {
    message.body(envelope)?.at(&["_meta", META_VERSION])?.str()
}

/// Reports whether a modern request has the `_meta` without which its server has to refuse it
/// (2026-07-28, Basic, `_meta`).
pub fn has_meta(message: &Message) -> bool {
    let body = message.single_body();
    let capabilities = body.and_then(|body| body.at(&["_meta", META_CAPABILITIES]));
    capabilities.is_some_and(|value| value.kind() == ValueKind::Object)
}

/// Returns the revision that a request declares.
pub fn version<'m>(headers: &'m HeaderMap, message: Option<&'m Message>) -> Option<Cow<'m, str>> {
    let declared = message.and_then(|message| meta_version(message, message.single()?));
    declared.or_else(|| header_text(headers, header::VERSION).map(Cow::Borrowed))
}

fn header_text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn check(
    headers: &HeaderMap,
    name: &'static str,
    body: Option<&str>,
    required: bool,
) -> Result<(), CallError> {
    match (headers.get(name), body) {
        (None, _) if required => Err(CallError::HeaderMismatch(format!("`{name}` is missing"))),
        (None, _) => Ok(()),
        // A header that mirrors something the request does not name cannot disagree with the body.
        (Some(_), None) => Ok(()),
        (Some(value), Some(body)) if decode_value(value).as_deref() == Some(body) => Ok(()),
        (Some(_), Some(_)) => Err(CallError::HeaderMismatch(format!(
            "`{name}` does not equal the body"
        ))),
    }
}

/// Returns a header's value, decoded if it is wrapped in `=?base64?…?=`. Returns `None` if it is
/// malformed.
fn decode_value(value: &HeaderValue) -> Option<Cow<'_, str>> {
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

/// `required`: whether the revision requires a header for every annotated argument; earlier
/// revisions have no such headers.
fn check_params(
    headers: &HeaderMap,
    arguments: Option<Value<'_>>,
    mirrors: Option<&[Mirror]>,
    required: bool,
) -> Result<(), CallError> {
    let param_headers: Vec<_> = headers
        .iter()
        .filter_map(|(name, value)| Some((name.as_str().strip_prefix(header::PARAM)?, value)))
        .collect();
    if param_headers.is_empty() && mirrors.is_none_or(<[Mirror]>::is_empty) {
        return Ok(());
    }
    let at = |path: &[String]| {
        let found = path
            .iter()
            .try_fold(arguments?, |value, key| value.get(key))?;
        (found.kind() != ValueKind::Null).then_some(found)
    };
    let mismatch = |name: &str| {
        CallError::HeaderMismatch(format!("`{}{name}` does not equal the body", header::PARAM))
    };
    for (name, value) in &param_headers {
        let mirrored = decode_value(value).ok_or_else(|| mismatch(name))?;
        let agrees = match mirrors
            .and_then(|mirrors| mirrors.iter().find(|mirror| mirror.header == *name))
        {
            Some(mirror) => at(&mirror.path).is_some_and(|argument| equals(argument, &mirrored)),
            // The definition is unknown, and so is the argument that the header mirrors: the value
            // must at least occur somewhere in the arguments.
            None => arguments.is_some_and(|arguments| {
                let mut occurs = false;
                arguments.walk(|_, value, _| occurs |= equals(value, &mirrored));
                occurs
            }),
        };
        if !agrees {
            return Err(mismatch(name));
        }
    }
    for mirror in mirrors.filter(|_| required).unwrap_or_default() {
        if at(&mirror.path).is_some()
            && !param_headers.iter().any(|(name, _)| *name == mirror.header)
        {
            return Err(CallError::HeaderMismatch(format!(
                "`{}{}` is missing",
                header::PARAM,
                mirror.header
            )));
        }
    }
    Ok(())
}

/// Reports whether an argument equals a header's value: strings and booleans literally, integers by
/// value.
fn equals(argument: Value<'_>, expected: &str) -> bool {
    match argument.kind() {
        ValueKind::String => argument.str().as_deref() == Some(expected),
        ValueKind::Bool => argument.raw() == expected,
        ValueKind::Number => {
            argument.raw() == expected
                || integer(argument.raw()).is_some_and(|n| integer(expected) == Some(n))
        }
        _ => false,
    }
}

/// Parses an integer within ±(2^53−1), however it is written (`42`, `42.0`, `4.2e1`).
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
            check_agreement(&headers(pairs), &body, Era::Modern, None).is_ok()
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
            check_params(&headers(pairs), arguments, mirrors, true).is_ok()
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
            "not known, but it is in the arguments"
        );
        assert!(
            !agree(&[("mcp-param-any", "secret")], None),
            "not known, and nowhere in the body"
        );
        assert!(agree(&[], None));
        assert!(
            check_params(&headers(&[]), arguments, Some(&mirrors[..]), false).is_ok(),
            "earlier revisions know no such headers"
        );
        assert!(
            check_params(
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
        let out = keep_forwarded(sent);
        let mut names: Vec<_> = out.keys().map(|name| name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["accept", "mcp-param-a"]);
        let mut twice = headers(&[("mcp-method", "a")]);
        twice.append("mcp-method", "b".parse().unwrap());
        assert!(check_unique(&twice).is_err());
    }
}
