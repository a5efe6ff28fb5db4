//! Leases: who may renew a login now, among processes and machines that share the vault's folder.
//!
//! A lease is a folder of numbered files; the highest number counts. Its file names its owner and its deadline, or says
//! `free`. To take a lease whose highest file is over (free, or past its deadline), one makes the file with the next number.
//!
//! Why not one file, put in the place of one that is over by renaming: two may see the same dead lease; one renames, looks
//! again, finds itself and goes on; then the other renames, looks again, and finds itself too. Making a numbered file is
//! different: a file that must not exist yet (`O_EXCL`) is made by exactly one, and to make number 8 is to say "I have seen 7
//! to be over", which stays true. What is left to get wrong:
//!
//! - Lower numbers are removed by the holder, so a slow one that saw 7 long ago could make 8 again after 8 was removed because
//!   9 was there. So whoever has made a file looks again, and has the lease only if its number is the highest. The highest is
//!   never removed, so it sees 9. (The sweep removes a lease's folder a day after its login was erased; nobody is that slow.)
//! - Between making a file and writing into it there is a moment in which it is empty. It counts as held then.
//! - A holder who stalls beyond its deadline has lost the lease without noticing: no lease with a deadline can prevent that.
//!   It can ask how much is left (`Lease::left`), and it frees only a file with its own id.
//! - Clocks differ. A deadline counts as past only some seconds later; and whoever has itself watched one number for as long
//!   as its lease lasts need not believe any clock but its own. A deadline beyond all reason counts as over: a clock jumped.
//! - Network file systems that cache folder listings for seconds, or have no exclusive creation, weaken the second look. There
//!   two may renew at once, as they would without leases; the vault's files stay whole in any case.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::error::VaultError;
use crate::oauth::unix_now;

/// How far clocks of machines may be apart.
const SKEW: Duration = Duration::from_secs(2);
/// A deadline that lies further ahead than the lease is long and this was set by a clock that jumped.
const ABSURD: Duration = Duration::from_secs(3600);
/// What stands in a file that was given back.
const FREE: &str = "free\n";
/// Longest file of a lease that is read, in bytes.
const BYTES: u64 = 256;

/// Somebody who would like to have a lease.
pub(super) struct LeaseWaiter {
    folder: PathBuf,
    length: Duration,
    /// The number that is held by somebody, and since when we have seen that.
    watched: Option<(u64, Instant)>,
}

impl LeaseWaiter {
    /// For the lease in this folder, to be held for this long at most.
    pub(super) fn new(folder: PathBuf, length: Duration) -> Self {
        // Deadlines are told in whole seconds.
        Self {
            folder,
            length: length.max(Duration::from_secs(1)),
            watched: None,
        }
    }

    /// Takes the lease, if it is to be had now.
    pub(super) fn try_take(&mut self) -> Result<Option<HeldLease>, VaultError> {
        let failed = |error| VaultError::of(&self.folder)(error);
        let newest = newest(&self.folder).map_err(failed)?;
        if let Some(number) = newest
            && !self.over(number)?
        {
            return Ok(None);
        }
        self.make(newest.map_or(1, |number| number.saturating_add(1)))
            .map_err(|error| VaultError::of(&self.folder)(error))
    }

    fn make(&self, number: u64) -> io::Result<Option<HeldLease>> {
        match DirBuilder::new().mode(0o700).create(&self.folder) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let path = self.folder.join(number.to_string());
        let began = Instant::now();
        let deadline = unix_now().saturating_add(self.length.as_secs());
        let mut file = match OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
        {
            Ok(file) => file,
            // Somebody was faster, or the sweep.
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
            length: self.length,
            deadline,
        };
        file.write_all(
            format!("{} {deadline} {}\n", held.owner, self.length.as_secs()).as_bytes(),
        )?;
        drop(file);
        if newest(&self.folder)? != Some(number) || held.left().is_zero() {
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

    /// Whether the file of this number holds the lease no longer.
    fn over(&mut self, number: u64) -> Result<bool, VaultError> {
        let path = self.folder.join(number.to_string());
        let (text, age) = match read(&path) {
            Ok(read) => read,
            // There is a higher one by now.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(VaultError::of(&path)(error)),
        };
        if text == FREE {
            return Ok(true);
        }
        let since = match self.watched {
            Some((watched, since)) if watched == number => since,
            _ => self.watched.insert((number, Instant::now())).1,
        };
        let (past, length) = match deadline(&text) {
            Some((deadline, length)) => {
                let now = Duration::from_secs(unix_now());
                (
                    now > deadline.saturating_add(SKEW)
                        || deadline > now.saturating_add(length + ABSURD),
                    length,
                )
            }
            // Not written yet, or never.
            None => (age > self.length + SKEW, self.length),
        };
        Ok(past || since.elapsed() > length + SKEW)
    }
}

/// A lease that we have; given back when dropped. All of it is file work: drop it where that may block.
pub(super) struct HeldLease {
    path: PathBuf,
    owner: String,
    began: Instant,
    length: Duration,
    deadline: u64,
}

impl HeldLease {
    /// How long nobody else may take it. By the clock that does not jump and by the one that counts what the machine slept.
    pub(super) fn left(&self) -> Duration {
        let by_clock = Duration::from_secs(self.deadline.saturating_sub(unix_now()));
        self.length
            .saturating_sub(self.began.elapsed())
            .min(by_clock)
    }
}

impl Drop for HeldLease {
    fn drop(&mut self) {
        // What cannot be given back is over at its deadline.
        if read(&self.path).is_ok_and(|(text, _)| text.starts_with(&self.owner)) {
            let file = OpenOptions::new()
                .write(true)
                .truncate(true)
                .open(&self.path);
            file.and_then(|mut file| file.write_all(FREE.as_bytes()))
                .unwrap_or_default();
        }
    }
}

/// The number that counts.
fn newest(folder: &Path) -> io::Result<Option<u64>> {
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

/// What stands in the file, and how old that is.
fn read(path: &Path) -> io::Result<(String, Duration)> {
    let file = OpenOptions::new().read(true).open(path)?;
    let modified = file.metadata()?.modified()?;
    let mut bytes = vec![];
    file.take(BYTES).read_to_end(&mut bytes)?;
    let age = SystemTime::now()
        .duration_since(modified)
        .unwrap_or_default();
    Ok((String::from_utf8_lossy(&bytes).into_owned(), age))
}

/// Until when the lease is held, as time since 1970, and how long it is; `None` where that is not said (yet).
fn deadline(text: &str) -> Option<(Duration, Duration)> {
    let mut words = text.strip_suffix('\n')?.split(' ').skip(1);
    let deadline = Duration::from_secs(words.next()?.parse().ok()?);
    let length: u32 = words.next()?.parse().ok()?;
    Some((deadline, Duration::from_secs(length.into())))
}
