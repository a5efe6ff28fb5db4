//! The page that a browser shows at the URL of an MCP endpoint: what the endpoint is, and how to
//! configure a client for it.

use http::header::ACCEPT;
use http::{HeaderMap, Method, Request, Response, StatusCode};

use super::Body;
use super::logins::{escape, html, page};
use crate::protocol::UpstreamName;

/// Reports whether a browser requests a page. MCP clients accept `application/json` or
/// `text/event-stream`.
pub(super) fn is_page_request<B>(request: &Request<B>) -> bool {
    request.method() == Method::GET && accepts_html(request.headers())
}

fn accepts_html(headers: &HeaderMap) -> bool {
    let mut accepted = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    let kinds: Vec<&str> = accepted
        .by_ref()
        .map(|kind| kind.split(';').next().unwrap_or_default().trim())
        .collect();
    let accepts = |media_type: &str| {
        kinds
            .iter()
            .any(|kind| kind.eq_ignore_ascii_case(media_type))
    };
    accepts("text/html") && !accepts("text/event-stream")
}

/// Returns the page of an endpoint, for a caller that may use it. `url` is the URL of the gate
/// without a path, if it is known; `path` begins with `/mcp/`, or with `/sse/` for HTTP+SSE.
pub(super) fn endpoint(upstream: &UpstreamName, url: Option<&str>, path: &str) -> Response<Body> {
    let name = escape(&upstream.0);
    let address = url.map_or_else(
        || "URL-OF-THIS-PAGE".to_owned(),
        |url| escape(&format!("{url}{path}")),
    );
    let transport = if path.starts_with("/sse/") {
        "sse"
    } else {
        "http"
    };
    let text = format!(
        "<p>This address is for MCP clients, not for browsers. Behind it, lychgate inspects what agents and the server \
         <code>{name}</code> send each other.</p><p>Add it to a client by its URL:</p><p><code>{address}</code></p>\
         <p>Claude Code:</p><p><code>claude mcp add --transport {transport} {name} {address}</code></p>\
         <p>Clients with a JSON file:</p><p><code>{{&quot;mcpServers&quot;: {{&quot;{name}&quot;: {{&quot;type&quot;: \
         &quot;{transport}&quot;, &quot;url&quot;: &quot;{address}&quot;}}}}}}</code></p>"
    );
    html(StatusCode::OK, page("MCP endpoint", &text))
}

/// Returns the page for a caller that has to authenticate first. It does not show which upstreams
/// exist.
pub(super) fn unauthorized(hint: &str) -> Response<Body> {
    let text = format!(
        "<p>This is lychgate, a gateway between AI agents and MCP servers. Its addresses are for MCP clients, not for browsers, \
         and each request needs a credential: {}.</p>",
        escape(hint)
    );
    html(StatusCode::UNAUTHORIZED, page("MCP gateway", &text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_get_a_page_and_clients_do_not() {
        let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
        for (method, accept, page) in [
            (Method::GET, browser, true),
            (Method::GET, "text/event-stream", false),
            (Method::GET, "application/json, text/event-stream", false),
            (Method::GET, "text/html, text/event-stream", false),
            (Method::GET, "*/*", false),
            (Method::POST, browser, false),
        ] {
            let request = Request::builder()
                .method(method)
                .header(ACCEPT, accept)
                .body(())
                .unwrap();
            assert_eq!(is_page_request(&request), page, "{accept}");
        }
        assert!(!is_page_request(&Request::new(())));
    }

    #[test]
    fn the_transport_is_that_of_the_path() {
        for (path, transport) in [
            ("/mcp/up", "--transport http up"),
            ("/sse/up", "--transport sse up"),
        ] {
            let Body::Whole(text) = endpoint(&UpstreamName("up".into()), None, path).into_body()
            else {
                panic!("whole")
            };
            let text = String::from_utf8(text.to_vec()).unwrap();
            assert_contains!(text, &format!("{transport} URL-OF-THIS-PAGE"));
        }
    }

    #[test]
    fn what_it_shows_is_no_markup() {
        let shown = endpoint(
            &UpstreamName("<b>".into()),
            Some("http://a\"b"),
            "/mcp/<script>",
        );
        let Body::Whole(text) = shown.into_body() else {
            panic!("a page is whole")
        };
        let text = String::from_utf8(text.to_vec()).unwrap();
        assert_contains!(text, "&lt;b&gt;");
        assert_lacks!(text, "<b>", "<script");
    }
}
