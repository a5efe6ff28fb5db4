//! Memory that a peak of long messages took is returned to the system, measured on the whole
//! program.

use std::net::SocketAddr;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use lychgate::message::quote;

use super::harness::{Agent, call, lychgate, until};
use super::servers::{Server, free_port, json_reply};

/// Number of answers at a time, number of rounds, and size of an answer.
const CALLS: usize = 16;
const ROUNDS: usize = 4;
const ANSWER_BYTES: usize = 4 << 20;
/// Maximum memory after the peak: a multiple of the memory before it, plus what allocators and the
/// gate keep for some time.
const FACTOR: f64 = 1.5;
const SLACK_KB: f64 = 16_000.0;

struct Gate(Child);

impl Gate {
    /// Returns the resident memory in kB.
    fn memory(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_is_returned_after_a_peak() {
    let rows =
        r#"{"name":"a row of many","note":"an entry like the others"},"#.repeat(ANSWER_BYTES / 60);
    let long = format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":[{{"type":"text","text":{}}}]}}}}"#,
        quote(&rows)
    );
    let server =
        Server::start(move |seen| {
            let long = seen
                .body
                .windows(4)
                .any(|word| word == b"long")
                .then(|| long.clone());
            async move {
                json_reply(long.unwrap_or_else(|| {
                    r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#.into()
                }))
            }
        })
        .await;
    let folder = tempfile::tempdir().unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let config = format!(
        "[listen]\naddress = \"{address}\"\n[upstream.up]\nhttp = {{ url = \"{}\" }}\n[policy.default]\nrules = []\nmode = \"observe\"\n\
         [limits]\nkept_results = 0\nbytes_in_flight_per_agent = 268_435_456\n",
        server.url()
    );
    std::fs::write(folder.path().join("gate.toml"), config).unwrap();
    let mut command = lychgate();
    let command = command
        .args(["run", "--config"])
        .arg(folder.path().join("gate.toml"));
    let gate = Gate(
        command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    until("the gate", || std::net::TcpStream::connect(address).is_ok()).await;
    let agent = Agent::new(address, None);
    for _ in 0..20 {
        agent.fetch("up", &[], call("1", "short")).await;
    }
    let before = gate.memory();
    for _ in 0..ROUNDS {
        let calls = (0..CALLS).map(|_| {
            let agent = Agent::new(address, None);
            tokio::spawn(async move {
                agent
                    .post_ok("up", &[], call("1", "long"))
                    .await
                    .bytes()
                    .await
                    .len()
            })
        });
        for call in calls.collect::<Vec<_>>() {
            assert!(call.await.unwrap() > 10_000);
        }
    }
    let peak = gate.memory();
    let started = Instant::now();
    let allowed = before * FACTOR + SLACK_KB;
    while gate.memory() > allowed && started.elapsed() < Duration::from_secs(60) {
        tokio::time::sleep(Duration::from_secs(1)).await;
        agent.fetch("up", &[], call("1", "short")).await;
    }
    let after = gate.memory();
    println!(
        "before {before} kB, after the last answer {peak} kB, after {:?} {after} kB",
        started.elapsed()
    );
    assert!(
        after <= allowed,
        "{before} kB before, {after} kB {:?} after the peak",
        started.elapsed()
    );
}
