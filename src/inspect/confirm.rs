//! Calls that require approval by policy, whatever the rules find: the first write of a session, or
//! the use of a tool.

use crate::config::{AskTool, PolicyConfig, Scope};
use crate::message::{Direction, Envelope, Message};
use crate::rules::{RuleId, Severity};
use crate::text::glob_matches;

use super::tools::Definition;
use super::{InspectContext, Question};

/// Used instead of a rule id if the first write of a session requires approval.
pub const FIRST_WRITE: &str = "confirm-first-write";
/// Used instead of a rule id if the first use of a tool in a session requires approval.
pub const FIRST_USE: &str = "confirm-first-use";
/// Used instead of a rule id if each use of a tool requires approval.
pub const EVERY_USE: &str = "confirm-every-use";

/// The settings of a policy.
#[derive(Clone, Debug)]
pub(super) struct Confirm {
    first_write: bool,
    through_agent: bool,
    /// By tool glob, most specific first.
    tools: Vec<(String, AskTool)>,
}

impl Confirm {
    pub(super) fn new(config: &PolicyConfig) -> Self {
        let tools = config
            .tools
            .iter()
            .filter_map(|(glob, tool)| Some((glob.clone(), tool.ask?)));
        let first_write = config.confirm_first_write;
        let through_agent = config.through_agent;
        Self {
            first_write,
            through_agent,
            tools: tools.collect(),
        }
    }

    /// Returns the question of the rules, if there is one, extended by the approval that the policy
    /// itself requires for a call.
    pub(super) fn add(
        &self,
        question: Option<Question>,
        direction: Direction,
        message: &Message,
        envelope: &Envelope,
        item: usize,
        context: &InspectContext,
    ) -> Option<Question> {
        if direction == Direction::Inbound || (!self.first_write && self.tools.is_empty()) {
            return question;
        }
        let body = message
            .body(envelope)
            .filter(|_| envelope.method() == Some("tools/call"));
        let Some(tool) = body.and_then(|body| body.get_str("name")) else {
            return question;
        };
        let Some((name, title, why)) = self.reason(&tool, context) else {
            return question;
        };
        let rule_id = RuleId::new(name);
        Some(match question {
            Some(mut question) => {
                question.rules.push(rule_id);
                if name == EVERY_USE {
                    question.scopes = vec![Scope::Once];
                }
                question
            }
            None => {
                let scopes = vec![if name == EVERY_USE {
                    Scope::Once
                } else {
                    Scope::Session
                }];
                let title = title.into();
                let why = why.into();
                let through_agent = self.through_agent;
                let rules = vec![rule_id];
                let severity = Severity::Medium;
                let private = Vec::new();
                Question {
                    item,
                    rules,
                    title,
                    why,
                    severity,
                    scopes,
                    through_agent,
                    private,
                }
            }
        })
    }

    fn reason(
        &self,
        tool: &str,
        context: &InspectContext,
    ) -> Option<(&'static str, &'static str, &'static str)> {
        let setting = self
            .tools
            .iter()
            .find(|(glob, _)| glob_matches(glob, tool))
            .map(|(_, ask)| *ask);
        let definition = || {
            context
                .tools
                .as_ref()
                .and_then(|tools| tools.definition(tool))
        };
        match setting {
            Some(AskTool::Never) => None,
            Some(AskTool::Always) => Some((
                EVERY_USE,
                "A tool whose every use is confirmed",
                "The policy has a person confirm each use of this tool.",
            )),
            Some(AskTool::First) => Some((
                FIRST_USE,
                "The first use of this tool in the session",
                "The policy has a person confirm the first use; later ones pass without a question.",
            )),
            None if self.first_write && writes(tool, definition().as_deref()) => Some((
                FIRST_WRITE,
                "The first write of the session",
                "The policy has a person confirm the first call that may change something; later ones pass without a question.",
            )),
            None => None,
        }
    }
}

/// Returns whether a tool may change something: by its annotations, or else by its name. If neither
/// is conclusive, it counts as writing.
fn writes(tool: &str, definition: Option<&Definition>) -> bool {
    definition
        .and_then(|definition| definition.only_reads)
        .map_or_else(|| !reads_by_name(tool), |only_reads| !only_reads)
}

/// Verbs of read-only tools.
const READS: [&str; 30] = [
    "browse",
    "check",
    "count",
    "describe",
    "diff",
    "fetch",
    "find",
    "get",
    "glob",
    "grep",
    "head",
    "inspect",
    "list",
    "lookup",
    "ls",
    "peek",
    "preview",
    "read",
    "retrieve",
    "search",
    "show",
    "stat",
    "status",
    "summarize",
    "tail",
    "tree",
    "validate",
    "view",
    "whoami",
    "who",
];

/// Returns whether the first verb of a tool's name is read-only and no other follows it
/// (`get_or_create`).
fn reads_by_name(tool: &str) -> bool {
    let words = words(tool);
    let mut verbs = words.iter().map(|word| READS.contains(&word.as_str()));
    let has_conjunction = words
        .iter()
        .any(|word| matches!(word.as_str(), "and" | "or" | "then"));
    // The name of a server often precedes the verb: `github_list_issues`.
    match words.len() {
        0 => false,
        1 => verbs.next() == Some(true),
        _ => {
            !has_conjunction
                && verbs.take(2).any(|reads| reads)
                && !words
                    .iter()
                    .take(1)
                    .any(|word| WRITES.contains(&word.as_str()))
        }
    }
}

/// Verbs that change something even if a read-only verb follows them (`run_check`,
/// `delete_search`).
const WRITES: [&str; 20] = [
    "add", "apply", "create", "delete", "edit", "exec", "execute", "insert", "move", "patch",
    "post", "put", "remove", "rename", "run", "send", "set", "start", "update", "write",
];

/// Splits a name into words in lower case: at characters other than letters and digits, and before
/// capitals.
fn words(name: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut fresh = true;
    let mut before_is_lower = false;
    for c in name.chars() {
        if !c.is_ascii_alphanumeric() {
            (fresh, before_is_lower) = (true, false);
            continue;
        }
        if fresh || (c.is_ascii_uppercase() && before_is_lower) {
            out.push(String::new());
        }
        if let Some(word) = out.last_mut() {
            word.push(c.to_ascii_lowercase());
        }
        (fresh, before_is_lower) = (false, c.is_ascii_lowercase() || c.is_ascii_digit());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ToolConfig;

    #[test]
    fn names_tell_what_only_looks() {
        let readers =
            "read_file listIssues github_search_code get-post slack.list_channels search fetchURL";
        for name in readers.split(' ') {
            assert!(reads_by_name(name), "{name}");
        }
        let others = "write_file get_or_create_user run_check post_message query deploy delete_search \
            moveFile";
        for name in others.split(' ').chain([""]) {
            assert!(!reads_by_name(name), "{name}");
        }
    }

    #[test]
    fn the_nearest_setting_of_a_tool_wins_over_the_first_write() {
        let tool = |ask| ToolConfig {
            ask: Some(ask),
            ..ToolConfig::default()
        };
        let config = PolicyConfig {
            confirm_first_write: true,
            tools: vec![
                ("send_mail".into(), tool(AskTool::Always)),
                ("note".into(), tool(AskTool::Never)),
                ("send_*".into(), tool(AskTool::First)),
            ],
            ..PolicyConfig::default()
        };
        let confirm = Confirm::new(&config);
        let asked = |tool: &str| {
            confirm
                .reason(tool, &InspectContext::default())
                .map(|(name, ..)| name)
        };
        assert_eq!(asked("send_mail"), Some(EVERY_USE));
        assert_eq!(asked("send_fax"), Some(FIRST_USE));
        assert_eq!(asked("note"), None);
        assert_eq!(asked("write_file"), Some(FIRST_WRITE));
        assert_eq!(asked("read_file"), None);
    }
}
