//! The public keys of an issuer: a JSON Web Key Set (RFC 7517).

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey};

use super::provider;
use crate::message::{Value, ValueKind};
use crate::oauth::strict;

/// Maximum length of a key set, in bytes.
const MOST_BYTES: usize = 512 << 10;
/// Maximum number of keys in a set.
const MOST_KEYS: usize = 100;
/// Maximum length of a key id, in bytes.
const MOST_ID_BYTES: usize = 1024;
/// Length of the modulus of RSA keys: 2048 to 8192 bits. Shorter ones can be broken, longer ones
/// would only cost time.
const MODULUS_BYTES: std::ops::RangeInclusive<usize> = 256..=1024;
/// Maximum length of the exponent of an RSA key, in bytes.
const MOST_EXPONENT_BYTES: usize = 8;

/// The public keys of an issuer that can verify signatures.
#[derive(Clone)]
pub struct Keys {
    keys: Vec<Key>,
}

#[derive(Clone)]
pub(super) struct Key {
    id: Option<String>,
    pub(super) key: DecodingKey,
    /// The algorithms that the key verifies: the one that it names (`alg`), or all that its type
    /// supports.
    algorithms: Vec<Algorithm>,
}

/// Why bytes are not a key set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeysError {
    /// Not JSON, too long, with a duplicate key, or without a list of `keys`.
    #[error("it is no JSON Web Key Set")]
    NotJwks,
    /// More keys than any issuer needs.
    #[error("it has more than {MOST_KEYS} keys")]
    TooMany,
}

impl Keys {
    /// Parses a key set. Keys that cannot verify what is accepted here (other types, other uses,
    /// symmetric, too weak) are left out, as the RFC requires (section 5).
    ///
    /// # Errors
    /// Fails if the bytes are not a key set or contain too many keys.
    pub fn parse(jwks: &[u8]) -> Result<Self, KeysError> {
        provider::install();
        let json = strict::parse(jwks, MOST_BYTES, 10_000, 8).ok_or(KeysError::NotJwks)?;
        let list = json
            .root()
            .get("keys")
            .filter(|keys| keys.kind() == ValueKind::Array)
            .ok_or(KeysError::NotJwks)?;
        if list.elements().nth(MOST_KEYS).is_some() {
            return Err(KeysError::TooMany);
        }
        Ok(Self {
            keys: list.elements().filter_map(Key::read).collect(),
        })
    }

    pub fn len(&self) -> usize {
        self.keys.len()
    }

    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Returns the keys that may have signed a token with this key id and algorithm. A key without
    /// an id matches any id.
    pub(super) fn candidates(
        &self,
        id: Option<&str>,
        algorithm: Algorithm,
    ) -> impl Iterator<Item = &Key> {
        self.keys.iter().filter(move |key| {
            key.algorithms.contains(&algorithm)
                && (id.is_none() || key.id.is_none() || key.id.as_deref() == id)
        })
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(
                self.keys
                    .iter()
                    .map(|key| (key.id.as_deref().unwrap_or(""), &key.algorithms)),
            )
            .finish()
    }
}

impl Key {
    fn read(jwk: Value<'_>) -> Option<Self> {
        let text = |name: &str| jwk.get_str(name);
        let bytes = |name: &str| URL_SAFE_NO_PAD.decode(text(name)?.as_bytes()).ok();
        if text("use").is_some_and(|purpose| purpose != "sig") {
            return None;
        }
        if jwk.get("key_ops").is_some_and(|ops| {
            !ops.elements()
                .any(|op| op.str().as_deref() == Some("verify"))
        }) {
            return None;
        }
        let point = |length: usize, curve: Algorithm| {
            let x = bytes("x")?;
            let y = bytes("y")?;
            let point =
                (x.len() == length && y.len() == length).then(|| [&[4], &*x, &*y].concat())?;
            Some((DecodingKey::from_ec_der(&point), vec![curve]))
        };
        let (key, supported) = match (text("kty")?.as_ref(), text("crv").as_deref()) {
            ("RSA", _) => {
                let n = bytes("n")?;
                let e = bytes("e")?;
                let n = without_zeros(&n);
                let e = without_zeros(&e);
                let fits = MODULUS_BYTES.contains(&n.len())
                    && (1..=MOST_EXPONENT_BYTES).contains(&e.len());
                fits.then(|| {
                    (
                        DecodingKey::from_rsa_raw_components(n, e),
                        AlgorithmFamily::Rsa.algorithms().to_vec(),
                    )
                })?
            }
            ("EC", Some("P-256")) => point(32, Algorithm::ES256)?,
            ("EC", Some("P-384")) => point(48, Algorithm::ES384)?,
            ("OKP", Some("Ed25519")) => (
                DecodingKey::from_ed_der(&bytes("x").filter(|x| x.len() == 32)?),
                vec![Algorithm::EdDSA],
            ),
            _ => return None,
        };
        let algorithms = match jwk.get("alg") {
            Some(declared) => {
                vec![algorithm(&declared.str()?).filter(|said| supported.contains(said))?]
            }
            None => supported,
        };
        let id = match jwk.get("kid") {
            Some(id) => Some(
                id.str()
                    .filter(|id| id.len() <= MOST_ID_BYTES)?
                    .into_owned(),
            ),
            None => None,
        };
        Some(Self {
            id,
            key,
            algorithms,
        })
    }
}

/// Returns the algorithm of this name, if it is accepted: neither unsigned tokens nor shared
/// secrets are.
pub(super) fn algorithm(name: &str) -> Option<Algorithm> {
    match name {
        // RFC 9864 gives EdDSA with this curve a name of its own.
        "Ed25519" => Some(Algorithm::EdDSA),
        name => name
            .parse()
            .ok()
            .filter(|algorithm: &Algorithm| algorithm.family() != AlgorithmFamily::Hmac),
    }
}

/// Removes leading zeros: some issuers write the sign byte of DER, which `ring` rejects.
fn without_zeros(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    number.get(zeros..).unwrap_or_default()
}
