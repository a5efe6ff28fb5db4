//! Checks of the limits and the environment that the system provides.

use rustix::process::{Resource, getrlimit};

use super::CheckResult;
use crate::config::Config;

/// Number of file descriptors that a gate needs in addition to connections.
const OTHER_FILES: u64 = 64;

/// Compares the limits of the system with those of the config.
pub(super) fn limits(config: &Config) -> CheckResult {
    let mut result = CheckResult::default();
    // Each agent connection may require one to a server.
    let required = (config.limits.connections as u64)
        .saturating_mul(2)
        .saturating_add(OTHER_FILES);
    let limit = getrlimit(Resource::Nofile);
    match limit.current {
        Some(current) if current < required => {
            let possible = current.saturating_sub(OTHER_FILES) / 2;
            let fix = if limit.maximum.is_none_or(|most| most >= required) {
                format!("ulimit -n {required}")
            } else {
                format!("LimitNOFILE={required} in the service")
            };
            result.add_warning(
                format!(
                    "the open file limit is {current}; {} connections may need {required}",
                    config.limits.connections
                ),
                format!("{fix}; or `connections = {possible}` under `[limits]`"),
            );
        }
        current => result.pass(format!(
            "open files: {} allowed",
            current.map_or("any number".to_owned(), |n| n.to_string())
        )),
    }
    result
}

/// Checks the environment variables.
pub(super) fn variables() -> CheckResult {
    let mut result = CheckResult::default();
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let proxies: Vec<&str> = [
        "HTTPS_PROXY",
        "https_proxy",
        "HTTP_PROXY",
        "http_proxy",
        "ALL_PROXY",
    ]
    .into_iter()
    .filter(|name| is_set(name))
    .collect();
    if !proxies.is_empty() {
        let what = format!(
            "{} is set, but the gateway does not use proxies",
            proxies.join(", ")
        );
        result.add_note(
            what,
            format!(
                "unset {}, or allow the gateway through the firewall",
                proxies.join(" ")
            ),
        );
    }
    if crate::seal::state_folder().is_none() {
        let what =
            "neither `XDG_STATE_HOME` nor `HOME` is set: logins and quarantine cannot be stored";
        result.add_warning(
            what,
            "export XDG_STATE_HOME=/var/lib, or name `vault` under `[oauth]`",
        );
    } else {
        result.pass("the state folder is set");
    }
    result
}
