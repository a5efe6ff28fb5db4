//! Sealed bytes: AES-256-GCM under a key of their own, which HKDF derives from the store's key and
//! a salt.
//!
//! Each sealing draws a new salt and so has a unique key: the nonce can be constant, and is never
//! used twice with one key. Version, key id, salt and the name of the place where the bytes belong
//! are authenticated with the text, so that files cannot be swapped.
//!
//! ```text
//! 4 bytes   the purpose's mark and the version
//! 16 bytes  id of the key
//! 32 bytes  salt
//! n bytes   the text, sealed
//! 16 bytes  tag
//! ```

use std::io;

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, MAX_TAG_LEN, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, KeyType, Salt};
use ring::rand::{SecureRandom, SystemRandom};
use zeroize::Zeroizing;

use super::UnsealError;

/// Length of a key, in bytes.
pub const KEY_BYTES: usize = 32;
/// Number of bytes by which sealed data is longer than its text.
pub const OVERHEAD_BYTES: usize = HEAD_BYTES + MAX_TAG_LEN;

const MARK_BYTES: usize = 3;
const VERSION: u8 = 1;
const ID_BYTES: usize = 16;
const SALT_BYTES: usize = 32;
const HEAD_BYTES: usize = MARK_BYTES + 1 + ID_BYTES + SALT_BYTES;

/// What the bytes are sealed for: bytes sealed for one purpose do not open for another.
#[derive(Clone, Copy, Debug)]
pub struct Purpose {
    /// The prefix of all bytes that are sealed for it.
    pub mark: [u8; MARK_BYTES],
    /// Input of the derivation of its keys.
    pub label: &'static [u8],
}

/// A key of a store.
#[derive(Clone)]
pub struct Key {
    bytes: Zeroizing<[u8; KEY_BYTES]>,
    /// Identifies the key that sealed something, without revealing the key.
    id: [u8; ID_BYTES],
}

impl Key {
    /// Returns the key with these bytes.
    pub fn new(bytes: Zeroizing<[u8; KEY_BYTES]>) -> Self {
        let mut id = [0; ID_BYTES];
        // HKDF outputs up to 255 times 32 bytes, so this length is always valid.
        let prk = Salt::new(HKDF_SHA256, b"lychgate vault: id of a key").extract(&*bytes);
        if let Ok(okm) = prk.expand(&[], Id) {
            okm.fill(&mut id).unwrap_or_default();
        }
        Self { bytes, id }
    }

    /// Returns a new random key.
    ///
    /// # Errors
    /// Fails if the system has no random numbers.
    pub fn random() -> Result<Self, io::Error> {
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        fill_random(&mut *bytes)?;
        Ok(Self::new(bytes))
    }

    /// Returns the key's bytes, for storing it.
    pub(super) fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.bytes
    }

    /// Reports whether this key sealed the bytes, for any purpose.
    pub fn has_sealed(&self, bytes: &[u8]) -> bool {
        read_head(bytes).is_some_and(|head| head.id == self.id)
    }

    fn derive_key(&self, purpose: Purpose, salt: &[u8]) -> Option<LessSafeKey> {
        let prk = Salt::new(HKDF_SHA256, salt).extract(&*self.bytes);
        let label = [purpose.label];
        let okm = prk.expand(&label, &AES_256_GCM).ok()?;
        Some(LessSafeKey::new(UnboundKey::from(okm)))
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Key").finish_non_exhaustive()
    }
}

/// Seals a text for the place where it belongs: `name` is needed again to open it. The text is
/// consumed and erased from memory.
///
/// # Errors
/// Fails if the system has no random numbers.
pub fn seal(
    key: &Key,
    purpose: Purpose,
    name: &[u8],
    mut text: Zeroizing<Vec<u8>>,
) -> io::Result<Vec<u8>> {
    let mut salt = [0; SALT_BYTES];
    fill_random(&mut salt)?;
    let mut out = Vec::with_capacity(text.len() + OVERHEAD_BYTES);
    out.extend_from_slice(&purpose.mark);
    out.push(VERSION);
    out.extend_from_slice(&key.id);
    out.extend_from_slice(&salt);
    let aad = aad(&out, name);
    let sealed = key
        .derive_key(purpose, &salt)
        .and_then(|key| key.seal_in_place_separate_tag(nonce(), aad, &mut text).ok());
    let tag = sealed.ok_or_else(|| io::Error::other("it cannot be sealed"))?;
    out.extend_from_slice(&text);
    out.extend_from_slice(tag.as_ref());
    Ok(out)
}

/// Opens bytes that were sealed for this purpose and name, with the first of these keys that fits.
/// The bytes are consumed, and what is not returned is erased from memory.
///
/// # Errors
/// Fails if none of the keys fits, or if the bytes are not as they were sealed.
pub fn open(
    keys: &[Key],
    purpose: Purpose,
    name: &[u8],
    sealed: Vec<u8>,
) -> Result<Zeroizing<Vec<u8>>, UnsealError> {
    let mut sealed = Zeroizing::new(sealed);
    let head = read_head(&sealed)
        .filter(|head| head.mark == purpose.mark)
        .ok_or(UnsealError::Damaged)?;
    if head.version != VERSION {
        return Err(if head.version > VERSION {
            UnsealError::NewerVersion
        } else {
            UnsealError::Damaged
        });
    }
    let key = keys
        .iter()
        .find(|key| key.id == head.id)
        .ok_or(UnsealError::OtherKey)?;
    let key = key
        .derive_key(purpose, &head.salt)
        .ok_or(UnsealError::Damaged)?;
    let (head, text) = sealed
        .split_at_mut_checked(HEAD_BYTES)
        .ok_or(UnsealError::Damaged)?;
    let length = key
        .open_in_place(nonce(), aad(head, name), text)
        .map_err(|_| UnsealError::Damaged)?
        .len();
    sealed.copy_within(HEAD_BYTES..HEAD_BYTES + length, 0);
    sealed.truncate(length);
    Ok(sealed)
}

/// Fills a buffer with random bytes.
///
/// # Errors
/// Fails if the system has none.
pub fn fill_random(bytes: &mut [u8]) -> io::Result<()> {
    SystemRandom::new()
        .fill(bytes)
        .map_err(|_| io::Error::other("the system has no random numbers"))
}

struct Head {
    mark: [u8; MARK_BYTES],
    version: u8,
    id: [u8; ID_BYTES],
    salt: [u8; SALT_BYTES],
}

fn read_head(bytes: &[u8]) -> Option<Head> {
    let (mark, rest) = bytes.split_first_chunk()?;
    let ([version], rest) = rest.split_first_chunk()?;
    let (id, rest) = rest.split_first_chunk()?;
    let salt = rest.first_chunk()?;
    Some(Head {
        mark: *mark,
        version: *version,
        id: *id,
        salt: *salt,
    })
}

fn aad(head: &[u8], name: &[u8]) -> Aad<Vec<u8>> {
    Aad::from([head, name].concat())
}

/// Returns a constant nonce: each key seals only once.
fn nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; NONCE_LEN])
}

/// The length of a key id, for HKDF.
struct Id;

impl KeyType for Id {
    fn len(&self) -> usize {
        ID_BYTES
    }
}
