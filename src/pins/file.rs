//! The lock file: read whole, written beside the old one and put in its place, by one process at a time.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

use super::Lock;
use crate::document::Fault;

/// Longest lock file that is read, in bytes.
const FILE_BYTES: u64 = 64 << 20;
/// How long another process may hold the file before it is given up.
const PATIENCE: Duration = Duration::from_secs(5);

/// What tells one state of the file from another; `None` where there is none.
pub(crate) type Stamp = Option<(u64, i64, i64, u64)>;

/// A lock file, which several processes may use at once.
#[derive(Clone, Debug)]
pub struct LockFile(PathBuf);

impl LockFile {
    /// The one at `path`, which need not be there yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        // What a link leads to is what is put in its place.
        Self(fs::canonicalize(&path).unwrap_or(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The state that it is in.
    pub(crate) fn stamp(&self) -> Stamp {
        fs::metadata(&self.0)
            .ok()
            .map(|meta| (meta.len(), meta.mtime(), meta.mtime_nsec(), meta.ino()))
    }

    /// Reads it; what is not there holds nothing.
    ///
    /// # Errors
    /// It cannot be read, or what is wrong in it.
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

    /// Reads it, changes it and writes it, while no other process does. Gives what it holds then, and its state.
    ///
    /// # Errors
    /// It cannot be read or written; it is as it was.
    pub(crate) fn change(
        &self,
        change: impl FnOnce(&mut Lock),
    ) -> Result<(Lock, Stamp), Vec<Fault>> {
        let _held = self.hold().map_err(|error| self.fault(&error))?;
        let mut lock = self.read()?;
        let before = lock.written();
        change(&mut lock);
        let after = lock.written();
        if after != before {
            self.write(&after).map_err(|error| self.fault(&error))?;
        }
        Ok((lock, self.stamp()))
    }

    /// Reads it, changes it and writes it, while no other process does; gives what `change` says.
    ///
    /// # Errors
    /// It cannot be read or written; it is as it was.
    pub fn edit<T: Default>(&self, change: impl FnOnce(&mut Lock) -> T) -> Result<T, Vec<Fault>> {
        let mut said = T::default();
        self.change(|lock| said = change(lock))?;
        Ok(said)
    }

    /// The folder is what is locked: the file itself is another after each change.
    fn hold(&self) -> io::Result<File> {
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
                Err(rustix::io::Errno::WOULDBLOCK) if started.elapsed() < PATIENCE => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(rustix::io::Errno::WOULDBLOCK) => {
                    return Err(io::Error::other("another process has locked it"));
                }
                // Some network file systems lock nothing; a file put in place whole is all that can be had there.
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
        // Nothing in it is secret: whoever has the repository may read it.
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
