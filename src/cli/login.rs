//! `lychgate login`: performs an entire login at a server, without a running gate.

use std::io::{self, BufRead, Write};
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use super::config_file::ConfigArg;
use super::exit::{Exit, usage_error};
use crate::config::{
    self, AuditConfig, Callback, Grant, HttpTransport, LoginConfig, OAuthConfig, TokenOf,
};
use crate::oauth::callback::{Loopback, redirect_uri};
use crate::oauth::grant::Answer;
use crate::oauth::{Authorizer, LoginError, Plan, Principal, Shared, StartedLogin, browser};
use crate::record::Recorder;

/// Maximum number of URLs that may be pasted before the login fails; only one that belongs to this
/// login is accepted.
const MAX_PASTES: usize = 10;
/// Maximum length of a line that is read from standard input, in bytes.
const MAX_PASTE_BYTES: u64 = 64 << 10;
/// The default port of the redirect URL for a pasted login; nothing needs to listen there.
const PASTE_PORT: u16 = 8723;

/// Arguments of `lychgate login`.
#[derive(clap::Args)]
#[command(after_help = "\
The browser returns to a port on this machine. To use a browser on another machine,
pass `--paste`: its last page does not load, and you enter its address here; or
`--device`, if the server supports device codes. A running gateway uses the login
automatically.

Examples:
  lychgate login github
  lychgate login github --paste

The program named by $BROWSER opens the browser; the default is the system's.")]
pub(super) struct Args {
    /// The upstream
    upstream: String,
    /// Log in for this agent, if each agent has its own login (`token_of = \"agent\"`)
    #[arg(long, value_name = "NAME", group = "whose")]
    agent: Option<String>,
    /// Log in for this user, if each user has their own login (`token_of = \"user\"`)
    #[arg(long, value_name = "NAME", group = "whose")]
    user: Option<String>,
    /// Print the link, and read the final address of the browser from standard input
    #[arg(long, group = "how")]
    paste: bool,
    /// Print an address and a code to enter there on any device
    #[arg(long, group = "how")]
    device: bool,
    /// Print the link and wait for the browser
    #[arg(long, group = "how")]
    no_browser: bool,
    /// Callback port; defaults to that of the config
    #[arg(long, value_name = "PORT", conflicts_with = "device")]
    port: Option<u16>,
    #[command(flatten)]
    config: ConfigArg,
}

/// Runs the login; exit code 0 if it succeeds, 1 if it fails, 2 if it cannot be started.
pub(super) fn run(args: &Args, out: &mut dyn Write, err: &mut dyn Write) -> Result<u8, Exit> {
    let result = args
        .prepare()
        .and_then(|(login, runtime)| runtime.block_on(login.carry_out(args, out, err)));
    result.map(|()| 0)
}

impl From<LoginError> for Exit {
    fn from(error: LoginError) -> Self {
        Self::Code(
            1,
            format!("login failed: {}", replace_control(&error.to_string())),
        )
    }
}

impl Args {
    fn prepare(&self) -> Result<(Login, Runtime), Exit> {
        let (config, transport) = self
            .config
            .find()
            .and_then(|file| config::load_login(&file, &self.upstream))?;
        let name = &self.upstream;
        let transport = transport.ok_or_else(|| {
            let hint = "only upstreams with `http` or `sse` have logins";
            usage_error(format!(
                "the config has no server `{name}` to log in to\n  hint: {hint}"
            ))
        })?;
        let login = transport.login.as_deref().ok_or_else(|| {
            usage_error(format!("`{name}` has a token in the config, or `oauth = false`\n  hint: remove that to log in"))
        })?;
        if login.grant != Grant::Person {
            return Err(usage_error(format!(
                "the gate logs in to `{name}` automatically"
            )));
        }
        let principal = self.principal(login)?;
        let runtime = runtime(1)?;
        // The outcome is printed here instead of logged: the audit log belongs to the gate.
        let recorder = Arc::new(Recorder::new(&AuditConfig::default())?);
        let shared = Arc::new(
            Shared::new(&config, recorder).map_err(|error| usage_error(error.to_string()))?,
        );
        let authorizer =
            Arc::new(Authorizer::new(name, &transport, login, shared).map_err(usage_error)?);
        Ok((
            Login {
                authorizer,
                config,
                principal,
                transport,
            },
            runtime,
        ))
    }

    fn principal(&self, login: &LoginConfig) -> Result<Principal, Exit> {
        let name = &self.upstream;
        match (login.token_of, &self.agent, &self.user) {
            (TokenOf::Gate, None, None) => Ok(Principal::Gate),
            (TokenOf::Agent, Some(agent), None) => Ok(Principal::Agent(agent.clone())),
            (TokenOf::User, None, Some(user)) => Ok(Principal::User(user.clone())),
            (TokenOf::Gate, ..) => Err(usage_error(format!(
                "all agents share one login at `{name}`\n  hint: remove `--agent` and `--user`, or set `token_of` in its `oauth`"
            ))),
            (TokenOf::Agent, ..) => Err(usage_error(format!(
                "each agent has its own login at `{name}`\n  hint: pass `--agent NAME`"
            ))),
            (TokenOf::User, ..) => Err(usage_error(format!(
                "each user has their own login at `{name}`\n  hint: pass `--user NAME`"
            ))),
        }
    }
}

/// A login to be performed.
struct Login {
    authorizer: Arc<Authorizer>,
    config: OAuthConfig,
    principal: Principal,
    transport: HttpTransport,
}

impl Login {
    async fn carry_out(
        &self,
        args: &Args,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> Result<(), Exit> {
        let plan = self.authorizer.plan(&self.principal).await?;
        let issuer = replace_control(&plan.party.issuer);
        let scopes = plan.scopes.parameter().map_or_else(
            || "its default scopes".to_owned(),
            |scopes| replace_control(&scopes),
        );
        writeln!(
            err,
            "{} logs in to `{}` ({}) at {issuer}, for {scopes}",
            self.principal, args.upstream, self.transport.url
        )?;
        if args.device {
            self.on_device(&plan, out, err).await?;
        } else if args.paste {
            self.by_paste(args, &plan, out, err).await?;
        } else {
            self.by_browser(args, &plan, out, err).await?;
        }
        writeln!(
            err,
            "{} is logged in to `{}`",
            self.principal, args.upstream
        )?;
        Ok(())
    }

    async fn by_browser(
        &self,
        args: &Args,
        plan: &Plan,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> Result<(), Exit> {
        let port = args.port.unwrap_or(self.config.callback_port);
        let loopback = Loopback::bind(port).await.map_err(|error| {
            let hint = "pass another with `--port`, or 0 for any free port";
            usage_error(format!(
                "cannot listen on the callback port {port}: {error}\n  hint: {hint}"
            ))
        })?;
        let started_login = Arc::new(
            self.authorizer
                .begin_by_hand(plan, &loopback.redirect_uri())
                .await?,
        );
        writeln!(out, "{}", started_login.url())?;
        out.flush()?;
        if args.no_browser || !browser::open(started_login.url()) {
            writeln!(err, "open this link in a browser on this machine")?;
        } else {
            writeln!(err, "a browser should open; otherwise open this link")?;
        }
        let expected = started_login.clone();
        let is_answer = move |query: &str| expected.is_answered_by(&Answer::from_query(query));
        let query = loopback
            .wait_for_answer(self.config.login, is_answer)
            .await
            .ok_or_else(|| self.timeout_error())?;
        self.finish(started_login, &Answer::from_query(query.expose()))
            .await
    }

    async fn by_paste(
        &self,
        args: &Args,
        plan: &Plan,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> Result<(), Exit> {
        let uri = match &self.config.callback {
            Callback::Hosted(base) if args.port.is_none() => {
                format!("{}/oauth/callback", base.trim_end_matches('/'))
            }
            _ => redirect_uri(match args.port.unwrap_or(self.config.callback_port) {
                0 => PASTE_PORT,
                port => port,
            }),
        };
        let started_login = Arc::new(self.authorizer.begin_by_hand(plan, &uri).await?);
        writeln!(out, "{}", started_login.url())?;
        out.flush()?;
        writeln!(
            err,
            "open this link in any browser; the last page, at {uri}, does not need to load: paste its address here"
        )?;
        let mut lines = lines();
        let read_answer = async {
            for _ in 0..MAX_PASTES {
                let line = lines.recv().await?;
                let answer = Answer::from_pasted(&line);
                if started_login.is_answered_by(&answer) {
                    return Some(answer);
                }
                writeln!(err, "this is not the callback address of this login: its `state` is missing or different").ok()?;
            }
            None
        };
        let answer = tokio::time::timeout(self.config.login, read_answer)
            .await
            .map_err(|_| self.timeout_error())?;
        let answer = answer
            .ok_or_else(|| Exit::Code(1, "login failed: no matching address was pasted".into()))?;
        self.finish(started_login, &answer).await
    }

    async fn on_device(
        &self,
        plan: &Plan,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> Result<(), Exit> {
        if plan.server.device_authorization_endpoint.is_none() {
            let hint = "`--paste` works on any machine";
            return Err(usage_error(format!(
                "the authorization server does not support device codes\n  hint: {hint}"
            )));
        }
        let started_login = self
            .authorizer
            .begin_on_device(plan, &redirect_uri(PASTE_PORT))
            .await?;
        let device = started_login.device();
        writeln!(
            out,
            "{} {}",
            replace_control(&device.verification_uri),
            replace_control(&device.user_code)
        )?;
        if let Some(complete) = &device.verification_uri_complete {
            writeln!(out, "{}", replace_control(complete))?;
        }
        out.flush()?;
        let validity = humantime::format_duration(Duration::from_secs(device.lifetime.as_secs()));
        writeln!(
            err,
            "open the address on any device and enter the code, which is valid for {validity}"
        )?;
        Ok(self.authorizer.end_on_device(started_login).await?)
    }

    async fn finish(&self, started_login: Arc<StartedLogin>, answer: &Answer) -> Result<(), Exit> {
        Ok(self.authorizer.end_by_hand(&started_login, answer).await?)
    }

    fn timeout_error(&self) -> Exit {
        Exit::Code(
            1,
            format!(
                "login failed: nobody made it within {} s",
                self.config.login.as_secs()
            ),
        )
    }
}

/// Reads lines from standard input on a detached thread, since a read may never return.
fn lines() -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel(1);
    std::thread::spawn(move || {
        loop {
            let mut line = String::new();
            let result = io::Read::take(io::stdin().lock(), MAX_PASTE_BYTES).read_line(&mut line);
            if !matches!(result, Ok(length) if length > 0) || sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// Creates a runtime for a command that sends requests to servers.
pub(super) fn runtime(worker_threads: usize) -> io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(worker_threads)
        .enable_all()
        .build()
}

/// Replaces control characters in untrusted text, so that a terminal can display it.
pub(super) fn replace_control(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}
