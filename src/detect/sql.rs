//! Rules of the kind `sql`: statements are parsed as a database would, and rules match what they
//! do.
//!
//! `lex` splits a text into tokens in each way that some database does, `statement` builds
//! statements from them, also from the strings that a statement runs, `condition` detects a `WHERE`
//! that narrows nothing, and `read_only` judges arguments that may only read. SQL in shell commands
//! (`psql -c '…'`) is read too. Every step is linear and bounded.

mod condition;
mod lex;
mod nested;
mod read_only;
mod spec;
mod statement;
#[cfg(test)]
mod tests;

pub use self::spec::Spec;

use self::spec::{Behaviour, Clause};
use self::statement::Facts;
use super::{Detector, Kind, Match, Place, ReadAs, work};
use crate::document::Table;
use crate::text::Text;

/// The kind `sql`.
#[derive(Debug)]
pub struct Sql;

impl Kind for Sql {
    type Spec = Spec;

    fn read(table: &Table<'_>) -> Option<Spec> {
        Some(Spec::read(table))
    }

    fn build(rules: &[(usize, &Spec)]) -> Result<Box<dyn Detector>, Vec<(usize, String)>> {
        let of_rule = |(rule, spec): &(usize, &Spec)| {
            spec.clauses
                .iter()
                .map(|clause| (*rule, clause.clone()))
                .collect::<Vec<_>>()
        };
        Ok(Box::new(Statements {
            clauses: rules.iter().flat_map(of_rule).collect(),
        }))
    }
}

/// All rules of the kind.
#[derive(Debug)]
struct Statements {
    clauses: Vec<(usize, Clause)>,
}

impl Statements {
    fn judge(&self, text: &str, reading: &'static str, matches: &mut Vec<Match>) {
        let facts = statement::read(text);
        for (rule, clause) in &self.clauses {
            if !matches.iter().any(|hit| hit.rule == *rule) && clause_matches(clause, &facts) {
                let too_much = clause.behaviour == Some(Behaviour::Unreadable) && facts.too_much;
                matches.push(Match::new(
                    *rule,
                    None,
                    if too_much { work::SQL } else { reading },
                ));
            }
        }
    }
}

fn clause_matches(clause: &Clause, facts: &Facts) -> bool {
    match clause.behaviour {
        Some(Behaviour::Unreadable) => facts.unreadable,
        Some(Behaviour::BeyondReading) => false,
        None => facts
            .statements
            .iter()
            .any(|statement| clause.matches(statement)),
    }
}

impl Detector for Statements {
    fn scan(&self, text: &Text<'_>, place: &Place<'_>, matches: &mut Vec<Match>) {
        if place.outbound().read_only {
            let has_objection = [text.raw(), text.plain()]
                .into_iter()
                .any(|text| read_only::objection(text).is_some());
            for (rule, _) in self.clauses.iter().filter(|(_, clause)| {
                has_objection && clause.behaviour == Some(Behaviour::BeyondReading)
            }) {
                matches.push(Match::new(*rule, None, "sql"));
            }
        }
        match place.outbound().read_as {
            ReadAs::Sql => {
                self.judge(text.raw(), "sql", matches);
                if text.plain() != text.raw() {
                    self.judge(text.plain(), "plain", matches);
                }
            }
            ReadAs::Shell | ReadAs::Code(_) => {
                for statement in place
                    .outbound()
                    .script
                    .into_iter()
                    .flat_map(|script| script.sql_texts())
                {
                    self.judge(&statement, "shell", matches);
                }
            }
            _ => {}
        }
    }
}
