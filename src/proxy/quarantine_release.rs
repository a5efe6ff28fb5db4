//! Delivery of messages that were released from quarantine: each goes to its agent once, as the
//! answer to the same call or as a resource.

use std::sync::Arc;

use http::StatusCode;
use parking_lot::Mutex;

use super::Gate;
use super::judge::limits_hit;
use super::result_paging::{requested_part, unknown};
use super::route::Route;
use crate::approval::CallDigest;
use crate::message::{Edit, Message, ReadLimits, quote, splice};
use crate::protocol::{Call, CallError, CallKind, Context, Era, Reply, answer};
use crate::record::stores::{Quarantine, Release, StoreError};
use crate::record::{Event, QuarantineEvent, Recorder};

/// Prefix of the URI of a released message, before its id.
const AT: &str = "lychgate://quarantine/";

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
        if let Err(error) = self.try_look(quarantine, recorder) {
            tracing::warn!(%error, "cannot read the quarantine");
        }
    }

    fn try_look(&self, quarantine: &Quarantine, recorder: &Recorder) -> Result<(), StoreError> {
        let (over, open): (Vec<_>, Vec<_>) = quarantine
            .releases()?
            .into_iter()
            .partition(Release::is_over);
        *self.0.lock() = open.into_iter().map(Arc::new).collect();
        for note in quarantine.notes()? {
            let agent = note.agent.as_deref();
            let upstream = note.upstream.as_deref();
            let (by, reason) = (Some(note.by.who.as_str()), note.by.reason.as_deref());
            let told = QuarantineEvent {
                audit: note.audit,
                outcome: note.act.name(),
                agent,
                upstream,
                by,
                reason,
                way: None,
            };
            // Recorded before it is forgotten: an event may be recorded twice, but is never lost.
            match recorder.record(Event::Quarantine(&told)) {
                Ok(()) => quarantine.remove_note(&note)?,
                Err(error) => tracing::error!(%error, "cannot write the audit log"),
            }
        }
        for release in over {
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
    pub(super) fn of_call(&self, message: &Message, context: &Context) -> Option<ReleaseRequest> {
        let waiting = self.0.lock();
        if waiting.is_empty() {
            return None;
        }
        let envelope = message.single().filter(|envelope| envelope.is_request())?;
        let call = CallDigest::new(context, message, envelope).hex();
        let same = |release: &&Arc<Release>| {
            release.about.call.as_deref() == Some(&*call)
                && release.about.era == context.era.name()
                && !release.is_over()
        };
        waiting.iter().find(same).cloned().map(ReleaseRequest::Call)
    }

    /// Returns the release that a message requests as a resource of the quarantine.
    pub(super) fn of_resource(
        &self,
        message: &Message,
        context: &Context,
    ) -> Option<ReleaseRequest> {
        let (_, uri) = requested_part(message)?;
        let id = uri.strip_prefix(AT)?;
        let waiting = self.0.lock();
        let here = |release: &&Arc<Release>| {
            release.audit.to_string() == id && is_of(release, context) && !release.is_over()
        };
        Some(ReleaseRequest::Resource(waiting.iter().find(here).cloned()))
    }

    /// Returns the answer with the released message, if it still waits: of several requests, one
    /// gets it. The delivery is recorded first, and the message counts as received. May block on
    /// disk I/O.
    ///
    /// # Errors
    /// Fails if the delivery cannot be recorded and must be.
    pub(super) fn give(
        &self,
        wanted: &ReleaseRequest,
        message: &Message,
        context: &Context,
        recorder: &Recorder,
        route: &Route,
    ) -> Result<Option<Vec<u8>>, CallError> {
        let (release, way) = match wanted {
            ReleaseRequest::Call(release) => (Some(release), "call"),
            ReleaseRequest::Resource(release) => (release.as_ref(), "resource"),
        };
        let taken =
            release.and_then(|release| self.take(release, wanted, message, context, recorder));
        let (Some((answer, kept)), Some(release)) = (taken, release) else {
            return Ok(match wanted {
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
        // A body that is not a message has nothing for the session memory.
        if let Ok(kept) = Message::parse(kept, &most()) {
            let learnt = route.policy.released(
                &kept,
                release.about.tool.as_deref(),
                &route.session.memory(),
            );
            limits_hit(recorder, &route.session.release(learnt))?;
        }
        Ok(Some(answer))
    }

    fn take(
        &self,
        release: &Release,
        wanted: &ReleaseRequest,
        message: &Message,
        context: &Context,
        recorder: &Recorder,
    ) -> Option<(Vec<u8>, bytes::Bytes)> {
        let taken = recorder.quarantine()?.take(release);
        self.0.lock().retain(|waiting| waiting.id != release.id);
        let kept = taken
            .map_err(|error| tracing::error!(%error, "cannot deliver the released message"))
            .ok()
            .flatten()?;
        let id = message.id(message.single()?)?;
        let answer = match wanted {
            ReleaseRequest::Call(_) => with_id(kept.message.clone(), id)?,
            ReleaseRequest::Resource(_) => as_resource(
                &kept.message,
                id,
                &format!("{AT}{}", release.audit),
                context.era,
            ),
        };
        Some((answer, kept.message))
    }
}

impl Gate {
    /// Returns the answer to a request for one of the gate's own resources, if it is one.
    ///
    /// # Errors
    /// Fails if the request cannot be recorded and must be.
    pub(super) async fn own_resource(
        &self,
        message: &Message,
        context: &Context,
        route: &Route,
    ) -> Result<Option<Reply>, CallError> {
        if let Some(reply) = self
            .released(
                self.releases.of_resource(message, context),
                message,
                context,
                route,
            )
            .await?
        {
            return Ok(Some(reply));
        }
        let page = self.pages.answer(message, context, &self.recorder)?;
        Ok(page.map(|page| answer::body(StatusCode::OK, page)))
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
        let CallKind::Send(message) = &call.ask else {
            return Ok(None);
        };
        self.released(
            self.releases.of_call(message, &call.context),
            message,
            &call.context,
            route,
        )
        .await
    }

    async fn released(
        &self,
        wanted: Option<ReleaseRequest>,
        message: &Message,
        context: &Context,
        route: &Route,
    ) -> Result<Option<Reply>, CallError> {
        let Some(wanted) = wanted else {
            return Ok(None);
        };
        // Boxed: calls without a release reserve no space for it.
        Box::pin(self.give_released(wanted, message, context, route)).await
    }

    async fn give_released(
        &self,
        wanted: ReleaseRequest,
        message: &Message,
        context: &Context,
        route: &Route,
    ) -> Result<Option<Reply>, CallError> {
        let (releases, recorder, route) =
            (self.releases.clone(), self.recorder.clone(), route.clone());
        let message = message.clone();
        let context = context.clone();
        let give = move || releases.give(&wanted, &message, &context, &recorder, &route);
        let given = tokio::task::spawn_blocking(give).await;
        let given =
            given.map_err(|_| CallError::BadReply("delivering the released message failed"))??;
        Ok(given.map(|bytes| {
            answer::body(StatusCode::OK, String::from_utf8(bytes).unwrap_or_default())
        }))
    }
}

fn is_of(release: &Release, context: &Context) -> bool {
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
    let agent = Some(release.about.agent.as_str());
    let upstream = Some(release.about.upstream.as_str());
    let (by, reason) = (Some(release.by.who.as_str()), release.by.reason.as_deref());
    QuarantineEvent {
        audit: release.audit,
        outcome,
        agent,
        upstream,
        by,
        reason,
        way,
    }
}

/// Returns limits without a size bound: a stored message was within the limits when it was stored.
fn most() -> ReadLimits {
    ReadLimits {
        message_bytes: usize::MAX,
        ..ReadLimits::default()
    }
}

/// Returns the message as it arrived, with another id.
fn with_id(message: bytes::Bytes, id: &str) -> Option<Vec<u8>> {
    let message = Message::parse(message, &most()).ok()?;
    let span = message.value(message.single()?).get("id")?.span();
    splice(message.bytes(), vec![Edit::json(span, id.to_owned())]).map(|bytes| bytes.to_vec())
}

fn as_resource(message: &[u8], id: &str, uri: &str, era: Era) -> Vec<u8> {
    let modern = if era == Era::Modern {
        r#""resultType":"complete","ttlMs":0,"cacheScope":"private","#
    } else {
        ""
    };
    let uri = quote(uri);
    let text = quote(&String::from_utf8_lossy(message));
    let contents = format!(r#"[{{"uri":{uri},"mimeType":"application/json","text":{text}}}]"#);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{{modern}"contents":{contents}}}}}"#)
        .into_bytes()
}

fn not_found(message: &Message, context: &Context) -> Option<Vec<u8>> {
    let id = message.id(message.single()?)?;
    let text = "No released message is available at this address: an operator must release it, and it is delivered once.";
    Some(unknown(id, context.era, text).into_bytes())
}
