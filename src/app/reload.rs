//! Applies changed rules, policies and upstreams while the gate runs.
//!
//! Changes are detected by polling, not by notification, which works on network file systems, bind
//! mounts and Kubernetes volumes too. A change is applied once it is unchanged for two polls, so
//! that no half-written file is read.

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::watch as channel;

use super::build;
use crate::config::{self, Config};
use crate::document::Fault;
use crate::inspect::{Mode, describe_suppression_changes};
use crate::listen::Frontend;
use crate::message::Direction;
use crate::oauth::Shared;
use crate::protocol::UpstreamName;
use crate::proxy::{Gate, Policies, UpstreamChanges};
use crate::record::Event;
use crate::rules::describe_weakening;

/// Interval between two polls.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of files that are checked; a folder with more is a mistake.
const MAX_FILES: usize = 10_000;

/// Identifies a state of a file.
pub(super) type Stamp = (PathBuf, u64, i64, i64, u64);

/// Checks for changes until it is aborted. `in_force` are the states of the files before they were
/// read; `reload_requests` changes when an immediate reload is requested.
pub(super) async fn watch(
    front: Arc<Frontend>,
    gate: Arc<Gate>,
    logins: Arc<Shared>,
    config: Config,
    source: Option<PathBuf>,
    mut in_force: Vec<Stamp>,
    mut reload_requests: channel::Receiver<u64>,
) {
    let mut config = Arc::new(config);
    let mut before = in_force.clone();
    let mut expired_count = 0;
    // Files that have changed since the config in force was read.
    let mut changed_files = HashSet::new();
    loop {
        let at_once = tokio::select! {
            () = tokio::time::sleep(POLL_INTERVAL) => false,
            changed = reload_requests.changed() => match changed {
                Ok(()) => true,
                Err(_) => return,
            },
        };
        gate.sweep();
        warn_expired(&gate.policies(), &mut expired_count);
        let task_gate = gate.clone();
        if tokio::task::spawn_blocking(move || task_gate.reload_pins())
            .await
            .is_err()
        {
            tracing::error!("checking the lock file and the quarantine failed");
        }
        if at_once && let Err(error) = gate.recorder().reopen() {
            tracing::error!(%error, "cannot reopen the audit log");
        }
        let now = read_stamps(&config, source.as_ref()).await;
        let is_stable = now == before;
        before.clone_from(&now);
        if !at_once && (now == in_force || !is_stable) {
            continue;
        }
        // Successful or not, the same state is not tried again.
        changed_files.extend(changed_paths(&in_force, &now));
        in_force = now;
        let old = config.clone();
        let file = source.clone();
        let loaded = tokio::task::spawn_blocking(move || load(&old, file.as_deref())).await;
        let loaded =
            loaded.unwrap_or_else(|_| Err(vec![Fault::of_file("reload", "loading failed", None)]));
        let loaded = loaded.and_then(|(new, policies)| match front.build_authenticator(&new) {
            Ok(entry) => Ok((new, policies, entry)),
            Err(fault) => Err(vec![fault]),
        });
        match loaded {
            Ok((new, policies, entry)) => {
                let weakenings = find_weakenings(&gate.policies(), &policies);
                warn_restart_required(&config, &new);
                build::announce(gate.recorder(), &policies);
                let rules = count_rules(&policies);
                gate.replace_upstreams(
                    policies,
                    changes(&config, &new, &changed_files, &gate, &logins),
                );
                gate.record_pending_definitions();
                changed_files.clear();
                expired_count = 0;
                front.set_authenticator(entry);
                config = Arc::new(new);
                // The set of files may have changed. A file that changed during the reload keeps
                // its old stamp, so that it is read again.
                let previous_stamps = std::mem::take(&mut in_force);
                in_force = read_stamps(&config, source.as_ref()).await;
                before.clone_from(&in_force);
                for stamp in &mut in_force {
                    if let Some(known) = previous_stamps.iter().find(|known| known.0 == stamp.0) {
                        stamp.clone_from(known);
                    }
                }
                gate.record(Event::Reloaded {
                    rules,
                    weakened: &weakenings,
                });
            }
            Err(faults) => gate.record(Event::ReloadRefused { faults: &faults }),
        }
    }
}

fn load(old: &Config, source: Option<&Path>) -> Result<(Config, Policies), Vec<Fault>> {
    let new = match source {
        Some(source) => config::load_to_run(source)?,
        None => old.clone(),
    };
    let policies = build::policies(&new)?;
    Ok((new, policies))
}

/// Returns the changes of upstreams. Those that are reached as before keep their sessions and
/// processes.
fn changes(
    old: &Config,
    new: &Config,
    changed_files: &HashSet<PathBuf>,
    gate: &Gate,
    logins: &Arc<Shared>,
) -> UpstreamChanges {
    let mut changes = UpstreamChanges::default();
    for (name, upstream) in &new.upstreams {
        let before = old.upstreams.get(name);
        let has_changed_files = upstream
            .transport
            .files()
            .into_iter()
            .any(|file| changed_files.contains(file));
        if !has_changed_files && before.is_some_and(|before| before.has_same_connection(upstream)) {
            continue;
        }
        let name = UpstreamName(name.as_str().into());
        tracing::info!(upstream = %name, "upstream {} by a reload", if before.is_some() { "replaced" } else { "added" });
        let is_same_server =
            before.is_some_and(|before| before.transport.is_same_server(&upstream.transport));
        let new_upstream = build::upstream(&name, upstream, gate.limits(), Some(logins));
        changes.set.push((name, new_upstream, is_same_server));
    }
    for name in old
        .upstreams
        .keys()
        .filter(|name| !new.upstreams.contains_key(*name))
    {
        tracing::info!(upstream = %name, "upstream removed by a reload");
        changes.removed.push(UpstreamName(name.as_str().into()));
    }
    changes
}

/// Returns the files whose state differs between two polls.
fn changed_paths(before: &[Stamp], now: &[Stamp]) -> Vec<PathBuf> {
    let removed = before
        .iter()
        .filter(|stamp| now.binary_search(stamp).is_err());
    let new = now
        .iter()
        .filter(|stamp| before.binary_search(stamp).is_err());
    removed.chain(new).map(|(path, ..)| path.clone()).collect()
}

fn warn_restart_required(old: &Config, new: &Config) {
    let has_other_stores = !new.quarantine.is_same_config(&old.quarantine)
        || !new.evidence.is_same_config(&old.evidence);
    for (is_changed, part) in [
        (
            old.listen.address != new.listen.address || old.admin != new.admin,
            "an address or `[admin]`",
        ),
        (
            old.listen.public_url != new.listen.public_url,
            "`public_url`",
        ),
        (old.listen.tls != new.listen.tls, "`tls` under `[listen]`"),
        (old.limits != new.limits, "`[limits]`"),
        (
            old.approval != new.approval || old.notify != new.notify,
            "`[approval]`",
        ),
        (old.oauth != new.oauth, "`[oauth]`"),
        (has_other_stores, "`[quarantine]` or `[evidence]`"),
        (old.otlp != new.otlp, "`[otlp]`"),
        (!new.pins.is_same_config(&old.pins), "`[pins]`"),
        (old.audit != new.audit, "`[audit]`"),
    ] {
        if is_changed {
            tracing::warn!("{part} was changed in the config: restart required");
        }
    }
}

/// Logs the expired suppressions, if there are more than were logged before.
fn warn_expired(policies: &Policies, reported: &mut usize) {
    let expired = build::expired(policies, SystemTime::now());
    if expired.len() > *reported {
        expired
            .iter()
            .for_each(|warning| tracing::warn!("{warning}"));
    }
    *reported = expired.len();
}

/// Returns what is less protected than before, in sentences.
fn find_weakenings(old: &Policies, new: &Policies) -> Vec<String> {
    let mut out = Vec::new();
    for (upstream, new) in new {
        let Some(old) = old.get(upstream) else {
            continue;
        };
        if old.mode == Mode::Enforce && new.mode == Mode::Observe {
            out.push(format!(
                "`{upstream}`: mode {} became {}",
                old.mode.name(),
                new.mode.name()
            ));
        }
        let suppressed =
            describe_suppression_changes(old.suppressions(), new.suppressions(), SystemTime::now());
        out.extend(
            suppressed
                .into_iter()
                .map(|text| format!("`{upstream}`: {text}")),
        );
        for direction in [Direction::Outbound, Direction::Inbound] {
            out.extend(
                describe_weakening(old.rules(direction), new.rules(direction))
                    .into_iter()
                    .map(|text| format!("`{upstream}`: {text}")),
            );
        }
    }
    out.sort();
    out
}

fn count_rules(policies: &Policies) -> usize {
    let mut ids: Vec<_> = policies
        .values()
        .flat_map(|policy| {
            [Direction::Outbound, Direction::Inbound]
                .map(|direction| policy.rules(direction).rules())
        })
        .flatten()
        .map(|rule| &rule.id)
        .collect();
    ids.sort();
    ids.dedup();
    ids.len()
}

async fn read_stamps(config: &Arc<Config>, source: Option<&PathBuf>) -> Vec<Stamp> {
    let config = config.clone();
    let source = source.cloned();
    tokio::task::spawn_blocking(move || stamps(&config, source.as_deref()))
        .await
        .unwrap_or_default()
}

/// Returns the current states of the files that the rules, policies and secrets of a config come
/// from.
pub(super) fn stamps(config: &Config, source: Option<&Path>) -> Vec<Stamp> {
    let source = source.map(Path::to_owned);
    let mut pending: Vec<PathBuf> = config
        .policies
        .values()
        .flat_map(|policy| &policy.rules)
        .chain(&config.files)
        .cloned()
        .chain(source)
        .collect();
    let mut out = Vec::new();
    while let Some(path) = pending.pop() {
        let Ok(meta) = std::fs::metadata(&path) else {
            continue;
        };
        if meta.is_dir() {
            let entries = std::fs::read_dir(&path)
                .into_iter()
                .flatten()
                .flatten()
                .map(|entry| entry.path());
            pending.extend(entries.take(MAX_FILES.saturating_sub(pending.len())));
        } else if out.len() < MAX_FILES {
            out.push((
                path,
                meta.len(),
                meta.mtime(),
                meta.mtime_nsec(),
                meta.ino(),
            ));
        }
    }
    out.sort();
    out.dedup();
    out
}
