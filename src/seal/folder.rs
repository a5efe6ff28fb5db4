//! A folder whose files are private to its owner and are replaced atomically.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::SealError;

/// The prefix of the names of files that are being written.
const NEW_PREFIX: &str = "new-";
/// Age after which a file that is being written is considered abandoned: its writer has ended.
const ABANDONED_AFTER: Duration = Duration::from_secs(600);

/// Checks whether a file or folder could be created or changed at `path`, without trying. An error
/// names the file or folder that prevents it.
///
/// # Errors
/// Fails if the nearest existing part of the path is not a folder, or if this user cannot write to
/// it.
pub fn check_writable(path: &Path) -> Result<(), (PathBuf, io::Error)> {
    let Some(nearest) = path.ancestors().find(|path| path.exists()) else {
        return Ok(());
    };
    let with_path = |error: io::Error| (nearest.to_owned(), error);
    if nearest != path && !nearest.is_dir() {
        return Err(with_path(ErrorKind::NotADirectory.into()));
    }
    rustix::fs::access(nearest, rustix::fs::Access::WRITE_OK)
        .map_err(|error| with_path(error.into()))
}

/// A folder for sealed files.
#[derive(Clone, Debug)]
pub struct SealedFolder(PathBuf);

impl SealedFolder {
    /// Returns a handle for this folder, which need not exist.
    pub fn new(path: PathBuf) -> Self {
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Creates the folder if it does not exist, and refuses one that other users could access.
    ///
    /// # Errors
    /// Fails if other users could access the folder, or on an I/O error.
    pub fn create(&self) -> Result<(), SealError> {
        if !self.exists()? {
            let to_error = |error| SealError::at(&self.0)(error);
            if let Some(parent) = self
                .0
                .parent()
                .filter(|parent| !parent.as_os_str().is_empty())
            {
                fs::create_dir_all(parent).map_err(to_error)?;
            }
            match DirBuilder::new().mode(0o700).create(&self.0) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                    return Err(to_error(error));
                }
                _ => {}
            }
        }
        self.exists().map(|_| ())
    }

    /// Reports whether the folder exists.
    ///
    /// # Errors
    /// Fails if other users could access the folder.
    pub fn exists(&self) -> Result<bool, SealError> {
        let meta = match fs::metadata(&self.0) {
            Ok(meta) => meta,
            // Nothing exists below a file, and nothing can be created there, which `check_writable`
            // finds.
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                return Ok(false);
            }
            Err(error) => return Err(SealError::at(&self.0)(error)),
        };
        if meta.mode() & 0o077 != 0 {
            return Err(SealError::Open {
                path: self.0.clone(),
                mode: "700",
            });
        }
        Ok(true)
    }

    /// Returns the content of a file, up to `max_bytes` bytes; `None` if there is no such file.
    ///
    /// # Errors
    /// Fails if other users could access the folder, or if it cannot be read.
    pub fn read(&self, file: &str, max_bytes: u64) -> Result<Option<Vec<u8>>, SealError> {
        if !self.exists()? {
            return Ok(None);
        }
        let path = self.0.join(file);
        let open = match OpenOptions::new().read(true).open(&path) {
            Ok(open) => open,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(SealError::at(&path)(error)),
        };
        let mut bytes = vec![];
        open.take(max_bytes)
            .read_to_end(&mut bytes)
            .map_err(SealError::at(&path))?;
        Ok(Some(bytes))
    }

    /// Replaces the content of a file. On any failure, the file has either its old content or the
    /// new one.
    ///
    /// # Errors
    /// Fails if other users could access the folder, or if it cannot be written.
    pub fn write(&self, file: &str, bytes: &[u8]) -> Result<(), SealError> {
        self.create()?;
        let path = self.0.join(file);
        let new = self
            .0
            .join(format!("{NEW_PREFIX}{}", uuid::Uuid::new_v4().simple()));
        self.write_new(&new, &path, bytes).map_err(|error| {
            // If it stays, it is removed later.
            fs::remove_file(&new).unwrap_or_default();
            SealError::at(&path)(error)
        })
    }

    /// Creates a file, which must not exist yet, so that no other process has it.
    ///
    /// # Errors
    /// Fails if the file exists, if other users could access the folder, or if it cannot be
    /// written.
    pub fn begin(&self, file: &str) -> Result<File, SealError> {
        self.create()?;
        let path = self.0.join(file);
        self.create_file(&path)
            .and_then(|file| self.sync().map(|()| file))
            .map_err(SealError::at(&path))
    }

    /// Moves a file to another folder, which must exist. If several processes try, only the one
    /// that moved it gets `true`.
    ///
    /// # Errors
    /// Fails on an I/O error.
    pub fn move_to(&self, file: &str, target: &Self, name: &str) -> Result<bool, SealError> {
        let path = self.0.join(file);
        match fs::rename(&path, target.0.join(name)) {
            Ok(()) => target
                .sync()
                .map_err(SealError::at(&target.0))
                .map(|()| true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(SealError::at(&path)(error)),
        }
    }

    /// Removes a file and returns whether there was one.
    ///
    /// # Errors
    /// Fails if other users could access the folder, or on an I/O error.
    pub fn remove(&self, file: &str) -> Result<bool, SealError> {
        if !self.exists()? {
            return Ok(false);
        }
        let path = self.0.join(file);
        match fs::remove_file(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            removed => removed.map_err(SealError::at(&path))?,
        }
        self.sync().map_err(SealError::at(&self.0))?;
        Ok(true)
    }

    /// Returns up to `max_files` files with their lengths in bytes and their ages. Also removes the
    /// files of writers that have ended.
    ///
    /// # Errors
    /// Fails if other users could access the folder, or if it cannot be read.
    pub fn files(&self, max_files: usize) -> Result<Vec<FileEntry>, SealError> {
        let mut out = Vec::new();
        if !self.exists()? {
            return Ok(out);
        }
        for entry in fs::read_dir(&self.0).map_err(SealError::at(&self.0))? {
            let entry = entry.map_err(SealError::at(&self.0))?;
            let (Ok(name), Ok(meta)) = (entry.file_name().into_string(), entry.metadata()) else {
                continue;
            };
            let age = meta
                .modified()
                .ok()
                .and_then(|at| at.elapsed().ok())
                .unwrap_or_default();
            if name.starts_with(NEW_PREFIX) {
                if age > ABANDONED_AFTER {
                    fs::remove_file(entry.path()).unwrap_or_default();
                }
            } else if meta.is_file() && out.len() < max_files {
                out.push(FileEntry {
                    name,
                    bytes: meta.len(),
                    age,
                });
            }
        }
        Ok(out)
    }

    /// Makes the folder's list of files durable.
    ///
    /// # Errors
    /// Fails if the system reports an error.
    pub fn sync(&self) -> io::Result<()> {
        match File::open(&self.0)?.sync_all() {
            // Some network file systems do not support this for folders.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::InvalidInput | ErrorKind::Unsupported
                ) =>
            {
                Ok(())
            }
            synced => synced,
        }
    }

    fn write_new(&self, new: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut file = self.create_file(new)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        drop(file);
        fs::rename(new, path)?;
        self.sync()
    }

    fn create_file(&self, path: &Path) -> io::Result<File> {
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)?;
        let file_meta = file.metadata()?;
        let folder_meta = fs::metadata(&self.0)?;
        if file_meta.uid() != folder_meta.uid() {
            // Root, acting for the gate's user: the gate could not read a file that belongs to
            // root.
            fchown(&file, Some(folder_meta.uid()), Some(folder_meta.gid()))?;
        }
        Ok(file)
    }
}

/// A file of a [`SealedFolder`].
#[derive(Clone, Debug)]
pub struct FileEntry {
    pub name: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// How long ago it was written.
    pub age: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_written_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        for writable in [
            folder.path().to_owned(),
            file.clone(),
            folder.path().join("new"),
            folder.path().join("new/below"),
        ] {
            assert!(check_writable(&writable).is_ok(), "{}", writable.display());
        }
        for below in [file.join("x"), file.join("x/y")] {
            let (nearest, error) = check_writable(&below).unwrap_err();
            assert_eq!(
                (nearest, error.kind()),
                (file.clone(), ErrorKind::NotADirectory)
            );
            let place = SealedFolder::new(below);
            assert!(!place.exists().unwrap() && place.create().is_err());
        }
        let closed = folder.path().join("closed");
        DirBuilder::new().mode(0o500).create(&closed).unwrap();
        // Root may write anywhere.
        if File::create(closed.join("probe")).is_err() {
            let (nearest, error) = check_writable(&closed.join("new")).unwrap_err();
            assert_eq!(
                (nearest, error.kind()),
                (closed, ErrorKind::PermissionDenied)
            );
        }
    }
}
