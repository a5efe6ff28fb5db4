//! The files of the vault: seen by nobody else, put in place whole.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::error::VaultError;
use super::seal::FILE_BYTES;
use crate::seal::SealedFolder;

/// Logins that there is room for.
pub(super) const LOGINS: usize = 10_000;
/// Ends the name of a sealed file.
const SEALED: &str = ".sealed";
/// Ends the name of the folder of a lease.
const LEASE: &str = ".lease";
/// Begins the name of what is being written.
const NEW: &str = "new-";
/// After this long, what was being written has been given up: its writer has ended.
const GIVEN_UP: Duration = Duration::from_secs(600);
/// After this long without a login, its lease is not in use either.
const UNUSED: Duration = Duration::from_secs(24 * 3600);

/// The inode of a file, and when it was changed, in seconds and nanoseconds.
pub type Stamp = (u64, i64, i64);

/// The folder of the vault.
#[derive(Clone, Debug)]
pub(super) struct Folder(SealedFolder);

impl Folder {
    pub(super) fn new(path: PathBuf) -> Self {
        Self(SealedFolder::new(path))
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Where the login of this name is.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path().join(format!("{name}{SEALED}"))
    }

    /// Where the lease of this name is.
    pub(super) fn lease(&self, name: &str) -> PathBuf {
        self.path().join(format!("{name}{LEASE}"))
    }

    /// Makes it where it is not, and refuses one that others could look into.
    pub(super) fn make(&self) -> Result<(), VaultError> {
        Ok(self.0.create()?)
    }

    /// Whether it is there.
    ///
    /// # Errors
    /// Others could look into it.
    pub(super) fn there(&self) -> Result<bool, VaultError> {
        Ok(self.0.exists()?)
    }

    /// The version of the login's file; `None` if there is no such file.
    pub(super) fn stamp(&self, name: &str) -> Result<Option<Stamp>, VaultError> {
        let file = self.file(name);
        match fs::metadata(&file) {
            Ok(meta) => Ok(Some((meta.ino(), meta.mtime(), meta.mtime_nsec()))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(VaultError::of(&file)(error)),
        }
    }

    /// What is in the login's file; `None` where there is none. One byte more than may be, where it is too long.
    pub(super) fn read(&self, name: &str) -> Result<Option<Vec<u8>>, VaultError> {
        Ok(self
            .0
            .read(&format!("{name}{SEALED}"), FILE_BYTES as u64 + 1)?)
    }

    /// Puts it in the place of what is in the login's file. Whatever happens on the way, the file holds what it held or this.
    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), VaultError> {
        self.make()?;
        let names = self.sweep()?;
        if names.len() >= LOGINS && !names.iter().any(|there| there == name) {
            return Err(VaultError::Full {
                folder: self.path().to_owned(),
                limit: LOGINS,
            });
        }
        Ok(self.0.write(&format!("{name}{SEALED}"), bytes)?)
    }

    /// Removes the login's file; whether there was one.
    pub(super) fn remove(&self, name: &str) -> Result<bool, VaultError> {
        Ok(self.0.remove(&format!("{name}{SEALED}"))?)
    }

    /// The names of all logins; on the way, removes what writers and leases that have ended left behind.
    pub(super) fn sweep(&self) -> Result<Vec<String>, VaultError> {
        if !self.there()? {
            return Ok(vec![]);
        }
        let mut names = vec![];
        let mut leases = vec![];
        for entry in fs::read_dir(self.path()).map_err(VaultError::of(self.path()))? {
            let entry = entry.map_err(VaultError::of(self.path()))?;
            let Ok(file) = entry.file_name().into_string() else {
                continue;
            };
            let older = |than| {
                entry
                    .metadata()
                    .ok()
                    .is_some_and(|meta| is_older(&meta, than))
            };
            if let Some(name) = file.strip_suffix(SEALED).filter(|name| is_name(name)) {
                if names.len() < LOGINS {
                    names.push(name.to_owned());
                }
            } else if file.starts_with(NEW) && older(GIVEN_UP) {
                fs::remove_file(entry.path()).unwrap_or_default();
            } else if let Some(name) = file.strip_suffix(LEASE).filter(|_| older(UNUSED)) {
                leases.push((name.to_owned(), entry.path()));
            }
        }
        names.sort_unstable();
        for (name, path) in leases {
            if names.len() < LOGINS && names.binary_search(&name).is_err() {
                fs::remove_dir_all(path).unwrap_or_default();
            }
        }
        Ok(names)
    }
}

fn is_older(meta: &fs::Metadata, than: Duration) -> bool {
    meta.modified()
        .ok()
        .and_then(|at| at.elapsed().ok())
        .is_some_and(|age| age > than)
}

fn is_name(name: &str) -> bool {
    name.len() == 64
        && name
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
