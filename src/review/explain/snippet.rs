//! Suppressions of one finding, as narrow as works.

use std::time::SystemTime;

use crate::config::Suppression;
use crate::document::Day;
use crate::inspect::{Finding, Policy};
use crate::rules::{Find, Rule};
use crate::text::{shows, visible};

use crate::review::Entry;
use crate::review::rebuilt::Rebuilt;

/// For how long one is proposed.
const DAYS: u64 = 90;
/// For how many passages at one place one is proposed.
const PASSAGES: usize = 8;
/// What stands for who decided it.
const REASON: &str = "false alarm: say here who decided it, and why";

/// What is proposed about what a rule found at one place.
pub(super) struct Proposed {
    /// Each as narrow as works. With all of them nothing of the rule is left there, unless there is `more`.
    pub(super) all: Vec<Suppression>,
    /// Whether the rule matched still other passages there.
    pub(super) more: bool,
}

/// The narrowest suppressions with which nothing of the rule is left at the finding's place: one for each passage that it
/// matched there. Only where no digest helps there is one without, which is wider.
pub(super) fn narrowest(rebuilt: &Rebuilt, policy: &Policy, entry: &Entry, rule: &Rule, finding: &Finding) -> Option<Proposed> {
    let wide = Suppression {
        rule: rule.id.as_str().into(),
        upstream: entry.upstream().map(|name| name.as_ref().into()),
        tool: entry.tool().map(|name| name.as_ref().into()),
        argument: finding.argument.clone(),
        at: finding.argument.is_none().then(|| stars(&finding.at).into()),
        sha256: None,
        reason: REASON.into(),
        until: Day::after(SystemTime::now(), DAYS)?,
        place: Default::default(),
    };
    let no_tool = Suppression { tool: None, ..wide.clone() };
    let no_place = Suppression { argument: None, at: None, ..wide.clone() };
    let ways = [wide, no_tool, no_place];
    // What is left of the rule at the place, with these.
    let left = |policy: &Policy| {
        let again = rebuilt.judge(policy, false).inspection.findings;
        again.into_iter().find(|other| other.rule == finding.rule && other.at == finding.at && other.suppressed.is_none())
    };
    let lasting = !matches!(*rule.find, Find::Secret(_) | Find::Personal(_) | Find::Flow(_));
    let one_by_one = |way: &Suppression| {
        let (mut policy, mut all) = (policy.clone(), Vec::<Suppression>::new());
        while let Some(left) = left(&policy) {
            let digest = Some(left.evidence.sha256.into());
            if all.iter().any(|one| one.sha256 == digest) {
                return None;
            }
            if all.len() == PASSAGES {
                return Some(Proposed { all, more: true });
            }
            let one = Suppression { sha256: digest, ..way.clone() };
            policy = policy.suppressing(one.clone());
            all.push(one);
        }
        Some(Proposed { all, more: false })
    };
    let at_once = |way: &Suppression| {
        left(&policy.suppressing(way.clone())).is_none().then(|| Proposed { all: vec![way.clone()], more: false })
    };
    let with_digests = lasting.then(|| ways.iter().find_map(one_by_one)).flatten();
    with_digests.or_else(|| ways.iter().find_map(at_once))
}

impl Proposed {
    /// What would pass with it, so that nobody takes it for narrower than it is. `lacks` where the text was not had as it was.
    pub(super) fn covers(&self, lacks: bool) -> String {
        let Some(first) = self.all.first() else { return String::new() };
        let names = [("argument", &first.argument), ("place", &first.at), ("tool", &first.tool), ("upstream", &first.upstream)];
        let names: Vec<String> =
            names.iter().filter_map(|(what, name)| Some(format!("{what} `{}`", visible(name.as_deref()?)))).collect();
        let there = if names.is_empty() { "anywhere".to_owned() } else { format!("there ({})", names.join(" of ")) };
        let rule = &first.rule;
        if first.sha256.is_none() {
            return format!(
                "no digest fits what `{rule}` found, so it is wide: whatever else that rule finds {there} passes it too"
            );
        }
        let mut out = match self.all.len() {
            1 => "the digest is of the passage that matched alone, not of the whole text".to_owned(),
            n => format!("{n} passages matched, one table each; a digest is of its passage alone, not of the whole text"),
        };
        out += &format!(": whatever other text holds the same passage {there} passes `{rule}` too");
        if self.more {
            out += &format!(
                ". It matched more than these {PASSAGES} passages, and the rest are left out: it still finds something here. One \
                 table without `sha256` would cover all of them, and be wider: whatever else the rule finds {there}"
            );
        }
        if lacks {
            out += ". The digest is of what the log shows: where that is masked or cut within the passage, it does not fit what was sent";
        }
        out
    }
}

/// The pointer with a star for each number.
fn stars(at: &str) -> String {
    let step =
        |step: &str| if !step.is_empty() && step.bytes().all(|b| b.is_ascii_digit()) { "*".to_owned() } else { step.to_owned() };
    at.split('/').map(step).collect::<Vec<_>>().join("/")
}

/// As tables of the config.
pub(super) fn written(policy: &str, proposed: &Proposed) -> String {
    proposed.all.iter().map(|one| table(policy, one)).collect::<Vec<_>>().join("\n")
}

fn table(policy: &str, one: &Suppression) -> String {
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
