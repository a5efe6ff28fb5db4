//! JWTs: those that the gate signs to prove who it is, and those that agents show.
//!
//! `jsonwebtoken` has the format, `ring` the cryptography (`provider`). What a token claims is read by the project's own
//! strict reader, so that a doubled key is no way to be two people at once.

mod claims;
mod keys;
mod provider;
mod sign;
mod verify;

pub use claims::Claims;
pub use keys::{Keys, KeysError};
pub use sign::{SignError, SigningKey};
pub use verify::{JwtError, SignedClaims, issuer_of};

#[cfg(test)]
mod tests;
