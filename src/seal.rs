//! Encryption of data that is kept on disk: keys and their sources, sealed bytes, and files that
//! are replaced atomically.
//!
//! The vault of logins, the quarantine and the evidence store all use this module. Each has a key
//! of its own, which is kept elsewhere ([`Sources`]). Sealed bytes contain the id of the key that
//! sealed them and are bound to the place where they belong ([`seal`], [`open`]).

mod error;
mod folder;
mod keychain;
mod keyring;
mod keys;
mod replace;
mod sealed;

use std::ffi::OsString;
use std::path::PathBuf;

pub use error::{SealError, UnsealError};
pub use folder::{FileEntry, SealedFolder, check_writable};
pub use keychain::Keychain;
pub use keys::{Keys, Sources, is_readable_by_others};
pub use replace::{lock_folder, read_text, replace_file};
pub use sealed::{KEY_BYTES, Key, OVERHEAD_BYTES, Purpose, fill_random, open, seal};

/// The use of a store's keys, as named in the config and in messages.
#[derive(Clone, Copy, Debug)]
pub struct KeyUse {
    /// What the keys seal, as in "an earlier key of … cannot be used".
    pub store_name: &'static str,
    /// The config option for the first key, as in "name one: …".
    pub option: &'static str,
    /// The default key file, in the folder for the user's state.
    pub file: &'static str,
}

/// Returns the folder for the state of the user who runs the gate, if there is one.
pub fn state_folder() -> Option<PathBuf> {
    state_folder_by(|name| std::env::var_os(name))
}

fn state_folder_by(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute_path = |name: &str| {
        variable(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let folder = absolute_path("XDG_STATE_HOME")
        .or_else(|| Some(absolute_path("HOME")?.join(".local/state")))?;
    Some(folder.join("lychgate"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: &str = include_str!("../deploy/lychgate.service");
    const COMPOSE: &str = include_str!("../deploy/compose.yaml");
    const IMAGE: &str = include_str!("../deploy/Dockerfile");

    fn value<'t>(text: &'t str, start: &str) -> &'t str {
        let found = text
            .lines()
            .find_map(|line| line.trim().strip_prefix(start));
        found.unwrap_or_else(|| panic!("there is no `{start}`"))
    }

    fn with_state_home(home: &str) -> PathBuf {
        state_folder_by(|name| (name == "XDG_STATE_HOME").then(|| home.into())).unwrap()
    }

    #[test]
    fn the_systemd_unit_keeps_the_state_folder() {
        // `%S` is `/var/lib` for a system service (systemd.unit, Specifiers).
        let home = value(UNIT, "Environment=XDG_STATE_HOME=").replace("%S", "/var/lib");
        let expected = PathBuf::from("/var/lib").join(value(UNIT, "StateDirectory="));
        assert_eq!(with_state_home(&home), expected);
    }

    #[test]
    fn compose_keeps_the_state_folder_in_a_volume() {
        let folder = with_state_home(value(IMAGE, "ENV XDG_STATE_HOME="));
        assert_eq!(PathBuf::from(value(COMPOSE, "- state:")), folder);
        let volumes = COMPOSE.rsplit_once("\nvolumes:").unwrap().1;
        assert!(volumes.lines().any(|line| line == "  state:"), "{volumes}");
        // A new volume takes the owner and mode of the folder in the image.
        let parent = folder.parent().unwrap().display();
        assert!(
            IMAGE.contains("install -d -m 0700 /state/lychgate"),
            "{IMAGE}"
        );
        assert!(
            IMAGE.contains(&format!(
                "COPY --from=build --chown=65532:65532 /state/ {parent}/"
            )),
            "{IMAGE}"
        );
    }
}
