//! Judges one text of a message from a server, with the data in it.

use super::Inbound;
use crate::detect::secret::SessionSecrets;
use crate::detect::{Place, Surface};
use crate::inspect::binary;
use crate::inspect::clean_texts::Editing;
use crate::inspect::rewrite::{Outcome, field_value};
use crate::inspect::string::{Judge, Site};
use crate::inspect::{Coverage, SkipReason, Uninspected};
use crate::message::{Role, Value};
use crate::text::Text;

impl Inbound<'_> {
    /// Judges a text and the data in it, unless the same text was found clean before.
    pub(super) fn judge_text(
        &self,
        text: &Text<'_>,
        place: &Place<'_>,
        site: &Site<'_>,
        block: Option<Value<'_>>,
        judge: &mut Judge<'_, '_>,
        coverage: &mut Coverage,
    ) -> Outcome {
        let memory = self.clean_texts.and_then(|clean_texts| {
            let editing = Editing {
                opaque: (site.opaque)(),
                in_block: site.in_block,
            };
            let key = clean_texts.key(text.raw(), place, editing, &self.policy.id, self.context)?;
            Some((clean_texts, key))
        });
        let Some((clean_texts, key)) = memory else {
            return self.judge_text_anew(text, place, site, block, judge, coverage);
        };
        if let Some(readings) = clean_texts.find(key) {
            judge.readings.extend(readings);
            coverage.recognized_strings += 1;
            return Outcome::Keep;
        }
        let state = |judge: &Judge<'_, '_>, coverage: &Coverage| {
            (
                judge.findings.len(),
                coverage.uninspected.len(),
                self.secrets.map(SessionSecrets::found),
                self.budget.clone(),
            )
        };
        let state_before = state(judge, coverage);
        let readings_before = std::mem::take(judge.readings);
        let outcome = self.judge_text_anew(text, place, site, block, judge, coverage);
        // Where the budget of the message is exceeded, a part of any text may not be inspected.
        let is_inspected = self.budget.exceeded().next().is_none();
        if outcome == Outcome::Keep && is_inspected && state(judge, coverage) == state_before {
            clean_texts.insert(key, judge.readings.iter().copied());
        }
        judge.readings.extend(readings_before);
        outcome
    }

    /// Judges a text and the data in it.
    fn judge_text_anew(
        &self,
        text: &Text<'_>,
        place: &Place<'_>,
        site: &Site<'_>,
        block: Option<Value<'_>>,
        judge: &mut Judge<'_, '_>,
        coverage: &mut Coverage,
    ) -> Outcome {
        if self.secrets.is_some() {
            self.policy.outbound.learn(text, place);
        }
        let mut outcome = match judge.judge_string(text, place, site) {
            Outcome::Replace(replacement) if place.surface == Surface::Structured => {
                Outcome::Replace(field_value(replacement))
            }
            outcome => outcome,
        };
        if outcome == Outcome::Keep && place.role == Role::Value {
            let site = Site {
                at: site.at,
                opaque: &|| true,
                in_block: block.is_some() || !(site.opaque)(),
            };
            let addresses = binary::open_data_urls(text.raw(), self.budget).into_iter();
            let others = binary::open_base64_runs(text.raw(), self.budget)
                .into_iter()
                .map(|contents| (String::new(), contents));
            for (declared, contents) in addresses.chain(others) {
                let block_notice = judge.judge_contents(
                    &contents,
                    &declared,
                    place,
                    &site,
                    coverage,
                    text.raw().len(),
                );
                outcome = block_notice.map_or(outcome, Outcome::Withhold);
            }
        }
        if text.is_read_in_part() {
            coverage.uninspected.push(Uninspected {
                at: (site.at)(),
                reason: SkipReason::TooMuchText,
                bytes: text.raw().len(),
            });
        }
        outcome
    }
}
