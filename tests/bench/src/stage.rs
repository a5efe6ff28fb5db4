//! The running processes: the server, and those in front of it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use tokio::net::TcpStream;

use crate::agent::Agent;
use crate::process::{Process, free_port};
use crate::server::SIZES;

/// Maximum time for a process to start.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time for a process that has just started to become idle.
const SETTLE: Duration = Duration::from_millis(500);

/// A way to the server.
pub struct Way {
    pub name: &'static str,
    port: u16,
    prefix: &'static str,
    joint: char,
    /// The process in between; `None` for the way straight to the server.
    pub process: Option<Process>,
}

impl Way {
    pub async fn connect(&self, framing: &str, size: usize) -> io::Result<Agent> {
        Agent::connect(
            self.port,
            &format!("{}/{framing}{}{size}", self.prefix, self.joint),
        )
        .await
    }
}

/// The processes that run during the measurement.
pub struct Stage {
    pub ways: Vec<Way>,
    pub folder: PathBuf,
    /// Resident bytes of each process in between, before its first call.
    pub idle: Vec<(&'static str, u64)>,
    _server: Process,
}

impl Stage {
    pub async fn set(gate: &Path) -> io::Result<Self> {
        let folder = std::env::temp_dir().join(format!("lychgate-bench-{}", std::process::id()));
        fs::create_dir_all(folder.join("no-rules"))?;
        let upstream = free_port()?;
        let mut command = Command::new(std::env::current_exe()?);
        let server = Process::start(
            command.arg("serve").arg(upstream.to_string()),
            &folder.join("server.log"),
        )?;
        let mut ways = vec![Way {
            name: "straight",
            port: upstream,
            prefix: "",
            joint: '/',
            process: None,
        }];
        ready(&ways[0]).await?;
        if let Some(process) = start_nginx(&folder, upstream)? {
            ways.push(process);
        }
        ways.push(start_forward(&folder, upstream)?);
        for checks in [Checks::None, Checks::Shipped, Checks::EachTime] {
            ways.push(start_gate(gate, &folder, upstream, checks)?.0);
        }
        for way in &ways {
            listening(way).await?;
        }
        tokio::time::sleep(SETTLE).await;
        let mut stage = Self {
            ways,
            folder,
            idle: Vec::new(),
            _server: server,
        };
        stage.idle = stage.memory();
        for way in &stage.ways {
            ready(way).await?;
        }
        Ok(stage)
    }

    /// Returns the time from the start of another gate to its first answer.
    pub async fn start_time(&self, gate: &Path) -> io::Result<Duration> {
        let (way, began) = start_gate(gate, &self.folder, self.ways[0].port, Checks::Shipped)?;
        ready(&way).await?;
        Ok(began.elapsed())
    }

    /// Returns the resident bytes of each process in between.
    pub fn memory(&self) -> Vec<(&'static str, u64)> {
        self.ways
            .iter()
            .filter_map(|way| Some((way.name, way.process.as_ref()?.rss())))
            .collect()
    }
}

/// Waits until the process accepts connections, without a call.
async fn listening(way: &Way) -> io::Result<()> {
    let began = Instant::now();
    while let Err(error) = TcpStream::connect(("127.0.0.1", way.port)).await {
        if began.elapsed() > PATIENCE {
            return Err(io::Error::other(format!(
                "{} does not listen: {error}",
                way.name
            )));
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}

async fn ready(way: &Way) -> io::Result<()> {
    let began = Instant::now();
    loop {
        let error = match way.connect("json", SIZES[0]).await {
            Ok(mut agent) => return agent.call().await.map(|_| ()),
            Err(error) => error,
        };
        if began.elapsed() > PATIENCE {
            return Err(io::Error::other(format!(
                "{} does not answer: {error}",
                way.name
            )));
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// The checks of a gate.
#[derive(Clone, Copy)]
enum Checks {
    /// No rule, and no audit log.
    None,
    /// All built-in rules in `enforce`, and an audit log. The results that the gate judges are
    /// always the same, so that it recognizes them.
    Shipped,
    /// The same, but each text is judged each time, like a new one.
    EachTime,
}

/// Starts a gate that passes results of any size.
fn start_gate(
    gate: &Path,
    folder: &Path,
    upstream: u16,
    checks: Checks,
) -> io::Result<(Way, Instant)> {
    let port = free_port()?;
    let folder = folder.display();
    let audit = format!("[audit]\nfile = \"{folder}/audit-{port}.jsonl\"\n");
    let packs = "packs = { ops = true }".to_owned();
    let (name, sections, rules) = match checks {
        Checks::None => (
            "unchecked",
            String::new(),
            format!("rules = [\"{folder}/no-rules\"]"),
        ),
        Checks::Shipped => ("gate", audit, packs),
        Checks::EachTime => ("gate, new", audit + "[limits]\nclean_texts = 0\n", packs),
    };
    let mut config = format!(
        "[listen]\naddress = \"127.0.0.1:{port}\"\n{sections}[policy.default]\n{rules}\n\
         result_text_bytes = {{ \"*\" = 10_000_000 }}\n",
    );
    for framing in ["json", "sse"] {
        for size in SIZES {
            config += &format!(
                "[upstream.{framing}-{size}]\nhttp = {{ url = \"http://127.0.0.1:{upstream}/{framing}/{size}\" }}\n"
            );
        }
    }
    let file = format!("{folder}/lychgate-{port}.toml");
    fs::write(&file, config)?;
    let began = Instant::now();
    let log = format!("{folder}/gate-{port}.log");
    let process = Process::start(
        Command::new(gate).arg("run").arg("--config").arg(&file),
        Path::new(&log),
    )?;
    Ok((
        Way {
            name,
            port,
            prefix: "/mcp",
            joint: '-',
            process: Some(process),
        },
        began,
    ))
}

/// Starts a hyper proxy that only forwards.
fn start_forward(folder: &Path, upstream: u16) -> io::Result<Way> {
    let port = free_port()?;
    let mut command = Command::new(std::env::current_exe()?);
    let command = command
        .arg("forward")
        .arg(port.to_string())
        .arg(upstream.to_string());
    let process = Process::start(command, &folder.join("hyper.log"))?;
    Ok(Way {
        name: "hyper",
        port,
        prefix: "",
        joint: '/',
        process: Some(process),
    })
}

/// Starts nginx as a plain pass-through with keep-alive connections; `None` if it is not installed.
fn start_nginx(folder: &Path, upstream: u16) -> io::Result<Option<Way>> {
    let Some(program) = ["/usr/sbin/nginx", "/usr/bin/nginx", "/usr/local/sbin/nginx"]
        .into_iter()
        .find(|path| Path::new(path).exists())
    else {
        return Ok(None);
    };
    let port = free_port()?;
    let home = folder.display();
    let config = format!(
        "daemon off;\nworker_processes 2;\npid {home}/nginx.pid;\nerror_log {home}/nginx.log;\n\
         events {{ worker_connections 20000; }}\n\
         http {{\n  access_log off;\n  client_body_temp_path {home}/a;\n  proxy_temp_path {home}/b;\n  fastcgi_temp_path {home}/c;\n\
         \x20 uwsgi_temp_path {home}/d;\n  scgi_temp_path {home}/e;\n  client_max_body_size 10m;\n\
         \x20 upstream behind {{ server 127.0.0.1:{upstream}; keepalive 256; keepalive_requests 1000000000; }}\n\
         \x20 server {{\n    listen 127.0.0.1:{port};\n    keepalive_requests 1000000000;\n    location / {{\n\
         \x20     proxy_pass http://behind;\n      proxy_http_version 1.1;\n      proxy_set_header Connection \"\";\n\
         \x20     proxy_buffering off;\n      proxy_read_timeout 1h;\n    }}\n  }}\n}}\n"
    );
    let file = folder.join("nginx.conf");
    fs::write(&file, config)?;
    let process = Process::start(
        Command::new(program)
            .arg("-c")
            .arg(&file)
            .arg("-p")
            .arg(folder),
        &folder.join("nginx.out"),
    )?;
    Ok(Some(Way {
        name: "nginx",
        port,
        prefix: "",
        joint: '/',
        process: Some(process),
    }))
}
