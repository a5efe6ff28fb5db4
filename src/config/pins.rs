//! Pinning of definitions: the lock file, and how changes are handled.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::user_state_home;
use crate::message::hex;

/// Where pinned definitions are stored: `[pins]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinsConfig {
    /// The lock file; without one, pins last as long as the process: `file`.
    pub file: Option<PathBuf>,
    /// Whether a lock file in the state folder is used if none is named: `persistent`.
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
    /// Returns the lock file of `lychgate wrap` for configs that name none: one in the state folder
    /// of the user who runs it, if there is one.
    pub fn user_lock_file() -> Option<PathBuf> {
        Some(user_state_home()?.join("lychgate").join("lychgate.lock"))
    }

    /// Fills in a lock file in the `state` folder if none is named and pins are persistent. Each
    /// config has its own file, since two gates may use the same name for different servers.
    #[must_use]
    pub fn with_default_file(self, state: Option<PathBuf>, config: &Path) -> Self {
        let Some(state) = state.filter(|_| self.file.is_none() && self.persistent) else {
            return self;
        };
        // Symbolic links are not followed: Kubernetes replaces their targets with each change.
        let path = std::path::absolute(config).unwrap_or_else(|_| config.to_owned());
        let digest = hex(Sha256::digest(path.as_os_str().as_encoded_bytes())
            .get(..4)
            .unwrap_or_default());
        Self {
            file: Some(state.join(format!("lychgate-{digest}.lock"))),
            ..self
        }
    }

    /// Reports whether this is the config that `old` was derived from, where `old` may have the
    /// default file filled in.
    pub fn is_same_config(&self, old: &Self) -> bool {
        Self {
            file: self
                .file
                .clone()
                .or_else(|| old.file.clone().filter(|_| self.persistent)),
            ..self.clone()
        } == *old
    }
}

enum_with_names! {
    /// How a definition differs from the pinned one, in ascending order of severity. Named as in
    /// the config file, the lock file, the audit log and metrics.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum ChangeClass {
        /// The server no longer lists it.
        Gone = "gone",
        /// Case, white space, punctuation or a title has changed.
        Cosmetic = "cosmetic",
        /// New parameters, or less restrictive ones.
        WiderInput = "wider-input",
        /// First seen, on a server whose list is already known.
        New = "new",
        /// Anything else, such as a different text or more restrictive parameters.
        Other = "other",
        /// The definition permits more than before: by its hints, or by verbs that modify
        /// something.
        CapabilityGrown = "capability-grown",
        /// Instructions to the reader, or text that an inbound rule matches.
        NewImperativeText = "new-imperative-text",
        /// A parameter that asks for keys, tokens, the environment, the conversation or side notes.
        NewSecretLikeParameter = "new-secret-like-parameter",
    }
}

enum_with_names! {
    /// What is done about a definition that has changed, in ascending order of strictness. Named as
    /// in the config file, the audit log and metrics.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum ChangeAction {
        /// The new definition is pinned and passes.
        Pass = "pass",
        /// The old definition stays in the list; the new one waits for approval.
        Hold = "hold",
        /// The same, and until then each call requires approval.
        Ask = "ask",
        /// Neither definition is listed, and calls are refused, until the new one is approved.
        Refuse = "refuse",
    }
}

/// The action of a policy for each class of change: `[policy.NAME.pins]`.
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
        Self(ChangeClass::ALL.map(|class| (class, action(class))).into())
    }
}

impl ChangesConfig {
    /// Returns the action for a change of this class.
    pub fn action(&self, class: ChangeClass) -> ChangeAction {
        self.0
            .iter()
            .find(|(other, _)| *other == class)
            .map_or(ChangeAction::Hold, |(_, action)| *action)
    }

    /// Sets the action for a class.
    pub fn set(&mut self, class: ChangeClass, action: ChangeAction) {
        self.0.retain(|(other, _)| *other != class);
        self.0.push((class, action));
    }

    /// Returns the action for a change of several classes: the strictest of their actions.
    pub fn strictest_action(&self, classes: &[ChangeClass]) -> ChangeAction {
        classes
            .iter()
            .map(|class| self.action(*class))
            .max()
            .unwrap_or(ChangeAction::Pass)
    }
}
