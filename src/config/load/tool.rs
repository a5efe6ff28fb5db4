//! Loading of `[policy.NAME.tool.TOOL]` and `[policy.NAME.schema]`.

use std::collections::BTreeMap;

use crate::config::{
    ArgumentConfig, AskTool, InstructionFiles, PathFormat, ReadsAs, RenderPages, SchemaConfig,
    ToolConfig,
};
use crate::document::Table;

use super::calls;
use super::places::hosts;

/// Values of `unlisted`: whether calls of tools that were in no list pass.
const UNLISTED: [(&str, bool); 2] = [("pass", true), ("block", false)];

/// Reads a policy's settings for single tools, most specific first: exact names, then globs,
/// longest first.
pub(super) fn tools(policy: &Table<'_>) -> Vec<(String, ToolConfig)> {
    let Some(all) = policy.table("tool") else {
        return Vec::new();
    };
    let mut settings: Vec<(String, ToolConfig)> = all
        .keys()
        .into_iter()
        .filter_map(|name| Some((name.value.clone(), tool(&all.table(&name.value)?))))
        .collect();
    settings.sort_by_key(|(name, _)| {
        (
            name.contains('*'),
            std::cmp::Reverse(name.len()),
            name.clone(),
        )
    });
    all.finish();
    settings
}

/// Reads whether the input schemas of tools are enforced.
pub(super) fn schema(policy: &Table<'_>) -> SchemaConfig {
    let base = SchemaConfig::default();
    let Some(table) = policy.table("schema") else {
        return base;
    };
    let config = SchemaConfig {
        enforce: table.flag("enforce", base.enforce),
        unlisted: table.choice("unlisted", &UNLISTED).unwrap_or(base.unlisted),
    };
    table.finish();
    config
}

fn tool(table: &Table<'_>) -> ToolConfig {
    let mut config = ToolConfig {
        hidden: table.boolean("hidden"),
        description: table.value("description"),
        ask: table.choice("ask", &AskTool::WORDS),
        urls: table
            .table("urls")
            .map(|urls| hosts(&urls))
            .unwrap_or_default(),
        arguments: BTreeMap::new(),
        sql_read_only: table.boolean("sql_read_only"),
        render_pages: table.choice("render_pages", &RenderPages::WORDS),
        instruction_files: table.choice("instruction_files", &InstructionFiles::WORDS),
        limits: calls::tool_limits(table),
    };
    if let Some(all) = table.table("arguments") {
        for name in all.keys() {
            if let Some(argument_table) = all.table(&name.value) {
                config
                    .arguments
                    .insert(name.value, argument(&argument_table));
            }
        }
        all.finish();
    }
    table.finish();
    config
}

fn argument(table: &Table<'_>) -> ArgumentConfig {
    let config = ArgumentConfig {
        read_as: table.choice("read_as", &ReadsAs::WORDS),
        description: table.value("description"),
        required: table.flag("required", false),
        format: table.choice("format", &PathFormat::WORDS),
        keywords: keywords(table),
    };
    if config.format.is_some() && config.keywords.contains_key("pattern") {
        let message = "`format` and `pattern` are both set";
        let hint = "remove one of them";
        table.fault_at_key("format", message, Some(hint));
    }
    table.finish();
    config
}

fn keywords(table: &Table<'_>) -> BTreeMap<&'static str, String> {
    let mut keywords = BTreeMap::new();
    for key in ["minimum", "maximum"] {
        keywords.extend(table.number(key).map(|number| (key, number.value)));
    }
    for key in ["minLength", "maxLength", "maxItems"] {
        keywords.extend(
            table
                .integer(key, 0..=1 << 30)
                .map(|number| (key, number.to_string())),
        );
    }
    for key in ["const", "default"] {
        keywords.extend(table.json(key).map(|value| (key, value.value)));
    }
    if let Some(list) = table.json("enum") {
        if !list.value.starts_with('[') || list.value == "[]" {
            let message = "`enum` must be a list of at least one value";
            table.fault_at(&list.place, message, None);
        }
        keywords.insert("enum", list.value);
    }
    if let Some(pattern) = table.string("pattern") {
        if let Err(error) = regex::Regex::new(&pattern.value) {
            let hint = "use a regular expression without look-around and back-references";
            let message = format!("`pattern` is invalid: {error}");
            table.fault_at(&pattern.place, message, Some(hint));
        }
        keywords.extend(
            table
                .json("pattern")
                .map(|pattern| ("pattern", pattern.value)),
        );
    }
    keywords
}
