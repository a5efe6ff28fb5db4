//! What a program prints: how password managers hand out a secret.

use std::io::{self, Read};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use zeroize::Zeroizing;

/// What `command` prints on its standard output, if it ends well within a time and prints no more than `most` bytes. What it
/// says on its standard error goes to that of the gate, where a person reads it.
///
/// # Errors
/// It cannot be started, fails, times out, or its output is too long or not text.
pub(super) fn output_of(command: &[String], within: Duration, most: u64) -> io::Result<String> {
    let (program, arguments) = command.split_first().ok_or(io::ErrorKind::NotFound)?;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let output = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let (done, waits) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut text = Zeroizing::new(Vec::new());
        let read = output.take(most + 1).read_to_end(&mut text).map(|_| text);
        // Nobody waits any longer if it took too long.
        let _late = done.send(read);
    });
    let Ok(read) = waits.recv_timeout(within) else {
        child.kill()?;
        child.wait()?;
        // Its own children may hold the pipe open for ever: the thread ends with them.
        return Err(io::Error::other(format!(
            "it timed out after {} s",
            within.as_secs()
        )));
    };
    let read = read?;
    if read.len() as u64 > most {
        child.kill()?;
    }
    let status = child.wait()?;
    let _joined = reader.join();
    match (read.len() as u64 > most, status.success()) {
        (true, _) => Err(io::Error::other(format!(
            "it printed more than {most} bytes"
        ))),
        (false, false) => Err(io::Error::other(format!("it failed: {status}"))),
        (false, true) => std::str::from_utf8(&read)
            .map(str::to_owned)
            .map_err(io::Error::other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, within: u64) -> io::Result<String> {
        output_of(
            &["sh", "-c", script].map(String::from),
            Duration::from_millis(within),
            100,
        )
    }

    #[test]
    fn a_program_has_its_time_and_its_bytes() {
        assert_eq!(sh("printf value", 5000).unwrap(), "value");
        assert!(sh("exit 3", 5000).is_err());
        assert!(
            sh("exec sleep 20", 50)
                .unwrap_err()
                .to_string()
                .contains("timed out")
        );
        assert!(
            sh("yes", 5000)
                .unwrap_err()
                .to_string()
                .contains("more than 100 bytes")
        );
        assert!(
            output_of(
                &["/no/such/program".to_owned()],
                Duration::from_secs(1),
                100
            )
            .is_err()
        );
    }
}
