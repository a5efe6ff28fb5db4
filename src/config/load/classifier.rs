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
        .filter(|server| leaves_in_the_clear(&server.url))
    {
        let host = server
            .url
            .parse::<Uri>()
            .ok()
            .and_then(|url| url.host().map(str::to_owned))
            .unwrap_or_default();
        let hint =
            "it receives server content: use `https://`, or run the classifier on this machine";
        table.fault_of(
            "url",
            format!(
                "`{}` would be contacted without encryption",
                host.escape_debug()
            ),
            Some(hint),
        );
    }
    let mut made = server.map(ClassifierConfig::new);
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
    let made_of = made.as_mut()?;
    made_of.timeout = timeout.unwrap_or(made_of.timeout);
    made_of.text_bytes = text_bytes.unwrap_or(made_of.text_bytes);
    made_of.least_bytes = least_bytes.unwrap_or(made_of.least_bytes);
    made_of.calls_at_once = calls_at_once.unwrap_or(made_of.calls_at_once);
    made_of.ask_about = ask_about.unwrap_or(made_of.ask_about);
    made_of.action = action.unwrap_or(made_of.action);
    made_of.passes_on_failure = on_failure.unwrap_or(made_of.passes_on_failure);
    made_of.threshold = threshold.unwrap_or(made_of.threshold);
    made
}

/// Reports whether a URL leads off this machine without TLS.
pub(super) fn leaves_in_the_clear(url: &str) -> bool {
    let Ok(url) = url.parse::<Uri>() else {
        return false;
    };
    let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
    let here = host == "localhost"
        || host
            .parse::<IpAddr>()
            .is_ok_and(|address| address.to_canonical().is_loopback());
    url.scheme_str() == Some("http") && !here
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
            assert!(!leaves_in_the_clear(here), "{here}");
        }
        for elsewhere in [
            "http://10.0.0.1/",
            "http://scores.example/",
            "http://localhost.example/",
            "http://0.0.0.0:1/",
        ] {
            assert!(leaves_in_the_clear(elsewhere), "{elsewhere}");
        }
    }
}
