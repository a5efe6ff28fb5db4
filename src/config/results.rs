//! Limits of stored results that were too long to be delivered at once.

use std::time::Duration;

/// For each agent on its own. In the file each has its unit in its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredResultLimits {
    /// How many texts: `kept_results`. None at all if it is 0.
    pub count: usize,
    /// How many bytes, all together: `kept_result_bytes`.
    pub bytes: usize,
    /// How long: `kept_result_seconds`.
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
