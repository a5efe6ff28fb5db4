//! Rules of the kind `signal`: phrases that alone prove nothing, and what they come to together.

mod engine;
mod ordered;
mod window;
mod wording;

pub(super) use engine::{Searched, Signals};
pub use ordered::OrderedCommands;

use super::pattern::long_enough;
use super::phrases::Phrases;
use super::search;
use super::{Detector, Kind};
use crate::document::Table;

/// The kind `signal`.
#[derive(Debug)]
pub struct Signal;

/// What a rule of this kind looks for.
#[derive(Debug)]
pub enum Spec {
    /// A phrase, and how much it weighs.
    Phrase(Phrase),
    /// Sentences that the model of wording scores high.
    Wording(Wording),
    /// Signals that stand close together and come to so much.
    Sum(Sum),
}

/// A signal.
#[derive(Debug)]
pub struct Phrase {
    /// What a writer of it is after; of one intent, the weightiest signal counts.
    pub intent: String,
    /// Points; less than nothing for what tells of mention rather than use.
    pub weight: i32,
    /// It counts only if the command after it is one that rules about commands refuse.
    pub orders_command: bool,
    pub(super) search: search::Spec,
}

/// A signal from the model of wording.
#[derive(Debug)]
pub struct Wording {
    /// Intent of the signal, as for a phrase.
    pub intent: String,
    /// Points.
    pub weight: i32,
    /// The signal applies to scores that at most this many of 100,000 ordinary documents reach.
    pub per_100k: u32,
}

/// What a rule that sums up asks for.
#[derive(Clone, Debug)]
pub struct Sum {
    /// Points in one window.
    pub points: i32,
    /// Points for text in letters that nobody uses but to hide it.
    pub disguise: i32,
    /// Points for text spelt as people do not write, or in a cipher.
    pub odd: i32,
    /// Points for text in an encoding of every day.
    pub encoded: i32,
    /// Points for text that markup hides from a person.
    pub hidden: i32,
    /// Only phrases of these intents count; of all, if there are none.
    pub intents: Vec<String>,
    /// Phrases of these intents do not count.
    pub except: Vec<String>,
}

/// Description of `intent` in errors.
const INTENT: &str =
    "what a writer of it is after: `override`, `secrecy`, …; or `sum`, to add signals up";
/// Most points that a rule may give or ask for.
const POINTS: u64 = 1000;

impl Spec {
    /// Compiles its regexes, which otherwise waits for the first text that calls for them.
    ///
    /// # Errors
    /// Which bound they break.
    pub fn compile(&self) -> Result<(), String> {
        match self {
            Self::Phrase(phrase) => phrase.search.compile(),
            Self::Wording(_) | Self::Sum(_) => Ok(()),
        }
    }
}

impl Kind for Signal {
    type Spec = Spec;

    fn read(table: &Table<'_>) -> Option<Spec> {
        let spec = if table.has("sum") {
            sum(table).map(Spec::Sum)
        } else if table.has("per_100k") {
            wording(table).map(Spec::Wording)
        } else {
            phrase(table).map(Spec::Phrase)
        };
        table.finish();
        spec
    }

    fn build(rules: &[(usize, &Spec)]) -> Result<Box<dyn Detector>, Vec<(usize, String)>> {
        Ok(Box::new(Phrases::new(Vec::new(), rules)))
    }
}

fn points(table: &Table<'_>, key: &str) -> Option<i32> {
    table
        .integer(key, 0..=POINTS)
        .and_then(|points| i32::try_from(points).ok())
}

fn sum(table: &Table<'_>) -> Option<Sum> {
    let extra = |key: &str| {
        if table.has(key) {
            points(table, key)
        } else {
            Some(0)
        }
    };
    let disguise = extra("disguise");
    let odd = extra("odd");
    let encoded = extra("encoded");
    let hidden = extra("hidden");
    let [intents, except] = ["intents", "except"].map(|key| {
        table
            .strings(key)
            .into_iter()
            .map(|intent| intent.value)
            .collect::<Vec<_>>()
    });
    let points = points(table, "sum");
    Some(Sum {
        points: points?,
        disguise: disguise?,
        odd: odd?,
        encoded: encoded?,
        hidden: hidden?,
        intents,
        except,
    })
}

fn wording(table: &Table<'_>) -> Option<Wording> {
    let intent = table.required("intent", INTENT);
    let share = table
        .integer("per_100k", wording::SHARES)
        .and_then(|share| u32::try_from(share).ok());
    Some(Wording {
        intent: intent?.value,
        weight: points(table, "weight")?,
        per_100k: share?,
    })
}

fn phrase(table: &Table<'_>) -> Option<Phrase> {
    let intent = table.required("intent", INTENT);
    let against = table.has("against");
    let key = if against { "against" } else { "weight" };
    if !table.has(key) {
        table.missing(
            "weight",
            "points that it adds; or `against`, points that it takes off",
        );
    }
    let weight = points(table, key).map(|points| if against { -points } else { points });
    let any = table.texts("any");
    if any.is_empty() {
        table.missing(
            "any",
            "a list of regular expressions, best written in '''…'''",
        );
    }
    let keywords = table.texts("keywords");
    let mut good = !any.is_empty() && long_enough(table, &keywords);
    let made = search::Spec::new(
        keywords.iter().map(|keyword| keyword.value.clone()),
        any.iter().map(|source| source.value.clone()),
    );
    let wrong = made
        .as_ref()
        .err()
        .into_iter()
        .flatten()
        .map(|(at, message)| (*at, message.as_str(), None));
    // Regexes run only near what is part of every match; most show themselves what that is.
    let vague = made
        .as_ref()
        .ok()
        .filter(|_| keywords.is_empty())
        .into_iter()
        .flat_map(search::Spec::without_literals);
    let hint = "give `keywords` for all regexes of the rule, one of which stands in every match";
    let vague = vague.map(|at| {
        (
            at,
            "no letters stand in every match of this regex",
            Some(hint),
        )
    });
    for (at, message, hint) in wrong.chain(vague) {
        let place = any
            .get(at)
            .map_or_else(|| table.place(), |source| source.place.clone());
        table.fault_at(&place, message, hint);
        good = false;
    }
    let orders_command = table.boolean("orders_command").unwrap_or(false);
    Some(Phrase {
        intent: intent?.value,
        weight: weight?,
        orders_command,
        search: made.ok().filter(|_| good)?,
    })
}

#[cfg(test)]
mod tests;
