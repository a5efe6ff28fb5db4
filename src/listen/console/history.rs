//! Restores events from before the gate was started, as far as the end of its audit log contains
//! them.

use std::time::SystemTime;

use crate::config::{AuditConfig, AuditTo};
use crate::record::entry::member;
use crate::record::{Counts, Recorder, unix_seconds};
use crate::review::{Entry, recent_entries};

/// How far back counts are restored, in seconds.
const HOUR: u64 = 3600;

/// Puts the last lines of the audit log, and the counts of the last hour, before the new ones.
pub(super) fn restore(recorder: &Recorder, audit: &AuditConfig) {
    let Some(AuditTo::File(file)) = &audit.to else {
        return;
    };
    let entries = match recent_entries(file) {
        Ok(entries) => entries,
        Err(error) => {
            tracing::warn!(file = %file.display(), %error, "cannot read the audit log; the console starts without history");
            return;
        }
    };
    // Lines about the log itself are only in the log.
    let relevant = entries
        .iter()
        .filter(|entry| !entry.event().starts_with("log_"));
    recorder.audit_tail().seed(relevant.map(Entry::raw));
    let now = unix_seconds(SystemTime::now());
    let dated_counts = entries
        .iter()
        .filter_map(|entry| Some((unix_seconds(entry.time()?), line_counts(entry)?)));
    recorder
        .restore_hour(dated_counts.filter(|(at, _)| (now.saturating_sub(HOUR)..=now).contains(at)));
}

/// Returns what a line adds to the counts.
fn line_counts(entry: &Entry) -> Option<Counts> {
    let mut counts = Counts::default();
    match &*entry.event() {
        "failed" => counts.failed = 1,
        "judged" => {
            let outbound = entry.get(member::direction).as_deref() == Some("outbound");
            *(if outbound {
                &mut counts.outbound
            } else {
                &mut counts.inbound
            }) = 1;
            match entry.get(member::verdict).as_deref() {
                Some("block") => counts.blocked = 1,
                Some("ask") => counts.asked = 1,
                Some("rewrite") => counts.rewritten = 1,
                _ => {}
            }
            if !outbound {
                let matches = entry
                    .findings()
                    .filter(crate::review::EntryFinding::is_injection)
                    .count();
                counts.injections = u32::from(matches > 0);
                counts.injection_matches = u32::try_from(matches).unwrap_or(u32::MAX);
            }
        }
        _ if entry.is_unjudged_refusal() => (counts.outbound, counts.blocked) = (1, 1),
        _ => return None,
    }
    Some(counts)
}
