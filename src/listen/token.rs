//! The token that people show to the admin port: made at the start, written to a file for its owner alone.

use std::io;
use std::path::Path;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::proxy::approve::private;

/// A token, of which only the digest is kept here.
pub(super) struct Token([u8; 32]);

impl Token {
    /// Makes one and writes it to `file`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn make(file: &Path) -> io::Result<Self> {
        let token = secret();
        private(file, format!("{token}\n").as_bytes())?;
        Ok(Self(digest(&token)))
    }

    /// Its digest.
    pub(super) fn sha256(&self) -> [u8; 32] {
        self.0
    }

    /// Whether this is it.
    pub(super) fn is(&self, shown: &str) -> bool {
        digest(shown.trim()).ct_eq(&self.0).into()
    }

    /// Whether a request bears it.
    pub(super) fn is_borne(&self, headers: &HeaderMap) -> bool {
        let shown = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        shown.and_then(|value| value.strip_prefix("Bearer ")).is_some_and(|shown| self.is(shown))
    }
}

/// 244 random bits.
pub(super) fn secret() -> String {
    format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple())
}

/// What is kept of a secret.
pub(super) fn digest(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}
