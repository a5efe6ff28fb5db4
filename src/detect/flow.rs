//! Rules of the kind `flow`: what came in may not go out unseen.
//!
//! Of what was quarantined, and of what untrusted and private servers send, pieces are remembered that would be known again
//! ([`Piece`]), by keyed hashes alone. What an agent sends is taken to pieces in the same way, in several readings, and
//! compared. What the agent itself said before anyone else did is nobody else's.

mod engine;
mod hash;
mod net;
mod number;
mod piece;
mod session;
mod spec;
mod squeeze;
mod traces;
mod words;

pub use piece::Piece;
pub use session::{Here, Learnt, Session, Sides, Source};
pub use spec::{Spec, To};
pub use traces::{From, TraceLimits, Traces};

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
