//! Arguments in which a policy lets queries pass and nothing else: `sql_read_only`.

use crate::config::PolicyConfig;
use crate::document::Fault;
use crate::rules::{Find, RuleSet};
use crate::text::glob_fits;

/// Whose arguments they are and what they are called, globs both.
#[derive(Clone, Debug, Default)]
pub(super) struct ReadOnly(Vec<(String, String)>);

impl ReadOnly {
    /// Those of a policy.
    ///
    /// # Errors
    /// Arguments are named, and no rule in force would keep them to queries.
    pub(super) fn new(name: &str, config: &PolicyConfig, rules: &RuleSet) -> Result<Self, Vec<Fault>> {
        let keeps = |find: &Find| matches!(find, Find::Sql(sql) if sql.keeps_to_reading());
        if !config.sql_read_only.is_empty() && !rules.rules().iter().any(|rule| keeps(&rule.find)) {
            let message = format!("`policy.{name}` names arguments in `sql_read_only`, and no rule keeps them to queries");
            let hint = "leave the built-in rule `sql-read-only` switched on, or take the key away";
            return Err(vec![Fault::of_file("policy", message, Some(hint))]);
        }
        // `tool.argument` at each point, for either name may hold one.
        let split = |written: &String| {
            let at = |(at, _)| Some((written.get(..at)?.to_owned(), written.get(at + 1..)?.to_owned()));
            written.match_indices('.').filter_map(at).collect::<Vec<_>>()
        };
        Ok(Self(config.sql_read_only.iter().flat_map(split).collect()))
    }

    /// Whether only queries may pass in this argument.
    pub(super) fn covers(&self, tool: &str, argument: &str) -> bool {
        self.0.iter().any(|(tools, arguments)| glob_fits(tools, tool) && glob_fits(arguments, argument))
    }
}
