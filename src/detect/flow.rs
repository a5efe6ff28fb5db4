//! Rules of the kind `flow`: detect data that came in and is about to go out again.
//!
//! From quarantined content, and from the messages of untrusted and private servers, recognizable
//! pieces are remembered ([`Piece`]), as keyed hashes only. An agent's message is split into pieces
//! in the same way, in several readings, and compared. A piece that the agent itself sent before
//! any server did counts as the agent's own.

mod compact_text;
mod engine;
mod hash;
mod net;
mod number;
mod piece;
mod session;
mod spec;
mod taint_store;
mod words;

pub use piece::Piece;
pub use session::{DataLabels, FlowContext, FlowUpdate, Session, Source};
pub use spec::{Destination, Spec};
pub use taint_store::{TaintLimits, TaintReason, TaintStore};

use super::{Detector, Kind};
use crate::document::Table;

/// The kind `flow`.
#[derive(Debug)]
pub struct Flow;

impl Kind for Flow {
    type Spec = Spec;

    fn read(table: &Table<'_>) -> Option<Spec> {
        spec::read(table)
    }

    fn build(rules: &[(usize, &Spec)]) -> Result<Box<dyn Detector>, Vec<(usize, String)>> {
        Ok(Box::new(engine::Flows::new(rules)))
    }
}

#[cfg(test)]
mod tests;
