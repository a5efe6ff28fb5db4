//! What was moved, so that it can be put back byte for byte.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::client::{ConfigFile, Format};
use super::edit::{Edit, apply};
use super::{jsonc, toml};

/// What was done to one file of a client. Holds what the file held, so it is its owner's alone.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Moved {
    pub(super) file: PathBuf,
    /// The file as it would be without lychgate, kept whole.
    pub(super) backup: PathBuf,
    /// What the file was when it was written.
    pub(super) written_sha256: String,
    pub(super) servers: Vec<MovedServer>,
    /// The gate's config that servers over HTTP went to.
    pub(super) gate: Option<PathBuf>,
}

/// One server that was moved.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct MovedServer {
    pub(super) path: Vec<String>,
    /// Its entry as it was, and as it was written.
    pub(super) old: String,
    pub(super) new: String,
    /// Its name at the gate, if it is reached over HTTP, and what was added to the gate's config for it.
    pub(super) upstream: Option<String>,
    pub(super) block: String,
    pub(super) secrets: Vec<PathBuf>,
}

/// What came of putting a file back.
pub(super) struct PutBack {
    pub(super) text: String,
    /// Servers that are not as they were written: changed or removed since.
    pub(super) changed: Vec<String>,
}

impl Moved {
    /// Where it is written down for a file of a client.
    pub(super) fn place(folder: &Path, file: &ConfigFile) -> PathBuf {
        let hash = hex(file.path.as_os_str().as_encoded_bytes());
        folder.join(format!("{}-{}.json", file.client.name(), hash.get(..12).unwrap_or_default()))
    }

    /// # Errors
    /// It is there and cannot be read.
    pub(super) fn read(place: &Path) -> io::Result<Option<Self>> {
        match fs::read(place) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map(Some)
                .map_err(|error| io::Error::other(format!("`{}`: {error}", place.display()))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(io::Error::new(error.kind(), format!("`{}`: {error}", place.display()))),
        }
    }

    /// # Errors
    /// It cannot be written.
    pub(super) fn write(&self, place: &Path) -> io::Result<()> {
        put(place, &serde_json::to_vec_pretty(self)?, Some(0o600))
    }

    /// The file without lychgate: as it was, byte for byte, if nobody has changed it since, or if it is that already; if somebody has, each server as it was,
    /// and all else as it is.
    pub(super) fn put_back(&self, text: &str, format: Format) -> PutBack {
        if let Ok(backup) = fs::read_to_string(&self.backup)
            && (hex(text.as_bytes()) == self.written_sha256 || text == backup)
        {
            return PutBack { text: backup, changed: vec![] };
        }
        let mut changed = vec![];
        let text = match format {
            Format::Json { .. } => self.json_back(text, &mut changed),
            Format::Toml { .. } => self.toml_back(text, &mut changed),
        };
        PutBack { text, changed }
    }

    fn json_back(&self, text: &str, changed: &mut Vec<String>) -> String {
        let mut edits = vec![];
        for server in &self.servers {
            let is = jsonc::find(text, &server.path).and_then(|span| Some((span.clone(), text.get(span)?)));
            match is {
                Some((span, now)) if now == server.new || jsonc::same(now, &server.new) => {
                    edits.push(Edit::new(span, &*server.old))
                }
                _ => changed.extend(server.path.last().cloned()),
            }
        }
        apply(text, edits).unwrap_or_else(|| text.to_owned())
    }

    /// Entries may be in several pieces, so they are taken whole from the file as it was.
    fn toml_back(&self, text: &str, changed: &mut Vec<String>) -> String {
        let backup = fs::read_to_string(&self.backup).ok().and_then(|text| text.parse::<toml_edit::DocumentMut>().ok());
        let (Some(backup), Ok(mut root)) = (backup, text.parse::<toml_edit::DocumentMut>()) else {
            changed.extend(self.servers.iter().filter_map(|server| server.path.last().cloned()));
            return text.to_owned();
        };
        for server in &self.servers {
            let [key, name] = &*server.path else { continue };
            let old = backup.get(key).and_then(|all| all.get(name));
            let now = root.get_mut(key).and_then(|all| all.get_mut(name));
            match (old, now) {
                (Some(old), Some(now)) if toml::is_gate(now, &server.new) => *now = old.clone(),
                _ => changed.push(name.clone()),
            }
        }
        root.to_string()
    }
}

/// Puts a file in its place whole, where a link leads to if it is one, with the mode that it had.
///
/// # Errors
/// It cannot be written.
pub(super) fn put(path: &Path, bytes: &[u8], mode: Option<u32>) -> io::Result<()> {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = target.parent().ok_or_else(|| io::Error::other("a file needs a folder"))?;
    fs::create_dir_all(folder)?;
    let mode = mode.or_else(|| fs::metadata(&target).ok().map(|found| found.mode() & 0o777)).unwrap_or(0o600);
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let new = target.with_file_name(name);
    let written = (|| {
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&new)?;
        file.set_permissions(fs::Permissions::from_mode(mode))?;
        io::Write::write_all(&mut file, bytes)?;
        file.sync_all()?;
        fs::rename(&new, &target)
    })();
    if written.is_err() {
        // Whether or not it was made: there is nothing more to be done about it.
        let _left = fs::remove_file(&new);
    }
    written.map_err(|error| io::Error::new(error.kind(), format!("`{}`: {error}", target.display())))
}

/// SHA-256 in hexadecimal.
pub(super) fn hex(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}
