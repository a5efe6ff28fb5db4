//! `lychgate auth`: lists the stored logins and their state.

use std::io::{self, Write};
use std::time::Duration;

use clap::Subcommand;
use serde_json::json;

use super::config_file::ConfigArg;
use super::exit::{Exit, usage_error};
use crate::config;
use crate::oauth::vault::{Account, Vault, VaultError, VaultListing};
use crate::oauth::{Principal, TokenGrant, unix_now};

/// Arguments of `lychgate auth`.
#[derive(clap::Args)]
#[command(after_help = "\
Reads the vault set by `[oauth]` in the config, without contacting any server.
No token is printed.")]
pub(super) struct Args {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    config: ConfigArg,
}

#[derive(Subcommand)]
enum Verb {
    /// List logins with principal, server, scopes and expiry
    Status {
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Re-encrypt every login with `vault_key`; `earlier_vault_keys` can be removed afterwards
    Rekey,
}

impl From<VaultError> for Exit {
    fn from(error: VaultError) -> Self {
        usage_error(error.to_string())
    }
}

impl Args {
    /// Runs the command; exit code 0 if all logins are valid, 1 if one is required or cannot be
    /// decrypted, 2 if the vault cannot be used.
    pub(super) fn run(&self, out: &mut dyn Write, err: &mut dyn Write) -> Result<u8, Exit> {
        let config = self
            .config
            .find()
            .and_then(|file| config::load_oauth(&file))?;
        let runtime = super::login::runtime(1)?;
        let vault = Vault::open(&config)?;
        match self.verb {
            Verb::Status { json } => {
                let listing = runtime.block_on(vault.list())?;
                Ok(status(&listing, json, out, err)?)
            }
            Verb::Rekey => {
                let outcome = runtime.block_on(vault.rekey())?;
                writeln!(
                    out,
                    "re-encrypted {}, {} already current",
                    outcome.rekeyed, outcome.unchanged
                )?;
                outcome
                    .faults
                    .iter()
                    .try_for_each(|fault| writeln!(err, "{fault}"))?;
                Ok(u8::from(!outcome.faults.is_empty()))
            }
        }
    }
}

fn status(
    listing: &VaultListing,
    as_json: bool,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<u8> {
    if as_json {
        let logins: Vec<_> = listing.accounts.iter().map(account_json).collect();
        let faults: Vec<_> = listing.faults.iter().map(ToString::to_string).collect();
        writeln!(out, "{:#}", json!({ "logins": logins, "faults": faults }))?;
    } else {
        listing
            .accounts
            .iter()
            .try_for_each(|account| print_account(account, out))?;
        listing
            .faults
            .iter()
            .try_for_each(|fault| writeln!(err, "{fault}"))?;
        if listing.accounts.is_empty() && listing.faults.is_empty() {
            writeln!(err, "no stored logins")?;
        }
    }
    let needs_login = listing
        .accounts
        .iter()
        .any(|account| account.granted.is_none());
    Ok(u8::from(needs_login || !listing.faults.is_empty()))
}

fn account_json(account: &Account) -> serde_json::Value {
    let (kind, name) = match &account.party.principal {
        Principal::Gate => ("gate", None),
        Principal::Agent(name) => ("agent", Some(name)),
        Principal::User(name) => ("user", Some(name)),
    };
    let granted = account.granted.as_ref();
    let expires = granted.and_then(|granted| granted.expires_unix);
    json!({
        "upstream": account.upstream,
        "principal": { "kind": kind, "name": name },
        "issuer": account.party.issuer,
        "resource": account.party.resource,
        "client_id": account.client.id,
        "logged_in": granted.is_some(),
        "scopes": granted.map(|granted| &granted.scopes),
        "expires_unix": expires,
        "expires_in_seconds": expires.map(|expires| i128::from(expires) - i128::from(unix_now())),
        "renews": granted.is_some_and(|granted| granted.refresh.is_some()),
        "last_refresh_unix": account.last_refresh_unix,
        "last_error": account.last_error,
    })
}

fn print_account(account: &Account, out: &mut dyn Write) -> io::Result<()> {
    let party = &account.party;
    let plain = super::login::replace_control;
    writeln!(
        out,
        "{}  {}",
        account.upstream,
        plain(&party.principal.to_string())
    )?;
    let mut line = |name: &str, value: &str| writeln!(out, "  {name:<8} {}", plain(value));
    line("issuer", &party.issuer)?;
    line("resource", &party.resource)?;
    match &account.granted {
        Some(granted) => {
            line(
                "scopes",
                granted
                    .scopes
                    .parameter()
                    .as_deref()
                    .unwrap_or("none named"),
            )?;
            line("token", &describe_validity(granted))?;
        }
        None => line(
            "token",
            &format!("none: run `lychgate login {}`", account.upstream),
        )?,
    }
    if let Some(at) = account.last_refresh_unix {
        line(
            "renewed",
            &format!("{} ago", format_span(unix_now().saturating_sub(at))),
        )?;
    }
    account
        .last_error
        .as_ref()
        .map_or(Ok(()), |error| line("error", error))?;
    writeln!(out)
}

/// Describes how long a token is valid, and what happens when it expires.
pub(super) fn describe_validity(granted: &TokenGrant) -> String {
    let renewal = if granted.refresh.is_some() {
        "renewed automatically"
    } else {
        "then a new login is required"
    };
    let now = unix_now();
    match granted.expires_unix {
        None => format!("ends when the server rejects it, {renewal}"),
        Some(end) if end > now => format!("ends in {}, {renewal}", format_span(end - now)),
        Some(end) if granted.refresh.is_some() => {
            format!("ended {} ago, {renewal}", format_span(now - end))
        }
        Some(end) => format!(
            "ended {} ago: a new login is required",
            format_span(now - end)
        ),
    }
}

fn format_span(seconds: u64) -> String {
    // Above two minutes, seconds are irrelevant.
    let seconds = if seconds > 120 {
        seconds / 60 * 60
    } else {
        seconds
    };
    humantime::format_duration(Duration::from_secs(seconds)).to_string()
}
