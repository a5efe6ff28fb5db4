//! The token for requests to the admin port: created at startup, written to a file that only its
//! owner can read.

use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::time::Instant;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::failed_logins::{Digest as Shown, FailedLogins, SecretError};
use crate::approval::private;

/// A token, of which only the digest is kept, and the invalid ones that were presented instead.
pub(super) struct Token {
    sha256: Shown,
    guesses: FailedLogins,
}

impl Token {
    /// Creates a token and writes it to `file`. At most `guesses` invalid ones of each address are
    /// checked within a minute.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn create(file: &Path, guesses: usize) -> io::Result<Self> {
        let token = secret();
        private(file, format!("{token}\n").as_bytes())?;
        Ok(Self {
            sha256: digest(&token),
            guesses: FailedLogins::new(guesses),
        })
    }

    /// Returns its digest.
    pub(super) fn sha256(&self) -> [u8; 32] {
        self.sha256
    }

    /// Checks a token from an address.
    ///
    /// # Errors
    /// As [`FailedLogins::judge`].
    pub(super) fn check(&self, from: IpAddr, shown: &str, now: Instant) -> Result<(), SecretError> {
        let shown = digest(shown.trim());
        self.guesses
            .judge(from, &shown, shown.ct_eq(&self.sha256).into(), now)
    }

    /// Checks the bearer token of a request. A request without one does not count as a guess.
    ///
    /// # Errors
    /// As [`Token::check`].
    pub(super) fn check_bearer(
        &self,
        from: IpAddr,
        headers: &HeaderMap,
        now: Instant,
    ) -> Result<(), SecretError> {
        let shown = headers
            .get(AUTHORIZATION)
            .and_then(|value| value.to_str().ok());
        let shown = shown.and_then(|value| value.strip_prefix("Bearer "));
        self.check(from, shown.ok_or(SecretError::Wrong)?, now)
    }
}

/// Returns a secret of 244 random bits.
pub(super) fn secret() -> String {
    format!(
        "{}{}",
        uuid::Uuid::new_v4().simple(),
        uuid::Uuid::new_v4().simple()
    )
}

/// Returns the digest of a secret, the only part of it that is kept.
pub(super) fn digest(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}
