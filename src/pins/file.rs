//! The lock file. It is read as a whole, and replaced by a new file, by one process at a time.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use super::Lock;
use crate::document::Fault;
use crate::seal::{lock_folder, read_text, replace_file};

/// Maximum length of a lock file, in bytes.
const FILE_BYTES: u64 = 64 << 20;

/// Identifies a state of the file; `None` if it does not exist.
pub(crate) type Stamp = Option<(u64, i64, i64, u64)>;

/// A lock file, which several processes may use at once.
#[derive(Clone, Debug)]
pub struct LockFile(PathBuf);

impl LockFile {
    /// Returns the lock file at `path`, which need not exist yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        // If the path is a symbolic link, its target is replaced, not the link.
        Self(fs::canonicalize(&path).unwrap_or(path))
    }

    /// Returns the current state of the file.
    pub(crate) fn stamp(&self) -> Stamp {
        fs::metadata(&self.0)
            .ok()
            .map(|meta| (meta.len(), meta.mtime(), meta.mtime_nsec(), meta.ino()))
    }

    /// Reads the file; one that does not exist contains no pins.
    ///
    /// # Errors
    /// The file cannot be read, or has faults.
    pub fn read(&self) -> Result<Lock, Vec<Fault>> {
        let text = read_text(&self.0, FILE_BYTES).map_err(|error| self.fault(&error))?;
        let Some(text) = text else {
            return Ok(Lock::default());
        };
        Lock::read(&self.0.display().to_string(), &text)
    }

    /// Reads, changes and writes the file while no other process does. Returns its new contents and
    /// state.
    ///
    /// # Errors
    /// The file cannot be read or written; it is unchanged.
    pub(crate) fn change(
        &self,
        change: impl FnOnce(&mut Lock),
    ) -> Result<(Lock, Stamp), Vec<Fault>> {
        let _folder_lock = lock_folder(&self.0).map_err(|error| self.fault(&error))?;
        let mut lock = self.read()?;
        let before = lock.to_text();
        change(&mut lock);
        let after = lock.to_text();
        if after != before {
            self.write(&after).map_err(|error| self.fault(&error))?;
        }
        Ok((lock, self.stamp()))
    }

    /// Reads, changes and writes the file while no other process does. Returns the result of
    /// `change`.
    ///
    /// # Errors
    /// The file cannot be read or written; it is unchanged.
    pub fn edit<T: Default>(&self, change: impl FnOnce(&mut Lock) -> T) -> Result<T, Vec<Fault>> {
        let mut result = T::default();
        self.change(|lock| result = change(lock))?;
        Ok(result)
    }

    fn write(&self, text: &str) -> io::Result<()> {
        if text.len() as u64 > FILE_BYTES {
            let hint = "reset upstreams that are no longer used";
            return Err(io::Error::other(format!(
                "it would be longer than {FILE_BYTES} bytes: {hint}"
            )));
        }
        // It contains no secrets: everyone with access to the repository may read it.
        replace_file(&self.0, text.as_bytes(), 0o644)
    }

    fn fault(&self, error: &io::Error) -> Vec<Fault> {
        let hint = "the lock file of pins is named by `file` under `[pins]`";
        vec![Fault::of_file(
            self.0.display().to_string(),
            error.to_string(),
            Some(hint),
        )]
    }
}
