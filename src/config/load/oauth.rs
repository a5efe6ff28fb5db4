//! Loading of `[oauth]`, and `oauth` of an upstream.

use std::net::IpAddr;

use http::Uri;

use crate::config::{
    Callback, EnterpriseConfig, Grant, LoginConfig, OAuthConfig, Secret, TokenOf, VaultKey,
};
use crate::document::{Located, Table};

use super::values::Reader;

/// Maximum length of a PEM file of a key, in bytes.
const KEY_BYTES: u64 = 64 << 10;
const GRANT_HINT: &str =
    "one of `\"authorization_code\"`, `\"client_credentials\"` and `{ enterprise = { … } }`";
/// Client authentication methods, as named by authorization servers.
const CLIENT_AUTH: [&str; 4] = [
    "none",
    "client_secret_basic",
    "client_secret_post",
    "private_key_jwt",
];

/// Reads `[oauth]`.
pub(super) fn oauth(root: &Table<'_>, reader: &Reader<'_>) -> OAuthConfig {
    let mut config = OAuthConfig::default();
    let Some(table) = root.table("oauth") else {
        return config;
    };
    let seconds = |key: &str, range, base| table.duration(key, range, base);
    config.vault = reader.any_path(&table, "vault");
    config.vault_key = table
        .table("vault_key")
        .and_then(|key| read_vault_key(&key, reader))
        .unwrap_or(config.vault_key);
    config.earlier_vault_keys = table
        .tables("earlier_vault_keys")
        .iter()
        .filter_map(|key| read_vault_key(key, reader))
        .collect();
    config.callback = callback(&table).unwrap_or(config.callback);
    config.callback_port = table
        .integer("callback_port", 0..=65_535)
        .map_or(0, |port| u16::try_from(port).unwrap_or(0));
    config.open_browser = table.flag("open_browser", config.open_browser);
    config.login_wait = seconds("login_wait_seconds", 0..=600, config.login_wait);
    config.login = seconds("login_seconds", 30..=3600, config.login);
    config.renew_before = seconds("renew_before_seconds", 0..=3600, config.renew_before);
    config.lease = seconds("lease_seconds", 2..=600, config.lease);
    config.request = seconds("request_seconds", 1..=120, config.request);
    if config.lease <= config.request {
        let hint = "a renewal must end before its lease does";
        let message = "`lease_seconds` must be longer than `request_seconds`";
        table.fault(message, Some(hint));
    }
    config.pending_logins = table.count("pending_logins", 1..=100_000, config.pending_logins);
    config.allow_loopback_http = table.flag("allow_loopback_http", config.allow_loopback_http);
    config.private_hosts = table.values("private_hosts");
    for host in &mut config.private_hosts {
        host.make_ascii_lowercase();
    }
    config.client_document = client_document(&table);
    if let Some(name) = table.string("client_name") {
        if name.value.is_empty()
            || name.value.len() > 100
            || name.value.chars().any(char::is_control)
        {
            let message = "`client_name` must be 1 to 100 bytes on one line";
            table.fault_at(&name.place, message, None);
        }
        config.client_name = name.value;
    }
    table.finish();
    config
}

/// Reads the source of an encryption key.
pub(super) fn read_vault_key(table: &Table<'_>, reader: &Reader<'_>) -> Option<VaultKey> {
    let file = reader.any_path(table, "file");
    let env = table.string("env");
    let keyring = table.string("keyring");
    table.finish();
    match (file, env, keyring) {
        (Some(file), None, None) => Some(VaultKey::File(file)),
        (None, Some(name), None) => match reader.variable(&name.value) {
            Some(value) => Some(VaultKey::Value(Secret(value))),
            None => {
                let message = format!("the environment variable `{}` is not set", name.value);
                table.fault_at(&name.place, message, None);
                None
            }
        },
        (None, None, Some(name)) => Some(VaultKey::Keyring(name.value)),
        _ => {
            let message = "set exactly one source for the key";
            let hint = "`{ file = \"PATH\" }`, `{ env = \"NAME\" }` or `{ keyring = \"NAME\" }`";
            table.fault(message, Some(hint));
            None
        }
    }
}

fn callback(table: &Table<'_>) -> Option<Callback> {
    let written = table.string("callback")?;
    if written.value == "loopback" {
        return Some(Callback::Loopback);
    }
    if is_https(&written.value) && !written.value.contains(['?', '#']) {
        return Some(Callback::Hosted(written.value));
    }
    let hint = "`\"loopback\"`, or the gate's own address as browsers reach it, as in `\"https://gate.example.org\"`";
    table.fault_at(&written.place, "`callback` is invalid", Some(hint));
    None
}

/// Reads the URL of a client metadata document. Since it is also the client's id, it must have a
/// path and neither query nor fragment.
fn client_document(table: &Table<'_>) -> Option<String> {
    let written = table.string("client_document")?;
    let has_path = written
        .value
        .parse::<Uri>()
        .is_ok_and(|url| url.path().len() > 1);
    if is_https(&written.value) && has_path && !written.value.contains(['?', '#']) {
        return Some(written.value);
    }
    let hint = "a public URL, such as `\"https://example.org/lychgate.json\"`; the gate serves the document's content at `/oauth/client.json`";
    table.fault_at(
        &written.place,
        "`client_document` is not an `https://` URL with a path",
        Some(hint),
    );
    None
}

/// Reads how the gate logs in to an upstream: by discovery if not set; not at all if it has a
/// token.
pub(super) fn login(table: &Table<'_>, reader: &Reader<'_>) -> Option<Box<LoginConfig>> {
    if table.is_boolean("oauth") {
        return (table.boolean("oauth") == Some(true)).then(Box::default);
    }
    let Some(inner) = table.table("oauth") else {
        return Some(Box::default());
    };
    if table.has("bearer") {
        let hint = "remove one of the two: the gate either logs in or has a token";
        table.fault_at_key("oauth", "`oauth` has no effect beside `bearer`", Some(hint));
    }
    let config = LoginConfig {
        token_of: inner
            .choice("token_of", &TokenOf::WORDS)
            .unwrap_or_default(),
        grant: grant(&inner, reader),
        issuer: address(&inner, "issuer"),
        resource: inner.value("resource"),
        client_id: inner.value("client_id"),
        client_secret: reader.secret(&inner, "client_secret").map(Secret),
        client_key: key(&inner, reader),
        client_key_id: inner.value("client_key_id"),
        client_auth: client_auth(&inner),
        scopes: inner.has("scopes").then(|| {
            inner
                .strings("scopes")
                .into_iter()
                .map(|scope| check_scope(&inner, scope))
                .collect()
        }),
    };
    if config.client_id.is_some() != config.issuer.is_some() {
        let hint = "a client id is valid only at the authorization server that issued it";
        inner.fault("`client_id` and `issuer` require each other", Some(hint));
    }
    if config.grant != Grant::Person && config.client_id.is_none() {
        inner.missing(
            "client_id",
            "`client_credentials` requires a registered client",
        );
    }
    inner.finish();
    Some(Box::new(config))
}

fn grant(table: &Table<'_>, reader: &Reader<'_>) -> Grant {
    if !table.is_table("grant") {
        return table
            .choice(
                "grant",
                &[("authorization_code", false), ("client_credentials", true)],
            )
            .filter(|as_client| *as_client)
            .map_or(Grant::Person, |_| Grant::Client);
    }
    let found = table.table("grant").and_then(|outer| {
        let inner = outer.table("enterprise");
        if inner.is_none() {
            outer.fault("`grant` is not a known grant", Some(GRANT_HINT));
        }
        outer.finish();
        inner
    });
    let Some(inner) = found else {
        return Grant::Person;
    };
    let issuer = address(&inner, "issuer");
    for (key, hint) in [
        ("issuer", "the organization's login server"),
        (
            "client_id",
            "the gate's id at the organization's login server",
        ),
        (
            "id_token_file",
            "the file with the ID token; read before each exchange",
        ),
    ] {
        inner.require(key, hint);
    }
    let config = EnterpriseConfig {
        issuer: issuer.unwrap_or_default(),
        token_endpoint: address(&inner, "token_endpoint"),
        client_id: inner.value("client_id").unwrap_or_default(),
        client_secret: reader.secret(&inner, "client_secret").map(Secret),
        subject_token_file: reader.any_path(&inner, "id_token_file").unwrap_or_default(),
        saml: inner.flag("saml", false),
    };
    inner.finish();
    Grant::Enterprise(config)
}

/// Reads the PEM text of `client_key`.
fn key(table: &Table<'_>, reader: &Reader<'_>) -> Option<Secret> {
    let path = reader.file(table, "client_key")?;
    match reader.read(&path, KEY_BYTES) {
        Ok(pem) => Some(Secret(pem)),
        Err(error) => {
            let message = format!("`{}` cannot be read: {error}", path.display());
            let hint = "a private key as a PEM file";
            table.fault_at_key("client_key", message, Some(hint));
            None
        }
    }
}

fn client_auth(table: &Table<'_>) -> Option<String> {
    let words: Vec<(&str, &str)> = CLIENT_AUTH.iter().map(|word| (*word, *word)).collect();
    table.choice("client_auth", &words).map(str::to_owned)
}

fn check_scope(table: &Table<'_>, scope: Located<String>) -> String {
    // RFC 6749, section 3.3.
    let is_valid = !scope.value.is_empty()
        && scope
            .value
            .bytes()
            .all(|b| matches!(b, 0x21 | 0x23..=0x5b | 0x5d..=0x7e));
    if !is_valid {
        let message = format!("`{}` is not a valid scope", scope.value.escape_debug());
        let hint = "a scope contains neither spaces nor quotes";
        table.fault_at(&scope.place, message, Some(hint));
    }
    scope.value
}

/// Reads a URL from which tokens are obtained: `https`, or `http` on this machine.
fn address(table: &Table<'_>, key: &str) -> Option<String> {
    let written = table.string(key)?;
    if !is_https(&written.value) && !is_loopback_url(&written.value) {
        let hint =
            "such as `https://login.example.org`, exactly as the server's metadata spells it";
        table.fault_at(
            &written.place,
            format!("`{key}` is not an `https://` URL"),
            Some(hint),
        );
    }
    Some(written.value)
}

fn is_https(text: &str) -> bool {
    text.parse::<Uri>().is_ok_and(|url| {
        url.scheme_str() == Some("https")
            && url
                .authority()
                .is_some_and(|authority| !authority.as_str().contains('@'))
    })
}

fn is_loopback_url(text: &str) -> bool {
    let Ok(url) = text.parse::<Uri>() else {
        return false;
    };
    let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
    let is_loopback = host == "localhost"
        || host
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback());
    url.scheme_str() == Some("http") && is_loopback
}
