//! Why a part of a message was not looked at, and the policy's choice to block it.

use crate::detect::Surface;
use crate::message::Message;
use crate::rules::{Action, Severity};

use super::finding::Own;
use super::{Coverage, Inspection, Refusal, Uninspected};

/// Why a part of a message was not looked at: a label of metrics, and a word of the audit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Unread {
    /// It is drawn, spoken or compiled: no text can be read from it.
    Binary,
    /// It is not encoded as it says.
    Undecodable,
    /// It is encrypted.
    Encrypted,
    /// An archive or document within an archive.
    Nested,
    /// An archive with more members than are opened.
    TooManyMembers,
    /// A member of an archive that is longer than is unpacked.
    TooLong,
    /// More text in binary data than is judged.
    TooMuchText,
    /// The message was over its budget of unpacked or judged bytes.
    OverBudget,
    /// `data:` addresses, more or longer ones than are read.
    DataAddress,
    /// A path was judged by its words: where its links lead is known on another machine.
    Links,
    /// The tool's schema has more parts than are followed.
    SchemaTooLarge,
    /// The tool's schema leads elsewhere.
    SchemaRemoteReference,
    /// The tool's schema has references that move.
    SchemaDynamicReference,
    /// The tool's schema holds another with an address of its own.
    SchemaEmbedded,
    /// The tool's schema is longer than is read.
    SchemaTooLong,
    /// The tool's schema is not JSON.
    SchemaUnreadable,
    /// The tool's schema is of a dialect that is not known.
    SchemaDialect,
    /// The tool's schema is no schema.
    SchemaInvalid,
}

impl Unread {
    /// Every reason with its word.
    pub const WORDS: [(&'static str, Self); 18] = [
        ("binary", Self::Binary),
        ("undecodable", Self::Undecodable),
        ("encrypted", Self::Encrypted),
        ("nested", Self::Nested),
        ("too-many-members", Self::TooManyMembers),
        ("too-long", Self::TooLong),
        ("too-much-text", Self::TooMuchText),
        ("over-budget", Self::OverBudget),
        ("data-address", Self::DataAddress),
        ("links", Self::Links),
        ("schema-too-large", Self::SchemaTooLarge),
        ("schema-remote-reference", Self::SchemaRemoteReference),
        ("schema-dynamic-reference", Self::SchemaDynamicReference),
        ("schema-embedded", Self::SchemaEmbedded),
        ("schema-too-long", Self::SchemaTooLong),
        ("schema-unreadable", Self::SchemaUnreadable),
        ("schema-dialect", Self::SchemaDialect),
        ("schema-invalid", Self::SchemaInvalid),
    ];

    /// The word for it.
    pub fn name(self) -> &'static str {
        Self::WORDS
            .iter()
            .find(|(_, value)| *value == self)
            .map_or("", |(word, _)| word)
    }
}

/// The refusal of an item of which a part was not inspected for one of the `blocked` reasons. Parts before `from` belong to
/// other items.
pub(super) fn refuse(
    blocked: &[Unread],
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
    let own = Own {
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
    inspection.findings.push(own.finding(Action::Block, ""));
    Some(own.refusal(why))
}

/// Records that an item exceeded the budget of its message, unless the parts from `from` on say so already.
pub(super) fn note_over_budget(
    message: &Message,
    item: usize,
    from: usize,
    coverage: &mut Coverage,
) {
    let parts = coverage.uninspected.get(from..).unwrap_or_default();
    if parts.iter().all(|part| part.reason != Unread::OverBudget) {
        let at = if message.is_batch() {
            format!("/{item}")
        } else {
            String::new()
        };
        coverage.uninspected.push(Uninspected {
            at,
            reason: Unread::OverBudget,
            bytes: 0,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_word_of_its_own() {
        // The last variant: the table holds all that are before it.
        assert_eq!(Unread::SchemaInvalid as usize + 1, Unread::WORDS.len());
        for (place, (word, reason)) in Unread::WORDS.iter().enumerate() {
            assert_eq!((*reason as usize, reason.name()), (place, *word));
        }
    }
}
