//! Checks of the listener and the admin port: who holds them, who can reach them, and with which
//! certificates.

use std::collections::HashSet;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::CheckResult;
use super::dates::validity;
use crate::cli::liveness;
use crate::config::{Config, Transport};
use crate::{listen, trust};

/// Maximum number of processes and open files that are examined to find out who holds a port.
const MAX_OPEN_FILES: usize = 20_000;
/// A certificate that expires within this number of days should be renewed.
const EXPIRY_WARNING_DAYS: u64 = 14;

/// Checks whether the ports are free or the gate's own, and who can reach them.
pub(super) fn ports(config: &Config) -> CheckResult {
    let mut result = CheckResult::default();
    let is_running = config.admin.address.map(liveness::is_gate);
    port(config.listen.address, "[listen]", is_running, &mut result);
    match config.admin.address {
        Some(admin) => port(admin, "[admin]", is_running, &mut result),
        None => result.add_note("no admin port: no metrics, no `lychgate approve`, no `lychgate prove` against the running gateway",
            "[admin] with `address = \"127.0.0.1:8801\"`",
        ),
    }
    let listen = config.listen.address;
    if !listen.ip().to_canonical().is_loopback() {
        if config.listen.tls.is_none() {
            let what = format!(
                "{listen} is reachable from other machines without TLS: agent tokens cross the network in clear text"
            );
            result.add_warning(
                what,
                "`tls = { cert = …, key = … }` under `[listen]`, or put a TLS proxy in front",
            );
        }
        if config.is_open() {
            let what = format!("{listen} is reachable from other machines without authentication");
            result.add_error(
                what,
                "lychgate agent add NAME, with `[agents]` in the config",
            );
        }
    } else if config.is_open() {
        let what = "any program on this machine may call: agents are not authenticated";
        result.add_note(
            what,
            "lychgate agent add NAME, with `[agents]` in the config",
        );
    }
    if let Some(admin) = config
        .admin
        .address
        .filter(|admin| !admin.ip().to_canonical().is_loopback())
    {
        let what = format!(
            "the admin port {admin} is reachable from other machines, and its metrics require no authentication"
        );
        result.add_warning(
            what,
            "`address = \"127.0.0.1:8801\"` under `[admin]`, or use a separate network",
        );
    }
    result
}

/// `is_running` is whether a gate responds at the admin port, if there is one.
fn port(address: SocketAddr, section: &str, is_running: Option<bool>, result: &mut CheckResult) {
    match TcpListener::bind(address) {
        Ok(_) => result.pass(format!(
            "{address} ({section}) is free: no gateway is running there"
        )),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse && is_running == Some(true) => {
            result.pass(format!("{address} ({section}): a gateway is running there"));
        }
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
            let holder = find_holder(address.port());
            if is_running.is_none()
                && let Some((pid, _)) = holder.as_ref().filter(|(_, name)| is_own(name))
            {
                return result.pass(format!(
                    "{address} ({section}): a gateway is running there (process {pid})"
                ));
            }
            let who = holder.as_ref().map_or_else(
                || "another program".to_owned(),
                |(pid, name)| format!("`{name}` (process {pid})"),
            );
            let stop = holder.map_or_else(
                || format!("ss -ltnp 'sport = :{}' shows the process", address.port()),
                |(pid, _)| format!("kill {pid}"),
            );
            result.add_error(
                format!("{address} ({section}) is in use by {who}"),
                format!("{stop}; or set another `address` under `{section}`"),
            );
        }
        Err(error) => {
            result.add_error(
                format!("cannot listen on {address} ({section}): {error}"),
                format!("set another `address` under `{section}`"),
            );
        }
    }
}

/// Reports whether a process has the name of this program.
fn is_own(name: &str) -> bool {
    let own = std::env::current_exe().ok();
    own.as_ref()
        .and_then(|path| path.file_name()?.to_str())
        .is_some_and(|own| own == name)
}

/// Returns the process that listens on a port, and its name, as far as this user may see them
/// (Linux).
fn find_holder(port: u16) -> Option<(u32, String)> {
    let mut inodes: HashSet<String> = HashSet::new();
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        let text = fs::read_to_string(table).unwrap_or_default();
        for line in text.lines().skip(1) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let (Some(local), Some(&"0A"), Some(inode)) =
                (words.get(1), words.get(3), words.get(9))
            else {
                continue;
            };
            if local
                .rsplit(':')
                .next()
                .and_then(|hex| u16::from_str_radix(hex, 16).ok())
                == Some(port)
            {
                inodes.insert(format!("socket:[{inode}]"));
            }
        }
    }
    let processes = fs::read_dir("/proc").ok()?.flatten().filter_map(|entry| {
        Some((
            entry.file_name().to_str()?.parse::<u32>().ok()?,
            entry.path(),
        ))
    });
    let mut budget = MAX_OPEN_FILES;
    for (pid, folder) in processes {
        for file in fs::read_dir(folder.join("fd"))
            .into_iter()
            .flatten()
            .flatten()
        {
            budget = budget.checked_sub(1)?;
            if fs::read_link(file.path()).is_ok_and(|target| {
                target
                    .to_str()
                    .is_some_and(|target| inodes.contains(target))
            }) {
                let name = fs::read_to_string(folder.join("comm"))
                    .unwrap_or_default()
                    .trim()
                    .to_owned();
                return Some((pid, name));
            }
        }
    }
    None
}

/// Checks whether the certificates of the config can be used, and for how long.
pub(super) fn certificates(config: &Config) -> CheckResult {
    let mut result = CheckResult::default();
    if let Some(tls) = &config.listen.tls {
        if let Err(error) = listen::tls::acceptor(tls) {
            result.add_error(
                format!("invalid listener certificate: {error}"),
                "see `tls` under `[listen]`",
            );
        }
        check_validity("the listener's certificate", &tls.cert, &mut result);
        if let Some(ca) = &tls.client_ca {
            check_validity("the CA of agent certificates", ca, &mut result);
        }
    }
    for (name, upstream) in &config.upstreams {
        let (Transport::Http(http) | Transport::Sse(http)) = &upstream.transport else {
            continue;
        };
        if let Some(ca) = &http.ca {
            check_validity(&format!("the CA for `{name}`"), ca, &mut result);
        }
        if let Some((cert, _)) = &http.client_cert {
            check_validity(
                &format!("the client's certificate for `{name}`"),
                cert,
                &mut result,
            );
        }
    }
    if result.findings.is_empty() && result.passed.is_empty() {
        result.pass("the config names no certificates");
    }
    result
}

fn check_validity(what: &str, file: &Path, result: &mut CheckResult) {
    match trust::certificates(file) {
        Err(error) => result.add_error(
            format!("{what}: {error}"),
            format!("put a PEM file at '{}'", file.display()),
        ),
        Ok(all) => {
            let spans = || all.iter().filter_map(|certificate| validity(certificate));
            let span = spans()
                .map(|(from, _)| from)
                .max()
                .zip(spans().map(|(_, until)| until).min());
            let fix = format!(
                "renew it and store it at '{}': openssl x509 -noout -enddate -in '{}'",
                file.display(),
                file.display()
            );
            report_validity(what, span, &fix, result);
        }
    }
}

/// Reports for how long a certificate is valid.
pub(super) fn report_validity(
    what: &str,
    span: Option<(SystemTime, SystemTime)>,
    fix: &str,
    result: &mut CheckResult,
) {
    let Some((from, until)) = span else { return };
    let (now, days) = (SystemTime::now(), |span: Duration| span.as_secs() / 86_400);
    if let Some(wait) = from.duration_since(now).ok().filter(|wait| !wait.is_zero()) {
        let fix = format!("check this machine's clock (`date -u`); if it is correct, {fix}");
        return result.add_error(
            format!(
                "{what} is not valid before {} days from now",
                days(wait) + 1
            ),
            fix,
        );
    }
    match until.duration_since(now) {
        Err(past) => result.add_error(
            format!("{what} ended {} days ago", days(past.duration())),
            fix,
        ),
        Ok(left) if days(left) < EXPIRY_WARNING_DAYS => {
            result.add_warning(format!("{what} ends in {} days", days(left)), fix)
        }
        Ok(left) => result.pass(format!("{what} is valid for {} more days", days(left))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::doctor::Level;

    #[test]
    fn a_certificate_is_valid_neither_before_nor_after_its_span() {
        let now = SystemTime::now();
        let day = Duration::from_secs(86_400);
        let result = |from, until| {
            let mut result = CheckResult::default();
            report_validity("it", Some((from, until)), "renew it", &mut result);
            result
                .findings
                .first()
                .map(|finding| (finding.level, finding.message.clone()))
        };
        assert_eq!(result(now - day, now + day * 300), None);
        let (level, what) = result(now + day * 800, now + day * 900).unwrap();
        assert!(
            level == Level::Error && what.starts_with("it is not valid before 8"),
            "{what}"
        );
        assert_contains!(result(now - day * 9, now - day * 2).unwrap().1, "ended");
        assert_eq!(
            result(now - day * 9, now + day * 2).unwrap().0,
            Level::Warning
        );
    }
}
