//! How people are notified of calls that wait for approval: `notify_command`, `webhook` and
//! `notify_seconds` of `[approval]`.

use std::time::Duration;

use super::HttpTransport;

/// How people are notified of approval requests: by a command, a webhook, or not at all.
#[derive(Clone)]
pub struct NotifyConfig {
    /// A program and its arguments, which receives the request as JSON on its standard input:
    /// `notify_command`.
    pub command: Vec<String>,
    /// The URL that the same JSON is sent to with POST: `webhook`. It may be a secret.
    pub webhook: Option<HttpTransport>,
    /// Maximum time for one run of the program, and for one attempt to call the webhook:
    /// `notify_seconds`.
    pub timeout: Duration,
}

impl Default for NotifyConfig {
    fn default() -> Self {
        Self {
            command: Vec::new(),
            webhook: None,
            timeout: Duration::from_secs(10),
        }
    }
}

impl std::fmt::Debug for NotifyConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NotifyConfig")
            .field("command", &self.command)
            .finish_non_exhaustive()
    }
}

impl PartialEq for NotifyConfig {
    fn eq(&self, other: &Self) -> bool {
        let webhook = |config: &Self| {
            config
                .webhook
                .clone()
                .map(|webhook| (webhook.url, webhook.bearer, webhook.headers, webhook.ca))
        };
        (&self.command, self.timeout, webhook(self))
            == (&other.command, other.timeout, webhook(other))
    }
}
