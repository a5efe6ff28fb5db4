//! Reasons why a part of a message was not inspected, and the policy's choice to block it.

use crate::detect::Surface;
use crate::message::Message;
use crate::rules::{Action, Severity};

use super::finding::GateFinding;
use super::{Coverage, Inspection, Refusal, Uninspected};

enum_with_names! {
    /// The reason why a part of a message was not inspected: a label of metrics, and a word in the
    /// audit log.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum SkipReason {
        /// Image, audio or compiled data, from which no text can be read.
        Binary = "binary",
        /// Data that is not encoded as declared.
        Undecodable = "undecodable",
        /// Encrypted data.
        Encrypted = "encrypted",
        /// An archive or document within an archive.
        Nested = "nested",
        /// An archive with more members than are opened.
        TooManyMembers = "too-many-members",
        /// A member of an archive that is longer than the limit for decompression.
        TooLong = "too-long",
        /// More text in binary data than is judged.
        TooMuchText = "too-much-text",
        /// The message exceeded its budget of decompressed or judged bytes.
        OverBudget = "over-budget",
        /// Too many or too long `data:` URLs.
        DataAddress = "data-address",
        /// A path that was judged by its text only: where its links lead is known on another
        /// machine.
        Links = "links",
        /// The tool's schema has more parts than are followed.
        SchemaTooLarge = "schema-too-large",
        /// The tool's schema refers to other documents.
        SchemaRemoteReference = "schema-remote-reference",
        /// The tool's schema has dynamic references.
        SchemaDynamicReference = "schema-dynamic-reference",
        /// The tool's schema contains another one with its own URI.
        SchemaEmbedded = "schema-embedded",
        /// The tool's schema exceeds the length limit.
        SchemaTooLong = "schema-too-long",
        /// The tool's schema is not JSON.
        SchemaUnreadable = "schema-unreadable",
        /// The tool's schema uses an unknown dialect.
        SchemaDialect = "schema-dialect",
        /// The tool's schema is invalid.
        SchemaInvalid = "schema-invalid",
    }
}

/// Returns the refusal of an item of which a part was not inspected for one of the `blocked`
/// reasons. Parts before `from` belong to other items.
pub(super) fn refuse(
    blocked: &[SkipReason],
    item: usize,
    from: usize,
    inspection: &mut Inspection,
) -> Option<Refusal> {
    let parts = inspection
        .coverage
        .uninspected
        .get(from..)
        .unwrap_or_default();
    let part = parts.iter().find(|part| blocked.contains(&part.reason))?;
    let gate_finding = GateFinding {
        rule: "uninspected",
        title: "Content could not be inspected",
        severity: Severity::Medium,
        surface: Surface::Other,
        at: part.at.clone(),
        item,
        reading: part.reason.name(),
    };
    let why = format!(
        "A part of the message could not be inspected ({}), and the policy blocks such content. Send or request it as plain \
         text, or in smaller parts.",
        part.reason.name()
    );
    inspection
        .findings
        .push(gate_finding.finding(Action::Block, ""));
    Some(gate_finding.refusal(why))
}

/// Records that an item exceeded the budget of its message, unless the parts from `from` on already
/// record it.
pub(super) fn note_over_budget(
    message: &Message,
    item: usize,
    from: usize,
    coverage: &mut Coverage,
) {
    let parts = coverage.uninspected.get(from..).unwrap_or_default();
    if parts
        .iter()
        .all(|part| part.reason != SkipReason::OverBudget)
    {
        let at = if message.is_batch() {
            format!("/{item}")
        } else {
            String::new()
        };
        coverage.uninspected.push(Uninspected {
            at,
            reason: SkipReason::OverBudget,
            bytes: 0,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_word_of_its_own() {
        // The last variant: the table contains all variants before it.
        assert_eq!(
            SkipReason::SchemaInvalid as usize + 1,
            SkipReason::WORDS.len()
        );
        for (place, (word, reason)) in SkipReason::WORDS.iter().enumerate() {
            assert_eq!((*reason as usize, reason.name()), (place, *word));
        }
    }
}
