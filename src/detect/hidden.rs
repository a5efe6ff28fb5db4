//! Rules of the kind `hidden`: characters that a reader does not see, beyond those that ordinary
//! texts contain.

use super::{Detector, Kind, Match, Place};
use crate::document::Table;
use crate::text::invisible::{Invisible, find_invisible};
use crate::text::{Suspicion, Text};

/// Minimum number of words with odd spelling; a text with fewer is more likely a heading than a
/// message.
const ODD_WORDS: usize = 6;

/// The kind `hidden`.
#[derive(Debug)]
pub struct Hidden;

/// Settings of a rule of this kind.
#[derive(Debug)]
pub struct Spec {
    /// Ways to hide text, any of which is a match.
    pub any: Vec<Invisible>,
}

impl Kind for Hidden {
    type Spec = Spec;

    fn read(table: &Table<'_>) -> Option<Spec> {
        let words = table.strings("any");
        if words.is_empty() {
            table.missing(
                "any",
                &format!(
                    "a list of ways to hide text: {}",
                    Invisible::NAMES.join(", ")
                ),
            );
        }
        let technique = |word| {
            table.find(word, &Invisible::WORDS, || {
                format!("no such way to hide text: `{}`", word.value)
            })
        };
        let any: Vec<Invisible> = words.iter().filter_map(technique).collect();
        table.finish();
        (!any.is_empty() && any.len() == words.len()).then_some(Spec { any })
    }

    fn build(rules: &[(usize, &Spec)]) -> Result<Box<dyn Detector>, Vec<(usize, String)>> {
        Ok(Box::new(HiddenRules {
            rules: rules
                .iter()
                .map(|(rule, spec)| (*rule, spec.any.clone()))
                .collect(),
        }))
    }
}

/// All hidden rules of a rule set.
#[derive(Debug)]
struct HiddenRules {
    rules: Vec<(usize, Vec<Invisible>)>,
}

impl Detector for HiddenRules {
    fn scan(&self, text: &Text<'_>, _place: &Place<'_>, matches: &mut Vec<Match>) {
        for reading in text.readings() {
            let invisible = match reading.suspicion {
                Suspicion::Disguise => Invisible::Disguise,
                Suspicion::Odd if reading.words >= ODD_WORDS => Invisible::Odd,
                Suspicion::Odd | Suspicion::Usual => continue,
            };
            let rules = self
                .rules
                .iter()
                .filter(|(_, any)| any.contains(&invisible));
            matches.extend(
                rules.map(|(rule, _)| Match::new(*rule, Some(reading.span.clone()), reading.path)),
            );
        }
        if text.raw_facts().is_ascii() && std::ptr::eq(text.plain(), text.raw()) {
            return;
        }
        for (invisible, span) in find_invisible(text.raw()) {
            let rules = self
                .rules
                .iter()
                .filter(|(_, any)| any.contains(&invisible));
            matches.extend(rules.map(|(rule, _)| Match::new(*rule, Some(span.clone()), "raw")));
        }
    }
}
