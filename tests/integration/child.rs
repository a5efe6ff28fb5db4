//! A stdio server that a test controls.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use lychgate::config::{Secret, StdioTransport};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinHandle;

use super::harness::{Agent, json, raw, soon};
use super::servers::initialized;

/// Child processes that a test controls: each connects to the test, forwards its standard input to
/// it, and writes to its standard output what the test sends.
pub(crate) struct StdioServer {
    address: SocketAddr,
    pub(crate) children: Arc<Mutex<mpsc::UnboundedReceiver<Child>>>,
    task: JoinHandle<()>,
}

/// One child process, which ends when this is dropped.
pub(crate) struct Child {
    pub(crate) pid: String,
    from: BufReader<OwnedReadHalf>,
    to: OwnedWriteHalf,
}

/// Returns a child process that is started with these words.
pub(crate) fn command(words: &[&str]) -> StdioTransport {
    StdioTransport {
        command: words.iter().map(|word| (*word).to_owned()).collect(),
        env: vec![],
        set_env: vec![],
        directory: None,
    }
}

const CHILD: &str = "LYCHGATE_TEST_CHILD";

impl StdioServer {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (tell, children) = mpsc::unbounded_channel();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                drop(tell.send(Child::of(stream).await));
            }
        });
        Self {
            address,
            children: Arc::new(Mutex::new(children)),
            task,
        }
    }

    /// Returns the command that starts a child: this test binary, with the output of the test
    /// runner kept out of the child's standard output.
    pub(crate) fn command(&self) -> StdioTransport {
        let run = r#"exec 2>&1 >/dev/null; exec "$0" --exact stdio_child --nocapture"#;
        let exe = std::env::current_exe().unwrap().display().to_string();
        StdioTransport {
            set_env: vec![(CHILD.into(), Secret(self.address.to_string()))],
            ..command(&["/bin/sh", "-c", run, &exe])
        }
    }

    /// Returns the next child that was started.
    pub(crate) async fn next(&self) -> Child {
        soon("a child", async { self.children.lock().await.recv().await })
            .await
            .unwrap()
    }

    /// Initializes a session of an agent; returns its id and the child that serves it.
    pub(crate) async fn session(&self, agent: &Agent, upstream: &str) -> (String, Child) {
        let (session, child) = tokio::join!(agent.initialize(upstream), async {
            let mut child = self.next().await;
            child.initialize().await;
            child
        });
        (session.unwrap(), child)
    }

    /// Reports whether another child was started.
    pub(crate) async fn started_another(&self) -> bool {
        self.children.lock().await.try_recv().is_ok()
    }
}

impl Drop for StdioServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Child {
    async fn of(stream: TcpStream) -> Self {
        stream.set_nodelay(true).unwrap();
        let (from, to) = stream.into_split();
        let mut child = Self {
            pid: String::new(),
            from: BufReader::new(from),
            to,
        };
        let hello = child.line().await.unwrap();
        child.pid = raw(&json(std::str::from_utf8(&hello).unwrap()), &["pid"]).unwrap();
        child
    }

    /// Returns the next line of its standard input, without the line feed; `None` once that is
    /// closed.
    pub(crate) async fn line(&mut self) -> Option<Bytes> {
        let mut line = Vec::new();
        let read = soon(
            "a line at the child",
            self.from.read_until(b'\n', &mut line),
        )
        .await;
        match read {
            Ok(0) | Err(_) => None,
            Ok(_) => {
                assert_eq!(line.pop(), Some(b'\n'), "half a line");
                Some(line.into())
            }
        }
    }

    /// Returns the next line as text.
    pub(crate) async fn text(&mut self) -> String {
        String::from_utf8(self.line().await.unwrap().to_vec()).unwrap()
    }

    /// Writes a line to its standard output.
    pub(crate) async fn say(&mut self, line: &[u8]) {
        self.to.write_all(line).await.unwrap();
        self.to.write_all(b"\n").await.unwrap();
    }

    /// Receives `initialize` and answers it.
    pub(crate) async fn initialize(&mut self) {
        let line = self.line().await.unwrap();
        for answer in initialized(&line).unwrap() {
            self.say(&answer).await;
        }
    }

    /// Reports whether its process exists and is not a zombie.
    pub(crate) fn runs(&self) -> bool {
        runs(&self.pid)
    }
}

/// Returns a port for a program that needs a fixed one. A port that the system assigned and that
/// was closed again is not safe: the system may assign it to the next program that binds to port 0,
/// or to a connection. These ports are below that range (Linux: from 32768 on), and each is
/// returned once.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let start = std::process::id().wrapping_mul(97);
    let ports = std::iter::repeat_with(|| {
        18_000 + (start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % 14_000) as u16
    });
    ports
        .take(14_000)
        .find(|port| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .unwrap()
}

/// Reports whether a process exists and is not a zombie. The command line does not show this: it is
/// empty for a moment during every `exec`.
pub(crate) fn runs(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        stat.rsplit_once(") ")
            .is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
    })
}

/// Runs the child's side of [`StdioServer`] if this process was started as a child; does not return
/// then.
pub(crate) fn be_a_child() {
    let Ok(address) = std::env::var(CHILD) else {
        return;
    };
    let mut control = std::net::TcpStream::connect(address).unwrap();
    control.set_nodelay(true).unwrap();
    writeln!(control, r#"{{"pid":{}}}"#, std::process::id()).unwrap();
    let mut from = control.try_clone().unwrap();
    std::thread::spawn(move || {
        drop(std::io::copy(&mut std::io::stdin().lock(), &mut control));
        // Either side may close first.
        drop(control.shutdown(std::net::Shutdown::Write));
    });
    // Standard error is the original standard output. `io::copy` splices where it can: see the
    // comment at the gate's sockets.
    drop(std::io::copy(&mut from, &mut std::io::stderr().lock()));
    std::process::exit(0);
}
