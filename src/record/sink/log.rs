//! The file that lines are appended to. Several processes may share it: a writer holds its lock,
//! and first checks whether the file still ends as this process knows it.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{FlockOperation, flock};

use super::opened_line;
use crate::config::Rotation;
use crate::record::chain::Head;
use crate::record::chain::checkpoint::{CheckpointLog, Reason};
use crate::record::chain::files;
use crate::record::chain::tail::{Tail, last_head};

/// Maximum time to wait for another process that is writing.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
/// Time after which a failed rotation is tried again.
const RETRY_DELAY: Duration = Duration::from_secs(60);

/// An open log.
pub(super) struct LogFile {
    path: PathBuf,
    file: File,
    rotation: Rotation,
    notes: Arc<CheckpointLog>,
    /// The last line known to this process.
    head: Head,
    /// Length of the file after that line; `None` if it is uncertain.
    length: Option<u64>,
    /// When the file was created.
    created: SystemTime,
    rotate_after: Option<Instant>,
    /// Whether the file was deleted while it was in use.
    deleted: bool,
    /// Tampering detected since [`Self::take_tampering`] was last called.
    tampering: Option<Tampering>,
}

/// Ways in which a log can be tampered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tampering {
    /// Lines are missing or modified.
    Cut,
    /// Another program has written to it.
    Foreign,
    /// The file was deleted.
    Deleted,
}

/// Side effects of a write.
#[derive(Default)]
pub(super) struct WriteEffects {
    /// Whether the file was rotated.
    pub(super) rotated: bool,
}

impl LogFile {
    /// Opens a log, creating file and folders as needed, and records how it continues.
    ///
    /// # Errors
    /// The file cannot be opened for appending.
    pub(super) fn open(
        path: &Path,
        rotation: &Rotation,
        notes: Arc<CheckpointLog>,
    ) -> io::Result<Self> {
        let (file, created) = open_file(path)?;
        let mut log = Self {
            path: path.to_owned(),
            file,
            rotation: rotation.clone(),
            notes,
            head: Head::default(),
            length: None,
            created,
            rotate_after: None,
            deleted: false,
            tampering: None,
        };
        log.with_lock(|log| {
            let how = log.find_head()?;
            let mut out = Vec::new();
            let mut head = log.head;
            log.settle(Some(how), &mut head, &mut out)?;
            log.write_lines(head, &out)?;
            log.file.sync_data()
        })?;
        Ok(log)
    }

    /// Appends lines, all of them or none.
    ///
    /// # Errors
    /// No line was written.
    pub(super) fn append<'l>(
        &mut self,
        lines: impl Iterator<Item = &'l str>,
    ) -> io::Result<WriteEffects> {
        self.with_lock(|log| {
            let mut effects = WriteEffects::default();
            let mut out = Vec::new();
            let mut head = log.head;
            if log.length != Some(log.file.metadata()?.len()) {
                log.settle(None, &mut head, &mut out)?;
            }
            if out.is_empty() && log.is_due() {
                effects.rotated = log.rotate()?;
                if effects.rotated {
                    log.settle(Some("rotated"), &mut head, &mut out)?;
                }
            }
            lines.for_each(|line| head.append(line, &mut out));
            log.write_lines(head, &out)?;
            Ok(effects)
        })
    }

    /// Syncs the file to disk.
    ///
    /// # Errors
    /// The lines may not be on disk.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data().inspect_err(|_| self.length = None)
    }

    /// Writes a checkpoint for the last line and returns it.
    ///
    /// # Errors
    /// The checkpoint cannot be written.
    pub(super) fn note(&mut self, why: Reason) -> io::Result<String> {
        // Synced first, so that after a power failure there is no checkpoint for lines that were
        // lost.
        self.sync()?;
        self.notes
            .add(why, &self.head, self.length.unwrap_or_default(), &self.path)
    }

    /// Returns the number of the last line.
    pub(super) fn seq(&self) -> u64 {
        self.head.seq
    }

    /// Continues in a new file if the old one was moved away.
    ///
    /// # Errors
    /// The new file cannot be opened.
    pub(super) fn reopen(&mut self) -> io::Result<()> {
        self.with_lock(|_| Ok(()))
    }

    /// Determines the line from which a process continues that has just opened the file. Returns
    /// `new` or `continued`.
    fn find_head(&mut self) -> io::Result<&'static str> {
        let length = self.file.metadata()?.len();
        let tail = Tail::read(&self.file, length)?;
        let checkpoint_head = self.notes.last()?.map(|note| note.head);
        if length > 0 && tail.head.is_none() && checkpoint_head.is_none() {
            // Lines of another program, or from before there was a chain, are moved to another
            // file.
            let now = humantime::format_rfc3339_seconds(SystemTime::now());
            let side_file = files::with_suffix(&self.path, &format!(".before-chain-{now}"));
            std::fs::rename(&self.path, &side_file)?;
            tracing::warn!(file = %side_file.display(), "the audit log contained lines without a digest chain; moved to a separate file");
            self.lock()?;
            return self.find_head();
        }
        let mut last = tail.head.max_by_seq(checkpoint_head);
        if length == 0 {
            for path in files::siblings(&self.path)? {
                if !path.to_string_lossy().ends_with(files::GZ_SUFFIX) {
                    last = last.max_by_seq(last_head(&path)?);
                }
            }
        }
        self.head = last.unwrap_or_default();
        if last.is_none() {
            self.notes.add(Reason::New, &self.head, 0, &self.path)?;
        }
        Ok(if last.is_none() || last == Some(Head::default()) {
            "new"
        } else {
            "continued"
        })
    }

    /// Determines how the file ends, terminates an incomplete line, and adds a line about it to
    /// `out`. `how` is the reason to add one in any case.
    fn settle(
        &mut self,
        how: Option<&'static str>,
        head: &mut Head,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        let length = self.file.metadata()?.len();
        let tail = Tail::read(&self.file, length)?;
        let previous = self.head;
        let last = tail.head.unwrap_or_default();
        let is_cut =
            length > 0 && (last.seq < previous.seq || last.seq == previous.seq && last != previous);
        if last.seq > previous.seq {
            (*head, self.head) = (last, last);
        }
        self.length = Some(length);
        if tail.open {
            out.push(b'\n');
        }
        let finding = match (is_cut, tail.foreign, std::mem::take(&mut self.deleted)) {
            (true, ..) => Some((Tampering::Cut, "after_cut", "lines are missing or modified")),
            (_, true, _) => Some((
                Tampering::Foreign,
                "after_foreign",
                "another program wrote to it",
            )),
            (.., true) => Some((
                Tampering::Deleted,
                "after_deletion",
                "it was deleted while in use",
            )),
            _ => None,
        };
        let how = if let Some((kind, how, what)) = finding {
            tracing::error!(file = %self.path.display(), "audit log tampering detected: {what}; run `lychgate audit verify`");
            self.tampering = Some(kind);
            Some(how)
        } else if tail.torn > 0 || tail.open {
            Some("after_crash")
        } else {
            // A file that has grown was written by another process, as is normal for a shared log.
            how.or((length == 0).then_some("reopened"))
        };
        if let Some(how) = how {
            head.append(&opened_line(how, tail.torn), out);
        }
        Ok(())
    }

    /// Writes `out`, which ends with the line of `head`, completely or not at all.
    fn write_lines(&mut self, head: Head, out: &[u8]) -> io::Result<()> {
        let length = self.length.unwrap_or_default();
        if let Err(error) = self.file.write_all(out) {
            // A file that permits only appending keeps the incomplete line; the next write detects
            // it.
            let restored = self.file.set_len(length).is_ok();
            self.length = restored.then_some(length);
            return Err(self.with_path(&error));
        }
        self.head = head;
        self.length = Some(length + out.len() as u64);
        Ok(())
    }

    fn is_due(&self) -> bool {
        let length = self.length.unwrap_or_default();
        let is_large = self.rotation.bytes > 0 && length >= self.rotation.bytes;
        let is_old = !self.rotation.age.is_zero()
            && self
                .created
                .elapsed()
                .is_ok_and(|age| age >= self.rotation.age);
        length > 0
            && (is_large || is_old)
            && self
                .rotate_after
                .is_none_or(|after| Instant::now() >= after)
    }

    /// Rotates the file. If that fails, lines continue to be written to it for a while.
    fn rotate(&mut self) -> io::Result<bool> {
        let move_aside = || -> io::Result<PathBuf> {
            self.file.sync_data()?;
            let aside = files::rotated_name(&self.path, SystemTime::now())?;
            std::fs::rename(&self.path, &aside)?;
            Ok(aside)
        };
        match move_aside() {
            Ok(aside) => {
                if let Err(error) = self.notes.add(
                    Reason::Rotated,
                    &self.head,
                    self.length.unwrap_or_default(),
                    &aside,
                ) {
                    tracing::warn!(%error, "no checkpoint for a rotated audit log file");
                }
                self.lock()?;
                files::sync_folder(&self.path)?;
                Ok(true)
            }
            Err(error) => {
                tracing::error!(%error, "cannot rotate the audit log");
                self.rotate_after = Some(Instant::now() + RETRY_DELAY);
                Ok(false)
            }
        }
    }

    /// Runs `action` while no other process writes.
    fn with_lock<T>(&mut self, action: impl FnOnce(&mut Self) -> io::Result<T>) -> io::Result<T> {
        self.lock()?;
        let result = action(self);
        flock(&self.file, FlockOperation::Unlock)?;
        result
    }

    fn lock(&mut self) -> io::Result<()> {
        let deadline = Instant::now() + LOCK_TIMEOUT;
        loop {
            match flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) if self.is_in_place() => return Ok(()),
                // The file was moved or deleted, so nobody would look for lines in it.
                Ok(()) => {
                    // Another process may have written to it before it was moved.
                    let old_head = Tail::read(&self.file, self.file.metadata()?.len())?.head;
                    self.head = Some(self.head).max_by_seq(old_head).unwrap_or_default();
                    self.deleted =
                        self.file.metadata()?.nlink() == 0 && !self.is_continued_elsewhere()?;
                    (self.file, self.created) = open_file(&self.path)?;
                    self.length = None;
                }
                Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(1))
                }
                Err(rustix::io::Errno::WOULDBLOCK) => {
                    let message = "another process has held its lock for 5 s; configure another file for one of them";
                    return Err(self.with_path(&io::Error::new(io::ErrorKind::WouldBlock, message)));
                }
                Err(error) => return Err(self.with_path(&error.into())),
            }
        }
    }

    /// Reports whether the log contains the last known line although the file of that line is gone:
    /// it was compressed, or another process has continued the log.
    fn is_continued_elsewhere(&self) -> io::Result<bool> {
        let modified = |path: &PathBuf| {
            std::fs::metadata(path)
                .and_then(|metadata| metadata.modified())
                .ok()
        };
        let mut files = files::siblings(&self.path)?;
        files.push(self.path.clone());
        // A file that cannot be read has no last line.
        let last = files
            .into_iter()
            .max_by_key(modified)
            .and_then(|path| last_head(&path).ok()?);
        Ok(last.is_some_and(|last| last.seq >= self.head.seq))
    }

    /// Returns the tampering detected since the last call.
    pub(super) fn take_tampering(&mut self) -> Option<Tampering> {
        self.tampering.take()
    }

    fn is_in_place(&self) -> bool {
        let is_same_file =
            |a: std::fs::Metadata, b: std::fs::Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
        std::fs::metadata(&self.path).is_ok_and(|there| {
            self.file
                .metadata()
                .is_ok_and(|here| is_same_file(here, there))
        })
    }

    fn with_path(&self, error: &io::Error) -> io::Error {
        with_path(&self.path, error)
    }
}

/// Selects the later of two ends of a chain.
trait MaxBySeq {
    fn max_by_seq(self, other: Self) -> Self;
}

impl MaxBySeq for Option<Head> {
    fn max_by_seq(self, other: Self) -> Self {
        if other.map(|head| head.seq) > self.map(|head| head.seq) {
            other
        } else {
            self
        }
    }
}

fn with_path(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(
        error.kind(),
        format!("the audit log `{}`: {error}", path.display()),
    )
}

/// Opens a file for appending, and returns it with the time of its creation.
pub(super) fn open_file(path: &Path) -> io::Result<(File, SystemTime)> {
    let with_path = |error: io::Error| with_path(path, &error);
    files::create_folder(path).map_err(with_path)?;
    let file = OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
        .map_err(with_path)?;
    let created = file
        .metadata()
        .and_then(|metadata| metadata.created())
        .unwrap_or_else(|_| SystemTime::now());
    Ok((file, created))
}
