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
    let mut made: Vec<(String, ToolConfig)> = all
        .keys()
        .into_iter()
        .filter_map(|name| Some((name.value.clone(), tool(&all.table(&name.value)?))))
        .collect();
    made.sort_by_key(|(name, _)| {
        (
            name.contains('*'),
            std::cmp::Reverse(name.len()),
            name.clone(),
        )
    });
    all.finish();
    made
}

/// Reads whether the input schemas of tools are enforced.
pub(super) fn schema(policy: &Table<'_>) -> SchemaConfig {
    let base = SchemaConfig::default();
    let Some(table) = policy.table("schema") else {
        return base;
    };
    let made = SchemaConfig {
        enforce: table.boolean("enforce").unwrap_or(base.enforce),
        unlisted: table.choice("unlisted", &UNLISTED).unwrap_or(base.unlisted),
    };
    table.finish();
    made
}

fn tool(table: &Table<'_>) -> ToolConfig {
    let mut made = ToolConfig {
        hidden: table.boolean("hidden"),
        description: table.string("description").map(|text| text.value),
        ask: table.choice("ask", &AskTool::WORDS),
        urls: table
            .table("urls")
            .map(|urls| hosts(&urls))
            .unwrap_or_default(),
        arguments: BTreeMap::new(),
        sql_read_only: table.boolean("sql_read_only"),
        render_pages: table.choice("render_pages", &RenderPages::WORDS),
        instruction_files: table.choice("instruction_files", &InstructionFiles::WORDS),
        limits: calls::of_tool(table),
    };
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
    let made = ArgumentConfig {
        read_as: table.choice("read_as", &ReadsAs::WORDS),
        description: table.string("description").map(|text| text.value),
        required: table.boolean("required").unwrap_or(false),
        format: table.choice("format", &PathFormat::WORDS),
        keywords: keywords(table),
    };
    if made.format.is_some() && made.keywords.contains_key("pattern") {
        table.fault_of(
            "format",
            "`format` and `pattern` are both set",
            Some("remove one of them"),
        );
    }
    table.finish();
    made
}

fn keywords(table: &Table<'_>) -> BTreeMap<&'static str, String> {
    let mut made = BTreeMap::new();
    for key in ["minimum", "maximum"] {
        made.extend(table.number(key).map(|number| (key, number.value)));
    }
    for key in ["minLength", "maxLength", "maxItems"] {
        made.extend(
            table
                .integer(key, 0..=1 << 30)
                .map(|number| (key, number.to_string())),
        );
    }
    for key in ["const", "default"] {
        made.extend(table.json(key).map(|value| (key, value.value)));
    }
    if let Some(list) = table.json("enum") {
        if !list.value.starts_with('[') || list.value == "[]" {
            table.fault_at(
                &list.place,
                "`enum` must be a list of at least one value",
                None,
            );
        }
        made.insert("enum", list.value);
    }
    if let Some(pattern) = table.string("pattern") {
        if let Err(error) = regex::Regex::new(&pattern.value) {
            let hint = "use a regular expression without look-around and back-references";
            table.fault_at(
                &pattern.place,
                format!("`pattern` is invalid: {error}"),
                Some(hint),
            );
        }
        made.extend(
            table
                .json("pattern")
                .map(|pattern| ("pattern", pattern.value)),
        );
    }
    made
}
