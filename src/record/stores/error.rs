//! Errors of the stores, and how to fix them.

use std::path::PathBuf;

use crate::seal::{Keychain, Keys, SealError, UnsealError};

/// Why a store or a file in it cannot be used. Never contains any file contents.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The folder or the key of the store cannot be used.
    #[error("{of}: {error}")]
    Place {
        /// Which store: `the quarantine` or `the evidence store`.
        of: &'static str,
        error: SealError,
    },
    /// A file cannot be opened. It is left unchanged.
    #[error("`{}` cannot be opened: {}", file.display(), describe(*why))]
    Sealed { file: PathBuf, why: UnsealError },
    /// A file cannot be opened because the key is not where it is expected. The file is left
    /// unchanged.
    #[error(
        "`{}` cannot be opened: no key in {at}\n  hint: restore the key there, or correct its path in the config",
        file.display()
    )]
    NoKey {
        file: PathBuf,
        /// The expected location of the key, in words.
        at: String,
    },
    /// A segment ends within a record, since its writer stopped there. Earlier records are
    /// complete.
    #[error("`{}` ends within a record, at byte {offset}; earlier records are complete", file.display())]
    Torn {
        file: PathBuf,
        /// The offset at which the record begins.
        offset: u64,
    },
    /// The limit per minute of an upstream is reached; more messages would displace those of
    /// others.
    #[error("the limit of {limit} stored messages per minute and server is reached")]
    TooOften { limit: u32 },
    /// The message is larger than the whole store may be.
    #[error(
        "{bytes} bytes exceed the limit ({limit})\n  hint: raise `max_bytes` under `[quarantine]`"
    )]
    TooLong {
        /// Length of the message.
        bytes: u64,
        limit: u64,
    },
}

/// Describes what is wrong with a file and how to fix it.
fn describe(why: UnsealError) -> &'static str {
    match why {
        UnsealError::OtherKey => {
            "it is encrypted with another key\n  hint: restore that key at the path in the config"
        }
        UnsealError::Damaged => {
            "it is damaged, modified, or belongs to another store\n  hint: restore it from a backup, or delete it"
        }
        UnsealError::TooLong => "it is longer than any stored item\n  hint: delete it",
        UnsealError::NewerVersion => {
            "it was written by a newer version of lychgate\n  hint: use that version"
        }
    }
}

/// Returns the error for a file that cannot be opened with these keys of a store.
pub(super) fn sealed_error(
    file: PathBuf,
    why: UnsealError,
    keys: &Keys,
    keychain: &Keychain,
) -> StoreError {
    match why {
        UnsealError::OtherKey if keys.first().is_none() => StoreError::NoKey {
            file,
            at: keychain.sources().describe_first(),
        },
        why => StoreError::Sealed { file, why },
    }
}

/// Returns a function that adds the name of the store to an error.
pub(super) fn at_store(store: &'static str) -> impl Fn(SealError) -> StoreError {
    move |error| StoreError::Place { of: store, error }
}
