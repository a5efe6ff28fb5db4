//! The sides that are not a server's: listener, agents, audit log, admin port.

use std::net::SocketAddr;

use sha2::{Digest, Sha256};

use crate::config::{Admin, Agent, AuditConfig, AuditTo, Listen, ListenTls};
use crate::document::{Located, Place, Table};

use super::values::{Reader, check_name};

/// Shortest bearer token taken, in bytes: what is shorter can be guessed.
const TOKEN_BYTES: usize = 16;
const TOKEN_HINT: &str = "make one with `openssl rand -hex 32`; its hash with `printf %s \"$TOKEN\" | sha256sum`";

/// `[listen]`
pub(super) fn listen(root: &Table<'_>, reader: &Reader<'_>) -> Listen {
    let mut made = Listen::default();
    let Some(table) = root.table("listen") else { return made };
    made.address = address(&table, "8800").unwrap_or(made.address);
    made.tls = table.table("tls").and_then(|tls| listen_tls(&tls, reader));
    made.origins = table.strings("origins").into_iter().map(|origin| checked_origin(&table, origin)).collect();
    made.hosts = table.strings("hosts").into_iter().map(|host| checked_host(&table, host)).collect();
    made.allow_anyone = table.boolean("allow_unauthenticated_agents_off_loopback").unwrap_or(false);
    table.finish();
    made
}

fn listen_tls(table: &Table<'_>, reader: &Reader<'_>) -> Option<ListenTls> {
    for key in ["cert", "key"] {
        if !table.has(key) {
            table.missing(key, "TLS needs a certificate chain and its private key, PEM files");
        }
    }
    let (cert, key, client_ca) = (reader.file(table, "cert"), reader.file(table, "key"), reader.file(table, "client_ca"));
    table.finish();
    Some(ListenTls { cert: cert?, key: key?, client_ca })
}

fn address(table: &Table<'_>, port: &str) -> Option<SocketAddr> {
    let written = table.string("address")?;
    let address = written.value.parse().ok();
    if address.is_none() {
        let hint = format!("an IP address and a port, as in `127.0.0.1:{port}` or `[::1]:{port}`");
        table.fault_at(&written.place, format!("`address` is `{}`", written.value), Some(&hint));
    }
    address
}

fn checked_origin(table: &Table<'_>, origin: Located<String>) -> String {
    let value = origin.value.to_ascii_lowercase();
    let fits = value == "null"
        || value.split_once("://").is_some_and(|(scheme, rest)| {
            let scheme_fits = scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
            let rest_fits = rest.bytes().all(|b| b.is_ascii_graphic() && !matches!(b, b'/' | b'?' | b'#' | b'@' | b'*' | b','));
            !scheme.is_empty() && !rest.is_empty() && scheme_fits && rest_fits
        });
    if !fits {
        let hint = "an origin is scheme, host and port and nothing more, as in `https://app.example.org`; there is no wildcard";
        table.fault_at(&origin.place, format!("`{}` is no origin", origin.value), Some(hint));
    }
    value
}

fn checked_host(table: &Table<'_>, host: Located<String>) -> String {
    let value = host.value.to_ascii_lowercase();
    let bare = value.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(&value);
    let name_fits = !value.is_empty() && value.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'));
    if !name_fits && bare.parse::<std::net::Ipv6Addr>().is_err() {
        let hint = "a host is a name or an address without scheme and port, as in `gate.example.org`; there is no wildcard";
        table.fault_at(&host.place, format!("`{}` is no host", host.value), Some(hint));
    }
    value
}

/// An agent and what checking it against the rest needs.
pub(super) struct AgentRead {
    /// The agent.
    pub(super) agent: Agent,
    /// Whether its token could be read.
    pub(super) token_is_known: bool,
    /// The upstreams it names, with their places.
    pub(super) upstreams: Vec<Located<String>>,
    /// Where it stands.
    pub(super) place: Place,
}

/// `[[agent]]`
pub(super) fn agents(root: &Table<'_>, reader: &Reader<'_>) -> Vec<AgentRead> {
    root.tables("agent").iter().map(|table| agent(table, reader)).collect()
}

fn agent(table: &Table<'_>, reader: &Reader<'_>) -> AgentRead {
    let name = table.required("name", "the name that stands in audit lines");
    if let Some(name) = &name {
        check_name(table, name, "agent");
    }
    let (has_token, has_hash) = (table.has("token"), table.has("token_sha256"));
    let token = reader.secret(table, "token").and_then(|token| hashed(table, &token));
    let hash = table.string("token_sha256").and_then(|written| read_hash(table, &written));
    if has_token == has_hash {
        table.fault("an agent has `token` or `token_sha256`, one of the two", Some(TOKEN_HINT));
    }
    let upstreams = table.strings("upstreams");
    let named = table.has("upstreams").then(|| upstreams.iter().map(|name| name.value.clone()).collect());
    let place = name.as_ref().map_or_else(|| table.place(), |name| name.place.clone());
    table.finish();
    let token = token.or(hash);
    let agent = Agent {
        name: name.map(|name| name.value).unwrap_or_default(),
        token_sha256: token.unwrap_or_default(),
        upstreams: named,
    };
    AgentRead { agent, token_is_known: token.is_some(), upstreams, place }
}

fn hashed(table: &Table<'_>, token: &str) -> Option<[u8; 32]> {
    if token.len() < TOKEN_BYTES || token.contains(' ') {
        let message = format!("the agent's token is shorter than {TOKEN_BYTES} bytes, or holds a space");
        table.fault_of("token", message, Some(TOKEN_HINT));
        return None;
    }
    Some(Sha256::digest(token.as_bytes()).into())
}

fn read_hash(table: &Table<'_>, written: &Located<String>) -> Option<[u8; 32]> {
    let digits: Option<Vec<u32>> = written.value.chars().map(|c| c.to_digit(16)).collect();
    let bytes: Vec<u8> = digits
        .unwrap_or_default()
        .chunks(2)
        .map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | u8::try_from(*digit).unwrap_or(0)))
        .collect();
    let hash = <[u8; 32]>::try_from(bytes).ok().filter(|_| written.value.len() == 64);
    if hash.is_none() {
        table.fault_at(&written.place, "`token_sha256` is not 64 hexadecimal digits", Some(TOKEN_HINT));
    }
    hash
}

/// `[audit]`
pub(super) fn audit(root: &Table<'_>, reader: &Reader<'_>) -> AuditConfig {
    let Some(table) = root.table("audit") else { return AuditConfig::default() };
    let file = reader.any_path(&table, "file");
    let stdout = table.boolean("stdout").unwrap_or(false);
    let required = table.boolean("required").unwrap_or(false);
    table.finish();
    if file.is_some() == stdout {
        table.fault(
            "the audit log goes to a `file` or to `stdout`, one of the two",
            Some("write `file = \"PATH\"` or `stdout = true`"),
        );
    }
    AuditConfig { to: file.map(AuditTo::File).or(stdout.then_some(AuditTo::Stdout)), required }
}

/// `[admin]`
pub(super) fn admin(root: &Table<'_>, listen: SocketAddr) -> Admin {
    let Some(table) = root.table("admin") else { return Admin::default() };
    if !table.has("address") {
        table.missing("address", "where `/metrics`, `/healthz` and `/readyz` are, as in `127.0.0.1:8801`");
    }
    let address = address(&table, "8801");
    table.finish();
    if address.is_some_and(|admin| admin.port() != 0 && admin.port() == listen.port() && overlap(admin, listen)) {
        table.fault_of("address", "the admin port is the agents' port", Some("give it a port of its own"));
    }
    Admin { address }
}

fn overlap(a: SocketAddr, b: SocketAddr) -> bool {
    a.ip() == b.ip() || a.ip().is_unspecified() || b.ip().is_unspecified()
}
