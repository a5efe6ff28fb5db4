//! The page's overview of the gate itself: its state, and the upstreams behind it.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::future::join_all;
use http::{Response, StatusCode};
use serde::Serialize;

use super::page::{json, refuse};
use crate::listen::{Body, Frontend};
use crate::message::Direction;
use crate::oauth::vault::Account;
use crate::oauth::{LoginError, Principal};
use crate::protocol::{ProcessOutput, UpstreamName};
use crate::proxy::Gate;
use crate::record::{BUCKET_SECONDS, Reload, StatsBucket, UpstreamStats, unix_seconds};
use crate::upstream::Upstream;

/// Maximum number of rules in the list of the most frequent ones.
const TOP_RULES: usize = 10;

/// The state of the gate.
#[derive(Serialize)]
pub(super) struct Overview {
    version: &'static str,
    started: u64,
    uptime_seconds: u64,
    now: u64,
    bucket_seconds: u64,
    hour: Vec<StatsBucket>,
    policies: Vec<PolicyInForce>,
    reload: Option<Reload>,
    top_rules: Vec<TopRule>,
    connected: usize,
}

/// The policy of an upstream.
#[derive(Serialize)]
struct PolicyInForce {
    upstream: String,
    policy: String,
    mode: &'static str,
    outbound_rules: usize,
    inbound_rules: usize,
    outbound_digest: String,
    inbound_digest: String,
}

#[derive(Serialize)]
struct TopRule {
    rule: Box<str>,
    count: u64,
    last: u64,
}

/// Returns the current state.
pub(super) fn overview(gate: &Gate, started: SystemTime, uptime: Duration) -> Overview {
    let mut policies: Vec<PolicyInForce> = gate
        .policies()
        .iter()
        .map(|(upstream, policy)| PolicyInForce {
            upstream: upstream.to_string(),
            policy: policy.name.to_string(),
            mode: policy.mode.name(),
            outbound_rules: policy.rules(Direction::Outbound).rules().len(),
            inbound_rules: policy.rules(Direction::Inbound).rules().len(),
            outbound_digest: policy.rules_digest(Direction::Outbound).to_owned(),
            inbound_digest: policy.rules_digest(Direction::Inbound).to_owned(),
        })
        .collect();
    policies.sort_by(|a, b| a.upstream.cmp(&b.upstream));
    let hits = gate.recorder().rule_hits();
    let mut top_rules: Vec<TopRule> = hits
        .into_iter()
        .map(|(rule, hits)| TopRule {
            rule,
            count: hits.count,
            last: hits.last,
        })
        .collect();
    top_rules.sort_by_key(|top| std::cmp::Reverse(top.count));
    top_rules.truncate(TOP_RULES);
    Overview {
        version: env!("CARGO_PKG_VERSION"),
        started: unix_seconds(started),
        uptime_seconds: uptime.as_secs(),
        now: unix_seconds(SystemTime::now()),
        bucket_seconds: BUCKET_SECONDS,
        hour: gate.recorder().last_hour(),
        policies,
        reload: gate.recorder().last_reload(),
        top_rules,
        connected: gate.connected_clients().len(),
    }
}

/// An upstream of the gate.
#[derive(Serialize)]
pub(super) struct UpstreamView {
    name: String,
    state: &'static str,
    why: Option<String>,
    /// The last lines that its process printed outside of the protocol.
    printed: Vec<String>,
    policy: Option<String>,
    mode: Option<&'static str>,
    #[serde(flatten)]
    served: UpstreamStats,
    login: Option<LoginView>,
}

/// The gate's logins at an upstream.
#[derive(Serialize)]
struct LoginView {
    /// Whether the login belongs to the gate, an agent or a user: `gate`, `agent` or `user`.
    token_of: &'static str,
    owed: usize,
    kept: Vec<StoredLogin>,
    /// Why the stored logins cannot be shown.
    fault: Option<String>,
}

#[derive(Serialize)]
struct StoredLogin {
    principal: String,
    issuer: String,
    logged_in: bool,
    scopes: Option<String>,
    expires: Option<u64>,
    renews: bool,
    error: Option<String>,
}

/// Returns all upstreams, by name.
pub(super) async fn upstreams(front: &Frontend) -> Vec<UpstreamView> {
    let any_logins = front
        .gate
        .upstreams()
        .iter()
        .any(|(_, upstream)| upstream.authorizer().is_some());
    let (accounts, fault) = match front.logins.accounts().await {
        _ if !any_logins => (Vec::new(), None),
        Ok(accounts) => (accounts, None),
        Err(error) => (Vec::new(), Some(error.to_string())),
    };
    let all = front.gate.upstreams();
    let views = all
        .iter()
        .map(|(name, upstream)| upstream_view(front, name, upstream, &accounts, fault.as_deref()));
    let mut views = join_all(views).await;
    views.sort_by(|a, b| a.name.cmp(&b.name));
    views
}

async fn upstream_view(
    front: &Frontend,
    name: &UpstreamName,
    upstream: &Upstream,
    accounts: &[Account],
    fault: Option<&str>,
) -> UpstreamView {
    let health = upstream.prompt_health().await;
    let policies = front.gate.policies();
    let policy = policies.get(name);
    let login = upstream.authorizer().map(|authorizer| LoginView {
        token_of: authorizer.token_of(),
        owed: front.logins.logins.count(&name.0),
        kept: accounts
            .iter()
            .filter(|account| account.upstream == *name.0)
            .map(stored_login)
            .collect(),
        fault: fault.map(ToOwned::to_owned),
    });
    UpstreamView {
        name: name.to_string(),
        state: health.name(),
        why: health.reason().map(ToOwned::to_owned),
        printed: upstream.output().map(output_lines).unwrap_or_default(),
        policy: policy.map(|policy| policy.name.to_string()),
        mode: policy.map(|policy| policy.mode.name()),
        served: front.gate.recorder().upstream_stats(name),
        login,
    }
}

fn output_lines(output: ProcessOutput) -> Vec<String> {
    output
        .stderr
        .into_iter()
        .chain(output.stdout.map(|line| format!("standard output: {line}")))
        .collect()
}

fn stored_login(account: &Account) -> StoredLogin {
    let granted = account.granted.as_ref();
    StoredLogin {
        principal: account.party.principal.to_string(),
        issuer: account.party.issuer.clone(),
        logged_in: granted.is_some(),
        scopes: granted.and_then(|granted| granted.scopes.parameter()),
        expires: granted.and_then(|granted| granted.expires_unix),
        renews: granted.is_some_and(|granted| granted.refresh.is_some()),
        error: account.last_error.clone(),
    }
}

/// Returns a link to a login at an upstream: for the gate, or for the agent or user that `query`
/// names.
pub(super) async fn login(front: &Arc<Frontend>, name: &str, query: &str) -> Response<Body> {
    #[derive(Serialize)]
    struct Link {
        link: String,
    }
    let found = front
        .gate
        .upstreams()
        .into_iter()
        .find(|(candidate, _)| *candidate.0 == *name);
    let Some(authorizer) = found
        .as_ref()
        .and_then(|(_, upstream)| upstream.authorizer())
    else {
        return refuse(
            StatusCode::NOT_FOUND,
            "the gateway has no login for this server",
        );
    };
    let parameter = |key: &str| {
        let found = form_urlencoded::parse(query.as_bytes())
            .find(|(name, value)| name == key && !value.is_empty());
        found.map(|(_, value)| value.into_owned())
    };
    let principal = match (authorizer.token_of(), parameter("agent"), parameter("user")) {
        ("gate", ..) => Principal::Gate,
        ("agent", Some(agent), _) => Principal::Agent(agent),
        ("user", _, Some(user)) => Principal::User(user),
        (whose, ..) => return refuse(StatusCode::BAD_REQUEST, &format!("name the {whose}")),
    };
    match authorizer.link(&principal).await {
        Ok(link) => json(StatusCode::OK, &Link { link }),
        Err(error @ LoginError::Unreachable(_)) => {
            refuse(StatusCode::BAD_GATEWAY, &error.to_string())
        }
        Err(error) => refuse(StatusCode::BAD_REQUEST, &error.to_string()),
    }
}
