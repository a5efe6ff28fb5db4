//! Reports the progress of long operations.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::panic::resume_unwind;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

/// Work that takes longer than this reports its progress.
const PROGRESS_DELAY: Duration = Duration::from_secs(1);

/// Runs `work`, and prints its `activity` if it takes more than a second and standard error is a
/// terminal.
///
/// # Errors
/// The message cannot be written.
pub(super) fn run_with_progress<T: Send>(
    activity: impl Display,
    err: &mut dyn Write,
    work: impl FnOnce() -> T + Send,
) -> io::Result<T> {
    run_with_progress_after(
        PROGRESS_DELAY,
        io::stderr().is_terminal(),
        activity,
        err,
        work,
    )
}

fn run_with_progress_after<T: Send>(
    delay: Duration,
    is_shown: bool,
    activity: impl Display,
    err: &mut dyn Write,
    work: impl FnOnce() -> T + Send,
) -> io::Result<T> {
    let (done, wait) = sync_channel::<()>(0);
    std::thread::scope(|scope| {
        // The caller holds the lock on standard error and only it writes there, so the work moves
        // to another thread, not the message.
        let worker = scope.spawn(move || {
            let output = work();
            drop(done);
            output
        });
        let outcome = match wait.recv_timeout(delay) {
            Err(RecvTimeoutError::Timeout) if is_shown => {
                writeln!(err, "{activity} …").and_then(|()| err.flush())
            }
            _ => Ok(()),
        };
        let result = worker.join().unwrap_or_else(|panic| resume_unwind(panic));
        outcome.map(|()| result)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_takes_long_is_told_and_only_to_who_looks() {
        let short = Duration::from_millis(1);
        let long = Duration::from_secs(60);
        let outcome = |limit, shows| {
            let mut err = Vec::new();
            let act = || std::thread::sleep(Duration::from_millis(60));
            run_with_progress_after(limit, shows, "counting", &mut err, act).unwrap();
            String::from_utf8(err).unwrap()
        };
        assert_eq!(outcome(short, true), "counting …\n");
        assert_eq!(
            (outcome(long, true), outcome(short, false)),
            (String::new(), String::new())
        );
        assert_eq!(
            run_with_progress_after(long, true, "", &mut Vec::new(), || 7).unwrap(),
            7
        );
    }
}
