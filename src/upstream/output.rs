//! Output of a server's process outside the protocol. The last lines are kept for operators, with
//! secrets masked before they are stored: most servers report on standard error why they do not
//! start.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;

use crate::config::{StdioTransport, is_secret_name};
use crate::message::ParseError;
use crate::protocol::{ProcessOutput, UpstreamName};
use crate::record::printable;

/// Maximum number of lines of standard error that are kept, and of their bytes.
const MAX_LINES: usize = 20;
const MAX_BYTES: usize = 4 << 10;
/// Maximum number of bytes of one line that are kept.
const LINE_BYTES: usize = 512;
/// Maximum number of bytes shown of a line of standard output that is not a message.
const BEGINNING_BYTES: usize = 160;
/// Minimum length of an environment value that is treated as a secret; a shorter one is a word that
/// may occur anywhere.
const SECRET_BYTES: usize = 6;

/// The output of one process, and that of all processes of its upstream.
pub(super) struct Output {
    process_tail: OutputTail,
    upstream_tail: Arc<OutputTail>,
    /// Secrets in its environment.
    secrets: Vec<Box<str>>,
}

/// The last lines of output.
#[derive(Default)]
pub(super) struct OutputTail(Mutex<Lines>);

#[derive(Default)]
struct Lines {
    output: ProcessOutput,
    stderr: VecDeque<String>,
    bytes: usize,
    /// When it last printed a line to standard output that is not a message.
    text_printed_at: Option<Instant>,
    /// Whether a private key has begun and not yet ended.
    in_key: bool,
}

impl Output {
    pub(super) fn new(transport: &StdioTransport, upstream_tail: Arc<OutputTail>) -> Self {
        let set_vars = transport
            .set_env
            .iter()
            .map(|(name, value)| (name, value.0.clone()));
        let inherited_vars = transport
            .env
            .iter()
            .filter_map(|name| Some((name, std::env::var(name).ok()?)));
        let secrets = set_vars
            .chain(inherited_vars)
            .filter(|(name, value)| is_secret_name(name) && value.len() >= SECRET_BYTES);
        Self {
            process_tail: OutputTail::default(),
            upstream_tail,
            secrets: secrets.map(|(_, value)| value.into()).collect(),
        }
    }

    /// Stores a line of standard error.
    pub(super) fn record_stderr(&self, line: &[u8], upstream: &UpstreamName) {
        let mut shown = printable(line, &self.secrets, LINE_BYTES);
        if shown.is_empty() {
            return;
        }
        if self.process_tail.is_in_key(line) {
            shown = "[redacted]".to_owned();
        }
        tracing::debug!(%upstream, "server: {shown}");
        self.upstream_tail.push(shown.clone());
        self.process_tail.push(shown);
    }

    /// Stores the beginning of a line of standard output that is not a message.
    pub(super) fn record_text(&self, line: &[u8], error: &ParseError, upstream: &UpstreamName) {
        let bytes = line.len();
        if line.trim_ascii_start().starts_with(b"{") || line.trim_ascii_start().starts_with(b"[") {
            // It may be an answer, which can contain anything.
            return tracing::warn!(%upstream, bytes, %error, "dropped an unreadable message of the server");
        }
        let begins = printable(line, &self.secrets, BEGINNING_BYTES);
        self.upstream_tail.0.lock().output.stdout = Some(begins.clone());
        let is_first = {
            let mut tail = self.process_tail.0.lock();
            tail.output.stdout.get_or_insert_with(|| begins.clone());
            tail.text_printed_at.replace(Instant::now()).is_none()
        };
        // A server that logs to standard output would fill the gate's log.
        if is_first {
            tracing::warn!(
                %upstream, bytes, %begins,
                "dropped a line on the server's standard output that is not an MCP message; the server must log to \
                 standard error"
            );
        } else {
            tracing::debug!(%upstream, bytes, %begins, "dropped another line that is not an MCP message");
        }
    }

    pub(super) fn process_output(&self) -> ProcessOutput {
        self.process_tail.process_output()
    }

    /// Reports whether it has printed text in place of messages since `since`.
    pub(super) fn prints_text_since(&self, since: Instant) -> bool {
        self.process_tail
            .0
            .lock()
            .text_printed_at
            .is_some_and(|last| last >= since)
    }
}

impl OutputTail {
    pub(super) fn process_output(&self) -> ProcessOutput {
        let lines = self.0.lock();
        ProcessOutput {
            stderr: lines.stderr.iter().cloned().collect(),
            ..lines.output.clone()
        }
    }

    fn push(&self, line: String) {
        let mut lines = self.0.lock();
        lines.bytes += line.len();
        lines.stderr.push_back(line);
        while lines.stderr.len() > MAX_LINES || lines.bytes > MAX_BYTES {
            let Some(oldest) = lines.stderr.pop_front() else {
                break;
            };
            lines.bytes = lines.bytes.saturating_sub(oldest.len());
        }
    }

    /// Reports whether a line belongs to a private key in PEM: masking looks at single lines only.
    fn is_in_key(&self, line: &[u8]) -> bool {
        let mut lines = self.0.lock();
        let contains = |sign: &[u8]| memchr::memmem::find(line, sign).is_some();
        let was_in_key = lines.in_key;
        if contains(b"-----BEGIN ") && contains(b"PRIVATE KEY") {
            lines.in_key = true;
        }
        if contains(b"-----END ") {
            lines.in_key = false;
        }
        was_in_key || lines.in_key
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Secret;

    fn output(set_env: &[(&str, &str)]) -> Output {
        let set_env = set_env
            .iter()
            .map(|(name, value)| ((*name).to_owned(), Secret((*value).to_owned())))
            .collect();
        let transport = StdioTransport {
            command: vec![],
            env: vec![],
            set_env,
            directory: None,
        };
        Output::new(&transport, Arc::default())
    }

    fn print_lines(output: &Output, lines: &[&str]) -> Vec<String> {
        lines
            .iter()
            .for_each(|line| output.record_stderr(line.as_bytes(), &UpstreamName("it".into())));
        output.process_output().stderr
    }

    #[test]
    fn the_last_lines_are_kept_and_no_more() {
        let many: Vec<String> = (0..1000).map(|number| format!("line {number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let kept = print_lines(&output(&[]), &many);
        assert_eq!(
            (kept.len(), kept.last().map(String::as_str)),
            (MAX_LINES, Some("line 999"))
        );
        let long = "many words ".repeat(1000);
        let kept = print_lines(&output(&[]), &[long.as_str(); 50]);
        assert!(
            kept.iter().map(String::len).sum::<usize>() <= MAX_BYTES && kept.len() > 3,
            "{}",
            kept.len()
        );
    }

    #[test]
    fn only_text_is_kept_of_standard_output() {
        let output = output(&[]);
        let began = Instant::now();
        let error = ParseError::TooLarge { limit: 1 };
        output.record_text(b" {\"result\":1", &error, &UpstreamName("it".into()));
        assert_eq!(
            (
                output.process_output().stdout,
                output.prints_text_since(began)
            ),
            (None, false)
        );
        output.record_text(b"Ready.", &error, &UpstreamName("it".into()));
        output.record_text(b"More.", &error, &UpstreamName("it".into()));
        assert_eq!(
            (
                output.process_output().stdout.as_deref(),
                output.prints_text_since(began)
            ),
            (Some("Ready."), true)
        );
        assert!(!output.prints_text_since(Instant::now()));
    }

    #[test]
    fn secrets_are_masked_before_they_are_kept() {
        let output = output(&[("API_TOKEN", "plainwords"), ("LOG_LEVEL", "verbose")]);
        let key = [
            "-----BEGIN PRIVATE KEY-----",
            "short/line+of/a+key",
            "-----END PRIVATE KEY-----",
        ];
        let kept = print_lines(
            &output,
            &[
                "verbose: it was plainwords",
                "",
                key[0],
                key[1],
                key[2],
                "API_TOKEN is not set",
            ],
        );
        assert_eq!(
            kept,
            [
                "verbose: it was [redacted]",
                "[redacted]",
                "[redacted]",
                "[redacted]",
                "API_TOKEN is not set"
            ]
        );
        assert_eq!(
            output.upstream_tail.process_output(),
            output.process_output()
        );
    }
}
