//! The address of the console, and whether a request is meant for it: host names that were made to
//! resolve here, and pages of other sites, are rejected before anything else is examined.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use http::HeaderMap;
use http::header::{HOST, ORIGIN};
use serde::Serialize;

use crate::config::{Admin, Listen};
use crate::listen::admit::{Host, single_header};

pub(super) struct ConsoleOrigin {
    /// Whether the admin port is on loopback, and may be used there without TLS.
    loopback: bool,
    /// The URL at which browsers reach it otherwise.
    url: Option<String>,
}

/// Why a request is rejected.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct WrongOrigin {
    pub(super) reason: &'static str,
    pub(super) hint: &'static str,
}

const FOREIGN_HOST: WrongOrigin = WrongOrigin {
    reason: "host",
    hint: "the console does not serve this host name: use its own address, or set `console_url` under `[admin]`",
};
const FOREIGN_PAGE: WrongOrigin = WrongOrigin {
    reason: "origin",
    hint: "requests from other origins are not allowed",
};

/// Data for the page about itself.
#[derive(Serialize)]
pub(super) struct SiteInfo {
    version: &'static str,
    /// The URL at which agents reach the gate.
    agents: String,
}

impl ConsoleOrigin {
    pub(super) fn new(config: &Admin) -> Self {
        let loopback = config
            .address
            .is_some_and(|address| address.ip().is_loopback());
        Self {
            loopback,
            url: config.console_url.clone(),
        }
    }

    pub(super) fn site_info(listen: &Listen, bound: SocketAddr) -> SiteInfo {
        let scheme = if listen.tls.is_some() {
            "https"
        } else {
            "http"
        };
        let ip = if bound.ip().is_unspecified() {
            IpAddr::from(Ipv4Addr::LOCALHOST)
        } else {
            bound.ip()
        };
        let agents = listen
            .public_url
            .clone()
            .unwrap_or_else(|| format!("{scheme}://{}", SocketAddr::new(ip, bound.port())));
        SiteInfo {
            version: env!("CARGO_PKG_VERSION"),
            agents,
        }
    }

    /// Returns the URL in the config.
    pub(super) fn url(&self) -> Option<&str> {
        self.url.as_deref()
    }

    fn is_at_url(&self, host: &str) -> bool {
        let configured_host = self
            .url
            .as_deref()
            .and_then(|url| url.strip_prefix("https://"));
        configured_host.is_some_and(|named| {
            named.eq_ignore_ascii_case(host) || named.strip_suffix(":443") == Some(host)
        })
    }

    /// Reports whether the browser uses TLS.
    pub(super) fn is_secure(&self, headers: &HeaderMap) -> bool {
        single_header(headers, &HOST)
            .ok()
            .flatten()
            .is_some_and(|host| self.is_at_url(host))
    }

    /// Checks `Host`, `Origin` and `Sec-Fetch-Site`. The page itself may be opened from anywhere;
    /// its data may not.
    ///
    /// # Errors
    /// The request is not meant for the console, or a page of another site sent it.
    pub(super) fn check(&self, headers: &HeaderMap, is_data: bool) -> Result<(), WrongOrigin> {
        let Ok(Some(host)) = single_header(headers, &HOST) else {
            return Err(FOREIGN_HOST);
        };
        let scheme = if self.is_at_url(host) {
            "https"
        } else if self.loopback && Host::parse(host).is_some_and(|host| is_loopback(&host)) {
            "http"
        } else {
            return Err(FOREIGN_HOST);
        };
        match single_header(headers, &ORIGIN) {
            Ok(None) => {}
            Ok(Some(origin))
                if origin
                    .split_once("://")
                    .is_some_and(|(by, site)| by == scheme && site == host) => {}
            _ => return Err(FOREIGN_PAGE),
        }
        // Programs do not send it; browsers do, and pages cannot change it (Fetch Metadata Request
        // Headers).
        let site = headers.get("sec-fetch-site").map(|site| site.as_bytes());
        let is_own = matches!(site, None | Some(b"same-origin"));
        if is_own || !is_data {
            Ok(())
        } else {
            Err(FOREIGN_PAGE)
        }
    }
}

fn is_loopback(host: &Host<'_>) -> bool {
    host.name.eq_ignore_ascii_case("localhost")
        || host.address().is_some_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(site: &ConsoleOrigin, pairs: &[(&'static str, &str)]) -> Result<(), &'static str> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        site.check(&headers, true).map_err(|why| why.reason)
    }

    #[test]
    fn only_its_own_page_asks() {
        let loopback = ConsoleOrigin::new(&Admin {
            address: Some(([127, 0, 0, 1], 8801).into()),
            ..Admin::default()
        });
        let url = Some("https://gate.example:443".to_owned());
        let open = Some(([0, 0, 0, 0], 8801).into());
        let proxied = ConsoleOrigin::new(&Admin {
            address: open,
            console: Some(true),
            console_url: url,
            ..Admin::default()
        });
        for (headers, expected) in [
            ("host=127.0.0.1:8801", "ok host"),
            (
                "host=localhost:9000 origin=http://localhost:9000",
                "ok host",
            ),
            (
                "host=localhost:9000 origin=https://localhost:9000",
                "origin host",
            ),
            (
                "host=localhost:9000 origin=http://localhost:3000",
                "origin host",
            ),
            ("host=localhost:9000 origin=null", "origin host"),
            ("host=[::1]:9000 sec-fetch-site=same-site", "origin host"),
            ("host=[::1]:9000 sec-fetch-site=same-origin", "ok host"),
            ("host=localhost.evil.example:8801", "host host"),
            ("host=10.0.0.1:8801", "host host"),
            ("host=127.0.0.1:1@evil.example", "host host"),
            ("", "host host"),
            ("host=localhost host=localhost", "host host"),
            ("host=gate.example origin=https://gate.example", "host ok"),
            (
                "host=gate.example origin=http://gate.example",
                "host origin",
            ),
        ] {
            let pairs: Vec<(&str, &str)> = headers
                .split_whitespace()
                .map(|header| header.split_once('=').unwrap())
                .collect();
            let [at_loopback, at_proxy] =
                [&loopback, &proxied].map(|origin| fits(origin, &pairs).err().unwrap_or("ok"));
            assert_eq!(format!("{at_loopback} {at_proxy}"), expected, "{headers}");
        }
    }
}
