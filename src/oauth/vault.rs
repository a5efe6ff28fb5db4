//! The vault: logins at servers, sealed, one file for each upstream and principal.
//!
//! A file's name is a hash, so that nothing can be read of it. Files are put in place whole (`folder`), each sealed with a key
//! of its own (`seal`) under the key of the vault, which is kept elsewhere (`keys`). Several processes and machines may share
//! the folder; which of them renews a login is settled by leases (`lease`).

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
pub use crate::seal::Sealed;
use crate::seal::{KeyUse, Keychain, Keys, Sources, draw, state_folder};

/// What the keys are for.
const LOGINS: KeyUse = KeyUse {
    of: "the vault",
    option: "`vault_key` under `[oauth]`",
    file: "vault.key",
};
/// Shortest and longest time between two looks at a lease that somebody has.
const NAPS: [Duration; 2] = [Duration::from_millis(10), Duration::from_millis(200)];
/// What is locked while a key is made that cannot be made by one process alone.
const MAKING_KEY: &str = "key";
/// Leases are waited for as long as so many holders may take one after the other.
const HOLDERS: u32 = 4;

/// The vault. A clone is the same vault.
#[derive(Clone)]
pub struct Vault(Arc<Inner>);

struct Inner {
    folder: Folder,
    keys: Keychain,
    lease: Duration,
    /// Who in this process is next to get a lease: they need not all look at the disk.
    turns: Mutex<HashMap<String, Weak<tokio::sync::Mutex<()>>>>,
}

#[derive(Debug, Default)]
pub struct VaultListing {
    /// All logins that can be opened, by upstream and principal.
    pub accounts: Vec<Account>,
    /// Why the others cannot.
    pub faults: Vec<VaultError>,
}

/// What a change of keys did.
#[derive(Debug, Default)]
pub struct Rekeyed {
    /// Logins that are now sealed with the first key.
    pub anew: usize,
    /// Logins that were.
    pub before: usize,
    /// Why others could not be sealed anew.
    pub faults: Vec<VaultError>,
}

/// The right to renew one login, until it is dropped or over. Read the account anew once you have it: another may have just
/// renewed it.
pub struct Lease {
    held: Option<HeldLease>,
    turn: Option<tokio::sync::OwnedMutexGuard<()>>,
}

impl Vault {
    /// The vault that the config names. Makes nothing on disk until something is to be written.
    ///
    /// # Errors
    /// There is no folder for it, others can look into it, or a key given as a value is none.
    pub fn open(config: &OAuthConfig) -> Result<Self, VaultError> {
        let of_user = || state_folder().map(|folder| folder.join("vault"));
        let folder = Folder::new(
            config
                .vault
                .clone()
                .or_else(of_user)
                .ok_or(VaultError::NoFolder)?,
        );
        let sources = Sources::new(
            LOGINS,
            &config.vault_key,
            &config.earlier_vault_keys,
            folder.path(),
        )?;
        folder.there()?;
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

    /// The login of a principal at an upstream, if there is one.
    ///
    /// # Errors
    /// It cannot be read or opened.
    pub async fn read(
        &self,
        upstream: &str,
        principal: &Principal,
    ) -> Result<Option<Account>, VaultError> {
        let name = name(upstream, principal);
        self.off_thread(move |inner| inner.read(&name)).await
    }

    /// What tells one version of a login from another, without reading it; `None` where there is no login.
    ///
    /// # Errors
    /// The system does not say.
    pub async fn stamp(
        &self,
        upstream: &str,
        principal: &Principal,
    ) -> Result<Option<Stamp>, VaultError> {
        let name = name(upstream, principal);
        self.off_thread(move |inner| inner.folder.stamp(&name))
            .await
    }

    /// Keeps a login in the place of what is known of that principal at that upstream. Goes on to its end once begun, even
    /// if nobody waits for it any more.
    ///
    /// # Errors
    /// It cannot be written, or what is there cannot be opened: that is never written over. In both cases what was there is
    /// still there.
    pub async fn write(&self, account: &Account) -> Result<(), VaultError> {
        let account = account.clone();
        self.off_thread(move |inner| inner.write(&account)).await
    }

    /// Forgets a login, also one that cannot be opened; whether there was one.
    ///
    /// # Errors
    /// It cannot be removed.
    pub async fn erase(&self, upstream: &str, principal: &Principal) -> Result<bool, VaultError> {
        let name = name(upstream, principal);
        self.off_thread(move |inner| inner.folder.remove(&name))
            .await
    }

    /// All logins.
    ///
    /// # Errors
    /// The folder cannot be read, or the key cannot be had.
    pub async fn list(&self) -> Result<VaultListing, VaultError> {
        self.off_thread(Inner::list).await
    }

    /// Seals everything with the first key that is not yet.
    ///
    /// # Errors
    /// The folder cannot be read, or the key cannot be had.
    pub async fn rekey(&self) -> Result<Rekeyed, VaultError> {
        let mut done = Rekeyed::default();
        for name in self.off_thread(|inner| inner.folder.sweep()).await? {
            let sealed = async {
                let _lease = self.lease_of(name.clone()).await?;
                self.off_thread(move |inner| inner.seal_anew(&name)).await
            };
            match sealed.await {
                Ok(Some(true)) => done.anew += 1,
                Ok(Some(false)) => done.before += 1,
                Ok(None) => {}
                Err(error) if error.is_of_one() => done.faults.push(error),
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    /// The right to renew a login, among all processes and machines that share the folder. Waits for its turn, for as long as
    /// a few holders may take.
    ///
    /// # Errors
    /// It is not to be had in that time, or the folder cannot be used.
    pub async fn lease(&self, upstream: &str, principal: &Principal) -> Result<Lease, VaultError> {
        self.lease_of(name(upstream, principal)).await
    }

    async fn lease_of(&self, name: String) -> Result<Lease, VaultError> {
        let patience = self.0.patience();
        let taken = async {
            let turn = self.0.turn(&name).lock_owned().await;
            let mut waiter = LeaseWaiter::new(self.0.folder.lease(&name), self.0.lease);
            let [mut nap, longest] = NAPS;
            loop {
                // What is taken and no longer wanted by then is dropped where it was taken, and so given back.
                let (back, held) = self
                    .off_thread(move |inner| {
                        inner.folder.make()?;
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
                waiter = back;
                tokio::time::sleep(jittered(nap)).await;
                nap = (nap * 2).min(longest);
            }
        };
        tokio::time::timeout(patience, taken)
            .await
            .unwrap_or(Err(VaultError::Busy { waited: patience }))
    }

    /// Does file work where it may block.
    async fn off_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> Result<T, VaultError> + Send + 'static,
    ) -> Result<T, VaultError> {
        let inner = self.0.clone();
        let done = tokio::task::spawn_blocking(move || work(&inner)).await;
        done.unwrap_or_else(|_| {
            Err(VaultError::of(self.path())(io::Error::other(
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
    /// How long nobody else may take it: a request that may take longer is better not begun.
    pub fn left(&self) -> Duration {
        self.held.as_ref().map_or(Duration::ZERO, HeldLease::left)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // In this order: the next in this process is to find it free.
        let back = (self.held.take(), self.turn.take());
        match tokio::runtime::Handle::try_current() {
            // A runtime that has ended drops the work undone, and with it what it holds.
            Ok(runtime) => drop(runtime.spawn_blocking(move || drop(back))),
            Err(_) => drop(back),
        }
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("left", &self.left()).finish()
    }
}

impl Inner {
    fn read(&self, name: &str) -> Result<Option<Account>, VaultError> {
        let Some(file) = self.folder.read(name)? else {
            return Ok(None);
        };
        let keys = self.keys.to_open(&file)?;
        let open = seal::open(keys.all(), name, file);
        open.map(Some).map_err(|why| VaultError::Sealed {
            file: self.folder.file(name),
            why,
        })
    }

    fn write(&self, account: &Account) -> Result<(), VaultError> {
        let name = name(&account.upstream, &account.party.principal);
        // Opened only to know that it can be: what a lost key sealed may be found again.
        self.read(&name)?;
        self.put(&name, account)
    }

    fn put(&self, name: &str, account: &Account) -> Result<(), VaultError> {
        self.folder.make()?;
        let keys = self.keys_to_write()?;
        let first = keys.seals(self.keys.sources())?;
        let file =
            seal::seal(first, name, account).map_err(VaultError::of(&self.folder.file(name)))?;
        self.folder.write(name, &file)
    }

    fn seal_anew(&self, name: &str) -> Result<Option<bool>, VaultError> {
        let Some(file) = self.folder.read(name)? else {
            return Ok(None);
        };
        if self
            .keys
            .to_open(&file)?
            .first()
            .is_some_and(|first| first.sealed(&file))
        {
            // Opened all the same: a change of keys is when one wants to hear of damage.
            return Ok(self.read(name)?.map(|_| false));
        }
        let Some(account) = self.read(name)? else {
            return Ok(None);
        };
        self.put(name, &account)?;
        Ok(Some(true))
    }

    fn list(&self) -> Result<VaultListing, VaultError> {
        let mut kept = VaultListing::default();
        for name in self.folder.sweep()? {
            match self.read(&name) {
                Ok(account) => kept.accounts.extend(account),
                Err(error) if error.is_of_one() => kept.faults.push(error),
                Err(error) => return Err(error),
            }
        }
        kept.accounts.sort_by(|a, b| {
            (&a.upstream, &a.party.principal).cmp(&(&b.upstream, &b.party.principal))
        });
        Ok(kept)
    }

    /// Keys of which the first is there: made, where nothing would be lost by that.
    fn keys_to_write(&self) -> Result<Arc<Keys>, VaultError> {
        let spares = |keys: &Keys| {
            for name in self.folder.sweep()? {
                if self
                    .folder
                    .read(&name)?
                    .is_some_and(|file| !keys.fit(&file))
                {
                    let at = self.keys.sources().first_named();
                    let file = self.folder.file(&name);
                    let hint = "restore the key, or add the one that was used to `earlier_vault_keys` under `[oauth]`";
                    let told = format!(
                        "not found in {at}, but `{}` is encrypted\n  hint: {hint}",
                        file.display()
                    );
                    return Err(VaultError::Key(told));
                }
            }
            Ok(())
        };
        self.keys.to_seal(|| self.wait_to_make_key(), spares)
    }

    fn wait_to_make_key(&self) -> Result<HeldLease, VaultError> {
        let mut waiter = LeaseWaiter::new(self.folder.lease(MAKING_KEY), self.lease);
        let began = Instant::now();
        let patience = self.patience();
        loop {
            if let Some(held) = waiter.try_take()? {
                return Ok(held);
            }
            if began.elapsed() > patience {
                return Err(VaultError::Busy { waited: patience });
            }
            std::thread::sleep(jittered(NAPS[0]));
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

    fn patience(&self) -> Duration {
        self.lease * HOLDERS + Duration::from_secs(10)
    }
}

/// The name of a login's file: a hash of whose it is.
fn name(upstream: &str, principal: &Principal) -> String {
    let (kind, who) = match principal {
        Principal::Gate => ("gate", ""),
        Principal::Agent(name) => ("agent", name.as_str()),
        Principal::User(name) => ("user", name.as_str()),
    };
    let mut hash = Sha256::new_with_prefix(b"lychgate vault: name of a login");
    for part in [upstream, kind, who] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    format!("{:x}", hash.finalize())
}

/// Somewhat longer than that, so that not all look at once.
fn jittered(nap: Duration) -> Duration {
    let mut byte = [0];
    draw(&mut byte).unwrap_or_default();
    nap + nap * u32::from(byte[0]) / 256
}
