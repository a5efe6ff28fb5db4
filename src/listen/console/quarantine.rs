//! Quarantined content of replies: listed, shown, released, deleted. Every operation may block on
//! the disk.

use std::sync::Arc;

use http::{Response, StatusCode};
use serde::Serialize;

use super::page::{json, refuse};
use crate::listen::Body;
use crate::message::{Json, ReadLimits};
use crate::protocol::AuditId;
use crate::proxy::Gate;
use crate::record::stores::{Actor, MessageInfo, Quarantine, State, StoreError};
use crate::record::unix_seconds;

/// Maximum number of messages in the list.
const LISTED: usize = 500;
/// Maximum length of the part of a message that is shown, in bytes.
const SHOWN_BYTES: usize = 256 << 10;
/// The name of the console's user in records.
pub(super) const WHO: &str = "console";

#[derive(Serialize)]
struct ItemList {
    enabled: bool,
    items: Vec<Item>,
    left_out: usize,
    faults: Vec<String>,
}

#[derive(Serialize)]
struct Item {
    audit: String,
    at: u64,
    direction: &'static str,
    agent: String,
    user: Option<String>,
    upstream: String,
    method: Option<String>,
    tool: Option<String>,
    policy: String,
    withheld: Vec<String>,
    why: Vec<String>,
    bytes: u64,
    state: &'static str,
    until: Option<u64>,
}

#[derive(Serialize)]
struct MessageText {
    item: Item,
    /// The strings that were removed, if they can be found at their places.
    withheld: Vec<Withheld>,
    message: String,
    is_whole: bool,
}

#[derive(Serialize)]
struct Withheld {
    at: String,
    text: String,
}

/// Lists all items, the newest first.
pub(super) async fn list(gate: &Gate) -> Response<Body> {
    let Some(quarantine) = gate.recorder().quarantine().cloned() else {
        let empty_list = ItemList {
            enabled: false,
            items: Vec::new(),
            left_out: 0,
            faults: Vec::new(),
        };
        return json(StatusCode::OK, &empty_list);
    };
    run_blocking(move || {
        let listing = quarantine.list()?;
        let left_out = listing.items.len().saturating_sub(LISTED);
        let items = listing
            .items
            .iter()
            .take(LISTED)
            .map(|item| list_item(&item.info, &item.state))
            .collect();
        let faults = listing.faults.iter().map(ToString::to_string).collect();
        Ok(json(
            StatusCode::OK,
            &ItemList {
                enabled: true,
                items,
                left_out,
                faults,
            },
        ))
    })
    .await
}

/// Performs an action on one message: `show`, `release` or `delete`.
pub(super) async fn act(
    gate: &Arc<Gate>,
    id: &str,
    action: &str,
    request: &Json,
) -> Response<Body> {
    let (Some(quarantine), Some(audit)) = (
        gate.recorder().quarantine().cloned(),
        id.parse().ok().map(AuditId),
    ) else {
        return not_found();
    };
    let reason = request.root().get_str("reason");
    let by = Actor {
        who: WHO.to_owned(),
        reason: reason
            .filter(|reason| !reason.is_empty())
            .map(|reason| reason.into_owned()),
    };
    let action = action.to_owned();
    let gate = gate.clone();
    run_blocking(move || match &*action {
        "show" => show(&quarantine, audit, by),
        "release" => Ok(match quarantine.release(audit, by)? {
            Some(release) => {
                // The release takes effect for the very next call.
                gate.reload_pins();
                json(
                    StatusCode::OK,
                    &list_item(
                        &release.about,
                        &State::Released {
                            until: release.until,
                        },
                    ),
                )
            }
            None => not_found(),
        }),
        "delete" => Ok(if quarantine.delete(audit, by)? {
            json(StatusCode::OK, &())
        } else {
            not_found()
        }),
        _ => Ok(refuse(
            StatusCode::NOT_FOUND,
            "use GET to show, POST to release, DELETE to delete a message",
        )),
    })
    .await
}

fn show(
    quarantine: &Arc<Quarantine>,
    audit: AuditId,
    by: Actor,
) -> Result<Response<Body>, StoreError> {
    let Some(stored) = quarantine.get(audit)? else {
        return Ok(not_found());
    };
    quarantine.note_shown(&stored.info, by)?;
    let text = String::from_utf8_lossy(&stored.message).into_owned();
    let limits = ReadLimits::of_bytes(stored.message.len());
    let parsed = Json::parse(stored.message.clone(), &limits).ok();
    let find_string = |at: &String| {
        let mut value = parsed.as_ref()?.root();
        for step in at.split('/').skip(1) {
            let step = step.replace("~1", "/").replace("~0", "~");
            value = value
                .get(&step)
                .or_else(|| value.elements().nth(step.parse().ok()?))?;
        }
        let text = value
            .str()
            .map_or_else(|| value.raw().to_owned(), |text| text.into_owned());
        Some(Withheld {
            at: at.clone(),
            text: crate::text::cut(&text, SHOWN_BYTES).to_owned(),
        })
    };
    let withheld = stored
        .withheld
        .iter()
        .take(LISTED)
        .filter_map(find_string)
        .collect();
    let message = crate::text::cut(&text, SHOWN_BYTES).to_owned();
    let is_whole = message.len() == text.len();
    Ok(json(
        StatusCode::OK,
        &MessageText {
            item: list_item(&stored.info, &State::Stored),
            withheld,
            message,
            is_whole,
        },
    ))
}

fn list_item(about: &MessageInfo, state: &State) -> Item {
    let (state, until) = match state {
        State::Stored => ("kept", None),
        State::Released { until } => ("released", Some(unix_seconds(*until))),
        State::Delivered => ("delivered", None),
    };
    let about = about.clone();
    Item {
        audit: about.audit.to_string(),
        at: unix_seconds(about.at),
        direction: about.direction.name(),
        agent: about.agent,
        user: about.user,
        upstream: about.upstream,
        method: about.method,
        tool: about.tool,
        policy: about.policy,
        withheld: about.withheld,
        why: about.why,
        bytes: about.bytes,
        state,
        until,
    }
}

fn not_found() -> Response<Body> {
    refuse(StatusCode::NOT_FOUND, "no such message in quarantine")
}

/// Runs an operation where it may block on the disk.
async fn run_blocking(
    operation: impl FnOnce() -> Result<Response<Body>, StoreError> + Send + 'static,
) -> Response<Body> {
    match tokio::task::spawn_blocking(operation).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => refuse(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
        Err(_) => refuse(
            StatusCode::INTERNAL_SERVER_ERROR,
            "cannot read the quarantine",
        ),
    }
}
