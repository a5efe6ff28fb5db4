//! An external classifier of server content: `[policy.NAME.classifier]`.

use std::time::Duration;

use super::HttpTransport;
use crate::rules::Action;

/// An external classifier: where it is, which texts are sent to it, and what is done with its
/// verdict. In the file, the name of each limit includes its unit.
#[derive(Clone, Debug)]
pub struct ClassifierConfig {
    /// The server: `url`, and `bearer`, `headers`, `ca`, `client_cert` as for an upstream.
    pub server: HttpTransport,
    /// Maximum time for a response, of which half may be spent waiting for one of the
    /// `calls_at_once`: `timeout_ms`.
    pub timeout: Duration,
    /// Maximum total length of the texts of one message, in bytes: `text_bytes`. A message with
    /// more is not sent to the classifier, which counts as a failure.
    pub text_bytes: usize,
    /// Maximum number of concurrent requests: `calls_at_once`.
    pub calls_at_once: usize,
    /// Minimum length of a text to be classified, in bytes: `least_bytes`.
    pub least_bytes: usize,
    /// Which texts are classified: `ask_about`.
    pub ask_about: ClassifierScope,
    /// The minimum score, from 0 to 1, at which a text counts as an attack: `threshold`.
    pub threshold: f64,
    /// The action for texts that count as an attack: `action`.
    pub action: Action,
    /// Whether a message passes if the classifier fails: `on_failure`.
    pub passes_on_failure: bool,
}

enum_with_names! {
    /// Which texts are sent to a classifier. Named as in the config file.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ClassifierScope {
        /// All texts that remain after the rules were applied.
        All = "all",
        /// Texts with at least one signal, even if the signals are not sufficient for a finding.
        Signals = "signals",
    }
}

impl ClassifierConfig {
    /// Possible values of `action`: the actions on responses that need no approval.
    pub const ACTIONS: [(&'static str, Action); 5] = [
        ("log", Action::Log),
        ("wrap", Action::Wrap),
        ("quarantine", Action::Quarantine),
        ("withhold", Action::Withhold),
        ("block", Action::Block),
    ];
    /// Values of `on_failure`: whether the message passes.
    pub const ON_FAILURE: [(&'static str, bool); 2] = [("block", false), ("pass", true)];

    /// Returns the config of the classifier at `server`, with defaults for everything else.
    pub fn new(server: HttpTransport) -> Self {
        Self {
            server,
            timeout: Duration::from_millis(500),
            text_bytes: 256 << 10,
            calls_at_once: 8,
            least_bytes: 64,
            ask_about: ClassifierScope::All,
            threshold: 0.9,
            action: Action::Quarantine,
            passes_on_failure: false,
        }
    }
}
