//! Retention of rotated files: they are compressed, and removed when they are too many, too old or
//! too large. This happens beside the writing and can be interrupted at any point.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, SystemTime};

use flate2::Compression;
use flate2::write::GzEncoder;
use rustix::fs::{FlockOperation, flock};

use super::Counts;
use crate::config::Rotation;
use crate::record::chain::checkpoint::{CheckpointLog, Reason};
use crate::record::chain::files::{
    GZ_SUFFIX, rotated_files, rotation_time, sync_folder, with_suffix,
};
use crate::record::chain::tail::last_head;

/// Interval at which files are checked for their age.
const CHECK_INTERVAL: Duration = Duration::from_secs(3600);
/// Suffix of the name of a file that is being compressed.
const TEMPORARY_SUFFIX: &str = ".packing";

/// The thread that applies retention.
pub(super) struct RetentionThread(SyncSender<()>);

impl RetentionThread {
    /// Starts the thread, which first processes files that an earlier process left.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(super) fn start(
        log: &Path,
        rotation: &Rotation,
        notes: Arc<CheckpointLog>,
        counts: Counts,
    ) -> io::Result<Self> {
        let (wake, wake_receiver) = sync_channel(1);
        let files = RotatedFiles {
            log: log.to_owned(),
            rotation: rotation.clone(),
            notes,
        };
        std::thread::Builder::new()
            .name("audit-keep".to_owned())
            .spawn(move || files.run(&wake_receiver, &counts))?;
        Ok(Self(wake))
    }

    /// Notifies the thread that a file was rotated.
    pub(super) fn wake(&self) {
        // A thread that is already awake finds that file as well.
        let _awake = self.0.try_send(());
    }
}

/// The rotated files of a log.
struct RotatedFiles {
    log: PathBuf,
    rotation: Rotation,
    notes: Arc<CheckpointLog>,
}

impl RotatedFiles {
    fn run(&self, wake_receiver: &Receiver<()>, counts: &Counts) {
        loop {
            if let Err(error) = self.tidy(SystemTime::now(), counts) {
                tracing::warn!(%error, "cannot compress or remove rotated audit log files");
            }
            if wake_receiver.recv_timeout(CHECK_INTERVAL) == Err(RecvTimeoutError::Disconnected) {
                return;
            }
        }
    }

    fn tidy(&self, now: SystemTime, counts: &Counts) -> io::Result<()> {
        // Files are removed first, and one that cannot be removed or compressed does not stop the
        // others: this is what helps on a full disk.
        let mut first = Ok(());
        for path in self.files_to_remove(now)? {
            match self.remove(&path) {
                Ok(()) => counts.removed.inc(),
                Err(error) => first = first.and(Err(error)),
            }
        }
        if self.rotation.compress {
            for path in rotated_files(&self.log)?
                .iter()
                .filter(|path| !path.to_string_lossy().ends_with(GZ_SUFFIX))
            {
                first = first.and(compress(path));
            }
        }
        first.and(self.notes.trim())
    }

    /// Returns the files to remove, which are always the oldest.
    fn files_to_remove(&self, now: SystemTime) -> io::Result<Vec<PathBuf>> {
        let Rotation {
            keep_files,
            keep_age,
            keep_bytes,
            ..
        } = self.rotation;
        let mut bytes = std::fs::metadata(&self.log).map_or(0, |log| log.len());
        let mut is_excess = false;
        let mut removals = Vec::new();
        for (files, path) in (1_u64..).zip(rotated_files(&self.log)?.into_iter().rev()) {
            bytes = bytes.saturating_add(std::fs::metadata(&path)?.len());
            let age =
                rotation_time(&self.log, &path).and_then(|then| now.duration_since(then).ok());
            is_excess = is_excess
                || keep_files.is_some_and(|most| files > most)
                || keep_bytes.is_some_and(|most| bytes > most)
                || keep_age.zip(age).is_some_and(|(most, age)| age > most);
            if is_excess {
                removals.push(path);
            }
        }
        removals.reverse();
        Ok(removals)
    }

    /// Removes a file. A checkpoint records this first, so that it is not taken for tampering.
    fn remove(&self, path: &Path) -> io::Result<()> {
        if let Some(head) = last_head(path)? {
            self.notes
                .add(Reason::Removed, &head, std::fs::metadata(path)?.len(), path)?;
        }
        tracing::info!(file = %path.display(), "rotated audit log file removed by retention");
        std::fs::remove_file(path)?;
        // The file may exist both compressed and plain if the machine failed at that moment.
        match std::fs::remove_file(with_suffix(path, GZ_SUFFIX)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => sync_folder(path),
        }
    }
}

/// Compresses a file. The plain one remains until the compressed one is complete and on disk.
fn compress(path: &Path) -> io::Result<()> {
    let mut plain = File::open(path)?;
    // Another process may be compressing it.
    if flock(&plain, FlockOperation::NonBlockingLockExclusive).is_err() || !path.exists() {
        return Ok(());
    }
    let temporary = with_suffix(path, TEMPORARY_SUFFIX);
    let compressed = with_suffix(path, GZ_SUFFIX);
    let out = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&temporary)?;
    let mut encoder = GzEncoder::new(out, Compression::default());
    let result = io::copy(&mut plain, &mut encoder)
        .and_then(|_| encoder.finish())
        .and_then(|out| out.sync_all());
    if let Err(error) = result {
        std::fs::remove_file(&temporary)?;
        return Err(error);
    }
    std::fs::rename(&temporary, &compressed)?;
    sync_folder(path)?;
    std::fs::remove_file(path)
}
