//! Results that were too long to be returned at once.

use crate::protocol::Context;

/// A request for a part of a result.
#[derive(Clone, Copy, Debug)]
pub struct ResultPage<'a> {
    /// The agent that requests it and the upstream that sent the result.
    pub context: &'a Context,
    /// `read`, or `gone` if the part is not stored for this session.
    pub outcome: &'static str,
    /// Length of the part in bytes.
    pub bytes: usize,
}
