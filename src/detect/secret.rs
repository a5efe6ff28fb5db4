//! Rules of the kind `secret`: keys and passwords by their shape, by the company they keep, because the operator named them,
//! or because they came from another server.
//!
//! One scan of a text, past the blanks, quotes and signs that may be between the pieces of a secret, finds the literals that
//! shapes begin with, forwards and backwards, and the words that names of secrets hold. What is encoded is opened and looked at
//! in turn.

mod begin;
mod budget;
mod check;
mod class;
mod context;
mod decode;
mod engine;
mod escape;
mod mirror;
mod name;
mod own;
mod pieces;
mod prints;
mod random;
mod reference;
mod seen;
mod separated;
mod shape;
mod sieve;
mod spec;

pub(super) use escape::unescape;
pub use own::Own;
pub(super) use own::forms;
pub use prints::{Prints, fingerprint};
pub use seen::{Learnt, Seen, UPSTREAMS, remember};
pub use shape::Shape;
pub use spec::Spec;

use super::{Detector, Kind, Match, Place};
use crate::document::Table;

/// The kind `secret`.
#[derive(Debug)]
pub struct Secret;

impl Kind for Secret {
    type Spec = Spec;

    fn read(table: &Table<'_>) -> Option<Spec> {
        spec::read(table)
    }

    fn build(rules: &[(usize, &Spec)]) -> Result<Box<dyn Detector>, Vec<(usize, String)>> {
        Ok(Box::new(engine::Secrets::new(rules)?))
    }
}
