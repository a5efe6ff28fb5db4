//! Loading of `[[agent]]`, `[agents]`, `[[issuer]]`.

use std::io;
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::config::tokens::{self, AgentToken, read_hash};
use crate::config::{Agent, AgentsFile, IssuerConfig, Listen};
use crate::document::{Located, Place, Table, suggest};

use super::upstream::ParsedUpstream;
use super::values::{Reader, check_name};

/// Minimum length of a bearer token, in bytes: shorter ones can be guessed.
const TOKEN_BYTES: usize = 16;
const TOKEN_HINT: &str =
    "create one with `openssl rand -hex 32`, its hash with `printf %s \"$TOKEN\" | sha256sum`";
/// Maximum number of issuers.
const ISSUERS: usize = 32;
/// Maximum leeway for clock skew; clocks that differ by more must be corrected.
const LEEWAY_SECONDS: u64 = 300;

/// An agent, and what is needed to check it against the rest of the config.
pub(super) struct ParsedAgent {
    pub(super) agent: Agent,
    /// The upstreams that the agent names, with their places.
    upstreams: Vec<Located<String>>,
    /// The place of the agent in the file.
    place: Place,
}

/// Reads `[[agent]]`, and the agents of the file that `[agents]` names.
pub(super) fn agents(root: &Table<'_>, reader: &Reader<'_>) -> (Vec<ParsedAgent>, AgentsFile) {
    let file = file(root, reader);
    let mut agents: Vec<ParsedAgent> = root
        .tables("agent")
        .iter()
        .map(|table| agent(table, reader, &file))
        .collect();
    for token in read_tokens(root, reader, &file) {
        match agents
            .iter_mut()
            .find(|parsed| parsed.agent.name == token.agent)
        {
            Some(parsed) if !parsed.agent.tokens.contains(&token.sha256) => {
                parsed.agent.tokens.push(token.sha256)
            }
            Some(_) => {}
            None => {
                let agent = Agent {
                    name: token.agent,
                    tokens: vec![token.sha256],
                    ..Agent::default()
                };
                agents.push(ParsedAgent {
                    agent,
                    upstreams: vec![],
                    place: root.place(),
                });
            }
        }
    }
    (agents, file)
}

/// Reads `[agents]`.
pub(super) fn file(root: &Table<'_>, reader: &Reader<'_>) -> AgentsFile {
    let Some(table) = root.table("agents") else {
        return AgentsFile::default();
    };
    table.require(
        "file",
        "the file in which `lychgate agent` stores token hashes, such as `agents.toml`",
    );
    let file = reader.any_path(&table, "file");
    table.finish();
    AgentsFile { file }
}

/// Reads the tokens in the file; none if the file does not exist yet.
fn read_tokens(root: &Table<'_>, reader: &Reader<'_>, file: &AgentsFile) -> Vec<AgentToken> {
    let Some(file) = &file.file else {
        return Vec::new();
    };
    let text = match reader.read(file, tokens::FILE_BYTES) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => {
            reader.unreadable(
                root,
                "agents",
                format!("`{}` cannot be read: {error}", file.display()),
            );
            return Vec::new();
        }
    };
    AgentToken::read_all(&file.display().to_string(), &text).unwrap_or_else(|faults| {
        faults
            .iter()
            .for_each(|fault| root.fault_at_key("agents", fault.to_string(), None));
        Vec::new()
    })
}

fn agent(table: &Table<'_>, reader: &Reader<'_>, file: &AgentsFile) -> ParsedAgent {
    let name = table.required("name", "the name for the audit log");
    if let Some(name) = &name {
        check_name(table, name, "agent");
    }
    let has_token = table.has("token");
    let has_hash = table.has("token_sha256");
    let token = reader
        .secret(table, "token")
        .and_then(|token| hash_token(table, &token));
    let hash = table
        .string("token_sha256")
        .and_then(|written| check_hash(table, &written));
    let certificate = certificate(table);
    if has_token && has_hash {
        let message = "an agent has either `token` or `token_sha256`";
        table.fault(message, Some(TOKEN_HINT));
    }
    if !(has_token || has_hash || table.has("certificate") || file.file.is_some()) {
        let message = "an agent needs `token`, `token_sha256` or `certificate`";
        table.fault(message, Some(TOKEN_HINT));
    }
    let upstreams = table.strings("upstreams");
    let upstream_names = table
        .has("upstreams")
        .then(|| upstreams.iter().map(|name| name.value.clone()).collect());
    let groups = table.values("groups");
    let place = name
        .as_ref()
        .map_or_else(|| table.place(), |name| name.place.clone());
    table.finish();
    let name = name.map(|name| name.value).unwrap_or_default();
    let agent = Agent {
        name,
        tokens: token.or(hash).into_iter().collect(),
        certificate,
        groups,
        upstreams: upstream_names,
    };
    ParsedAgent {
        agent,
        upstreams,
        place,
    }
}

/// Reads a name in a client certificate, with its kind. A name without a kind is a URI or a host
/// name.
fn certificate(table: &Table<'_>) -> Option<String> {
    let written = table.string("certificate")?;
    let value = written.value;
    let kind = ["dns:", "uri:", "cn:"]
        .into_iter()
        .find(|kind| value.starts_with(kind));
    let (kind, name) = match kind {
        Some(kind) => (kind, value.get(kind.len()..).unwrap_or_default()),
        None if value.contains("://") => ("uri:", &*value),
        None => ("dns:", &*value),
    };
    let is_host = || {
        name.bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'))
    };
    if name.is_empty() || kind == "dns:" && !is_host() {
        let hint = "a name in the certificate, such as `spiffe://example.org/ci` or `ci.example.org`; `cn:NAME` is its common name";
        let message = format!("`certificate`: `{value}` is not a valid name");
        table.fault_at(&written.place, message, Some(hint));
    }
    Some(format!(
        "{kind}{}",
        if kind == "dns:" {
            name.to_ascii_lowercase()
        } else {
            name.to_owned()
        }
    ))
}

fn hash_token(table: &Table<'_>, token: &str) -> Option<[u8; 32]> {
    if token.len() < TOKEN_BYTES || token.contains(' ') {
        let message =
            format!("the agent's token is shorter than {TOKEN_BYTES} bytes, or contains a space");
        table.fault_at_key("token", message, Some(TOKEN_HINT));
        return None;
    }
    Some(Sha256::digest(token.as_bytes()).into())
}

fn check_hash(table: &Table<'_>, written: &Located<String>) -> Option<[u8; 32]> {
    let hash = read_hash(&written.value);
    if hash.is_none() {
        let message = "`token_sha256` is not 64 hexadecimal digits";
        table.fault_at(&written.place, message, Some(TOKEN_HINT));
    }
    hash
}

/// Reads `[[issuer]]`.
pub(super) fn issuers(root: &Table<'_>, reader: &Reader<'_>) -> Vec<IssuerConfig> {
    let tables = root.tables("issuer");
    let mut configs: Vec<IssuerConfig> = Vec::new();
    for table in &tables {
        let (config, place) = issuer(table, reader);
        if configs.iter().any(|other| other.issuer == config.issuer) {
            let message = format!("there are two issuers `{}`", config.issuer);
            let hint = "remove one of them";
            root.fault_at(&place, message, Some(hint));
        }
        if configs.len() >= ISSUERS {
            let message = format!("there are more than {ISSUERS} issuers");
            root.fault_at(&place, message, None);
            break;
        }
        configs.push(config);
    }
    configs
}

fn issuer(table: &Table<'_>, reader: &Reader<'_>) -> (IssuerConfig, Place) {
    let issuer = table.required(
        "issuer",
        "the issuer's identifier, exactly as in the `iss` claim of its tokens",
    );
    let place = issuer
        .as_ref()
        .map_or_else(|| table.place(), |issuer| issuer.place.clone());
    for url in issuer.iter().chain(&table.string("jwks_uri")) {
        let has_valid_scheme =
            url.value.starts_with("https://") || url.value.starts_with("http://");
        if !has_valid_scheme || url.value.contains(['#', ' ']) {
            let hint = "an `https` URL without a fragment; `http` on loopback requires `allow_loopback_http = true` under `[oauth]`";
            let message = format!("`{}` is not a valid issuer URL", url.value);
            table.fault_at(&url.place, message, Some(hint));
        }
    }
    let seconds = |key: &str, range, base| table.duration(key, range, Duration::from_secs(base));
    let agent = table.string("agent");
    if let Some(agent) = &agent {
        check_name(table, agent, "agent");
    }
    let scopes = table.strings("scopes");
    for scope in &scopes {
        // RFC 6749, section 3.3.
        let is_valid = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
        if scope.value.is_empty() || !scope.value.bytes().all(is_valid) {
            let message = format!("`{}` is not a valid scope", scope.value);
            let hint = "write one scope per string, without spaces";
            table.fault_at(&scope.place, message, Some(hint));
        }
    }
    let config = IssuerConfig {
        issuer: issuer.map(|issuer| issuer.value).unwrap_or_default(),
        jwks_uri: table.value("jwks_uri"),
        ca: reader.file(table, "ca"),
        audience: table.values("audience"),
        leeway: seconds("leeway_seconds", 0..=LEEWAY_SECONDS, 60),
        keys_keep: seconds("keys_keep_seconds", 60..=7 * 86_400, 86_400),
        agent: agent.map_or_else(|| "oauth".to_owned(), |agent| agent.value),
        agent_claim: table.value("agent_claim"),
        user_claim: table
            .value("user_claim")
            .unwrap_or_else(|| "sub".to_owned()),
        groups_claim: table
            .value("groups_claim")
            .unwrap_or_else(|| "groups".to_owned()),
        scopes: scopes.into_iter().map(|scope| scope.value).collect(),
    };
    table.finish();
    (config, place)
}

/// Checks the listener for settings that agents and issuers require.
pub(super) fn check_listener(
    root: &Table<'_>,
    agents: &[ParsedAgent],
    issuers: &[IssuerConfig],
    listen: &Listen,
) {
    let verifies_clients = listen
        .tls
        .as_ref()
        .is_some_and(|tls| tls.client_ca.is_some());
    for parsed in agents
        .iter()
        .filter(|read| read.agent.certificate.is_some() && !verifies_clients)
    {
        let message = format!(
            "`{}` has a `certificate`, but the listener requests none",
            parsed.agent.name
        );
        let hint = "name the authority that signs them: `tls.client_ca` under `[listen]`";
        root.fault_at(&parsed.place, message, Some(hint));
    }
    let has_no_name = listen.public_url.is_none()
        && listen.hosts.is_empty()
        && listen.address.ip().is_unspecified();
    if has_no_name && issuers.iter().any(|issuer| issuer.audience.is_empty()) {
        let message = "tokens of an `[[issuer]]` must be for this gate, and it has no name";
        let hint = "set `public_url` under `[listen]`, or `audience` under `[[issuer]]`";
        root.fault_at_key("issuer", message, Some(hint));
    }
}

/// Checks agents against each other and against the upstreams.
pub(super) fn check(
    root: &Table<'_>,
    agents: &[ParsedAgent],
    upstreams: &[(Located<String>, ParsedUpstream)],
) {
    let upstream_names: Vec<&str> = upstreams
        .iter()
        .map(|(name, _)| name.value.as_str())
        .collect();
    for (index, parsed) in agents.iter().enumerate() {
        for earlier in agents.iter().take(index) {
            let (name, other) = (&parsed.agent.name, &earlier.agent.name);
            if name == other {
                let hint = "agent names are unique; `lychgate agent add` creates further tokens for an agent";
                let message = format!("there are two agents `{name}`");
                root.fault_at(&parsed.place, message, Some(hint));
            }
            if parsed
                .agent
                .tokens
                .iter()
                .any(|token| earlier.agent.tokens.contains(token))
            {
                let message = format!("`{name}` has the same token as `{other}`");
                let hint = "each agent needs its own token, which identifies it";
                root.fault_at(&parsed.place, message, Some(hint));
            }
            if parsed.agent.certificate.is_some()
                && parsed.agent.certificate == earlier.agent.certificate
            {
                let message = format!("`{name}` has the same name in certificates as `{other}`");
                root.fault_at(&parsed.place, message, Some("each agent has its own"));
            }
        }
        for name in &parsed.upstreams {
            if !upstream_names.contains(&name.value.as_str()) {
                let message = format!("there is no `[upstream.{}]`", name.value);
                let hint = suggest(&name.value, &upstream_names);
                root.fault_at(&name.place, message, Some(&hint));
            }
        }
    }
}
