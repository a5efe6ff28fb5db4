//! Standard input and output as the agent's side, and a child process behind it: `lychgate wrap`
//! takes the place of the child (all revisions, Transports, stdio).
//!
//! The gate carries each line of the agent like a call, and judges each line of the server like a
//! part of a reply. All of it runs on one thread, except that reading standard input and writing
//! standard output block other threads, because they cannot be awaited in any other way.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncWriteExt, Stdout};
use tokio::process::{Child, ChildStdout};
use tokio::signal::unix::{Signal as Heard, SignalKind, signal};
use tokio::sync::Mutex;
use tokio::time::{sleep, timeout};

use super::lines::{Line, Lines};
use crate::protocol::Frames;
use crate::proxy::Gate;
use crate::proxy::lines::{Answer, LineSession, one_line};

/// How long the child may take to end on its own once the agent has closed its side. Clients that
/// still run send SIGTERM after 2 s; the others are gone, and nobody is kept waiting.
const AFTER_CLOSE: Duration = Duration::from_secs(10);
/// How long the child may take after SIGTERM: less than the 2 s after which clients send SIGKILL,
/// which would leave it behind.
const AFTER_TERM: Duration = Duration::from_millis(1500);
/// Time without output after the end of the child, after which the processes that it left behind
/// are ended too.
const QUIET: Duration = Duration::from_secs(1);
/// Interval at which the lock file and the quarantine are checked.
const LOOK: Duration = Duration::from_secs(1);

/// Runs `command` as the server of a session, on its standard input and output; everything else
/// (environment, folder, standard error) is inherited. Returns the exit code: the child's own, or
/// 128 plus the signal that ended it.
///
/// # Errors
/// The command cannot be started.
pub async fn serve(session: Arc<LineSession>, command: &[OsString]) -> io::Result<u8> {
    let mut signals = Signals::new()?;
    let mut child = start(command)?;
    let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    let no_pipes = || io::Error::other("the child has no pipes");
    session
        .input()
        .open(child.stdin.take().ok_or_else(no_pipes)?)
        .await;
    let stdout = child.stdout.take().ok_or_else(no_pipes)?;
    let agent = Arc::new(AgentOutput(Mutex::new(tokio::io::stdout())));
    let message_count = Arc::new(AtomicU64::new(0));
    tokio::spawn(poll_files(session.gate().clone()));
    tokio::spawn(notify_changes(session.list_notifications(), agent.clone()));
    let server = session.clone();
    let count = message_count.clone();
    let to_agent = agent.clone();
    let input = session.input().clone();
    let mut agent_side = tokio::spawn(async move {
        log_end(
            "the agent's side",
            carry_from_agent(session, to_agent).await,
        );
        // In a task of its own, because a server that does not read would block it.
        tokio::spawn(async move { input.close().await });
    });
    let mut output = tokio::spawn(async move {
        log_end(
            "the server's side",
            carry_from_server(server, stdout, agent, count).await,
        );
    });
    let status = tokio::select! {
        status = wait_for_exit(&mut child, &mut signals, group) => status,
        _ = &mut agent_side => {
            tracing::debug!("the agent closed its side");
            finish(&mut child, &mut signals, group).await
        }
    }?;
    // Its last output may still be on the way, and processes that it left behind may keep its
    // output open.
    for last in [Signal::TERM, Signal::KILL] {
        loop {
            let before = message_count.load(Ordering::Relaxed);
            match timeout(QUIET, &mut output).await {
                Ok(_) => return Ok(exit_code(status)),
                Err(_) if message_count.load(Ordering::Relaxed) == before => break,
                Err(_) => {}
            }
        }
        send_signal(group, last);
    }
    Ok(exit_code(status))
}

#[allow(
    clippy::disallowed_methods,
    reason = "this is the other place where a child is started: it stands in for one"
)]
fn start(command: &[OsString]) -> io::Result<Child> {
    let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = std::process::Command::new(program);
    // In a process group of its own: a signal to the whole group also ends the processes that the
    // child has started.
    command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .process_group(0);
    tokio::process::Command::from(command)
        .kill_on_drop(true)
        .spawn()
}

fn exit_code(status: ExitStatus) -> u8 {
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal))
        .unwrap_or(1);
    u8::try_from(code & 0xff).unwrap_or(1)
}

fn send_signal(group: Option<Pid>, signal: Signal) {
    if let Some(group) = group
        && let Err(error) = kill_process_group(group, signal)
    {
        tracing::debug!("signal {signal:?} did not reach the server's process: {error}");
    }
}

/// The signals that are forwarded.
struct Signals {
    terminate: Heard,
    interrupt: Heard,
    hangup: Heard,
}

impl Signals {
    fn new() -> io::Result<Self> {
        let listen = |kind| signal(kind);
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            hangup: listen(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.terminate.recv() => Signal::TERM,
            _ = self.interrupt.recv() => Signal::INT,
            _ = self.hangup.recv() => Signal::HUP,
        }
    }
}

/// Waits for the end of the child and forwards signals. If the child does not end after SIGTERM, it
/// is killed.
async fn wait_for_exit(
    child: &mut Child,
    signals: &mut Signals,
    group: Option<Pid>,
) -> io::Result<ExitStatus> {
    loop {
        tokio::select! {
            status = child.wait() => return status,
            signal = signals.next() => {
                send_signal(group, signal);
                if signal == Signal::TERM {
                    return terminate(child, group).await;
                }
            }
        }
    }
}

/// Ends the child after the agent is gone and its input is closed: waits for it to end on its own,
/// then terminates it.
async fn finish(
    child: &mut Child,
    signals: &mut Signals,
    group: Option<Pid>,
) -> io::Result<ExitStatus> {
    tokio::select! {
        status = wait_for_exit(child, signals, group) => return status,
        () = sleep(AFTER_CLOSE) => send_signal(group, Signal::TERM),
    }
    terminate(child, group).await
}

/// Waits for the end of the child after SIGTERM, then sends SIGKILL.
async fn terminate(child: &mut Child, group: Option<Pid>) -> io::Result<ExitStatus> {
    if let Ok(status) = timeout(AFTER_TERM, child.wait()).await {
        return status;
    }
    send_signal(group, Signal::KILL);
    child.wait().await
}

/// Carries the agent's messages, one line after the other: each has reached the server, or is
/// answered, before the next one is read.
async fn carry_from_agent(session: Arc<LineSession>, agent: Arc<AgentOutput>) -> io::Result<()> {
    let mut lines = Lines::new(tokio::io::stdin(), session.max_line_bytes());
    while let Some(line) = lines.next_line().await? {
        let answer = match line {
            Line::Whole(line) if is_blank(&line) => {
                session.input().write(&[&line]).await?;
                continue;
            }
            Line::Whole(line) => session.handle_agent_line(&line).await,
            Line::TooLong => Answer::Lines(vec![session.refuse_long_agent_line()]),
        };
        match answer {
            Answer::Lines(lines) => {
                for line in lines {
                    agent.write(&line).await?;
                }
            }
            Answer::Stream(frames) => drop(tokio::spawn(answer_later(frames, agent.clone()))),
        }
    }
    Ok(())
}

/// Sends the messages of a reply to the agent as they arrive.
async fn answer_later(mut frames: Frames, agent: Arc<AgentOutput>) {
    while let Some(frame) = frames.next().await {
        let text = frame.ok().and_then(|frame| frame.text().cloned());
        if let Some(text) = text
            && agent.write(&one_line(text)).await.is_err()
        {
            return;
        }
    }
}

/// Carries the server's messages, in their order.
async fn carry_from_server(
    session: Arc<LineSession>,
    output: ChildStdout,
    agent: Arc<AgentOutput>,
    message_count: Arc<AtomicU64>,
) -> io::Result<()> {
    let mut lines = Lines::new(output, session.max_line_bytes());
    while let Some(line) = lines.next_line().await? {
        let line = match line {
            Line::Whole(line) if is_blank(&line) => Some(line),
            Line::Whole(line) => session.handle_server_line(&line).await,
            Line::TooLong => session.refuse_long_server_line(),
        };
        if let Some(line) = line {
            agent.write(&line).await?;
        }
        message_count.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// Periodically applies changes that people have made to pins and in quarantine.
async fn poll_files(gate: Arc<Gate>) {
    loop {
        sleep(LOOK).await;
        let looks = gate.clone();
        if let Err(error) = tokio::task::spawn_blocking(move || looks.reload_pins()).await {
            tracing::error!(%error, "cannot check the lock file and the quarantine");
            return;
        }
    }
}

/// Notifies the agent of lists that have changed because of an approval.
async fn notify_changes(changes: impl Stream<Item = Bytes>, agent: Arc<AgentOutput>) {
    let mut changes = pin!(changes);
    while let Some(line) = changes.next().await {
        if agent.write(&line).await.is_err() {
            return;
        }
    }
}

fn is_blank(line: &[u8]) -> bool {
    line.trim_ascii().is_empty()
}

fn log_end(side: &str, result: io::Result<()>) {
    if let Err(error) = result {
        tracing::debug!("{side} failed: {error}");
    }
}

/// Standard output, to which several tasks write whole lines.
struct AgentOutput(Mutex<Stdout>);

impl AgentOutput {
    async fn write(&self, line: &[u8]) -> io::Result<()> {
        let mut output = self.0.lock().await;
        output.write_all(line).await?;
        output.flush().await
    }
}
