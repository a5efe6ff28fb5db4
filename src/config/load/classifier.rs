//! Loading of `[policy.NAME.classifier]`.

use std::net::IpAddr;

use http::Uri;

use crate::config::{ClassifierConfig, ClassifierScope, HttpTransport};
use crate::document::Table;

use super::upstream::http;
use super::values::Reader;

/// Reads `classifier`, if present.
pub(super) fn classifier(policy: &Table<'_>, reader: &Reader<'_>) -> Option<ClassifierConfig> {
    let table = policy.table("classifier")?;
    let server = http(&table, reader);
    if let Some(server) = &server
        && is_unencrypted_remote(&server.url)
    {
        let url = server.url.parse::<Uri>().ok();
        let host = url.as_ref().and_then(Uri::host).unwrap_or_default();
        let host = host.escape_debug();
        let message = format!("`{host}` would be contacted without encryption");
        let hint =
            "it receives server content: use `https://`, or run the classifier on this machine";
        table.fault_at_key("url", message, Some(hint));
    }
    let is_known = server.is_some();
    // Without a server, a fault is recorded, so the config is not used.
    let base = ClassifierConfig::new(server.unwrap_or_else(|| HttpTransport::new(String::new())));
    let config = ClassifierConfig {
        timeout: table.duration("timeout_ms", 1..=30_000, base.timeout),
        text_bytes: table.count("text_bytes", 1..=64 << 20, base.text_bytes),
        least_bytes: table.count("least_bytes", 0..=1 << 20, base.least_bytes),
        calls_at_once: table.count("calls_at_once", 1..=1024, base.calls_at_once),
        ask_about: table
            .choice("ask_about", &ClassifierScope::WORDS)
            .unwrap_or(base.ask_about),
        action: table
            .choice("action", &ClassifierConfig::ACTIONS)
            .unwrap_or(base.action),
        passes_on_failure: table
            .choice("on_failure", &ClassifierConfig::ON_FAILURE)
            .unwrap_or(base.passes_on_failure),
        threshold: fraction(&table, "threshold").unwrap_or(base.threshold),
        server: base.server,
    };
    table.finish();
    is_known.then_some(config)
}

/// Reads a number between 0 and 1.
pub(super) fn fraction(table: &Table<'_>, key: &str) -> Option<f64> {
    let written = table.number(key)?;
    let number = written.value.parse::<f64>().ok();
    let number = number.filter(|number| (0.0..=1.0).contains(number));
    if number.is_none() {
        let message = format!("`{key}` must be between 0 and 1");
        table.fault_at(&written.place, message, None);
    }
    number
}

/// Reports whether a URL leads off this machine without TLS.
pub(super) fn is_unencrypted_remote(url: &str) -> bool {
    let Ok(url) = url.parse::<Uri>() else {
        return false;
    };
    let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
    let is_local = host == "localhost"
        || host
            .parse::<IpAddr>()
            .is_ok_and(|address| address.to_canonical().is_loopback());
    url.scheme_str() == Some("http") && !is_local
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_reached_in_the_clear() {
        for here in [
            "http://127.0.0.1:9/score",
            "http://localhost/x",
            "http://[::1]:80/",
            "https://scores.example/",
        ] {
            assert!(!is_unencrypted_remote(here), "{here}");
        }
        for elsewhere in [
            "http://10.0.0.1/",
            "http://scores.example/",
            "http://localhost.example/",
            "http://0.0.0.0:1/",
        ] {
            assert!(is_unencrypted_remote(elsewhere), "{elsewhere}");
        }
    }
}
