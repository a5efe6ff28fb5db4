//! Checks whether a gate is running.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use super::admin_client::reachable_address;
use crate::config;

/// How long a running gate may take to respond.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum length of a response that is read, in bytes.
const MAX_RESPONSE_BYTES: u64 = 4096;

/// Returns the address at which agents reach the gate of a config, and whether it is running:
/// whether its admin port responds or, without an admin port, whether its address accepts
/// connections. `None` if the config cannot be read.
pub(super) fn gate_status(path: &Path) -> Option<(SocketAddr, bool)> {
    let (listen, admin, _) = config::load_listen(path).ok()?;
    let is_running = match admin.address {
        Some(admin) => is_gate(admin),
        None => {
            TcpStream::connect_timeout(&reachable_address(listen.address), RESPONSE_TIMEOUT).is_ok()
        }
    };
    Some((listen.address, is_running))
}

/// Reports whether a gate responds at an admin port.
pub(super) fn is_gate(address: SocketAddr) -> bool {
    let address = reachable_address(address);
    let request = || -> io::Result<String> {
        let mut stream = TcpStream::connect_timeout(&address, RESPONSE_TIMEOUT)?;
        stream.set_read_timeout(Some(RESPONSE_TIMEOUT))?;
        stream.set_write_timeout(Some(RESPONSE_TIMEOUT))?;
        stream.write_all(
            format!("GET /healthz HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n")
                .as_bytes(),
        )?;
        let mut response = String::new();
        stream
            .take(MAX_RESPONSE_BYTES)
            .read_to_string(&mut response)?;
        Ok(response)
    };
    request().is_ok_and(|answer| answer.starts_with("HTTP/1.1 200") && answer.ends_with("alive\n"))
}
