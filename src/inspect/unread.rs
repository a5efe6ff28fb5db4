//! Why a part of a message was not looked at.

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
    pub const WORDS: [(&'static str, Self); 17] = [
        ("binary", Self::Binary),
        ("undecodable", Self::Undecodable),
        ("encrypted", Self::Encrypted),
        ("nested", Self::Nested),
        ("too-many-members", Self::TooManyMembers),
        ("too-long", Self::TooLong),
        ("too-much-text", Self::TooMuchText),
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
        Self::WORDS.iter().find(|(_, value)| *value == self).map_or("", |(word, _)| word)
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
