//! Loading of `[policy.NAME]`.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::config::{EvidenceLevel, InstructionFiles, Override, PolicyConfig, RenderPages};
use crate::document::{Located, Table, suggest};
use crate::inspect::SkipReason;
use crate::rules::Action;

use super::classifier::classifier;
use super::flow::flow;
use super::guarded_secrets::guarded_secrets;
use super::places::places;
use super::upstream::ParsedUpstream;
use super::values::Reader;
use super::{approval, pins, suppress, tool};

/// The entry in `rules` that selects the built-in rules.
const BUILTIN: &str = "builtin";

/// Values of `mode`: whether verdicts are enforced.
pub(super) const MODES: [(&str, bool); 2] = [("enforce", true), ("observe", false)];

/// Whether only unambiguous matches are acted on.
const PROFILES: [(&str, bool); 2] = [("usual", false), ("strict", true)];
/// The pack of rules that occasionally match ordinary text.
const LIKELY: &str = "likely";

/// Reads a policy.
pub(super) fn policy(name: &str, table: &Table<'_>, reader: &Reader<'_>) -> PolicyConfig {
    let enforce = table.choice("mode", &MODES).unwrap_or(true);
    let mut config = PolicyConfig {
        enforce,
        ..PolicyConfig::default()
    };
    if table.has("rules") {
        let written = table.strings("rules");
        config.builtin = written.iter().any(|entry| entry.value == BUILTIN);
        config.rules = written
            .iter()
            .filter(|entry| entry.value != BUILTIN)
            .map(|entry| reader.folder(table, "rules", entry))
            .collect();
        if written.is_empty() && config.enforce {
            let hint = format!(
                "write `rules = [\"{BUILTIN}\"]`, or `mode = \"observe\"` to enforce nothing"
            );
            let message = format!("`policy.{name}` enforces no rules at all");
            table.fault_at_key("rules", message, Some(&hint));
        }
    }
    if let Some(packs) = table.table("packs") {
        config.packs = packs
            .keys()
            .into_iter()
            .filter_map(|pack| Some((pack.value.clone(), packs.boolean(&pack.value)?)))
            .collect();
        packs.finish();
    }
    if table.has("model") {
        // Otherwise the hint would be `mode`, the nearest key.
        table.mark_known("model");
        let message = "unknown key `model`";
        let hint = "the model is a pack: write `packs = { model = false }` to disable it";
        table.fault_at_key("model", message, Some(hint));
    }
    if table.choice("profile", &PROFILES) == Some(true) {
        config.packs.entry(LIKELY.to_owned()).or_insert(false);
    }
    if let Some(all) = table.table("override") {
        for rule in all.keys() {
            if let Some(change) = all.table(&rule.value) {
                config.overrides.insert(rule.value, read_override(&change));
            }
        }
        all.finish();
    }
    config.suppress = suppress::suppressions(table);
    config.shell = arguments(table, "shell");
    config.text = arguments(table, "text");
    config.path = arguments(table, "path");
    config.url = arguments(table, "url");
    config.sql = arguments(table, "sql");
    config.sql_read_only = arguments(table, "sql_read_only");
    config.tools = tool::tools(table);
    config.schema = tool::schema(table);
    config.changes = pins::changes(table);
    config.places = places(table, reader);
    approval::read_policy_settings(table, &mut config);
    config.guarded_secrets = guarded_secrets(table, reader);
    config.flow = flow(table).unwrap_or_default();
    config.classifier = classifier(table, reader).map(Arc::new);
    config.evidence = table
        .choice("evidence", &EvidenceLevel::WORDS)
        .unwrap_or_default();
    redact_results(table, &mut config);
    config.block_uninspected = block_uninspected(table);
    config.render_pages = table
        .choice("render_pages", &RenderPages::WORDS)
        .unwrap_or_default();
    config.instruction_files = table
        .choice("instruction_files", &InstructionFiles::WORDS)
        .unwrap_or_default();
    config.result_text_bytes = sizes(table, "result_text_bytes");
    config.result_block_bytes = sizes(table, "result_block_bytes");
    config
}

/// Values of `redact_results`: secrets, and kinds of personal data, each of which is a pack of
/// rules.
const REDACTED: [&str; 6] = ["secrets", "emails", "phones", "cards", "ibans", "ssns"];

fn redact_results(policy: &Table<'_>, config: &mut PolicyConfig) {
    for entry in policy.strings("redact_results") {
        match entry.value.as_str() {
            "secrets" => config.redact_secrets = true,
            name if REDACTED.contains(&name) => {
                config.packs.entry(format!("redact-{name}")).or_insert(true);
            }
            name => policy.fault_at(
                &entry.place,
                format!("`redact_results` contains `{name}`"),
                Some(&suggest(name, &REDACTED)),
            ),
        }
    }
}

/// Reads the reasons for which uninspected content causes its message to be blocked.
fn block_uninspected(policy: &Table<'_>) -> Vec<SkipReason> {
    let reason = |written: Located<String>| {
        policy.find(&written, &SkipReason::WORDS, || {
            format!("`block_uninspected` contains `{}`", written.value)
        })
    };
    policy
        .strings("block_uninspected")
        .into_iter()
        .filter_map(reason)
        .collect()
}

fn sizes(policy: &Table<'_>, key: &str) -> BTreeMap<String, usize> {
    let Some(table) = policy.table(key) else {
        return BTreeMap::new();
    };
    let size = |tool: Located<String>| {
        let bytes = table.integer(&tool.value, 256..=1 << 30)?;
        Some((tool.value, usize::try_from(bytes).unwrap_or(usize::MAX)))
    };
    let sizes = table.keys().into_iter().filter_map(size).collect();
    table.finish();
    sizes
}

fn read_override(table: &Table<'_>) -> Override {
    let change = Override {
        action: table.choice("action", &Action::WORDS),
        enabled: table.boolean("enabled"),
    };
    if change.action.is_none()
        && change.enabled.is_none()
        && !table.has("action")
        && !table.has("enabled")
    {
        let message = "the override has no effect";
        let hint = "write `{ action = \"log\" }` or `{ enabled = false }`";
        table.fault(message, Some(hint));
    }
    table.finish();
    change
}

fn arguments(table: &Table<'_>, key: &str) -> Vec<String> {
    let written = table.strings(key);
    for entry in &written {
        let is_valid = entry
            .value
            .split_once('.')
            .is_some_and(|(tool, argument)| !tool.is_empty() && !argument.is_empty());
        if !is_valid {
            let hint = "a tool and its argument joined by a dot, as in `run_query.sql`";
            let message = format!("`{key}` contains `{}`", entry.value);
            table.fault_at(&entry.place, message, Some(hint));
        }
    }
    written.into_iter().map(|entry| entry.value).collect()
}

/// Checks that the policy of every upstream exists.
pub(super) fn check(
    root: &Table<'_>,
    policies: &BTreeMap<String, PolicyConfig>,
    upstreams: &[(Located<String>, ParsedUpstream)],
) {
    let policy_names: Vec<&str> = policies.keys().map(String::as_str).collect();
    for (_, parsed) in upstreams {
        if let Some(policy) = &parsed.policy
            && !policies.contains_key(&policy.value)
        {
            let message = format!("there is no `[policy.{}]`", policy.value);
            let hint = suggest(&policy.value, &policy_names);
            root.fault_at(&policy.place, message, Some(&hint));
        }
    }
}
