//! `notify_command`, `webhook` and `notify_seconds` of `[approval]`. They are read separately from
//! the rest of that section: the subcommands that answer approval requests do not use the secrets
//! of a webhook, and need not be able to read them.

use std::time::Duration;

use http::Uri;

use crate::config::{HttpTransport, NotifyConfig};
use crate::document::Table;

use super::audit::command;
use super::classifier::is_unencrypted_remote;
use super::upstream::{check_bearer, fault_without_tls, headers};
use super::values::Reader;

/// The keys that are read in this module.
pub(super) const KEYS: [&str; 3] = ["notify_command", "webhook", "notify_seconds"];

/// Reads how people are notified of approval requests.
pub(super) fn notify(root: &Table<'_>, reader: &Reader<'_>) -> NotifyConfig {
    let base = NotifyConfig::default();
    let Some(table) = root.table("approval") else {
        return base;
    };
    let seconds = table.integer("notify_seconds", 1..=60);
    let config = NotifyConfig {
        command: command(&table, reader, "notify_command"),
        webhook: webhook(&table, reader),
        timeout: seconds.map_or(base.timeout, Duration::from_secs),
    };
    if seconds.is_some() && config.command.is_empty() && !table.has("webhook") {
        let hint = "add `notify_command` or `webhook`, or remove it";
        let message = "`notify_seconds` has no effect: nobody is notified";
        table.fault_at_key("notify_seconds", message, Some(hint));
    }
    config
}

fn webhook(approval: &Table<'_>, reader: &Reader<'_>) -> Option<HttpTransport> {
    let table = approval.table("webhook")?;
    let url = if table.is_table("url") {
        reader.secret(&table, "url")
    } else {
        table
            .required("url", "the URL that receives requests, such as `https://chat.example.org/hooks/approvals`")
            .map(|url| url.value)
    };
    if let Some(url) = &url {
        check(&table, url);
    }
    let bearer = reader.secret(&table, "bearer");
    check_bearer(&table, bearer.as_deref());
    let headers = headers(&table, reader);
    let ca = reader.file(&table, "ca");
    table.finish();
    Some(HttpTransport {
        bearer,
        login: None,
        headers,
        ca,
        ..HttpTransport::new(url?)
    })
}

/// Checks the URL of a webhook. No message contains the URL itself, since it may be a secret.
fn check(table: &Table<'_>, url: &str) {
    let parsed = url.parse::<Uri>().ok();
    let host = parsed.as_ref().and_then(Uri::host).unwrap_or_default();
    let scheme = parsed.as_ref().and_then(Uri::scheme_str);
    if !matches!(scheme, Some("http" | "https")) || host.is_empty() || url.contains(['#', '@']) {
        let hint = "use `https://`, a host and a path, without name and password";
        table.fault_at_key("url", "`url` of `webhook` is not a valid URL", Some(hint));
    } else if is_unencrypted_remote(url) {
        let hint = "requests contain agents, tools and arguments: use `https://`, or an address of this machine";
        let message = "the webhook would be called without encryption";
        table.fault_at_key("url", message, Some(hint));
    } else if scheme == Some("http") && table.has("ca") {
        fault_without_tls(table, "ca");
    }
}
