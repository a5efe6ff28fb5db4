//! Answers that were too long to be shown at once.

use crate::protocol::Context;

/// A part of an answer that an agent asks for.
#[derive(Clone, Copy, Debug)]
pub struct ResultPage<'a> {
    /// Who asks, and whose answer it was.
    pub context: &'a Context,
    /// `read`, or `gone` where it is not kept for this session.
    pub outcome: &'static str,
    /// Its length in bytes.
    pub bytes: usize,
}
