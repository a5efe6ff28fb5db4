//! The page itself, which is built in, and the policies that browsers enforce for it.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{HeaderName, Response, StatusCode};
use serde::Serialize;

use crate::listen::Body;
use crate::protocol::headers;

/// The page runs only its own files, connects only to the gate, and creates no markup from text.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";
/// Responses to the page are data.
const DATA_POLICY: &str = "default-src 'none'; frame-ancestors 'none'; sandbox";

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

macro_rules! files {
    ($($name:literal $kind:expr;)*) => {
        const FILES: &[(&str, &str, &str)] = &[$(($name, $kind, include_str!(concat!("page/", $name)))),*];
    };
}

files! {
    "index.html" HTML;
    "style.css" "text/css; charset=utf-8";
    "icon.svg" "image/svg+xml";
    "main.js" SCRIPT;
    "api.js" SCRIPT;
    "dom.js" SCRIPT;
    "chart.js" SCRIPT;
    "live.js" SCRIPT;
    "entry.js" SCRIPT;
    "members.js" SCRIPT;
    "overview.js" SCRIPT;
    "upstreams.js" SCRIPT;
    "rules.js" SCRIPT;
    "people.js" SCRIPT;
    "quarantine.js" SCRIPT;
    "pins.js" SCRIPT;
    "notify.js" SCRIPT;
}

/// Returns a file of the page by its name; the page itself for an empty name.
pub(super) fn file(name: &str) -> Option<Response<Body>> {
    let name = if name.is_empty() { "index.html" } else { name };
    let (_, kind, text) = FILES.iter().find(|(file_name, _, _)| *file_name == name)?;
    let mut response = secure_response(StatusCode::OK, Bytes::from_static(text.as_bytes()), POLICY);
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    Some(response)
}

/// Returns a response with data for the page.
pub(super) fn json(status: StatusCode, data: &impl Serialize) -> Response<Body> {
    match serde_json::to_vec(data) {
        Ok(text) => json_response(status, text.into()),
        Err(error) => refuse(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

/// Returns a response with data that is already JSON.
pub(super) fn json_response(status: StatusCode, text: Bytes) -> Response<Body> {
    let mut response = secure_response(status, text, DATA_POLICY);
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Returns a refusal with its reason.
pub(super) fn refuse(status: StatusCode, why: &str) -> Response<Body> {
    #[derive(Serialize)]
    struct Refusal<'a> {
        error: &'a str,
    }
    json(status, &Refusal { error: why })
}

/// Returns a response whose data arrives over time.
pub(super) fn stream_response(body: Body) -> Response<Body> {
    let mut response = secure_response(StatusCode::OK, Bytes::new(), DATA_POLICY);
    *response.body_mut() = body;
    response.headers_mut().insert(
        CONTENT_TYPE,
        HeaderValue::from_static("application/x-ndjson"),
    );
    response
}

fn secure_response(status: StatusCode, text: Bytes, policy: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::Whole(text));
    *response.status_mut() = status;
    let values = [
        (CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("content-security-policy"), policy),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("cross-origin-embedder-policy"),
            "require-corp",
        ),
        (
            HeaderName::from_static("permissions-policy"),
            "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
        ),
        // The page's own requests must include their origin, which is checked.
        (HeaderName::from_static("referrer-policy"), "same-origin"),
        (HeaderName::from_static("x-content-type-options"), "nosniff"),
        (HeaderName::from_static("x-frame-options"), "DENY"),
    ];
    headers::set(response.headers_mut(), values);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_whole_and_keeps_its_own_rules() {
        for (name, kind, text) in FILES {
            let headers = file(name).unwrap().headers().clone();
            assert_eq!(headers[CONTENT_TYPE], *kind, "{name}");
            let policy = headers["content-security-policy"].to_str().unwrap();
            for directive in [
                "default-src 'none'",
                "script-src 'self'",
                "style-src 'self'",
                "frame-ancestors 'none'",
                "-for 'script'",
            ] {
                assert!(
                    policy.contains(directive),
                    "`{directive}` is missing for {name}"
                );
            }
            assert!(
                !policy.contains(['*', ':']) && !policy.contains("unsafe"),
                "{policy}"
            );
            for word in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                "new Function",
                "javascript:",
            ] {
                assert!(!text.contains(word), "`{word}` in {name}");
            }
            // The files that they refer to are in the binary.
            for part in text.split("/console/").skip(1) {
                let leads: String = part
                    .chars()
                    .take_while(|c| c.is_ascii_lowercase() || *c == '.')
                    .collect();
                let known = leads.is_empty()
                    || leads == "api"
                    || FILES.iter().any(|(known, _, _)| *known == leads);
                assert!(known, "{name} leads to `{leads}`");
            }
            let foreign = text.replace("http://www.w3.org/2000/svg", "");
            assert!(
                !foreign.contains("http://") && !foreign.contains("https://"),
                "{name} names another site"
            );
        }
        let (_, _, page) = FILES[0];
        let handlers = page.split(" on").skip(1).any(|rest| {
            rest.trim_start_matches(|c: char| c.is_ascii_lowercase())
                .starts_with('=')
        });
        assert!(
            !page.contains("<style") && !page.contains("style=") && !handlers,
            "nothing inline"
        );
        assert_eq!(
            page.matches("<script").count(),
            page.matches("<script type=\"module\" src=").count()
        );
        // The page reads only members that audit lines have.
        let (.., members) = FILES
            .iter()
            .find(|(name, ..)| *name == "members.js")
            .unwrap();
        let reads =
            regex::Regex::new(r"\b(?:get|text|word|list)\([^'()]*(?:\([^()]*\))?, '(\w+)'\)")
                .unwrap();
        let read: Vec<&str> = ["entry.js", "live.js"]
            .into_iter()
            .flat_map(|page| FILES.iter().filter(move |(name, ..)| *name == page))
            .flat_map(|(.., text)| reads.captures_iter(text))
            .map(|found| found.get(1).unwrap().as_str())
            .collect();
        let unknown: Vec<_> = read
            .iter()
            .filter(|member| !members.contains(&format!("\n  {member}: ")))
            .collect();
        assert!(
            read.len() > 60 && unknown.is_empty(),
            "{} {unknown:?}",
            read.len()
        );
        assert!(file("../mod.rs").is_none() && file("none.js").is_none());
    }
}
