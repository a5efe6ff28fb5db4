use super::*;

fn judged(status: u16, kind: &str, body: &str) -> ProbeResult {
    let headers =
        HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_str(kind).unwrap())]);
    let answer = ProbeReply {
        status: StatusCode::from_u16(status).unwrap(),
        headers,
        body: Bytes::copy_from_slice(body.as_bytes()),
    };
    answer.judge("h:1", true, |text| text.contains("s3cret"))
}

fn reason(finding: ProbeResult) -> String {
    match finding {
        ProbeResult::Down(reason) | ProbeResult::Unclear(reason) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn whatever_a_server_of_mcp_says_to_the_probe_shows_that_it_is_there() {
    let json = "application/json";
    let error = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}"#;
    for (status, kind, body) in [
        (
            200,
            json,
            r#"{"jsonrpc":"2.0","id":"lychgate-health","result":{}}"#,
        ),
        (200, "text/event-stream", ""),
        (400, json, error),
        (404, json, error),
        (406, json, error),
        (500, json, error),
        (404, "text/plain", "session not found\n"),
        (
            400,
            "text/plain",
            "Bad Request: No valid session ID provided",
        ),
    ] {
        assert_eq!(
            judged(status, kind, body),
            ProbeResult::Answers,
            "{status} {body}"
        );
    }
    assert_eq!(
        judged(401, json, r#"{"error":"invalid_token"}"#),
        ProbeResult::AuthRequired
    );
}

#[test]
fn what_is_no_server_of_mcp_is_down_with_the_first_words_and_a_fix() {
    let page = "<!doctype html>\n<html><head><title>Welcome to\n nginx!</title></head><body><h1>Hello</h1></body></html>";
    for status in [200, 404, 403] {
        let reason = reason(judged(status, "text/html", page));
        assert_eq!(
            reason,
            format!(
                "h:1 answers with a web page, not MCP ({status}, \"Welcome to nginx!\"); correct the path in `url`: MCP endpoints \
                 often end in `/mcp`, those of HTTP+SSE in `/sse`"
            )
        );
    }
    let untitled = reason(judged(
        200,
        "text/html",
        "<html><body><p>Hello <b>you</b></p></body></html>",
    ));
    assert!(untitled.contains("\"Hello you\""), "{untitled}");
    let tls = reason(judged(
        400,
        "text/plain",
        "Client sent an HTTP request to an HTTPS server.\n",
    ));
    assert!(
        tls.starts_with("h:1 expects TLS (400") && tls.ends_with("write `https://` in `url`"),
        "{tls}"
    );
    let json = reason(judged(200, "application/json", r#"{"hello":"world"}"#));
    assert_contains!(json, "not in MCP (200, \"{ hello : world }\")");
    let asks = r#"{"jsonrpc":"2.0","id":"lychgate-health","method":"ping"}"#;
    assert!(
        reason(judged(200, "application/json", asks)).contains("not in MCP"),
        "an echo answers nothing"
    );
    assert!(reason(judged(405, "text/plain", "Method Not Allowed")).contains("`sse`"));
    assert!(matches!(
        judged(404, "text/plain", "404 page not found"),
        ProbeResult::Unclear(_)
    ));
    let behind = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"no"}}"#;
    assert!(matches!(
        judged(502, "application/json", behind),
        ProbeResult::Down(_)
    ));
}

#[test]
fn secrets_and_control_characters_are_not_repeated() {
    assert_eq!(
        reason(judged(500, "text/plain", "wrong s3cret")),
        "h:1 refuses requests (500); check `url` and the server's log"
    );
    let key = reason(judged(
        500,
        "text/plain",
        "api_key=abcdefgh12345678 is wrong\u{1b}[31m",
    ));
    assert!(
        !key.contains("abcdefgh") && !key.contains('\u{1b}'),
        "{key}"
    );
    let long = reason(judged(200, "text/plain", &"word ".repeat(1000)));
    assert!(long.len() < 300, "{long}");
}

#[test]
fn a_redirect_is_named_without_its_query() {
    let headers = HeaderMap::from_iter([(
        header::LOCATION,
        HeaderValue::from_static("https://x.example/login?key=hidden"),
    )]);
    let answer = ProbeReply {
        status: StatusCode::FOUND,
        headers,
        body: Bytes::new(),
    };
    let reason = reason(answer.judge("h:1", true, |_| false));
    assert_contains!(reason, "redirects (302) to `https://x.example/login`");
    assert_lacks!(reason, "hidden");
}

#[test]
fn a_program_must_be_there() {
    assert_eq!(probe_program("sh"), ProbeResult::Answers);
    assert_contains!(
        reason(probe_program("no-such-program-here")),
        "`no-such-program-here` is not on the gate's PATH; install it"
    );
    assert_contains!(
        reason(probe_program("/no/such/program")),
        "is not there or is not executable"
    );
}
