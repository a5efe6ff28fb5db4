//! Rules of the kind `secret`. They find keys and passwords by their shape, by the names that they
//! are assigned to, because the operator listed them, or because another server sent them.
//!
//! One scan of a text finds the literals that shapes begin with, forwards and backwards, and the
//! words that names of secrets contain. It skips blanks, quotes and signs that may separate the
//! pieces of a secret. Encoded data is decoded and scanned in turn.

mod begin;
mod budget;
mod check;
mod class;
mod context;
mod decode;
mod engine;
mod escape;
mod fingerprint;
mod guarded_values;
mod host_label;
mod mirror;
mod name;
mod pieces;
mod random;
mod reference;
mod separated;
mod session_secrets;
mod shape;
mod sieve;
mod spec;

pub(super) use escape::unescape;
pub use fingerprint::{Fingerprints, fingerprint};
pub use guarded_values::GuardedValues;
pub(super) use guarded_values::for_each_form;
pub use session_secrets::{SecretUpdate, SessionSecrets, UPSTREAMS, remember};
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
