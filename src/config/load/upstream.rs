//! Loading of `[upstream.NAME]`.

use http::{HeaderName, HeaderValue, Uri};

use crate::config::{
    HttpTransport, Secret, StdioTransport, Transport, UpstreamConfig, is_secret_name,
};
use crate::document::{Located, Table};

use super::flow::flow;
use super::oauth::login;
use super::places::roots;
use super::policy::MODES;
use super::values::Reader;

/// Headers that are set by the transport or vary with each call; the config must not set them.
const OWN_HEADERS: [&str; 17] = [
    "host",
    "connection",
    "content-length",
    "content-type",
    "content-encoding",
    "transfer-encoding",
    "te",
    "trailer",
    "upgrade",
    "expect",
    "accept",
    "accept-encoding",
    "keep-alive",
    "mcp-session-id",
    "mcp-protocol-version",
    "mcp-method",
    "last-event-id",
];

/// An upstream, and what is needed to check it against the rest of the config.
pub(super) struct ParsedUpstream {
    pub(super) config: UpstreamConfig,
    /// The policy that the upstream names, with its place.
    pub(super) policy: Option<Located<String>>,
}

/// Reads an upstream.
pub(super) fn upstream(table: &Table<'_>, reader: &Reader<'_>) -> ParsedUpstream {
    let (mut parsed, missing) = reader.collect_missing(|| read_upstream(table, reader));
    parsed.config.faults = missing;
    parsed
}

fn read_upstream(table: &Table<'_>, reader: &Reader<'_>) -> ParsedUpstream {
    let kinds = ["http", "sse", "stdio"];
    if kinds.iter().filter(|way| table.has(way)).count() != 1 {
        let hint = "as in `http = { url = \"https://…\" }` or `stdio = { command = [\"PROGRAM\", \"ARGUMENT\"] }`";
        let message = "an upstream needs exactly one of `http`, `sse` and `stdio`";
        table.fault(message, Some(hint));
    }
    let mut transport = None;
    for kind in kinds {
        let Some(inner) = table.table(kind) else {
            continue;
        };
        transport = match kind {
            "http" => server(&inner, reader).map(Transport::Http),
            "sse" => server(&inner, reader).map(Transport::Sse),
            _ => stdio(&inner, reader).map(Transport::Stdio),
        };
        inner.finish();
    }
    // A placeholder for the transport: a fault is recorded, so the config is not used.
    let placeholder = || {
        Transport::Stdio(StdioTransport {
            command: vec![],
            env: vec![],
            set_env: vec![],
            directory: None,
        })
    };
    let mut config = UpstreamConfig::new(transport.unwrap_or_else(placeholder));
    let policy = table.string("policy");
    if let Some(policy) = &policy {
        config.policy.clone_from(&policy.value);
    }
    let seconds = |key: &str, base| table.duration(key, 1..=86_400, base);
    config.initialize_timeout = seconds("initialize_timeout_seconds", config.initialize_timeout);
    config.request_timeout = seconds("request_timeout_seconds", config.request_timeout);
    config.enforce = table.choice("mode", &MODES);
    config.roots = roots(table, reader);
    config.flow = flow(table);
    ParsedUpstream { config, policy }
}

/// Reads how an MCP server is reached over HTTP, and how the gate logs in there.
fn server(table: &Table<'_>, reader: &Reader<'_>) -> Option<HttpTransport> {
    let login = login(table, reader);
    let transport = http(table, reader)?;
    let has_credential = transport.bearer.is_some()
        || transport
            .headers
            .iter()
            .any(|(name, _)| name == "authorization");
    Some(HttpTransport {
        login: login.filter(|_| !has_credential),
        ..transport
    })
}

/// Reads how a server is reached over HTTP.
pub(super) fn http(table: &Table<'_>, reader: &Reader<'_>) -> Option<HttpTransport> {
    let url = table.required(
        "url",
        "the server's URL, such as `https://mcp.example.org/mcp`",
    );
    let is_https = url.as_ref().is_some_and(|url| check_url(table, url, "url"));
    let bearer = reader.secret(table, "bearer");
    // A gate that runs without this upstream records a token that it cannot send when it builds the
    // upstream.
    if !reader.isolates_upstreams() {
        check_bearer(table, bearer.as_deref());
    }
    let headers = headers(table, reader);
    let file = |table: &Table<'_>, key: &str| {
        let path = reader.file(table, key);
        path.iter().for_each(|path| reader.watch(path));
        path
    };
    let ca = file(table, "ca");
    let client_cert = table.table("client_cert").and_then(|pair| {
        for key in ["cert", "key"] {
            pair.require(
                key,
                "a client certificate needs the chain and its private key, PEM files",
            );
        }
        let cert = file(&pair, "cert");
        let key = file(&pair, "key");
        pair.finish();
        Some((cert?, key?))
    });
    if url.is_some() && !is_https {
        for key in ["ca", "client_cert"] {
            if table.has(key) {
                fault_without_tls(table, key);
            }
        }
    }
    Some(HttpTransport {
        url: url?.value,
        bearer,
        login: None,
        headers,
        ca,
        client_cert,
    })
}

/// Records a fault of a key that has no effect without TLS.
pub(super) fn fault_without_tls(table: &Table<'_>, key: &str) {
    let message = format!("`{key}` has no effect on an `http://` URL");
    table.fault_at_key(key, message, Some("write `https://`"));
}

/// Records a fault of a token that cannot be sent in a header.
pub(super) fn check_bearer(table: &Table<'_>, bearer: Option<&str>) {
    if bearer.is_some_and(|token| HeaderValue::try_from(format!("Bearer {token}")).is_err()) {
        let message = "the token is not valid in a header";
        let hint = "a bearer token is printable ASCII";
        table.fault_at_key("bearer", message, Some(hint));
    }
}

/// Records faults of the URL of `key`; returns whether it is `https`.
pub(super) fn check_url(table: &Table<'_>, url: &Located<String>, key: &str) -> bool {
    let hint =
        "use `http://` or `https://`, a host and a path, such as `https://mcp.example.org/mcp`";
    let parsed = url.value.parse::<Uri>().ok();
    let scheme = parsed.as_ref().and_then(Uri::scheme_str);
    let host = parsed.as_ref().and_then(Uri::host).unwrap_or_default();
    if !matches!(scheme, Some("http" | "https")) || host.is_empty() || url.value.contains('#') {
        let message = format!("`{key}` is not a valid URL");
        table.fault_at(&url.place, message, Some(hint));
    } else if parsed
        .as_ref()
        .and_then(Uri::authority)
        .is_some_and(|authority| authority.as_str().contains('@'))
    {
        let hint = "remove it and use `bearer` or `headers` with `{ env = … }`";
        let message = format!("`{key}` contains a user name or password");
        table.fault_at(&url.place, message, Some(hint));
    }
    scheme == Some("https")
}

/// Reads `headers`, which are sent with each request.
pub(super) fn headers(table: &Table<'_>, reader: &Reader<'_>) -> Vec<(String, String)> {
    let Some(all) = table.table("headers") else {
        return Vec::new();
    };
    let mut out: Vec<(String, String)> = Vec::new();
    for written in all.sorted_keys() {
        let name = written.value.to_ascii_lowercase();
        let fault = if HeaderName::try_from(&name).is_err() {
            Some("is not a valid header name")
        } else if OWN_HEADERS.contains(&name.as_str())
            || name.starts_with("mcp-param-")
            || name == "mcp-name"
        {
            Some("is set by the gate itself")
        } else if name == "authorization" && table.has("bearer") {
            Some("is already set by `bearer`")
        } else if out.iter().any(|(other, _)| *other == name) {
            Some("is set twice (names are case-insensitive)")
        } else {
            None
        };
        if let Some(fault) = fault {
            let message = format!("header `{}` {fault}", written.value.escape_debug());
            all.fault_at(&written.place, message, None);
        }
        let Some(value) = plain_or_secret(&all, reader, &written) else {
            continue;
        };
        if !reader.isolates_upstreams() && HeaderValue::try_from(value.as_str()).is_err() {
            let message = format!("the value of `{name}` is not valid in a header");
            all.fault_at(&written.place, message, None);
        }
        out.push((name, value));
    }
    all.finish();
    out
}

fn stdio(table: &Table<'_>, reader: &Reader<'_>) -> Option<StdioTransport> {
    table.require(
        "command",
        "the program and its arguments, as in `[\"npx\", \"-y\", \"some-server\"]`",
    );
    let written = table.strings("command");
    if table.has("command")
        && written
            .first()
            .is_none_or(|program| program.value.is_empty())
    {
        table.fault_at_key("command", "`command` is empty", None);
    }
    let mut command = Vec::new();
    for (index, part) in written.into_iter().enumerate() {
        if part.value.contains('\0') {
            table.fault_at(&part.place, "`command` holds a NUL character", None);
        }
        if index > 0 && part.value.starts_with("~/") {
            let hint = "arguments are passed without a shell: write the full path";
            let message = format!("`{}` would not be expanded", part.value);
            table.fault_at(&part.place, message, Some(hint));
        }
        // As in a shell, only a program name that contains a slash is a path.
        let is_path = index == 0 && part.value.contains('/');
        command.push(if is_path {
            reader.path(&part.value).display().to_string()
        } else {
            part.value
        });
    }
    let env = table.strings("env");
    for name in &env {
        check_variable(table, name);
    }
    let mut set_env = Vec::new();
    if let Some(all) = table.table("set_env") {
        for name in all.sorted_keys() {
            check_variable(&all, &name);
            if let Some(value) = plain_or_secret(&all, reader, &name) {
                set_env.push((name.value, Secret(value)));
            }
        }
        all.finish();
    }
    let directory = table
        .string("directory")
        .map(|written| reader.folder(table, "directory", &written));
    Some(StdioTransport {
        command,
        env: env.into_iter().map(|name| name.value).collect(),
        set_env,
        directory,
    })
}

fn check_variable(table: &Table<'_>, name: &Located<String>) {
    if name.value.is_empty() || name.value.contains(['=', '\0']) {
        let hint = "list names only; `set_env` sets values";
        let message = format!(
            "`{}` is not a valid environment variable name",
            name.value.escape_debug()
        );
        table.fault_at(&name.place, message, Some(hint));
    }
}

/// Reads a value, which may be in the file unless its name indicates a secret.
fn plain_or_secret(
    table: &Table<'_>,
    reader: &Reader<'_>,
    name: &Located<String>,
) -> Option<String> {
    if table.is_table(&name.value) || is_secret_name(&name.value) {
        return reader.secret(table, &name.value);
    }
    let value = table.string(&name.value)?;
    if value.value.contains('\0') {
        let message = format!("`{}` holds a NUL character", name.value);
        table.fault_at(&value.place, message, None);
    }
    Some(value.value)
}
