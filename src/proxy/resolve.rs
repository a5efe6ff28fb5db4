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
    places: Arc<Semaphore>,
}

/// The result of the lookups.
#[derive(Debug, Default)]
pub(super) struct Resolved {
    pub(super) answers: Answers,
    /// The limits that were reached, by name.
    pub(super) hit: Vec<&'static str>,
}

impl Default for Resolver {
    /// Resolves names with the system's resolver.
    fn default() -> Self {
        Self::new(Arc::new(|name| {
            Box::pin(async move {
                // The trailing dot marks the name as fully qualified: no search domain is appended.
                let found = tokio::net::lookup_host((format!("{name}."), 0)).await?;
                Ok(found.map(|address| address.ip()).collect())
            })
        }))
    }
}

impl Resolver {
    pub(super) fn new(look_up: Arc<LookUp>) -> Self {
        Self {
            look_up,
            places: Arc::new(Semaphore::new(AT_ONCE)),
        }
    }

    /// Returns the addresses of all names that are resolved `within` this time.
    pub(super) async fn resolve(&self, wanted: UnresolvedNames, within: Duration) -> Resolved {
        let found = Arc::new(Mutex::new(HashMap::new()));
        let asked = wanted.names.len();
        let mut looking = JoinSet::new();
        for name in wanted.names {
            let (look_up, places, found) =
                (self.look_up.clone(), self.places.clone(), found.clone());
            looking.spawn(async move {
                let Ok(place) = places.acquire_owned().await else {
                    return;
                };
                // In a task of its own: the lookup keeps its slot until it finishes, even if its
                // caller no longer waits.
                let looked_up = tokio::spawn(async move {
                    let _place = place;
                    let addresses = look_up(name.clone()).await;
                    (name, addresses)
                });
                let Ok((name, addresses)) = looked_up.await else {
                    return;
                };
                let addresses = addresses
                    .ok()
                    .filter(|addresses| addresses.len() <= ADDRESSES)
                    .unwrap_or_default();
                found.lock().insert(name, addresses);
            });
        }
        let in_time = tokio::time::timeout(within, async {
            while looking.join_next().await.is_some() {}
        })
        .await;
        drop(looking);
        let found = std::mem::take(&mut *found.lock());
        let mut hit = Vec::new();
        if in_time.is_err() && found.len() < asked {
            hit.push("resolve_ms");
        }
        if wanted.more {
            hit.push("resolve_names");
        }
        Resolved {
            answers: found.into_iter().collect(),
            hit,
        }
    }

    /// Resolves the names that an inspection needs: `None` if there are none.
    pub(super) async fn more_for(
        &self,
        policy: &Policy,
        inspection: &mut Inspection,
    ) -> Option<Resolved> {
        let within = policy.to_resolve(inspection)?;
        // Boxed: most calls wait for no name, and all would reserve space for it.
        Some(Box::pin(self.resolve(std::mem::take(&mut inspection.wanted), within)).await)
    }
}

#[cfg(test)]
mod tests;
