//! Approval requests: `[approval]`, and the settings of a policy.

use std::path::PathBuf;
use std::time::Duration;

/// How people are asked about calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalConfig {
    /// Requests that are not answered in time are denied: `deadline_seconds`.
    pub deadline: Duration,
    /// How long a call waits whose agent cannot ask its user itself: `wait_seconds`.
    pub wait: Duration,
    /// How long a yes for a session lasts where agents have no sessions: `session_seconds`.
    pub session: Duration,
    /// Where a yes for good is kept: `file`.
    pub file: Option<PathBuf>,
    /// Where the token is written that `lychgate approve` shows: `token_file`.
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
    /// The file with the token that `lychgate approve` shows to the admin port at `port`: the one that is named, or one
    /// in the runtime folder of the gate's user, if there is one.
    pub fn token_file(&self, port: u16) -> Option<PathBuf> {
        let set = |name: &str| {
            std::env::var_os(name)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
        };
        let folder = || {
            set("XDG_RUNTIME_DIR")
                .or_else(|| set("XDG_STATE_HOME"))
                .or_else(|| Some(set("HOME")?.join(".local/state")))
        };
        self.token_file.clone().or_else(|| {
            Some(
                folder()?
                    .join("lychgate")
                    .join(format!("approve-{port}.token")),
            )
        })
    }
}

/// What a yes is for, the narrowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// This call, now.
    Once,
    /// Calls of the same tool that the same rules ask about, for the rest of the session.
    Session,
    /// The same tool with the same arguments, until the gate ends.
    Call,
    /// The same, for good.
    Always,
}

impl Scope {
    /// Words of the config file, of questions and of answers.
    pub const WORDS: [(&'static str, Self); 4] = [
        ("once", Self::Once),
        ("session", Self::Session),
        ("call", Self::Call),
        ("always", Self::Always),
    ];

    /// The word for it.
    pub fn name(self) -> &'static str {
        Self::WORDS
            .iter()
            .find(|(_, value)| *value == self)
            .map_or("", |(word, _)| word)
    }

    /// The scope of this word.
    pub fn named(word: &str) -> Option<Self> {
        Self::WORDS
            .iter()
            .find(|(name, _)| *name == word)
            .map(|(_, value)| *value)
    }
}

/// Which calls of a tool require approval, independent of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskTool {
    /// The first of each session.
    First,
    /// Each.
    Always,
    /// None for its being a write; rules may still ask.
    Never,
}

impl AskTool {
    /// Words of the config file.
    pub const WORDS: [(&'static str, Self); 3] = [
        ("first", Self::First),
        ("always", Self::Always),
        ("never", Self::Never),
    ];
}
