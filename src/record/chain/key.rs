//! The key that signs checkpoints: Ed25519 (RFC 8032), in a PKCS#8 file (RFC 5958) in PEM.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::rand::SystemRandom;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use zeroize::Zeroizing;

use super::files::create_folder;
use super::sha;
use crate::message::hex;
use crate::seal::is_readable_by_others;

/// Maximum length of a key file, in bytes.
const MAX_FILE_BYTES: u64 = 4096;
const BEGIN: &str = "-----BEGIN PRIVATE KEY-----";
const END: &str = "-----END PRIVATE KEY-----";
/// Prefix of a public key in text form: its algorithm.
const PREFIX: &str = "ed25519:";

pub(in crate::record) struct SigningKey(Ed25519KeyPair);

/// A key to verify signatures; written as `ed25519:` and Base64.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PublicKey([u8; 32]);

impl SigningKey {
    /// Reads the key from a file. If the file does not exist, it is created, readable by its owner
    /// only.
    ///
    /// # Errors
    /// The file can be neither read nor created, contains no such key, or can be read by others.
    pub(in crate::record) fn open(path: &Path) -> io::Result<Self> {
        if std::fs::metadata(path).is_ok_and(|meta| is_readable_by_others(&meta)) {
            let hint = "others can read it, and who has it can write the log anew\n  hint: chmod 600 it; if somebody may have had it, move it \
                        away, and the gate makes another";
            return Err(with_path(
                path,
                &io::Error::new(io::ErrorKind::PermissionDenied, hint),
            ));
        }
        match Self::read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                create_key_file(path).map_err(|error| with_path(path, &error))?;
                Self::read(path)
            }
            read => read,
        }
    }

    /// Reads the key from a file.
    ///
    /// # Errors
    /// The file cannot be read, or contains no such key.
    pub(in crate::record) fn read(path: &Path) -> io::Result<Self> {
        let mut text = Zeroizing::new(String::new());
        let file = File::open(path).map_err(|error| with_path(path, &error))?;
        file.take(MAX_FILE_BYTES)
            .read_to_string(&mut text)
            .map_err(|error| with_path(path, &error))?;
        let key = || -> Option<Ed25519KeyPair> {
            let body = text.trim().strip_prefix(BEGIN)?.strip_suffix(END)?;
            let der = Zeroizing::new(
                STANDARD
                    .decode(body.split_whitespace().collect::<String>())
                    .ok()?,
            );
            Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der).ok()
        };
        let hint = "no Ed25519 key in PEM; remove the file to have the gate create one, or use `openssl genpkey -algorithm ed25519`";
        key()
            .map(Self)
            .ok_or_else(|| with_path(path, &io::Error::new(io::ErrorKind::InvalidData, hint)))
    }

    pub(in crate::record) fn sign(&self, message: &[u8]) -> String {
        STANDARD.encode(self.0.sign(message))
    }

    /// Returns the key that verifies its signatures.
    pub(in crate::record) fn public_key(&self) -> PublicKey {
        PublicKey(self.0.public_key().as_ref().try_into().unwrap_or_default())
    }
}

impl PublicKey {
    /// Returns the public half of the key in a file.
    ///
    /// # Errors
    /// The file cannot be read, or contains no such key.
    pub fn of_file(path: &Path) -> io::Result<Self> {
        Ok(SigningKey::read(path)?.public_key())
    }

    /// Parses the text form.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = STANDARD.decode(text.trim().strip_prefix(PREFIX)?).ok()?;
        Some(Self(bytes.try_into().ok()?))
    }

    /// Returns a short name of the key: the first half of its digest.
    pub fn id(&self) -> String {
        hex(sha(&self.0).first_chunk::<16>().unwrap_or(&[0; 16]))
    }

    /// Reports whether a signature, in Base64, is valid for this key and message.
    pub(in crate::record) fn is_valid_signature(&self, message: &[u8], signature: &str) -> bool {
        let key = UnparsedPublicKey::new(&ED25519, self.0);
        STANDARD
            .decode(signature)
            .is_ok_and(|signature| key.verify(message, &signature).is_ok())
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", STANDARD.encode(self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Creates a key file, completely or not at all. If several processes do so at once, one wins and
/// the others read its key.
fn create_key_file(path: &Path) -> io::Result<()> {
    create_folder(path)?;
    let der = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new())
        .map_err(|_| io::Error::other("no random numbers"))?;
    let body = Zeroizing::new(STANDARD.encode(der.as_ref()));
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", uuid::Uuid::new_v4().simple()));
    let temporary = path.with_file_name(name);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&temporary)?;
    let result = write!(file, "{BEGIN}\n{}\n{END}\n", *body)
        .and_then(|()| file.sync_all())
        .and_then(|()| {
            std::fs::hard_link(&temporary, path).or_else(|error| {
                if error.kind() == io::ErrorKind::AlreadyExists {
                    Ok(())
                } else {
                    Err(error)
                }
            })
        });
    std::fs::remove_file(&temporary)?;
    result
}

fn with_path(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(
        error.kind(),
        format!("the key of the audit log, `{}`: {error}", path.display()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_key_is_made_once_for_its_owners_eyes_and_signs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/audit.key");
        let keys: Vec<PublicKey> = std::thread::scope(|scope| {
            let open = || SigningKey::open(&path).unwrap().public_key();
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        assert!(
            keys.iter().all(|key| *key == keys[0]),
            "all have the same key"
        );
        assert_eq!(
            std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(
            std::fs::read_dir(path.parent().unwrap()).unwrap().count(),
            1,
            "nothing is left over"
        );
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
        let refusal = SigningKey::open(&path).err().unwrap().to_string();
        assert!(
            refusal.contains("chmod 600") && SigningKey::read(&path).is_ok(),
            "{refusal}"
        );
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        let key = SigningKey::open(&path).unwrap();
        let signature = key.sign(b"message");
        assert!(
            key.public_key().is_valid_signature(b"message", &signature)
                && !key.public_key().is_valid_signature(b"massage", &signature)
        );
        assert_eq!(
            PublicKey::parse(&key.public_key().to_string()),
            Some(key.public_key())
        );
        assert_eq!(PublicKey::of_file(&path).unwrap(), keys[0]);
    }

    #[test]
    fn what_is_no_key_is_refused_and_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, "secret words").unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600))
            .unwrap();
        let message = SigningKey::open(&path).err().unwrap().to_string();
        assert_contains!(message, "openssl genpkey");
        assert_lacks!(message, "secret words");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "secret words");
        assert!(PublicKey::parse("ed25519:AAAA").is_none() && PublicKey::parse("AAAA").is_none());
    }
}
