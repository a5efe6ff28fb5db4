//! The events, each with its members in the order in which they are written.

use std::time::SystemTime;

use super::{Fields, add, member};
use crate::rules::Severity;

/// Room for most lines, which saves growing them step by step. What the writer adds to a line is
/// not in it.
const LINE_BYTES: usize = 1280;

/// An event of the audit log.
pub(in crate::record) trait Event: Fields + Sized {
    /// The name in a line.
    const EVENT: &'static str;

    /// The line that records it now, with a line feed at its end.
    fn line(self, severity: Severity) -> String {
        let mut out = String::with_capacity(LINE_BYTES);
        out.push('{');
        add::<member::time>(SystemTime::now(), &mut out);
        add::<member::event>(Self::EVENT, &mut out);
        add::<member::severity>(caption(severity), &mut out);
        self.write(&mut out);
        out.push_str("}\n");
        out
    }
}

/// A severity as OCSF has it (1.6, `severity_id`).
pub(in crate::record) fn caption(severity: Severity) -> &'static str {
    match severity {
        Severity::Info => "Informational",
        Severity::Low => "Low",
        Severity::Medium => "Medium",
        Severity::High => "High",
        Severity::Critical => "Critical",
    }
}

/// Defines events.
macro_rules! events {
    ($($(#[doc = $text:literal])+ $event:ident = $name:literal { $($how:ident $member:ident,)+ })+) => {
        $(
            fields! { $(#[doc = $text])+ $event of member: $($how $member,)+ }

            impl Event for $event<'_> {
                const EVENT: &'static str = $name;
            }
        )+

        /// Every event, as the schema describes it.
        #[cfg(test)]
        pub(in crate::record) fn all() -> Vec<super::schema::Group> {
            vec![$(super::schema::Group { name: $name, text: vec![$($text),+], parts: $event::PARTS }),+]
        }
    };
}

fields! {
    /// The caller, its session and the upstream server of a call.
    Who of member:
        need agent, may user, may session, need upstream, need era, may revision, may transport, may trace, may span,
}

events! {
    /// A message was judged. OCSF class: Detection Finding (2004) where something was found, API
    /// Activity (6003) otherwise.
    Judged = "judged" {
        need audit, may item, with who, need direction, need kind, may method, may operation, may tool, may prompt,
        may resource, may request, may status, may error, need mode, need verdict, may would, need disposition, may rule,
        need bytes, may sent_sha256, may arguments, may sent, may sent_left_out, may result_bytes, may result_tokens,
        may cut_bytes, may kept_rests, may broken_digests, may classifier, may inspect_us, may upstream_ms, need rule_set,
        need coverage, need clean, need findings, may findings_left_out, need inspected_strings,
        need inspected_bytes, may recognized_strings, need inspected_readings, need uninspected, may uninspected_left_out,
    }
    /// A call failed. OCSF class: API Activity (6003), `status` Failure.
    Failed = "failed" {
        with who, may method, may tool, need side, need error, need error_message,
    }
    /// A request was rejected before it was a call: unknown token, wrong `Host` and the like. OCSF
    /// class: Authentication (3002) or HTTP Activity (4002), `status` Failure.
    TurnedAway = "turned_away" {
        need disposition, need reason,
    }
    /// A caller requested an object that it has no access to, and got the response for one that
    /// does not exist. OCSF class: Authorize Session (3003), `status` Failure.
    Denied = "denied" {
        need agent, may user, need upstream, need thing, need name, need disposition, need why,
    }
    /// An approval request was created or has ended. `outcome`: `asked`, `approved`, `denied`,
    /// `expired`, `cancelled`, `unused` or `nobody`. OCSF class: API Activity (6003).
    Approval = "approval" {
        may audit, with who, may approval, need tool, need rules, need outcome, need way, may scope, may by, may open_ms,
    }
    /// An agent requested the next part of an oversized answer. `outcome`: `read`, or `gone` where
    /// it is no longer available. OCSF class: API Activity (6003).
    Page = "page" {
        with who, need outcome, need bytes,
    }
    /// The state of a login at an upstream server has changed. `outcome`: `owed`, `logged_in`,
    /// `login_failed`, `renewed`, `unreachable`, `ended` or `refused`. OCSF class: Authentication
    /// (3002).
    Login = "login" {
        need upstream, need principal, need outcome, may error_message, may expires_unix,
    }
    /// A call was refused repeatedly for the same reason; where `audit` is present it was refused
    /// without inspection. OCSF class: Detection Finding (2004).
    RefusedAgain = "refused_again" {
        may audit, with who, need tool, need verdict, need disposition, need rule, need times,
    }
    /// A list of tools was returned with the operator's changes: descriptions replaced or tools
    /// hidden. OCSF class: API Activity (6003).
    Overlaid = "overlaid" {
        with who, need policy, need bytes, need shown_bytes,
    }
    /// A definition differs from the pinned one, or a person decided about one. OCSF class:
    /// Detection Finding (2004).
    Definition = "definition" {
        may agent, may user, may session, need upstream, may era, may revision, may transport, may trace, may span,
        need thing, need name, need classes, need action, may pinned_sha256, may listed_sha256,
    }
    /// The definitions of a new server were pinned. OCSF class: Entity Management (3004).
    Pinned = "pinned" {
        with who, need count,
    }
    /// The lock file has changed, and its pins are in force. OCSF class: Entity Management (3004).
    PinsReloaded = "pins_reloaded" {
        need upstreams,
    }
    /// The lock file cannot be read or written; the pins in memory stay in force. OCSF class:
    /// Entity Management (3004), `status` Failure.
    PinsRefused = "pins_refused" {
        need count, need faults,
    }
    /// New rules are in force. OCSF class: Application Lifecycle (6002); with `weakened`, Detection
    /// Finding (2004).
    Reloaded = "reloaded" {
        need rule_count, need weakened,
    }
    /// A reload was refused; the old rules stay in force. OCSF class: Application Lifecycle (6002),
    /// `status` Failure.
    ReloadRefused = "reload_refused" {
        need count, need faults,
    }
    /// The state of a message in quarantine has changed: `outcome` is the new one, `principal` the
    /// person who caused it, if any. OCSF class: Detection Finding (2004), activity Update.
    Quarantine = "quarantine" {
        need audit, need outcome, may agent, may upstream, may principal, may reason, may way,
    }
    /// A log begins or continues: in another file, in another process, after a crash. OCSF class:
    /// Application Lifecycle (6002).
    LogOpened = "log_opened" {
        need how, may torn_bytes,
    }
    /// Lines are missing: they were dropped, or the system could not write them. OCSF class:
    /// Application Lifecycle (6002), `status` Failure.
    LogLost = "log_lost" {
        need reason, need lines,
    }
}
