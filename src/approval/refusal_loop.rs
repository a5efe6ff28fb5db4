//! Calls that are refused repeatedly: an agent in such a loop is instructed to stop, and its calls
//! are refused cheaply.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::io;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::CallDigest;
use crate::config::Limits;
use crate::message::{Envelope, Message};
use crate::protocol::{Context, Holder, UpstreamName, answer, headers};
use crate::record::{Event, Recorder};

/// Maximum number of tools, and of calls, whose refusals are tracked; the least recently refused
/// entry is evicted.
const MAX_ENTRIES: usize = 4096;

/// Recent refusals.
pub(crate) struct RefusalLoop {
    recent: Mutex<RecentRefusals>,
    max_refusals: usize,
    window: Duration,
}

#[derive(Default)]
struct RecentRefusals {
    tools: HashMap<ToolRefusals, Times>,
    calls: HashMap<CallDigest, CallRefusals>,
    /// Callers that were refused the same call too often, and until when that counts: only their
    /// calls are looked up.
    loops: HashMap<(Holder, UpstreamName), Instant>,
}

type Times = VecDeque<Instant>;

/// Identifies the refusals of one tool by one rule.
#[derive(Clone, PartialEq, Eq, Hash)]
struct ToolRefusals {
    holder: Holder,
    upstream: UpstreamName,
    tool: Box<str>,
    rule: Box<str>,
}

struct CallRefusals {
    times: Times,
    rule: Box<str>,
    /// The rule set that refused the call: another one may allow it.
    rules: Box<str>,
}

impl RefusalLoop {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            recent: Mutex::default(),
            max_refusals: limits.repeated_refusals,
            window: limits.repeated_refusal,
        }
    }

    /// Returns the answer to a call that was already refused too often and need not be judged
    /// again.
    ///
    /// # Errors
    /// The audit log cannot be written.
    pub(crate) fn short_answer(
        &self,
        context: &Context,
        message: &Message,
        rules: &str,
        recorder: &Recorder,
    ) -> io::Result<Option<answer::RefusalReason>> {
        let Some(envelope) = message.single().filter(|envelope| envelope.is_request()) else {
            return Ok(None);
        };
        let now = Instant::now();
        let repeated = {
            let mut recent = self.recent.lock();
            if recent.loops.is_empty() {
                return Ok(None);
            }
            let caller = (context.holder(), context.upstream.clone());
            if recent.loops.get(&caller).is_none_or(|until| *until <= now) {
                recent.loops.remove(&caller);
                return Ok(None);
            }
            let call = recent
                .calls
                .get_mut(&CallDigest::new(context, message, envelope))
                .filter(|call| &*call.rules == rules);
            let Some(call) = call else { return Ok(None) };
            if self.count(&mut call.times, now, false) < self.max_refusals {
                return Ok(None);
            }
            let repeated = (self.count(&mut call.times, now, true), call.rule.clone());
            recent.loops.insert(caller, now + self.window);
            repeated
        };
        let (times, rule) = repeated;
        let tool = tool(message, envelope);
        let audit = crate::protocol::AuditId::generate();
        recorder.record(Event::RefusedAgain {
            context,
            tool: &tool,
            rule: &rule,
            times,
            audit: Some(audit),
        })?;
        Ok(Some(answer::RefusalReason {
            text: stop_text(&rule, times),
            rule: rule.into(),
            audit,
        }))
    }

    /// Returns whether a rule refused a tool too often: then no approval is requested for it for a
    /// while.
    pub(crate) fn is_exhausted(&self, context: &Context, tool: &str, rule: &str) -> bool {
        let mut recent = self.recent.lock();
        let times = recent.tools.get_mut(&tool_key(context, tool, rule));
        times.is_some_and(|times| self.count(times, Instant::now(), false) >= self.max_refusals)
    }

    /// Records the refusal of a message by a rule set. After the configured number of refusals, the
    /// text of the reason instructs the agent to stop.
    pub(crate) fn note_verdict(
        &self,
        context: &Context,
        message: &Message,
        rules: &str,
        reason: &mut answer::RefusalReason,
        recorder: &Recorder,
    ) {
        let Some(envelope) = message.single().filter(|envelope| envelope.is_request()) else {
            return;
        };
        let digest = CallDigest::new(context, message, envelope);
        self.note_refusal(
            context,
            &tool(message, envelope),
            Some((digest, rules)),
            reason,
            recorder,
        );
    }

    /// Records the refusal of a tool; `call` is set if the rules alone refuse that call. After the
    /// configured number of refusals, the text of the reason instructs the agent to stop.
    pub(crate) fn note_refusal(
        &self,
        context: &Context,
        tool: &str,
        call: Option<(CallDigest, &str)>,
        reason: &mut answer::RefusalReason,
        recorder: &Recorder,
    ) {
        let now = Instant::now();
        let times = {
            let mut recent = self.recent.lock();
            let key = tool_key(context, tool, &reason.rule);
            make_room(&mut recent.tools, &key, |times| times.back().copied());
            let tool_times = self.count(recent.tools.entry(key).or_default(), now, true);
            tool_times.max(call.map_or(0, |(digest, rules)| {
                self.count_call(&mut recent, context, digest, rules, &reason.rule, now)
            }))
        };
        if times <= self.max_refusals {
            return;
        }
        reason.text = stop_text(&reason.rule, times);
        // The refusal itself has already been recorded.
        let event = Event::RefusedAgain {
            context,
            tool,
            rule: &reason.rule,
            times,
            audit: None,
        };
        if let Err(error) = recorder.record(event) {
            tracing::error!(%error, "cannot write the audit log");
        }
    }

    fn count_call(
        &self,
        recent: &mut RecentRefusals,
        context: &Context,
        digest: CallDigest,
        rules: &str,
        rule: &str,
        now: Instant,
    ) -> usize {
        make_room(&mut recent.calls, &digest, |call| {
            call.times.back().copied()
        });
        let new_entry = || CallRefusals {
            times: Times::new(),
            rule: rule.into(),
            rules: rules.into(),
        };
        let call = recent.calls.entry(digest).or_insert_with(new_entry);
        if &*call.rules != rules || &*call.rule != rule {
            *call = new_entry();
        }
        let times = self.count(&mut call.times, now, true);
        if times >= self.max_refusals {
            let caller = (context.holder(), context.upstream.clone());
            recent.loops.insert(caller, now + self.window);
        }
        times
    }

    /// Returns the number of refusals that currently count, including this one if it is `one_more`.
    /// No more are stored than are needed.
    fn count(&self, times: &mut Times, now: Instant, one_more: bool) -> usize {
        while times
            .front()
            .is_some_and(|time| now.saturating_duration_since(*time) >= self.window)
        {
            times.pop_front();
        }
        if one_more {
            if times.len() > self.max_refusals {
                times.pop_front();
            }
            times.push_back(now);
        }
        times.len()
    }
}

fn make_room<K: Clone + Eq + Hash, V>(
    map: &mut HashMap<K, V>,
    key: &K,
    last_time: impl Fn(&V) -> Option<Instant>,
) {
    if map.len() >= MAX_ENTRIES && !map.contains_key(key) {
        let oldest = map
            .iter()
            .min_by_key(|(_, value)| last_time(value))
            .map(|(key, _)| key.clone());
        oldest.map(|key| map.remove(&key));
    }
}

fn tool_key(context: &Context, tool: &str, rule: &str) -> ToolRefusals {
    ToolRefusals {
        holder: context.holder(),
        upstream: context.upstream.clone(),
        tool: tool.into(),
        rule: rule.into(),
    }
}

/// Returns the tool; for other requests, the method.
fn tool(message: &Message, envelope: &Envelope) -> String {
    let method = envelope.method().unwrap_or_default();
    let tool_name = headers::target_name(message, envelope).filter(|_| method == "tools/call");
    crate::text::cut(&tool_name.unwrap_or(method.into()), 256).to_owned()
}

fn stop_text(rule: &str, times: usize) -> String {
    format!(
        "Refused by lychgate, as {} times before (rule `{rule}`). Stop: do not retry this call or try another way. Tell \
         your user what you wanted to do, and ask what to do instead.",
        times.saturating_sub(1)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::AuditConfig;
    use crate::message::ReadLimits;
    use crate::protocol::{AgentName, AuditId, Era};

    fn call(tool: &str, text: &str) -> Message {
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{{"a":"{text}"}}}}}}"#
        );
        Message::parse(text.into(), &ReadLimits::default()).unwrap()
    }

    fn context(agent: &str) -> Context {
        let agent = AgentName(agent.into());
        let upstream = UpstreamName("u".into());
        Context::new(agent, upstream, Era::Legacy)
    }

    struct Bed(RefusalLoop, Recorder);

    impl Bed {
        fn new(window: Duration) -> Self {
            let limits = Limits {
                repeated_refusals: 3,
                repeated_refusal: window,
                ..Limits::default()
            };
            Self(
                RefusalLoop::new(&limits),
                Recorder::new(&AuditConfig::default()).unwrap(),
            )
        }

        /// Returns whether the text of a refusal changes.
        fn refuse(&self, agent: &str, message: &Message, rule: &str) -> bool {
            let mut reason = answer::RefusalReason {
                text: "why".into(),
                rule: rule.into(),
                audit: AuditId::generate(),
            };
            self.0
                .note_verdict(&context(agent), message, "set", &mut reason, &self.1);
            reason.text != "why"
        }

        fn is_cut_short(&self, agent: &str, message: &Message, rules: &str) -> bool {
            self.0
                .short_answer(&context(agent), message, rules, &self.1)
                .unwrap()
                .is_some()
        }
    }

    #[test]
    fn the_same_call_is_cut_short_for_its_agent_and_rule_set_alone() {
        let bed = Bed::new(Duration::from_secs(60));
        let same = call("t", "x");
        for _ in 0..3 {
            assert!(!bed.is_cut_short("a", &same, "set") && !bed.refuse("a", &same, "r"));
        }
        assert!(bed.is_cut_short("a", &same, "set") && bed.is_cut_short("a", &same, "set"));
        assert!(!bed.is_cut_short("b", &same, "set"), "another agent");
        assert!(!bed.is_cut_short("a", &same, "other set"), "other rules");
        assert!(
            !bed.is_cut_short("a", &call("t", "y"), "set"),
            "another call"
        );
    }

    #[test]
    fn other_calls_of_the_tool_are_judged_and_told_shortly() {
        let bed = Bed::new(Duration::from_secs(60));
        for n in 0..3 {
            assert!(!bed.refuse("a", &call("t", &n.to_string()), "r"));
        }
        assert!(!bed.refuse("a", &call("t", "x"), "another"), "another rule");
        assert!(!bed.refuse("a", &call("u", "x"), "r"), "another tool");
        assert!(bed.refuse("a", &call("t", "x"), "r"));
        assert!(
            bed.0.is_exhausted(&context("a"), "t", "r")
                && !bed.0.is_exhausted(&context("a"), "t", "s")
        );
    }

    #[test]
    fn old_refusals_count_no_more_and_few_are_kept() {
        let bed = Bed::new(Duration::from_millis(20));
        for _ in 0..4 {
            bed.refuse("a", &call("t", "x"), "r");
        }
        std::thread::sleep(Duration::from_millis(30));
        assert!(
            !bed.is_cut_short("a", &call("t", "x"), "set")
                && !bed.refuse("a", &call("t", "x"), "r")
        );
        for n in 0..MAX_ENTRIES + 10 {
            bed.refuse("a", &call("t", &n.to_string()), &n.to_string());
        }
        let recent = bed.0.recent.lock();
        assert_eq!(
            (recent.tools.len(), recent.calls.len()),
            (MAX_ENTRIES, MAX_ENTRIES)
        );
    }
}
