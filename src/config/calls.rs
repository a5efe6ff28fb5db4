//! Limits on tool calls: number, rate and size. In the file, the name of each limit includes its
//! unit.

/// Limits for all callers, in `[limits]`. With `None`, only the limits on messages and connections
/// apply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallLimits {
    /// Maximum number of calls per minute by one agent: `calls_per_minute_per_agent`.
    pub per_minute_per_agent: Option<u32>,
    /// Maximum number of calls per minute to one upstream: `calls_per_minute_per_upstream`.
    pub per_minute_per_upstream: Option<u32>,
    /// Maximum number of calls in one session: `calls_per_session`.
    pub per_session: Option<u32>,
    /// Maximum length of a call's arguments, in bytes as sent: `argument_bytes`.
    pub argument_bytes: Option<usize>,
}

/// Limits shared by all tools that one `[policy.NAME.tool.TOOL]` matches, counted separately for
/// each agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolLimits {
    /// Maximum number of calls per minute: `calls_per_minute`.
    pub per_minute: Option<u32>,
    /// Maximum number of concurrent calls: `concurrent_calls`.
    pub concurrent: Option<u32>,
    /// Maximum number of calls in one session: `calls_per_session`.
    pub per_session: Option<u32>,
    /// Maximum length of a call's arguments, in bytes as sent: `argument_bytes`.
    pub argument_bytes: Option<usize>,
}
