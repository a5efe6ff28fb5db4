//! Sends canaries one after another, and determines the outcome of each.

use serde_json::Value;

use super::client::{Answer, Auth, GateClient};
use super::diagnosis::Diagnosis;
use super::{Args, ProveError, listener_checks};
use crate::config::Config;
use crate::protocol::{MODERN, header};
use crate::upstream::canary::{CANARIES, CANARY, Canary, RECEIVED, digest};

/// The results of testing a gate.
pub(super) struct Proof {
    /// The gate's URL.
    pub(super) gate: String,
    pub(super) version: String,
    pub(super) offline: bool,
    pub(super) upstreams: Vec<UpstreamProof>,
    /// The results of the listener's own checks.
    pub(super) listener: Vec<Trial>,
}

/// The results of the canaries at one upstream.
pub(super) struct UpstreamProof {
    pub(super) name: String,
    pub(super) policy: String,
    pub(super) mode: String,
    pub(super) trials: Vec<Trial>,
}

/// The result of one canary.
pub(super) struct Trial {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    pub(super) attack: bool,
    pub(super) outcome: Outcome,
    /// Rules that acted, or would have acted.
    pub(super) rules: Vec<String>,
    /// Why the outcome is not as expected, if it is not.
    pub(super) why: String,
    /// Whether the canary was excepted by an argument.
    pub(super) excepted: bool,
}

enum_with_names! {
    /// The outcome of a canary.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum Outcome {
        /// An attack that did not arrive.
        Caught = "caught",
        /// An attack that arrived.
        Missed = "missed",
        /// A harmless message that arrived byte for byte.
        Passed = "passed",
        /// A harmless message that did not arrive, or arrived modified.
        Disturbed = "disturbed",
        /// The outcome cannot be determined.
        Untried = "untried",
    }
}

impl Outcome {
    pub(super) fn is_expected(self) -> bool {
        matches!(self, Self::Caught | Self::Passed)
    }
}

impl Proof {
    pub(super) fn trials(&self) -> impl Iterator<Item = &Trial> {
        self.upstreams
            .iter()
            .flat_map(|upstream| &upstream.trials)
            .chain(&self.listener)
    }

    /// Returns the exit code.
    pub(super) fn code(&self) -> u8 {
        let any = |predicate: fn(Outcome) -> bool| {
            self.trials()
                .any(|trial| !trial.excepted && predicate(trial.outcome))
        };
        match (
            any(|became| matches!(became, Outcome::Missed | Outcome::Disturbed)),
            any(|became| became == Outcome::Untried),
        ) {
            (true, _) => 1,
            (false, true) => 2,
            (false, false) => 0,
        }
    }
}

/// Tests the gate.
pub(super) async fn prove(
    args: &Args,
    wire: &GateClient,
    config: Option<&Config>,
    offline: bool,
) -> Result<Proof, ProveError> {
    let state = gate_state(wire.get("/prove").await?, wire)?;
    let text = |of: &Value, key: &str| {
        of.get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let entries: Vec<Value> = state
        .get("upstreams")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let names: Vec<String> = entries
        .iter()
        .map(|upstream| text(upstream, "name"))
        .collect();
    if names.is_empty() {
        return Err(ProveError(
            "the response lists no upstreams: it is not a gate, or has nothing to test".to_owned(),
        ));
    }
    if let Some(unknown) = args.upstream.iter().find(|name| !names.contains(name)) {
        return Err(ProveError(format!(
            "the gate has no upstream `{unknown}`\n  hint: known upstreams: {}",
            names.join(", ")
        )));
    }
    let mut upstreams = Vec::new();
    let mut diagnosis = Diagnosis::new(config);
    for name in names
        .iter()
        .filter(|name| args.upstream.is_empty() || args.upstream.contains(name))
    {
        let verdicts = gate_state(wire.get(&format!("/prove/{name}")).await?, wire)?;
        let policy = text(&verdicts, "policy");
        let mode = text(&verdicts, "mode");
        let mut trials = Vec::new();
        for canary in CANARIES.iter().filter(|canary| canary.quick || !args.quick) {
            let answer = send(wire, name, canary).await?;
            let (mut outcome, answer_text) = evaluate(canary, &answer);
            let rules = rules(&verdicts, canary, outcome);
            let mut reason = String::new();
            if !outcome.is_expected() {
                reason = if outcome == Outcome::Untried {
                    answer_text
                } else {
                    diagnosis.diagnose(canary, outcome, name, &verdicts, &answer_text)
                };
                if outcome == Outcome::Missed
                    && args.allow_observe
                    && mode == "observe"
                    && !rules.is_empty()
                {
                    (outcome, reason) = (Outcome::Caught, String::new());
                }
            }
            let excepted = args.except.iter().any(|id| id == canary.id);
            let Canary {
                id, title, attack, ..
            } = *canary;
            trials.push(Trial {
                id,
                title,
                attack,
                outcome,
                rules,
                why: reason,
                excepted,
            });
        }
        upstreams.push(UpstreamProof {
            name: name.clone(),
            policy,
            mode,
            trials,
        });
    }
    let is_open = state
        .get("open")
        .and_then(Value::as_bool)
        .unwrap_or_default();
    let listener_trials = match (names.first(), args.quick) {
        (Some(upstream), false) => {
            listener_checks::trials(wire, upstream, is_open, &args.except).await?
        }
        _ => Vec::new(),
    };
    Ok(Proof {
        gate: wire.base().to_owned(),
        version: text(&state, "version"),
        offline,
        upstreams,
        listener: listener_trials,
    })
}

/// Parses the gate's description of itself.
fn gate_state(answer: Answer, wire: &GateClient) -> Result<Value, ProveError> {
    if answer.status.is_success()
        && let Ok(value) = serde_json::from_slice(&answer.body)
    {
        return Ok(value);
    }
    let base = wire.base();
    Err(ProveError(match answer.status.as_u16() {
        401 => format!(
            "{base} rejected the token\n  hint: it changes at each start of the gate: check that the file belongs to this gate"
        ),
        404 => format!(
            "{base} cannot be tested\n  hint: it needs an admin port (`[admin]`), and the same version"
        ),
        status => format!("unexpected response from {base}: status {status}"),
    }))
}

async fn send(wire: &GateClient, upstream: &str, canary: &Canary) -> Result<Answer, ProveError> {
    let (body, method, tool) = canary.request();
    let mut headers = vec![
        (header::VERSION, MODERN),
        (header::METHOD, method),
        (CANARY, canary.id),
    ];
    headers.extend(tool.map(|tool| (header::NAME, tool)));
    wire.post(&format!("/prove/{upstream}"), &headers, Auth::Token, body)
        .await
}

/// Returns the outcome of a canary, and the gate's response.
fn evaluate(canary: &Canary, answer: &Answer) -> (Outcome, String) {
    let text = message_text(&answer.body);
    let received = answer
        .headers
        .get(RECEIVED)
        .and_then(|value| value.to_str().ok());
    let is_whole = answer.body == canary.answer().as_bytes();
    if !canary.attack {
        let is_unchanged = is_whole && received == Some(&digest(canary.request().0.as_bytes()));
        let outcome = match (is_unchanged, is_refusal(&text) || received.is_some()) {
            (true, _) => Outcome::Passed,
            (false, true) => Outcome::Disturbed,
            (false, false) => Outcome::Untried,
        };
        return (outcome, text);
    }
    let has_arrived = match canary.is_outbound() {
        true => received.is_some(),
        false => is_whole || text.contains(&canary.payload()),
    };
    let outcome = match (
        has_arrived,
        is_refusal(&text) || !canary.is_outbound() && received.is_some(),
    ) {
        (true, _) => Outcome::Missed,
        (false, true) => Outcome::Caught,
        (false, false) => Outcome::Untried,
    };
    let message = if outcome == Outcome::Untried && text.is_empty() {
        format!("status {}", answer.status)
    } else {
        text
    };
    (outcome, message)
}

/// Reports whether a rule refused the message: limits and failures do not count as caught.
fn is_refusal(text: &str) -> bool {
    text.contains("lychgate") && text.contains("rule `")
}

/// Returns all strings in a response.
fn message_text(body: &[u8]) -> String {
    let Ok(value) = serde_json::from_slice::<Value>(body) else {
        return String::from_utf8_lossy(body).into_owned();
    };
    let mut pending = vec![&value];
    let mut texts = Vec::new();
    while let Some(value) = pending.pop() {
        match value {
            Value::String(text) => texts.push(text.as_str()),
            Value::Array(all) => pending.extend(all),
            Value::Object(members) => pending.extend(members.values()),
            _ => {}
        }
    }
    texts.reverse();
    texts.join("\n")
}

/// Returns the rules of the current policy that act on a canary; none for a harmless message that
/// passed.
fn rules(verdicts: &Value, canary: &Canary, outcome: Outcome) -> Vec<String> {
    let mut rules: Vec<String> = Vec::new();
    if outcome == Outcome::Passed {
        return rules;
    }
    for finding in super::diagnosis::findings(verdicts, canary) {
        let word = |key: &str| finding.get(key).and_then(Value::as_str).unwrap_or_default();
        if word("action") != "log" && !rules.iter().any(|rule| rule == word("rule")) {
            rules.push(word("rule").to_owned());
        }
    }
    rules
}
