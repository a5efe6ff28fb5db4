//! Bounds on calls of tools: how many, how fast, how large. In the file each has its unit in its name.

/// Limits for all callers, in `[limits]`. `None`: only the limits on messages and connections apply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallLimits {
    /// Calls of one agent a minute: `calls_per_minute_per_agent`.
    pub per_minute_per_agent: Option<u32>,
    /// Calls to one upstream a minute: `calls_per_minute_per_upstream`.
    pub per_minute_per_upstream: Option<u32>,
    /// Calls of one session: `calls_per_session`.
    pub per_session: Option<u32>,
    /// Longest arguments of a call, in bytes as sent: `argument_bytes`.
    pub argument_bytes: Option<usize>,
}

/// Bounds for the tools that one `[policy.NAME.tool.TOOL]` names, which share them; for each agent on its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolLimits {
    /// Calls a minute: `calls_per_minute`.
    pub per_minute: Option<u32>,
    /// Calls at once: `concurrent_calls`.
    pub concurrent: Option<u32>,
    /// Calls of one session: `calls_per_session`.
    pub per_session: Option<u32>,
    /// Longest arguments of a call, in bytes as sent: `argument_bytes`.
    pub argument_bytes: Option<usize>,
}
