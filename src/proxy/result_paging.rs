//! The parts of results that were too long to be shown at once, stored for the agent to read on: a
//! resource that the gate itself serves. They were judged with the result, as a whole.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use parking_lot::Mutex;

use crate::config::StoredResultLimits;
use crate::inspect::{Paging, Portions, Remainder, URI_PREFIX, between_markers, footer, page_uri};
use crate::message::{Message, quote};
use crate::protocol::{CallError, Context, Era, Holder, SessionId, UpstreamName, answer};
use crate::record::{Event, Recorder, ResultPage};

/// The scheme of URIs that the gate answers itself; a server never sees them.
const SCHEME: &str = "lychgate:";

/// Maximum number of agents (each with each of its users) for which texts are stored at the same
/// time.
const HOLDERS: usize = 256;

/// The texts stored for all agents. Each agent has limits of its own, so that none can evict
/// another's texts.
pub(super) struct StoredResults {
    stored: Mutex<HashMap<Holder, VecDeque<StoredResult>>>,
    limits: StoredResultLimits,
}

/// A stored text that one session reads page by page.
struct StoredResult {
    upstream: UpstreamName,
    session: Option<SessionId>,
    since: Instant,
    remainder: Remainder,
    /// The end offset of each page.
    ends: Vec<usize>,
}

impl StoredResults {
    /// Creates a store with these limits.
    pub(super) fn new(limits: &StoredResultLimits) -> Self {
        Self {
            stored: Mutex::default(),
            limits: limits.clone(),
        }
    }

    /// Returns how the excess of the next result is stored: under a new id. `links` is whether the
    /// client supports resource links.
    pub(super) fn paging(&self, links: bool) -> Option<Paging> {
        (self.limits.count > 0).then(|| Paging::new(self.limits.bytes, links))
    }

    /// Stores the excess of a result. Returns the limits for which something older was evicted.
    pub(super) fn store(&self, context: &Context, remainders: Vec<Remainder>) -> Vec<&'static str> {
        let mut exceeded_limits = Vec::new();
        if remainders.is_empty() {
            return exceeded_limits;
        }
        let remainders: Vec<(Remainder, Vec<usize>)> = remainders
            .into_iter()
            .map(|rest| (page_ends(&rest), rest))
            .map(|(ends, rest)| (rest, ends))
            .collect();
        let mut table = self.stored.lock();
        if table.len() >= HOLDERS && !table.contains_key(&context.holder()) {
            table.retain(|_, results| {
                results
                    .back()
                    .is_some_and(|newest| newest.since.elapsed() < self.limits.age)
            });
            let least_recent = || {
                table
                    .iter()
                    .min_by_key(|(_, results)| results.back().map(|newest| newest.since))
            };
            if let Some(idle_holder) = (table.len() >= HOLDERS)
                .then(least_recent)
                .flatten()
                .map(|(holder, _)| holder.clone())
            {
                table.remove(&idle_holder);
                exceeded_limits.push("kept_results");
            }
        }
        let results = table.entry(context.holder()).or_default();
        let since = Instant::now();
        for (rest, ends) in remainders {
            let upstream = context.upstream.clone();
            let session = context.session.clone();
            results.push_back(StoredResult {
                upstream,
                session,
                since,
                remainder: rest,
                ends,
            });
        }
        self.forget_old(results);
        let mut bytes: usize = results.iter().map(StoredResult::bytes).sum();
        while results.len() > self.limits.count || bytes > self.limits.bytes {
            exceeded_limits.push(if results.len() > self.limits.count {
                "kept_results"
            } else {
                "kept_result_bytes"
            });
            bytes -= results.pop_front().map_or(bytes, |oldest| oldest.bytes());
        }
        exceeded_limits
    }

    /// Returns the answer to a request for a page, if the message is one.
    ///
    /// # Errors
    /// Fails if the request cannot be recorded and must be.
    pub(super) fn answer(
        &self,
        message: &Message,
        context: &Context,
        recorder: &Recorder,
    ) -> Result<Option<String>, CallError> {
        let Some((id, uri)) = requested_part(message) else {
            return Ok(None);
        };
        let page = self.page(context, &uri);
        let event = ResultPage {
            context,
            outcome: if page.is_some() { "read" } else { "gone" },
            bytes: page.as_ref().map_or(0, String::len),
        };
        recorder
            .record(Event::ResultPage(&event))
            .map_err(CallError::Audit)?;
        let Some(text) = page else {
            let text = "This part of the result is no longer available, or belongs to another session. Call the tool again and request less at a time.";
            return Ok(Some(resource_not_found(id, context.era, text)));
        };
        Ok(Some(resource_content(
            id,
            context.era,
            &uri,
            "text/plain",
            &text,
        )))
    }

    /// Returns a page, if it is stored for this session.
    fn page(&self, context: &Context, uri: &str) -> Option<String> {
        let (id, number) = uri.strip_prefix(URI_PREFIX)?.split_once('/')?;
        // The first page is the part that the result itself contained.
        let index = number
            .parse::<usize>()
            .ok()
            .filter(|page| page.to_string() == number)?
            .checked_sub(2)?;
        let mut table = self.stored.lock();
        let results = table.get_mut(&context.holder())?;
        self.forget_old(results);
        let is_of_session = |result: &&StoredResult| {
            result.upstream == context.upstream && result.session == context.session
        };
        results
            .iter()
            .filter(is_of_session)
            .find(|result| result.remainder.id == id)?
            .page(index)
    }

    fn forget_old(&self, results: &mut VecDeque<StoredResult>) {
        while results
            .front()
            .is_some_and(|oldest| oldest.since.elapsed() >= self.limits.age)
        {
            results.pop_front();
        }
    }
}

impl StoredResult {
    fn bytes(&self) -> usize {
        self.remainder.text.len()
    }

    fn page(&self, index: usize) -> Option<String> {
        let end = *self.ends.get(index)?;
        let start = index
            .checked_sub(1)
            .map_or(Some(0), |before| self.ends.get(before).copied())?;
        let text = self.remainder.text.get(start..end)?;
        let mut page = self
            .remainder
            .marker_id
            .as_ref()
            .map_or_else(|| text.to_owned(), |id| between_markers(text, id));
        if end < self.bytes() {
            let before_bytes = self.remainder.before_bytes;
            page += &footer(
                before_bytes + end,
                before_bytes + self.bytes(),
                Some(&page_uri(&self.remainder.id, index + 3)),
            );
        }
        Some(page)
    }
}

/// Returns the answer to a request for a resource that the gate itself serves.
pub(super) fn resource_content(
    id: &str,
    era: Era,
    uri: &str,
    mime_type: &str,
    text: &str,
) -> String {
    let modern = if era == Era::Modern {
        r#""resultType":"complete","ttlMs":0,"cacheScope":"private","#
    } else {
        ""
    };
    let uri = quote(uri);
    let text = quote(text);
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{{modern}"contents":[{{"uri":{uri},"mimeType":"{mime_type}","text":{text}}}]}}}}"#
    )
}

/// Returns the answer for a resource that does not exist.
pub(super) fn resource_not_found(id: &str, era: Era, text: &str) -> String {
    // 2026-07-28 no longer has a code of its own for this.
    answer::error(
        Some(id),
        if era == Era::Modern { -32602 } else { -32002 },
        text,
        None,
    )
}

/// Returns the end offsets of the pages of a text.
fn page_ends(rest: &Remainder) -> Vec<usize> {
    let portions = Portions::new(&rest.text);
    let mut ends = Vec::new();
    let mut from = 0;
    while from < rest.text.len() {
        let end = portions.end(from, rest.page_bytes);
        // A page must contain at least one character; otherwise paging would never end.
        from = if end > from { end } else { rest.text.len() };
        ends.push(from);
    }
    ends
}

/// Returns the id and the URI of a request for a resource that the gate serves.
pub(super) fn requested_part(message: &Message) -> Option<(&str, Cow<'_, str>)> {
    let envelope = message
        .single()
        .filter(|envelope| envelope.is_request() && envelope.method() == Some("resources/read"))?;
    let uri = message.body(envelope)?.get_str("uri")?;
    let is_own = uri
        .get(..SCHEME.len())
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case(SCHEME));
    is_own.then_some((message.id(envelope)?, uri))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::protocol::AgentName;

    fn context(agent: &str, session: Option<&str>) -> Context {
        Context {
            session: session.and_then(SessionId::new),
            ..Context::new(
                AgentName(agent.into()),
                UpstreamName("up".into()),
                Era::Legacy,
            )
        }
    }

    fn rest(id: &str, text: &str) -> Remainder {
        Remainder {
            id: id.into(),
            text: text.into(),
            page_bytes: 10,
            before_bytes: 10,
            marker_id: None,
        }
    }

    fn pages(count: usize, bytes: usize, age: Duration) -> StoredResults {
        StoredResults::new(&StoredResultLimits { count, bytes, age })
    }

    #[test]
    fn pages_follow_each_other_and_are_one_sessions() {
        let store = pages(9, 1000, Duration::from_secs(9));
        let ann = context("ann", Some("s"));
        assert!(
            store
                .store(&ann, vec![rest("a-1", "one two three four five")])
                .is_empty()
        );
        let page = |context: &Context, number: &str| {
            store.page(context, &format!("{URI_PREFIX}a-1/{number}"))
        };
        assert!(
            page(&ann, "2").unwrap().starts_with(
                "one two \n[lychgate: … 18 of 33 bytes; more: lychgate://result/a-1/3 "
            )
        );
        assert!(
            page(&ann, "3").unwrap().starts_with("three "),
            "{:?}",
            page(&ann, "3")
        );
        assert_eq!(page(&ann, "4").unwrap(), "four five");
        for number in ["5", "1", "0", "02", "x", "", "2/3"] {
            assert_eq!(page(&ann, number), None, "{number}");
        }
        for other in [
            context("bob", Some("s")),
            context("ann", Some("t")),
            context("ann", None),
        ] {
            assert_eq!(page(&other, "2"), None);
        }
    }

    #[test]
    fn bounded_in_count_bytes_and_age() {
        let ann = context("ann", None);
        let store = pages(2, 30, Duration::from_secs(9));
        assert!(
            store
                .store(&ann, vec![rest("a", "0123456789"), rest("b", "0123456789")])
                .is_empty()
        );
        assert_eq!(
            store.store(&ann, vec![rest("c", "0123456789")]),
            ["kept_results"]
        );
        assert_eq!(
            store.store(&context("bob", None), vec![rest("d", "x")]),
            [""; 0],
            "another agent has bounds of its own"
        );
        assert_eq!(
            store.store(&ann, vec![rest("e", "012345678901234567890123456789")]),
            ["kept_results", "kept_result_bytes"]
        );
        let is_kept = |id: &str| store.page(&ann, &page_uri(id, 2)).is_some();
        assert_eq!(
            [is_kept("a"), is_kept("c"), is_kept("e")],
            [false, false, true]
        );
        let brief = pages(2, 30, Duration::ZERO);
        brief.store(&ann, vec![rest("a", "x")]);
        assert_eq!(brief.page(&ann, &page_uri("a", 2)), None);
        assert!(pages(0, 30, Duration::ZERO).paging(true).is_none());
    }
}
