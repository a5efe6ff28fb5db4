//! The policy's limits on what calls may reach. Detectors report violations; rules decide what
//! happens then.

use super::path::{GateFiles, Roots};
use super::secret::GuardedValues;
use super::url::Hosts;

/// What calls may reach: one value per upstream, or per line of `lychgate inspect --jsonl`.
#[derive(Clone, Debug, Default)]
pub struct AccessScope {
    /// Folders that paths must stay in.
    pub roots: Roots,
    /// Hosts that URLs may or may not name.
    pub hosts: Hosts,
    /// Values that must never be sent.
    pub guarded_values: GuardedValues,
    /// The gate's own files.
    pub gate_files: GateFiles,
}
