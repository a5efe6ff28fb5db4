//! The context in which a message is judged.

use std::sync::Arc;

use super::classify::Classified;
use super::clean_texts::CleanTexts;
use super::cross_block::StreamTail;
use super::definitions::Pins;
use super::memory::Memory;
use super::tools::Tools;
use super::truncate::Paging;
use crate::detect::shadow::Names;
use crate::detect::url::Answers;
use crate::detect::work::WorkLimits;

/// The inputs for judging a message beyond its own bytes, all of them optional. Owned, so that it
/// can be sent to another thread, and cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct InspectContext {
    /// The upstream's tools, as its lists define them.
    pub tools: Option<Arc<Tools>>,
    /// The state that earlier messages of the session left.
    pub memory: Option<Memory>,
    /// The addresses of host names, once they have been resolved.
    pub answers: Option<Arc<Answers>>,
    /// How results that are too long are stored; without it they are truncated.
    pub paging: Option<Paging>,
    /// The upstream's pinned definitions.
    pub pins: Option<Arc<Pins>>,
    /// The tools of all upstreams, and the name by which this one is pinned among them.
    pub names: Option<(Arc<Names>, Arc<str>)>,
    /// The scores of the external classifier, once it has been called.
    pub classified: Option<Arc<Classified>>,
    /// The last texts of the same stream that the agent received.
    pub stream_tail: StreamTail,
    /// Texts that the gate found clean before, which are not judged again. The verdict does not
    /// depend on them.
    pub clean_texts: Option<Arc<CleanTexts>>,
    /// Whether findings contain the text in which they were found, for explaining them.
    pub trace: bool,
    /// Limits on the work that the message can cause beyond its own bytes.
    pub work: WorkLimits,
}
