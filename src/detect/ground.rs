//! What a policy says of where calls may reach. Detectors ask it; rules say what is made of the answer.

use super::path::{GateFiles, Roots};
use super::secret::Own;
use super::url::Hosts;

/// Where calls may reach: one per upstream, or per line of `lychgate inspect --jsonl`.
#[derive(Clone, Debug, Default)]
pub struct Ground {
    /// Folders that paths must stay in.
    pub roots: Roots,
    /// Hosts that URLs may and may not name.
    pub hosts: Hosts,
    /// Values that must never leave.
    pub own: Own,
    /// The gate's own files.
    pub gate: GateFiles,
}
