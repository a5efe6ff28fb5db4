//! Lookups of host names before a call is sent: limited in time, in names per call, and in
//! concurrency.

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::detect::url::{Answers, UnresolvedNames};
use crate::inspect::{Inspection, Policy};

/// Maximum number of concurrent lookups. A lookup that the system does not finish occupies a slot
/// and a thread until it does.
const AT_ONCE: usize = 64;
/// Maximum number of addresses of a name that are judged; a name with more counts as unresolvable.
const ADDRESSES: usize = 256;

/// A pending lookup, which completes with the addresses.
pub(super) type PendingLookup = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Looks up one name.
pub(super) type LookUp = dyn Fn(String) -> PendingLookup + Send + Sync;

/// Resolves the names that an inspection needs.
pub(super) struct Resolver {
    look_up: Arc<LookUp>,
    slots: Arc<Semaphore>,
}

/// The result of the lookups.
#[derive(Debug, Default)]
pub(super) struct Resolution {
    pub(super) answers: Answers,
    /// The limits that were reached, by name.
    pub(super) exceeded_limits: Vec<&'static str>,
}

impl Default for Resolver {
    /// Resolves names with the system's resolver.
    fn default() -> Self {
        Self::new(Arc::new(|name| {
            Box::pin(async move {
                // The trailing dot marks the name as fully qualified: no search domain is appended.
                let addresses = tokio::net::lookup_host((format!("{name}."), 0)).await?;
                Ok(addresses.map(|address| address.ip()).collect())
            })
        }))
    }
}

impl Resolver {
    pub(super) fn new(look_up: Arc<LookUp>) -> Self {
        Self {
            look_up,
            slots: Arc::new(Semaphore::new(AT_ONCE)),
        }
    }

    /// Returns the addresses of all names that are resolved `within` this time.
    pub(super) async fn resolve(
        &self,
        unresolved: UnresolvedNames,
        within: Duration,
    ) -> Resolution {
        let resolved = Arc::new(Mutex::new(HashMap::new()));
        let requested = unresolved.names.len();
        let mut lookups = JoinSet::new();
        for name in unresolved.names {
            let (look_up, slots, resolved) =
                (self.look_up.clone(), self.slots.clone(), resolved.clone());
            lookups.spawn(async move {
                let Ok(slot) = slots.acquire_owned().await else {
                    return;
                };
                // In a task of its own: the lookup keeps its slot until it finishes, even if its
                // caller no longer waits.
                let lookup = tokio::spawn(async move {
                    let _slot = slot;
                    let addresses = look_up(name.clone()).await;
                    (name, addresses)
                });
                let Ok((name, addresses)) = lookup.await else {
                    return;
                };
                let addresses = addresses
                    .ok()
                    .filter(|addresses| addresses.len() <= ADDRESSES)
                    .unwrap_or_default();
                resolved.lock().insert(name, addresses);
            });
        }
        let in_time = tokio::time::timeout(within, async {
            while lookups.join_next().await.is_some() {}
        })
        .await;
        drop(lookups);
        let resolved = std::mem::take(&mut *resolved.lock());
        let mut exceeded_limits = Vec::new();
        if in_time.is_err() && resolved.len() < requested {
            exceeded_limits.push("resolve_ms");
        }
        if unresolved.has_more {
            exceeded_limits.push("resolve_names");
        }
        Resolution {
            answers: resolved.into_iter().collect(),
            exceeded_limits,
        }
    }

    /// Resolves the names that an inspection needs: `None` if there are none.
    pub(super) async fn resolve_names(
        &self,
        policy: &Policy,
        inspection: &mut Inspection,
    ) -> Option<Resolution> {
        let within = policy.resolve_timeout(inspection)?;
        // Boxed: most calls wait for no name, and all would reserve space for it.
        Some(Box::pin(self.resolve(std::mem::take(&mut inspection.unresolved_names), within)).await)
    }
}

#[cfg(test)]
mod tests;
