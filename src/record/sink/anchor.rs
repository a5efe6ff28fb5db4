//! Sends each checkpoint to a program or a URL, so that a rewritten log is detected. Nothing waits
//! for them: a checkpoint that is not accepted in time is counted and dropped.

use std::io::{self, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, header};
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;

use super::Counts;
use crate::config::Anchor;
use crate::trust;

/// Maximum number of queued checkpoints.
const MAX_QUEUED: usize = 64;
/// Maximum time to send the queued checkpoints when the process ends.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(3);
/// Interval at which a program is checked for its end.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Maximum number of bytes that are read from a program's standard error.
const MAX_ERROR_BYTES: u64 = 512;

/// The anchors of the config, if there are any.
pub(super) struct Anchors(Option<(SyncSender<Job>, Counts)>);

enum Job {
    Send(String),
    Flush(SyncSender<()>),
}

impl Anchors {
    /// Starts the thread that sends checkpoints.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(super) fn start(anchor: &Anchor, counts: &Counts) -> io::Result<Self> {
        if anchor.command.is_empty() && anchor.url.is_none() {
            return Ok(Self(None));
        }
        let (jobs, queue) = sync_channel(MAX_QUEUED);
        let anchor = anchor.clone();
        let thread_counts = counts.clone();
        std::thread::Builder::new()
            .name("audit-anchor".to_owned())
            .spawn(move || run(&anchor, &queue, &thread_counts))?;
        Ok(Self(Some((jobs, counts.clone()))))
    }

    /// Queues a checkpoint.
    pub(super) fn send(&self, note: &str) {
        if let Some((jobs, counts)) = &self.0
            && jobs.try_send(Job::Send(note.to_owned())).is_err()
        {
            counts.anchors_failed.inc();
        }
    }

    /// Waits until all are sent, up to a limit.
    pub(super) fn flush(&self) {
        let (done, wait) = sync_channel(1);
        if let Some((jobs, _)) = &self.0
            && jobs.try_send(Job::Flush(done)).is_ok()
            && wait.recv_timeout(FLUSH_TIMEOUT).is_err()
        {
            tracing::warn!("some audit log checkpoints were not anchored in time");
        }
    }
}

fn run(anchor: &Anchor, queue: &Receiver<Job>, counts: &Counts) {
    let mut is_healthy = true;
    while let Ok(job) = queue.recv() {
        let note = match job {
            Job::Send(note) => note,
            Job::Flush(done) => {
                // The caller may have stopped waiting.
                let _gone = done.try_send(());
                continue;
            }
        };
        let command_result = if anchor.command.is_empty() {
            Ok(())
        } else {
            run_command(&anchor.command, &note, anchor.timeout)
        };
        let post_result = anchor
            .url
            .as_ref()
            .map_or(Ok(()), |url| post(url, &note, anchor.timeout));
        let result = command_result.and(post_result);
        if result.is_ok() {
            &counts.anchored
        } else {
            &counts.anchors_failed
        }
        .inc();
        // Logged only for the first of consecutive failures.
        if let (true, Err(error)) = (is_healthy, &result) {
            tracing::error!(error, "cannot anchor audit log checkpoints");
        }
        is_healthy = result.is_ok();
    }
}

/// Runs a program with a checkpoint on its standard input.
fn run_command(words: &[String], note: &str, timeout: Duration) -> Result<(), String> {
    let Some((program, arguments)) = words.split_first() else {
        return Ok(());
    };
    let describe = |error: io::Error| format!("`{program}`: {error}");
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(describe)?;
    // A checkpoint fits into the buffer of a pipe, so this does not block.
    let write_result = child.stdin.take().map_or(Ok(()), |mut stdin| {
        stdin.write_all(format!("{note}\n").as_bytes())
    });
    let exit = wait(&mut child, timeout).map_err(describe)?;
    match exit {
        Some(status) if status.success() => write_result.map_err(describe),
        Some(status) => {
            let mut stderr_text = String::new();
            // Only what is available is read: a child of the program may hold the pipe open.
            let read_result = child.stderr.take().map_or(Ok(0), |stderr| {
                nonblocking(stderr)
                    .take(MAX_ERROR_BYTES)
                    .read_to_string(&mut stderr_text)
            });
            if read_result.is_err() && stderr_text.is_empty() {
                return Err(format!("`{program}` has failed ({status})"));
            }
            Err(format!(
                "`{program}` has failed ({status}): {}",
                stderr_text.trim().escape_debug()
            ))
        }
        None => Err(format!(
            "`{program}` did not end within {} s",
            timeout.as_secs()
        )),
    }
}

fn nonblocking(stderr: std::process::ChildStderr) -> std::process::ChildStderr {
    if let Ok(flags) = rustix::fs::fcntl_getfl(&stderr)
        && let Err(error) = rustix::fs::fcntl_setfl(&stderr, flags | rustix::fs::OFlags::NONBLOCK)
    {
        tracing::debug!(%error, "a pipe cannot be read without waiting");
    }
    stderr
}

/// Waits for a program, and kills it after the timeout.
fn wait(child: &mut Child, timeout: Duration) -> io::Result<Option<std::process::ExitStatus>> {
    let deadline = Instant::now() + timeout;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= deadline {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Sends a checkpoint to a URL.
fn post(url: &str, note: &str, timeout: Duration) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let connector = hyper_rustls::HttpsConnectorBuilder::new()
        .with_tls_config(
            trust::client_tls()?
                .with_root_certificates(trust::system_roots()?)
                .with_no_client_auth(),
        )
        .https_or_http()
        .enable_http1()
        .wrap_connector(trust::tcp_connector(timeout));
    let request = Request::post(url)
        .header(header::CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(format!("{note}\n"))))
        .map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new()).build(connector);
        match tokio::time::timeout(timeout, client.request(request)).await {
            Ok(Ok(answer)) if answer.status().is_success() => Ok(()),
            Ok(Ok(answer)) => Err(format!("`anchor_url` answered {}", answer.status())),
            Ok(Err(_)) => Err("`anchor_url` cannot be reached".to_owned()),
            Err(_) => Err(format!(
                "`anchor_url` did not answer within {} s",
                timeout.as_secs()
            )),
        }
    })
}
