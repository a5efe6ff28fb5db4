//! Loading of `[listen]` and `[admin]`.

use std::net::SocketAddr;

use crate::config::{Admin, Listen, ListenTls};
use crate::document::{Located, Table};

use super::values::Reader;

/// Reads `[listen]`.
pub(super) fn listen(root: &Table<'_>, reader: &Reader<'_>) -> Listen {
    let mut config = Listen::default();
    let Some(table) = root.table("listen") else {
        return config;
    };
    config.address = address(&table, "8800").unwrap_or(config.address);
    config.tls = table.table("tls").and_then(|tls| listen_tls(&tls, reader));
    config.origins = table
        .strings("origins")
        .into_iter()
        .map(|origin| check_origin(&table, origin))
        .collect();
    config.hosts = table
        .strings("hosts")
        .into_iter()
        .map(|host| check_host(&table, host))
        .collect();
    config.public_url = table
        .string("public_url")
        .map(|url| check_public_url(&table, url));
    config.allow_anyone = table.flag("allow_unauthenticated_agents_off_loopback", false);
    table.finish();
    config
}

fn listen_tls(table: &Table<'_>, reader: &Reader<'_>) -> Option<ListenTls> {
    for key in ["cert", "key"] {
        table.require(
            key,
            "TLS needs a certificate chain and its private key, PEM files",
        );
    }
    let cert = reader.file(table, "cert");
    let key = reader.file(table, "key");
    let client_ca = reader.file(table, "client_ca");
    table.finish();
    Some(ListenTls {
        cert: cert?,
        key: key?,
        client_ca,
    })
}

fn address(table: &Table<'_>, port: &str) -> Option<SocketAddr> {
    let written = table.string("address")?;
    let address = written.value.parse().ok();
    if address.is_none() {
        let hint = format!("an IP address and a port, as in `127.0.0.1:{port}` or `[::1]:{port}`");
        let message = format!("`{}` is not a valid `address`", written.value);
        table.fault_at(&written.place, message, Some(&hint));
    }
    address
}

fn check_origin(table: &Table<'_>, origin: Located<String>) -> String {
    let value = origin.value.to_ascii_lowercase();
    let is_valid = value == "null"
        || value.split_once("://").is_some_and(|(scheme, rest)| {
            let scheme_fits = scheme
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
            let rest_fits = rest.bytes().all(|b| {
                b.is_ascii_graphic() && !matches!(b, b'/' | b'?' | b'#' | b'@' | b'*' | b',')
            });
            !scheme.is_empty() && !rest.is_empty() && scheme_fits && rest_fits
        });
    if !is_valid {
        let hint = "an origin consists of scheme, host and port, as in `https://app.example.org`; wildcards are not supported";
        let message = format!("`{}` is not a valid origin", origin.value);
        table.fault_at(&origin.place, message, Some(hint));
    }
    value
}

fn check_public_url(table: &Table<'_>, url: Located<String>) -> String {
    let trimmed = url.value.strip_suffix('/').unwrap_or(&url.value);
    let authority = trimmed
        .strip_prefix("https://")
        .or_else(|| trimmed.strip_prefix("http://"));
    let is_valid = |site: &str| site.parse::<http::uri::Authority>().is_ok() && !site.contains('@');
    if !authority.is_some_and(is_valid) {
        let hint = "scheme, host and port only, as in `https://gate.example.org`";
        let message = format!("`{}` is not a valid `public_url`", url.value);
        table.fault_at(&url.place, message, Some(hint));
    }
    trimmed.to_owned()
}

fn check_host(table: &Table<'_>, host: Located<String>) -> String {
    let value = host.value.to_ascii_lowercase();
    let unbracketed = value
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(&value);
    let is_name = !value.is_empty()
        && value
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'));
    if !is_name && unbracketed.parse::<std::net::Ipv6Addr>().is_err() {
        let hint = "a host is a name or an address without scheme and port, as in `gate.example.org`; wildcards are not supported";
        let message = format!("`{}` is not a valid host", host.value);
        table.fault_at(&host.place, message, Some(hint));
    }
    value
}

/// Reads `[admin]`.
pub(super) fn admin(root: &Table<'_>, listen: SocketAddr) -> Admin {
    let Some(table) = root.table("admin") else {
        return Admin::default();
    };
    table.require(
        "address",
        "the address that serves `/metrics`, `/healthz` and `/readyz`, such as `127.0.0.1:8801`",
    );
    let address = address(&table, "8801");
    let hosts = table
        .strings("hosts")
        .into_iter()
        .map(|host| check_host(&table, host))
        .collect();
    let console = table.boolean("console");
    let console_url = table
        .string("console_url")
        .map(|url| check_console_url(&table, url));
    table.finish();
    if console == Some(true)
        && console_url.is_none()
        && address.is_some_and(|address| !address.ip().is_loopback())
    {
        let hint = "put a TLS proxy in front and set its URL: `console_url = \"https://gate-admin.example.org\"`";
        let message = "off loopback the console requires TLS";
        table.fault_at_key("console", message, Some(hint));
    }
    if address.is_some_and(|admin| {
        admin.port() != 0 && admin.port() == listen.port() && overlap(admin, listen)
    }) {
        let message = "the admin port equals the agents' port";
        let hint = "use a different port";
        table.fault_at_key("address", message, Some(hint));
    }
    Admin {
        address,
        hosts,
        console,
        console_url,
    }
}

fn check_console_url(table: &Table<'_>, url: Located<String>) -> String {
    let trimmed = url
        .value
        .strip_suffix('/')
        .unwrap_or(&url.value)
        .to_ascii_lowercase();
    let authority = trimmed
        .strip_prefix("https://")
        .filter(|site| !site.contains('@'));
    if authority.is_none_or(|site| site.parse::<http::uri::Authority>().is_err()) {
        let hint = "`https`, host and port only, as in `https://gate-admin.example.org`";
        let message = format!("`{}` is not a valid `console_url`", url.value);
        table.fault_at(&url.place, message, Some(hint));
    }
    trimmed
}

fn overlap(a: SocketAddr, b: SocketAddr) -> bool {
    a.ip() == b.ip() || a.ip().is_unspecified() || b.ip().is_unspecified()
}
