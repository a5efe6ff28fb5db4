//! Who has come in, by what, and which upstreams it may use.

use std::sync::Arc;
use std::time::Duration;

use crate::config::{AccessConfig, Agent};
use crate::oauth::unix_now;
use crate::protocol::{AgentName, Caller, UpstreamName};

/// Who has come in.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    pub(super) agent: AgentName,
    pub(super) caller: Caller,
    /// Upstreams that its own table in the config names; `None` for all.
    pub(super) upstreams: Option<Arc<[String]>>,
    pub(super) by: CredentialKind,
}

/// What somebody came in by.
#[derive(Clone, Debug)]
pub(super) enum CredentialKind {
    /// Nothing: everyone may come in.
    Nothing,
    /// A token of its own, by its hash.
    Token([u8; 32]),
    /// The name in its certificate.
    Certificate(String),
    /// A token of this issuer's, which is over then (seconds since 1970).
    Issuer(String, u64),
}

impl Identity {
    /// Who comes in under the name of an agent, with what the config says of the agent if it is in it.
    pub(super) fn new(
        agent: AgentName,
        config: Option<&Agent>,
        user: Option<Arc<str>>,
        mut groups: Vec<Box<str>>,
        access: &[Arc<AccessConfig>],
        by: CredentialKind,
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
            by,
        }
    }

    /// How long it may stay, if its credential says so.
    pub(super) fn stays(&self) -> Option<Duration> {
        let CredentialKind::Issuer(_, until) = &self.by else {
            return None;
        };
        Some(Duration::from_secs(until.saturating_sub(unix_now())))
    }

    /// Whether it is the same agent, for the same user.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.agent == other.agent && self.caller.user == other.caller.user
    }

    /// Whether its own table lets it reach an upstream.
    pub(super) fn reaches(&self, upstream: &UpstreamName) -> bool {
        self.upstreams
            .as_ref()
            .is_none_or(|names| names.iter().any(|name| **name == *upstream.0))
    }
}
