//! State shared by the logins at all servers.

use std::sync::Arc;

use tokio::sync::watch;

use crate::config::OAuthConfig;
use crate::oauth::vault::{Account, Vault, VaultError};
use crate::oauth::{LoginError, Logins};
use crate::record::Recorder;

/// State shared by the logins of all upstreams.
pub struct Shared {
    /// `[oauth]`.
    pub config: OAuthConfig,
    /// The store of logins; `None` if no folder is configured and there is no default, which
    /// matters only once there is a login to store.
    pub(super) vault: Option<Vault>,
    /// Pending logins.
    pub logins: Logins,
    /// Recorder of login events.
    pub recorder: Arc<Recorder>,
    /// Number of renewals in progress.
    pub(super) renewals: watch::Sender<usize>,
}

impl Shared {
    /// Opens the vault; nothing is written until there is something to store.
    ///
    /// # Errors
    /// Fails if the vault cannot be used.
    pub fn new(config: &OAuthConfig, recorder: Arc<Recorder>) -> Result<Self, VaultError> {
        let vault = match Vault::open(config) {
            Err(VaultError::NoFolder) => None,
            opened => Some(opened?),
        };
        let logins = Logins::new(config);
        let renewals = watch::Sender::new(0);
        Ok(Self {
            config: config.clone(),
            vault,
            logins,
            recorder,
            renewals,
        })
    }

    /// Returns the stored logins; none if there is no vault.
    ///
    /// # Errors
    /// Fails if the vault cannot be read.
    pub async fn accounts(&self) -> Result<Vec<Account>, VaultError> {
        match &self.vault {
            Some(vault) => vault.list().await.map(|listing| listing.accounts),
            None => Ok(Vec::new()),
        }
    }

    pub(super) fn vault(&self) -> Result<&Vault, LoginError> {
        Ok(self.vault.as_ref().ok_or(VaultError::NoFolder)?)
    }

    /// Waits for renewals in progress, for as long as one may take: a token that a server has just
    /// issued in place of a refresh token must not be lost when the process exits.
    pub async fn idle(&self) {
        let mut renewals = self.renewals.subscribe();
        let all_ended = renewals.wait_for(|renewing| *renewing == 0);
        if tokio::time::timeout(self.config.request + self.config.request, all_ended)
            .await
            .is_err()
        {
            tracing::warn!(
                limit = "request_seconds",
                "a token was being renewed at shutdown; its login may be lost"
            );
        }
    }
}
