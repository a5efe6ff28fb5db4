//! Writes to a config file whether a policy hides a tool, for the console.

use std::path::Path;

use super::ConfigEdit;
use super::set_key::{header, set_key};
use crate::document::Fault;
use crate::inspect::Mode;
use crate::text::escape_invisible;

/// Whether agents can list and call a tool.
#[derive(Clone, Debug)]
pub struct ToolVisibility {
    /// The policy that contains the setting.
    pub policy: String,
    /// The upstreams with this policy, in order: the tool of this name is hidden or shown for all
    /// of them.
    pub upstreams: Vec<String>,
    pub tool: String,
    pub hidden: bool,
}

impl ToolVisibility {
    /// Returns the lines to add by hand; `None` for a name that the config would read as a pattern.
    pub fn lines(&self) -> Option<String> {
        let path = ["policy", &self.policy, "tool", &self.tool];
        (!self.is_pattern()).then(|| format!("{}\nhidden = {}\n", header(&path), self.hidden))
    }

    /// Sets `hidden` in the tool's own table, which takes precedence over patterns. If there is no
    /// such table, it is added under a comment; the rest of the file remains unchanged, byte for
    /// byte.
    ///
    /// # Errors
    /// The file cannot be edited in place, would not load, or has different upstreams for the
    /// policy.
    pub fn edit(&self, path: &Path, comment: &str) -> Result<ConfigEdit, Vec<Fault>> {
        let keys = ["policy", &self.policy, "tool", &self.tool, "hidden"];
        let edit = ConfigEdit::new(path, |before| match self.is_pattern() {
            true => Err("the tool name contains `*`, which is a pattern in the config".to_owned()),
            false => set_key(before, &keys, self.hidden, &escape_invisible(comment)),
        })?;
        let config = edit.load()?;
        let has_policy = |(name, upstream): (&String, &crate::config::UpstreamConfig)| {
            (upstream.policy == self.policy).then(|| name.clone())
        };
        let upstreams: Vec<String> = config.upstreams.iter().filter_map(has_policy).collect();
        if upstreams != self.upstreams {
            let message = format!(
                "the upstreams with policy `{}` differ between the file and the running gate",
                self.policy
            );
            return Err(edit.fault(
                message,
                Some("wait until the gate has reloaded the file, and try again"),
            ));
        }
        let policy = edit.policy(&config, &self.policy)?.with_mode(Mode::Enforce);
        if policy.hides(&self.tool) != self.hidden {
            return Err(edit.fault(
                "the edit would have no effect on the tool".to_owned(),
                Some("edit the file by hand"),
            ));
        }
        Ok(edit)
    }

    fn is_pattern(&self) -> bool {
        self.tool.contains('*')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UPSTREAMS: &str = "[upstream.a]\nhttp = { url = \"https://a.example/mcp\" }\n\n\
                             [upstream.b]\nhttp = { url = \"https://b.example/mcp\" }\npolicy = \"strict\"\n";

    fn visibility(policy: &str, upstream: &str, tool: &str, hidden: bool) -> ToolVisibility {
        ToolVisibility {
            policy: policy.to_owned(),
            upstreams: vec![upstream.to_owned()],
            tool: tool.to_owned(),
            hidden,
        }
    }

    fn edited(text: &str, setting: &ToolVisibility) -> Result<String, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gate.toml");
        std::fs::write(&path, text).unwrap();
        let faults = |faults: Vec<Fault>| {
            faults
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join("; ")
        };
        setting
            .edit(&path, "lychgate console: 2026-11-23, by console\n[listen]")
            .map_err(faults)?
            .write()
            .unwrap();
        let config = crate::config::load(&path).unwrap();
        let after = config.policies[&setting.policy]
            .tool_settings(&setting.tool)
            .find_map(|tool| tool.hidden);
        assert_eq!(after, Some(setting.hidden));
        Ok(std::fs::read_to_string(&path).unwrap())
    }

    #[test]
    fn a_table_is_added_for_a_policy_that_the_file_does_not_name() {
        let text = format!("{UPSTREAMS}[policy.strict]\nprofile = \"strict\"\n");
        let after = edited(&text, &visibility("default", "a", "read.all", true)).unwrap();
        let table = "[policy.default.tool.\"read.all\"]\nhidden = true\n";
        let comment = "# lychgate console: 2026-11-23, by console\\n[listen]\n";
        assert_eq!(after, format!("{text}\n{comment}{table}"));
        assert_eq!(
            visibility("default", "a", "read.all", true)
                .lines()
                .as_deref(),
            Some(table)
        );
        assert_eq!(visibility("default", "a", "read_*", true).lines(), None);
    }

    #[test]
    fn the_name_of_a_tool_counts_before_patterns() {
        let text = format!(
            "{UPSTREAMS}[policy.strict.tool.\"*\"]\nhidden = true\n[policy.strict.tool.\"db_*\"]\nhidden = false\n"
        );
        for (tool, hidden) in [("mail", false), ("db_drop", true)] {
            assert!(
                edited(&text, &visibility("strict", "b", tool, hidden))
                    .unwrap()
                    .starts_with(&text)
            );
        }
    }

    #[test]
    fn an_edit_that_is_not_safe_is_refused() {
        let text = format!("{UPSTREAMS}[policy.strict]\n");
        for (text, wanted, why) in [
            (
                text.as_str(),
                visibility("strict", "b", "db_*", true),
                "contains `*`",
            ),
            (
                &text,
                visibility("strict", "a", "mail", true),
                "the upstreams with policy `strict`",
            ),
            (
                &text,
                visibility("none", "a", "mail", true),
                "the upstreams with policy `none`",
            ),
            (
                "colour = 1\n",
                visibility("default", "a", "mail", true),
                "unknown key `colour`",
            ),
            (
                "[policy\n",
                visibility("default", "a", "mail", true),
                "gate.toml: ",
            ),
            (
                "[policy.default.tool.mail]\nhidden = 1\n",
                visibility("default", "a", "mail", true),
                "cannot be set in place",
            ),
        ] {
            let message = edited(text, &wanted).unwrap_err();
            assert!(message.contains(why), "{message}");
        }
    }
}
