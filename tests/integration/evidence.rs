//! No call passes without its audit line: the gate is killed under load, and the disk is full.

use std::collections::HashSet;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use lychgate::message::Json;

use super::harness::{assert_contains, json, run, string};
use super::servers::free_port;

/// Number of times that the gate is killed. `KILLS` in the environment sets another number, and
/// enables the built-in rules for the calls; `LYCHGATE` sets another binary of the gate:
const KILLS: usize = 20;
/// Without rules a debug build starts fast.
const QUICK: &str = "rules = []\nmode = \"observe\"";
/// Number of agents that call at the same time.
const AGENTS: usize = 6;
const WAIT: Duration = Duration::from_secs(30);

/// A server that records which calls reach it.
struct Noting {
    address: SocketAddr,
    reached: Arc<Mutex<HashSet<String>>>,
}

impl Noting {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let noting = Self {
            address: listener.local_addr().unwrap(),
            reached: Arc::default(),
        };
        let reached = noting.reached.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let reached = reached.clone();
                std::thread::spawn(move || serve(stream, &reached));
            }
        });
        noting
    }
}

fn serve(stream: TcpStream, reached: &Mutex<HashSet<String>>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut stream = stream;
    loop {
        let (_, body) = message(&mut reader).ok()?;
        let id = id_of(&body)?;
        reached.lock().unwrap().insert(id.clone());
        let answer = format!(r#"{{"jsonrpc":"2.0","id":"{id}","result":{{"content":[]}}}}"#);
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            answer.len()
        );
        stream.write_all((head + &answer).as_bytes()).ok()?;
    }
}

/// Reads one message of HTTP/1.1; returns its first line and body.
fn message(reader: &mut impl BufRead) -> io::Result<(String, String)> {
    let mut first = String::new();
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = line.trim_end();
        if let Some((_, value)) = line
            .split_once(':')
            .filter(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        {
            length = value.trim().parse().unwrap();
        }
        match (line, first.is_empty()) {
            ("", _) => break,
            (line, true) => first = line.to_owned(),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok((first, String::from_utf8(body).unwrap()))
}

fn id_of(body: &str) -> Option<String> {
    Some(
        body.split_once(r#""id":""#)?
            .1
            .split('"')
            .next()?
            .to_owned(),
    )
}

/// A gate in a process of its own.
struct Gate {
    child: Child,
}

impl Gate {
    fn start(config: &Path, address: SocketAddr, before: &[&str]) -> Self {
        let binary = program();
        let words: Vec<&str> = before
            .iter()
            .copied()
            .chain([&*binary, "run", "--config", config.to_str().unwrap()])
            .collect();
        let child = Command::new(words[0])
            .args(&words[1..])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut gate = Self { child };
        let deadline = Instant::now() + WAIT;
        while TcpStream::connect(address).is_err() {
            assert!(
                gate.child.try_wait().unwrap().is_none(),
                "the gate does not start"
            );
            assert!(Instant::now() < deadline, "the gate does not listen");
            std::thread::sleep(Duration::from_millis(5));
        }
        gate
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn end(mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        assert!(self.child.wait().unwrap().success());
    }
}

/// The calls of one agent over one connection.
struct Calls {
    reader: BufReader<TcpStream>,
}

impl Calls {
    fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(WAIT))?;
        stream.set_nodelay(true)?;
        Ok(Self {
            reader: BufReader::new(stream),
        })
    }

    /// Makes a call and returns the status and body of the answer.
    fn call(&mut self, id: &str) -> io::Result<(u16, String)> {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":"{id}","method":"tools/call","params":{{"name":"echo","arguments":{{"text":"hello"}}}}}}"#
        );
        let head = format!(
            "POST /mcp/up HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        self.reader.get_mut().write_all((head + &body).as_bytes())?;
        let (first, body) = message(&mut self.reader)?;
        let status = first
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        Ok((status.ok_or(io::ErrorKind::InvalidData)?, body))
    }
}

fn config(folder: &Path, address: SocketAddr, server: SocketAddr, audit: &str) -> PathBuf {
    let path = folder.join("gate.toml");
    let policy = if std::env::var_os("KILLS").is_some() {
        ""
    } else {
        QUICK
    };
    let text = format!(
        "[listen]\naddress = \"{address}\"\n[policy.default]\n{policy}\n[audit]\n{audit}\n\
         [upstream.up]\nhttp = {{ url = \"http://{server}/mcp\" }}\n"
    );
    std::fs::write(&path, text).unwrap();
    path
}

fn program() -> String {
    std::env::var("LYCHGATE").unwrap_or_else(|_| env!("CARGO_BIN_EXE_lychgate").to_owned())
}

/// Returns the report of `lychgate audit verify` for a log.
fn verified(log: &Path) -> Json {
    let mut command = Command::new(program());
    let (code, text, err) = run(command.args(["audit", "verify", "--json"]).arg(log));
    assert_eq!(code, 0, "{text}{err}");
    json(&text)
}

/// Returns the ids of the calls for which the log has a line in this direction.
fn told_of(log: &Path, direction: &str) -> HashSet<String> {
    let mut told = HashSet::new();
    let folder = std::fs::read_dir(log.parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let name = log.file_name().unwrap().to_str().unwrap();
    let is_part = |path: &PathBuf| {
        path.file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .starts_with(name)
    };
    for path in folder.filter(is_part) {
        let file = BufReader::new(std::fs::File::open(path).unwrap());
        for line in file.lines().map_while(Result::ok) {
            if line.contains(&format!(r#""direction":"{direction}""#)) && line.ends_with("\"}") {
                told.extend(string(&json(&line), &["jsonrpc.request.id"]));
            }
        }
    }
    told
}

#[test]
fn a_gate_that_is_killed_under_load_has_a_line_for_every_call() {
    let kills = std::env::var("KILLS").map_or(KILLS, |kills| kills.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let server = Noting::start();
    let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let log = folder.path().join("audit.jsonl");
    let audit = required(&log)
        + "\nrotate_bytes = 262144\ncompress = false\ncheckpoint_lines = 50\ncheckpoint_seconds = 1";
    let config = config(folder.path(), address, server.address, &audit);
    let answered: Mutex<HashSet<String>> = Mutex::default();
    let mut seed = 0x9e37_79b9_u32;
    let started = Instant::now();
    for round in 0..kills {
        let gate = Gate::start(&config, address, &[]);
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for agent in 0..AGENTS {
                let answered = &answered;
                let stop = &stop;
                scope.spawn(move || {
                    let Ok(mut calls) = Calls::open(address) else {
                        return;
                    };
                    for number in 0.. {
                        let id = format!("k-{round}-{agent}-{number}");
                        match calls.call(&id) {
                            Ok((200, body)) if body.contains(&id) => {
                                answered.lock().unwrap().insert(id);
                            }
                            Ok(other) => panic!("{other:?}"),
                            Err(_) => return,
                        }
                        if stop.load(Ordering::Relaxed) {
                            return;
                        }
                    }
                });
            }
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            std::thread::sleep(Duration::from_millis(20 + u64::from(seed >> 24) / 2));
            gate.kill();
            stop.store(true, Ordering::Relaxed);
        });
        if (round + 1) % 100 == 0 {
            // Shows the progress of a long run.
            println!(
                "{} kills, {} calls answered, {:?}",
                round + 1,
                answered.lock().unwrap().len(),
                started.elapsed()
            );
        }
    }
    Gate::start(&config, address, &[]).end();
    let sent = told_of(&log, "outbound");
    let back = told_of(&log, "inbound");
    let reached = server.reached.lock().unwrap();
    let answered = answered.lock().unwrap();
    assert!(
        reached.len() > kills && !answered.is_empty(),
        "{} calls are no load",
        reached.len()
    );
    let missing: Vec<&String> = reached
        .difference(&sent)
        .chain(answered.difference(&back))
        .take(5)
        .collect();
    assert!(missing.is_empty(), "{missing:?} have no line");
    let report = verified(&log);
    println!(
        "{kills} kills, {} calls reached the server, {} answers the agent, {} lines",
        reached.len(),
        answered.len(),
        sent.len() + back.len()
    );
    assert_eq!(string(&report, &["key"]).as_deref(), Some("found"));
}

/// Returns a command that runs a gate with a file system of 1 MB, as root or in a namespace of its
/// own; `None` if neither is possible.
#[allow(clippy::print_stdout, reason = "a skipped test says so")]
fn small_disk(folder: &Path) -> Option<Vec<String>> {
    std::fs::create_dir(folder).unwrap();
    let mount = format!(
        "mount -t tmpfs -o size=1m none '{}' && exec \"$@\"",
        folder.display()
    );
    let words = |unshare: &[&str]| -> Vec<String> {
        unshare
            .iter()
            .chain(&["sh", "-c", &mount, "sh"])
            .map(|word| (*word).to_owned())
            .collect()
    };
    let found = [&["unshare", "-Urm"][..], &["unshare", "-m"]]
        .into_iter()
        .map(words)
        .find(|words| {
            let tried = Command::new(&words[0])
                .args(&words[1..])
                .arg("true")
                .stderr(Stdio::null())
                .status();
            tried.is_ok_and(|status| status.success())
        });
    if found.is_none() {
        let told = "neither root nor user namespaces: no small disk can be mounted";
        assert!(std::env::var("CI").as_deref() != Ok("true"), "{told}");
        println!("skipped: {told}");
    }
    found
}

/// Returns the keys of `[audit]` for a log that is required.
fn required(log: &Path) -> String {
    format!("file = \"{}\"\nrequired = true", log.display())
}

#[test]
fn a_full_disk_lets_no_call_through_and_when_there_is_room_again_they_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    let Some(words) = small_disk(&disk) else {
        return;
    };
    let server = Noting::start();
    let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let audit = required(&disk.join("audit.jsonl"));
    let config = config(folder.path(), address, server.address, &audit);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let gate = Gate::start(&config, address, &words);
    // The path to the disk as the gate sees it.
    let inside = PathBuf::from(format!("/proc/{}/root{}", gate.child.id(), disk.display()));
    let mut calls = Calls::open(address).unwrap();
    assert_eq!(calls.call("d-before").unwrap().0, 200);
    let filler = inside.join("filler");
    let filled = std::fs::write(&filler, vec![0; 2 << 20]).unwrap_err();
    assert_eq!(filled.kind(), io::ErrorKind::StorageFull);
    let mut refused = 0;
    let mut passed = HashSet::from(["d-before".to_owned()]);
    for number in 0..200 {
        let id = format!("d-{number}");
        match calls.call(&id).unwrap() {
            (200, _) => drop(passed.insert(id)),
            (503, body) => {
                assert!(body.contains("audit"), "{body}");
                refused += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(refused >= 150, "{refused} refused");
    std::fs::remove_file(&filler).unwrap();
    let (status, body) = calls.call("d-after").unwrap();
    assert_eq!(status, 200, "without a restart: {body}");
    let log = inside.join("audit.jsonl");
    let sent = told_of(&log, "outbound");
    let reached = server.reached.lock().unwrap().clone();
    assert!(
        reached.is_subset(&sent),
        "{:?} have no line",
        reached.difference(&sent).collect::<Vec<_>>()
    );
    assert!(passed.is_subset(&reached) && reached.contains("d-after"));
    // The report covers a copy: another process may not see this disk under its path.
    let copy = folder.path().join("copy");
    std::fs::create_dir(&copy).unwrap();
    for entry in std::fs::read_dir(&inside).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, copy.join(path.file_name().unwrap())).unwrap();
    }
    verified(&copy.join("audit.jsonl"));
    gate.kill();
}

#[test]
fn a_folder_that_cannot_be_written_keeps_the_gate_from_starting_and_calls_from_passing() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    let Some(words) = small_disk(&disk) else {
        return;
    };
    let remount = format!("mount -o remount,ro '{}' && exec", disk.display());
    let words: Vec<String> = words
        .iter()
        .map(|word| word.replace("exec", &remount))
        .collect();
    let server = Noting::start();
    let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let audit = required(&disk.join("audit.jsonl"));
    let config = config(folder.path(), address, server.address, &audit);
    let mut command = Command::new(&words[0]);
    let verb = [&*program(), "run", "--config", config.to_str().unwrap()];
    let (code, _, told) = run(command.args(&words[1..]).args(verb));
    assert_eq!(code, 2, "{told}");
    assert_contains(&told, &["audit.jsonl", "Read-only"]);
    assert!(server.reached.lock().unwrap().is_empty());
}
