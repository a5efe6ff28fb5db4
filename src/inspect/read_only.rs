//! Arguments that a policy restricts to queries: `sql_read_only`.

use crate::config::PolicyConfig;
use crate::detect::ReadAs;
use crate::document::Fault;
use crate::message::Role;
use crate::rules::{Find, RuleSet};
use crate::text::glob_matches;

use super::arguments::{Unit, Units};

/// The restricted arguments.
#[derive(Clone, Debug, Default)]
pub(super) struct ReadOnly {
    /// Tool and argument, both as globs.
    arguments: Vec<(String, String)>,
    /// Whether all SQL of a tool is restricted, by tool glob, most specific first.
    tools: Vec<(String, bool)>,
}

/// The restrictions for one call.
pub(super) struct CallRestrictions<'r> {
    arguments: &'r [(String, String)],
    tool: &'r str,
    whole_tool: bool,
    /// Whether nothing in the call is known to be SQL: then everything that may be SQL is
    /// restricted.
    all: bool,
}

impl ReadOnly {
    /// Reads the restrictions of a policy.
    ///
    /// # Errors
    /// Arguments are named, and no rule in force would restrict them to queries.
    pub(super) fn new(
        name: &str,
        config: &PolicyConfig,
        rules: &RuleSet,
    ) -> Result<Self, Vec<Fault>> {
        let restricts = |find: &Find| matches!(find, Find::Sql(sql) if sql.restricts_to_reading());
        let tools: Vec<_> = config
            .tools
            .iter()
            .filter_map(|(glob, tool)| Some((glob.clone(), tool.sql_read_only?)))
            .collect();
        let is_used = !config.sql_read_only.is_empty() || tools.iter().any(|(_, only)| *only);
        if is_used && !rules.rules().iter().any(|rule| restricts(&rule.find)) {
            let message = format!(
                "`policy.{name}` says `sql_read_only`, and no rule keeps anything to queries"
            );
            let hint = "leave the built-in rule `sql-read-only` switched on, or take the key away";
            return Err(vec![Fault::of_file("policy", message, Some(hint))]);
        }
        // `tool.argument`, split at each dot, since either name may contain one.
        let split = |dotted: &String| {
            let at = |(at, _)| {
                Some((
                    dotted.get(..at)?.to_owned(),
                    dotted.get(at + 1..)?.to_owned(),
                ))
            };
            dotted.match_indices('.').filter_map(at).collect::<Vec<_>>()
        };
        Ok(Self {
            arguments: config.sql_read_only.iter().flat_map(split).collect(),
            tools,
        })
    }

    /// Returns the restrictions for one call.
    pub(super) fn for_call<'r>(&'r self, tool: &'r str, units: &Units<'_>) -> CallRestrictions<'r> {
        let whole_tool = self
            .tools
            .iter()
            .find(|(glob, _)| glob_matches(glob, tool))
            .is_some_and(|(_, only)| *only);
        let all = whole_tool && !units.units.iter().any(|unit| unit.read_as == ReadAs::Sql);
        CallRestrictions {
            arguments: &self.arguments,
            tool,
            whole_tool,
            all,
        }
    }
}

impl CallRestrictions<'_> {
    /// Returns whether only queries are allowed in this argument.
    pub(super) fn covers(&self, unit: &Unit<'_>) -> bool {
        let is_restricted = |(tool, argument): &(String, String)| {
            glob_matches(tool, self.tool) && glob_matches(argument, &unit.argument)
        };
        // A name or a number is not a statement.
        let words = || {
            unit.text
                .contains(|c: char| c.is_whitespace() || matches!(c, '(' | ';'))
        };
        let may_be_sql = match unit.read_as {
            ReadAs::Sql => true,
            ReadAs::Path | ReadAs::Url => false,
            _ => self.all && unit.role == Role::Value && words(),
        };
        // The name of an argument is not a statement either.
        self.whole_tool && may_be_sql
            || unit.role == Role::Value && self.arguments.iter().any(is_restricted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ToolConfig;
    use crate::inspect::tests::{call, inspect};
    use crate::inspect::{Policy, Verdict};
    use crate::message::Direction;
    use crate::rules::Library;

    fn config(tools: &[(&str, bool)]) -> PolicyConfig {
        let of_tool = |only| ToolConfig {
            sql_read_only: Some(only),
            ..ToolConfig::default()
        };
        let tools = tools
            .iter()
            .map(|(glob, only)| ((*glob).to_owned(), of_tool(*only)))
            .collect();
        PolicyConfig {
            tools,
            ..PolicyConfig::default()
        }
    }

    /// Returns whether a call passes, by tool and arguments.
    fn passes(config: &PolicyConfig) -> impl Fn(&str, &str) -> bool + use<> {
        let policy = Policy::new("p", config, &Library::load(true, &[]).unwrap()).unwrap();
        move |tool, arguments| {
            let call = call(tool, arguments);
            let verdict = inspect(&policy, Direction::Outbound, &call).verdict;
            !matches!(verdict, Verdict::Block(_))
        }
    }

    const UPDATE: &str = r#"{"sql":"UPDATE t SET a = 1 WHERE b = 1"}"#;

    #[test]
    fn an_argument_of_which_only_queries_are_wanted_takes_nothing_else() {
        let passes = passes(&PolicyConfig {
            sql_read_only: vec!["query.sql".into()],
            ..PolicyConfig::default()
        });
        for (tool, arguments, fine) in [
            ("query", r#"{"sql":"SELECT 1"}"#, true),
            (
                "query",
                r#"{"sql":["SELECT a FROM t","SHOW TABLES"],"limit":5}"#,
                true,
            ),
            ("query", UPDATE, false),
            ("query", r#"{"sql":"SELECT 1; DROP TABLE t"}"#, false),
            ("query", &UPDATE.replace("sql", "other"), true),
            ("admin", UPDATE, true),
        ] {
            assert_eq!(passes(tool, arguments), fine, "{tool} {arguments}");
        }
    }

    #[test]
    fn tools_of_which_only_queries_are_wanted_take_nothing_else() {
        let passes = passes(&config(&[("db_admin", false), ("db_*", true)]));
        for (tool, arguments, fine) in [
            ("db_query", r#"{"sql":"SELECT a FROM t WHERE b = 1"}"#, true),
            ("db_query", UPDATE, false),
            (
                "db_query",
                r#"{"sql":"SELECT 1","database":"main","reason":"to see how many there are"}"#,
                true,
            ),
            ("db_query", r#"{"q":"insert into t values (1)"}"#, false),
            ("db_query", r#"{"q":"select 1; drop table t"}"#, false),
            ("db_tables", r#"{"database":"main","limit":10}"#, true),
            ("db_admin", UPDATE, true),
            ("other", UPDATE, true),
        ] {
            assert_eq!(passes(tool, arguments), fine, "{tool} {arguments}");
        }
    }

    #[test]
    fn somebody_must_keep_them_to_it() {
        let mut config = config(&[("db_*", true)]);
        config.builtin = false;
        assert!(Policy::new("p", &config, &Library::load(false, &[]).unwrap()).is_err());
    }
}
