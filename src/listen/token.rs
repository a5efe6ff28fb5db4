//! The token that people show to the admin port: made at the start, written to a file for its owner alone.

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

/// A token, of which only the digest is kept here, and the wrong ones that were shown in its place.
pub(super) struct Token {
    sha256: Shown,
    guesses: FailedLogins,
}

impl Token {
    /// Makes one and writes it to `file`. Of each address, `guesses` wrong ones are checked within a minute.
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

    /// Its digest.
    pub(super) fn sha256(&self) -> [u8; 32] {
        self.sha256
    }

    /// Checks what an address shows.
    ///
    /// # Errors
    /// As [`Guesses::judge`].
    pub(super) fn check(&self, from: IpAddr, shown: &str, now: Instant) -> Result<(), SecretError> {
        let shown = digest(shown.trim());
        self.guesses
            .judge(from, &shown, shown.ct_eq(&self.sha256).into(), now)
    }

    /// Checks the bearer token of a request. A request without one is no guess.
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

/// 244 random bits.
pub(super) fn secret() -> String {
    format!(
        "{}{}",
        uuid::Uuid::new_v4().simple(),
        uuid::Uuid::new_v4().simple()
    )
}

/// What is kept of a secret.
pub(super) fn digest(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}
