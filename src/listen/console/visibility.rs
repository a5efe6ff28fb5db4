//! Hides and shows tools from the console: sets `hidden` in the gate's config.

use std::path::PathBuf;

use http::{Response, StatusCode};

use super::apply::{apply, no_config_file, signature};
use super::page::refuse;
use crate::inspect::Mode;
use crate::inspect::definitions::{Key, Kind};
use crate::listen::Body;
use crate::message::Json;
use crate::protocol::UpstreamName;
use crate::proxy::{Gate, Policies};
use crate::review::tool_visibility::ToolVisibility;
use crate::text::escape_invisible;

/// Returns the upstreams that have a policy, in order.
pub(super) fn upstreams_of(policies: &Policies, policy: &str) -> Vec<String> {
    let mut names: Vec<String> = policies
        .iter()
        .filter(|(_, one)| &*one.name == policy)
        .map(|(name, _)| name.to_string())
        .collect();
    names.sort();
    names
}

/// Hides or shows a tool of an upstream. `policy` and `upstreams` are what the page has shown: if
/// they have changed since, nothing is written.
pub(super) async fn set(gate: &Gate, config: Option<&PathBuf>, request: &Json) -> Response<Body> {
    let conflict = |why: &str| refuse(StatusCode::CONFLICT, why);
    let Some(file) = config.cloned() else {
        return no_config_file();
    };
    let Some((upstream, shown)) = read_request(request) else {
        let why = "send `upstream`, `tool`, `hidden`, `policy` and `upstreams`";
        return refuse(StatusCode::BAD_REQUEST, why);
    };
    let key = Key {
        kind: Kind::Tool,
        name: shown.tool.as_str().into(),
    };
    if gate
        .pinned_definitions()
        .for_upstream(&upstream)
        .get(&key)
        .is_none()
    {
        return conflict("the upstream lists no such tool");
    }
    let policies = gate.policies();
    let Some(policy) = policies.get(&UpstreamName(upstream.as_str().into())) else {
        return conflict("no such upstream: it may have been removed by a reload");
    };
    if *policy.name != *shown.policy || upstreams_of(&policies, &policy.name) != shown.upstreams {
        return conflict("the policies have changed: try again");
    }
    if policy.mode == Mode::Observe {
        return conflict("this upstream is in observe mode, in which no tool is hidden");
    }
    let what = if shown.hidden { "hidden" } else { "shown" };
    let change = format!(
        "tool `{}` {what} in policy `{}`",
        escape_invisible(&shown.tool),
        shown.policy
    );
    let expected = shown.clone();
    let applies = move |policies: &Policies| {
        let mut enforced = policies
            .values()
            .filter(|policy| *policy.name == *expected.policy && policy.mode == Mode::Enforce);
        enforced.all(|policy| policy.hides(&expected.tool) == expected.hidden)
    };
    let comment = format!("lychgate console: {}", signature());
    apply(
        gate,
        file,
        &change,
        move |file| shown.edit(file, &comment),
        applies,
    )
    .await
}

/// Reads the upstream, and what the page has shown for it.
fn read_request(request: &Json) -> Option<(String, ToolVisibility)> {
    let root = request.root();
    let member = |key: &str| Some(root.get_str(key)?.into_owned());
    let hidden = match root.get("hidden")?.raw() {
        "true" => true,
        "false" => false,
        _ => return None,
    };
    let upstreams = root
        .get("upstreams")?
        .elements()
        .map(|name| Some(name.str()?.into_owned()))
        .collect::<Option<_>>()?;
    Some((
        member("upstream")?,
        ToolVisibility {
            policy: member("policy")?,
            upstreams,
            tool: member("tool")?,
            hidden,
        },
    ))
}
