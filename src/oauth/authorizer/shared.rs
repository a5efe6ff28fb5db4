//! What the logins at all servers share.

use std::sync::Arc;

use tokio::sync::watch;

use crate::config::OAuthConfig;
use crate::oauth::vault::{Account, Vault, VaultError};
use crate::oauth::{LoginError, Logins};
use crate::record::Recorder;

/// What all upstreams' logins share.
pub struct Shared {
    /// `[oauth]`.
    pub config: OAuthConfig,
    /// Where logins are kept; `None` where there is no folder for it and none is named, which matters once there is one to keep.
    pub(super) vault: Option<Vault>,
    /// Logins that are owed.
    pub logins: Logins,
    /// Who hears of what happens.
    pub recorder: Arc<Recorder>,
    /// How many renewals are under way.
    pub(super) renewing: watch::Sender<usize>,
}

impl Shared {
    /// Opens the vault; nothing is written before there is something to keep.
    ///
    /// # Errors
    /// The vault cannot be used.
    pub fn new(config: &OAuthConfig, recorder: Arc<Recorder>) -> Result<Self, VaultError> {
        let vault = match Vault::open(config) {
            Err(VaultError::NoFolder) => None,
            opened => Some(opened?),
        };
        let logins = Logins::new(config);
        let renewing = watch::Sender::new(0);
        Ok(Self {
            config: config.clone(),
            vault,
            logins,
            recorder,
            renewing,
        })
    }

    /// The logins that are kept; none where there is no place for any.
    ///
    /// # Errors
    /// The vault cannot be read.
    pub async fn accounts(&self) -> Result<Vec<Account>, VaultError> {
        match &self.vault {
            Some(vault) => vault.list().await.map(|kept| kept.accounts),
            None => Ok(Vec::new()),
        }
    }

    pub(super) fn vault(&self) -> Result<&Vault, LoginError> {
        self.vault
            .as_ref()
            .ok_or(VaultError::NoFolder)
            .map_err(super::vault)
    }

    /// Waits for the renewals under way, for as long as one may take: what a server has just given in the place of a
    /// refresh token must not go down with the process.
    pub async fn idle(&self) {
        let mut renewing = self.renewing.subscribe();
        let all = renewing.wait_for(|renewing| *renewing == 0);
        if tokio::time::timeout(self.config.request + self.config.request, all)
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
