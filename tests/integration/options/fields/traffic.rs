//! Keys of policies, of upstreams, and of what is stored and exported.

use super::{Field, http, row, show};

const OTLP: &str = "[otlp]\nendpoint = \"https://collector.example.org\"";
const CLASSIFIER: &str = "[policy.default.classifier]\nurl = \"http://127.0.0.1:8900/\"";

pub(super) const FIELDS: &[Field] = &[
    row(
        "otlp.batch_bytes",
        OTLP,
        "batch_bytes = 77_777",
        |c| show(&c.otlp.as_ref().map(|otlp| &otlp.batch_bytes)),
        "Some(77777)",
    ),
    row(
        "otlp.ca",
        OTLP,
        r#"ca = "a.pem""#,
        |c| show(&c.otlp.as_ref().map(|otlp| &otlp.ca)),
        r#"Some(Some("{folder}/a.pem"))"#,
    ),
    row(
        "otlp.queue_bytes",
        OTLP,
        "queue_bytes = 7_777_777",
        |c| show(&c.otlp.as_ref().map(|otlp| &otlp.queue_bytes)),
        "Some(7777777)",
    ),
    row(
        "otlp.queue_records",
        OTLP,
        "queue_records = 777",
        |c| show(&c.otlp.as_ref().map(|otlp| &otlp.queue_records)),
        "Some(777)",
    ),
    row(
        "otlp.timeout_ms",
        OTLP,
        "timeout_ms = 777",
        |c| show(&c.otlp.as_ref().map(|otlp| &otlp.timeout)),
        "Some(777ms)",
    ),
    row(
        "pins.file",
        "[pins]",
        r#"file = "own.lock""#,
        |c| show(&c.pins.file),
        r#"Some("{folder}/own.lock")"#,
    ),
    row(
        "pins.persistent",
        "[pins]",
        "persistent = false",
        |c| show(&c.pins.persistent),
        "false",
    ),
    row(
        "policy.*.approval.scopes",
        "[policy.default.approval]",
        r#"scopes = ["once", "call"]"#,
        |c| show(&c.policies["default"].scopes),
        "[Once, Call]",
    ),
    row(
        "policy.*.approval.through_agent",
        "[policy.default.approval]",
        "through_agent = false",
        |c| show(&c.policies["default"].through_agent),
        "false",
    ),
    row(
        "policy.*.classifier.action",
        CLASSIFIER,
        r#"action = "block""#,
        |c| {
            show(
                &c.policies["default"]
                    .classifier
                    .as_ref()
                    .map(|classifier| &classifier.action),
            )
        },
        "Some(Block)",
    ),
    row(
        "policy.*.classifier.ask_about",
        CLASSIFIER,
        r#"ask_about = "signals""#,
        |c| {
            show(
                &c.policies["default"]
                    .classifier
                    .as_ref()
                    .map(|classifier| &classifier.ask_about),
            )
        },
        "Some(Signals)",
    ),
    row(
        "policy.*.classifier.calls_at_once",
        CLASSIFIER,
        "calls_at_once = 7",
        |c| {
            show(
                &c.policies["default"]
                    .classifier
                    .as_ref()
                    .map(|classifier| &classifier.calls_at_once),
            )
        },
        "Some(7)",
    ),
    row(
        "policy.*.classifier.least_bytes",
        CLASSIFIER,
        "least_bytes = 7",
        |c| {
            show(
                &c.policies["default"]
                    .classifier
                    .as_ref()
                    .map(|classifier| &classifier.least_bytes),
            )
        },
        "Some(7)",
    ),
    row(
        "policy.*.classifier.on_failure",
        CLASSIFIER,
        r#"on_failure = "pass""#,
        |c| {
            show(
                &c.policies["default"]
                    .classifier
                    .as_ref()
                    .map(|classifier| &classifier.passes_on_failure),
            )
        },
        "Some(true)",
    ),
    row(
        "policy.*.classifier.text_bytes",
        CLASSIFIER,
        "text_bytes = 77_777",
        |c| {
            show(
                &c.policies["default"]
                    .classifier
                    .as_ref()
                    .map(|classifier| &classifier.text_bytes),
            )
        },
        "Some(77777)",
    ),
    row(
        "policy.*.classifier.timeout_ms",
        CLASSIFIER,
        "timeout_ms = 777",
        |c| {
            show(
                &c.policies["default"]
                    .classifier
                    .as_ref()
                    .map(|classifier| &classifier.timeout),
            )
        },
        "Some(777ms)",
    ),
    row(
        "policy.*.tool.*.concurrent_calls",
        "[policy.default.tool.a]",
        "concurrent_calls = 7",
        |c| show(&c.policies["default"].tools[0].1.limits.concurrent),
        "Some(7)",
    ),
    row(
        "policy.*.urls.resolve_ms",
        "[policy.default]",
        "urls = { resolve = true, resolve_ms = 777 }",
        |c| show(&c.policies["default"].places.resolve),
        "Some(777ms)",
    ),
    row(
        "quarantine.max_age_days",
        "[quarantine]",
        "max_age_days = 7",
        |c| show(&c.quarantine.age),
        "604800s",
    ),
    row(
        "quarantine.max_bytes",
        "[quarantine]",
        "max_bytes = 7_777_777",
        |c| show(&c.quarantine.bytes),
        "7777777",
    ),
    row(
        "quarantine.max_items",
        "[quarantine]",
        "max_items = 7",
        |c| show(&c.quarantine.items),
        "7",
    ),
    row(
        "quarantine.release_seconds",
        "[quarantine]",
        "release_seconds = 77",
        |c| show(&c.quarantine.release),
        "77s",
    ),
    row(
        "upstream.*.http.ca",
        "",
        "[upstream.up]\nhttp = { url = \"https://mcp.example.org/mcp\", ca = \"a.pem\" }",
        |c| show(&http(c).ca),
        r#"Some("{folder}/a.pem")"#,
    ),
    row(
        "upstream.*.http.client_cert.cert",
        "",
        "[upstream.up]\nhttp = { url = \"https://mcp.example.org/mcp\", client_cert = { cert = \"a.pem\", key = \"b.pem\" } }",
        |c| show(&http(c).client_cert.as_ref().map(|(cert, _)| cert)),
        r#"Some("{folder}/a.pem")"#,
    ),
    row(
        "upstream.*.http.client_cert.key",
        "",
        "[upstream.up]\nhttp = { url = \"https://mcp.example.org/mcp\", client_cert = { cert = \"a.pem\", key = \"b.pem\" } }",
        |c| show(&http(c).client_cert.as_ref().map(|(_, key)| key)),
        r#"Some("{folder}/b.pem")"#,
    ),
    row(
        "upstream.*.http.oauth.client_auth",
        "",
        "[upstream.up]\nhttp = { url = \"https://mcp.example.org/mcp\", oauth = { issuer = \"https://login.example.org\", client_id = \"lychgate\", client_key = \"a.pem\", client_auth = \"private_key_jwt\" } }",
        |c| {
            show(
                &http(c)
                    .login
                    .as_ref()
                    .and_then(|login| login.client_auth.clone()),
            )
        },
        r#"Some("private_key_jwt")"#,
    ),
    row(
        "upstream.*.http.oauth.client_key",
        "",
        "[upstream.up]\nhttp = { url = \"https://mcp.example.org/mcp\", oauth = { issuer = \"https://login.example.org\", client_id = \"lychgate\", client_key = \"a.pem\", client_auth = \"private_key_jwt\" } }",
        |c| {
            show(
                &http(c)
                    .login
                    .as_ref()
                    .and_then(|login| login.client_key.as_ref().map(|key| &key.0)),
            )
        },
        r#"Some("no certificate")"#,
    ),
    row(
        "upstream.*.http.oauth.client_key_id",
        "",
        "[upstream.up]\nhttp = { url = \"https://mcp.example.org/mcp\", oauth = { issuer = \"https://login.example.org\", client_id = \"lychgate\", client_key = \"a.pem\", client_auth = \"private_key_jwt\", client_key_id = \"2026\" } }",
        |c| {
            show(
                &http(c)
                    .login
                    .as_ref()
                    .and_then(|login| login.client_key_id.clone()),
            )
        },
        r#"Some("2026")"#,
    ),
    row(
        "upstream.*.http.oauth.resource",
        "",
        "[upstream.up]\nhttp = { url = \"https://mcp.example.org/mcp\", oauth = { issuer = \"https://login.example.org\", client_id = \"lychgate\", resource = \"https://mcp.example.org\" } }",
        |c| {
            show(
                &http(c)
                    .login
                    .as_ref()
                    .and_then(|login| login.resource.clone()),
            )
        },
        r#"Some("https://mcp.example.org")"#,
    ),
    row(
        "upstream.*.http.oauth.scopes",
        "",
        "[upstream.up]\nhttp = { url = \"https://mcp.example.org/mcp\", oauth = { issuer = \"https://login.example.org\", client_id = \"lychgate\", scopes = [\"issues:read\"] } }",
        |c| {
            show(
                &http(c)
                    .login
                    .as_ref()
                    .and_then(|login| login.scopes.clone()),
            )
        },
        r#"Some(["issues:read"])"#,
    ),
    row(
        "upstream.*.initialize_timeout_seconds",
        "",
        "[upstream.up]\ninitialize_timeout_seconds = 7\nhttp = { url = \"{url}\" }",
        |c| show(&c.upstreams["up"].initialize_timeout),
        "7s",
    ),
    row(
        "upstream.*.request_timeout_seconds",
        "",
        "[upstream.up]\nrequest_timeout_seconds = 77\nhttp = { url = \"{url}\" }",
        |c| show(&c.upstreams["up"].request_timeout),
        "77s",
    ),
];
