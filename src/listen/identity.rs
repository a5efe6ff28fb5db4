//! The identity of an authenticated caller, its credential, and the upstreams that it may use.

use std::sync::Arc;
use std::time::Duration;

use crate::config::{AccessConfig, Agent};
use crate::oauth::unix_now;
use crate::protocol::{AgentName, Caller, UpstreamName};

/// An authenticated caller.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    pub(super) agent: AgentName,
    pub(super) caller: Caller,
    /// The upstreams in the agent's own table of the config; `None` for all.
    pub(super) upstreams: Option<Arc<[String]>>,
    pub(super) credential: CredentialKind,
}

/// The credential that a caller presented.
#[derive(Clone, Debug)]
pub(super) enum CredentialKind {
    /// None: everyone is admitted.
    Nothing,
    /// A token of the agent's own, by its hash.
    Token([u8; 32]),
    /// The name in its certificate.
    Certificate(String),
    /// A token of this issuer, and when it expires (seconds since 1970).
    Issuer(String, u64),
}

impl Identity {
    /// Creates the identity of a caller under an agent's name, with the agent's settings if the
    /// config contains it.
    pub(super) fn new(
        agent: AgentName,
        config: Option<&Agent>,
        user: Option<Arc<str>>,
        mut groups: Vec<Box<str>>,
        access: &[Arc<AccessConfig>],
        credential: CredentialKind,
    ) -> Self {
        groups.extend(
            config
                .into_iter()
                .flat_map(|config| &config.groups)
                .map(|group| group.as_str().into()),
        );
        let caller = Caller::new(&agent, user, &groups, access);
        let upstreams = config
            .and_then(|config| config.upstreams.as_deref())
            .map(Into::into);
        Self {
            agent,
            caller,
            upstreams,
            credential,
        }
    }

    /// Returns how long the caller may stay, if its credential expires.
    pub(super) fn remaining_time(&self) -> Option<Duration> {
        let CredentialKind::Issuer(_, expiry) = &self.credential else {
            return None;
        };
        Some(Duration::from_secs(expiry.saturating_sub(unix_now())))
    }

    /// Reports whether it is the same agent, for the same user.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.agent == other.agent && self.caller.user == other.caller.user
    }

    /// Reports whether its own table lets it reach an upstream.
    pub(super) fn may_reach(&self, upstream: &UpstreamName) -> bool {
        self.upstreams
            .as_ref()
            .is_none_or(|names| names.iter().any(|name| **name == *upstream.0))
    }
}
