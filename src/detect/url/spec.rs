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
    min_opaque_bytes: Option<usize>,
    denied: bool,
    unresolved: bool,
    homograph: bool,
    origin: Option<UrlOrigin>,
}

impl Spec {
    /// Reads a `find.url` table.
    pub(super) fn read(table: &Table<'_>) -> Option<Self> {
        let mut is_valid = true;
        let mut fault = |word: &Located<String>, key: &str, hint: &str| {
            table.fault_at(
                &word.place,
                format!("`{key}` holds `{}`", word.value.escape_debug()),
                Some(hint),
            );
            is_valid = false;
        };
        let mut spec = Self {
            disguised: table.boolean("disguised").unwrap_or(false),
            denied: table.boolean("denied").unwrap_or(false),
            unresolved: table.boolean("unresolved").unwrap_or(false),
            homograph: table.boolean("homograph").unwrap_or(false),
            min_opaque_bytes: table
                .integer("carries", 16..=65_536)
                .and_then(|bytes| usize::try_from(bytes).ok()),
            origin: table.choice("in", &UrlOrigin::WORDS),
            ..Self::default()
        };
        for word in table.strings("reaches") {
            match Reach::named(&word.value) {
                Some(reach) => spec.reaches.push(reach),
                None => fault(&word, "reaches", &suggest(&word.value, &Reach::NAMES)),
            }
        }
        for word in table.strings("host") {
            match HostPattern::read(&word.value) {
                Ok(pattern) => spec.host.push(pattern),
                Err(hint) => fault(&word, "host", hint),
            }
        }
        spec.scheme = table
            .strings("scheme")
            .into_iter()
            .map(|word| word.value.to_ascii_lowercase())
            .collect();
        table.finish();
        let has_condition = !spec.reaches.is_empty()
            || !spec.scheme.is_empty()
            || !spec.host.is_empty()
            || spec.min_opaque_bytes.is_some()
            || spec.denied
            || spec.unresolved
            || spec.homograph;
        if is_valid && !has_condition {
            table.fault(
                "`find.url` looks for nothing",
                Some("say one of `reaches`, `scheme`, `host`, `carries`, `denied`, `unresolved`, `homograph`"),
            );
        }
        (is_valid && has_condition).then_some(spec)
    }

    /// Returns the interpretation that the rule tests first: its cases are run with it.
    pub fn read_as(&self) -> ReadAs {
        if self.origin == Some(UrlOrigin::Command) {
            ReadAs::Shell
        } else {
            ReadAs::Url
        }
    }

    /// Returns the reading of the finding if a URL meets the conditions.
    pub(super) fn matches(&self, facts: &UrlFacts) -> Option<&'static str> {
        if self.origin.is_some_and(|inside| !facts.is_from(inside)) {
            return None;
        }
        let mut destinations = facts.destinations.iter().filter(|reached| {
            self.reaches.contains(&reached.reach) && (reached.odd || !self.disguised)
        });
        let destination = destinations.next();
        let fits = (self.reaches.is_empty() || destination.is_some())
            && (self.scheme.is_empty()
                || facts
                    .schemes
                    .iter()
                    .any(|scheme| self.scheme.contains(scheme)))
            && (self.host.is_empty() || facts.has_host_among(&self.host))
            && self
                .min_opaque_bytes
                .is_none_or(|bytes| facts.opaque_bytes >= bytes)
            && (!self.denied || facts.denied)
            && (!self.unresolved || facts.unresolved)
            && (!self.homograph || facts.homograph);
        fits.then(|| {
            destination
                .filter(|destination| destination.resolved)
                .map_or(facts.reading(), |destination| {
                    destination.reach.resolved_reading()
                })
        })
    }
}
