//! The vault: encrypted logins at servers, one file for each upstream and principal.
//!
//! The name of a file is a hash, so that it reveals nothing. Files are replaced atomically
//! (`folder`), and each is sealed with a key of its own (`seal`), derived from the key of the
//! vault, which is kept elsewhere (`keys`). Several processes and machines may share the folder;
//! leases determine which of them renews a login (`lease`).

mod account;
mod error;
mod folder;
mod lease;
mod seal;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sha2::{Digest, Sha256};

pub use account::Account;
pub use error::VaultError;
use folder::Folder;
pub use folder::Stamp;
use lease::{HeldLease, LeaseWaiter};

use super::Principal;
use crate::config::OAuthConfig;
pub use crate::seal::UnsealError;
use crate::seal::{KeyUse, Keychain, Keys, Sources, fill_random, state_folder};

/// The use of the vault's keys.
const LOGINS: KeyUse = KeyUse {
    store_name: "the vault",
    option: "`vault_key` under `[oauth]`",
    file: "vault.key",
};
/// Minimum and maximum interval between checks of a lease that another process holds.
const POLL_INTERVALS: [Duration; 2] = [Duration::from_millis(10), Duration::from_millis(200)];
/// The lease that is held while a key is created, so that only one process creates it.
const KEY_LEASE: &str = "key";
/// Number of successive holders for whose lease terms a lease is waited for.
const MAX_HOLDERS: u32 = 4;

/// The vault. Clones share all state.
#[derive(Clone)]
pub struct Vault(Arc<Inner>);

struct Inner {
    folder: Folder,
    keys: Keychain,
    lease: Duration,
    /// Who in this process may take a lease next, so that not all waiting callers check the disk.
    turns: Mutex<HashMap<String, Weak<tokio::sync::Mutex<()>>>>,
}

#[derive(Debug, Default)]
pub struct VaultListing {
    /// All logins that can be opened, by upstream and principal.
    pub accounts: Vec<Account>,
    /// Why the other logins cannot be opened.
    pub faults: Vec<VaultError>,
}

/// The result of a change of keys.
#[derive(Debug, Default)]
pub struct RekeyResult {
    /// Number of logins that were re-encrypted with the first key.
    pub rekeyed: usize,
    /// Number of logins that already were.
    pub unchanged: usize,
    /// Why other logins could not be re-encrypted.
    pub faults: Vec<VaultError>,
}

/// The right to renew one login, until it is dropped or expires. Read the account again once you
/// hold it: another process may have just renewed it.
pub struct Lease {
    held: Option<HeldLease>,
    turn: Option<tokio::sync::OwnedMutexGuard<()>>,
}

impl Vault {
    /// Opens the vault that the config names. Nothing is created on disk until something is
    /// written.
    ///
    /// # Errors
    /// Fails if there is no folder for it, if other users can access the folder, or if a key given
    /// as a value is not a valid key.
    pub fn open(config: &OAuthConfig) -> Result<Self, VaultError> {
        let default_folder = || state_folder().map(|folder| folder.join("vault"));
        let folder = Folder::new(
            config
                .vault
                .clone()
                .or_else(default_folder)
                .ok_or(VaultError::NoFolder)?,
        );
        let sources = Sources::new(
            LOGINS,
            &config.vault_key,
            &config.earlier_vault_keys,
            folder.path(),
        )?;
        folder.exists()?;
        let keys = Keychain::new(sources);
        let turns = Mutex::default();
        Ok(Self(Arc::new(Inner {
            folder,
            keys,
            lease: config.lease,
            turns,
        })))
    }

    pub fn path(&self) -> &Path {
        self.0.folder.path()
    }

    /// Returns the login of a principal at an upstream, if there is one.
    ///
    /// # Errors
    /// Fails if it cannot be read or opened.
    pub async fn read(
        &self,
        upstream: &str,
        principal: &Principal,
    ) -> Result<Option<Account>, VaultError> {
        let name = file_name(upstream, principal);
        self.off_thread(move |inner| inner.read(&name)).await
    }

    /// Returns a stamp that distinguishes versions of a login without reading it; `None` if there
    /// is no login.
    ///
    /// # Errors
    /// Fails on an I/O error.
    pub async fn stamp(
        &self,
        upstream: &str,
        principal: &Principal,
    ) -> Result<Option<Stamp>, VaultError> {
        let name = file_name(upstream, principal);
        self.off_thread(move |inner| inner.folder.stamp(&name))
            .await
    }

    /// Stores a login, replacing the previous one of that principal at that upstream. Once begun,
    /// it is completed even if the caller stops waiting.
    ///
    /// # Errors
    /// Fails if the login cannot be written, or if the existing one cannot be opened, which is
    /// never overwritten. In both cases the existing login is unchanged.
    pub async fn write(&self, account: &Account) -> Result<(), VaultError> {
        let account = account.clone();
        self.off_thread(move |inner| inner.write(&account)).await
    }

    /// Removes a login, even one that cannot be opened, and returns whether there was one.
    ///
    /// # Errors
    /// Fails if it cannot be removed.
    pub async fn erase(&self, upstream: &str, principal: &Principal) -> Result<bool, VaultError> {
        let name = file_name(upstream, principal);
        self.off_thread(move |inner| inner.folder.remove(&name))
            .await
    }

    /// Returns all logins.
    ///
    /// # Errors
    /// Fails if the folder cannot be read or the key cannot be obtained.
    pub async fn list(&self) -> Result<VaultListing, VaultError> {
        self.off_thread(Inner::list).await
    }

    /// Re-encrypts all logins that are not yet sealed with the first key.
    ///
    /// # Errors
    /// Fails if the folder cannot be read or the key cannot be obtained.
    pub async fn rekey(&self) -> Result<RekeyResult, VaultError> {
        let mut result = RekeyResult::default();
        for name in self.off_thread(|inner| inner.folder.sweep()).await? {
            let outcome = async {
                let _lease = self.lease_of(name.clone()).await?;
                self.off_thread(move |inner| inner.reseal(&name)).await
            };
            match outcome.await {
                Ok(Some(true)) => result.rekeyed += 1,
                Ok(Some(false)) => result.unchanged += 1,
                Ok(None) => {}
                Err(error) if error.concerns_one_login() => result.faults.push(error),
                Err(error) => return Err(error),
            }
        }
        Ok(result)
    }

    /// Acquires the right to renew a login, among all processes and machines that share the folder.
    /// Waits for as long as a few successive holders may take.
    ///
    /// # Errors
    /// Fails if the lease is not available in that time, or if the folder cannot be used.
    pub async fn lease(&self, upstream: &str, principal: &Principal) -> Result<Lease, VaultError> {
        self.lease_of(file_name(upstream, principal)).await
    }

    async fn lease_of(&self, name: String) -> Result<Lease, VaultError> {
        let max_wait = self.0.max_wait();
        let acquire = async {
            let turn = self.0.turn(&name).lock_owned().await;
            let mut waiter = LeaseWaiter::new(self.0.folder.lease(&name), self.0.lease);
            let [mut interval, longest] = POLL_INTERVALS;
            loop {
                // If the caller has stopped waiting, a lease that was taken is dropped in the
                // blocking task and so released.
                let (returned, held) = self
                    .off_thread(move |inner| {
                        inner.folder.create()?;
                        let held = waiter.try_take()?;
                        Ok((waiter, held))
                    })
                    .await?;
                if held.is_some() {
                    return Ok(Lease {
                        held,
                        turn: Some(turn),
                    });
                }
                waiter = returned;
                tokio::time::sleep(jittered(interval)).await;
                interval = (interval * 2).min(longest);
            }
        };
        tokio::time::timeout(max_wait, acquire)
            .await
            .unwrap_or(Err(VaultError::Busy { waited: max_wait }))
    }

    /// Runs file operations on a thread that may block.
    async fn off_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> Result<T, VaultError> + Send + 'static,
    ) -> Result<T, VaultError> {
        let inner = self.0.clone();
        let result = tokio::task::spawn_blocking(move || work(&inner)).await;
        result.unwrap_or_else(|_| {
            Err(VaultError::at(self.path())(io::Error::other(
                "what used it was ended",
            )))
        })
    }
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Vault").field(&self.path()).finish()
    }
}

impl Lease {
    /// Returns the time for which no other process may take the lease; a request that may take
    /// longer should not be started.
    pub fn remaining(&self) -> Duration {
        self.held
            .as_ref()
            .map_or(Duration::ZERO, HeldLease::remaining)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // In this order, so that the next caller in this process finds the lease free.
        let released = (self.held.take(), self.turn.take());
        match tokio::runtime::Handle::try_current() {
            // A runtime that has shut down drops the closure without running it, and with it the
            // lease.
            Ok(runtime) => drop(runtime.spawn_blocking(move || drop(released))),
            Err(_) => drop(released),
        }
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("left", &self.remaining())
            .finish()
    }
}

impl Inner {
    fn read(&self, name: &str) -> Result<Option<Account>, VaultError> {
        let Some(file) = self.folder.read(name)? else {
            return Ok(None);
        };
        let keys = self.keys.keys_to_open(&file)?;
        let account = seal::open(keys.all(), name, file);
        account.map(Some).map_err(|why| VaultError::Sealed {
            file: self.folder.file(name),
            why,
        })
    }

    fn write(&self, account: &Account) -> Result<(), VaultError> {
        let name = file_name(&account.upstream, &account.party.principal);
        // Opened only to check that it can be: the key of a file that cannot be opened may be
        // recovered later.
        self.read(&name)?;
        self.write_sealed(&name, account)
    }

    fn write_sealed(&self, name: &str, account: &Account) -> Result<(), VaultError> {
        self.folder.create()?;
        let keys = self.keys_to_write()?;
        let first = keys.sealing_key(self.keys.sources())?;
        let file =
            seal::seal(first, name, account).map_err(VaultError::at(&self.folder.file(name)))?;
        self.folder.write(name, &file)
    }

    fn reseal(&self, name: &str) -> Result<Option<bool>, VaultError> {
        let Some(file) = self.folder.read(name)? else {
            return Ok(None);
        };
        if self
            .keys
            .keys_to_open(&file)?
            .first()
            .is_some_and(|first| first.has_sealed(&file))
        {
            // Opened anyway, so that a change of keys reveals damaged files.
            return Ok(self.read(name)?.map(|_| false));
        }
        let Some(account) = self.read(name)? else {
            return Ok(None);
        };
        self.write_sealed(name, &account)?;
        Ok(Some(true))
    }

    fn list(&self) -> Result<VaultListing, VaultError> {
        let mut listing = VaultListing::default();
        for name in self.folder.sweep()? {
            match self.read(&name) {
                Ok(account) => listing.accounts.extend(account),
                Err(error) if error.concerns_one_login() => listing.faults.push(error),
                Err(error) => return Err(error),
            }
        }
        listing.accounts.sort_by(|a, b| {
            (&a.upstream, &a.party.principal).cmp(&(&b.upstream, &b.party.principal))
        });
        Ok(listing)
    }

    /// Returns keys that include the first one, which is created if nothing would be lost by that.
    fn keys_to_write(&self) -> Result<Arc<Keys>, VaultError> {
        let check_files = |keys: &Keys| {
            for name in self.folder.sweep()? {
                if self
                    .folder
                    .read(&name)?
                    .is_some_and(|file| !keys.has_key_for(&file))
                {
                    let source = self.keys.sources().describe_first();
                    let file = self.folder.file(&name);
                    let hint = "restore the key, or add the one that was used to `earlier_vault_keys` under `[oauth]`";
                    let message = format!(
                        "not found in {source}, but `{}` is encrypted\n  hint: {hint}",
                        file.display()
                    );
                    return Err(VaultError::Key(message));
                }
            }
            Ok(())
        };
        self.keys
            .keys_to_seal(|| self.wait_to_make_key(), check_files)
    }

    fn wait_to_make_key(&self) -> Result<HeldLease, VaultError> {
        let mut waiter = LeaseWaiter::new(self.folder.lease(KEY_LEASE), self.lease);
        let began = Instant::now();
        let max_wait = self.max_wait();
        loop {
            if let Some(held) = waiter.try_take()? {
                return Ok(held);
            }
            if began.elapsed() > max_wait {
                return Err(VaultError::Busy { waited: max_wait });
            }
            std::thread::sleep(jittered(POLL_INTERVALS[0]));
        }
    }

    fn turn(&self, name: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut turns = self.turns.lock();
        if let Some(turn) = turns.get(name).and_then(Weak::upgrade) {
            return turn;
        }
        turns.retain(|_, turn| turn.strong_count() > 0);
        let turn = Arc::default();
        turns.insert(name.to_owned(), Arc::downgrade(&turn));
        turn
    }

    fn max_wait(&self) -> Duration {
        self.lease * MAX_HOLDERS + Duration::from_secs(10)
    }
}

/// Returns the file name of a login: a hash of its upstream and principal.
fn file_name(upstream: &str, principal: &Principal) -> String {
    let (kind, owner) = match principal {
        Principal::Gate => ("gate", ""),
        Principal::Agent(name) => ("agent", name.as_str()),
        Principal::User(name) => ("user", name.as_str()),
    };
    let mut hash = Sha256::new_with_prefix(b"lychgate vault: name of a login");
    for part in [upstream, kind, owner] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    format!("{:x}", hash.finalize())
}

/// Returns a somewhat longer duration, so that not all waiting processes check at once.
fn jittered(interval: Duration) -> Duration {
    let mut byte = [0];
    fill_random(&mut byte).unwrap_or_default();
    interval + interval * u32::from(byte[0]) / 256
}
