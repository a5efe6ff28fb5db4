//! Judges what stands in binary data.

use crate::detect::Place;
use crate::rules::{Action, RuleId, Severity};
use crate::text::Text;

use super::binary::Contents;
use super::rewrite::Outcome;
use super::string::{Judge, Site};
use super::{Coverage, Evidence, Finding, Uninspected};

impl Judge<'_, '_> {
    /// Judges the texts in data, which nobody can edit; notes what was not read, and a type that is not the declared one.
    /// Gives the notice that takes the place of its block, where that must go.
    pub(super) fn contents(
        &mut self,
        contents: &Contents,
        declared: &str,
        place: &Place<'_>,
        site: &Site<'_>,
        coverage: &mut Coverage,
        bytes: usize,
    ) -> Option<String> {
        if contents.belies(declared) {
            self.findings.push(Finding {
                rule: RuleId::new("binary-type"),
                title: "Data of another type than it is said to be".to_owned(),
                severity: Severity::Medium,
                action: Action::Log,
                surface: place.surface,
                at: (site.at)(),
                item: self.item,
                reading: contents.kind,
                evidence: Evidence::of(declared),
                detail: None,
                argument: None,
                private: false,
                suppressed: None,
                trace: None,
            });
        }
        if let Some(reason) = contents.unread {
            coverage.uninspected.push(Uninspected { at: (site.at)(), reason, bytes });
        }
        let mut gone = None;
        for text in &contents.texts {
            coverage.strings += 1;
            coverage.bytes += text.len();
            let text = Text::new(text.as_str());
            // Of markup, what a person would see and what not are judged apart as well.
            let seen = text.page().map(|page| (page.visible.as_str(), false));
            let hidden = text.page().map(|page| (page.hidden.as_str(), true));
            for (text, hidden) in seen.into_iter().chain(hidden).chain([(text.raw(), false)]) {
                let place = Place { hidden, ..*place };
                if let Outcome::Withhold(notice) = self.string(&Text::new(text), &place, site) {
                    gone = gone.or(Some(notice));
                }
            }
        }
        gone
    }
}
