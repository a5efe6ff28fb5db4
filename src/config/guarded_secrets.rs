//! The operator's own secrets: fingerprints of values that must never leave.

use crate::detect::secret::GuardedValues;

/// `[[policy.NAME.secret]]`: the secrets that a policy guards. The values were erased from memory
/// after the file was read.
#[derive(Clone, Debug, Default)]
pub struct GuardedSecretsConfig {
    /// Fingerprints of the values and of their encoded forms.
    pub guarded: GuardedValues,
}
