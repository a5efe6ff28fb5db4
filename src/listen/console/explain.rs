//! Explains why a message was judged as it was: the output of `lychgate explain` for a line that
//! the page has shown.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use http::{Response, StatusCode};

use super::page::{json, refuse};
use super::quarantine::WHO;
use crate::listen::Body;
use crate::protocol::AuditId;
use crate::proxy::Gate;
use crate::record::stores::Actor;
use crate::review::explain::{Explanation, explain};
use crate::review::{Entry, PolicySet};

/// Explains the judgement with this id, if its line is among the recent ones. Judging the message
/// again may take a while, and reading its stored content may block on the disk.
pub(super) async fn answer(gate: &Arc<Gate>, id: &str) -> Response<Body> {
    match explain_judgement(gate, id).await {
        Ok(explained) => json(StatusCode::OK, &explained),
        Err(refused) => refused,
    }
}

/// Like [`answer`], but returns the data.
pub(super) async fn explain_judgement(
    gate: &Arc<Gate>,
    id: &str,
) -> Result<Explanation, Response<Body>> {
    let Some(audit) = id.parse().ok().map(AuditId) else {
        return Err(not_found());
    };
    let gate = gate.clone();
    let explained = tokio::task::spawn_blocking(move || {
        let line = gate
            .recorder()
            .audit_tail()
            .find_judged(&audit.to_string())?;
        let file: Arc<Path> = Path::new("the console").into();
        let entry = Entry::read(Bytes::copy_from_slice(line.as_bytes()), &file, 0).ok()?;
        let policies = PolicySet {
            by_upstream: (*gate.policies()).clone(),
            fallback: None,
        };
        Some(explain(
            &entry,
            stored_message(&gate, audit).as_ref(),
            &policies,
        ))
    });
    match explained.await {
        Ok(Some(Ok(explained))) => Ok(explained),
        Ok(Some(Err(missing))) => Err(refuse(StatusCode::NOT_FOUND, missing.words())),
        Ok(None) => Err(not_found()),
        Err(_) => Err(refuse(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the message could not be judged again",
        )),
    }
}

/// Returns the message as it was stored, if it was. If it cannot be opened, it is explained from
/// its line, like a message that was not stored. Each access to quarantined content is recorded
/// first.
fn stored_message(gate: &Gate, audit: AuditId) -> Option<Bytes> {
    let evidence = gate
        .recorder()
        .evidence()
        .and_then(|evidence| evidence.get(audit).ok().flatten());
    let quarantined = || {
        let quarantine = gate.recorder().quarantine()?;
        let stored = quarantine.get(audit).ok().flatten()?;
        let by = Actor {
            who: WHO.to_owned(),
            reason: Some("explain".to_owned()),
        };
        quarantine.note_shown(&stored, by).ok().map(|()| stored)
    };
    evidence.or_else(quarantined).map(|stored| stored.message)
}

fn not_found() -> Response<Body> {
    refuse(
        StatusCode::NOT_FOUND,
        "the line is not among the recent ones: use `lychgate explain`",
    )
}
