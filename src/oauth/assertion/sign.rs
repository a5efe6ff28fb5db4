//! JWTs that the gate signs.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use ring::signature::{KeyPair, RsaPublicKeyComponents};
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject;
use serde::Serialize;
use zeroize::Zeroize;

use super::provider::{self, ec_pair, ed_pair, rsa_pair};
use crate::config::LoginConfig;
use crate::oauth::SecretText;

/// A private key, for `private_key_jwt` (RFC 7523, section 2.2).
#[derive(Clone)]
pub struct SigningKey {
    key: EncodingKey,
    /// The algorithms that it can sign with, the most widely supported first.
    algorithms: &'static [Algorithm],
    id: Option<String>,
}

/// Why a key cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignError {
    /// The PEM contains no private key, or an encrypted one.
    #[error(
        "no private key in PEM (`-----BEGIN PRIVATE KEY-----`); an encrypted one cannot be used"
    )]
    NotPem,
    /// An EC key in the older SEC 1 form.
    #[error("the key is in SEC 1 form; hint: convert it with `openssl pkcs8 -topk8 -nocrypt`")]
    Sec1,
    /// A key of an unsupported type.
    #[error("the key is none of RSA (2048 to 4096 bits), P-256, P-384, Ed25519")]
    Kind,
    /// The server accepts none of the key's algorithms.
    #[error("the server takes none of the algorithms that the key can sign with")]
    NoCommonAlgorithm,
}

impl SigningKey {
    /// Returns the key that a login's config names, if any.
    ///
    /// # Errors
    /// Returns what is wrong with `client_key`, as a message for its user.
    pub fn of_login(login: &LoginConfig) -> Result<Option<Self>, String> {
        let key = login
            .client_key
            .as_ref()
            .map(|pem| Self::from_pem(&pem.0, login.client_key_id.clone()));
        key.transpose()
            .map_err(|error| format!("`client_key`: {error}"))
    }

    /// Parses a private key from PEM: PKCS #8, or PKCS #1 for RSA. `id` is put into the header of
    /// signed JWTs (`kid`).
    ///
    /// # Errors
    /// Fails if there is no key, or one of a type that cannot sign.
    pub fn from_pem(pem: &str, id: Option<String>) -> Result<Self, SignError> {
        provider::install();
        let mut der =
            PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|_| SignError::NotPem)?;
        let parsed = match &der {
            PrivateKeyDer::Sec1(_) => Err(SignError::Sec1),
            der => recognise(der.secret_der()).ok_or(SignError::Kind),
        };
        der.zeroize();
        let (key, algorithms) = parsed?;
        Ok(Self {
            key,
            algorithms,
            id,
        })
    }

    /// Signs `claims` with the first of the key's algorithms that is in `accepted`. If `accepted`
    /// is empty, since the server does not list any, the key's first algorithm is used.
    ///
    /// # Errors
    /// Fails if none of the algorithms is in `accepted`.
    pub fn sign(
        &self,
        claims: &impl Serialize,
        accepted: &[String],
    ) -> Result<SecretText, SignError> {
        let is_accepted = |algorithm: &&Algorithm| {
            accepted.is_empty()
                || accepted
                    .iter()
                    .any(|name| *name == algorithm_name(**algorithm))
        };
        let algorithm = self
            .algorithms
            .iter()
            .find(is_accepted)
            .ok_or(SignError::NoCommonAlgorithm)?;
        let header = Header {
            kid: self.id.clone(),
            ..Header::new(*algorithm)
        };
        jsonwebtoken::encode(&header, claims, &self.key)
            .map(SecretText::new)
            .map_err(|_| SignError::Kind)
    }

    /// Returns the key set to publish, which contains the public key (RFC 7517).
    pub fn jwks(&self) -> String {
        let der = self.key.as_bytes();
        let mut key = match self.algorithms.first() {
            Some(Algorithm::EdDSA) => ed_pair(der).map(|pair| Jwk::ed(pair.public_key().as_ref())),
            Some(algorithm @ (Algorithm::ES256 | Algorithm::ES384)) => {
                ec_pair(*algorithm, der).map(|pair| Jwk::ec(*algorithm, pair.public_key().as_ref()))
            }
            _ => rsa_pair(der).map(|pair| Jwk::rsa(&RsaPublicKeyComponents::from(pair.public()))),
        }
        .unwrap_or_default();
        key.kid = self.id.as_deref();
        serde_json::to_string(&Jwks { keys: [key] }).unwrap_or_default()
    }
}

#[cfg(test)]
impl SigningKey {
    pub(super) fn encoding(&self) -> &EncodingKey {
        &self.key
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey")
            .field("algorithms", &self.algorithms)
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

fn recognise(der: &[u8]) -> Option<(EncodingKey, &'static [Algorithm])> {
    use Algorithm::{ES256, ES384, EdDSA, PS256, PS384, PS512, RS256, RS384, RS512};
    if rsa_pair(der).is_some() {
        Some((
            EncodingKey::from_rsa_der(der),
            &[RS256, PS256, RS384, PS384, RS512, PS512],
        ))
    } else if ec_pair(ES256, der).is_some() {
        Some((EncodingKey::from_ec_der(der), &[ES256]))
    } else if ec_pair(ES384, der).is_some() {
        Some((EncodingKey::from_ec_der(der), &[ES384]))
    } else {
        ed_pair(der).map(|_| (EncodingKey::from_ed_der(der), [EdDSA].as_slice()))
    }
}

/// Returns the name of an algorithm in metadata (RFC 7518, section 3.1).
fn algorithm_name(algorithm: Algorithm) -> String {
    format!("{algorithm:?}")
}

#[derive(Serialize)]
struct Jwks<'k> {
    keys: [Jwk<'k>; 1],
}

/// A public key (RFC 7518, section 6; RFC 8037, section 2).
#[derive(Default, Serialize)]
struct Jwk<'k> {
    kty: &'static str,
    r#use: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    kid: Option<&'k str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    crv: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    x: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    y: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    n: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    e: Option<String>,
}

impl Jwk<'_> {
    fn rsa(public: &RsaPublicKeyComponents<Vec<u8>>) -> Self {
        let n = URL_SAFE_NO_PAD.encode(&public.n);
        let e = URL_SAFE_NO_PAD.encode(&public.e);
        Self {
            kty: "RSA",
            r#use: "sig",
            n: Some(n),
            e: Some(e),
            ..Self::default()
        }
    }

    /// Creates a JWK from a point as `ring` encodes it: one byte for the uncompressed form,
    /// followed by both coordinates.
    fn ec(algorithm: Algorithm, point: &[u8]) -> Self {
        let curve = if algorithm == Algorithm::ES256 {
            "P-256"
        } else {
            "P-384"
        };
        let (x, y) = point
            .get(1..)
            .map(|coordinates| coordinates.split_at(coordinates.len() / 2))
            .unwrap_or_default();
        let x = URL_SAFE_NO_PAD.encode(x);
        let y = URL_SAFE_NO_PAD.encode(y);
        Self {
            kty: "EC",
            r#use: "sig",
            crv: Some(curve),
            x: Some(x),
            y: Some(y),
            ..Self::default()
        }
    }

    fn ed(point: &[u8]) -> Self {
        let x = URL_SAFE_NO_PAD.encode(point);
        Self {
            kty: "OKP",
            r#use: "sig",
            crv: Some("Ed25519"),
            x: Some(x),
            ..Self::default()
        }
    }
}
