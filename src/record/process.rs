//! Resource usage of the process, from proc(5) on Linux.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

/// Current resource usage of the process.
pub(super) struct Usage {
    /// Resident memory, in bytes.
    pub(super) resident_bytes: f64,
    /// Processor time used so far, in seconds.
    pub(super) cpu_seconds: f64,
    /// Number of open files and sockets.
    pub(super) open_files: f64,
}

/// Returns the current resource usage; `None` if the system has no proc(5).
pub(super) fn usage() -> Option<Usage> {
    let memory = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: f64 = memory.split(' ').nth(1)?.parse().ok()?;
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The second field is the program's name in parentheses, which may contain spaces, so fields 14
    // and 15 are counted from its end.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    let open = fs::read_dir("/proc/self/fd").ok()?.count();
    Some(Usage {
        resident_bytes: pages * rustix::param::page_size() as f64,
        cpu_seconds: (user + system) / rustix::param::clock_ticks_per_second() as f64,
        // Reading the folder opens it.
        open_files: open.saturating_sub(1) as f64,
    })
}

/// Returns the current time.
pub(super) fn seconds_since_1970() -> f64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0.0, |since| since.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_running_process_uses_something() {
        let usage = usage().unwrap();
        assert!(
            usage.resident_bytes > 100_000.0 && usage.open_files >= 3.0 && usage.cpu_seconds >= 0.0
        );
        assert!(seconds_since_1970() > 1.7e9);
    }
}
