//! Approval requests: `[approval]`, and the settings of a policy.

use std::path::PathBuf;
use std::time::Duration;

use super::{path_from_env, user_state_home};

/// How approval is requested for calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalConfig {
    /// Time after which requests without an answer are denied: `deadline_seconds`.
    pub deadline: Duration,
    /// How long a call waits if its agent cannot ask its user itself: `wait_seconds`.
    pub wait: Duration,
    /// How long an approval for a session lasts for agents without sessions: `session_seconds`.
    pub session: Duration,
    /// The file in which permanent approvals are stored: `file`.
    pub file: Option<PathBuf>,
    /// The file for the token with which `lychgate approve` authenticates: `token_file`.
    pub token_file: Option<PathBuf>,
}

impl Default for ApprovalConfig {
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(120),
            wait: Duration::from_secs(45),
            session: Duration::from_secs(3600),
            file: None,
            token_file: None,
        }
    }
}

impl ApprovalConfig {
    /// Returns the file for the token with which `lychgate approve` authenticates to the admin port
    /// at `port`: the configured one, or one in the runtime or state folder of the gate's user, if
    /// there is one.
    pub fn token_file(&self, port: u16) -> Option<PathBuf> {
        self.token_file.clone().or_else(|| {
            let folder = path_from_env("XDG_RUNTIME_DIR").or_else(user_state_home)?;
            let name = format!("approve-{port}.token");
            Some(folder.join("lychgate").join(name))
        })
    }
}

enum_with_names! {
    /// The scope of an approval, narrowest first. Named as in the config file, in approval requests
    /// and in the answers to them.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Scope {
        /// This call only.
        Once = "once",
        /// Calls of the same tool for which the same rules require approval, for the rest of the
        /// session.
        Session = "session",
        /// The same tool with the same arguments, until the gate stops.
        Call = "call",
        /// The same tool with the same arguments, permanently.
        Always = "always",
    }
}

enum_with_names! {
    /// Which calls of a tool require approval, independent of rules. Named as in the config file.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum AskTool {
        /// The first call of each session.
        First = "first",
        /// Every call.
        Always = "always",
        /// No call just because it is a write; rules may still require approval.
        Never = "never",
    }
}
