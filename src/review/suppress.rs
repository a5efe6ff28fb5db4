//! Writes suppressions into a config file, for `lychgate suppress` and the console.

use std::path::Path;
use std::time::SystemTime;

use super::ConfigEdit;
use super::explain::{FindingExplanation, format_tables};
use crate::config::{self, Config, Suppression};
use crate::document::{Day, Fault};
use crate::text::escape_invisible;

/// Maximum length of a reason, in bytes.
const MAX_REASON_BYTES: usize = 500;

/// A reviewer's decision about a false positive.
#[derive(Clone, Debug)]
pub struct Decision {
    reason: Box<str>,
    until: Option<Day>,
}

impl Decision {
    /// Parses a reason and an expiry date.
    ///
    /// # Errors
    /// The reason is empty or too long, or the date is invalid or in the past.
    pub fn read(reason: &str, until: Option<&str>) -> Result<Self, String> {
        let reason = reason.trim();
        if reason.is_empty() || reason.len() > MAX_REASON_BYTES {
            return Err(format!(
                "the reason must be 1 to {MAX_REASON_BYTES} bytes long; include the name of the reviewer"
            ));
        }
        let until = until.map(|text| {
            let day = Day::read(text).ok_or_else(|| {
                format!(
                    "`{}` is not a valid date such as `2027-01-31`",
                    escape_invisible(text)
                )
            })?;
            match day.end > SystemTime::now() {
                true => Ok(day),
                false => Err(format!("the end date {text} is in the past")),
            }
        });
        Ok(Self {
            reason: reason.into(),
            until: until.transpose()?,
        })
    }

    /// Returns the suppressions of these passages, with the reason and the expiry date of the
    /// decision.
    pub fn suppressions<'t>(
        &self,
        passages: impl IntoIterator<Item = &'t FindingExplanation>,
    ) -> Vec<Suppression> {
        let with_decision = |one: &Suppression| Suppression {
            reason: self.reason.clone(),
            until: self.until.clone().unwrap_or_else(|| one.until.clone()),
            ..one.clone()
        };
        passages
            .into_iter()
            .flat_map(|passage| &passage.tables)
            .map(with_decision)
            .collect()
    }
}

/// Adds suppressions to a policy at the end of the config file, under a comment. The rest of the
/// file remains unchanged, byte for byte.
///
/// # Errors
/// The faults in the file, before or after the edit.
pub fn add_suppressions(
    path: &Path,
    policy: &str,
    suppressions: &[Suppression],
    comment: &str,
) -> Result<ConfigEdit, Vec<Fault>> {
    let edit = ConfigEdit::new(path, |before| {
        let end = if before.is_empty() || before.ends_with('\n') {
            ""
        } else {
            "\n"
        };
        Ok(format!(
            "{before}{end}\n# {}\n{}",
            escape_invisible(comment),
            format_tables(policy, suppressions)
        ))
    })?;
    let count = |config: &Config| {
        config
            .policies
            .get(policy)
            .map_or(0, |policy| policy.suppress.len())
    };
    let previous_count = count(&config::load_policies(path)?);
    let config = edit.load()?;
    if !config.policies.contains_key(policy)
        || count(&config) != previous_count + suppressions.len()
    {
        let message = format!("the tables cannot be added to `policy.{policy}`");
        return Err(edit.fault(message, Some("add them by hand")));
    }
    edit.policy(&config, policy)?;
    Ok(edit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suppression(rule: &str) -> Suppression {
        Suppression {
            rules: [rule.into()].into(),
            upstream: None,
            tool: Some("t\"\u{1b}".into()),
            argument: None,
            at: [].into(),
            sha256: [].into(),
            reason: "because".into(),
            until: Day::after(SystemTime::now(), 30).unwrap(),
            place: Default::default(),
        }
    }

    fn edited(text: &str, rule: &str) -> Result<String, Vec<Fault>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gate.toml");
        std::fs::write(&path, text).unwrap();
        let edit = add_suppressions(&path, "default", &[suppression(rule)], "by ada\n[listen]")?;
        edit.write().unwrap();
        let after = std::fs::read_to_string(&path).unwrap();
        let config = config::load_policies(&path).unwrap();
        assert_eq!(
            config.policies["default"].suppress.last().unwrap().tool,
            suppression(rule).tool
        );
        Ok(after)
    }

    #[test]
    fn suppressions_are_added_and_nothing_else_is_changed() {
        for before in [
            "",
            "# mine",
            "[policy.default]\nmode = \"enforce\"   # stays\n\n[limits]\n",
            "policy.default.mode = \"enforce\"\n",
            "[[policy.default.suppress]]\nrule = \"delete-tree\"\nreason = \"r\"\nuntil = 2026-01-01\n[limits]\n",
        ] {
            let after =
                edited(before, "fork-bomb").unwrap_or_else(|faults| panic!("{before}: {faults:?}"));
            assert!(
                after.starts_with(before)
                    && after.contains("\n# by ada\\n[listen]\n[[policy.default.suppress]]\n"),
                "{after}"
            );
        }
    }

    #[test]
    fn a_file_that_would_not_load_is_not_written() {
        let fault_of =
            |text: &str, rule: &str| edited(text, rule).unwrap_err().remove(0).to_string();
        assert!(fault_of("", "no-such-rule").contains("there is no rule `no-such-rule`"));
        assert_contains!(
            fault_of("[policy]\ndefault = { mode = \"enforce\" }\n", "fork-bomb"),
            "gate.toml:"
        );
        assert!(fault_of("colour = 1\n", "fork-bomb").contains("unknown key `colour`"));
        assert!(fault_of("[policy.default]\nsuppress = []\n", "fork-bomb").contains("gate.toml:"));
    }

    #[test]
    fn a_decision_has_a_reason_and_a_day_to_come() {
        assert!(
            Decision::read("ada: a joke", None).is_ok()
                && Decision::read("x", Some("2999-01-31")).is_ok()
        );
        for (reason, until, why) in [
            (" ", None, "name of the reviewer"),
            ("x", Some("2020-01-31"), "in the past"),
            ("x", Some("31.01.2027"), "is not a valid date"),
        ] {
            let message = Decision::read(reason, until).unwrap_err();
            assert!(message.contains(why), "{message}");
        }
        assert!(Decision::read(&"x".repeat(501), None).is_err());
    }
}
