//! The files of the vault: seen by nobody else, put in place whole.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::error::VaultError;
use super::seal::FILE_BYTES;

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

/// The folder of the vault.
#[derive(Clone, Debug)]
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Where the login of this name is.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.0.join(format!("{name}{SEALED}"))
    }

    /// Where the lease of this name is.
    pub(super) fn lease(&self, name: &str) -> PathBuf {
        self.0.join(format!("{name}{LEASE}"))
    }

    /// Makes it where it is not, and refuses one that others could look into.
    pub(super) fn make(&self) -> Result<(), VaultError> {
        if !self.there()? {
            let failed = |error| VaultError::of(&self.0)(error);
            if let Some(above) = self.0.parent().filter(|above| !above.as_os_str().is_empty()) {
                fs::create_dir_all(above).map_err(failed)?;
            }
            match DirBuilder::new().mode(0o700).create(&self.0) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(failed(error)),
                _ => {}
            }
        }
        self.there().map(|_| ())
    }

    /// Whether it is there.
    ///
    /// # Errors
    /// Others could look into it.
    pub(super) fn there(&self) -> Result<bool, VaultError> {
        let meta = match fs::metadata(&self.0) {
            Ok(meta) => meta,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(VaultError::of(&self.0)(error)),
        };
        if meta.mode() & 0o077 != 0 {
            return Err(VaultError::Open { path: self.0.clone(), mode: "700" });
        }
        Ok(true)
    }

    /// What is in the login's file; `None` where there is none. One byte more than may be, where it is too long.
    pub(super) fn read(&self, name: &str) -> Result<Option<Vec<u8>>, VaultError> {
        if !self.there()? {
            return Ok(None);
        }
        let path = self.file(name);
        let file = match OpenOptions::new().read(true).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(VaultError::of(&path)(error)),
        };
        let mut bytes = vec![];
        file.take(FILE_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(VaultError::of(&path))?;
        Ok(Some(bytes))
    }

    /// Puts it in the place of what is in the login's file. Whatever happens on the way, the file holds what it held or this.
    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), VaultError> {
        self.make()?;
        let path = self.file(name);
        let names = self.sweep()?;
        if names.len() >= LOGINS && !names.iter().any(|there| there == name) {
            return Err(VaultError::Full { folder: self.0.clone(), limit: LOGINS });
        }
        let new = self.0.join(format!("{NEW}{}", uuid::Uuid::new_v4().simple()));
        self.put(&new, &path, bytes).map_err(|error| {
            // Nothing is lost if it stays: it is swept up later.
            fs::remove_file(&new).unwrap_or_default();
            VaultError::of(&path)(error)
        })
    }

    /// Removes the login's file; whether there was one.
    pub(super) fn remove(&self, name: &str) -> Result<bool, VaultError> {
        if !self.there()? {
            return Ok(false);
        }
        let path = self.file(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            removed => removed.map_err(VaultError::of(&path))?,
        }
        self.sync().map_err(VaultError::of(&self.0))?;
        Ok(true)
    }

    /// The names of all logins; on the way, removes what writers and leases that have ended left behind.
    pub(super) fn sweep(&self) -> Result<Vec<String>, VaultError> {
        if !self.there()? {
            return Ok(vec![]);
        }
        let (mut names, mut leases) = (vec![], vec![]);
        for entry in fs::read_dir(&self.0).map_err(VaultError::of(&self.0))? {
            let entry = entry.map_err(VaultError::of(&self.0))?;
            let Ok(file) = entry.file_name().into_string() else { continue };
            let older = |than| entry.metadata().ok().is_some_and(|meta| is_older(&meta, than));
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

    fn put(&self, new: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(new)?;
        let (ours, theirs) = (file.metadata()?, fs::metadata(&self.0)?);
        if ours.uid() != theirs.uid() {
            // Root, who logs in for the gate's user: what only root can read would be lost on the gate.
            fchown(&file, Some(theirs.uid()), Some(theirs.gid()))?;
        }
        file.write_all(bytes)?;
        file.sync_all()?;
        drop(file);
        fs::rename(new, path)?;
        self.sync()
    }

    /// Makes the system keep which files there are.
    fn sync(&self) -> io::Result<()> {
        match File::open(&self.0)?.sync_all() {
            // Some network file systems do not have it for folders.
            Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => Ok(()),
            synced => synced,
        }
    }
}

fn is_older(meta: &fs::Metadata, than: Duration) -> bool {
    meta.modified().ok().and_then(|at| at.elapsed().ok()).is_some_and(|age| age > than)
}

fn is_name(name: &str) -> bool {
    name.len() == 64 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
