//! Records of what was moved, so that it can be restored byte for byte.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::client::Format;
use super::edit::{Edit, apply};
use super::files::{replace_file, strip_mark};
use super::{jsonc, toml};
use crate::message::hex;

/// The changes to one file of a client. Contains the contents of that file, so only its owner may
/// read it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct MoveRecord {
    pub(super) file: PathBuf,
    /// A complete copy of the file as it would be without lychgate.
    pub(super) backup: PathBuf,
    /// The digest of the file as it was written.
    pub(super) written_sha256: String,
    /// The digest of the file before that; the file may have it again if the process was
    /// interrupted.
    #[serde(default)]
    pub(super) found_sha256: String,
    pub(super) servers: Vec<MovedServer>,
    /// Servers that are no longer in the file, and whose upstreams have yet to be removed.
    #[serde(default)]
    pub(super) dropped: Vec<MovedServer>,
    /// The gate's config.
    pub(super) gate: Option<PathBuf>,
    /// The initial text of that config, if `install` created it.
    #[serde(default)]
    pub(super) base: Option<String>,
}

/// One server that was moved.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct MovedServer {
    pub(super) path: Vec<String>,
    /// The entry before and after the change.
    pub(super) old: String,
    pub(super) new: String,
    /// The command or the URL that was written.
    #[serde(default)]
    pub(super) led: String,
    /// The name at the gate of a server that is reached over HTTP; `block` is what was added to the
    /// gate's config for it.
    pub(super) upstream: Option<String>,
    /// The name at the gate of a server that is a command: the argument of `wrap --name`.
    #[serde(default)]
    pub(super) wrap_name: Option<String>,
    pub(super) block: String,
    pub(super) secrets: Vec<PathBuf>,
    /// Whether the entry had been changed by others before the file was written.
    #[serde(default)]
    pub(super) is_changed: bool,
}

impl MovedServer {
    pub(super) fn name(&self) -> String {
        self.path.last().cloned().unwrap_or_default()
    }
}

/// The result of restoring a file.
pub(super) struct RestoreOutcome {
    pub(super) text: String,
    /// Servers that are not as they were written.
    pub(super) changed: Vec<String>,
    /// Servers that no longer exist, so that nothing has to be restored.
    pub(super) removed: Vec<String>,
}

impl MoveRecord {
    /// # Errors
    /// The record exists and cannot be read.
    pub(super) fn read(place: &Path) -> io::Result<Option<Self>> {
        match fs::read(place) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map(Some)
                .map_err(|error| io::Error::other(format!("`{}`: {error}", place.display()))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(io::Error::new(
                error.kind(),
                format!("`{}`: {error}", place.display()),
            )),
        }
    }

    /// # Errors
    /// The record cannot be written.
    pub(super) fn write(&self, place: &Path) -> io::Result<()> {
        replace_file(place, &serde_json::to_vec_pretty(self)?, Some(0o600))
    }

    /// Returns the file without lychgate. If nobody has changed it since, or it has been restored
    /// already, this is the original, byte for byte; otherwise the moved servers are restored and
    /// everything else remains unchanged.
    pub(super) fn restore(&self, text: &str, format: Format) -> RestoreOutcome {
        let hash = digest(text.as_bytes());
        if let Ok(backup) = fs::read_to_string(&self.backup).map(strip_mark)
            && (hash == self.written_sha256 || hash == self.found_sha256 || text == backup)
        {
            let changed = self
                .servers
                .iter()
                .filter(|server| server.is_changed)
                .map(MovedServer::name)
                .collect();
            return RestoreOutcome {
                text: backup,
                changed,
                removed: vec![],
            };
        }
        let mut outcome = RestoreOutcome {
            text: text.to_owned(),
            changed: vec![],
            removed: vec![],
        };
        match format {
            Format::Json { .. } | Format::OpenCode => self.restore_json(&mut outcome),
            Format::Toml { .. } => self.restore_toml(&mut outcome),
        }
        outcome
    }

    fn restore_json(&self, outcome: &mut RestoreOutcome) {
        let text = outcome.text.clone();
        let mut edits = vec![];
        // A text that cannot be parsed does not show whether an entry has been removed.
        let is_readable = jsonc::find(&text, &[]).is_some();
        for server in &self.servers {
            let current = jsonc::find(&text, &server.path)
                .and_then(|span| Some((span.clone(), text.get(span)?)));
            match current {
                Some((span, now))
                    if now == server.new || jsonc::have_same_content(now, &server.new) =>
                {
                    edits.push(Edit::new(span, &*server.old))
                }
                // The entry was never written, or has been restored already.
                Some((_, now))
                    if now == server.old || jsonc::have_same_content(now, &server.old) => {}
                None if is_readable => outcome.removed.push(server.name()),
                _ => outcome.changed.push(server.name()),
            }
        }
        outcome.text = apply(&text, edits).unwrap_or(text);
    }

    /// Entries may consist of several pieces, so they are taken as a whole from the original file.
    fn restore_toml(&self, outcome: &mut RestoreOutcome) {
        let backup = fs::read_to_string(&self.backup)
            .ok()
            .map(strip_mark)
            .and_then(|text| text.parse::<toml_edit::DocumentMut>().ok());
        let (Some(backup), Ok(mut root)) = (backup, outcome.text.parse::<toml_edit::DocumentMut>())
        else {
            outcome
                .changed
                .extend(self.servers.iter().map(MovedServer::name));
            return;
        };
        for server in &self.servers {
            let [key, name] = &*server.path else { continue };
            let old = backup.get(key).and_then(|all| all.get(name));
            let now = root.get_mut(key).and_then(|all| all.get_mut(name));
            match (old, now) {
                (Some(old), Some(now)) if toml::is_gate(now, &server.new) => *now = old.clone(),
                (Some(old), Some(now)) if now.to_string() == old.to_string() => {}
                (_, None) => outcome.removed.push(name.clone()),
                _ => outcome.changed.push(name.clone()),
            }
        }
        outcome.text = root.to_string();
    }
}

/// Returns the SHA-256 digest in hexadecimal.
pub(super) fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}
