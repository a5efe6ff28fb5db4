//! The lock file. It is read as a whole, and replaced by a new file, by one process at a time.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

use super::Lock;
use crate::document::Fault;

/// Maximum length of a lock file, in bytes.
const FILE_BYTES: u64 = 64 << 20;
/// Maximum time to wait for another process that has locked the file.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

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

    pub fn path(&self) -> &Path {
        &self.0
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
        let mut text = String::new();
        match File::open(&self.0) {
            Ok(file) => {
                file.take(FILE_BYTES + 1)
                    .read_to_string(&mut text)
                    .map_err(|error| self.fault(&error))?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Lock::default()),
            Err(error) => return Err(self.fault(&error)),
        }
        if text.len() as u64 > FILE_BYTES {
            return Err(self.fault(&io::Error::other(format!("it exceeds {FILE_BYTES} bytes"))));
        }
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
        let _folder_lock = self.lock_folder().map_err(|error| self.fault(&error))?;
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

    /// Locks the folder, since each change replaces the file itself.
    fn lock_folder(&self) -> io::Result<File> {
        let folder = self
            .0
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        let folder = File::open(folder)?;
        let started = Instant::now();
        loop {
            match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(folder),
                Err(rustix::io::Errno::WOULDBLOCK) if started.elapsed() < LOCK_TIMEOUT => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(rustix::io::Errno::WOULDBLOCK) => {
                    return Err(io::Error::other("another process has locked it"));
                }
                // Some network file systems have no locks; replacing the file as a whole must
                // suffice there.
                Err(
                    rustix::io::Errno::NOTSUP | rustix::io::Errno::NOLCK | rustix::io::Errno::INVAL,
                ) => return Ok(folder),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn write(&self, text: &str) -> io::Result<()> {
        if text.len() as u64 > FILE_BYTES {
            let hint = "reset upstreams that are no longer used";
            return Err(io::Error::other(format!(
                "it would be longer than {FILE_BYTES} bytes: {hint}"
            )));
        }
        let mut name = self.0.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.new", std::process::id()));
        let new = self.0.with_file_name(name);
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        // It contains no secrets: everyone with access to the repository may read it.
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o644)
            .open(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, &self.0)
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
