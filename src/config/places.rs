//! Where calls may reach: `roots` and `urls` of a policy.

use std::time::Duration;

use crate::detect::url::HostList;

/// Where calls may reach.
#[derive(Clone, Debug, Default)]
pub struct PlacesConfig {
    /// Folders that paths must stay in; without any, nothing is outside (`roots`).
    pub roots: Vec<String>,
    /// Hosts that may be reached even though they are internal, and such that may not (`urls`).
    pub urls: HostList,
    /// Names of hosts are looked up before a call is sent, which takes so long at the most (`urls.resolve`,
    /// `urls.resolve_ms`).
    pub resolve: Option<Duration>,
}
