//! One sealed file: AES-256-GCM under a key of its own, which HKDF makes of the vault's key and the file's salt.
//!
//! Each write draws a salt, and so has a key that no other has: the nonce need not differ, and can never be used twice with
//! one key. Version, key id, salt and the name of the file are sealed in with the text, so that files cannot be swapped.
//!
//! ```text
//! 4 bytes   "lgv" and the version
//! 16 bytes  id of the vault's key
//! 32 bytes  salt
//! n bytes   the text, sealed
//! 16 bytes  tag
//! ```

use std::io::{self, Write};

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, KeyType, Salt};
use ring::rand::{SecureRandom, SystemRandom};
use serde::Serialize;
use serde::de::DeserializeOwned;
use zeroize::Zeroizing;

use super::error::Sealed;

/// Longest file, in bytes.
pub(super) const FILE_BYTES: usize = 256 << 10;
/// Bytes of a key.
pub(super) const KEY_BYTES: usize = 32;

const MARK: &[u8; 3] = b"lgv";
const VERSION: u8 = 1;
const ID_BYTES: usize = 16;
const SALT_BYTES: usize = 32;
const HEAD_BYTES: usize = MARK.len() + 1 + ID_BYTES + SALT_BYTES;

/// A key of the vault.
pub(super) struct Key {
    bytes: Zeroizing<[u8; KEY_BYTES]>,
    /// Tells which key a file was sealed with, and nothing of the key.
    id: [u8; ID_BYTES],
}

impl Key {
    pub(super) fn new(bytes: Zeroizing<[u8; KEY_BYTES]>) -> Self {
        let mut id = [0; ID_BYTES];
        // HKDF gives up to 255 times 32 bytes: these cannot be too many.
        let made = Salt::new(HKDF_SHA256, b"lychgate vault: id of a key").extract(&*bytes);
        if let Ok(okm) = made.expand(&[], Id) {
            okm.fill(&mut id).unwrap_or_default();
        }
        Self { bytes, id }
    }

    /// A key that nobody has.
    pub(super) fn drawn() -> Result<Self, io::Error> {
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        draw(&mut *bytes)?;
        Ok(Self::new(bytes))
    }

    /// The key itself, for where it is kept.
    pub(super) fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.bytes
    }

    /// Whether this key sealed it.
    pub(super) fn sealed(&self, file: &[u8]) -> bool {
        head(file).is_some_and(|head| head.id == self.id)
    }

    fn of_file(&self, salt: &[u8]) -> Option<LessSafeKey> {
        let made = Salt::new(HKDF_SHA256, salt).extract(&*self.bytes);
        let okm = made.expand(&[b"lychgate vault: key of a file"], &AES_256_GCM).ok()?;
        Some(LessSafeKey::new(UnboundKey::from(okm)))
    }
}

/// Seals what is to be kept in the file of this name.
///
/// # Errors
/// It is too long, or the system has no random numbers.
pub(super) fn seal<T: Serialize>(key: &Key, name: &str, what: &T) -> io::Result<Vec<u8>> {
    // Written into room for all of it: a buffer that grows leaves copies of secrets behind.
    let mut length = Counted(0);
    serde_json::to_writer(&mut length, what)?;
    if HEAD_BYTES + length.0 + AES_256_GCM.tag_len() > FILE_BYTES {
        return Err(io::Error::other(format!("it would be longer than {FILE_BYTES} bytes")));
    }
    let mut text = Zeroizing::new(Vec::with_capacity(length.0));
    serde_json::to_writer(&mut *text, what)?;

    let mut salt = [0; SALT_BYTES];
    draw(&mut salt)?;
    let mut file = Vec::with_capacity(HEAD_BYTES + text.len() + AES_256_GCM.tag_len());
    file.extend_from_slice(MARK);
    file.push(VERSION);
    file.extend_from_slice(&key.id);
    file.extend_from_slice(&salt);
    let aad = aad(&file, name);
    let sealed = key.of_file(&salt).and_then(|key| key.seal_in_place_separate_tag(nonce(), aad, &mut text).ok());
    let tag = sealed.ok_or_else(|| io::Error::other("it cannot be sealed"))?;
    file.extend_from_slice(&text);
    file.extend_from_slice(tag.as_ref());
    Ok(file)
}

/// Opens the file of this name with the first of these keys that fits. The bytes are used up, and wiped.
///
/// # Errors
/// None of the keys fits, or the file is not as it was written.
pub(super) fn open<T: DeserializeOwned>(keys: &[Key], name: &str, file: Vec<u8>) -> Result<T, Sealed> {
    let mut file = Zeroizing::new(file);
    if file.len() > FILE_BYTES {
        return Err(Sealed::TooLong);
    }
    let head = head(&file).ok_or(Sealed::Damaged)?;
    if head.version != VERSION {
        return Err(if head.version > VERSION { Sealed::Later } else { Sealed::Damaged });
    }
    let key = keys.iter().find(|key| key.id == head.id).ok_or(Sealed::OtherKey)?;
    let key = key.of_file(&head.salt).ok_or(Sealed::Damaged)?;
    let (head, text) = file.split_at_mut_checked(HEAD_BYTES).ok_or(Sealed::Damaged)?;
    let text = key.open_in_place(nonce(), aad(head, name), text).map_err(|_| Sealed::Damaged)?;
    serde_json::from_slice(text).map_err(|_| Sealed::Damaged)
}

/// Random bytes.
pub(super) fn draw(bytes: &mut [u8]) -> io::Result<()> {
    SystemRandom::new().fill(bytes).map_err(|_| io::Error::other("the system has no random numbers"))
}

struct Head {
    version: u8,
    id: [u8; ID_BYTES],
    salt: [u8; SALT_BYTES],
}

fn head(file: &[u8]) -> Option<Head> {
    let (mark, rest) = file.split_first_chunk()?;
    let ([version], rest) = rest.split_first_chunk()?;
    let (id, rest) = rest.split_first_chunk()?;
    let salt = rest.first_chunk()?;
    (mark == MARK).then_some(Head { version: *version, id: *id, salt: *salt })
}

fn aad(head: &[u8], name: &str) -> Aad<Vec<u8>> {
    Aad::from([head, name.as_bytes()].concat())
}

/// Always the same: each key seals once.
fn nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; NONCE_LEN])
}

/// The length of an id, for HKDF.
struct Id;

impl KeyType for Id {
    fn len(&self) -> usize {
        ID_BYTES
    }
}

/// Counts what is written.
struct Counted(usize);

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
