//! Loading of `[access.NAME]`.

use crate::config::{AccessConfig, Lists};
use crate::document::{Located, Table, suggest};
use crate::text::glob_matches;

/// Reads one table. `upstreams` are the names of all configured upstreams.
pub(super) fn access(name: &str, table: &Table<'_>, upstreams: &[&str]) -> AccessConfig {
    let read_upstreams = |key: &str| {
        let all = table.strings(key).into_iter();
        all.map(|written| {
            check_upstream(table, &written, &written.value, upstreams)
                .value
                .clone()
        })
        .collect::<Vec<_>>()
    };
    let read_qualified = |key: &str| {
        table
            .strings(key)
            .into_iter()
            .map(|written| qualify(table, written, upstreams))
            .collect::<Vec<_>>()
    };
    let read_optional =
        |key: &str, read: &dyn Fn(&str) -> Vec<String>| table.has(key).then(|| read(key));
    let config = AccessConfig {
        name: name.to_owned(),
        agents: table.values("agents"),
        users: table.values("users"),
        groups: table.values("groups"),
        allow: Lists {
            upstreams: read_optional("allow_upstreams", &read_upstreams),
            tools: read_optional("allow_tools", &read_qualified),
            prompts: read_optional("allow_prompts", &read_qualified),
            resources: read_optional("allow_resources", &read_qualified),
        },
        deny: Lists {
            upstreams: read_upstreams("deny_upstreams"),
            tools: read_qualified("deny_tools"),
            prompts: read_qualified("deny_prompts"),
            resources: read_qualified("deny_resources"),
        },
        read_only: table.flag("read_only", false),
        reading_tools: read_qualified("reading_tools"),
        writing_tools: read_qualified("writing_tools"),
        trust_annotations: read_upstreams("trust_annotations"),
    };
    if config.agents.is_empty() && config.users.is_empty() && config.groups.is_empty() {
        let message = format!("`access.{name}` applies to nobody");
        let hint = "set `agents`, `users` or `groups`; `agents = [\"*\"]` is everyone";
        table.fault(message, Some(hint));
    }
    let has_overrides = !config.reading_tools.is_empty()
        || !config.writing_tools.is_empty()
        || !config.trust_annotations.is_empty();
    if has_overrides && !config.read_only {
        let hint = "these keys require `read_only = true`: `reading_tools`, `writing_tools`, `trust_annotations`";
        let message = format!("`access.{name}` classifies tools without `read_only = true`");
        table.fault(message, Some(hint));
    }
    config
}

/// Completes a name: `NAME` matches any upstream, `UPSTREAM/NAME` those that match the first part.
fn qualify(table: &Table<'_>, written: Located<String>, upstreams: &[&str]) -> String {
    match written.value.split_once('/') {
        // The URI of a resource: `file:///…`.
        Some((scheme, rest)) if scheme.ends_with(':') && rest.starts_with('/') => {
            format!("*/{}", written.value)
        }
        Some((upstream, _)) => check_upstream(table, &written, upstream, upstreams)
            .value
            .clone(),
        None => format!("*/{}", written.value),
    }
}

/// Reports a name that matches no upstream. This is a mistake, and a dangerous one in a denial.
fn check_upstream<'w>(
    table: &Table<'_>,
    written: &'w Located<String>,
    upstream: &str,
    upstreams: &[&str],
) -> &'w Located<String> {
    // `lychgate wrap` supplies its server itself, so there may be no upstreams.
    if !upstreams.is_empty() && !upstreams.iter().any(|name| glob_matches(upstream, name)) {
        let message = format!(
            "`{}` matches no upstream: there is no `[upstream.{upstream}]`",
            written.value
        );
        let hint = format!(
            "{}; a name with a slash in it is written `*/{}`",
            suggest(upstream, upstreams),
            written.value
        );
        table.fault_at(&written.place, message, Some(&hint));
    }
    written
}
