//! Commands that a server's text instructs the agent to run, judged as if the agent sent them.

use std::cell::RefCell;
use std::collections::HashMap;

use crate::detect::command::Script;
use crate::detect::{AccessScope, Details, OutboundDetails, Place, ReadAs, Surface, signal};
use crate::rules::{Action, Find, Rule, RuleSet};
use crate::text::Text;

/// Maximum number of different commands of a message that are judged. They are only searched for
/// next to other signs of an attack.
const COMMANDS: usize = 32;

/// How downloads begin that no installer of today uses.
const INSECURE: &str = "http://";

/// The outbound rules, applied to commands in one message from a server.
#[derive(Debug)]
pub(super) struct OrderedCommands<'p> {
    rules: &'p RuleSet,
    ground: &'p AccessScope,
    /// The verdict on each command, by command.
    verdicts: RefCell<HashMap<Box<str>, CommandVerdict<'p>>>,
}

/// What the rules say of a command.
#[derive(Clone, Copy, Debug, Default)]
struct CommandVerdict<'p> {
    /// The rule that refuses it.
    refused_by: Option<&'p str>,
    /// Whether a rule refuses it that documents have no reason to violate.
    is_harmful: bool,
}

impl<'p> OrderedCommands<'p> {
    pub(super) fn new(rules: &'p RuleSet, ground: &'p AccessScope) -> Self {
        Self {
            rules,
            ground,
            verdicts: RefCell::default(),
        }
    }

    fn judge(&self, command: &str) -> CommandVerdict<'p> {
        let script = Script::new(command, ReadAs::Shell).with_programs(self.rules.programs());
        let place = Place {
            surface: Surface::Arguments,
            tool: Some("run_command"),
            details: Details::Outbound(OutboundDetails {
                argument: Some("command"),
                read_as: ReadAs::Shell,
                script: Some(&script),
                ..OutboundDetails::default()
            }),
            scope: Some(self.ground),
            ..Place::default()
        };
        let mut matches = Vec::new();
        self.rules.scan(&Text::new(command), &place, &mut matches);
        let rules = matches
            .iter()
            .filter_map(|found| self.rules.rules().get(found.rule));
        let refusing: Vec<&Rule> = rules
            .map(AsRef::as_ref)
            .filter(|rule: &&Rule| {
                rule.action == Action::Block && matches!(*rule.find, Find::Command(_))
            })
            .collect();
        let strongest = refusing.iter().max_by_key(|rule| rule.severity);
        CommandVerdict {
            refused_by: strongest.map(|rule| rule.id.as_str()),
            is_harmful: refusing
                .iter()
                .any(|rule| !rule.usual_in_documents || command.contains(INSECURE)),
        }
    }

    /// Returns the verdict on a command. Beyond the maximum number of commands none is refused.
    fn verdict(&self, command: &str) -> CommandVerdict<'p> {
        if let Some(known) = self.verdicts.borrow().get(command) {
            return *known;
        }
        if self.verdicts.borrow().len() >= COMMANDS {
            return CommandVerdict::default();
        }
        let verdict = self.judge(command);
        self.verdicts.borrow_mut().insert(command.into(), verdict);
        verdict
    }
}

impl signal::OrderedCommands for OrderedCommands<'_> {
    fn refusing_rule(&self, command: &str) -> Option<&str> {
        self.verdict(command).refused_by
    }

    fn is_harmful(&self, command: &str) -> bool {
        self.verdict(command).is_harmful
    }

    fn refusing_rule_at_end(&self, passage: &str) -> Option<&str> {
        self.verdicts
            .borrow()
            .iter()
            .find(|(command, _)| passage.ends_with(&***command))
            .and_then(|(_, verdict)| verdict.refused_by)
    }
}
