//! Looks after upstreams, so that whoever is told of metrics knows which are down, also while nobody calls them.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use crate::proxy::Gate;
use crate::upstream::Health;

/// Time before the first look: what starts together with the gate gets to its port.
const FIRST: Duration = Duration::from_secs(5);
/// Time between looks.
const EVERY: Duration = Duration::from_secs(15);

/// Looks now and then, for as long as the process lives.
pub(super) async fn watch(gate: Arc<Gate>) {
    tokio::time::sleep(FIRST).await;
    loop {
        join_all(gate.upstreams().map(|(name, upstream)| {
            let recorder = gate.recorder();
            async move { recorder.upstream_is_up(name, !matches!(upstream.health().await, Health::Down(_))) }
        }))
        .await;
        tokio::time::sleep(EVERY).await;
    }
}
