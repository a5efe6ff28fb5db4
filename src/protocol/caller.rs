//! Who stands behind an agent's call, as far as its credential says.

use std::fmt;
use std::sync::Arc;

use super::{Access, AgentName, Context};
use crate::config::AccessConfig;

/// What a credential says beyond the agent's name. Empty where the agent itself is all that is known.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    /// The user that the agent acts for, qualified by who vouches for it: two issuers' `ann` are two users.
    pub user: Option<Arc<str>>,
    /// What it may use; `None` for all.
    pub access: Option<Arc<Access>>,
}

impl Caller {
    /// A caller with what `tables` let it use. Its groups are the agent's own of the config, and those that its token names.
    pub fn new(
        agent: &AgentName,
        user: Option<Arc<str>>,
        groups: &[Box<str>],
        tables: &[Arc<AccessConfig>],
    ) -> Self {
        let access = Access::of(tables, agent, user.as_deref(), groups);
        Self { user, access }
    }
}

/// Whose a session is, and all that is remembered, counted and asked of one: an agent, for one of its users.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Holder {
    pub agent: AgentName,
    /// Its user, where its credential names one.
    pub user: Option<Arc<str>>,
}

impl Context {
    /// Whose the call is.
    pub fn holder(&self) -> Holder {
        Holder {
            agent: self.agent.clone(),
            user: self.caller.user.clone(),
        }
    }

    /// Whether the call is this one's.
    pub fn is_of(&self, holder: &Holder) -> bool {
        self.agent == holder.agent && self.caller.user == holder.user
    }
}

/// For keys: no two holders are written alike, since no agent's name has a line feed in it.
impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.user {
            None => self.agent.fmt(f),
            Some(user) => write!(f, "{}\n{user}", self.agent),
        }
    }
}
