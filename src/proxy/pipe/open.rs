//! The requests that are open on a pipe.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::{OPEN, Open, Pipe, era};
use crate::message::{Message, same_id};
use crate::protocol::{Asked, Context, Era, headers};
use crate::proxy::approve::Matter;
use crate::proxy::budgets::Held;

impl Pipe {
    /// Notes the requests of a message as open.
    pub(super) fn ask(&self, message: &Message, era: Era, mut approved: Option<Box<Matter>>, mut held: Held) {
        let mut open = self.open();
        // A person is asked about one request at a time: the first is the only one.
        let made =
            |asked| Open { asked, era, since: Instant::now(), approved: approved.take(), _held: std::mem::take(&mut held) };
        open.extend(headers::asked(message).into_iter().map(made));
        let extra = open.len().saturating_sub(OPEN);
        open.drain(..extra);
    }

    /// The requests that a message from the server answers, which are open no more, and how long the first one was.
    pub(super) fn answers(&self, message: &Message) -> (Context, Option<Duration>) {
        let mut open = self.open();
        let ids = message.envelopes().iter().filter(|envelope| envelope.is_answer()).filter_map(|envelope| message.id(envelope));
        let mut closed = ids.filter_map(|id| {
            let at = open.iter().position(|open| same_id(&open.asked.id, id))?;
            open.remove(at)
        });
        let Some(first) = closed.next() else { return (self.context(era(message), Arc::from([])), None) };
        if let Some(approved) = &first.approved {
            self.approvals.goes_on(approved, message);
        }
        let (era, waited) = (first.era, first.since.elapsed());
        let asked: Vec<Asked> = std::iter::once(first).chain(closed).map(|open| open.asked).collect();
        (self.context(era, asked.into()), Some(waited))
    }

    /// Notes what the two sides have agreed on, if a message says so.
    pub(super) fn agreed(&self, message: &Message, context: &Context) {
        if context.asked.iter().any(|asked| &*asked.method == "initialize")
            && let Some(version) = message.single().and_then(|envelope| message.body(envelope)?.get("protocolVersion")?.str())
        {
            self.links.store(headers::has_links(&version), Ordering::Relaxed);
        }
    }
}
