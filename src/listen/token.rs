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
use crate::protocol::secret;
use crate::seal::replace_file;

/// A token, of which only the digest is kept, and the invalid ones that were presented instead.
pub(super) struct Token {
    sha256: Shown,
    failed_logins: FailedLogins,
}

impl Token {
    /// Creates a token and writes it to `file`. At most `max_failures` invalid ones of each address
    /// are checked within a minute.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn create(file: &Path, max_failures: usize) -> io::Result<Self> {
        let token = secret();
        replace_file(file, format!("{token}\n").as_bytes(), 0o600)?;
        Ok(Self {
            sha256: digest(&token),
            failed_logins: FailedLogins::new(max_failures),
        })
    }

    /// Returns its digest.
    pub(super) fn sha256(&self) -> [u8; 32] {
        self.sha256
    }

    /// Checks a token from an address.
    ///
    /// # Errors
    /// As [`FailedLogins::check_secret`].
    pub(super) fn check(&self, from: IpAddr, token: &str, now: Instant) -> Result<(), SecretError> {
        let token_digest = digest(token.trim());
        self.failed_logins.check_secret(
            from,
            &token_digest,
            token_digest.ct_eq(&self.sha256).into(),
            now,
        )
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
        let header = headers
            .get(AUTHORIZATION)
            .and_then(|value| value.to_str().ok());
        let token = header.and_then(|value| value.strip_prefix("Bearer "));
        self.check(from, token.ok_or(SecretError::Invalid)?, now)
    }
}

/// Returns the digest of a secret, the only part of it that is kept.
pub(super) fn digest(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}
