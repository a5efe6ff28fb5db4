//! Suppressions as tables of the config, and a description of what else passes with them.

use std::time::SystemTime;

use crate::config::Suppression;
use crate::document::Day;
use crate::text::{shows, visible};

/// How long a proposed suppression applies, in days.
const DAYS: u64 = 90;
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
        until: Day::after(SystemTime::now(), DAYS)?,
        place: Default::default(),
    })
}

/// Describes what else passes with these suppressions of one passage. `lacks` indicates that the
/// text is masked or truncated.
pub(super) fn covers(tables: &[Suppression], more: bool, lacks: bool) -> String {
    let mut out: Vec<String> = tables.iter().map(one).collect();
    if more {
        out.push(
            "The rules match further passages here that these tables do not cover.".to_owned(),
        );
    }
    if lacks {
        out.push(
            "The digests are of the text in the log. Where it is masked or truncated, they do not match the original.".to_owned(),
        );
    }
    out.join(" ")
}

fn one(table: &Suppression) -> String {
    let list = |what: &str, names: &[Box<str>]| {
        let names: Vec<String> = names
            .iter()
            .map(|name| format!("`{}`", visible(name)))
            .collect();
        (!names.is_empty()).then(|| format!("{what} {}", names.join(" or ")))
    };
    let single = |what: &str, name: &Option<Box<str>>| list(what, name.as_slice());
    let narrower = [
        single("argument", &table.argument),
        list("place", &table.at),
        single("tool", &table.tool),
        single("upstream", &table.upstream),
    ];
    let narrower: Vec<String> = narrower.into_iter().flatten().collect();
    let place = if narrower.is_empty() {
        "anywhere".to_owned()
    } else {
        format!("in {}", narrower.join(" of "))
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
pub fn written(policy: &str, tables: &[Suppression]) -> String {
    tables
        .iter()
        .map(|one| table(policy, one))
        .collect::<Vec<_>>()
        .join("\n")
}

fn table(policy: &str, one: &Suppression) -> String {
    let single = |name: &Option<Box<str>>| name.as_deref().map(quoted);
    let names = [
        (
            if one.rules.len() > 1 { "rules" } else { "rule" },
            list(&one.rules),
        ),
        ("upstream", single(&one.upstream)),
        ("tool", single(&one.tool)),
        ("argument", single(&one.argument)),
        ("at", list(&one.at)),
        ("sha256", list(&one.sha256)),
        ("reason", Some(quoted(&one.reason))),
        ("until", Some(one.until.written.to_string())),
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
fn list(names: &[Box<str>]) -> Option<String> {
    match names {
        [] => None,
        [name] => Some(quoted(name)),
        names => Some(format!(
            "[{}]",
            names
                .iter()
                .map(|name| quoted(name))
                .collect::<Vec<_>>()
                .join(", ")
        )),
    }
}

/// Formats a basic string of TOML 1.0 that contains no invisible characters.
pub(in crate::review) fn quoted(text: &str) -> String {
    let mut out = "\"".to_owned();
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if shows(c) => out.push(c),
            c => out.push_str(&format!("\\U{:08X}", u32::from(c))),
        }
    }
    out + "\""
}
