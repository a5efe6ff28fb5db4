//! `lychgate approve`: lists the calls that wait for a person's yes, and answers.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use crate::config::{self, Scope};
use crate::message::{Json, ReadLimits, Value, quote};

/// How long the gate may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest answer of the gate that is read, in bytes.
const ANSWER_BYTES: u64 = 64 << 20;

/// Arguments of `lychgate approve`.
#[derive(clap::Args)]
#[command(after_help = "\
Without a question, or with `list`, tells which calls wait; with a question alone, shows that one. What each shows behind
bars is exactly what would be sent. A question that nobody answers before its deadline is answered with no.

It talks to the admin port with the token that the gate writes at start (`token_file` under `[approval]`), which only
the gate's own user can read. An agent that runs commands as that user can read it too, and could answer for you: run
the gate as another user where that matters.")]
pub(super) struct Args {
    /// The question, as the list names it; `list` for all
    #[arg(default_value = "list")]
    question: String,
    /// Yes, to this one call
    #[arg(long, group = "answer")]
    once: bool,
    /// Yes, whenever the same rules ask about the same tool in this session
    #[arg(long, group = "answer")]
    session: bool,
    /// Yes, to the same tool with the same arguments, until the gate ends
    #[arg(long, group = "answer")]
    call: bool,
    /// Yes, to the same tool with the same arguments, for good
    #[arg(long, group = "answer")]
    always: bool,
    /// No
    #[arg(long, group = "answer")]
    deny: bool,
    /// The config file of the gate
    #[arg(long, value_name = "FILE", default_value = "lychgate.toml")]
    config: PathBuf,
    /// Address of the admin port, if not as in the config
    #[arg(long, value_name = "ADDRESS")]
    admin: Option<SocketAddr>,
    /// File with the token, if not as in the config
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

/// Lists or answers; 0 if that went well (a list with nothing in it too), 1 if the answer does not count, 2 if the gate
/// cannot be asked.
pub(super) fn run(args: &Args, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
    match args.carry_out(out) {
        Ok(code) => Ok(code),
        Err(Trouble::Write(error)) => Err(error),
        Err(Trouble::Told(code, text)) => {
            writeln!(err, "{text}")?;
            Ok(code)
        }
    }
}

/// What went wrong.
enum Trouble {
    /// Nothing can be written here.
    Write(io::Error),
    /// The exit code, and why.
    Told(u8, String),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Write(error)
    }
}

impl Args {
    fn carry_out(&self, out: &mut dyn Write) -> Result<u8, Trouble> {
        let (address, token) = self.place()?;
        let answer = match (self.once, self.session, self.call, self.always, self.deny) {
            (true, ..) => Some(Some(Scope::Once)),
            (_, true, ..) => Some(Some(Scope::Session)),
            (_, _, true, ..) => Some(Some(Scope::Call)),
            (_, _, _, true, _) => Some(Some(Scope::Always)),
            (_, _, _, _, true) => Some(None),
            _ => None,
        };
        let Some(answer) = answer else {
            let listed = ask(address, &token, "GET", "/approvals", "")?;
            return self.list(&listed, out);
        };
        if self.question == "list" || !self.question.bytes().all(|b| b.is_ascii_alphanumeric()) {
            return Err(Trouble::Told(2, "name the question to answer, as `lychgate approve list` does".into()));
        }
        let by = std::env::var("USER").unwrap_or_default();
        let body = match answer {
            Some(scope) => format!(r#"{{"decision":"approve","scope":"{}","by":{}}}"#, scope.name(), quote(&by)),
            None => format!(r#"{{"decision":"deny","by":{}}}"#, quote(&by)),
        };
        ask(address, &token, "POST", &format!("/approvals/{}", self.question), &body)?;
        let told = answer.map_or("refused".to_owned(), |scope| format!("allowed ({})", scope.name()));
        writeln!(out, "{}: {told}", self.question)?;
        Ok(0)
    }

    /// Where to ask, and the token to show.
    fn place(&self) -> Result<(SocketAddr, String), Trouble> {
        let told = |text: String| Trouble::Told(2, text);
        let (address, approval) = match (self.admin, &self.token_file) {
            (Some(address), Some(_)) => (Some(address), config::ApprovalConfig::default()),
            (admin, _) => {
                let read = config::load_admin(&self.config);
                let (there, approval) =
                    read.map_err(|faults| told(faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")))?;
                (admin.or(there.address), approval)
            }
        };
        let hint = "give the gate one: `[admin]` with `address = \"127.0.0.1:8801\"`";
        let mut address = address.ok_or_else(|| told(format!("the config names no admin port\n  hint: {hint}")))?;
        let file = self.token_file.clone().or_else(|| approval.token_file(address.port()));
        let file = file.ok_or_else(|| told("there is no token file\n  hint: name it with `--token-file FILE`".into()))?;
        let token = std::fs::read_to_string(&file).map_err(|error| {
            let hint = "run this as the user who runs the gate, while it runs";
            told(format!("the token in `{}` cannot be read: {error}\n  hint: {hint}", file.display()))
        })?;
        match address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
            IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
            _ => {}
        }
        Ok((address, token.trim().to_owned()))
    }

    fn list(&self, listed: &Json, out: &mut dyn Write) -> Result<u8, Trouble> {
        let text = |of: Value<'_>, key: &str| of.get(key).and_then(|value| value.str()).unwrap_or_default().into_owned();
        let all = self.question == "list";
        let meant: Vec<Value<'_>> = listed.root().elements().filter(|of| all || text(*of, "id") == self.question).collect();
        if meant.is_empty() && all {
            writeln!(out, "nothing waits")?;
        } else if meant.is_empty() {
            return Err(Trouble::Told(1, format!("no question `{}` is open", self.question)));
        }
        for of in meant {
            let id = text(of, "id");
            let left = of.get("seconds_left").map_or("0", |left| left.raw());
            let waiting =
                if of.get("waiting").is_some_and(|waiting| waiting.raw() == "true") { "waits" } else { "will try again" };
            writeln!(
                out,
                "{id}  {} calls `{}` of `{}`; it {waiting}; {left} s left",
                text(of, "agent"),
                text(of, "tool"),
                text(of, "upstream")
            )?;
            let rules: Vec<String> = of
                .get("rules")
                .into_iter()
                .flat_map(|rules| rules.elements())
                .map(|rule| rule.str().unwrap_or_default().into())
                .collect();
            writeln!(out, "  {} ({}, {}). {}", text(of, "title"), rules.join(", "), text(of, "severity"), text(of, "why"))?;
            for line in text(of, "shown").lines() {
                writeln!(out, "  {line}")?;
            }
            let scopes = of.get("scopes").into_iter().flat_map(|scopes| scopes.elements());
            let flags: Vec<String> = scopes.map(|scope| format!("--{}", scope.str().unwrap_or_default())).collect();
            writeln!(out, "  lychgate approve {id} {} | --deny\n", flags.join(" | "))?;
        }
        Ok(0)
    }
}

/// Asks the gate; gives what it says if it is content.
fn ask(address: SocketAddr, token: &str, method: &str, path: &str, body: &str) -> Result<Json, Trouble> {
    let unreachable = |error: io::Error| {
        let hint = "is the gate running, with the admin port that the config names?";
        Trouble::Told(2, format!("the gate at {address} cannot be asked: {error}\n  hint: {hint}"))
    };
    let said = exchange(address, token, method, path, body).map_err(unreachable)?;
    let unreadable = || Trouble::Told(2, format!("what answers at {address} is not a gate"));
    let (head, body) = said.split_once("\r\n\r\n").ok_or_else(unreadable)?;
    let status: u16 = head.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(unreadable)?;
    let limits = ReadLimits { message_bytes: body.len(), ..ReadLimits::default() };
    let json = Json::parse(body.to_owned().into(), &limits).map_err(|_| unreadable())?;
    if status == 200 {
        return Ok(json);
    }
    let why = json.root().get("error").and_then(|error| error.str()).unwrap_or_default().into_owned();
    Err(Trouble::Told(if matches!(status, 403 | 404 | 409) { 1 } else { 2 }, why))
}

fn exchange(address: SocketAddr, token: &str, method: &str, path: &str, body: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )?;
    let mut said = String::new();
    stream.take(ANSWER_BYTES).read_to_string(&mut said)?;
    Ok(said)
}
