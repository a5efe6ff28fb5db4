//! One child process: started without a shell, addressed in lines, and always terminated.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio as Pipe};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::process::Command;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::body::with_timeout;
use super::channel::Channel;
use super::end::ChannelEnd;
use super::in_flight_call::InFlightCall;
use super::lines::{Line, Lines, one_line};
use super::output::{Output, OutputTail};
use super::sessions::ServerLink;
use crate::config::{Limits, StdioTransport};
use crate::message::Message;
use crate::protocol::{CallError, Era, ProcessFault, ProcessFaultKind, UpstreamName};

/// How long a child may take to exit by itself after its standard input is closed, and again after
/// SIGTERM (2025-11-25, Lifecycle, Shutdown).
const GRACE_PERIOD: Duration = Duration::from_secs(2);
/// How long to wait for the rest of a child's output after it has exited.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(500);
const STDERR_LINE_BYTES: usize = 64 << 10;

/// What to start, and for which upstream.
pub(super) struct ChildSpec {
    pub(super) upstream: UpstreamName,
    pub(super) transport: StdioTransport,
    pub(super) limits: Limits,
    /// The last output of all its processes.
    pub(super) output: Arc<OutputTail>,
}

/// A running child. When the last handle is dropped, the child is terminated.
pub(super) struct Child {
    channel: Arc<Channel>,
    lines: mpsc::UnboundedSender<Outgoing>,
    budget: Arc<Semaphore>,
    stop: watch::Sender<bool>,
    output: Arc<Output>,
}

struct Outgoing {
    line: Vec<u8>,
    /// `None` for cancellation notifications: there is at most one for each call, and they must not
    /// wait.
    _permit: Option<OwnedSemaphorePermit>,
}

/// How a child exited.
pub(super) enum ChildExit {
    /// The gate ended it.
    Stopped,
    /// It exited by itself.
    ByItself(Arc<ProcessFault>),
}

impl Child {
    /// Starts a child, which is stopped when it has been unused for `idle`. `on_exit` is called
    /// once the child and its whole process group are gone; `permit` is kept until then. When
    /// `closing` turns true, the child is stopped.
    pub(super) fn start(
        spec: &ChildSpec,
        era: Era,
        idle: Duration,
        permit: OwnedSemaphorePermit,
        closing: watch::Receiver<bool>,
        on_exit: impl FnOnce(ChildExit) + Send + 'static,
    ) -> io::Result<Arc<Self>> {
        let mut command = command(&spec.transport)?;
        let (stdin, stdout, stderr) = streams(&mut command)?;
        let process = command.spawn()?;
        // Dropping the command closes our copies of the child's ends, so that the end of its output
        // is noticed.
        drop(command);
        let channel = Channel::new(era, spec.upstream.clone(), &spec.limits);
        let (lines, outgoing) = mpsc::unbounded_channel();
        let (stop, stopping) = watch::channel(false);
        let budget = spec
            .limits
            .read
            .message_bytes
            .saturating_mul(2)
            .clamp(1 << 20, Semaphore::MAX_PERMITS);
        let writer = tokio::spawn(write_lines(stdin, outgoing));
        let output = Arc::new(Output::new(&spec.transport, spec.output.clone()));
        let logger = tokio::spawn(log_lines(
            Lines::new(stderr, STDERR_LINE_BYTES),
            output.clone(),
            spec.upstream.clone(),
        ));
        let stdout_lines = Lines::new(stdout, spec.limits.read.message_bytes);
        let reader = tokio::spawn(forward_lines(
            stdout_lines,
            channel.clone(),
            output.clone(),
            spec.limits.read.message_bytes,
        ));
        let supervisor = Supervisor {
            group: process.id().and_then(|id| Pid::from_raw(id.cast_signed())),
            process,
            channel: channel.clone(),
            reader,
            logger,
            output: output.clone(),
            writer,
            idle,
            stopping,
            closing,
        };
        tokio::spawn(async move {
            let exit = supervisor.run().await;
            drop(permit);
            on_exit(exit);
        });
        Ok(Arc::new(Self {
            channel,
            lines,
            budget: Arc::new(Semaphore::new(budget)),
            stop,
            output,
        }))
    }
}

impl ServerLink for Child {
    fn channel(&self) -> &Arc<Channel> {
        &self.channel
    }

    async fn send(&self, message: &Message, time: Duration) -> Result<(), CallError> {
        let line = one_line(message.bytes());
        let permits = u32::try_from(line.len()).unwrap_or(u32::MAX);
        let end_error = || {
            self.channel
                .end_reason()
                .unwrap_or(ChannelEnd::Gone("the server's process has ended".into()))
                .error()
        };
        let permit = with_timeout(time, async {
            self.budget
                .clone()
                .acquire_many_owned(permits)
                .await
                .map_err(|_| end_error())
        })
        .await?;
        self.lines
            .send(Outgoing {
                line,
                _permit: Some(permit),
            })
            .map_err(|_| end_error())
    }

    fn enable_cancellation(&self, ticket: &mut InFlightCall) {
        let lines = self.lines.clone();
        ticket.enable_cancellation(move |message: Bytes| {
            // A child that is gone needs no cancellation.
            drop(lines.send(Outgoing {
                line: one_line(&message),
                _permit: None,
            }));
        });
    }

    /// A server that logs to standard output often answers nothing; the error of a call that timed
    /// out reports that.
    fn explain(&self, error: CallError, began: Instant) -> CallError {
        let CallError::Silent(time) = error else {
            return error;
        };
        if !self.output.prints_text_since(began) {
            return error;
        }
        let output = self.output.process_output();
        let message = format!(
            "the server did not answer within {} s, and printed text that is not MCP to its standard output",
            time.as_secs_f32()
        );
        let kind = ProcessFaultKind::NoAnswer;
        CallError::Process(Box::new(ProcessFault {
            kind,
            ..ProcessFault::exited(message, output)
        }))
    }

    fn close(&self) {
        self.channel.end(ChannelEnd::Closed);
        self.stop.send_replace(true);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is the one place where children are started"
)]
fn command(transport: &StdioTransport) -> io::Result<Command> {
    let (name, arguments) = transport
        .command
        .split_first()
        .ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(find_program(name)?);
    command.arg0(name).args(arguments).env_clear();
    command.envs(
        transport
            .env
            .iter()
            .filter_map(|name| Some((name, std::env::var_os(name)?))),
    );
    command.envs(
        transport
            .set_env
            .iter()
            .map(|(name, value)| (name, &value.0)),
    );
    if let Some(directory) = &transport.directory {
        command.current_dir(directory);
    }
    command.process_group(0).kill_on_drop(true);
    Ok(command)
}

/// Creates the child's standard input, output and error as sockets, which clients on Node also give
/// to servers. Pipes are not used: while a process splices from a socket into a pipe (as
/// `std::io::copy` does), Linux blocks all other access to the pipe, and a thread of ours that only
/// checks whether there is something to read would hang with it.
fn streams(command: &mut Command) -> io::Result<(UnixStream, UnixStream, UnixStream)> {
    let pair = || -> io::Result<(UnixStream, Pipe)> {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        Ok((UnixStream::from_std(ours)?, OwnedFd::from(theirs).into()))
    };
    let ((stdin, input), (stdout, output), (stderr, error)) = (pair()?, pair()?, pair()?);
    command.stdin(input).stdout(output).stderr(error);
    Ok((stdin, stdout, stderr))
}

/// Finds a program on the gateway's own PATH: the child's environment may have none.
fn find_program(name: &str) -> io::Result<PathBuf> {
    let not_found_error = |what: String| io::Error::new(io::ErrorKind::NotFound, what);
    if name.contains('/') {
        let file = PathBuf::from(name);
        return if file.exists() {
            Ok(file)
        } else {
            Err(not_found_error(format!(
                "the program `{name}` does not exist"
            )))
        };
    }
    let path =
        std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/local/bin:/usr/bin:/bin"));
    let is_executable = |file: &PathBuf| {
        file.metadata()
            .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    let not_found =
        || not_found_error(format!("the program `{name}` is not on the gateway's PATH"));
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(is_executable)
        .ok_or_else(not_found)
}

async fn write_lines(mut stdin: UnixStream, mut outgoing: mpsc::UnboundedReceiver<Outgoing>) {
    while let Some(next) = outgoing.recv().await {
        if let Err(error) = stdin.write_all(&next.line).await {
            // The reader of its output notices that it has ended.
            return tracing::debug!("writing to a server's process failed: {error}");
        }
    }
}

/// Passes lines to the channel until there are no more; returns whether one was too long.
async fn forward_lines(
    mut lines: Lines<UnixStream>,
    channel: Arc<Channel>,
    output: Arc<Output>,
    limit: usize,
) -> bool {
    while let Ok(Some(line)) = lines.next().await {
        match line {
            Line::Whole(line) if line.trim_ascii().is_empty() => {}
            Line::Whole(line) => {
                if let Err(error) = channel.receive(line.clone()).await {
                    output.record_text(&line, &error, &channel.upstream);
                }
            }
            Line::Cut(_) => {
                channel.end(ChannelEnd::TooLarge(limit));
                return true;
            }
        }
    }
    false
}

async fn log_lines(mut lines: Lines<UnixStream>, output: Arc<Output>, upstream: UpstreamName) {
    while let Ok(Some(Line::Whole(line) | Line::Cut(line))) = lines.next().await {
        output.record_stderr(&line, &upstream);
    }
}

/// Waits until a child exits or is to be stopped, and makes sure that nothing of it is left.
struct Supervisor {
    process: tokio::process::Child,
    group: Option<Pid>,
    channel: Arc<Channel>,
    reader: JoinHandle<bool>,
    logger: JoinHandle<()>,
    output: Arc<Output>,
    /// Holds the child's standard input open.
    writer: JoinHandle<()>,
    idle: Duration,
    stopping: watch::Receiver<bool>,
    closing: watch::Receiver<bool>,
}

enum ExitCause {
    Exit(io::Result<ExitStatus>),
    NoMoreOutput {
        too_long: bool,
    },
    /// It was asked to stop, its last handle was dropped, or it was idle for too long.
    Stopped,
}

impl Supervisor {
    async fn run(mut self) -> ChildExit {
        let mut kill_at_once = false;
        let why = match self.wait_for_exit().await {
            ExitCause::Exit(status) => {
                let drained = timeout(DRAIN_TIMEOUT, &mut self.reader).await;
                tracing::debug!(
                    whole = drained.is_ok(),
                    "the rest of a server's output was read"
                );
                match status {
                    Ok(status) => Some(format!("the server's process ended ({status})")),
                    Err(error) => Some(format!("the server's process was lost: {error}")),
                }
            }
            ExitCause::NoMoreOutput { too_long: true } => {
                kill_at_once = true;
                Some("the server wrote a line longer than `message_bytes`".to_owned())
            }
            ExitCause::NoMoreOutput { .. } => {
                match timeout(DRAIN_TIMEOUT, self.process.wait()).await {
                    Ok(Ok(status)) => Some(format!("the server's process ended ({status})")),
                    _ => Some("the server closed its output".to_owned()),
                }
            }
            ExitCause::Stopped => None,
        };
        let exit = match why {
            Some(why) => {
                // Its last lines on standard error contain the reason.
                let drained = timeout(DRAIN_TIMEOUT, &mut self.logger).await;
                tracing::debug!(
                    whole = drained.is_ok(),
                    "the rest of a server's standard error was read"
                );
                let fault = Arc::new(ProcessFault::exited(why, self.output.process_output()));
                self.channel.end(ChannelEnd::Process(fault.clone()));
                ChildExit::ByItself(fault)
            }
            None => {
                self.channel
                    .end(ChannelEnd::Gone("the session was ended".into()));
                ChildExit::Stopped
            }
        };
        if kill_at_once {
            self.kill().await
        } else {
            self.finish().await
        }
        exit
    }

    async fn wait_for_exit(&mut self) -> ExitCause {
        tokio::select! {
            status = self.process.wait() => ExitCause::Exit(status),
            too_long = &mut self.reader => ExitCause::NoMoreOutput { too_long: too_long.unwrap_or(false) },
            _ = self.stopping.wait_for(|stop| *stop) => ExitCause::Stopped,
            _ = self.closing.wait_for(|closing| *closing) => ExitCause::Stopped,
            () = self.channel.wait_until_idle(self.idle) => ExitCause::Stopped,
        }
    }

    /// Closes standard input, then sends SIGTERM, then SIGKILL, to the whole group, with a wait
    /// after each.
    async fn finish(&mut self) {
        self.writer.abort();
        // The next step checks whether it ended in time; processes that it leaves behind get
        // SIGTERM in any case.
        drop(timeout(GRACE_PERIOD, self.process.wait()).await);
        self.signal(Signal::TERM);
        drop(timeout(GRACE_PERIOD, self.wait_for_group()).await);
        self.kill().await;
    }

    async fn kill(&mut self) {
        self.signal(Signal::KILL);
        if let Err(error) = self.process.wait().await {
            tracing::warn!("a server's process could not be waited for: {error}");
        }
        self.reader.abort();
    }

    async fn wait_for_group(&mut self) {
        drop(self.process.wait().await);
        // Where nothing reaps orphans, they count as running until the wait is over.
        while self
            .group
            .is_some_and(|group| test_kill_process_group(group).is_ok())
        {
            sleep(Duration::from_millis(10)).await;
        }
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group
            && let Err(error) = kill_process_group(group, signal)
        {
            tracing::debug!("signal {signal:?} did not reach a server's process: {error}");
        }
    }
}
