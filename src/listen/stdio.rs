//! Standard input and output as the agent's side, and a child process behind it: `lychgate wrap` stands where the
//! child stood (all revisions, Transports, stdio).
//!
//! Each line of the agent's is carried by the gate like a call, each of the server's is judged like a part of a reply. All of it
//! runs on one thread; reading standard input and writing standard output, which cannot be waited for otherwise, hold up others.

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

/// How long the child gets to end by itself once the agent closed its side. Clients that still live send
/// SIGTERM after 2 s; the others are gone, and nobody is kept waiting.
const AFTER_CLOSE: Duration = Duration::from_secs(10);
/// How long it gets after SIGTERM: less than the 2 s after which clients send SIGKILL, which would leave it behind.
const AFTER_TERM: Duration = Duration::from_millis(1500);
/// How long its output may stand still after its end before what it left behind is ended too.
const QUIET: Duration = Duration::from_secs(1);
/// Time between two looks at the lock file and the quarantine.
const LOOK: Duration = Duration::from_secs(1);

/// Runs `command` as the server of a session, on its standard input and output; all else (environment, folder, standard
/// error) is as it is here. Gives the exit code: the child's own, or 128 and the signal that ended it.
///
/// # Errors
/// The command cannot be started.
pub async fn serve(session: Arc<LineSession>, command: &[OsString]) -> io::Result<u8> {
    let mut signals = Signals::new()?;
    let mut child = start(command)?;
    let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    let taken = || io::Error::other("the child has no pipes");
    session
        .input()
        .open(child.stdin.take().ok_or_else(taken)?)
        .await;
    let stdout = child.stdout.take().ok_or_else(taken)?;
    let agent = Arc::new(AgentOutput(Mutex::new(tokio::io::stdout())));
    let carried = Arc::new(AtomicU64::new(0));
    tokio::spawn(poll_files(session.gate().clone()));
    tokio::spawn(tell_changes(session.changes(), agent.clone()));
    let server = session.clone();
    let count = carried.clone();
    let to_agent = agent.clone();
    let input = session.input().clone();
    let mut agent_side = tokio::spawn(async move {
        log_end("the agent's side", from_agent(session, to_agent).await);
        // By itself: a server that does not read would hold it up.
        tokio::spawn(async move { input.close().await });
    });
    let mut output = tokio::spawn(async move {
        log_end(
            "the server's side",
            from_server(server, stdout, agent, count).await,
        );
    });
    let status = tokio::select! {
        status = attend(&mut child, &mut signals, group) => status,
        _ = &mut agent_side => {
            tracing::debug!("the agent closed its side");
            finish(&mut child, &mut signals, group).await
        }
    }?;
    // What it said last is still on its way; what it left behind may hold its output open.
    for last in [Signal::TERM, Signal::KILL] {
        loop {
            let before = carried.load(Ordering::Relaxed);
            match timeout(QUIET, &mut output).await {
                Ok(_) => return Ok(code(status)),
                Err(_) if carried.load(Ordering::Relaxed) == before => break,
                Err(_) => {}
            }
        }
        send(group, last);
    }
    Ok(code(status))
}

#[allow(
    clippy::disallowed_methods,
    reason = "this is the other place where a child is started: it stands in for one"
)]
fn start(command: &[OsString]) -> io::Result<Child> {
    let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = std::process::Command::new(program);
    // A group of its own: a signal to the whole group ends what the child has started as well.
    command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .process_group(0);
    tokio::process::Command::from(command)
        .kill_on_drop(true)
        .spawn()
}

fn code(status: ExitStatus) -> u8 {
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal))
        .unwrap_or(1);
    u8::try_from(code & 0xff).unwrap_or(1)
}

fn send(group: Option<Pid>, signal: Signal) {
    if let Some(group) = group
        && let Err(error) = kill_process_group(group, signal)
    {
        tracing::debug!("signal {signal:?} did not reach the server's process: {error}");
    }
}

/// The signals that are handed on.
struct Signals {
    terminate: Heard,
    interrupt: Heard,
    hangup: Heard,
}

impl Signals {
    fn new() -> io::Result<Self> {
        let hear = |kind| signal(kind);
        Ok(Self {
            terminate: hear(SignalKind::terminate())?,
            interrupt: hear(SignalKind::interrupt())?,
            hangup: hear(SignalKind::hangup())?,
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

/// Waits for the child's end and forwards signals. A child that is asked to end is killed if it does not.
async fn attend(
    child: &mut Child,
    signals: &mut Signals,
    group: Option<Pid>,
) -> io::Result<ExitStatus> {
    loop {
        tokio::select! {
            status = child.wait() => return status,
            signal = signals.next() => {
                send(group, signal);
                if signal == Signal::TERM {
                    return end(child, group).await;
                }
            }
        }
    }
}

/// The agent is gone and the child's input closed: it ends by itself, or is asked to.
async fn finish(
    child: &mut Child,
    signals: &mut Signals,
    group: Option<Pid>,
) -> io::Result<ExitStatus> {
    tokio::select! {
        status = attend(child, signals, group) => return status,
        () = sleep(AFTER_CLOSE) => send(group, Signal::TERM),
    }
    end(child, group).await
}

/// After SIGTERM: waits, then SIGKILL.
async fn end(child: &mut Child, group: Option<Pid>) -> io::Result<ExitStatus> {
    if let Ok(status) = timeout(AFTER_TERM, child.wait()).await {
        return status;
    }
    send(group, Signal::KILL);
    child.wait().await
}

/// Carries what the agent sends, one line after the other: each is with the server, or answered, before the next is read.
async fn from_agent(session: Arc<LineSession>, agent: Arc<AgentOutput>) -> io::Result<()> {
    let mut lines = Lines::new(tokio::io::stdin(), session.longest());
    while let Some(line) = lines.next_line().await? {
        let answer = match line {
            Line::Whole(line) if is_blank(&line) => {
                session.input().write(&[&line]).await?;
                continue;
            }
            Line::Whole(line) => session.from_agent(&line).await,
            Line::TooLong => Answer::Lines(vec![session.too_long_from_agent()]),
        };
        match answer {
            Answer::Lines(lines) => {
                for line in lines {
                    agent.write(&line).await?;
                }
            }
            Answer::Later(frames) => drop(tokio::spawn(answer_later(frames, agent.clone()))),
        }
    }
    Ok(())
}

/// Gives the agent the messages of an answer as they come.
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

/// Carries what the server sends, in its order.
async fn from_server(
    session: Arc<LineSession>,
    output: ChildStdout,
    agent: Arc<AgentOutput>,
    carried: Arc<AtomicU64>,
) -> io::Result<()> {
    let mut lines = Lines::new(output, session.longest());
    while let Some(line) = lines.next_line().await? {
        let line = match line {
            Line::Whole(line) if is_blank(&line) => Some(line),
            Line::Whole(line) => session.from_server(&line).await,
            Line::TooLong => session.too_long_from_server(),
        };
        if let Some(line) = line {
            agent.write(&line).await?;
        }
        carried.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// Looks now and then at what people have done with pins and in quarantine.
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

/// Tells the agent of lists that somebody's approval has changed.
async fn tell_changes(changes: impl Stream<Item = Bytes>, agent: Arc<AgentOutput>) {
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

fn log_end(side: &str, carried: io::Result<()>) {
    if let Err(error) = carried {
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
