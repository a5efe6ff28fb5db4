//! Sealing what is kept on disk: keys and where they come from, sealed bytes, and files that are put in place whole.
//!
//! The vault of logins, the quarantine and the evidence store all stand on this. Each has a key of its own, kept elsewhere
//! ([`Sources`]); what is sealed says which key sealed it and is bound to where it belongs ([`seal`], [`open`]).

mod error;
mod keychain;
mod keyring;
mod keys;
mod place;
mod sealed;

use std::path::PathBuf;

pub use error::{SealError, Sealed};
pub use keychain::Keychain;
pub use keys::{Keys, Sources, others_read};
pub use place::{Listed, Place};
pub use sealed::{KEY_BYTES, Key, OVERHEAD_BYTES, Purpose, draw, open, seal};

/// What keys are for, in the words of the config and of messages.
#[derive(Clone, Copy, Debug)]
pub struct Use {
    /// What they seal, as in "an earlier key of … cannot be used".
    pub of: &'static str,
    /// Where the config names the first one, as in "name one: …".
    pub option: &'static str,
    /// The file that holds it where nothing is said, in the folder for the user's state.
    pub file: &'static str,
}

/// The folder for the state of whoever runs the gate, if there is one.
pub fn state_folder() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = set("XDG_STATE_HOME").or_else(|| Some(set("HOME")?.join(".local/state")))?;
    Some(folder.join("lychgate"))
}
