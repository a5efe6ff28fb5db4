//! The definitions of tools, prompts and resources that upstreams list: which are pinned, which
//! wait for approval, which agents see.

use std::sync::Arc;

use http::{Response, StatusCode};
use serde::Serialize;

use super::page::{json, refuse};
use super::visibility::upstreams_of;
use crate::inspect::definitions::{Content, Key, Kind, PendingDefinition, Pin, diff_lines};
use crate::inspect::{Mode, Policy};
use crate::listen::Body;
use crate::message::Json;
use crate::proxy::Gate;
use crate::review::tool_visibility::ToolVisibility;

/// Maximum length of a diff that is shown, in lines and in bytes. A longer one is approved where it
/// can be read in full.
const DIFF_LINES: usize = 600;
const DIFF_BYTES: usize = 128 << 10;

#[derive(Serialize)]
struct PinsPage {
    upstreams: Vec<UpstreamPins>,
    /// Whether pins are kept across restarts of the gate.
    file: bool,
}

#[derive(Serialize)]
struct UpstreamPins {
    name: String,
    policy: Option<String>,
    /// The upstreams that have this policy, including this one.
    shares_policy: Vec<String>,
    definitions: Vec<Definition>,
}

#[derive(Serialize)]
struct Definition {
    kind: &'static str,
    name: String,
    waits: Option<HeldChange>,
    /// Whether the policy hides the tool from agents.
    hidden: bool,
    /// The config lines that hide it, or show it.
    toggle: Option<String>,
    /// Whether the console can write them.
    can_toggle: bool,
}

#[derive(Serialize)]
struct HeldChange {
    sha256: String,
    classes: Vec<&'static str>,
    /// Lines, each preceded by `+`, `-` or a space.
    diff: Vec<(char, String)>,
    /// Number of lines that are not shown.
    left_out: usize,
}

/// Lists all upstreams with their definitions, by name. `has_config` is set if the gate was started
/// with a config file.
pub(super) fn list(gate: &Gate, has_config: bool) -> Response<Body> {
    let pinned = gate.pinned_definitions();
    let policies = gate.policies();
    let mut upstreams: Vec<UpstreamPins> = gate
        .upstreams()
        .into_iter()
        .map(|(name, _)| {
            let policy = policies.get(&name);
            let pins = pinned.for_upstream(&name.0);
            let definitions = pins
                .iter()
                .map(|(key, pin)| definition(key, pin, policy, has_config))
                .collect();
            UpstreamPins {
                name: name.to_string(),
                policy: policy.map(|policy| policy.name.to_string()),
                shares_policy: policy
                    .map(|policy| upstreams_of(&policies, &policy.name))
                    .unwrap_or_default(),
                definitions,
            }
        })
        .collect();
    upstreams.sort_by(|a, b| a.name.cmp(&b.name));
    json(
        StatusCode::OK,
        &PinsPage {
            upstreams,
            file: gate.has_persistent_pins(),
        },
    )
}

fn definition(key: &Key, pin: &Pin, policy: Option<&Arc<Policy>>, has_config: bool) -> Definition {
    let policy = policy.filter(|_| key.kind == Kind::Tool);
    let hidden = policy.is_some_and(|policy| policy.hides(&key.name));
    let toggle = policy.and_then(|policy| toggle(&policy.name, &key.name, !hidden));
    Definition {
        kind: key.kind.name(),
        name: key.name.to_string(),
        waits: pin
            .pending
            .as_ref()
            .map(|held| pending_change(pin.content.as_ref(), held)),
        hidden,
        can_toggle: has_config
            && toggle.is_some()
            && policy.is_some_and(|policy| policy.mode == Mode::Enforce),
        toggle,
    }
}

fn pending_change(old: Option<&Content>, held: &PendingDefinition) -> HeldChange {
    let old = old.map(Content::pretty).unwrap_or_default();
    let new = held.content.pretty();
    let lines = diff_lines(&old, &new);
    let mut bytes = 0;
    let visible_lines = lines.iter().take(DIFF_LINES).take_while(|(_, line)| {
        bytes += line.len();
        bytes <= DIFF_BYTES
    });
    let diff: Vec<(char, String)> = visible_lines
        .map(|(mark, line)| (*mark, (*line).to_owned()))
        .collect();
    HeldChange {
        sha256: held.content.digest(),
        classes: held.classes.iter().map(|class| class.name()).collect(),
        left_out: lines.len() - diff.len(),
        diff,
    }
}

/// Returns the config lines that hide or show a tool; `None` for a name that the config would read
/// as a pattern.
fn toggle(policy: &str, tool: &str, hidden: bool) -> Option<String> {
    ToolVisibility {
        policy: policy.to_owned(),
        upstreams: Vec::new(),
        tool: tool.to_owned(),
        hidden,
    }
    .lines()
}

/// Approves a pending change, if it is the one that the page has shown.
pub(super) async fn approve(gate: &Arc<Gate>, body: &Json) -> Response<Body> {
    let member = |name: &str| body.root().get_str(name).map(|text| text.into_owned());
    let (Some(upstream), Some(kind), Some(name), Some(sha256)) = (
        member("upstream"),
        member("kind"),
        member("name"),
        member("sha256"),
    ) else {
        return refuse(
            StatusCode::BAD_REQUEST,
            "send `upstream`, `kind`, `name` and `sha256`",
        );
    };
    let Some(kind) = Kind::named(&kind) else {
        return refuse(StatusCode::BAD_REQUEST, "`kind` is not known");
    };
    let gate = gate.clone();
    let key = Key {
        kind,
        name: name.into(),
    };
    let outcome =
        tokio::task::spawn_blocking(move || gate.approve_definition(&upstream, &key, &sha256))
            .await;
    match outcome {
        Ok(Ok(true)) => json(StatusCode::OK, &()),
        Ok(Ok(false)) => refuse(
            StatusCode::CONFLICT,
            "it has changed or was already approved: review it again",
        ),
        Ok(Err(faults)) => {
            let messages: Vec<String> = faults.iter().map(ToString::to_string).collect();
            refuse(StatusCode::INTERNAL_SERVER_ERROR, &messages.join("; "))
        }
        Err(_) => refuse(
            StatusCode::INTERNAL_SERVER_ERROR,
            "approving it failed; see the log",
        ),
    }
}
