//! Where the gate that runs is, and what to show there.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use super::client::GateClient;
use super::{Args, NotTried};
use crate::config::{self, Config};

/// The way to the gate that the arguments mean, and its config where that can be read.
pub(super) fn running(args: &Args) -> Result<(GateClient, Option<Config>), NotTried> {
    let client = args.client_cert.as_deref().zip(args.client_key.as_deref());
    if let (Some(url), Some(file)) = (&args.url, &args.token_file) {
        return Ok((GateClient::to_url(url, args.ca.as_deref(), client, token(file)?)?, None));
    }
    let config_file = args.config.find()?;
    let (listen, admin, approval) = config::load_listen(&config_file)?;
    let hint = "give the gate an admin port (`[admin]` with `address = \"127.0.0.1:8801\"`), or start it here with `--offline`";
    let file = match (&args.token_file, admin.address) {
        (Some(file), _) => file.clone(),
        (None, Some(admin)) => approval
            .token_file(admin.port())
            .ok_or_else(|| NotTried("no token file\n  hint: name it with `--token-file FILE`".to_owned()))?,
        (None, None) => {
            return Err(NotTried(format!("the config sets no admin port, so that there is no token\n  hint: {hint}")));
        }
    };
    let wire = GateClient::to_own(reached(listen.address), listen.tls.as_ref(), client, token(&file)?)?;
    // Only to say more of what was missed: whoever asks may not have what the gate has.
    Ok((wire, config::load(&config_file).ok()))
}

fn token(file: &Path) -> Result<String, NotTried> {
    let read = std::fs::read_to_string(file).map_err(|error| {
        let hint = "run this as the gateway's user, while it is running; or start it here with `--offline`";
        NotTried(format!("cannot read the token in `{}`: {error}\n  hint: {hint}", file.display()))
    })?;
    let token = read.trim();
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        let hint = "the gate writes its token there while it runs: one line, and no certificate or key";
        return Err(NotTried(format!("`{}` holds no token\n  hint: {hint}", file.display())));
    }
    Ok(token.to_owned())
}

/// Where somebody on this machine reaches a listener.
fn reached(mut address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    address
}
