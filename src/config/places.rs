//! The files and hosts that calls may reach: `roots` and `urls` of a policy.

use std::time::Duration;

use crate::detect::url::HostList;

/// The files and hosts that calls may reach.
#[derive(Clone, Debug, Default)]
pub struct PlacesConfig {
    /// Folders that paths must stay in; without any, all paths are allowed (`roots`).
    pub roots: Vec<String>,
    /// Internal hosts that may be reached nevertheless, and hosts that may not (`urls`).
    pub urls: HostList,
    /// Maximum time for resolving host names before a call is sent; not resolved if not set
    /// (`urls.resolve`, `urls.resolve_ms`).
    pub resolve: Option<Duration>,
}
