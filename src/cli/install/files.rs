//! Atomic writes of files, and removal of temporary files of interrupted writers.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, test_kill_process};

#[cfg(test)]
thread_local! {
    /// The number of steps after which the command is stopped, as by a signal.
    pub(super) static STEPS_LEFT: std::cell::Cell<Option<u32>> = const { std::cell::Cell::new(None) };
}

/// Marks the points at which the command may be interrupted with its work half done, so that tests
/// can stop it there.
#[cfg_attr(
    not(test),
    allow(clippy::unnecessary_wraps, reason = "only tests stop here")
)]
fn step() -> io::Result<()> {
    #[cfg(test)]
    if let Some(left) = STEPS_LEFT.get() {
        STEPS_LEFT.set(Some(left.saturating_sub(1)));
        if left == 0 {
            return Err(io::Error::other("stopped here"));
        }
    }
    Ok(())
}

/// The byte order mark with which some editors on Windows begin a file.
const MARK: &str = "\u{feff}";

/// Removes the byte order mark of a text.
pub(super) fn strip_mark(text: String) -> String {
    text.strip_prefix(MARK).map(str::to_owned).unwrap_or(text)
}

/// Returns the bytes of a text, with a byte order mark if the file currently has one.
///
/// # Errors
/// The file exists and cannot be read.
pub(super) fn add_mark(path: &Path, text: &str) -> io::Result<Vec<u8>> {
    let mut prefix = Vec::new();
    match fs::File::open(path) {
        Ok(file) => file.take(MARK.len() as u64).read_to_end(&mut prefix)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        Err(error) => return Err(error),
    };
    let mark = if prefix == MARK.as_bytes() { MARK } else { "" };
    Ok([mark, text].concat().into_bytes())
}

/// Replaces a file atomically, keeping its mode. If the path is a symbolic link, its target is
/// replaced.
///
/// # Errors
/// The file cannot be written.
pub(in crate::cli) fn replace_file(path: &Path, bytes: &[u8], mode: Option<u32>) -> io::Result<()> {
    step()?;
    sweep(path);
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = target
        .parent()
        .ok_or_else(|| io::Error::other("a file needs a folder"))?;
    fs::create_dir_all(folder)?;
    let mode = mode
        .or_else(|| fs::metadata(&target).ok().map(|meta| meta.mode() & 0o777))
        .unwrap_or(0o600);
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let new = target.with_file_name(name);
    // The file may not exist, and a failure to remove it cannot be handled here.
    let discard = |_: &io::Error| drop(fs::remove_file(&new));
    let result = (|| {
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&new)?;
        file.set_permissions(fs::Permissions::from_mode(mode))?;
        io::Write::write_all(&mut file, bytes)?;
        file.sync_all()
    })();
    let renamed = result.inspect_err(discard).and_then(|()| {
        step()?;
        fs::rename(&new, &target).inspect_err(discard)
    });
    renamed
        .map_err(|error| io::Error::new(error.kind(), format!("`{}`: {error}", target.display())))
}

/// Returns the contents of a file; `None` if it does not exist.
///
/// # Errors
/// The file cannot be read.
pub(in crate::cli) fn read_if_exists(path: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        read => read.map(Some).map_err(|error| {
            io::Error::new(error.kind(), format!("`{}`: {error}", path.display()))
        }),
    }
}

/// Removes a file that may no longer exist.
///
/// # Errors
/// The file exists and cannot be removed.
pub(in crate::cli) fn remove_if_exists(path: &Path) -> io::Result<()> {
    step()?;
    sweep(path);
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io::Error::new(
            error.kind(),
            format!("`{}` cannot be removed: {error}", path.display()),
        )),
        _ => Ok(()),
    }
}

/// Removes temporary files that interrupted writers left next to a file. They contain the same data
/// as the file.
pub(super) fn sweep(path: &Path) {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let entries = target.parent().and_then(|folder| fs::read_dir(folder).ok());
    for entry in entries.into_iter().flatten().flatten() {
        if temporary_target(&entry.file_name())
            .is_some_and(|name| target.file_name() == Some(OsStr::new(&name)))
        {
            // Without permission to remove it, the file cannot be written either, which is reported
            // then.
            drop(fs::remove_file(entry.path()));
        }
    }
}

/// Returns the name of the file that was to be written, if `name` is a temporary file of a process
/// that no longer exists.
fn temporary_target(name: &OsStr) -> Option<String> {
    let (file, process) = name.to_str()?.strip_suffix(".new")?.rsplit_once('.')?;
    let process: i32 = process.parse().ok()?;
    // This process writes one file at a time, so a temporary file with its id is from an earlier
    // process with the same id.
    let is_own = u32::try_from(process) == Ok(std::process::id());
    let is_gone = || {
        test_kill_process(Pid::from_raw(process)?)
            .is_err_and(|error| error == rustix::io::Errno::SRCH)
            .then_some(())
    };
    (is_own || is_gone().is_some()).then(|| file.to_owned())
}

/// The folder of records, locked by one process at a time.
pub(super) struct StateLock {
    folder: fs::File,
}

impl Drop for StateLock {
    fn drop(&mut self) {
        // A child process that is just being started also has the file open, for a moment.
        let _unlocked = flock(&self.folder, FlockOperation::Unlock);
    }
}

/// Locks the folder for this process, and removes unfinished files of other processes.
///
/// # Errors
/// Another process has locked the folder, or it cannot be read.
pub(super) fn lock_state(folder: &Path) -> io::Result<StateLock> {
    let handle = fs::File::open(folder)?;
    flock(&handle, FlockOperation::NonBlockingLockExclusive).map_err(|error| {
        io::Error::new(
            io::Error::from(error).kind(),
            format!(
                "`{}` is locked: another `install` or `uninstall` is running\n  hint: try again when it has finished",
                folder.display()
            ),
        )
    })?;
    let files: Vec<PathBuf> = fs::read_dir(folder)?
        .flatten()
        .map(|entry| entry.path())
        .collect();
    for file in files {
        let is_temporary = file.file_name().and_then(temporary_target).is_some();
        // A backup is created before the record that refers to it, and nothing is changed before
        // that.
        let is_copy = file
            .extension()
            .is_some_and(|extension| extension == "before")
            && !file.with_extension("json").exists();
        if is_temporary || is_copy {
            fs::remove_file(file)?;
        }
    }
    Ok(StateLock { folder: handle })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_gone_have_left_is_swept() {
        let folder = tempfile::tempdir().unwrap();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let gone = child.id();
        child.wait().unwrap();
        let init = folder.path().join("secret.1.new");
        let kept = ["secret", "secret.new", "secret.x.new", "other.txt"]
            .map(|name| folder.path().join(name));
        let leftover = folder.path().join(format!("secret.{gone}.new"));
        for file in kept.iter().chain([&init, &leftover]) {
            fs::write(file, "x").unwrap();
        }
        let of_another = folder.path().join(format!("other.txt.{gone}.new"));
        fs::write(&of_another, "x").unwrap();
        sweep(&folder.path().join("secret"));
        assert!(!leftover.exists() && init.exists() && of_another.exists());
        assert!(kept.iter().all(|file| file.exists()));
    }

    #[test]
    fn one_at_a_time_holds_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let lock = lock_state(folder.path()).unwrap();
        assert_contains!(
            lock_state(folder.path()).err().unwrap().to_string(),
            "another `install`"
        );
        drop(lock);
        assert!(lock_state(folder.path()).is_ok());
    }
}
