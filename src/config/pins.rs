//! Where definitions are pinned, and how changes are handled.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::message::hex;

/// Where definitions are pinned: `[pins]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinsConfig {
    /// The lock file; without one, pins last as long as the process: `file`.
    pub file: Option<PathBuf>,
    /// Whether a lock file in the state folder is used where none is named: `persistent`.
    pub persistent: bool,
}

impl Default for PinsConfig {
    fn default() -> Self {
        Self {
            file: None,
            persistent: true,
        }
    }
}

impl PinsConfig {
    /// The lock file of `lychgate wrap` where the config names none: one in the state folder of the user who runs it, if
    /// there is one.
    pub fn of_user() -> Option<PathBuf> {
        let set = |name: &str| {
            std::env::var_os(name)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
        };
        let folder = set("XDG_STATE_HOME").or_else(|| Some(set("HOME")?.join(".local/state")))?;
        Some(folder.join("lychgate").join("lychgate.lock"))
    }

    /// With a lock file in the `state` folder where none is named and pins are persistent. Each config has its own file: two
    /// gates may give the same name to different servers.
    #[must_use]
    pub fn of_config(self, state: Option<PathBuf>, config: &Path) -> Self {
        let Some(state) = state.filter(|_| self.file.is_none() && self.persistent) else {
            return self;
        };
        // Links are not followed: Kubernetes replaces what they lead to with each change.
        let path = std::path::absolute(config).unwrap_or_else(|_| config.to_owned());
        let digest = hex(Sha256::digest(path.as_os_str().as_encoded_bytes())
            .get(..4)
            .unwrap_or_default());
        Self {
            file: Some(state.join(format!("lychgate-{digest}.lock"))),
            ..self
        }
    }

    /// Whether this is what `old` was made of.
    pub fn is_as(&self, old: &Self) -> bool {
        Self {
            file: self
                .file
                .clone()
                .or_else(|| old.file.clone().filter(|_| self.persistent)),
            ..self.clone()
        } == *old
    }
}

/// How a definition differs from the one that is pinned. The gravest last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ChangeClass {
    /// The server no longer lists it.
    Gone,
    /// Case, white space, punctuation, a title.
    Cosmetic,
    /// New parameters, or looser ones.
    WiderInput,
    /// Seen for the first time, on a server whose list is known.
    New,
    /// Anything else: other words, tighter parameters.
    Other,
    /// It may do more than before: by its hints, or by verbs that modify something.
    CapabilityGrown,
    /// Instructions to the reader, or text in which an inbound rule matches.
    NewImperativeText,
    /// A parameter that asks for keys, tokens, the environment, the conversation, or anything at all beside.
    NewSecretLikeParameter,
}

impl ChangeClass {
    /// The words of the config file, the lock file, the audit log and metrics.
    pub const WORDS: [(&'static str, Self); 8] = [
        ("gone", Self::Gone),
        ("cosmetic", Self::Cosmetic),
        ("wider-input", Self::WiderInput),
        ("new", Self::New),
        ("other", Self::Other),
        ("capability-grown", Self::CapabilityGrown),
        ("new-imperative-text", Self::NewImperativeText),
        ("new-secret-like-parameter", Self::NewSecretLikeParameter),
    ];

    /// The word for it.
    pub fn name(self) -> &'static str {
        Self::WORDS
            .iter()
            .find(|(_, value)| *value == self)
            .map_or("", |(word, _)| word)
    }

    /// The class of this word.
    pub fn named(word: &str) -> Option<Self> {
        Self::WORDS
            .iter()
            .find(|(name, _)| *name == word)
            .map(|(_, value)| *value)
    }
}

/// What is done about a definition that has changed. The strictest last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ChangeAction {
    /// The new one is pinned and passes.
    Pass,
    /// The old one stays in the list; the new one waits for approval.
    Hold,
    /// The same, and until then a person is asked about each call.
    Ask,
    /// Neither is listed, and calls are refused, until the new one is approved.
    Refuse,
}

impl ChangeAction {
    /// Words of the config file, the audit log and metrics.
    pub const WORDS: [(&'static str, Self); 4] = [
        ("pass", Self::Pass),
        ("hold", Self::Hold),
        ("ask", Self::Ask),
        ("refuse", Self::Refuse),
    ];

    /// The word for it.
    pub fn name(self) -> &'static str {
        Self::WORDS
            .iter()
            .find(|(_, value)| *value == self)
            .map_or("", |(word, _)| word)
    }
}

/// What a policy does about each class of change: `[policy.NAME.pins]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangesConfig(Vec<(ChangeClass, ChangeAction)>);

impl Default for ChangesConfig {
    fn default() -> Self {
        let action = |class| match class {
            ChangeClass::Gone
            | ChangeClass::Cosmetic
            | ChangeClass::WiderInput
            | ChangeClass::New => ChangeAction::Pass,
            _ => ChangeAction::Hold,
        };
        Self(
            ChangeClass::WORDS
                .iter()
                .map(|(_, class)| (*class, action(*class)))
                .collect(),
        )
    }
}

impl ChangesConfig {
    /// What is done about a change of this class.
    pub fn of(&self, class: ChangeClass) -> ChangeAction {
        self.0
            .iter()
            .find(|(known, _)| *known == class)
            .map_or(ChangeAction::Hold, |(_, action)| *action)
    }

    /// Does something else about a class.
    pub fn set(&mut self, class: ChangeClass, action: ChangeAction) {
        self.0.retain(|(known, _)| *known != class);
        self.0.push((class, action));
    }

    /// What is done about a change of several classes: the strictest that any of them calls for.
    pub fn of_all(&self, classes: &[ChangeClass]) -> ChangeAction {
        classes
            .iter()
            .map(|class| self.of(*class))
            .max()
            .unwrap_or(ChangeAction::Pass)
    }
}
