//! The processes that are measured, and their figures from the kernel.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A child process with all that it started; they end when this is dropped.
pub struct Process {
    child: Child,
}

impl Process {
    pub fn start(command: &mut Command, log: &Path) -> io::Result<Self> {
        let log = fs::File::create(log)?;
        let child = command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        Ok(Self { child })
    }

    /// Returns the ids of this process and its children, of which nginx has some.
    fn all(&self) -> Vec<u32> {
        let mine = self.child.id();
        let mut all = vec![mine];
        let children =
            fs::read_to_string(format!("/proc/{mine}/task/{mine}/children")).unwrap_or_default();
        all.extend(
            children
                .split_whitespace()
                .filter_map(|pid| pid.parse::<u32>().ok()),
        );
        all
    }

    /// Returns the CPU time so far, over all threads.
    pub fn cpu(&self) -> Duration {
        let nanos = self.all().into_iter().flat_map(threads).filter_map(|task| {
            let line = fs::read_to_string(task.join("schedstat")).ok()?;
            line.split_whitespace().next()?.parse::<u64>().ok()
        });
        Duration::from_nanos(nanos.sum())
    }

    /// Returns the resident memory in bytes.
    pub fn rss(&self) -> u64 {
        self.all()
            .into_iter()
            .map(|pid| kilobytes(&format!("/proc/{pid}/status"), "VmRSS:"))
            .sum::<u64>()
            * 1024
    }

    /// Returns the memory in bytes, with shared memory counted proportionally.
    pub fn pss(&self) -> u64 {
        self.all()
            .into_iter()
            .map(|pid| kilobytes(&format!("/proc/{pid}/smaps_rollup"), "Pss:"))
            .sum::<u64>()
            * 1024
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // SIGTERM, so that nginx ends its workers too; errors for a child that is already gone are
        // ignored.
        let _ = Command::new("kill")
            .arg(self.child.id().to_string())
            .status();
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(3) {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn threads(pid: u32) -> Vec<PathBuf> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    tasks
        .map(|tasks| tasks.filter_map(|task| Some(task.ok()?.path())).collect())
        .unwrap_or_default()
}

fn kilobytes(file: &str, field: &str) -> u64 {
    let text = fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

/// Returns a port on which nothing listens.
pub fn free_port() -> io::Result<u16> {
    Ok(std::net::TcpListener::bind(("127.0.0.1", 0))?
        .local_addr()?
        .port())
}
