//! The system's keyring, through the command-line program that comes with it: implementing a
//! desktop's own protocol would take more code than the rest of this module, for one string.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use zeroize::Zeroizing;

use super::SealError;

/// Maximum run time of the program: it may ask the user to unlock the keyring.
const RUN_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum wait for its output after it has exited: processes that it started may hold the pipe
/// open.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum length of the output that is read, in bytes.
const MAX_OUTPUT_BYTES: u64 = 4096;
/// The service name of the entries in the keyring.
const SERVICE: &str = "lychgate";

/// One entry of the keyring.
#[derive(Debug)]
pub(super) struct Keyring {
    name: String,
    program: String,
    style: Style,
}

/// The program that is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    /// `secret-tool` of libsecret.
    SecretTool,
    /// `security` of macOS.
    Security,
}

/// The result of running the program.
struct ToolOutput {
    code: Option<i32>,
    stdout: Zeroizing<String>,
    stderr: String,
}

impl Keyring {
    /// Returns the entry of this name in the system's keyring.
    ///
    /// # Errors
    /// Fails if the name contains characters other than letters, digits, `-`, `_` and `.`.
    pub(super) fn of_system(name: &str) -> Result<Self, SealError> {
        if cfg!(target_os = "macos") {
            Self::new(name, "security", Style::Security)
        } else {
            Self::new(name, "secret-tool", Style::SecretTool)
        }
    }

    fn new(name: &str, program: &str, style: Style) -> Result<Self, SealError> {
        let is_plain =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        if name.is_empty()
            || name.len() > 64
            || name.starts_with('-')
            || !name.bytes().all(is_plain)
        {
            let hint = "at most 64 letters, digits, `_`, `.` and, but for the first, `-`";
            return Err(SealError::Key(format!(
                "`{name}` cannot be the name of an entry of the keyring\n  hint: {hint}"
            )));
        }
        Ok(Self {
            name: name.to_owned(),
            program: program.to_owned(),
            style,
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the value of the entry; `None` if there is no such entry.
    pub(super) fn look_up(&self) -> Result<Option<Zeroizing<String>>, SealError> {
        let name = self.name.as_str();
        let output = match self.style {
            Style::SecretTool => self.run(&["lookup", "service", SERVICE, "key", name], "")?,
            Style::Security => self.run(
                &["find-generic-password", "-s", SERVICE, "-a", name, "-w"],
                "",
            )?,
        };
        match (self.style, output.code) {
            (_, Some(0)) => Ok(Some(output.stdout)),
            // `security` exits with 44 if there is no such entry. `secret-tool` exits with 1 and no
            // message for that, and with 1 and a message for other errors.
            (Style::Security, Some(44)) => Ok(None),
            (Style::SecretTool, Some(1)) if output.stderr.is_empty() => Ok(None),
            _ => Err(self.tool_error(&output)),
        }
    }

    /// Creates the entry. The secret is passed on standard input, since arguments are visible to
    /// all users.
    pub(super) fn store(
        &self,
        store_name: &str,
        secret: &Zeroizing<String>,
    ) -> Result<(), SealError> {
        let name = self.name.as_str();
        let secret = secret.as_str();
        let output = match self.style {
            Style::SecretTool => {
                let label = format!("lychgate: key of {store_name} ({name})");
                self.run(
                    &["store", "--label", &label, "service", SERVICE, "key", name],
                    secret,
                )?
            }
            Style::Security => {
                let line = Zeroizing::new(format!(
                    "add-generic-password -s {SERVICE} -a {name} -w {secret}\n"
                ));
                self.run(&["-i"], &line)?
            }
        };
        if output.code == Some(0) {
            Ok(())
        } else {
            Err(self.tool_error(&output))
        }
    }

    fn run(&self, args: &[&str], input: &str) -> Result<ToolOutput, SealError> {
        let program = &self.program;
        let key_error = |what: &str| SealError::Key(format!("`{program}` {what}"));
        let mut child = Command::new(program)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| {
                let hint = match self.style {
                    Style::SecretTool => {
                        "install it (Debian, Ubuntu: `libsecret-tools`; Fedora: `libsecret`)"
                    }
                    Style::Security => "it comes with macOS, in `/usr/bin`",
                };
                let other = "or keep the key elsewhere: `{ file = … }` or `{ env = … }`";
                SealError::Key(format!(
                    "the keyring needs `{program}`: {error}\n  hint: {hint}, {other}"
                ))
            })?;
        if let Some(mut stdin) = child.stdin.take() {
            // If the program does not read its input, its exit status or error output shows why.
            stdin.write_all(input.as_bytes()).unwrap_or_default();
        }
        let stdout = read_all(child.stdout.take());
        let stderr = read_all(child.stderr.take());
        let began = Instant::now();
        let status = loop {
            match child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) if began.elapsed() < RUN_TIMEOUT => {
                    std::thread::sleep(Duration::from_millis(10))
                }
                _ => {
                    child
                        .kill()
                        .and_then(|()| child.wait().map(|_| ()))
                        .unwrap_or_default();
                    return Err(key_error(&format!(
                        "did not answer within {} s: is the keyring locked?",
                        RUN_TIMEOUT.as_secs()
                    )));
                }
            }
        };
        let [stdout, stderr] = [stdout, stderr].map(|receiver| {
            receiver
                .recv_timeout(DRAIN_TIMEOUT)
                .map_err(|_| key_error("has ended, and its output has not"))
        });
        let stdout = std::str::from_utf8(&stdout?)
            .map(|text| Zeroizing::new(text.to_owned()))
            .map_err(|_| key_error("says what is no text"))?;
        Ok(ToolOutput {
            code: status.code(),
            stdout,
            stderr: String::from_utf8_lossy(&stderr?).into_owned(),
        })
    }

    fn tool_error(&self, output: &ToolOutput) -> SealError {
        let line: String = output
            .stderr
            .lines()
            .next()
            .unwrap_or("it says nothing")
            .chars()
            .filter(|c| !c.is_control())
            .take(200)
            .collect();
        let hint = "the keyring must run and be unlocked for the user who runs the gate; on a server, keep the key in a file \
                    or in the environment";
        SealError::Key(format!("`{}` failed: {line}\n  hint: {hint}", self.program))
    }
}

/// Reads a program's output, up to the limit, on a separate thread, so that the caller can stop
/// waiting.
fn read_all(stream: Option<impl Read + Send + 'static>) -> Receiver<Zeroizing<Vec<u8>>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        // Allocated at full capacity, since a vector that grows leaves copies behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_OUTPUT_BYTES as usize));
        // After a read error, what was read so far is used.
        let _broken = stream.map(|from| from.take(MAX_OUTPUT_BYTES).read_to_end(&mut bytes));
        sender.send(bytes).unwrap_or_default();
    });
    receiver
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A program that stores its input in a file beside it, and records its arguments.
    const SECRET_TOOL: &str = r#"#!/bin/sh
here=$(dirname "$0")
echo "$@" >> "$here/args"
case $1 in
  lookup) [ -e "$here/kept" ] && exec cat "$here/kept"; exit 1 ;;
  store) exec cat > "$here/kept" ;;
esac
"#;

    fn program(folder: &tempfile::TempDir, script: &str) -> String {
        let path = folder.path().join("program");
        // Written by another process: a file that is open for writing in this process cannot be
        // executed, and child processes of other tests, which run concurrently, would inherit the
        // descriptor.
        let mut shell = Command::new("sh");
        shell
            .args(["-c", "printf %s \"$2\" > \"$1\" && chmod 755 \"$1\"", "sh"])
            .arg(&path)
            .arg(script);
        assert!(shell.status().unwrap().success());
        path.to_str().unwrap().to_owned()
    }

    #[test]
    fn an_entry_is_made_and_found_and_its_secret_is_no_argument() {
        let folder = tempfile::tempdir().unwrap();
        let keyring =
            Keyring::new("gate", &program(&folder, SECRET_TOOL), Style::SecretTool).unwrap();
        assert!(keyring.look_up().unwrap().is_none());
        let secret = Zeroizing::new("5ec2e7".repeat(10));
        keyring.store("the vault", &secret).unwrap();
        assert_eq!(keyring.look_up().unwrap().as_ref(), Some(&secret));
        let args = fs::read_to_string(folder.path().join("args")).unwrap();
        assert!(
            args.contains("key gate") && !args.contains(secret.as_str()),
            "{args}"
        );
    }

    #[test]
    fn what_cannot_be_looked_up_is_not_taken_for_missing() {
        let folder = tempfile::tempdir().unwrap();
        let script = "#!/bin/sh\necho 'Cannot autolaunch D-Bus' >&2\nexit 1\n";
        let keyring = Keyring::new("gate", &program(&folder, script), Style::SecretTool).unwrap();
        let error = keyring.look_up().unwrap_err().to_string();
        assert_contains!(error, "Cannot autolaunch D-Bus", "hint: ");
    }

    #[test]
    fn a_program_whose_offspring_holds_its_output_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let keyring = Keyring::new(
            "gate",
            &program(&folder, "#!/bin/sh\nsleep 30 &\necho 5ec2e7\n"),
            Style::SecretTool,
        )
        .unwrap();
        let began = Instant::now();
        let error = keyring.look_up().unwrap_err().to_string();
        assert!(
            error.contains("its output has not") && began.elapsed() < Duration::from_secs(20),
            "{error}"
        );
    }

    #[test]
    fn macos_says_44_for_missing_and_takes_commands_from_standard_input() {
        let folder = tempfile::tempdir().unwrap();
        let script = "#!/bin/sh\n[ \"$1\" = -i ] && { cat > \"$(dirname \"$0\")/typed\"; exit 0; }\nexit 44\n";
        let keyring = Keyring::new("gate", &program(&folder, script), Style::Security).unwrap();
        assert!(keyring.look_up().unwrap().is_none());
        keyring
            .store("the vault", &Zeroizing::new("abc".into()))
            .unwrap();
        let typed = fs::read_to_string(folder.path().join("typed")).unwrap();
        assert_eq!(typed, "add-generic-password -s lychgate -a gate -w abc\n");
    }

    #[test]
    fn a_missing_program_and_a_strange_name_are_said() {
        let keyring = Keyring::new("gate", "/nowhere/secret-tool", Style::SecretTool).unwrap();
        assert_contains!(
            keyring.look_up().unwrap_err().to_string(),
            "libsecret-tools"
        );
        for name in ["", "-x", "a b", "a\nb", "a\"b", &"a".repeat(65)] {
            assert!(Keyring::of_system(name).is_err(), "{name}");
        }
    }
}
