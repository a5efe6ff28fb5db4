//! Loading of `[policy.NAME]`.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::config::{InstructionFiles, Keeps, Override, PolicyConfig, RenderPages};
use crate::document::{Located, Table, suggest};
use crate::inspect::SkipReason;
use crate::rules::Action;

use super::classifier::classifier;
use super::flow::flow;
use super::guarded_secrets::own;
use super::places::places;
use super::upstream::ParsedUpstream;
use super::values::Reader;
use super::{approval, pins, suppress, tool};

/// The entry in `rules` that stands for the built-in rules.
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
    let mut made = PolicyConfig {
        enforce,
        ..PolicyConfig::default()
    };
    if table.has("rules") {
        let written = table.strings("rules");
        made.builtin = written.iter().any(|entry| entry.value == BUILTIN);
        made.rules = written
            .iter()
            .filter(|entry| entry.value != BUILTIN)
            .map(|entry| reader.folder(table, "rules", entry))
            .collect();
        if written.is_empty() && made.enforce {
            let hint = format!(
                "write `rules = [\"{BUILTIN}\"]`, or `mode = \"observe\"` to enforce nothing"
            );
            table.fault_of(
                "rules",
                format!("`policy.{name}` enforces no rules at all"),
                Some(&hint),
            );
        }
    }
    if let Some(packs) = table.table("packs") {
        made.packs = packs
            .keys()
            .into_iter()
            .filter_map(|pack| Some((pack.value.clone(), packs.boolean(&pack.value)?)))
            .collect();
        packs.finish();
    }
    if table.choice("profile", &PROFILES) == Some(true) {
        made.packs.entry(LIKELY.to_owned()).or_insert(false);
    }
    if let Some(all) = table.table("override") {
        for rule in all.keys() {
            if let Some(change) = all.table(&rule.value) {
                made.overrides.insert(rule.value, change_of(&change));
            }
        }
        all.finish();
    }
    made.suppress = suppress::suppressions(table);
    made.shell = arguments(table, "shell");
    made.text = arguments(table, "text");
    made.path = arguments(table, "path");
    made.url = arguments(table, "url");
    made.sql = arguments(table, "sql");
    made.sql_read_only = arguments(table, "sql_read_only");
    made.tools = tool::tools(table);
    made.schema = tool::schema(table);
    made.changes = pins::changes(table);
    made.places = places(table, reader);
    approval::of_policy(table, &mut made);
    made.own = own(table, reader);
    made.flow = flow(table).unwrap_or_default();
    made.classifier = classifier(table, reader).map(Arc::new);
    made.evidence = table.choice("evidence", &Keeps::WORDS).unwrap_or_default();
    redact_results(table, &mut made);
    made.block_uninspected = block_uninspected(table);
    made.render_pages = table
        .choice("render_pages", &RenderPages::WORDS)
        .unwrap_or_default();
    made.instruction_files = table
        .choice("instruction_files", &InstructionFiles::WORDS)
        .unwrap_or_default();
    made.result_text_bytes = sizes(table, "result_text_bytes");
    made.result_block_bytes = sizes(table, "result_block_bytes");
    made
}

/// Values of `redact_results`: secrets, and kinds of personal data, each of which is a pack of
/// rules.
const REDACTED: [&str; 6] = ["secrets", "emails", "phones", "cards", "ibans", "ssns"];

fn redact_results(policy: &Table<'_>, made: &mut PolicyConfig) {
    for what in policy.strings("redact_results") {
        match what.value.as_str() {
            "secrets" => made.redact_secrets = true,
            name if REDACTED.contains(&name) => {
                made.packs.entry(format!("redact-{name}")).or_insert(true);
            }
            name => policy.fault_at(
                &what.place,
                format!("`redact_results` contains `{name}`"),
                Some(&suggest(name, &REDACTED)),
            ),
        }
    }
}

/// Reads the reasons for which uninspected content causes its message to be blocked.
fn block_uninspected(policy: &Table<'_>) -> Vec<SkipReason> {
    let reason = |written: Located<String>| {
        let known = SkipReason::WORDS
            .iter()
            .find(|(word, _)| *word == written.value);
        if known.is_none() {
            let hint = suggest(&written.value, &SkipReason::WORDS.map(|(word, _)| word));
            policy.fault_at(
                &written.place,
                format!("`block_uninspected` contains `{}`", written.value),
                Some(&hint),
            );
        }
        known.map(|(_, reason)| *reason)
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
    let made = table.keys().into_iter().filter_map(size).collect();
    table.finish();
    made
}

fn change_of(table: &Table<'_>) -> Override {
    let made = Override {
        action: table.choice("action", &Action::WORDS),
        enabled: table.boolean("enabled"),
    };
    if made.action.is_none()
        && made.enabled.is_none()
        && !table.has("action")
        && !table.has("enabled")
    {
        table.fault(
            "the override has no effect",
            Some("write `{ action = \"log\" }` or `{ enabled = false }`"),
        );
    }
    table.finish();
    made
}

fn arguments(table: &Table<'_>, key: &str) -> Vec<String> {
    let written = table.strings(key);
    for entry in &written {
        let fits = entry
            .value
            .split_once('.')
            .is_some_and(|(tool, argument)| !tool.is_empty() && !argument.is_empty());
        if !fits {
            let hint = "a tool and its argument joined by a dot, as in `run_query.sql`";
            table.fault_at(
                &entry.place,
                format!("`{key}` contains `{}`", entry.value),
                Some(hint),
            );
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
    let known: Vec<&str> = policies.keys().map(String::as_str).collect();
    for (_, read) in upstreams {
        if let Some(policy) = &read.policy
            && !policies.contains_key(&policy.value)
        {
            let message = format!("there is no `[policy.{}]`", policy.value);
            root.fault_at(
                &policy.place,
                message,
                Some(&suggest(&policy.value, &known)),
            );
        }
    }
}
