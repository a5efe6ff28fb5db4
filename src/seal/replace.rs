//! Files that are replaced as a whole, by one process at a time.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

/// Maximum time to wait for another process that has locked the folder.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// Locks the folder of a file against other processes, since each change replaces the file itself.
///
/// # Errors
/// The folder cannot be opened, or another process has locked it for too long.
pub fn lock_folder(file: &Path) -> io::Result<File> {
    let folder = file
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

/// Returns the text of a file of at most `max_bytes`; `None` if there is no such file.
///
/// # Errors
/// The file cannot be read, is longer, or is not UTF-8.
pub fn read_text(path: &Path, max_bytes: u64) -> io::Result<Option<String>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let mut text = String::new();
    file.take(max_bytes + 1).read_to_string(&mut text)?;
    if text.len() as u64 > max_bytes {
        return Err(io::Error::other(format!("it exceeds {max_bytes} bytes")));
    }
    Ok(Some(text))
}

/// Writes a file with this mode, and replaces an existing one atomically.
///
/// # Errors
/// The file cannot be written.
pub fn replace_file(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    if let Some(folder) = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
    {
        fs::create_dir_all(folder)?;
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let new = path.with_file_name(name);
    // Never write through a link that somebody put there.
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&new)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&new, path)
}
