//! Judges the contents of binary data.

use crate::detect::Place;
use crate::rules::{Action, Severity};
use crate::text::Text;

use super::binary::Contents;
use super::finding::GateFinding;
use super::rewrite::Outcome;
use super::string::{Judge, Site};
use super::{Coverage, SkipReason, Uninspected};

/// Number of times that markup is judged: as it is written and, again, as the visible and the
/// hidden text of a page.
const MARKUP_READINGS: usize = 2;

impl Judge<'_, '_> {
    /// Judges the texts in data, which cannot be edited; records what was not read, and a type that
    /// is not the declared one. Returns the notice that replaces the block, if the block has to be
    /// removed.
    pub(super) fn judge_contents(
        &mut self,
        contents: &Contents,
        declared: &str,
        place: &Place<'_>,
        site: &Site<'_>,
        coverage: &mut Coverage,
        bytes: usize,
    ) -> Option<String> {
        if contents.belies(declared) {
            let finding = GateFinding {
                rule: "binary-type",
                title: "Data of another type than it is said to be",
                severity: Severity::Medium,
                surface: place.surface,
                at: (site.at)(),
                item: self.item,
                reading: contents.kind,
            };
            self.findings.push(finding.finding(Action::Log, declared));
        }
        if let Some(reason) = contents.skip_reason {
            coverage.uninspected.push(Uninspected {
                at: (site.at)(),
                reason,
                bytes,
            });
        }
        let mut block_notice = None;
        let mut skipped = 0;
        for text in &contents.texts {
            let readings = if text.contains('<') {
                MARKUP_READINGS
            } else {
                1
            };
            if !self
                .budget
                .spend_judged(text.len().saturating_mul(readings))
            {
                skipped += text.len();
                continue;
            }
            coverage.strings += 1;
            coverage.bytes += text.len();
            let text = Text::new(text.as_str());
            // For markup, the text that is visible to a person and the hidden text are also judged
            // separately.
            let parts = text
                .page()
                .map(|page| [(page.visible.as_str(), false), (page.hidden.as_str(), true)]);
            for (part, hidden) in parts.into_iter().flatten() {
                let place = place.with_hidden(hidden);
                if let Outcome::Withhold(notice) = self.judge_string(&Text::new(part), &place, site)
                {
                    block_notice = block_notice.or(Some(notice));
                }
            }
            if let Outcome::Withhold(notice) = self.judge_string(&text, place, site) {
                block_notice = block_notice.or(Some(notice));
            }
        }
        if skipped > 0 {
            coverage.uninspected.push(Uninspected {
                at: (site.at)(),
                reason: SkipReason::OverBudget,
                bytes: skipped,
            });
        }
        block_notice
    }
}
