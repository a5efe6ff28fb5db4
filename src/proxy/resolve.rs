//! Names of hosts looked up before a call is sent: bounded in time, in names of a call, and in look-ups at once.

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

use crate::detect::url::{Answers, Wanted};
use crate::inspect::{Inspection, Policy};

/// Look-ups at once. One that the system does not end takes its place, and a thread, until it does.
const AT_ONCE: usize = 64;
/// Most addresses of a name that are judged; a name with more counts as one that cannot be resolved.
const ADDRESSES: usize = 256;

/// Something that is looked up: ends when the addresses are there.
pub(super) type PendingLookup = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Looks up one name.
pub(super) type LookUp = dyn Fn(String) -> PendingLookup + Send + Sync;

/// Looks up the names that judging would know of.
pub(super) struct Resolver {
    look_up: Arc<LookUp>,
    places: Arc<Semaphore>,
}

/// What came of looking names up.
#[derive(Debug, Default)]
pub(super) struct Resolved {
    pub(super) answers: Answers,
    /// The limits that were hit, by name.
    pub(super) hit: Vec<&'static str>,
}

impl Default for Resolver {
    /// As the system resolves names.
    fn default() -> Self {
        Self::new(Arc::new(|name| {
            Box::pin(async move {
                // The dot says that the name is whole: no search domain is to be put behind it.
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

    /// The addresses of all names that are known `within` this time.
    pub(super) async fn resolve(&self, wanted: Wanted, within: Duration) -> Resolved {
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
                // By itself: it keeps its place to its end, whoever still waits for it.
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

    /// What an inspection would know more of, for a task: `None` if there is nothing.
    pub(super) async fn more_for(
        &self,
        policy: &Policy,
        inspection: &mut Inspection,
    ) -> Option<Resolved> {
        let within = policy.to_resolve(inspection)?;
        // Boxed: most calls wait for no name, and all would make room for it.
        Some(Box::pin(self.resolve(std::mem::take(&mut inspection.wanted), within)).await)
    }
}

#[cfg(test)]
mod tests;
