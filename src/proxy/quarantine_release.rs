//! Delivery of messages that were released from quarantine: each goes to its agent once, as the
//! answer to the same call or as a resource.

use std::sync::Arc;

use http::StatusCode;
use parking_lot::Mutex;

use super::Gate;
use super::judge::record_limits;
use super::result_paging::{requested_part, resource_content, resource_not_found};
use super::route::Route;
use crate::approval::CallDigest;
use crate::message::{Edit, Message, ReadLimits, splice};
use crate::protocol::{Call, CallError, CallKind, Context, Era, JSON, Reply, answer};
use crate::record::stores::{Quarantine, Release, StoreError};
use crate::record::{Event, QuarantineEvent, Recorder};

/// Prefix of the URI of a released message, before its id.
const URI_PREFIX: &str = "lychgate://quarantine/";

/// The releases that wait for their agents, as last read from disk.
#[derive(Default)]
pub(super) struct PendingReleases(Mutex<Vec<Arc<Release>>>);

/// The way in which a released message is requested.
#[derive(Clone)]
pub(super) enum ReleaseRequest {
    /// With the same call.
    Call(Arc<Release>),
    /// As a resource; `None` if nothing is released under this URI, or not to this agent.
    Resource(Option<Arc<Release>>),
}

impl PendingReleases {
    /// Reads the quarantine: loads the released messages, and records the actions of operators. May
    /// block on disk I/O.
    pub(super) fn refresh(&self, recorder: &Recorder) {
        let Some(quarantine) = recorder.quarantine() else {
            return;
        };
        if let Err(error) = self.try_refresh(quarantine, recorder) {
            tracing::warn!(%error, "cannot read the quarantine");
        }
    }

    fn try_refresh(&self, quarantine: &Quarantine, recorder: &Recorder) -> Result<(), StoreError> {
        let (finished, open): (Vec<_>, Vec<_>) = quarantine
            .releases()?
            .into_iter()
            .partition(Release::is_over);
        *self.0.lock() = open.into_iter().map(Arc::new).collect();
        for note in quarantine.notes()? {
            let event = QuarantineEvent {
                audit: note.audit,
                outcome: note.act.name(),
                agent: note.agent.as_deref(),
                upstream: note.upstream.as_deref(),
                person: Some(&note.by.who),
                reason: note.by.reason.as_deref(),
                delivery: None,
            };
            // Recorded before it is forgotten: an event may be recorded twice, but is never lost.
            match recorder.record(Event::Quarantine(&event)) {
                Ok(()) => quarantine.remove_note(&note)?,
                Err(error) => tracing::error!(%error, "cannot write the audit log"),
            }
        }
        for release in finished {
            if quarantine.expire(&release)?
                && let Err(error) =
                    recorder.record(Event::Quarantine(&release_event(&release, "expired", None)))
            {
                tracing::error!(%error, "cannot write the audit log");
            }
        }
        Ok(())
    }

    /// Returns the release that a message requests, if any. Costs nothing while there are no
    /// releases.
    pub(super) fn for_call(&self, message: &Message, context: &Context) -> Option<ReleaseRequest> {
        let releases = self.0.lock();
        if releases.is_empty() {
            return None;
        }
        let envelope = message.single().filter(|envelope| envelope.is_request())?;
        let call = CallDigest::new(context, message, envelope).hex();
        let is_match = |release: &&Arc<Release>| {
            release.about.call.as_deref() == Some(&*call)
                && release.about.era == context.era.name()
                && !release.is_over()
        };
        releases
            .iter()
            .find(is_match)
            .cloned()
            .map(ReleaseRequest::Call)
    }

    /// Returns the release that a message requests as a resource of the quarantine.
    pub(super) fn for_resource(
        &self,
        message: &Message,
        context: &Context,
    ) -> Option<ReleaseRequest> {
        let (_, uri) = requested_part(message)?;
        let id = uri.strip_prefix(URI_PREFIX)?;
        let releases = self.0.lock();
        let is_match = |release: &&Arc<Release>| {
            release.audit.to_string() == id
                && is_release_for(release, context)
                && !release.is_over()
        };
        Some(ReleaseRequest::Resource(
            releases.iter().find(is_match).cloned(),
        ))
    }

    /// Returns the answer with the released message, if it still waits: of several requests, one
    /// gets it. The delivery is recorded first, and the message counts as received. May block on
    /// disk I/O.
    ///
    /// # Errors
    /// Fails if the delivery cannot be recorded and must be.
    pub(super) fn deliver(
        &self,
        request: &ReleaseRequest,
        message: &Message,
        context: &Context,
        recorder: &Recorder,
        route: &Route,
    ) -> Result<Option<Vec<u8>>, CallError> {
        let (release, way) = match request {
            ReleaseRequest::Call(release) => (Some(release), "call"),
            ReleaseRequest::Resource(release) => (release.as_ref(), "resource"),
        };
        let delivery =
            release.and_then(|release| self.take(release, request, message, context, recorder));
        let (Some((answer, body)), Some(release)) = (delivery, release) else {
            return Ok(match request {
                // The server answers the call.
                ReleaseRequest::Call(_) => None,
                ReleaseRequest::Resource(_) => not_found(message, context),
            });
        };
        recorder
            .record(Event::Quarantine(&release_event(
                release,
                "delivered",
                Some(way),
            )))
            .map_err(CallError::Audit)?;
        // A body that is not a message has nothing for the session memory. Its length was within the
        // limits when it was stored.
        if let Ok(stored_message) = Message::parse(body, &ReadLimits::of_bytes(usize::MAX)) {
            let update = route.policy.released_update(
                &stored_message,
                release.about.tool.as_deref(),
                &route.session.memory(),
            );
            record_limits(recorder, &route.session.release(update))?;
        }
        Ok(Some(answer))
    }

    fn take(
        &self,
        release: &Release,
        request: &ReleaseRequest,
        message: &Message,
        context: &Context,
        recorder: &Recorder,
    ) -> Option<(Vec<u8>, bytes::Bytes)> {
        let result = recorder.quarantine()?.take(release);
        self.0.lock().retain(|waiting| waiting.id != release.id);
        let stored = result
            .map_err(|error| tracing::error!(%error, "cannot deliver the released message"))
            .ok()
            .flatten()?;
        let id = message.id(message.single()?)?;
        let answer = match request {
            ReleaseRequest::Call(_) => with_id(stored.message.clone(), id)?,
            ReleaseRequest::Resource(_) => as_resource(
                &stored.message,
                id,
                &format!("{URI_PREFIX}{}", release.audit),
                context.era,
            ),
        };
        Some((answer, stored.message))
    }
}

impl Gate {
    /// Returns the answer to a request for one of the gate's own resources, if it is one.
    ///
    /// # Errors
    /// Fails if the request cannot be recorded and must be.
    pub(super) async fn answer_own_resource(
        &self,
        message: &Message,
        context: &Context,
        route: &Route,
    ) -> Result<Option<Reply>, CallError> {
        if let Some(reply) = self
            .deliver_released(
                self.pending_releases.for_resource(message, context),
                message,
                context,
                route,
            )
            .await?
        {
            return Ok(Some(reply));
        }
        let page = self
            .stored_results
            .answer(message, context, &self.recorder)?;
        Ok(page.map(|page| answer::body_reply(StatusCode::OK, page)))
    }

    /// Returns the answer to a call that was released from quarantine, if it was.
    ///
    /// # Errors
    /// Fails if the delivery cannot be recorded and must be.
    pub(super) async fn released_answer(
        &self,
        call: &Call,
        route: &Route,
    ) -> Result<Option<Reply>, CallError> {
        let CallKind::Send(message) = &call.kind else {
            return Ok(None);
        };
        self.deliver_released(
            self.pending_releases.for_call(message, &call.context),
            message,
            &call.context,
            route,
        )
        .await
    }

    async fn deliver_released(
        &self,
        request: Option<ReleaseRequest>,
        message: &Message,
        context: &Context,
        route: &Route,
    ) -> Result<Option<Reply>, CallError> {
        let Some(request) = request else {
            return Ok(None);
        };
        // Boxed: calls without a release reserve no space for it.
        Box::pin(async {
            let releases = self.pending_releases.clone();
            let recorder = self.recorder.clone();
            let route = route.clone();
            let message = message.clone();
            let context = context.clone();
            let deliver = move || releases.deliver(&request, &message, &context, &recorder, &route);
            let result = tokio::task::spawn_blocking(deliver).await;
            let result = result
                .map_err(|_| CallError::BadReply("delivering the released message failed"))??;
            Ok(result.map(|bytes| {
                answer::body_reply(StatusCode::OK, String::from_utf8(bytes).unwrap_or_default())
            }))
        })
        .await
    }
}

fn is_release_for(release: &Release, context: &Context) -> bool {
    let about = &release.about;
    about.agent == *context.agent.0
        && about.user.as_deref() == context.caller.user.as_deref()
        && about.upstream == *context.upstream.0
}

fn release_event<'r>(
    release: &'r Release,
    outcome: &'static str,
    way: Option<&'static str>,
) -> QuarantineEvent<'r> {
    QuarantineEvent {
        audit: release.audit,
        outcome,
        agent: Some(&release.about.agent),
        upstream: Some(&release.about.upstream),
        person: Some(&release.by.who),
        reason: release.by.reason.as_deref(),
        delivery: way,
    }
}

/// Returns the message as it arrived, with another id.
fn with_id(message: bytes::Bytes, id: &str) -> Option<Vec<u8>> {
    let message = Message::parse(message, &ReadLimits::of_bytes(usize::MAX)).ok()?;
    let span = message.value(message.single()?).get("id")?.span();
    splice(message.bytes(), vec![Edit::json(span, id.to_owned())]).map(|bytes| bytes.to_vec())
}

fn as_resource(message: &[u8], id: &str, uri: &str, era: Era) -> Vec<u8> {
    let text = String::from_utf8_lossy(message);
    resource_content(id, era, uri, JSON, &text).into_bytes()
}

fn not_found(message: &Message, context: &Context) -> Option<Vec<u8>> {
    let id = message.id(message.single()?)?;
    let text = "No released message is available at this address: an operator must release it, and it is delivered once.";
    Some(resource_not_found(id, context.era, text).into_bytes())
}
