//! Checks the health of upstreams, so that metrics and the log show which are down even while
//! nobody calls them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use crate::protocol::UpstreamName;
use crate::proxy::Gate;
use crate::upstream::Health;

/// Delay of the first check, in which servers that start together with the gate can open their
/// ports.
const FIRST_DELAY: Duration = Duration::from_secs(5);
/// Interval between checks.
const INTERVAL: Duration = Duration::from_secs(15);

/// Checks upstreams periodically and after each reload that changes them, as long as the process
/// runs.
pub(super) async fn watch(gate: Arc<Gate>) {
    let mut changes = gate.upstream_changes();
    let mut known = KnownState::default();
    // A fault of the config and a missing program are known without a check.
    for (name, upstream) in gate.upstreams() {
        if let Some(health @ Health::Down(_)) = upstream.last_health() {
            known.note(&gate, name, health);
        }
    }
    let mut pause = FIRST_DELAY;
    loop {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            changed = changes.changed() => if changed.is_err() { return },
        }
        pause = INTERVAL;
        let all = gate.upstreams().into_iter();
        let states =
            join_all(all.map(|(name, upstream)| async move { (name, upstream.health().await) }))
                .await;
        for (name, health) in states {
            known.note(&gate, name, health);
        }
        known.forget_removed(&gate);
    }
}

/// The state of each upstream that was last logged.
#[derive(Default)]
struct KnownState(HashMap<UpstreamName, Health>);

impl KnownState {
    fn note(&mut self, gate: &Gate, name: UpstreamName, health: Health) {
        let reason = health.reason();
        gate.recorder().set_upstream_up(&name, reason.is_none());
        let previous = self.0.get(&name);
        match reason {
            Some(reason) if previous.and_then(Health::reason) != Some(reason) => {
                tracing::warn!(upstream = %name, reason, "upstream is down");
            }
            None if previous.is_some_and(|before| before.reason().is_some()) => {
                tracing::info!(upstream = %name, state = health.name(), "upstream is up again");
            }
            _ => {}
        }
        self.0.insert(name, health);
    }

    fn forget_removed(&mut self, gate: &Gate) {
        self.0.retain(|name, _| {
            let exists = gate.find_upstream(&name.0).is_some();
            if !exists {
                gate.recorder().forget_upstream(name);
            }
            exists
        });
    }
}
