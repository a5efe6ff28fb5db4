//! The conditions of a rule of the kind `url`.

use crate::detect::ReadAs;
use crate::document::{Located, Table, suggest};
use crate::reach::Reach;

use super::hosts::HostPattern;
use super::judge::{UrlFacts, UrlOrigin};

/// The conditions of a rule of this kind. All that are given must hold; of a list, one entry.
#[derive(Clone, Debug, Default)]
pub struct Spec {
    reaches: Vec<Reach>,
    disguised: bool,
    scheme: Vec<String>,
    host: Vec<HostPattern>,
    carries: Option<usize>,
    denied: bool,
    unresolved: bool,
    homograph: bool,
    inside: Option<UrlOrigin>,
}

impl Spec {
    /// Reads a `find.url` table.
    pub(super) fn read(table: &Table<'_>) -> Option<Self> {
        let mut fits = true;
        let mut fault = |word: &Located<String>, key: &str, hint: &str| {
            table.fault_at(
                &word.place,
                format!("`{key}` holds `{}`", word.value.escape_debug()),
                Some(hint),
            );
            fits = false;
        };
        let mut made = Self {
            disguised: table.boolean("disguised").unwrap_or(false),
            denied: table.boolean("denied").unwrap_or(false),
            unresolved: table.boolean("unresolved").unwrap_or(false),
            homograph: table.boolean("homograph").unwrap_or(false),
            carries: table
                .integer("carries", 16..=65_536)
                .and_then(|bytes| usize::try_from(bytes).ok()),
            inside: table.choice("in", &UrlOrigin::WORDS),
            ..Self::default()
        };
        for word in table.strings("reaches") {
            match Reach::WORDS.iter().find(|(known, _)| *known == word.value) {
                Some((_, reach)) => made.reaches.push(*reach),
                None => fault(
                    &word,
                    "reaches",
                    &suggest(&word.value, &Reach::WORDS.map(|(known, _)| known)),
                ),
            }
        }
        for word in table.strings("host") {
            match HostPattern::read(&word.value) {
                Ok(pattern) => made.host.push(pattern),
                Err(hint) => fault(&word, "host", hint),
            }
        }
        made.scheme = table
            .strings("scheme")
            .into_iter()
            .map(|word| word.value.to_ascii_lowercase())
            .collect();
        table.finish();
        let says = !made.reaches.is_empty()
            || !made.scheme.is_empty()
            || !made.host.is_empty()
            || made.carries.is_some()
            || made.denied
            || made.unresolved
            || made.homograph;
        if fits && !says {
            table.fault(
                "`find.url` looks for nothing",
                Some("say one of `reaches`, `scheme`, `host`, `carries`, `denied`, `unresolved`, `homograph`"),
            );
        }
        (fits && says).then_some(made)
    }

    /// Returns the interpretation that the rule tests first: its cases are run with it.
    pub fn read_as(&self) -> ReadAs {
        if self.inside == Some(UrlOrigin::Command) {
            ReadAs::Shell
        } else {
            ReadAs::Url
        }
    }

    /// Returns the reading of the finding if a URL meets the conditions.
    pub(super) fn matches(&self, seen: &UrlFacts) -> Option<&'static str> {
        if self.inside.is_some_and(|inside| !seen.stands(inside)) {
            return None;
        }
        let mut there = seen.reached.iter().filter(|reached| {
            self.reaches.contains(&reached.reach) && (reached.odd || !self.disguised)
        });
        let reached = there.next();
        let fits = (self.reaches.is_empty() || reached.is_some())
            && (self.scheme.is_empty()
                || seen
                    .schemes
                    .iter()
                    .any(|scheme| self.scheme.contains(scheme)))
            && (self.host.is_empty() || seen.names(&self.host))
            && self.carries.is_none_or(|bytes| seen.carries >= bytes)
            && (!self.denied || seen.denied)
            && (!self.unresolved || seen.unresolved)
            && (!self.homograph || seen.homograph);
        fits.then(|| {
            reached
                .filter(|reached| reached.resolved)
                .map_or(seen.reading(), |reached| reached.reach.resolved())
        })
    }
}
