//! Faults of a stdio server's process, and its output outside the protocol.

use std::fmt;

/// Output of a server's process outside the protocol: printable, bounded, secrets masked
/// (`upstream::output`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessOutput {
    /// The last lines of its standard error.
    pub stderr: Vec<String>,
    /// The beginning of the first line of its standard output that is not a message.
    pub stdout: Option<String>,
}

impl ProcessOutput {
    /// Reports whether it printed nothing.
    pub fn is_empty(&self) -> bool {
        self.stderr.is_empty() && self.stdout.is_none()
    }
}

impl fmt::Display for ProcessOutput {
    /// Writes the output on one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.stderr.is_empty() {
            write!(f, "stderr: {}", self.stderr.join(" | "))?;
        }
        if let Some(stdout) = &self.stdout {
            write!(
                f,
                "{}stdout: {stdout}",
                if self.stderr.is_empty() { "" } else { "; " }
            )?;
        }
        Ok(())
    }
}

/// A fault of a stdio server's process. `Display` shows only the gate's own words: the output of
/// the process is the server's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessFault {
    /// When it was noticed.
    pub kind: ProcessFaultKind,
    /// A description of what happened.
    pub description: Box<str>,
    /// The output of the process.
    pub output: ProcessOutput,
    /// Whether the inbound policy has passed `output`, so that an agent may read it.
    pub inspected: bool,
}

/// When a fault of a process was noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessFaultKind {
    /// While a call was open: the process ended.
    Ended,
    /// After the call: its session ended together with the process.
    SessionEnded,
    /// An answer did not arrive in time, and the process prints text in place of messages.
    NoAnswer,
}

impl ProcessFault {
    /// Creates the fault of a process that ended.
    pub fn exited(description: impl Into<Box<str>>, output: ProcessOutput) -> Self {
        Self {
            kind: ProcessFaultKind::Ended,
            description: description.into(),
            output,
            inspected: false,
        }
    }

    /// Describes the fault and the output of the process, for operators.
    pub fn describe(&self) -> String {
        if self.output.is_empty() {
            self.description.to_string()
        } else {
            format!("{}; {}", self.description, self.output)
        }
    }
}

impl fmt::Display for ProcessFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.description)
    }
}
