//! Suppressions as tables of the config, and a description of what else passes with them.

use std::time::SystemTime;

use crate::config::Suppression;
use crate::document::Day;
use crate::text::{escape_invisible, is_visible};

/// How long a proposed suppression applies, in days.
const PROPOSAL_DAYS: u64 = 90;
/// The placeholder for the reason in a proposal.
const REASON: &str = "false alarm: name of the reviewer, and the reason";

/// Returns a template that matches no rule, with the reason and the expiry date of a proposal.
pub(super) fn empty_suppression() -> Option<Suppression> {
    Some(Suppression {
        rules: [].into(),
        upstream: None,
        tool: None,
        argument: None,
        at: [].into(),
        sha256: [].into(),
        reason: REASON.into(),
        until: Day::after(SystemTime::now(), PROPOSAL_DAYS)?,
        place: Default::default(),
    })
}

/// Describes what else passes with these suppressions of one passage. `is_incomplete` means that
/// the text is masked or truncated.
pub(super) fn describe_coverage(
    tables: &[Suppression],
    has_more: bool,
    is_incomplete: bool,
) -> String {
    let mut out: Vec<String> = tables.iter().map(describe_table).collect();
    if has_more {
        out.push(
            "The rules match further passages here that these tables do not cover.".to_owned(),
        );
    }
    if is_incomplete {
        out.push(
            "The digests are of the text in the log. Where it is masked or truncated, they do not match the original.".to_owned(),
        );
    }
    out.join(" ")
}

fn describe_table(table: &Suppression) -> String {
    let list = |what: &str, names: &[Box<str>]| {
        let names: Vec<String> = names
            .iter()
            .map(|name| format!("`{}`", escape_invisible(name)))
            .collect();
        (!names.is_empty()).then(|| format!("{what} {}", names.join(" or ")))
    };
    let single = |what: &str, name: &Option<Box<str>>| list(what, name.as_slice());
    let limits = [
        single("argument", &table.argument),
        list("place", &table.at),
        single("tool", &table.tool),
        single("upstream", &table.upstream),
    ];
    let limits: Vec<String> = limits.into_iter().flatten().collect();
    let place = if limits.is_empty() {
        "anywhere".to_owned()
    } else {
        format!("in {}", limits.join(" of "))
    };
    let rules = list("", &table.rules)
        .unwrap_or_default()
        .replace(" or ", ", ");
    let rules = rules.trim_start();
    if table.sha256.is_empty() {
        format!(
            "Wide: no digest matches what{} found, so everything that {rules} finds {place} passes.",
            if table.rules.len() > 1 {
                " these rules"
            } else {
                " this rule"
            }
        )
    } else {
        format!(
            "Covers only this passage, for {rules}; other texts with the same passage {place} also pass."
        )
    }
}

/// Formats the suppressions as tables of the config.
pub fn format_tables(policy: &str, tables: &[Suppression]) -> String {
    tables
        .iter()
        .map(|one| format_table(policy, one))
        .collect::<Vec<_>>()
        .join("\n")
}

fn format_table(policy: &str, suppression: &Suppression) -> String {
    let single = |name: &Option<Box<str>>| name.as_deref().map(quote);
    let names = [
        (
            if suppression.rules.len() > 1 {
                "rules"
            } else {
                "rule"
            },
            format_names(&suppression.rules),
        ),
        ("upstream", single(&suppression.upstream)),
        ("tool", single(&suppression.tool)),
        ("argument", single(&suppression.argument)),
        ("at", format_names(&suppression.at)),
        ("sha256", format_names(&suppression.sha256)),
        ("reason", Some(quote(&suppression.reason))),
        ("until", Some(suppression.until.text.to_string())),
    ];
    let mut out = format!("[[policy.{policy}.suppress]]\n");
    for (key, value) in names
        .iter()
        .filter_map(|(key, value)| Some((key, value.as_ref()?)))
    {
        out.push_str(&format!("{key} = {value}\n"));
    }
    out
}

/// Formats one name as a string and several as an array of strings.
fn format_names(names: &[Box<str>]) -> Option<String> {
    match names {
        [] => None,
        [name] => Some(quote(name)),
        names => Some(format!(
            "[{}]",
            names
                .iter()
                .map(|name| quote(name))
                .collect::<Vec<_>>()
                .join(", ")
        )),
    }
}

/// Formats a basic string of TOML 1.0 that contains no invisible characters.
pub(in crate::review) fn quote(text: &str) -> String {
    let mut out = "\"".to_owned();
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if is_visible(c) => out.push(c),
            c => out.push_str(&format!("\\U{:08X}", u32::from(c))),
        }
    }
    out + "\""
}
