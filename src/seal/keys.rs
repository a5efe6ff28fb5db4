//! The sources of keys: the user's own file, a named file, the environment, the system's keyring.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use zeroize::Zeroizing;

use super::keyring::Keyring;
use super::{KEY_BYTES, Key, KeyUse, SealError};
use crate::config::VaultKey;

/// Maximum length of a key file, in bytes.
const FILE_BYTES: u64 = 1024;

/// The keys that the config names: the first one seals, all of them open.
#[derive(Debug)]
pub struct Sources {
    key_use: KeyUse,
    first: Source,
    earlier: Vec<Source>,
}

impl Sources {
    /// Returns the sources of the keys for the store in `folder`.
    ///
    /// # Errors
    /// Fails if a key given as a value is not a valid key, or if a key is kept in the folder that
    /// it seals.
    pub fn new(
        key_use: KeyUse,
        first: &VaultKey,
        earlier: &[VaultKey],
        folder: &Path,
    ) -> Result<Self, SealError> {
        let source = |key| Source::new(key, key_use, folder);
        Ok(Self {
            key_use,
            first: source(first)?,
            earlier: earlier.iter().map(source).collect::<Result<_, _>>()?,
        })
    }

    /// Checks whether the existing key files are usable, so that an error is known before anything
    /// is sealed. A keyring is not queried: it may require user interaction.
    ///
    /// # Errors
    /// Fails if a file cannot be read, is not a valid key, or can be read by other users.
    pub fn check(&self) -> Result<(), SealError> {
        std::iter::once(&self.first)
            .chain(&self.earlier)
            .try_for_each(|source| match source {
                Source::File(path) => read_file(path).map(drop),
                Source::Value(_) | Source::Keyring(_) => Ok(()),
            })
    }

    /// Returns the keys that exist.
    ///
    /// # Errors
    /// Fails if the first key exists but cannot be obtained. If an earlier key cannot be obtained,
    /// only the data that it sealed is affected.
    pub fn load(&self) -> Result<Keys, SealError> {
        let first = self.first.load()?;
        let has_first = first.is_some();
        let earlier = self
            .earlier
            .iter()
            .filter_map(|source| match source.load() {
                Ok(key) => key,
                Err(error) => {
                    tracing::warn!(
                        "an earlier key of {} cannot be used: {error}",
                        self.key_use.store_name
                    );
                    None
                }
            });
        Ok(Keys {
            all: first.into_iter().chain(earlier).collect(),
            has_first,
        })
    }

    /// Creates the first key, unless another process is faster.
    ///
    /// # Errors
    /// Fails if it cannot be stored at its place.
    pub fn create(&self) -> Result<(), SealError> {
        let key = Key::random().map_err(|error| SealError::Key(error.to_string()))?;
        match &self.first {
            Source::Value(_) => Ok(()),
            Source::File(path) => create_file(path, &key),
            Source::Keyring(keyring) => keyring.store(self.key_use.store_name, &hex(key.bytes())),
        }
    }

    /// Describes where the first key is kept.
    pub fn describe_first(&self) -> String {
        match &self.first {
            Source::Value(_) => "the environment".to_owned(),
            Source::File(path) => format!("`{}`", path.display()),
            Source::Keyring(keyring) => format!("`{}` of the keyring", keyring.name()),
        }
    }
}

/// The keys that were loaded.
#[derive(Debug)]
pub struct Keys {
    all: Vec<Key>,
    has_first: bool,
}

impl Keys {
    /// Returns all keys that open.
    pub fn all(&self) -> &[Key] {
        &self.all
    }

    /// Returns the key that seals; `None` if it does not exist yet.
    pub fn first(&self) -> Option<&Key> {
        self.all.first().filter(|_| self.has_first)
    }

    /// Reports whether one of the keys sealed these bytes.
    pub fn has_key_for(&self, file: &[u8]) -> bool {
        self.all.iter().any(|key| key.has_sealed(file))
    }
}

#[derive(Debug)]
enum Source {
    Value(Box<Key>),
    File(PathBuf),
    Keyring(Keyring),
}

impl Source {
    fn new(key: &VaultKey, key_use: KeyUse, folder: &Path) -> Result<Self, SealError> {
        let path = match key {
            VaultKey::Value(secret) => {
                let hint = "make one with `openssl rand -hex 32`";
                let invalid = || {
                    SealError::Key(format!(
                        "what the environment has is not 32 bytes in hex or base64\n  hint: {hint}"
                    ))
                };
                return decode(secret.0.trim())
                    .map(|bytes| Self::Value(Box::new(Key::new(bytes))))
                    .ok_or_else(invalid);
            }
            VaultKey::Keyring(name) => return Keyring::of_system(name).map(Self::Keyring),
            VaultKey::File(path) => path.clone(),
            VaultKey::UserDefault => {
                let hint = format!("name one: {}", key_use.option);
                let no_folder = || {
                    SealError::Key(format!(
                        "neither `XDG_STATE_HOME` nor `HOME` is set\n  hint: {hint}"
                    ))
                };
                super::state_folder()
                    .ok_or_else(no_folder)?
                    .join(key_use.file)
            }
        };
        if path.starts_with(folder) {
            let hint = "keep it elsewhere, or whoever gets the folder gets what it seals";
            return Err(SealError::Key(format!(
                "`{}` lies in {} itself\n  hint: {hint}",
                path.display(),
                key_use.store_name
            )));
        }
        Ok(Self::File(path))
    }

    fn load(&self) -> Result<Option<Key>, SealError> {
        match self {
            Self::Value(key) => Ok(Some(Key::clone(key))),
            Self::File(path) => read_file(path),
            Self::Keyring(keyring) => {
                let Some(text) = keyring.look_up()? else {
                    return Ok(None);
                };
                let invalid = || {
                    SealError::Key(format!(
                        "`{}` of the keyring is not 32 bytes in hex or base64",
                        keyring.name()
                    ))
                };
                decode(text.trim())
                    .map(|bytes| Some(Key::new(bytes)))
                    .ok_or_else(invalid)
            }
        }
    }
}

/// Reports whether users other than its owner can access a key file.
pub fn is_readable_by_others(meta: &fs::Metadata) -> bool {
    // Orchestrators provide secrets as files that root owns and the group may read: only root can
    // have added the gate's user to that group.
    let shared_by_root =
        meta.uid() == 0 && !rustix::process::geteuid().is_root() && meta.mode() & 0o037 == 0;
    meta.mode() & 0o077 != 0 && !shared_by_root
}

fn read_file(path: &Path) -> Result<Option<Key>, SealError> {
    let file = match OpenOptions::new().read(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(SealError::at(path)(error)),
    };
    let meta = file.metadata().map_err(SealError::at(path))?;
    if is_readable_by_others(&meta) {
        return Err(SealError::Open {
            path: path.to_owned(),
            mode: "600",
        });
    }
    let mut bytes = Zeroizing::new(Vec::with_capacity(FILE_BYTES as usize));
    file.take(FILE_BYTES)
        .read_to_end(&mut bytes)
        .map_err(SealError::at(path))?;
    let raw: Option<[u8; KEY_BYTES]> = bytes.as_slice().try_into().ok();
    let key = raw
        .map(Zeroizing::new)
        .or_else(|| decode(str::from_utf8(&bytes).ok()?.trim()));
    let invalid = || {
        SealError::Key(format!(
            "`{}` holds no key: 32 bytes, as they are or in hex or base64",
            path.display()
        ))
    };
    key.map(|bytes| Some(Key::new(bytes))).ok_or_else(invalid)
}

/// Writes the key to a temporary file and links it to its name. Only one process succeeds in that,
/// and the file is never incomplete.
fn create_file(path: &Path, key: &Key) -> Result<(), SealError> {
    let create = || {
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        let new = folder.join(format!(".new-{}", uuid::Uuid::new_v4().simple()));
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&new)?;
        let text = Zeroizing::new(format!("{}\n", hex(key.bytes()).as_str()));
        let result = file
            .write_all(text.as_bytes())
            .and_then(|()| file.sync_all())
            .and_then(|()| fs::hard_link(&new, path));
        fs::remove_file(&new)?;
        match result {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        fs::File::open(folder)?
            .sync_all()
            .or_else(|error| match error.kind() {
                ErrorKind::InvalidInput | ErrorKind::Unsupported => Ok(()),
                _ => Err(error),
            })
    };
    create().map_err(|error: io::Error| {
        let shown_path = path.display();
        let hint = format!("make it by hand: `umask 077; openssl rand -hex 32 > {shown_path}`");
        SealError::Key(format!(
            "`{shown_path}` cannot be made: {error}\n  hint: {hint}"
        ))
    })
}

/// Decodes 32 bytes from hex or base64, with either alphabet, padded or not.
fn decode(text: &str) -> Option<Zeroizing<[u8; KEY_BYTES]>> {
    let mut key = Zeroizing::new([0; KEY_BYTES]);
    if text.len() == 2 * KEY_BYTES {
        for (byte, digits) in key.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            let digits = digits
                .iter()
                .map(|digit| char::from(*digit).to_digit(16))
                .collect::<Option<Vec<_>>>()?;
            *byte = digits.iter().try_fold(0_u8, |value, digit| {
                u8::try_from(u32::from(value) << 4 | digit).ok()
            })?;
        }
        return Some(key);
    }
    let padding =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let alphabets = [base64::alphabet::STANDARD, base64::alphabet::URL_SAFE];
    let bytes = alphabets
        .iter()
        .find_map(|alphabet| GeneralPurpose::new(alphabet, padding).decode(text).ok());
    let bytes = Zeroizing::new(bytes?);
    key.copy_from_slice(
        bytes
            .get(..KEY_BYTES)
            .filter(|_| bytes.len() == KEY_BYTES)?,
    );
    Some(key)
}

fn hex(bytes: &[u8]) -> Zeroizing<String> {
    let mut text = Zeroizing::new(String::with_capacity(2 * bytes.len()));
    for byte in bytes {
        for nibble in [byte >> 4, byte & 15] {
            text.extend(char::from_digit(nibble.into(), 16));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_in_hex_and_base64() {
        let bytes: [u8; KEY_BYTES] = std::array::from_fn(|i| (i * 37 + 3) as u8);
        let hex = hex(&bytes);
        assert_eq!(hex.len(), 64);
        let padded = base64::engine::general_purpose::STANDARD.encode(bytes);
        let url = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes);
        for text in [
            hex.as_str(),
            &hex.to_uppercase(),
            &padded,
            padded.trim_end_matches('='),
            &url,
        ] {
            assert_eq!(decode(text).map(|key| *key), Some(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_no_key_is_none() {
        for text in [
            "",
            "hunter2",
            &"a".repeat(63),
            &"g".repeat(64),
            &"ab".repeat(31),
            &"é".repeat(32),
            "AAAA",
        ] {
            assert!(decode(text).is_none(), "{text}");
        }
    }
}
