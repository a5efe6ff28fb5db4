//! Standard input and output as the agent's side, and a child process behind it: `lychgate wrap` stands where the
//! child stood (all revisions, Transports, stdio).
//!
//! Threads carry the lines: each has one reader and one writer to wait for, and nothing else waits with it.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Child;
use tokio::runtime::Handle;
use tokio::signal::unix::{Signal as Heard, SignalKind, signal};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::lines::{Line, Lines};
use crate::proxy::pipe::{Later, Passage, Pipe, Step};

/// How long the child gets to end by itself once the agent has closed its side. Clients that still live send
/// SIGTERM after 2 s; the others are gone, and nobody is kept waiting.
const AFTER_CLOSE: Duration = Duration::from_secs(10);
/// How long it gets after SIGTERM: less than the 2 s after which clients send SIGKILL, which would leave it behind.
const AFTER_TERM: Duration = Duration::from_millis(1500);
/// How long its output may stand still after its end before what it left behind is ended too.
const QUIET: Duration = Duration::from_secs(1);
/// Time between two looks at the lock file and the quarantine.
const LOOK: Duration = Duration::from_secs(1);
/// Answers of the gate's own that wait for the server to read them.
const TOLD: usize = 64;

/// Runs `command` with its standard input and output led through `pipe`; all else (environment, folder, standard
/// error) is as it is here. Gives the exit code: the child's own, or 128 and the signal that ended it.
///
/// # Errors
/// The command cannot be started.
pub async fn serve(pipe: Arc<Pipe>, command: &[OsString]) -> io::Result<u8> {
    let mut signals = Signals::new()?;
    let mut child = start(command)?;
    let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    let lines = Threads::start(pipe, &mut child)?;
    let (mut agent, mut output) = (lines.agent, lines.output);
    let status = tokio::select! {
        status = attend(&mut child, &mut signals, group) => status,
        _ = &mut agent => {
            tracing::debug!("the agent has closed its side");
            finish(&mut child, &mut signals, group).await
        }
    }?;
    // What it said last is still on its way; what it left behind may hold its output open.
    for last in [Signal::TERM, Signal::KILL] {
        loop {
            let before = lines.carried.load(Ordering::Relaxed);
            match timeout(QUIET, &mut output).await {
                Ok(_) => return Ok(code(status)),
                Err(_) if lines.carried.load(Ordering::Relaxed) == before => break,
                Err(_) => {}
            }
        }
        send(group, last);
    }
    Ok(code(status))
}

#[allow(clippy::disallowed_methods, reason = "this is the other place where a child is started: it stands in for one")]
fn start(command: &[OsString]) -> io::Result<Child> {
    let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = std::process::Command::new(program);
    // A group of its own: a signal to the whole group ends what the child has started as well.
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
    tokio::process::Command::from(command).kill_on_drop(true).spawn()
}

fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
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

/// Waits for the child's end and hands signals on. One that is told to end is seen to it.
async fn attend(child: &mut Child, signals: &mut Signals, group: Option<Pid>) -> io::Result<ExitStatus> {
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

/// The agent is gone and the child's input closed: it ends by itself, or it is told to.
async fn finish(child: &mut Child, signals: &mut Signals, group: Option<Pid>) -> io::Result<ExitStatus> {
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

/// The threads that carry lines, and what they tell of their end.
struct Threads {
    /// Ends when the agent has closed its side, or no longer reads.
    agent: oneshot::Receiver<()>,
    /// Ends when the server has closed its output and all of it was written.
    output: oneshot::Receiver<()>,
    /// Lines from the server so far.
    carried: Arc<AtomicU64>,
}

impl Threads {
    fn start(pipe: Arc<Pipe>, child: &mut Child) -> io::Result<Self> {
        let taken = || io::Error::other("the child has no pipes");
        let stdin = child.stdin.take().ok_or_else(taken)?.into_owned_fd()?;
        let stdout = child.stdout.take().ok_or_else(taken)?.into_owned_fd()?;
        let server = Arc::new(Out::new(File::from(stdin)));
        let agent = Arc::new(Out::new(File::from(io::stdout().as_fd().try_clone_to_owned()?)));
        let carried = Arc::new(AtomicU64::new(0));
        let (agent_ended, agent_ends) = oneshot::channel();
        let (output_ended, output_ends) = oneshot::channel();
        let (tell, told) = sync_channel(TOLD);

        let from = Lines::new(File::from(io::stdin().as_fd().try_clone_to_owned()?), pipe.longest());
        let (judge, to, back) = (pipe.clone(), server.clone(), agent.clone());
        let (runtime, asks) = (Handle::current(), Handle::current());
        thread("from-agent", move || {
            // What the judge has looked up is looked up there.
            let _entered = runtime.enter();
            let carried = from_agent(from, &judge, &to, &back, &runtime);
            told_end("the agent's side", carried);
            to.close();
            drop(agent_ended);
        })?;

        let from = Lines::new(File::from(stdout), pipe.longest());
        let (looks, to_agent) = (pipe.clone(), agent.clone());
        let (judge, count) = (pipe, carried.clone());
        thread("from-server", move || {
            let _entered = asks.enter();
            told_end("the server's side", from_server(from, &judge, &agent, &tell, &count));
            drop(output_ended);
        })?;

        let agent = Arc::downgrade(&to_agent);
        thread("pins", move || look_at_pins(&looks, &agent))?;

        thread("to-server", move || tell_server(&told, &server))?;
        Ok(Self { agent: agent_ends, output: output_ends, carried })
    }
}

fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name(name.to_owned()).spawn(work).map(drop)
}

fn told_end(side: &str, carried: io::Result<()>) {
    if let Err(error) = carried {
        tracing::debug!("{side} broke off: {error}");
    }
}

fn from_agent(mut from: Lines<File>, pipe: &Arc<Pipe>, server: &Arc<Out>, agent: &Arc<Out>, runtime: &Handle) -> io::Result<()> {
    while let Some(line) = from.next_line()? {
        let Passage { on, back, later } = match line {
            Line::Whole(line) => pipe.from_agent(&line),
            Line::TooLong => pipe.too_long_from_agent(),
        };
        for line in back {
            agent.write(&line)?;
        }
        if let Some(line) = on {
            server.write(&line)?;
        }
        if let Some(later) = later {
            runtime.spawn(wait(pipe.clone(), later, server.clone(), agent.clone()));
        }
    }
    Ok(())
}

/// Carries a line that waits for a person: on, if it may go on, or back.
async fn wait(pipe: Arc<Pipe>, mut later: Box<Later>, server: Arc<Out>, agent: Arc<Out>) {
    loop {
        let (passage, done) = match pipe.wait(&mut later).await {
            Step::Say(line) => (Passage { back: line.into_iter().collect(), ..Passage::default() }, false),
            Step::Done(passage) => (passage, true),
        };
        let (server, agent) = (server.clone(), agent.clone());
        // Whoever does not read holds up a thread of its own, not the one that hears signals.
        let written = tokio::task::spawn_blocking(move || {
            passage.back.iter().try_for_each(|line| agent.write(line))?;
            passage.on.iter().try_for_each(|line| server.write(line))
        });
        if done || !matches!(written.await, Ok(Ok(()))) {
            return;
        }
    }
}

fn from_server(mut from: Lines<File>, pipe: &Pipe, agent: &Out, tell: &SyncSender<Bytes>, count: &AtomicU64) -> io::Result<()> {
    while let Some(line) = from.next_line()? {
        let Passage { on, back, .. } = match line {
            Line::Whole(line) => pipe.from_server(&line),
            Line::TooLong => pipe.too_long_from_server(),
        };
        if let Some(line) = on {
            agent.write(&line)?;
        }
        for line in back {
            // Not written from here: a server that waits for its output to be read would not read it.
            if tell.try_send(line).is_err() {
                tracing::warn!("the server does not read what it is told: that a question was withheld is dropped");
            }
        }
        count.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// Tells the agent of lists that somebody's approval has changed, until the server's side has ended.
fn look_at_pins(pipe: &Pipe, agent: &Weak<Out>) {
    loop {
        std::thread::sleep(LOOK);
        let lines = pipe.look();
        let Some(agent) = agent.upgrade() else { return };
        if lines.iter().try_for_each(|line| agent.write(line)).is_err() {
            return;
        }
    }
}

fn tell_server(told: &Receiver<Bytes>, server: &Out) {
    while let Ok(line) = told.recv() {
        if server.write(&line).is_err() {
            return;
        }
    }
}

/// One end of a pipe that several threads write whole lines to.
struct Out(Mutex<Option<File>>);

impl Out {
    fn new(file: File) -> Self {
        Self(Mutex::new(Some(file)))
    }

    fn write(&self, line: &[u8]) -> io::Result<()> {
        match self.0.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            Some(file) => file.write_all(line),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn close(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
