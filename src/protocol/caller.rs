//! The user and the access rights behind an agent's call, as its credential states them.

use std::fmt;
use std::sync::Arc;

use super::{Access, AgentName, Context};
use crate::config::AccessConfig;

/// What a credential states beyond the agent's name. Empty if only the agent is known.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    /// The user that the agent acts for, qualified by the issuer that vouches for it: two issuers'
    /// `ann` are two users.
    pub user: Option<Arc<str>>,
    /// Its access rights; `None` if everything is allowed.
    pub access: Option<Arc<Access>>,
}

impl Caller {
    /// Creates a caller with the access rights that `tables` grant it. Its groups are those that
    /// the config gives the agent and those that its token names.
    pub fn new(
        agent: &AgentName,
        user: Option<Arc<str>>,
        groups: &[Box<str>],
        tables: &[Arc<AccessConfig>],
    ) -> Self {
        let access = Access::for_caller(tables, agent, user.as_deref(), groups);
        Self { user, access }
    }
}

/// The owner of a session and of all other state, counters and approvals: an agent, for one of its
/// users.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Holder {
    pub agent: AgentName,
    /// Its user, if its credential names one.
    pub user: Option<Arc<str>>,
}

impl Context {
    /// Returns the holder of the call.
    pub fn holder(&self) -> Holder {
        Holder {
            agent: self.agent.clone(),
            user: self.caller.user.clone(),
        }
    }

    /// Reports whether the call belongs to this holder.
    pub fn belongs_to(&self, holder: &Holder) -> bool {
        self.agent == holder.agent && self.caller.user == holder.user
    }
}

/// The text is used in keys and is unique for each holder, since no agent's name contains a line
/// feed.
impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.user {
            None => self.agent.fmt(f),
            Some(user) => write!(f, "{}\n{user}", self.agent),
        }
    }
}
