//! Rules of the kind `url`: where a call's URLs lead, whichever client reads them.
//!
//! `parse` finds every host that some client would connect to, `address` and `names` determine
//! where it leads, `hosts` holds the policy's allow and deny lists, `lookup` the addresses that
//! names resolve to, `carried` examines the data in a query.

mod address;
mod carried;
mod fold;
mod hosts;
mod judge;
mod lookup;
mod names;
mod parse;
mod spec;
#[cfg(test)]
mod tests;

pub use hosts::{HostDecision, HostList, HostPattern, Hosts};
pub use lookup::{Answers, Lookup, NAMES, UnresolvedNames};
pub use spec::Spec;

pub(crate) use fold::ascii_look_alike;

use std::collections::HashSet;

use super::{Detector, Kind, Match, Place, ReadAs};
use crate::document::Table;
use crate::text::Text;
use judge::UrlFacts;

/// Maximum number of distinct URLs of one script that are judged; a script with more is too much to
/// read.
const URLS: usize = 2_000;

/// The kind `url`.
#[derive(Debug)]
pub struct Url;

impl Kind for Url {
    type Spec = Spec;

    fn read(table: &Table<'_>) -> Option<Spec> {
        Spec::read(table)
    }

    fn build(rules: &[(usize, &Spec)]) -> Result<Box<dyn Detector>, Vec<(usize, String)>> {
        Ok(Box::new(Urls {
            rules: rules
                .iter()
                .map(|(rule, spec)| (*rule, Spec::clone(spec)))
                .collect(),
        }))
    }
}

/// All rules of the kind.
#[derive(Debug)]
struct Urls {
    rules: Vec<(usize, Spec)>,
}

impl Detector for Urls {
    fn scan(&self, text: &Text<'_>, place: &Place<'_>, matches: &mut Vec<Match>) {
        match place.outbound().read_as {
            ReadAs::Url => self.judge(&UrlFacts::argument(text.raw(), place), matches),
            // A tool that takes paths often accepts addresses too.
            ReadAs::Path if text.raw().contains(':') => {
                self.judge(&UrlFacts::path(text.raw(), place), matches)
            }
            ReadAs::Shell | ReadAs::Code(_) => {
                let mut seen = HashSet::new();
                for url in place
                    .outbound()
                    .script
                    .into_iter()
                    .flat_map(|script| script.urls())
                {
                    if seen.len() == URLS {
                        return self.judge(&UrlFacts::too_many(), matches);
                    }
                    if seen.insert(url) {
                        self.judge(&UrlFacts::command(url, place), matches);
                    }
                }
            }
            ReadAs::Path | ReadAs::Text | ReadAs::Sql => {}
        }
    }
}

impl Urls {
    fn judge(&self, facts: &UrlFacts, matches: &mut Vec<Match>) {
        for (rule, spec) in &self.rules {
            if matches.iter().any(|hit| hit.rule == *rule) {
                continue;
            }
            if let Some(reading) = spec.matches(facts) {
                matches.push(Match::new(*rule, None, reading));
            }
        }
    }
}
