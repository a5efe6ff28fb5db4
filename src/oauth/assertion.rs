//! JWTs: those that the gate signs to authenticate itself, and those that agents present.
//!
//! `jsonwebtoken` implements the format, `ring` the cryptography (`provider`). Claims are parsed by
//! this project's own strict reader, so that a token cannot name two identities with a duplicate
//! key.

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
