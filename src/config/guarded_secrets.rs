//! The operator's own secrets: fingerprints of values that must never leave.

use crate::detect::secret::Own;

/// `[[policy.NAME.secret]]`: what a policy guards. The values were wiped when the file had been read.
#[derive(Clone, Debug, Default)]
pub struct OwnConfig {
    /// Fingerprints of the values and of their encodings.
    pub guarded: Own,
}
