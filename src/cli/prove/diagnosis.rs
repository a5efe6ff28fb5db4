//! Explains why a canary was not caught, by comparing the findings of the current policy with those
//! of the shipped one.

use serde_json::Value;

use super::trial::Outcome;
use crate::config::{Config, PlacesConfig, PolicyConfig};
use crate::inspect::Policy;
use crate::listen::prove::verdicts;
use crate::protocol::UpstreamName;
use crate::rules::Library;
use crate::upstream::canary::Canary;

/// Maximum number of rules that are named.
const MAX_NAMED_RULES: usize = 3;

/// Explains the outcomes of canaries.
pub(super) struct Diagnosis<'c> {
    config: Option<&'c Config>,
    /// The verdicts of the shipped policy on the canaries, computed on first use.
    shipped: Option<Value>,
}

impl<'c> Diagnosis<'c> {
    pub(super) fn new(config: Option<&'c Config>) -> Self {
        Self {
            config,
            shipped: None,
        }
    }

    /// Explains the outcome of a canary at an upstream.
    pub(super) fn diagnose(
        &mut self,
        canary: &Canary,
        outcome: Outcome,
        upstream: &str,
        verdicts: &Value,
        response: &str,
    ) -> String {
        let word = |key: &str| {
            verdicts
                .get(key)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let policy = word("policy");
        let acting_rules: Vec<&str> = find_acting_rules(verdicts, canary);
        if outcome == Outcome::Disturbed {
            return match acting_rules.as_slice() {
                [] => format!(
                    "no rule of policy `{policy}` explains this; the gate's answer: {}",
                    first_line(response)
                ),
                rules => format!("matched in policy `{policy}`: {}", list_rules(rules)),
            };
        }
        if !acting_rules.is_empty() {
            let rules = list_rules(&acting_rules);
            if word("mode") == "observe" {
                return format!("observe mode; in enforce mode it would be caught by {rules}");
            }
            return format!(
                "{rules} should have acted: the gate does not follow its policy (a bug: please report it)"
            );
        }
        if let Some((rule, until)) = find_suppressed(verdicts, canary) {
            return format!(
                "`{rule}` found it; a `[[policy.{policy}.suppress]]` lets it pass until {until}"
            );
        }
        let side = if canary.is_outbound() {
            "outbound"
        } else {
            "inbound"
        };
        let in_force = |rule: &str| {
            verdicts
                .get(side)
                .and_then(|rules| rules.get(rule))
                .and_then(Value::as_str)
        };
        let shipped = self.shipped_verdicts().clone();
        let rules = self::find_acting_rules(&shipped, canary);
        let reasons: Vec<String> = rules
            .iter()
            .take(MAX_NAMED_RULES)
            .map(|rule| match in_force(rule) {
                None => format!(
                    "`{rule}` is not in force ({})",
                    self.explain_disabled(policy, rule)
                ),
                Some("log") => format!("`{rule}` only logs (`[policy.{policy}.override]`)"),
                Some(_) => {
                    format!(
                        "`{rule}` is in force, but does not inspect this location ({})",
                        self.explain_not_inspected(upstream, policy)
                    )
                }
            })
            .collect();
        match reasons.is_empty() {
            true => "no built-in rule of this version covers it".to_owned(),
            false => reasons.join("; "),
        }
    }

    /// Explains why a rule is not in effect, according to the available config.
    fn explain_disabled(&self, policy: &str, rule: &str) -> String {
        let Some(config) = self.config.and_then(|config| config.policies.get(policy)) else {
            return format!(
                "disabled by `override`, `packs`, `profile` or `rules` of `[policy.{policy}]`"
            );
        };
        let switched_off =
            config.overrides.get(rule).and_then(|change| change.enabled) == Some(false);
        let packs: Vec<String> = config
            .packs
            .iter()
            .filter(|(_, on)| !**on)
            .map(|(pack, _)| format!("`{pack}`"))
            .collect();
        match (switched_off, config.builtin, packs.as_slice()) {
            (true, ..) => format!(
                "`[policy.{policy}.override]` contains `\"{rule}\" = {{ enabled = false }}`"
            ),
            (_, false, _) => {
                format!("`rules` of `[policy.{policy}]` does not contain `\"builtin\"`")
            }
            (_, _, []) => {
                format!(
                    "a rule of the same id in `rules` of `[policy.{policy}]` replaces it, or the file was changed since"
                )
            }
            (_, _, packs) => format!("`[policy.{policy}]` disables packs: {}", packs.join(", ")),
        }
    }

    /// Describes what may prevent a rule from inspecting an argument.
    fn explain_not_inspected(&self, upstream: &str, policy: &str) -> String {
        let config = self
            .config
            .and_then(|config| Some((config, config.policies.get(policy)?)));
        let Some((config, policy_config)) = config else {
            return format!(
                "check the argument types, `roots`, `urls` and `suppress` of `[policy.{policy}]`"
            );
        };
        let mut keys: Vec<&str> = Vec::new();
        let key_if = |key, any: bool| any.then_some(key);
        keys.extend(key_if("`text`", !policy_config.text.is_empty()));
        keys.extend(key_if(
            "`roots`",
            config
                .upstreams
                .get(upstream)
                .is_some_and(|upstream| upstream.roots.is_some()),
        ));
        keys.extend(key_if("tables for tools", !policy_config.tools.is_empty()));
        keys.extend(key_if(
            "`urls` or `roots`",
            format!("{:?}", policy_config.places) != format!("{:?}", PlacesConfig::default()),
        ));
        match keys.as_slice() {
            [] => format!("see `[policy.{policy}]`"),
            keys => format!("`[policy.{policy}]` has {}", keys.join(", ")),
        }
    }

    fn shipped_verdicts(&mut self) -> &Value {
        self.shipped.get_or_insert_with(|| {
            let library = Library::load(true, &[]).ok();
            let policy = library.and_then(|library| {
                Policy::new("shipped", &PolicyConfig::default(), &library).ok()
            });
            let names = policy.map(|policy| verdicts(&policy, &UpstreamName("shipped".into())));
            names
                .and_then(|names| serde_json::from_str(&names).ok())
                .unwrap_or_default()
        })
    }
}

/// Returns the findings of a policy in a canary.
pub(super) fn findings<'j>(verdicts: &'j Value, canary: &Canary) -> Vec<&'j Value> {
    let all = verdicts
        .get("canaries")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let this = all.filter(|of| of.get("id").and_then(Value::as_str) == Some(canary.id));
    this.filter_map(|of| of.get("findings")?.as_array())
        .flatten()
        .collect()
}

/// Returns the rule that would act if it were not suppressed, and the end of the suppression.
fn find_suppressed<'j>(verdicts: &'j Value, canary: &Canary) -> Option<(&'j str, &'j str)> {
    let word = |finding: &'j Value, key: &str| finding.get(key)?.as_str();
    findings(verdicts, canary)
        .into_iter()
        .find_map(|finding| Some((word(finding, "rule")?, word(finding, "suppressed_until")?)))
}

/// Returns the rules that act on a canary.
fn find_acting_rules<'j>(verdicts: &'j Value, canary: &Canary) -> Vec<&'j str> {
    let is_acting = |finding: &&Value| {
        finding
            .get("action")
            .and_then(Value::as_str)
            .is_some_and(|action| action != "log")
    };
    let mut rules: Vec<&str> = findings(verdicts, canary)
        .into_iter()
        .filter(is_acting)
        .filter_map(|f| f.get("rule")?.as_str())
        .collect();
    let mut seen = std::collections::HashSet::new();
    rules.retain(|rule| seen.insert(*rule));
    rules
}

fn list_rules(rules: &[&str]) -> String {
    let more = rules.len().saturating_sub(MAX_NAMED_RULES);
    let names: Vec<String> = rules
        .iter()
        .take(MAX_NAMED_RULES)
        .map(|rule| format!("`{rule}`"))
        .collect();
    if more == 0 {
        names.join(", ")
    } else {
        format!("{} and {more} more", names.join(", "))
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
