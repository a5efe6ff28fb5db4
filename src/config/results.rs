//! Limits on stored results that were too long to be delivered at once.

use std::time::Duration;

/// Limits for each agent. In the file, the name of each limit includes its unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredResultLimits {
    /// Maximum number of texts: `kept_results`. None are stored if it is 0.
    pub count: usize,
    /// Maximum total number of bytes: `kept_result_bytes`.
    pub bytes: usize,
    /// Maximum age: `kept_result_seconds`.
    pub age: Duration,
}

impl Default for StoredResultLimits {
    fn default() -> Self {
        Self {
            count: 32,
            bytes: 16 << 20,
            age: Duration::from_secs(900),
        }
    }
}
