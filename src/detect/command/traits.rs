//! What a program does with its input, its operands and its files, as a set.

use crate::document::{Table, suggest};

/// What is known of a program, as a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Traits(u16);

impl Traits {
    /// Brings in what another host serves.
    pub(super) const FETCHES: Self = Self(1);
    /// Sends what it reads on its standard input.
    pub(super) const SENDS_INPUT: Self = Self(2);
    /// Sends the files that it is told to send, if some operand is another host.
    pub(super) const SENDS_FILES: Self = Self(4);
    /// Names files without showing what is in them.
    pub(super) const NAMES_FILES: Self = Self(8);
    /// Writes to its last operand.
    pub(super) const COPIES: Self = Self(16);
    /// Writes to every operand.
    pub(super) const WRITES: Self = Self(32);
    /// Connects to the hosts among its operands.
    pub(super) const CONNECTS: Self = Self(64);
    /// Takes text that it does not run, whatever its options are called.
    pub(super) const TAKES_TEXT: Self = Self(128);
    /// Its first operand says what to look for or do, and the others where.
    pub(super) const FILTERS: Self = Self(256);
    /// Its operands are files and folders.
    pub(super) const WORKS_ON_FILES: Self = Self(512);
    /// Its output comes from the files among its operands.
    pub(super) const PASSES_ON: Self = Self(1024);
    /// Its output does what its sources say.
    pub(super) const COMPILES: Self = Self(2048);
    /// Has a database run what it reads.
    pub(super) const RUNS_SQL: Self = Self(4096);
    /// What it runs sees another file system than this machine's.
    pub(super) const CONTAINER: Self = Self(8192);
    /// Runs code of a language of which only the strings are read.
    pub(super) const UNREAD_LANGUAGE: Self = Self(16384);

    /// Words of `traits` in a table.
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

    /// Reads `traits` of a `[[program]]` table. Notes faults.
    pub(super) fn read(table: &Table<'_>) -> Option<Self> {
        let mut read = Some(Self::default());
        for word in table.strings("traits") {
            match Self::WORDS.iter().find(|(known, _)| *known == word.value) {
                Some((_, one)) => read = read.map(|traits| traits.and(*one)),
                None => {
                    let hint = suggest(&word.value, &Self::WORDS.map(|(known, _)| known));
                    table.fault_at(
                        &word.place,
                        format!("`{}` is not a trait", word.value),
                        Some(&hint),
                    );
                    read = None;
                }
            }
        }
        read
    }

    /// Both sets in one.
    pub(super) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether it has one of the traits of `other`.
    pub(super) const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}
