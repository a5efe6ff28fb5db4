//! `[policy.NAME.tool.TOOL]`

use crate::config::{ArgumentConfig, AskTool, ReadsAs, ToolConfig};
use crate::document::Table;

/// Reads what a policy says of single tools, the nearest first: whole names, then globs, those that say more first.
pub(super) fn tools(policy: &Table<'_>) -> Vec<(String, ToolConfig)> {
    let Some(all) = policy.table("tool") else { return Vec::new() };
    let mut made: Vec<(String, ToolConfig)> =
        all.keys().into_iter().filter_map(|name| Some((name.value.clone(), tool(&all.table(&name.value)?)))).collect();
    made.sort_by_key(|(name, _)| (name.contains('*'), std::cmp::Reverse(name.len()), name.clone()));
    all.finish();
    made
}

fn tool(table: &Table<'_>) -> ToolConfig {
    let mut made = ToolConfig { ask: table.choice("ask", &AskTool::WORDS), ..ToolConfig::default() };
    if let Some(all) = table.table("arguments") {
        for name in all.keys() {
            if let Some(one) = all.table(&name.value) {
                made.arguments.insert(name.value, argument(&one));
            }
        }
        all.finish();
    }
    table.finish();
    made
}

fn argument(table: &Table<'_>) -> ArgumentConfig {
    let made = ArgumentConfig { read_as: table.choice("read_as", &ReadsAs::WORDS) };
    table.finish();
    made
}
