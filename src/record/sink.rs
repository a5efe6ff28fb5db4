//! Where audit lines go: a file or standard output, at once or through a queue.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prometheus::IntCounter;

use crate::config::{AuditConfig, AuditTo};

/// Most lines that wait to be written.
const QUEUED_LINES: usize = 8192;
/// Most bytes that wait to be written.
const QUEUED_BYTES: usize = 16 << 20;
/// Lines that come within this time of the first are written with it: one wake-up and one write for many.
const GATHER: Duration = Duration::from_millis(5);
/// Most bytes that are gathered for one write.
const GATHERED_BYTES: usize = 256 << 10;
/// Longest wait for the queue to be written out.
const FLUSH: Duration = Duration::from_secs(5);

/// What became of lines.
#[derive(Clone)]
pub(super) struct Counts {
    /// Handed to the operating system.
    pub(super) written: IntCounter,
    /// Given up because the queue was full.
    pub(super) dropped: IntCounter,
    /// Refused by the operating system.
    pub(super) failed: IntCounter,
}

/// Takes audit lines.
pub(super) struct Sink {
    way: Way,
    counts: Counts,
}

enum Way {
    /// No audit log.
    Nowhere,
    /// Each line is handed to the operating system before its message goes on.
    AtOnce(Mutex<Target>),
    /// A thread writes; a line that finds the queue full is dropped and counted.
    Queued { jobs: SyncSender<Job>, waiting: Arc<AtomicUsize> },
}

enum Job {
    /// Lines, and how many.
    Lines(String, u64),
    Reopen,
    Flush(SyncSender<()>),
}

impl Sink {
    /// Opens the log, creating file and folders as needed.
    ///
    /// # Errors
    /// A file that cannot be opened for appending, whether or not the log is required.
    pub(super) fn new(config: &AuditConfig, counts: Counts) -> io::Result<Self> {
        let way = match &config.to {
            None => Way::Nowhere,
            Some(to) if config.required => Way::AtOnce(Mutex::new(Target::open(to)?)),
            Some(to) => {
                let target = Target::open(to)?;
                let (jobs, queue) = sync_channel(QUEUED_LINES);
                let waiting = Arc::new(AtomicUsize::new(0));
                let (left, counts) = (waiting.clone(), counts.clone());
                std::thread::Builder::new().name("audit".to_owned()).spawn(move || write_all(target, &queue, &left, &counts))?;
                Way::Queued { jobs, waiting }
            }
        };
        Ok(Self { way, counts })
    }

    /// Whether anybody reads lines.
    pub(super) fn listens(&self) -> bool {
        !matches!(self.way, Way::Nowhere)
    }

    /// Writes lines; each ends in a line feed.
    ///
    /// # Errors
    /// Only where the log is required: then nothing that these lines tell of may go on.
    pub(super) fn write(&self, lines: String, count: u64) -> io::Result<()> {
        match &self.way {
            Way::Nowhere => Ok(()),
            Way::AtOnce(target) => {
                let written = lock(target).write(lines.as_bytes());
                if written.is_ok() { &self.counts.written } else { &self.counts.failed }.inc_by(count);
                written
            }
            Way::Queued { jobs, waiting } => {
                let bytes = lines.len();
                let fits = waiting.fetch_add(bytes, Ordering::Relaxed) + bytes <= QUEUED_BYTES;
                if !fits || jobs.try_send(Job::Lines(lines, count)).is_err() {
                    waiting.fetch_sub(bytes, Ordering::Relaxed);
                    self.counts.dropped.inc_by(count);
                }
                Ok(())
            }
        }
    }

    /// Opens the file anew, after it was moved away.
    ///
    /// # Errors
    /// The file cannot be opened; lines go on into the old one.
    pub(super) fn reopen(&self) -> io::Result<()> {
        match &self.way {
            Way::Nowhere => Ok(()),
            Way::AtOnce(target) => lock(target).reopen(),
            Way::Queued { jobs, .. } => match jobs.try_send(Job::Reopen) {
                Ok(()) => Ok(()),
                Err(TrySendError::Full(_)) => Err(io::Error::new(io::ErrorKind::WouldBlock, "the queue of audit lines is full")),
                Err(TrySendError::Disconnected(_)) => Err(io::ErrorKind::BrokenPipe.into()),
            },
        }
    }

    /// Waits, for at most a few seconds, until everything queued is written.
    pub(super) fn flush(&self) {
        if let Way::Queued { jobs, .. } = &self.way {
            let (done, wait) = sync_channel(1);
            if jobs.try_send(Job::Flush(done)).is_ok() && wait.recv_timeout(FLUSH).is_err() {
                tracing::warn!("the audit log did not take all lines within {} s", FLUSH.as_secs());
            }
        }
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.flush();
    }
}

/// A line is written whole or it is noted as torn, so a panic elsewhere does not spoil the target.
fn lock(target: &Mutex<Target>) -> MutexGuard<'_, Target> {
    target.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The writer's thread: ends when the sink is gone.
fn write_all(mut target: Target, queue: &Receiver<Job>, waiting: &AtomicUsize, counts: &Counts) {
    let mut well = true;
    let mut gathered = (String::new(), 0);
    while let Ok(first) = queue.recv() {
        if matches!(first, Job::Lines(..)) {
            std::thread::sleep(GATHER);
        }
        let mut next = Some(first);
        while let Some(job) = next {
            match job {
                Job::Lines(lines, count) => {
                    gathered.0.push_str(&lines);
                    gathered.1 += count;
                    if gathered.0.len() < GATHERED_BYTES {
                        next = queue.try_recv().ok();
                        continue;
                    }
                }
                Job::Reopen => {
                    write_gathered(&mut target, &mut gathered, waiting, counts, &mut well);
                    if let Err(error) = target.reopen() {
                        tracing::error!(%error, "the audit log cannot be reopened");
                    }
                }
                Job::Flush(done) => {
                    write_gathered(&mut target, &mut gathered, waiting, counts, &mut well);
                    // Whoever asked may have stopped waiting.
                    let _gone = done.try_send(());
                }
            }
            write_gathered(&mut target, &mut gathered, waiting, counts, &mut well);
            next = queue.try_recv().ok();
        }
        write_gathered(&mut target, &mut gathered, waiting, counts, &mut well);
    }
}

fn write_gathered(target: &mut Target, gathered: &mut (String, u64), waiting: &AtomicUsize, counts: &Counts, well: &mut bool) {
    let (lines, count) = gathered;
    if lines.is_empty() {
        return;
    }
    let written = target.write(lines.as_bytes());
    waiting.fetch_sub(lines.len(), Ordering::Relaxed);
    if written.is_ok() { &counts.written } else { &counts.failed }.inc_by(*count);
    // Once for each time that it breaks off, not for each line.
    if let (true, Err(error)) = (*well, &written) {
        tracing::error!(%error, "audit lines are being lost");
    }
    *well = written.is_ok();
    lines.clear();
    *count = 0;
}

/// An open log.
struct Target {
    to: Open,
    /// The last write broke off within a line.
    torn: bool,
}

enum Open {
    File(PathBuf, File),
    Stdout,
}

impl Target {
    fn open(to: &AuditTo) -> io::Result<Self> {
        let to = match to {
            AuditTo::File(path) => Open::File(path.clone(), open_file(path)?),
            AuditTo::Stdout => Open::Stdout,
        };
        Ok(Self { to, torn: false })
    }

    fn reopen(&mut self) -> io::Result<()> {
        if let Open::File(path, file) = &mut self.to {
            *file = open_file(path)?;
            self.torn = false;
        }
        Ok(())
    }

    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        // A deleted file takes lines that nobody will ever read.
        if matches!(&self.to, Open::File(_, file) if file.metadata()?.nlink() == 0) {
            self.reopen()?;
        }
        let torn = std::mem::replace(&mut self.torn, true);
        match &mut self.to {
            Open::File(_, file) => put(file, torn, lines)?,
            Open::Stdout => {
                let mut out = io::stdout().lock();
                put(&mut out, torn, lines)?;
                out.flush()?;
            }
        }
        self.torn = false;
        Ok(())
    }
}

fn put(out: &mut impl Write, torn: bool, lines: &[u8]) -> io::Result<()> {
    if torn {
        out.write_all(b"\n")?;
    }
    out.write_all(lines)
}

fn open_file(path: &Path) -> io::Result<File> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("the audit log `{}`: {error}", path.display()));
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        DirBuilder::new().recursive(true).mode(0o700).create(parent).map_err(named)?;
    }
    // Opening a pipe would wait for its reader.
    if std::fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.file_type().is_char_device()) {
        return Err(named(io::Error::other("not a regular file")));
    }
    OpenOptions::new().append(true).create(true).mode(0o600).open(path).map_err(named)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn counts() -> Counts {
        let counter = || IntCounter::new("n", "n").unwrap();
        Counts { written: counter(), dropped: counter(), failed: counter() }
    }

    fn sink(path: &Path, required: bool) -> io::Result<Sink> {
        Sink::new(&AuditConfig { to: Some(AuditTo::File(path.to_owned())), required }, counts())
    }

    #[test]
    fn lines_are_appended_and_the_file_is_the_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/er/audit.jsonl");
        for required in [true, false] {
            let sink = sink(&path, required).unwrap();
            sink.write("one\n".to_owned(), 1).unwrap();
            sink.write("two\nthree\n".to_owned(), 2).unwrap();
            sink.flush();
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\ntwo\nthree\none\ntwo\nthree\n");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_moved_file_is_left_on_reopening_and_a_deleted_one_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let (path, moved) = (folder.path().join("audit.jsonl"), folder.path().join("audit.1"));
        for required in [true, false] {
            let sink = sink(&path, required).unwrap();
            sink.write("old\n".to_owned(), 1).unwrap();
            sink.flush();
            std::fs::rename(&path, &moved).unwrap();
            sink.reopen().unwrap();
            sink.write("new\n".to_owned(), 1).unwrap();
            sink.flush();
            assert_eq!(std::fs::read_to_string(&moved).unwrap(), "old\n");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "new\n");
            std::fs::remove_file(&path).unwrap();
            sink.write("newer\n".to_owned(), 1).unwrap();
            sink.flush();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "newer\n");
            std::fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn a_log_that_is_required_and_full_refuses() {
        // Every write to /dev/full fails as on a full disk (full(4)).
        let full = sink(Path::new("/dev/full"), true).unwrap();
        let error = full.write("line\n".to_owned(), 1).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!((full.counts.failed.get(), full.counts.written.get()), (1, 0));
        let lenient = sink(Path::new("/dev/full"), false).unwrap();
        lenient.write("line\n".to_owned(), 1).unwrap();
        lenient.flush();
        assert_eq!(lenient.counts.failed.get(), 1);
    }

    #[test]
    fn what_cannot_be_a_log_is_refused_at_the_start() {
        let folder = tempfile::tempdir().unwrap();
        let told = sink(folder.path(), false).err().unwrap().to_string();
        assert!(told.contains("not a regular file") && told.contains(&*folder.path().to_string_lossy()), "{told}");
        assert!(sink(Path::new("/proc/none/audit.jsonl"), false).is_err());
    }

    #[test]
    fn a_torn_line_does_not_spoil_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let mut target = Target::open(&AuditTo::File(path.clone())).unwrap();
        target.write(b"{\"half").unwrap();
        target.torn = true;
        target.write(b"{}\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"half\n{}\n");
    }

    #[test]
    fn a_full_queue_drops_and_counts_and_never_waits() {
        let (jobs, queue) = sync_channel(1);
        let sink = Sink { way: Way::Queued { jobs, waiting: Arc::default() }, counts: counts() };
        sink.write("first\n".to_owned(), 1).unwrap();
        sink.write("second\n".to_owned(), 1).unwrap();
        sink.write("x".repeat(QUEUED_BYTES + 1), 3).unwrap();
        assert_eq!(sink.counts.dropped.get(), 4);
        assert_eq!(sink.reopen().unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(queue);
    }
}
