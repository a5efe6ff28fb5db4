//! What a message is judged with.

use std::sync::Arc;

use super::caps::Paging;
use super::classify::Classified;
use super::definitions::Pins;
use super::joined::Heard;
use super::memory::Memory;
use super::tools::Tools;
use crate::detect::shadow::Names;
use crate::detect::url::Answers;
use crate::detect::work::WorkLimits;

/// What a message is judged with, beyond its own bytes: all optional. It is owned, so that it can go to another thread, and
/// cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct InspectContext {
    /// The upstream's tools, as its lists define them.
    pub tools: Option<Arc<Tools>>,
    /// What earlier messages of the session left behind.
    pub memory: Option<Memory>,
    /// The addresses of host names, once they were looked up.
    pub answers: Option<Arc<Answers>>,
    /// How results that are too long are kept; without it they are cut.
    pub paging: Option<Paging>,
    /// The upstream's pinned definitions.
    pub pins: Option<Arc<Pins>>,
    /// The tools of all upstreams, and the name by which this one is pinned among them.
    pub names: Option<(Arc<Names>, Arc<str>)>,
    /// The scores of the external classifier, once it was asked.
    pub classified: Option<Arc<Classified>>,
    /// The last texts of the same stream that the agent received.
    pub heard: Heard,
    /// Whether findings hold the text in which they were found, for explaining them.
    pub trace: bool,
    /// Limits on the work that the message can cause beyond its own bytes.
    pub work: WorkLimits,
}
