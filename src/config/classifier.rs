//! An external classifier of server content: `[policy.NAME.classifier]`.

use std::time::Duration;

use super::HttpTransport;
use crate::rules::Action;

/// Whom to ask, about what, and what to do about the answer. In the file each bound has its unit in its name.
#[derive(Clone, Debug)]
pub struct ClassifierConfig {
    /// Where it is: `url`, and `bearer`, `headers`, `ca`, `client_cert` as of an upstream.
    pub server: HttpTransport,
    /// Time for an answer, of which half may be spent on waiting for a place among `calls_at_once`: `timeout_ms`.
    pub timeout: Duration,
    /// Texts of one message, all together, in bytes: `text_bytes`. A message with more is not asked about, which is a failure.
    pub text_bytes: usize,
    /// Requests at once: `calls_at_once`.
    pub calls_at_once: usize,
    /// Shorter texts are not asked about: `least_bytes`.
    pub least_bytes: usize,
    /// Which texts it is asked about: `ask_about`.
    pub ask_about: ClassifierScope,
    /// The score from which on a text counts as an attack, from 0 to 1: `threshold`.
    pub threshold: f64,
    /// What is done about one then: `action`.
    pub action: Action,
    /// Whether a message passes that it could not be asked about: `on_failure`.
    pub passes_on_failure: bool,
}

/// Which texts a classifier is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassifierScope {
    /// All that rules have left.
    All,
    /// Texts with at least one signal, even if the signals are not sufficient for a finding.
    Signals,
}

impl ClassifierScope {
    /// Words of the config file.
    pub const WORDS: [(&'static str, Self); 2] = [("all", Self::All), ("signals", Self::Signals)];
}

impl ClassifierConfig {
    /// What `action` may be: what an answer may become without anybody's yes.
    pub const ACTIONS: [(&'static str, Action); 5] = [
        ("log", Action::Log),
        ("wrap", Action::Wrap),
        ("quarantine", Action::Quarantine),
        ("withhold", Action::Withhold),
        ("block", Action::Block),
    ];
    /// Words of `on_failure`: whether the message passes.
    pub const ON_FAILURE: [(&'static str, bool); 2] = [("block", false), ("pass", true)];

    /// The classifier at `server`, all else at its default.
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
