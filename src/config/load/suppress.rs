//! Loading of `[[policy.NAME.suppress]]`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::config::{PolicyConfig, Suppression};
use crate::document::{Fault, Located, Table};

use super::upstream::ParsedUpstream;

/// Maximum duration of a suppression, after which it must be reviewed.
const MOST_DAYS: u64 = 366;
/// Maximum number of suppressions in one policy.
const MOST: usize = 1000;
/// Maximum length of a name, place or reason, in bytes.
const TEXT_BYTES: usize = 1024;

const REASON: &str = "who decided this and why, for readers of the audit log: `reason = \"…\"`";
const UNTIL: &str = "the last day on which it applies, at most a year ahead: `until = 2027-01-31`";
const RULE: &str =
    "the rule's id, as in the audit line: `rule = \"…\"`, or several: `rules = [\"…\", \"…\"]`";
const SHA256: &str =
    "32 hexadecimal digits, as in `evidence` of the audit line; `lychgate explain` prints them";
const AT: &str =
    "a JSON pointer such as `/result/content/*/text`, in which `*` matches any one step";

/// Reads the suppressions of a policy.
pub(super) fn suppressions(policy: &Table<'_>) -> Vec<Arc<Suppression>> {
    let tables = policy.tables("suppress");
    if tables.len() > MOST {
        let message = format!("more than {MOST} suppressions");
        let hint = "change the rule, or disable it";
        policy.fault_at_key("suppress", message, Some(hint));
    }
    tables
        .iter()
        .filter_map(suppression)
        .map(Arc::new)
        .collect()
}

fn suppression(table: &Table<'_>) -> Option<Suppression> {
    let rules = rules(table);
    let name = |key: &str| read_text(table, key);
    let upstream = name("upstream");
    let tool = name("tool");
    let argument = name("argument");
    let read_checked = |key: &str, hint: &str, is_valid: fn(&str) -> bool| {
        let names = names(table, key);
        for name in names.iter().filter(|name| !is_valid(&name.value)) {
            let message = format!("`{}` is not a valid `{key}`", name.value.escape_debug());
            table.fault_at(&name.place, message, Some(hint));
        }
        names
    };
    let at = read_checked("at", AT, |at| at.starts_with('/'));
    let sha256 = read_checked("sha256", SHA256, |hex| {
        hex.len() == 32
            && hex
                .bytes()
                .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    });
    if let (Some(_), Some(at)) = (&argument, at.first()) {
        let message = "`argument` and `at` both set the location";
        let hint = "remove one of them";
        table.fault_at(&at.place, message, Some(hint));
    }
    table.require("reason", REASON);
    let reason = read_text(table, "reason");
    table.require("until", UNTIL);
    let until = table.day("until");
    if let Some(until) = &until
        && until.value.end > SystemTime::now() + Duration::from_secs((MOST_DAYS + 1) * 86_400)
    {
        let message = format!("`until` is more than {MOST_DAYS} days ahead");
        table.fault_at(&until.place, message, Some(UNTIL));
    }
    table.finish();
    let value = |name: Option<Located<String>>| name.map(|name| name.value.into_boxed_str());
    let values = |names: Vec<Located<String>>| {
        names
            .into_iter()
            .map(|name| name.value.into_boxed_str())
            .collect()
    };
    let place = table.place();
    Some(Suppression {
        rules: values(rules),
        upstream: value(upstream),
        tool: value(tool),
        argument: value(argument),
        at: values(at),
        sha256: values(sha256),
        reason: reason?.value.into(),
        until: until?.value,
        place: (place.file.as_ref().into(), place.line, place.column),
    })
}

/// Reads the rules: `rule` names one, `rules` several.
fn rules(table: &Table<'_>) -> Vec<Located<String>> {
    match (table.has("rule"), table.has("rules")) {
        (_, false) => {
            let rule = table.required("rule", RULE);
            return rule
                .into_iter()
                .inspect(|rule| check_text(table, "rule", rule))
                .collect();
        }
        (true, true) => table.fault_at_key(
            "rules",
            "`rule` and `rules` are both set",
            Some("remove one of them"),
        ),
        (false, true) => {}
    }
    table.mark_known("rule");
    names(table, "rules")
}

/// Reads a name or a list of names. A list must not be empty.
fn names(table: &Table<'_>, key: &str) -> Vec<Located<String>> {
    let names = table.one_or_more(key);
    if names.is_empty() && table.is_list(key) {
        let message = format!("`{key}` is empty");
        let hint = "remove it, or add at least one";
        table.fault_at_key(key, message, Some(hint));
    }
    names.iter().for_each(|name| check_text(table, key, name));
    names
}

fn read_text(table: &Table<'_>, key: &str) -> Option<Located<String>> {
    let name = table.string(key)?;
    check_text(table, key, &name);
    Some(name)
}

fn check_text(table: &Table<'_>, key: &str, name: &Located<String>) {
    if name.value.trim().is_empty() || name.value.len() > TEXT_BYTES {
        let hint = if key == "reason" {
            REASON
        } else {
            "remove it, or set a name"
        };
        let message = if name.value.len() > TEXT_BYTES {
            "is too long"
        } else {
            "is empty"
        };
        table.fault_at(&name.place, format!("`{key}` {message}"), Some(hint));
    }
}

/// Reports suppressions for upstreams that use another policy, which would never apply. A
/// suppression for an unknown upstream may be for a server of `lychgate wrap`; `lychgate check`
/// warns about it.
pub(super) fn check(
    root: &Table<'_>,
    policies: &BTreeMap<String, PolicyConfig>,
    upstreams: &[(Located<String>, ParsedUpstream)],
) {
    for (name, policy) in policies {
        for suppression in &policy.suppress {
            let Some(upstream) = suppression.upstream.as_deref() else {
                continue;
            };
            let Some((_, parsed)) = upstreams.iter().find(|(name, _)| name.value == upstream)
            else {
                continue;
            };
            let judged = &parsed.config.policy;
            if judged == name {
                continue;
            }
            let message = format!("`{upstream}` uses `policy.{judged}`, not `policy.{name}`");
            let hint = format!("write it under `[[policy.{judged}.suppress]]`");
            let (file, line, column) = suppression.place.clone();
            root.add(Fault {
                file: file.into(),
                line,
                column,
                message,
                hint: Some(hint),
            });
        }
    }
}
