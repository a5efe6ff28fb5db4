//! The ways in which a program uses its input, operands and files, as a set.

use crate::document::Table;

/// A set of properties of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Traits(u16);

impl Traits {
    /// Fetches content from another host.
    pub(super) const FETCHES: Self = Self(1);
    /// Sends its standard input.
    pub(super) const SENDS_INPUT: Self = Self(2);
    /// Sends the files that it is given, if some operand is another host.
    pub(super) const SENDS_FILES: Self = Self(4);
    /// Names files without showing their content.
    pub(super) const NAMES_FILES: Self = Self(8);
    /// Writes to its last operand.
    pub(super) const COPIES: Self = Self(16);
    /// Writes to every operand.
    pub(super) const WRITES: Self = Self(32);
    /// Connects to the hosts among its operands.
    pub(super) const CONNECTS: Self = Self(64);
    /// Takes text that it does not run, whatever its options are called.
    pub(super) const TAKES_TEXT: Self = Self(128);
    /// Its first operand is a pattern or an instruction, and the others are files.
    pub(super) const FILTERS: Self = Self(256);
    /// Its operands are files and folders.
    pub(super) const WORKS_ON_FILES: Self = Self(512);
    /// Its output is derived from the files among its operands.
    pub(super) const PASSES_ON: Self = Self(1024);
    /// Its output behaves as its sources specify.
    pub(super) const COMPILES: Self = Self(2048);
    /// Passes its input to a database to run.
    pub(super) const RUNS_SQL: Self = Self(4096);
    /// The command that it runs sees another file system than that of this machine.
    pub(super) const CONTAINER: Self = Self(8192);
    /// Runs code of a language of which only the string literals are read.
    pub(super) const UNREAD_LANGUAGE: Self = Self(16384);

    /// Values of `traits` in a table.
    const WORDS: [(&'static str, Self); 15] = [
        ("fetches", Self::FETCHES),
        ("sends-input", Self::SENDS_INPUT),
        ("sends-files", Self::SENDS_FILES),
        ("names-files", Self::NAMES_FILES),
        ("copies", Self::COPIES),
        ("writes", Self::WRITES),
        ("connects", Self::CONNECTS),
        ("takes-text", Self::TAKES_TEXT),
        ("filters", Self::FILTERS),
        ("works-on-files", Self::WORKS_ON_FILES),
        ("passes-on", Self::PASSES_ON),
        ("compiles", Self::COMPILES),
        ("runs-sql", Self::RUNS_SQL),
        ("container", Self::CONTAINER),
        ("unread-language", Self::UNREAD_LANGUAGE),
    ];

    /// Parses `traits` of a `[[program]]` table and reports faults.
    pub(super) fn read(table: &Table<'_>) -> Option<Self> {
        let mut result = Some(Self::default());
        for word in table.strings("traits") {
            let found = table.find(&word, &Self::WORDS, || {
                format!("`{}` is not a trait", word.value)
            });
            result = result.zip(found).map(|(traits, flag)| traits.union(flag));
        }
        result
    }

    /// Returns the union of both sets.
    pub(super) const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Reports whether the set has one of the traits of `other`.
    pub(super) const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}
