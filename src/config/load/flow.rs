//! Loading of `flow` of policies and upstreams.

use crate::config::FlowConfig;
use crate::document::Table;

/// Reads `flow`, if present.
pub(super) fn flow(table: &Table<'_>) -> Option<FlowConfig> {
    let flow = table.table("flow")?;
    let config = FlowConfig {
        private: tools(&flow, "private"),
        untrusted: tools(&flow, "untrusted"),
        outward: tools(&flow, "outward"),
    };
    flow.finish();
    Some(config)
}

/// Reads globs of tools: all (`true`), none (`false`), or a list.
fn tools(flow: &Table<'_>, key: &str) -> Vec<String> {
    if flow.is_boolean(key) {
        return if flow.boolean(key) == Some(true) {
            vec!["*".to_owned()]
        } else {
            Vec::new()
        };
    }
    flow.values(key)
}
