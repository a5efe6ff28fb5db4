//! `lychgate logout`: revokes tokens at the server and erases them.

use std::io::Write;

use super::config_file::ConfigArg;
use super::exit::{Exit, usage_error};
use crate::config::{self, LoginConfig, OAuthConfig};
use crate::oauth::Principal;
use crate::oauth::assertion::SigningKey;
use crate::oauth::fetch::Fetcher;
use crate::oauth::grant::TokenClient;
use crate::oauth::vault::{Account, Vault, VaultError};

/// Arguments of `lychgate logout`.
#[derive(clap::Args)]
#[command(after_help = "\
Tokens are revoked at the server that issued them (RFC 7009), if it supports
revocation, and erased in any case. This includes logins for upstreams that the
config no longer names, and logins that cannot be decrypted.

Examples:
  lychgate logout github
  lychgate logout github --all")]
pub(super) struct Args {
    /// The upstream
    upstream: String,
    /// The login of this agent instead of the shared one
    #[arg(long, value_name = "NAME", group = "whose")]
    agent: Option<String>,
    /// The login of this user
    #[arg(long, value_name = "NAME", group = "whose")]
    user: Option<String>,
    /// All logins for the upstream
    #[arg(long, group = "whose")]
    all: bool,
    #[command(flatten)]
    config: ConfigArg,
}

impl Args {
    /// Runs the command; exit code 0 if all tokens were revoked and erased, 1 if some were only erased
    /// or there were none, 2 if something could not be erased.
    pub(super) fn run(&self, out: &mut dyn Write, err: &mut dyn Write) -> Result<u8, Exit> {
        let (config, transport) = self
            .config
            .find()
            .and_then(|file| config::load_login(&file, &self.upstream))?;
        let ca = transport
            .as_ref()
            .and_then(|transport| transport.ca.as_deref());
        let login = transport
            .as_ref()
            .and_then(|transport| transport.login.as_deref().cloned())
            .unwrap_or_default();
        let revoker = Revoker::new(&config, &login, ca).map_err(usage_error)?;
        let vault = Vault::open(&config)?;
        let runtime = super::login::runtime(1).map_err(|error| usage_error(error.to_string()))?;
        let principals = runtime.block_on(self.principals(&vault))?;
        let mut code = u8::from(principals.is_empty());
        for principal in &principals {
            let outcome = runtime.block_on(log_out(&vault, &revoker, &self.upstream, principal));
            code = code.max(outcome.code());
            let upstream = &self.upstream;
            let name = super::login::replace_control(&principal.to_string());
            match outcome {
                LogoutOutcome::Revoked => writeln!(out, "{upstream}: {name} is logged out")?,
                LogoutOutcome::Erased(why) => writeln!(
                    out,
                    "{upstream}: {name} is logged out here; the token was not revoked at the server: {why}"
                )?,
                LogoutOutcome::NotFound => writeln!(err, "{upstream}: no stored login for {name}")?,
                LogoutOutcome::Failed(error) => {
                    writeln!(err, "{upstream}: {name} is still logged in: {error}")?
                }
            }
        }
        if principals.is_empty() {
            writeln!(err, "{}: no stored login", self.upstream)?;
        }
        Ok(code)
    }

    async fn principals(&self, vault: &Vault) -> Result<Vec<Principal>, VaultError> {
        Ok(match (&self.agent, &self.user) {
            (Some(agent), _) => vec![Principal::Agent(agent.clone())],
            (_, Some(user)) => vec![Principal::User(user.clone())],
            _ if self.all => {
                let accounts = vault.list().await?.accounts.into_iter();
                accounts
                    .filter(|account| account.upstream == self.upstream)
                    .map(|account| account.party.principal)
                    .collect()
            }
            _ => vec![Principal::Gate],
        })
    }
}

/// The outcome for one login.
enum LogoutOutcome {
    Revoked,
    /// The tokens were erased, but revocation at the server failed for this reason.
    Erased(String),
    NotFound,
    Failed(VaultError),
}

impl LogoutOutcome {
    fn code(&self) -> u8 {
        match self {
            Self::Revoked => 0,
            Self::Erased(_) | Self::NotFound => 1,
            Self::Failed(_) => 2,
        }
    }
}

async fn log_out(
    vault: &Vault,
    revoker: &Revoker,
    upstream: &str,
    principal: &Principal,
) -> LogoutOutcome {
    // Prevents a concurrent renewal from storing new tokens. Without the lock, logging out
    // continues.
    let lease = vault.lease(upstream, principal).await;
    let revocation = match vault.read(upstream, principal).await {
        Ok(Some(account)) => revoker.revoke(&account).await,
        Ok(None) => return LogoutOutcome::NotFound,
        Err(error @ VaultError::Sealed { .. }) => Err(error.to_string()),
        Err(error) => return LogoutOutcome::Failed(error),
    };
    let erasure = vault.erase(upstream, principal).await;
    drop(lease);
    match (erasure, revocation) {
        (Err(error), _) => LogoutOutcome::Failed(error),
        (Ok(_), Ok(())) => LogoutOutcome::Revoked,
        (Ok(_), Err(why)) => LogoutOutcome::Erased(why),
    }
}

/// Revokes tokens at a server.
struct Revoker {
    fetcher: Fetcher,
    key: Option<SigningKey>,
}

impl Revoker {
    fn new(
        config: &OAuthConfig,
        login: &LoginConfig,
        ca: Option<&std::path::Path>,
    ) -> Result<Self, String> {
        Ok(Self {
            fetcher: Fetcher::for_config(config, ca)?,
            key: SigningKey::of_login(login)?,
        })
    }

    async fn revoke(&self, account: &Account) -> Result<(), String> {
        // A registration without a login has no tokens to revoke.
        let Some(granted) = &account.granted else {
            return Ok(());
        };
        let token_client = TokenClient {
            fetcher: &self.fetcher,
            server: &account.server,
            client: &account.client,
            key: self.key.as_ref(),
            resource: &account.party.resource,
            scopes: &account.asked,
        };
        let revoked = token_client.revoke(granted).await;
        revoked.map_err(|error| error.to_string())
    }
}
