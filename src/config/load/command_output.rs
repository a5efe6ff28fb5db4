//! Output of a program, for secrets that password managers print.

use std::io::{self, Read};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use zeroize::Zeroizing;

/// Returns what `command` prints on its standard output, if it exits successfully within the time
/// limit and prints no more than `most` bytes. Its standard error is that of the gate, where the
/// operator can read it.
///
/// # Errors
/// Fails if the program cannot be started, fails or times out, or if its output is too long or not
/// text.
pub(super) fn read_output(command: &[String], timeout: Duration, most: u64) -> io::Result<String> {
    let (program, arguments) = command.split_first().ok_or(io::ErrorKind::NotFound)?;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let output = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let (sender, receiver) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut text = Zeroizing::new(Vec::new());
        let result = output.take(most + 1).read_to_end(&mut text).map(|_| text);
        // The receiver is gone if it took too long.
        let _late = sender.send(result);
    });
    let Ok(result) = receiver.recv_timeout(timeout) else {
        child.kill()?;
        child.wait()?;
        // Children of the program may hold the pipe open indefinitely; the thread ends when they
        // do.
        return Err(io::Error::other(format!(
            "it timed out after {} s",
            timeout.as_secs()
        )));
    };
    let captured = result?;
    if captured.len() as u64 > most {
        child.kill()?;
    }
    let status = child.wait()?;
    let _joined = reader.join();
    match (captured.len() as u64 > most, status.success()) {
        (true, _) => Err(io::Error::other(format!(
            "it printed more than {most} bytes"
        ))),
        (false, false) => Err(io::Error::other(format!("it failed: {status}"))),
        (false, true) => std::str::from_utf8(&captured)
            .map(str::to_owned)
            .map_err(io::Error::other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, within: u64) -> io::Result<String> {
        read_output(
            &["sh", "-c", script].map(String::from),
            Duration::from_millis(within),
            100,
        )
    }

    #[test]
    fn a_program_has_its_time_and_its_bytes() {
        assert_eq!(sh("printf value", 5000).unwrap(), "value");
        assert!(sh("exit 3", 5000).is_err());
        assert_contains!(
            sh("exec sleep 20", 50).unwrap_err().to_string(),
            "timed out"
        );
        assert_contains!(
            sh("yes", 5000).unwrap_err().to_string(),
            "more than 100 bytes"
        );
        assert!(
            read_output(
                &["/no/such/program".to_owned()],
                Duration::from_secs(1),
                100
            )
            .is_err()
        );
    }
}
