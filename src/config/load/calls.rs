//! Loading of limits on tool calls, in `[limits]` and in `[policy.NAME.tool.TOOL]`.

use crate::config::{CallLimits, ToolLimits};
use crate::document::Table;

/// Maximum number of calls per minute, or per session, that can be set as a limit.
const CALLS: u64 = 10_000_000;

/// Reads the limits in `[limits]`.
pub(super) fn call_limits(table: &Table<'_>) -> CallLimits {
    CallLimits {
        per_minute_per_agent: count(table, "calls_per_minute_per_agent"),
        per_minute_per_upstream: count(table, "calls_per_minute_per_upstream"),
        per_session: count(table, "calls_per_session"),
        argument_bytes: bytes(table),
    }
}

/// Reads the limits of one tool.
pub(super) fn tool_limits(table: &Table<'_>) -> ToolLimits {
    ToolLimits {
        per_minute: count(table, "calls_per_minute"),
        concurrent: table
            .integer("concurrent_calls", 1..=100_000)
            .and_then(|n| u32::try_from(n).ok()),
        per_session: count(table, "calls_per_session"),
        argument_bytes: bytes(table),
    }
}

fn count(table: &Table<'_>, key: &str) -> Option<u32> {
    table
        .integer(key, 1..=CALLS)
        .and_then(|n| u32::try_from(n).ok())
}

fn bytes(table: &Table<'_>) -> Option<usize> {
    table
        .integer("argument_bytes", 2..=1 << 30)
        .and_then(|n| usize::try_from(n).ok())
}
