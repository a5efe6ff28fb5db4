//! `lychgate demo --oauth`: the gate logs in at the sample server, and its agent never sees a
//! token.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use super::client::{Agent, Revision};
use super::sample::Sample;
use super::show::Screen;
use crate::config::{Config, LoginConfig, OAuthConfig, Transport, VaultKey};

/// Lifetime of the sample server's access tokens: short, so that users see them renewed.
pub(super) const ACCESS_TTL: Duration = Duration::from_secs(5);
/// How long the demo waits for a login.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(600);
/// Poll interval of that wait.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// The path of the gate's login pages.
const PAGES: &str = "/oauth/login/";

/// Configures the gate to log in at the sample server, with a vault in a private folder.
pub(super) fn configure(config: &mut Config, folder: &Path) {
    config.oauth = OAuthConfig {
        vault: Some(folder.join("vault")),
        vault_key: VaultKey::File(folder.join("vault.key")),
        renew_before: Duration::from_secs(1),
        allow_loopback_http: true,
        ..OAuthConfig::default()
    };
    for upstream in config.upstreams.values_mut() {
        if let Transport::Http(transport) = &mut upstream.transport {
            transport.login = Some(Box::new(LoginConfig::default()));
        }
    }
}

/// Shows a user's login, the renewal of an expired access token, and a call that requires an
/// additional scope. Returns whether all calls passed in the end.
pub(super) async fn show(screen: &mut Screen, gate: &str, sample: &Sample) -> io::Result<bool> {
    let Some(login) = sample.server.login() else {
        return Err(io::Error::other("the sample server has no login"));
    };
    let (name, password) = &login.settings().person;
    screen.heading("log in", "at the login page, as")?;
    screen.pair("name", name)?;
    screen.pair("password", password)?;

    let mut call = Call {
        agent: Agent::new(),
        gate,
    };
    screen.heading(
        "first call",
        "the server answers 401; the agent receives a login link",
    )?;
    let logged_in = call
        .call_until_passed(screen, "echo", "text", "Hello")
        .await?;

    screen.heading(
        "renewed",
        &format!(
            "after {} s the token expires and is renewed",
            ACCESS_TTL.as_secs()
        ),
    )?;
    tokio::time::sleep(ACCESS_TTL).await;
    let is_renewed = logged_in
        && call
            .call_tool("echo", "text", "Hello again")
            .await?
            .is_none();
    screen.verdict(
        is_renewed,
        if is_renewed {
            "passed"
        } else {
            "it did not pass"
        },
    )?;

    screen.heading(
        "further scope",
        "the server answers 403; a login with more scope is required",
    )?;
    let allowed = call
        .call_until_passed(screen, "run_command", "command", "git status")
        .await?;
    Ok(logged_in && is_renewed && allowed)
}

struct Call<'a> {
    agent: Agent,
    gate: &'a str,
}

impl Call<'_> {
    /// Calls a tool until the call passes. If the response is a login link, waits until that login
    /// is complete.
    async fn call_until_passed(
        &mut self,
        screen: &mut Screen,
        tool: &str,
        argument: &str,
        value: &str,
    ) -> io::Result<bool> {
        let start = Instant::now();
        while let Some(link) = self.call_tool(tool, argument, value).await? {
            screen.pair("open", &link)?;
            // The login page contains a form until the login is complete.
            while self.agent.get(&link).await?.contains("<form") {
                if start.elapsed() > LOGIN_TIMEOUT {
                    screen.verdict(false, "no login was completed")?;
                    return Ok(false);
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        }
        screen.verdict(true, &format!("passed: {tool} {value:?}"))?;
        Ok(true)
    }

    /// Calls a tool; returns the login link, if one is required.
    async fn call_tool(
        &mut self,
        tool: &str,
        argument: &str,
        value: &str,
    ) -> io::Result<Option<String>> {
        let request = self
            .agent
            .request(Revision::Modern, tool, &json!({ argument: value }));
        let answer = self
            .agent
            .call(self.gate, Revision::Modern, tool, &request)
            .await?;
        let text = String::from_utf8_lossy(&answer.body);
        let origin = self
            .gate
            .find("/mcp/")
            .and_then(|end| self.gate.get(..end))
            .unwrap_or_default();
        let start = text.find(&format!("{origin}{PAGES}"));
        let link = start.and_then(|begins| text.get(begins..)).map(|rest| {
            rest.chars()
                .take_while(|c| c.is_ascii_alphanumeric() || ":/.-_".contains(*c))
                .collect::<String>()
        });
        match link {
            Some(link) => Ok(Some(link.trim_end_matches('.').to_owned())),
            None if answer.status.is_success() && !text.contains("\"isError\":true") => Ok(None),
            None => Err(io::Error::other(format!(
                "`{tool}` was answered with {}: {text}",
                answer.status
            ))),
        }
    }
}
