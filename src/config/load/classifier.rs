//! Loading of `[policy.NAME.classifier]`.

use std::net::IpAddr;
use std::time::Duration;

use http::Uri;

use crate::config::{ClassifierConfig, ClassifierScope};
use crate::document::Table;

use super::upstream::http;
use super::values::Reader;

/// Reads `classifier`, if present.
pub(super) fn classifier(policy: &Table<'_>, reader: &Reader<'_>) -> Option<ClassifierConfig> {
    let table = policy.table("classifier")?;
    let server = http(&table, reader);
    if let Some(server) = server
        .as_ref()
        .filter(|server| is_unencrypted_remote(&server.url))
    {
        let host = server
            .url
            .parse::<Uri>()
            .ok()
            .and_then(|url| url.host().map(str::to_owned))
            .unwrap_or_default();
        let hint =
            "it receives server content: use `https://`, or run the classifier on this machine";
        table.fault_at_key(
            "url",
            format!(
                "`{}` would be contacted without encryption",
                host.escape_debug()
            ),
            Some(hint),
        );
    }
    let mut config = server.map(ClassifierConfig::new);
    let bytes = |key: &str, range| {
        table
            .integer(key, range)
            .map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX))
    };
    let timeout = table
        .integer("timeout_ms", 1..=30_000)
        .map(Duration::from_millis);
    let text_bytes = bytes("text_bytes", 1..=64 << 20);
    let least_bytes = bytes("least_bytes", 0..=1 << 20);
    let calls_at_once = bytes("calls_at_once", 1..=1024);
    let ask_about = table.choice("ask_about", &ClassifierScope::WORDS);
    let action = table.choice("action", &ClassifierConfig::ACTIONS);
    let on_failure = table.choice("on_failure", &ClassifierConfig::ON_FAILURE);
    let threshold = table.number("threshold").and_then(|written| {
        let number = written
            .value
            .parse::<f64>()
            .ok()
            .filter(|number| (0.0..=1.0).contains(number));
        if number.is_none() {
            table.fault_at(&written.place, "`threshold` must be between 0 and 1", None);
        }
        number
    });
    table.finish();
    let settings = config.as_mut()?;
    settings.timeout = timeout.unwrap_or(settings.timeout);
    settings.text_bytes = text_bytes.unwrap_or(settings.text_bytes);
    settings.least_bytes = least_bytes.unwrap_or(settings.least_bytes);
    settings.calls_at_once = calls_at_once.unwrap_or(settings.calls_at_once);
    settings.ask_about = ask_about.unwrap_or(settings.ask_about);
    settings.action = action.unwrap_or(settings.action);
    settings.passes_on_failure = on_failure.unwrap_or(settings.passes_on_failure);
    settings.threshold = threshold.unwrap_or(settings.threshold);
    config
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
