//! Limits on the open connections of one listener: in total, per remote address, and without a
//! valid credential.
//!
//! A connection counts as unauthenticated until a request on it presents a valid credential. When
//! there is no room for a new connection, an unauthenticated one is closed: the oldest one of the
//! address that has the most, preferably without an open request. Silent connections therefore
//! cannot keep others out, and one address cannot keep out another.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::certificate::CertificateNames;
use crate::config::Limits;

/// Time without an open request after which the buffers of a connection are freed. Allocating them
/// again takes microseconds, and the next call of an agent often comes after seconds.
const BUFFER_IDLE_TIME: Duration = Duration::from_secs(1);

/// The open connections of one listener.
#[derive(Debug)]
pub(super) struct ConnectionTable {
    limits: Limits,
    total: usize,
    /// The name of that limit.
    total_name: &'static str,
    unauthenticated: usize,
    connections: Mutex<OpenConnections>,
}

#[derive(Debug, Default)]
struct OpenConnections {
    next_id: u64,
    total: usize,
    unauthenticated: usize,
    addresses: HashMap<IpAddr, Address>,
}

#[derive(Debug, Default)]
struct Address {
    connections: usize,
    /// By id, so that the oldest comes first.
    unauthenticated: BTreeMap<u64, Arc<Activity>>,
}

/// A new connection, and the limit that its admission has hit.
#[derive(Debug)]
pub(super) struct Admission {
    pub(super) connection: Connection,
    /// The limit for which an unauthenticated connection is closed to make room.
    pub(super) limit: Option<&'static str>,
}

impl ConnectionTable {
    /// Creates the table of the agents' listener.
    pub(super) fn for_agents(limits: &Limits) -> Arc<Self> {
        Self::new(
            limits.clone(),
            limits.connections,
            "connections",
            limits.unauthenticated_connections,
        )
    }

    /// Creates the table of the admin port.
    pub(super) fn for_admin(limits: &Limits) -> Arc<Self> {
        let total = limits.admin_connections;
        let limits = Limits {
            connections_per_address: Some(usize::MAX),
            ..limits.clone()
        };
        Self::new(limits, total, "admin_connections", total)
    }

    fn new(
        limits: Limits,
        total: usize,
        total_name: &'static str,
        unauthenticated: usize,
    ) -> Arc<Self> {
        Arc::new(Self {
            limits,
            total,
            total_name,
            unauthenticated,
            connections: Mutex::default(),
        })
    }

    /// Admits a connection from an address. If callers need no credential, it counts as
    /// authenticated at once.
    ///
    /// # Errors
    /// The name of the limit that leaves no room for it.
    pub(super) fn admit(
        self: &Arc<Self>,
        from: IpAddr,
        needs_credential: bool,
    ) -> Result<Admission, &'static str> {
        let key = limit_key(from);
        let mut connections = self.connections.lock();
        if connections
            .addresses
            .get(&key)
            .is_some_and(|address| address.connections >= self.limits.per_address(key))
        {
            return Err("connections_per_address");
        }
        let limit = match () {
            () if connections.total >= self.total => Some(self.total_name),
            () if needs_credential && connections.unauthenticated >= self.unauthenticated => {
                Some("unauthenticated_connections")
            }
            () => None,
        };
        if let Some(limit) = limit
            && !connections.evict()
        {
            return Err(limit);
        }
        let id = connections.next_id;
        connections.next_id += 1;
        connections.total += 1;
        let activity = Arc::new(Activity::new(!needs_credential));
        let address = connections.addresses.entry(key).or_default();
        address.connections += 1;
        if needs_credential {
            address.unauthenticated.insert(id, activity.clone());
            connections.unauthenticated += 1;
        }
        let connection = Connection {
            names: CertificateNames::default(),
            from: key,
            id,
            activity,
            table: self.clone(),
        };
        Ok(Admission { connection, limit })
    }
}

impl OpenConnections {
    /// Closes one unauthenticated connection, if there is any. Returns whether there was one.
    fn evict(&mut self) -> bool {
        let busiest = self
            .addresses
            .iter()
            .max_by_key(|(_, address)| address.unauthenticated.len());
        let Some((from, address)) = busiest else {
            return false;
        };
        let idle = address
            .unauthenticated
            .iter()
            .find(|(_, activity)| activity.is_idle());
        let Some((id, activity)) = idle.or_else(|| address.unauthenticated.first_key_value())
        else {
            return false;
        };
        activity.eviction.notify_one();
        let from = *from;
        let id = *id;
        self.promote(from, id);
        self.remove(from);
        true
    }

    /// Removes a connection from the counts.
    fn remove(&mut self, from: IpAddr) {
        self.total -= 1;
        if let Some(address) = self.addresses.get_mut(&from) {
            address.connections -= 1;
            if address.connections == 0 {
                self.addresses.remove(&from);
            }
        }
    }

    /// Removes a connection from the unauthenticated ones.
    fn promote(&mut self, from: IpAddr, id: u64) -> bool {
        let was_unauthenticated = self
            .addresses
            .get_mut(&from)
            .and_then(|address| address.unauthenticated.remove(&id))
            .is_some();
        self.unauthenticated -= usize::from(was_unauthenticated);
        was_unauthenticated
    }
}

/// Returns the unit of addresses that a limit applies to: an IPv4 address, or an IPv6 network of 64
/// bits, which one host has for itself.
pub(super) fn limit_key(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) if !v6.is_loopback() => {
            IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & (u128::MAX << 64)))
        }
        other => other,
    }
}

/// The activity on a connection.
#[derive(Debug)]
struct Activity {
    since: Instant,
    /// Requests without a complete response.
    requests: AtomicUsize,
    /// When the last of them ended, in milliseconds after `since`.
    idle_since: AtomicU64,
    had_request: AtomicBool,
    authenticated: AtomicBool,
    /// Whether everything written has left hyper's buffer.
    flushed: AtomicBool,
    /// Whether anything was read since the last request ended.
    has_read: AtomicBool,
    eviction: Notify,
}

impl Activity {
    fn new(authenticated: bool) -> Self {
        Self {
            since: Instant::now(),
            requests: AtomicUsize::new(0),
            idle_since: AtomicU64::new(0),
            had_request: AtomicBool::new(false),
            authenticated: AtomicBool::new(authenticated),
            flushed: AtomicBool::new(true),
            has_read: AtomicBool::new(false),
            eviction: Notify::new(),
        }
    }

    fn is_idle(&self) -> bool {
        self.requests.load(Ordering::Acquire) == 0
    }

    /// Starts the idle time now, once no request is open.
    fn start_idle(&self) {
        let now = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.idle_since.fetch_max(now, Ordering::Release);
    }

    fn has_no_buffered_bytes(&self) -> bool {
        self.flushed.load(Ordering::Relaxed) && !self.has_read.load(Ordering::Relaxed)
    }

    /// Returns how long no request has been open, or `None` while one is open.
    fn idle_time(&self) -> Option<Duration> {
        let is_idle = self.is_idle();
        let idle_since = Duration::from_millis(self.idle_since.load(Ordering::Acquire));
        is_idle.then(|| self.since.elapsed().saturating_sub(idle_since))
    }
}

/// An open connection. It leaves its table when it is dropped.
#[derive(Debug)]
pub(super) struct Connection {
    /// The names in the certificate that its peer has presented.
    pub(super) names: CertificateNames,
    /// Its remote address, in the unit that limits count.
    pub(super) from: IpAddr,
    id: u64,
    activity: Arc<Activity>,
    table: Arc<ConnectionTable>,
}

impl Connection {
    /// Counts it as authenticated from now on.
    pub(super) fn set_authenticated(&self) {
        let activity = &self.activity;
        if !activity.authenticated.load(Ordering::Relaxed)
            && self.table.connections.lock().promote(self.from, self.id)
        {
            activity.authenticated.store(true, Ordering::Relaxed);
        }
    }

    /// Registers a request on the connection. It is open until the returned value is dropped, after
    /// its response has been sent.
    pub(super) fn open_request(&self) -> OpenRequest {
        self.activity.had_request.store(true, Ordering::Relaxed);
        self.activity.requests.fetch_add(1, Ordering::Relaxed);
        OpenRequest(self.activity.clone())
    }

    /// Reports whether there has been a request.
    pub(super) fn has_had_request(&self) -> bool {
        self.activity.had_request.load(Ordering::Relaxed)
    }

    /// Returns when the connection has to make room for another.
    pub(super) fn until_evicted(&self) -> impl Future<Output = ()> + Send + use<> {
        let activity = self.activity.clone();
        async move { activity.eviction.notified().await }
    }

    /// Starts the idle time now, once no request is open.
    pub(super) fn start_idle(&self) {
        self.activity.start_idle();
    }

    /// Returns once no request has been open for `time`. It checks at the earliest time at which
    /// that is possible, so a request costs two atomic operations and no timer.
    pub(super) async fn until_idle(&self, time: Duration) {
        let mut idle_time = self.activity.idle_time();
        while idle_time.is_none_or(|idle_for| idle_for < time) {
            tokio::time::sleep(time.saturating_sub(idle_time.unwrap_or_default())).await;
            idle_time = self.activity.idle_time();
        }
    }

    /// Records that something was read from it.
    pub(super) fn record_read(&self) {
        self.activity.has_read.store(true, Ordering::Relaxed);
    }

    /// Records whether everything written to it has left hyper's buffer.
    pub(super) fn set_flushed(&self, flushed: bool) {
        self.activity.flushed.store(flushed, Ordering::Relaxed);
    }

    /// Returns once there was no request for [`BUFFER_IDLE_TIME`], all responses are written, and
    /// no part of the next request was read. It checks at least every `max_pause`.
    pub(super) async fn until_buffers_empty(&self, max_pause: Duration) {
        let activity = &self.activity;
        let mut pause = BUFFER_IDLE_TIME;
        loop {
            tokio::time::sleep(pause).await;
            pause = match activity.idle_time() {
                Some(idle) if idle < BUFFER_IDLE_TIME => BUFFER_IDLE_TIME - idle,
                Some(_) if self.has_had_request() && activity.has_no_buffered_bytes() => return,
                // A stream may be open for hours.
                _ => (pause.max(BUFFER_IDLE_TIME) * 2).min(max_pause),
            };
        }
    }

    /// Returns `time` after the connection was opened, if no valid credential was presented by
    /// then.
    pub(super) async fn until_login_timeout(&self, time: Duration) {
        tokio::time::sleep_until(self.activity.since + time).await;
        if self.activity.authenticated.load(Ordering::Relaxed) {
            std::future::pending().await
        }
    }
}

#[cfg(test)]
impl Connection {
    /// Returns a connection from 192.0.2.1 whose peer has presented a certificate with these names.
    pub(super) fn testing(names: CertificateNames) -> Self {
        let table = ConnectionTable::for_agents(&Limits::default());
        let admission = table.admit(IpAddr::from([192, 0, 2, 1]), true);
        let mut connection = admission.map_err(str::to_owned).unwrap().connection;
        connection.names = names;
        connection
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut connections = self.table.connections.lock();
        let was_unauthenticated = connections.promote(self.from, self.id);
        // An evicted connection was removed from the counts when it was evicted.
        if was_unauthenticated || self.activity.authenticated.load(Ordering::Relaxed) {
            connections.remove(self.from);
        }
    }
}

/// Keeps a connection from being idle.
pub(super) struct OpenRequest(Arc<Activity>);

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.start_idle();
        self.0.has_read.store(false, Ordering::Relaxed);
        self.0.requests.fetch_sub(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests;
