//! Asks for confirmation on the terminal before a change.

use std::io::{self, BufRead, IsTerminal, Read, Write};

use super::exit::Exit;

/// Maximum length of an answer that is read, in bytes.
const MAX_ANSWER_BYTES: u64 = 64;

/// Returns an error if there is no terminal, unless `yes` is set. `action` completes "pass --yes to
/// …".
pub(super) fn require_terminal(yes: bool, action: &str) -> Result<(), Exit> {
    if yes || io::stdin().is_terminal() {
        return Ok(());
    }
    Err(Exit::Code(
        2,
        format!("error: not a terminal; pass --yes to {action}"),
    ))
}

/// Asks for confirmation on the terminal. Any answer other than `y` or `yes` means no; so does the
/// absence of a terminal.
///
/// # Errors
/// The question cannot be written or the answer cannot be read.
pub(super) fn confirm(question: &str, err: &mut dyn Write) -> io::Result<bool> {
    if !io::stdin().is_terminal() {
        writeln!(err, "not a terminal; pass --yes to apply")?;
        return Ok(false);
    }
    let answer = ask(question, MAX_ANSWER_BYTES, err)?;
    Ok(matches!(answer.as_deref(), Some("y" | "Y" | "yes")))
}

/// Asks for a line of text on the terminal; `None` at the end of the input.
///
/// # Errors
/// The question cannot be written, or the answer cannot be read or is longer than `limit_bytes`.
pub(super) fn ask(
    question: &str,
    limit_bytes: u64,
    err: &mut dyn Write,
) -> io::Result<Option<String>> {
    write!(err, "{question}")?;
    err.flush()?;
    let mut answer = String::new();
    let length = io::stdin()
        .lock()
        .take(limit_bytes)
        .read_line(&mut answer)?;
    // The rest of a longer line would be read as the next answer.
    if length as u64 == limit_bytes && !answer.ends_with('\n') {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("the answer exceeds {limit_bytes} bytes"),
        ));
    }
    Ok((length > 0).then(|| answer.trim().to_owned()))
}
