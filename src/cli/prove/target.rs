//! Finds the running gate and the token to send to it.

use std::path::Path;

use super::client::GateClient;
use super::{Args, ProveError};
use crate::cli::admin_client::reachable_address;
use crate::config::{self, Config};

/// Returns a client for the gate that the arguments select, and its config if that can be read.
pub(super) fn select_gate(args: &Args) -> Result<(GateClient, Option<Config>), ProveError> {
    let client = args.client_cert.as_deref().zip(args.client_key.as_deref());
    if let (Some(url), Some(file)) = (&args.url, &args.token_file) {
        return Ok((
            GateClient::for_url(url, args.ca.as_deref(), client, read_token(file)?)?,
            None,
        ));
    }
    let config_file = args.config.find()?;
    let (listen, admin, approval) = config::load_listen(&config_file)?;
    let hint = "add an admin port (`[admin]` with `address = \"127.0.0.1:8801\"`), or start it here with `--offline`";
    let file = match (&args.token_file, admin.address) {
        (Some(file), _) => file.clone(),
        (None, Some(admin)) => approval.token_file(admin.port()).ok_or_else(|| {
            ProveError("no token file\n  hint: pass `--token-file FILE`".to_owned())
        })?,
        (None, None) => {
            return Err(ProveError(format!(
                "the config sets no admin port, so there is no token\n  hint: {hint}"
            )));
        }
    };
    let wire = GateClient::for_address(
        reachable_address(listen.address),
        listen.tls.as_ref(),
        client,
        read_token(&file)?,
    )?;
    // The config only improves explanations; the caller may not be able to read that of the gate.
    Ok((wire, config::load(&config_file).ok()))
}

fn read_token(file: &Path) -> Result<String, ProveError> {
    let text = std::fs::read_to_string(file).map_err(|error| {
        let hint = "run this as the gateway's user, while it is running; or start it here with `--offline`";
        ProveError(format!("cannot read the token in `{}`: {error}\n  hint: {hint}", file.display()))
    })?;
    let token = text.trim();
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        let hint = "a token file has one line; this may be a certificate or a key";
        return Err(ProveError(format!(
            "`{}` contains no token\n  hint: {hint}",
            file.display()
        )));
    }
    Ok(token.to_owned())
}
