//! A suppression of one finding, as narrow as works.

use std::time::SystemTime;

use crate::config::Suppression;
use crate::document::Day;
use crate::inspect::{Finding, Policy};
use crate::rules::{Find, Rule};
use crate::text::shows;

use crate::review::Entry;
use crate::review::rebuilt::Rebuilt;

/// For how long one is proposed.
const DAYS: u64 = 90;
/// What stands for who decided it.
const REASON: &str = "false alarm: say here who decided it, and why";

/// The narrowest suppression with which nothing of the rule is left at the finding's place.
pub(super) fn narrowest(
    rebuilt: &Rebuilt,
    policy: &Policy,
    entry: &Entry,
    rule: &Rule,
    finding: &Finding,
) -> Option<Suppression> {
    let lasting = !matches!(*rule.find, Find::Secret(_) | Find::Personal(_) | Find::Flow(_));
    let whole = Suppression {
        rule: rule.id.as_str().into(),
        upstream: entry.upstream().map(|name| name.as_ref().into()),
        tool: entry.tool().map(|name| name.as_ref().into()),
        argument: finding.argument.clone(),
        at: finding.argument.is_none().then(|| stars(&finding.at).into()),
        sha256: lasting.then(|| finding.evidence.sha256.as_str().into()),
        reason: REASON.into(),
        until: Day::after(SystemTime::now(), DAYS)?,
        place: Default::default(),
    };
    let no_digest = Suppression { sha256: None, ..whole.clone() };
    let no_tool = Suppression { tool: None, ..no_digest.clone() };
    let no_place = Suppression { argument: None, at: None, ..no_digest.clone() };
    [whole, no_digest, no_tool, no_place].into_iter().find(|one| {
        let again = rebuilt.judge(&policy.suppressing(one.clone()), false);
        let mut same = again.inspection.findings.iter().filter(|other| other.rule == finding.rule && other.at == finding.at);
        same.all(|other| other.suppressed.is_some())
    })
}

/// The pointer with a star for each number.
fn stars(at: &str) -> String {
    let step =
        |step: &str| if !step.is_empty() && step.bytes().all(|b| b.is_ascii_digit()) { "*".to_owned() } else { step.to_owned() };
    at.split('/').map(step).collect::<Vec<_>>().join("/")
}

/// As a table of the config.
pub(super) fn written(policy: &str, one: &Suppression) -> String {
    let mut out = format!("[[policy.{policy}.suppress]]\n");
    let names = [
        ("rule", Some(&one.rule)),
        ("upstream", one.upstream.as_ref()),
        ("tool", one.tool.as_ref()),
        ("argument", one.argument.as_ref()),
        ("at", one.at.as_ref()),
        ("sha256", one.sha256.as_ref()),
        ("reason", Some(&one.reason)),
    ];
    for (key, value) in names.iter().filter_map(|(key, value)| Some((key, value.as_ref()?))) {
        out.push_str(&format!("{key} = {}\n", quoted(value)));
    }
    out.push_str(&format!("until = {}\n", one.until.written));
    out
}

/// A basic string of TOML 1.0, in which nothing is unseen.
fn quoted(text: &str) -> String {
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
