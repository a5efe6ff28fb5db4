//! Reports the progress of long operations.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::panic::resume_unwind;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

/// Work that takes longer than this reports its progress.
const LONG: Duration = Duration::from_secs(1);

/// Runs `act`, and prints `what` it does if it takes more than a second and standard error is a
/// terminal.
///
/// # Errors
/// The message cannot be written.
pub(super) fn patiently<T: Send>(
    what: impl Display,
    err: &mut dyn Write,
    act: impl FnOnce() -> T + Send,
) -> io::Result<T> {
    patiently_for(LONG, io::stderr().is_terminal(), what, err, act)
}

fn patiently_for<T: Send>(
    long: Duration,
    shows: bool,
    what: impl Display,
    err: &mut dyn Write,
    act: impl FnOnce() -> T + Send,
) -> io::Result<T> {
    let (done, wait) = sync_channel::<()>(0);
    std::thread::scope(|scope| {
        // The caller holds the lock on standard error and only it writes there, so the work moves
        // to another thread, not the message.
        let acting = scope.spawn(move || {
            let acted = act();
            drop(done);
            acted
        });
        let outcome = match wait.recv_timeout(long) {
            Err(RecvTimeoutError::Timeout) if shows => {
                writeln!(err, "{what} …").and_then(|()| err.flush())
            }
            _ => Ok(()),
        };
        let acted = acting.join().unwrap_or_else(|panic| resume_unwind(panic));
        outcome.map(|()| acted)
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
            patiently_for(limit, shows, "counting", &mut err, act).unwrap();
            String::from_utf8(err).unwrap()
        };
        assert_eq!(outcome(short, true), "counting …\n");
        assert_eq!(
            (outcome(long, true), outcome(short, false)),
            (String::new(), String::new())
        );
        assert_eq!(
            patiently_for(long, true, "", &mut Vec::new(), || 7).unwrap(),
            7
        );
    }
}
