//! The files of the vault: private to their owner, and replaced atomically.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::error::VaultError;
use super::seal::FILE_BYTES;
use crate::seal::SealedFolder;

/// Maximum number of logins.
pub(super) const MAX_LOGINS: usize = 10_000;
/// The suffix of the names of sealed files.
const SEALED_SUFFIX: &str = ".sealed";
/// The suffix of the names of lease folders.
const LEASE_SUFFIX: &str = ".lease";
/// The prefix of the names of files that are being written.
const NEW_PREFIX: &str = "new-";
/// Age after which a file that is being written is considered abandoned: its writer has ended.
const ABANDONED_AFTER: Duration = Duration::from_secs(600);
/// Age after which the lease of a login that does not exist is considered unused.
const UNUSED_AFTER: Duration = Duration::from_secs(24 * 3600);

/// The inode of a file and its modification time, in seconds and nanoseconds.
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

    /// Returns the path of the login of this name.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path().join(format!("{name}{SEALED_SUFFIX}"))
    }

    /// Returns the path of the lease of this name.
    pub(super) fn lease(&self, name: &str) -> PathBuf {
        self.path().join(format!("{name}{LEASE_SUFFIX}"))
    }

    /// Creates the folder if it does not exist, and refuses one that other users could access.
    pub(super) fn create(&self) -> Result<(), VaultError> {
        Ok(self.0.create()?)
    }

    /// Reports whether the folder exists.
    ///
    /// # Errors
    /// Fails if other users could access the folder.
    pub(super) fn exists(&self) -> Result<bool, VaultError> {
        Ok(self.0.exists()?)
    }

    /// Returns the version of the login's file; `None` if there is no such file.
    pub(super) fn stamp(&self, name: &str) -> Result<Option<Stamp>, VaultError> {
        let file = self.file(name);
        match fs::metadata(&file) {
            Ok(meta) => Ok(Some((meta.ino(), meta.mtime(), meta.mtime_nsec()))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(VaultError::at(&file)(error)),
        }
    }

    /// Returns the content of the login's file; `None` if there is no such file. Of a file that is
    /// too long, one byte more than the limit is returned.
    pub(super) fn read(&self, name: &str) -> Result<Option<Vec<u8>>, VaultError> {
        Ok(self
            .0
            .read(&format!("{name}{SEALED_SUFFIX}"), FILE_BYTES as u64 + 1)?)
    }

    /// Replaces the content of the login's file. On any failure, the file has either its old
    /// content or the new one.
    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), VaultError> {
        self.create()?;
        let names = self.sweep()?;
        if names.len() >= MAX_LOGINS && !names.iter().any(|existing| existing == name) {
            return Err(VaultError::Full {
                folder: self.path().to_owned(),
                limit: MAX_LOGINS,
            });
        }
        Ok(self.0.write(&format!("{name}{SEALED_SUFFIX}"), bytes)?)
    }

    /// Removes the login's file and returns whether there was one.
    pub(super) fn remove(&self, name: &str) -> Result<bool, VaultError> {
        Ok(self.0.remove(&format!("{name}{SEALED_SUFFIX}"))?)
    }

    /// Returns the names of all logins. Also removes the files of writers and leases that have
    /// ended.
    pub(super) fn sweep(&self) -> Result<Vec<String>, VaultError> {
        if !self.exists()? {
            return Ok(vec![]);
        }
        let mut names = vec![];
        let mut leases = vec![];
        for entry in fs::read_dir(self.path()).map_err(VaultError::at(self.path()))? {
            let entry = entry.map_err(VaultError::at(self.path()))?;
            let Ok(file) = entry.file_name().into_string() else {
                continue;
            };
            let older = |than| {
                entry
                    .metadata()
                    .ok()
                    .is_some_and(|meta| is_older(&meta, than))
            };
            if let Some(name) = file
                .strip_suffix(SEALED_SUFFIX)
                .filter(|name| is_name(name))
            {
                if names.len() < MAX_LOGINS {
                    names.push(name.to_owned());
                }
            } else if file.starts_with(NEW_PREFIX) && older(ABANDONED_AFTER) {
                fs::remove_file(entry.path()).unwrap_or_default();
            } else if let Some(name) = file
                .strip_suffix(LEASE_SUFFIX)
                .filter(|_| older(UNUSED_AFTER))
            {
                leases.push((name.to_owned(), entry.path()));
            }
        }
        names.sort_unstable();
        for (name, path) in leases {
            if names.len() < MAX_LOGINS && names.binary_search(&name).is_err() {
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
