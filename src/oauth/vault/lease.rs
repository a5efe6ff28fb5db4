//! Leases: which process may currently renew a login, among all processes and machines that share
//! the vault's folder.
//!
//! A lease is a folder of numbered files, of which the one with the highest number counts. That
//! file contains its owner and its deadline, or `free`. To take a lease whose highest file is over
//! (free, or past its deadline), a process creates the file with the next number.
//!
//! A single file that is replaced by renaming when it is over would not suffice: two processes may
//! see the same expired lease; one renames, checks, finds its own file and continues; then the
//! other renames, checks, and finds its own file too. Creating a numbered file is different: a file
//! that must not exist yet (`O_EXCL`) is created by exactly one process, and creating number 8
//! means "I have seen that 7 is over", which remains true. The remaining hazards are:
//!
//! - Lower numbers are removed by the holder, so a slow process that saw 7 long ago could create 8
//!   again after 8 was removed because 9 existed. A process that has created a file therefore
//!   checks again, and has the lease only if its number is the highest. The highest file is never
//!   removed, so it sees 9. (The sweep removes a lease's folder a day after its login was erased;
//!   no process is that slow.)
//! - Between its creation and the first write, a file is empty. Such a file counts as held.
//! - A holder that stalls beyond its deadline has lost the lease without noticing; no lease with a
//!   deadline can prevent that. It can check how much time is left (`Lease::left`), and it frees
//!   only a file with its own id.
//! - Clocks differ. A deadline counts as past only a few seconds later, and a process that has
//!   itself watched one number for the duration of its lease need not trust any clock but its own.
//!   A deadline unreasonably far in the future counts as over, since a clock must have jumped.
//! - Network file systems that cache folder listings for seconds, or lack exclusive creation,
//!   weaken the second check. On these, two processes may renew at the same time, as they would
//!   without leases; the vault's files remain intact in any case.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::error::VaultError;
use crate::oauth::unix_now;

/// Maximum difference between the clocks of machines.
const MAX_CLOCK_SKEW: Duration = Duration::from_secs(2);
/// A deadline that is further ahead than the lease duration plus this was set by a clock that
/// jumped.
const MAX_FUTURE_DEADLINE: Duration = Duration::from_secs(3600);
/// The content of a file whose lease was released.
const FREE: &str = "free\n";
/// Maximum length of a lease file, in bytes.
const MAX_FILE_BYTES: u64 = 256;

/// A process that is waiting for a lease.
pub(super) struct LeaseWaiter {
    folder: PathBuf,
    duration: Duration,
    /// The number that another process holds, and when this process first saw it.
    observed: Option<(u64, Instant)>,
}

impl LeaseWaiter {
    /// Returns a waiter for the lease in this folder, to be held for at most this long.
    pub(super) fn new(folder: PathBuf, length: Duration) -> Self {
        // Deadlines are written in whole seconds.
        Self {
            folder,
            duration: length.max(Duration::from_secs(1)),
            observed: None,
        }
    }

    /// Takes the lease, if it is available now.
    pub(super) fn try_take(&mut self) -> Result<Option<HeldLease>, VaultError> {
        let to_error = |error| VaultError::at(&self.folder)(error);
        let newest = newest_number(&self.folder).map_err(to_error)?;
        if let Some(number) = newest
            && !self.has_expired(number)?
        {
            return Ok(None);
        }
        self.create_lease(newest.map_or(1, |number| number.saturating_add(1)))
            .map_err(|error| VaultError::at(&self.folder)(error))
    }

    fn create_lease(&self, number: u64) -> io::Result<Option<HeldLease>> {
        match DirBuilder::new().mode(0o700).create(&self.folder) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let path = self.folder.join(number.to_string());
        let began = Instant::now();
        let deadline = unix_now().saturating_add(self.duration.as_secs());
        let mut file = match OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
        {
            Ok(file) => file,
            // Another process, or the sweep, was faster.
            Err(error)
                if matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::NotFound) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let owner = uuid::Uuid::new_v4().simple().to_string();
        let held = HeldLease {
            path,
            owner,
            began,
            length: self.duration,
            deadline,
        };
        file.write_all(
            format!("{} {deadline} {}\n", held.owner, self.duration.as_secs()).as_bytes(),
        )?;
        drop(file);
        if newest_number(&self.folder)? != Some(number) || held.remaining().is_zero() {
            return Ok(None);
        }
        for lower in numbers(&self.folder)?
            .into_iter()
            .filter(|lower| *lower < number)
        {
            fs::remove_file(self.folder.join(lower.to_string())).unwrap_or_default();
        }
        Ok(Some(held))
    }

    /// Reports whether the file of this number no longer holds the lease.
    fn has_expired(&mut self, number: u64) -> Result<bool, VaultError> {
        let path = self.folder.join(number.to_string());
        let (text, age) = match read_lease_file(&path) {
            Ok(read) => read,
            // There is a higher number by now.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(VaultError::at(&path)(error)),
        };
        if text == FREE {
            return Ok(true);
        }
        let since = match self.observed {
            Some((observed_number, since)) if observed_number == number => since,
            _ => self.observed.insert((number, Instant::now())).1,
        };
        let (is_past, length) = match deadline(&text) {
            Some((deadline, length)) => {
                let now = Duration::from_secs(unix_now());
                (
                    now > deadline.saturating_add(MAX_CLOCK_SKEW)
                        || deadline > now.saturating_add(length + MAX_FUTURE_DEADLINE),
                    length,
                )
            }
            // Not written yet, or never.
            None => (age > self.duration + MAX_CLOCK_SKEW, self.duration),
        };
        Ok(is_past || since.elapsed() > length + MAX_CLOCK_SKEW)
    }
}

/// A lease that this process holds; released when dropped. Dropping it performs file operations, so
/// drop it where blocking is allowed.
pub(super) struct HeldLease {
    path: PathBuf,
    owner: String,
    began: Instant,
    length: Duration,
    deadline: u64,
}

impl HeldLease {
    /// Returns the time for which no other process may take the lease, by the monotonic clock and
    /// by the system clock, which also counts the time that the machine was suspended.
    pub(super) fn remaining(&self) -> Duration {
        let by_clock = Duration::from_secs(self.deadline.saturating_sub(unix_now()));
        self.length
            .saturating_sub(self.began.elapsed())
            .min(by_clock)
    }
}

impl Drop for HeldLease {
    fn drop(&mut self) {
        // A lease that cannot be released ends at its deadline.
        if read_lease_file(&self.path).is_ok_and(|(text, _)| text.starts_with(&self.owner)) {
            let file = OpenOptions::new()
                .write(true)
                .truncate(true)
                .open(&self.path);
            file.and_then(|mut file| file.write_all(FREE.as_bytes()))
                .unwrap_or_default();
        }
    }
}

/// Returns the highest number, which is the one that counts.
fn newest_number(folder: &Path) -> io::Result<Option<u64>> {
    Ok(numbers(folder)?.into_iter().max())
}

fn numbers(folder: &Path) -> io::Result<Vec<u64>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(vec![]),
        entries => entries?,
    };
    entries
        .map(|entry| {
            Ok(entry?
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok()))
        })
        .filter_map(Result::transpose)
        .collect()
}

/// Returns the content of a file and its age.
fn read_lease_file(path: &Path) -> io::Result<(String, Duration)> {
    let file = OpenOptions::new().read(true).open(path)?;
    let modified = file.metadata()?.modified()?;
    let mut bytes = vec![];
    file.take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
    let age = SystemTime::now()
        .duration_since(modified)
        .unwrap_or_default();
    Ok((String::from_utf8_lossy(&bytes).into_owned(), age))
}

/// Returns the deadline of a lease, as time since 1970, and its duration; `None` if the file does
/// not contain them (yet).
fn deadline(text: &str) -> Option<(Duration, Duration)> {
    let mut words = text.strip_suffix('\n')?.split(' ').skip(1);
    let deadline = Duration::from_secs(words.next()?.parse().ok()?);
    let length: u32 = words.next()?.parse().ok()?;
    Some((deadline, Duration::from_secs(length.into())))
}
