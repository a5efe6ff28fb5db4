//! `/prove` on the listener: canaries from the holder of the gate's own token, which pass through
//! everything that a call passes through, to a built-in server in place of the upstream.
//!
//! GET `/prove` begins a run and lists the upstreams; GET `/prove/NAME` returns the verdict of the
//! policy in force there on each canary; POST `/prove/NAME` is an MCP endpoint. No upstream is
//! reached this way, whatever is sent.

use std::sync::Arc;
use std::time::Instant;

use arc_swap::ArcSwapOption;
use http::header::{AUTHORIZATION, HeaderName};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::admit::{Rejection, reject, single_header};
use super::authentication::{Authenticator, too_many_failures};
use super::connections::Connection;
use super::failed_logins::SecretError;
use super::{Body, Frontend, http as endpoints, respond_json};
use crate::config::Config;
use crate::inspect::Policy;
use crate::message::{Direction, Message, ReadLimits, quote};
use crate::protocol::{AgentName, Context, Era, UpstreamName, headers};
use crate::proxy::Gate;
use crate::record::Recorder;
use crate::upstream::Upstream;
use crate::upstream::canary::{AGENT, CANARIES, CANARY, Canary};

/// Returns the rest of a path after `/prove`, if it begins with that.
pub(super) fn path(path: &str) -> Option<&str> {
    let rest = path.strip_prefix("/prove")?;
    if rest.is_empty() {
        Some(rest)
    } else {
        rest.strip_prefix('/')
    }
}

/// Lets the holder of a token test the gate.
pub(super) struct ProveEndpoint {
    token_sha256: [u8; 32],
    recorder: Arc<Recorder>,
    /// The gate of the current run: what one run leaves behind (repeated refusals, budgets) does
    /// not affect the next.
    run: ArcSwapOption<Frontend>,
}

impl ProveEndpoint {
    pub(super) fn new(token_sha256: [u8; 32], recorder: Arc<Recorder>) -> Self {
        Self {
            token_sha256,
            recorder,
            run: ArcSwapOption::empty(),
        }
    }

    /// Answers one request.
    ///
    /// # Errors
    /// 401 without the token, 429 after too many invalid ones, 404 for an upstream that does not
    /// exist.
    pub(super) async fn answer(
        &self,
        front: &Frontend,
        request: Request<Incoming>,
        name: &str,
        connection: &Connection,
    ) -> Result<Response<Body>, Rejection> {
        self.check(front, request.headers(), connection)?;
        connection.set_authenticated();
        if name.is_empty() {
            let run = self.begin(front).ok_or(reject(
                StatusCode::SERVICE_UNAVAILABLE,
                "prove",
                "the gateway cannot be tested now",
            ))?;
            return Ok(respond_json(StatusCode::OK, list_targets(front, &run)));
        }
        let unknown = || {
            reject(
                StatusCode::NOT_FOUND,
                "path",
                "no such upstream; `/prove` lists them",
            )
        };
        let upstream = front.gate.find_upstream(name).ok_or_else(unknown)?;
        let run = self.run.load_full().ok_or_else(unknown)?;
        // Judged by the policies in force now, not by those in force when the run began.
        run.gate.replace_policies((*front.gate.policies()).clone());
        if request.method() == Method::GET {
            let policy = run
                .gate
                .policies()
                .get(&upstream)
                .cloned()
                .ok_or_else(unknown)?;
            return Ok(respond_json(StatusCode::OK, verdicts(&policy, &upstream)));
        }
        let canary = single_header(request.headers(), &HeaderName::from_static(CANARY))
            .ok()
            .flatten()
            .and_then(Canary::find);
        Ok(endpoints::endpoint(
            &run,
            request,
            Authenticator::prover_identity(canary),
            upstream,
        )
        .await)
    }

    fn begin(&self, front: &Frontend) -> Option<Arc<Frontend>> {
        // Nothing on disk, no approval requests, no logins: the effects of a canary end with its
        // run.
        let config = Config {
            listen: front.listen.clone(),
            limits: front.gate.limits().clone(),
            ..Config::default()
        };
        let upstreams = front.gate.upstreams().into_iter();
        let upstreams = upstreams
            .map(|(name, _)| (name, Upstream::built_in(&config.limits)))
            .collect();
        let gate = Gate::new(
            upstreams,
            (*front.gate.policies()).clone(),
            self.recorder.clone(),
            &config,
        );
        let log_faults = |faults: Vec<crate::document::Fault>| tracing::error!(first = ?faults.first().map(ToString::to_string), "no proof");
        let gate = gate.map_err(log_faults).ok()?;
        let frontend = Frontend::new(
            Arc::new(gate),
            &config,
            front.bound_address,
            front.logins.clone(),
            front.draining.clone(),
        );
        let run = frontend
            .map(Arc::new)
            .map_err(|fault| log_faults(vec![fault]))
            .ok()?;
        self.run.store(Some(run.clone()));
        Some(run)
    }

    fn check(
        &self,
        front: &Frontend,
        headers: &HeaderMap,
        connection: &Connection,
    ) -> Result<(), Rejection> {
        let wrong = reject(
            StatusCode::UNAUTHORIZED,
            "token",
            "send the token of the gateway's token file, as `lychgate prove` does",
        );
        let bearer = single_header(headers, &AUTHORIZATION)
            .ok()
            .flatten()
            .and_then(|value| value.strip_prefix("Bearer "));
        let Some(bearer) = bearer else {
            return Err(wrong);
        };
        let digest: [u8; 32] = Sha256::digest(bearer.trim().as_bytes()).into();
        let is_valid = digest.ct_eq(&self.token_sha256).into();
        front
            .failed_logins
            .check_secret(connection.from, &digest, is_valid, Instant::now())
            .map_err(|error| match error {
                SecretError::Invalid => wrong,
                SecretError::TooMany => too_many_failures(),
            })
    }
}

/// Returns the upstreams of a run, in order.
fn list_targets(front: &Frontend, run: &Frontend) -> String {
    let policies = run.gate.policies();
    let mut upstreams: Vec<String> = policies
        .iter()
        .map(|(name, policy)| {
            let (name, of, mode) = (quote(&name.0), quote(&policy.name), policy.mode.name());
            format!(r#"{{"name":{name},"policy":{of},"mode":"{mode}"}}"#)
        })
        .collect();
    upstreams.sort();
    let version = env!("CARGO_PKG_VERSION");
    let open = front.authenticator.load().is_open();
    format!(
        r#"{{"version":"{version}","open":{open},"upstreams":[{}]}}"#,
        upstreams.join(",")
    )
}

/// Returns the verdict of a policy on each canary, and the rules in force in it, as JSON.
pub fn verdicts(policy: &Policy, upstream: &UpstreamName) -> String {
    let canary_verdicts: Vec<String> = CANARIES
        .iter()
        .filter_map(|canary| judge(policy, upstream, canary))
        .collect();
    let rules = |direction| {
        let each = policy.rules(direction).rules().iter();
        let all: Vec<String> = each
            .map(|rule| format!(r#"{}:"{}""#, quote(rule.id.as_str()), rule.action.name()))
            .collect();
        all.join(",")
    };
    format!(
        r#"{{"policy":{},"mode":"{}","canaries":[{}],"outbound":{{{}}},"inbound":{{{}}}}}"#,
        quote(&policy.name),
        policy.mode.name(),
        canary_verdicts.join(","),
        rules(Direction::Outbound),
        rules(Direction::Inbound)
    )
}

fn judge(policy: &Policy, upstream: &UpstreamName, canary: &Canary) -> Option<String> {
    let limits = ReadLimits::default();
    let request = Message::parse(canary.request().0.into(), &limits).ok()?;
    let context = Context {
        requests: headers::requests(&request).into(),
        ..Context::new(AgentName(AGENT.into()), upstream.clone(), Era::Modern)
    };
    let (direction, message) = match canary.is_outbound() {
        true => (Direction::Outbound, request),
        false => (
            Direction::Inbound,
            Message::parse(canary.answer().into(), &limits).ok()?,
        ),
    };
    let inspection = policy.inspect_alone(direction, &message, &context);
    let findings: Vec<String> = inspection
        .findings
        .iter()
        .map(|finding| {
            let until = finding
                .suppressed
                .as_ref()
                .map(|suppressed| quote(&suppressed.suppression.until.text));
            let until = until
                .map(|until| format!(r#","suppressed_until":{until}"#))
                .unwrap_or_default();
            format!(
                r#"{{"rule":{},"action":"{}"{until}}}"#,
                quote(finding.rule.as_str()),
                finding.action.name()
            )
        })
        .collect();
    Some(format!(
        r#"{{"id":"{}","verdict":"{}","findings":[{}]}}"#,
        canary.id,
        inspection.verdict.name(),
        findings.join(",")
    ))
}
