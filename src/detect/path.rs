//! Rules of the kind `path`: where a call's paths lead, whichever program opens them.
//!
//! `decode` produces every reading of a path, `start` determines where a path starts, `walk`
//! follows it as a kernel does, `roots` are the folders that it must stay in, and `judge` combines
//! the results into the facts that rules test.

mod commands;
mod decode;
mod gate_files;
mod glob;
mod judge;
mod roots;
mod share;
mod spec;
mod start;
#[cfg(test)]
mod tests;
mod walk;

pub use gate_files::GateFiles;
pub use roots::{Links, Roots};
pub use spec::Spec;

pub(in crate::detect) use judge::is_inside;

use super::{Detector, Kind, Match, Place, ReadAs, work};
use crate::document::Table;
use crate::text::Text;
use judge::PathFacts;

/// The kind `path`.
#[derive(Debug)]
pub struct Path;

impl Kind for Path {
    type Spec = Spec;

    fn read(table: &Table<'_>) -> Option<Spec> {
        Spec::read(table)
    }

    fn build(rules: &[(usize, &Spec)]) -> Result<Box<dyn Detector>, Vec<(usize, String)>> {
        Ok(Box::new(Paths {
            rules: rules
                .iter()
                .map(|(rule, spec)| (*rule, Spec::clone(spec)))
                .collect(),
        }))
    }
}

/// All rules of the kind.
#[derive(Debug)]
struct Paths {
    rules: Vec<(usize, Spec)>,
}

impl Detector for Paths {
    fn scan(&self, text: &Text<'_>, place: &Place<'_>, matches: &mut Vec<Match>) {
        match place.outbound().read_as {
            ReadAs::Path => self.judge(&PathFacts::argument(text.raw(), place), "path", matches),
            ReadAs::Url
                if start::scheme(text.raw().trim_start())
                    .is_some_and(|(scheme, _)| scheme != "http" && scheme != "https") =>
            {
                self.judge(&PathFacts::argument(text.raw(), place), "path", matches);
            }
            // Without roots, no path of a command is outside; keys and the like are covered by the
            // rules for commands.
            ReadAs::Shell | ReadAs::Code(_)
                if place.scope.is_some_and(|ground| {
                    ground.roots.is_set() || !ground.gate_files.is_empty()
                }) =>
            {
                for access in place
                    .outbound()
                    .script
                    .into_iter()
                    .flat_map(|script| script.paths())
                {
                    self.judge(&PathFacts::command(&access, place), "command-path", matches);
                }
            }
            _ => {}
        }
    }
}

impl Paths {
    fn judge(&self, facts: &PathFacts, reading: &'static str, matches: &mut Vec<Match>) {
        for (rule, spec) in &self.rules {
            if spec.matches(facts) && !matches.iter().any(|hit| hit.rule == *rule) {
                let reading = if facts.too_much { work::PATH } else { reading };
                matches.push(Match::new(*rule, None, reading));
            }
        }
    }
}
