//! Commands that a server's text instructs the agent to run, judged as if the agent sent them.

use std::cell::RefCell;
use std::collections::HashMap;

use crate::detect::command::Script;
use crate::detect::{AccessScope, Details, OutboundDetails, Place, ReadAs, Surface, signal};
use crate::rules::{Action, Find, RuleSet};
use crate::text::Text;

/// Maximum number of different commands of a message that are judged. They are only searched for
/// next to other signs of an attack.
const COMMANDS: usize = 32;

/// The outbound rules, applied to commands in one message from a server.
#[derive(Debug)]
pub(super) struct OrderedCommands<'p> {
    rules: &'p RuleSet,
    ground: &'p AccessScope,
    /// The rule that refuses each command, by command.
    refusing_rules: RefCell<HashMap<Box<str>, Option<&'p str>>>,
}

impl<'p> OrderedCommands<'p> {
    pub(super) fn new(rules: &'p RuleSet, ground: &'p AccessScope) -> Self {
        Self {
            rules,
            ground,
            refusing_rules: RefCell::default(),
        }
    }

    fn judge(&self, command: &str) -> Option<&'p str> {
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
        let refusing = rules
            .filter(|rule| rule.action == Action::Block && matches!(*rule.find, Find::Command(_)));
        refusing
            .max_by_key(|rule| rule.severity)
            .map(|rule| rule.id.as_str())
    }
}

impl signal::OrderedCommands for OrderedCommands<'_> {
    fn refusing_rule(&self, command: &str) -> Option<&str> {
        if let Some(known) = self.refusing_rules.borrow().get(command) {
            return *known;
        }
        if self.refusing_rules.borrow().len() >= COMMANDS {
            return None;
        }
        let rule = self.judge(command);
        self.refusing_rules
            .borrow_mut()
            .insert(command.into(), rule);
        rule
    }

    fn refusing_rule_at_end(&self, passage: &str) -> Option<&str> {
        self.refusing_rules
            .borrow()
            .iter()
            .find(|(command, _)| passage.ends_with(&***command))
            .and_then(|(_, rule)| *rule)
    }
}
