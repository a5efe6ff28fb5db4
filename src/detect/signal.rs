//! Rules of the kind `signal`: phrases that prove nothing on their own, and the sums that they
//! reach together.

mod engine;
mod negation;
mod ordered;
mod reachable;
mod window;
mod wording;

pub(super) use engine::{SearchedText, Signals};
pub use ordered::OrderedCommands;

use super::pattern::check_keyword_lengths;
use super::phrases::Phrases;
use super::search;
use super::{Detector, Kind};
use crate::document::Table;

/// The kind `signal`.
#[derive(Debug)]
pub struct Signal;

/// Settings of a rule of this kind.
#[derive(Debug)]
pub enum Spec {
    /// A phrase and its weight.
    Phrase(Phrase),
    /// Sentences that the model of wording scores high.
    Wording(Wording),
    /// Signals close together whose weights add up to a minimum.
    Sum(Sum),
}

/// A signal.
#[derive(Debug)]
pub struct Phrase {
    /// The intent that the phrase indicates. Of several signals with one intent, only the one with
    /// the highest weight counts.
    pub intent: String,
    /// Points; negative for phrases that indicate a mention rather than a use.
    pub weight: i32,
    /// Whether the phrase counts only if the command after it is one that command rules refuse.
    pub orders_command: bool,
    /// Whether the phrase counts only if the command after it is harmful, in any text.
    pub harmful_command: bool,
    /// Whether the phrase does not count after a negation.
    pub negatable: bool,
    /// Words in lower case: the phrase does not count if one of them is in it, or near it on its
    /// line.
    pub without: Vec<String>,
    pub(super) search: search::Spec,
}

/// A signal from the model of wording.
#[derive(Debug)]
pub struct Wording {
    /// The intent of the signal, as for a phrase.
    pub intent: String,
    /// The weight, in points.
    pub weight: i32,
    /// The signal applies to scores that at most this many of 100,000 ordinary documents reach.
    pub per_100k: u32,
    /// The same for passages that are not in English, of which ordinary documents have few.
    pub per_100k_not_english: u32,
}

/// The conditions of a rule that adds up signals.
#[derive(Clone, Debug)]
pub struct Sum {
    /// Minimum number of points in one window.
    pub points: i32,
    /// Points added for text in disguised letters, which have no use other than to hide text.
    pub disguise: i32,
    /// Points added for text with odd spelling or in a cipher.
    pub odd: i32,
    /// Points added for text in a common encoding.
    pub encoded: i32,
    /// Points added for text that markup hides from a person.
    pub hidden: i32,
    /// Intents whose phrases count; if empty, those of all intents do.
    pub intents: Vec<String>,
    /// Intents whose phrases do not count.
    pub except: Vec<String>,
}

/// Description of `intent` in errors.
const INTENT: &str =
    "what a writer of it is after: `override`, `secrecy`, …; or `sum`, to add signals up";
/// Maximum number of points that a rule may give or require.
const POINTS: u64 = 1000;

impl Spec {
    /// Compiles the regexes, which otherwise happens when a text first needs them.
    ///
    /// # Errors
    /// Returns the bound that a regex exceeds.
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
    let share = |key: &str| {
        table
            .integer(key, wording::SHARES)
            .and_then(|share| u32::try_from(share).ok())
    };
    let per_100k = share("per_100k");
    let not_english = "per_100k_not_english";
    let per_100k_not_english = if table.has(not_english) {
        share(not_english)
    } else {
        per_100k
    };
    Some(Wording {
        intent: intent?.value,
        weight: points(table, "weight")?,
        per_100k: per_100k?,
        per_100k_not_english: per_100k_not_english?,
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
    let mut valid = !any.is_empty() && check_keyword_lengths(table, &keywords);
    let search_spec = search::Spec::new(
        keywords.iter().map(|keyword| keyword.value.clone()),
        any.iter().map(|source| source.value.clone()),
    );
    let faults = search_spec
        .as_ref()
        .err()
        .into_iter()
        .flatten()
        .map(|(at, message)| (*at, message.as_str(), None));
    // Regexes run only near literals that every match contains. Most regexes contain such literals
    // themselves.
    let keyword_only = search_spec
        .as_ref()
        .ok()
        .filter(|_| keywords.is_empty())
        .into_iter()
        .flat_map(search::Spec::keyword_only_regexes);
    let hint = "give `keywords` for all regexes of the rule, one of which occurs in every match";
    let keyword_faults = keyword_only.map(|at| {
        (
            at,
            "no letters stand in every match of this regex",
            Some(hint),
        )
    });
    for (at, message, hint) in faults.chain(keyword_faults) {
        let place = any
            .get(at)
            .map_or_else(|| table.place(), |source| source.place.clone());
        table.fault_at(&place, message, hint);
        valid = false;
    }
    let orders_command = table.boolean("orders_command").unwrap_or(false);
    Some(Phrase {
        intent: intent?.value,
        weight: weight?,
        orders_command,
        harmful_command: table.boolean("harmful_command").unwrap_or(false),
        negatable: table.boolean("negatable").unwrap_or(false),
        without: table.values("without"),
        search: search_spec.ok().filter(|_| valid)?,
    })
}

#[cfg(test)]
mod tests;
