//! A client for the admin port of a running gate, authenticated with the token that the gate writes
//! to a file.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use super::config_file::ConfigArg;
use super::exit::{Exit, usage_error};
use crate::config;
use crate::message::{Json, ReadLimits};
use crate::record::table;

/// How long the gate may take to respond.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum length of a response that is read, in bytes.
const MAX_RESPONSE_BYTES: u64 = 64 << 20;

/// Which gate to ask, and the token to show.
#[derive(clap::Args)]
pub(super) struct AdminClient {
    #[command(flatten)]
    config: ConfigArg,
    /// Address of the admin port; defaults to that of the config
    #[arg(long, value_name = "ADDRESS")]
    admin: Option<SocketAddr>,
    /// File with the admin token; defaults to that of the config
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

impl AdminClient {
    /// Returns the address of the admin port and the admin token.
    pub(super) fn target(&self) -> Result<(SocketAddr, String), Exit> {
        let (address, approval) = match (self.admin, &self.token_file) {
            (Some(address), Some(_)) => (Some(address), config::ApprovalConfig::default()),
            (admin, _) => {
                let (admin_config, approval) = self
                    .config
                    .find()
                    .and_then(|file| config::load_admin(&file))?;
                (admin.or(admin_config.address), approval)
            }
        };
        let hint = "add one: `[admin]` with `address = \"127.0.0.1:8801\"`";
        let address = address
            .ok_or_else(|| usage_error(format!("the config sets no admin port\n  hint: {hint}")))?;
        let file = self
            .token_file
            .clone()
            .or_else(|| approval.token_file(address.port()));
        let file =
            file.ok_or_else(|| usage_error("no token file\n  hint: pass `--token-file FILE`"))?;
        let token = std::fs::read_to_string(&file).map_err(|error| {
            let hint = "run this as the gateway's user, while it is running";
            usage_error(format!(
                "cannot read the token in `{}`: {error}\n  hint: {hint}",
                file.display()
            ))
        })?;
        Ok((reachable_address(address), token.trim().to_owned()))
    }
}

/// Returns the address at which a program on this machine reaches a listener.
pub(super) fn reachable_address(mut address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    address
}

/// The number of config reloads of a gate, by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Reloads {
    /// Reloads after which the new config is in effect.
    pub(super) applied: f64,
    /// Reloads after which the old config remains in effect.
    pub(super) refused: f64,
}

/// Returns the number of config reloads of the gate with this admin port; `None` if no gate
/// responds.
pub(super) fn fetch_reloads(address: SocketAddr) -> Option<Reloads> {
    let response = exchange(address, None, "GET", "/metrics", "").ok()?;
    let series = format!("{}{{outcome=\"", table::RELOADS.name);
    let mut counts = Reloads::default();
    for line in response
        .lines()
        .filter_map(|line| line.strip_prefix(&series))
    {
        let (outcome, value) = line.split_once("\"}")?;
        let value: f64 = value.trim().parse().ok()?;
        if outcome == "refused" {
            counts.refused += value
        } else {
            counts.applied += value
        }
    }
    response.contains(&series).then_some(counts)
}

/// Sends a request to the gate; returns the body of a successful response.
pub(super) fn send_request(
    address: SocketAddr,
    token: &str,
    method: &str,
    path: &str,
    body: &str,
) -> Result<Json, Exit> {
    let unreachable = |error: io::Error| {
        let hint = "is the gateway running, with the admin port set in the config?";
        usage_error(format!(
            "cannot reach the gateway at {address}: {error}\n  hint: {hint}"
        ))
    };
    let response = exchange(address, Some(token), method, path, body).map_err(unreachable)?;
    let unreadable = || usage_error(format!("the service at {address} is not lychgate"));
    let (head, body) = response.split_once("\r\n\r\n").ok_or_else(unreadable)?;
    let status: u16 = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok())
        .ok_or_else(unreadable)?;
    let limits = ReadLimits::of_bytes(body.len());
    let json = Json::parse(body.to_owned().into(), &limits).map_err(|_| unreadable())?;
    if status == 200 {
        return Ok(json);
    }
    let message = json
        .root()
        .get_str("error")
        .unwrap_or_default()
        .into_owned();
    Err(Exit::Code(
        if matches!(status, 403 | 404 | 409) {
            1
        } else {
            2
        },
        message,
    ))
}

fn exchange(
    address: SocketAddr,
    token: Option<&str>,
    method: &str,
    path: &str,
    body: &str,
) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let length = body.len();
    let token = token
        .map(|token| format!("authorization: Bearer {token}\r\n"))
        .unwrap_or_default();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\n{token}content-type: application/json\r\n\
         content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )?;
    let mut response = String::new();
    stream
        .take(MAX_RESPONSE_BYTES)
        .read_to_string(&mut response)?;
    Ok(response)
}
