//! Rules of the kind `markup`: HTML in a text that a model reads.

use super::{Detector, Kind, Match, Place};
use crate::document::Table;
use crate::message::Role;
use crate::text::Text;

/// The kind `markup`.
#[derive(Debug)]
pub struct Markup;

/// Settings of a rule of this kind.
#[derive(Debug)]
pub struct Spec {
    /// Whether only markup that hides text from a person matches.
    pub hides: bool,
}

impl Kind for Markup {
    type Spec = Spec;

    fn read(table: &Table<'_>) -> Option<Spec> {
        let hides = table.boolean("hides").unwrap_or(false);
        table.finish();
        Some(Spec { hides })
    }

    fn build(rules: &[(usize, &Spec)]) -> Result<Box<dyn Detector>, Vec<(usize, String)>> {
        Ok(Box::new(Pages {
            rules: rules
                .iter()
                .map(|(rule, spec)| (*rule, spec.hides))
                .collect(),
        }))
    }
}

/// All markup rules of a rule set: the index of each, and whether the markup must hide something.
#[derive(Debug)]
struct Pages {
    rules: Vec<(usize, bool)>,
}

impl Detector for Pages {
    fn scan(&self, text: &Text<'_>, place: &Place<'_>, matches: &mut Vec<Match>) {
        if place.inbound().hidden || place.role == Role::Key {
            return;
        }
        let Some(page) = text.page() else { return };
        for (rule, hides) in &self.rules {
            if !hides || !page.hidden.is_empty() {
                matches.push(Match::new(*rule, None, "markup"));
            }
        }
    }
}
