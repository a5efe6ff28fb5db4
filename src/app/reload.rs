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
use crate::inspect::{Mode, more_suppressed};
use crate::listen::Frontend;
use crate::message::Direction;
use crate::oauth::Shared;
use crate::protocol::UpstreamName;
use crate::proxy::{Gate, Policies, UpstreamChanges};
use crate::record::Event;
use crate::rules::describe_weakening;

/// Interval between two polls.
const LOOK: Duration = Duration::from_secs(1);
/// Maximum number of files that are checked; a folder with more is a mistake.
const FILES: usize = 10_000;

/// Identifies a state of a file.
pub(super) type Stamp = (PathBuf, u64, i64, i64, u64);

/// Checks for changes until it is aborted. `in_force` are the states of the files before they were
/// read; `asked` changes when an immediate reload is requested.
pub(super) async fn watch(
    front: Arc<Frontend>,
    gate: Arc<Gate>,
    logins: Arc<Shared>,
    (config, source): (Config, Option<PathBuf>),
    mut in_force: Vec<Stamp>,
    mut asked: channel::Receiver<u64>,
) {
    let mut config = Arc::new(config);
    let mut before = in_force.clone();
    let mut ended = 0;
    // Files that have changed since the config in force was read.
    let mut touched = HashSet::new();
    loop {
        let at_once = tokio::select! {
            () = tokio::time::sleep(LOOK) => false,
            changed = asked.changed() => match changed {
                Ok(()) => true,
                Err(_) => return,
            },
        };
        gate.sweep();
        tell_ended(&gate.policies(), &mut ended);
        let looks = gate.clone();
        if tokio::task::spawn_blocking(move || looks.reload_pins())
            .await
            .is_err()
        {
            tracing::error!("checking the lock file and the quarantine failed");
        }
        if at_once && let Err(error) = gate.recorder().reopen() {
            tracing::error!(%error, "cannot reopen the audit log");
        }
        let now = read_stamps(&config, source.as_ref()).await;
        let held_still = now == before;
        before.clone_from(&now);
        if !at_once && (now == in_force || !held_still) {
            continue;
        }
        // Successful or not, the same state is not tried again.
        touched.extend(differing(&in_force, &now));
        in_force = now;
        let old = config.clone();
        let file = source.clone();
        let loaded = tokio::task::spawn_blocking(move || load(&old, file.as_deref())).await;
        let loaded =
            loaded.unwrap_or_else(|_| Err(vec![Fault::of_file("reload", "loading failed", None)]));
        let loaded = loaded.and_then(|(new, policies)| match front.entry(&new) {
            Ok(entry) => Ok((new, policies, entry)),
            Err(fault) => Err(vec![fault]),
        });
        match loaded {
            Ok((new, policies, entry)) => {
                let weaker = weaker(&gate.policies(), &policies);
                told_restart(&config, &new);
                build::announce(gate.recorder(), &policies);
                let rules = rules(&policies);
                gate.replace_upstreams(policies, changes(&config, &new, &touched, &gate, &logins));
                gate.tell_held();
                touched.clear();
                ended = 0;
                front.admit_by(entry);
                config = Arc::new(new);
                // The set of files may have changed. A file that changed during the reload keeps
                // its old stamp, so that it is read again.
                let known = std::mem::take(&mut in_force);
                in_force = read_stamps(&config, source.as_ref()).await;
                before.clone_from(&in_force);
                for stamp in &mut in_force {
                    if let Some(known) = known.iter().find(|known| known.0 == stamp.0) {
                        stamp.clone_from(known);
                    }
                }
                gate.record(Event::Reloaded {
                    rules,
                    weakened: &weaker,
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
    touched: &HashSet<PathBuf>,
    gate: &Gate,
    logins: &Arc<Shared>,
) -> UpstreamChanges {
    let mut changes = UpstreamChanges::default();
    for (name, upstream) in &new.upstreams {
        let before = old.upstreams.get(name);
        let reads_anew = upstream
            .transport
            .files()
            .into_iter()
            .any(|file| touched.contains(file));
        if !reads_anew && before.is_some_and(|before| before.is_reached_like(upstream)) {
            continue;
        }
        let name = UpstreamName(name.as_str().into());
        tracing::info!(upstream = %name, "upstream {} by a reload", if before.is_some() { "replaced" } else { "added" });
        let is_same_server =
            before.is_some_and(|before| before.transport.leads_where(&upstream.transport));
        let built = build::upstream(&name, upstream, gate.limits(), Some(logins));
        changes.set.push((name, built, is_same_server));
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
fn differing(before: &[Stamp], now: &[Stamp]) -> Vec<PathBuf> {
    let gone = before
        .iter()
        .filter(|stamp| now.binary_search(stamp).is_err());
    let new = now
        .iter()
        .filter(|stamp| before.binary_search(stamp).is_err());
    gone.chain(new).map(|(path, ..)| path.clone()).collect()
}

fn told_restart(old: &Config, new: &Config) {
    if old.listen.address != new.listen.address || old.admin != new.admin {
        tracing::warn!("an address or `[admin]` was changed in the config: restart required");
    }
    if old.listen.public_url != new.listen.public_url {
        tracing::warn!("`public_url` was changed in the config: restart required");
    }
    if old.listen.tls != new.listen.tls {
        tracing::warn!("`tls` under `[listen]` was changed in the config: restart required");
    }
    if old.limits != new.limits {
        tracing::warn!("`[limits]` was changed in the config: restart required");
    }
    if old.approval != new.approval || old.notify != new.notify {
        tracing::warn!("`[approval]` was changed in the config: restart required");
    }
    if old.oauth != new.oauth {
        tracing::warn!("`[oauth]` was changed in the config: restart required");
    }
    if !new.quarantine.is_as(&old.quarantine) || !new.evidence.is_as(&old.evidence) {
        tracing::warn!(
            "`[quarantine]` or `[evidence]` was changed in the config: restart required"
        );
    }
    if old.otlp != new.otlp {
        tracing::warn!("`[otlp]` was changed in the config: restart required");
    }
    if !new.pins.is_as(&old.pins) {
        tracing::warn!("`[pins]` was changed in the config: restart required");
    }
    if old.audit != new.audit {
        tracing::warn!("`[audit]` was changed in the config: restart required");
    }
}

/// Logs the expired suppressions, if there are more than were logged before.
fn tell_ended(policies: &Policies, told: &mut usize) {
    let ended = build::expired(policies, SystemTime::now());
    if ended.len() > *told {
        ended.iter().for_each(|what| tracing::warn!("{what}"));
    }
    *told = ended.len();
}

/// Returns what is less protected than before, in sentences.
fn weaker(old: &Policies, new: &Policies) -> Vec<String> {
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
        let suppressed = more_suppressed(old.suppressions(), new.suppressions(), SystemTime::now());
        out.extend(
            suppressed
                .into_iter()
                .map(|what| format!("`{upstream}`: {what}")),
        );
        for direction in [Direction::Outbound, Direction::Inbound] {
            out.extend(
                describe_weakening(old.rules(direction), new.rules(direction))
                    .into_iter()
                    .map(|what| format!("`{upstream}`: {what}")),
            );
        }
    }
    out.sort();
    out
}

fn rules(policies: &Policies) -> usize {
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
    let mut open: Vec<PathBuf> = config
        .policies
        .values()
        .flat_map(|policy| &policy.rules)
        .chain(&config.files)
        .cloned()
        .chain(source)
        .collect();
    let mut out = Vec::new();
    while let Some(path) = open.pop() {
        let Ok(meta) = std::fs::metadata(&path) else {
            continue;
        };
        if meta.is_dir() {
            let inside = std::fs::read_dir(&path)
                .into_iter()
                .flatten()
                .flatten()
                .map(|entry| entry.path());
            open.extend(inside.take(FILES.saturating_sub(open.len())));
        } else if out.len() < FILES {
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
