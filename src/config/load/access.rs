//! Loading of `[access.NAME]`.

use crate::config::{AccessConfig, Lists};
use crate::document::{Located, Table, suggest};
use crate::text::glob_fits;

/// Reads one table. `upstreams` are the names of all configured upstreams.
pub(super) fn access(name: &str, table: &Table<'_>, upstreams: &[&str]) -> AccessConfig {
    let plain = |key: &str| {
        table
            .strings(key)
            .into_iter()
            .map(|written| written.value)
            .collect::<Vec<_>>()
    };
    let of_upstreams = |key: &str| {
        let all = table.strings(key).into_iter();
        all.map(|written| {
            checked(table, &written, &written.value, upstreams)
                .value
                .clone()
        })
        .collect::<Vec<_>>()
    };
    let within = |key: &str| {
        table
            .strings(key)
            .into_iter()
            .map(|written| qualified(table, written, upstreams))
            .collect::<Vec<_>>()
    };
    let some = |key: &str, read: &dyn Fn(&str) -> Vec<String>| table.has(key).then(|| read(key));
    let made = AccessConfig {
        name: name.to_owned(),
        agents: plain("agents"),
        users: plain("users"),
        groups: plain("groups"),
        allow: Lists {
            upstreams: some("allow_upstreams", &of_upstreams),
            tools: some("allow_tools", &within),
            prompts: some("allow_prompts", &within),
            resources: some("allow_resources", &within),
        },
        deny: Lists {
            upstreams: of_upstreams("deny_upstreams"),
            tools: within("deny_tools"),
            prompts: within("deny_prompts"),
            resources: within("deny_resources"),
        },
        read_only: table.boolean("read_only").unwrap_or(false),
        reading_tools: within("reading_tools"),
        writing_tools: within("writing_tools"),
        trust_annotations: of_upstreams("trust_annotations"),
    };
    if made.agents.is_empty() && made.users.is_empty() && made.groups.is_empty() {
        table.fault(
            format!("`access.{name}` applies to nobody"),
            Some("set `agents`, `users` or `groups`; `agents = [\"*\"]` is everyone"),
        );
    }
    let overrides = !made.reading_tools.is_empty()
        || !made.writing_tools.is_empty()
        || !made.trust_annotations.is_empty();
    if overrides && !made.read_only {
        let hint = "these keys require `read_only = true`: `reading_tools`, `writing_tools`, `trust_annotations`";
        table.fault(
            format!("`access.{name}` classifies tools without `read_only = true`"),
            Some(hint),
        );
    }
    made
}

/// Completes a name: `NAME` matches any upstream, `UPSTREAM/NAME` those that match the first part.
fn qualified(table: &Table<'_>, written: Located<String>, upstreams: &[&str]) -> String {
    match written.value.split_once('/') {
        // The URI of a resource: `file:///…`.
        Some((scheme, rest)) if scheme.ends_with(':') && rest.starts_with('/') => {
            format!("*/{}", written.value)
        }
        Some((upstream, _)) => checked(table, &written, upstream, upstreams).value.clone(),
        None => format!("*/{}", written.value),
    }
}

/// Reports a name that matches no upstream. This is a mistake, and a dangerous one in a denial.
fn checked<'w>(
    table: &Table<'_>,
    written: &'w Located<String>,
    upstream: &str,
    upstreams: &[&str],
) -> &'w Located<String> {
    // `lychgate wrap` supplies its server itself, so there may be no upstreams.
    if !upstreams.is_empty() && !upstreams.iter().any(|name| glob_fits(upstream, name)) {
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
