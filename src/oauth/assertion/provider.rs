//! The cryptography of `jsonwebtoken`, implemented with `ring`: the crate itself comes either with
//! C code (`aws_lc_rs`) or with an RSA implementation whose timing leaks the key (`rust_crypto`,
//! RUSTSEC-2023-0071). HMAC is left out, since anyone who can verify such a token can also create
//! one.

use std::sync::OnceLock;

use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result};
use jsonwebtoken::signature::{Error, Signer, Verifier};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind, EncodingKey};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED,
    ECDSA_P384_SHA384_FIXED_SIGNING, ED25519, EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair,
    RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512,
    RSA_PKCS1_SHA256, RSA_PKCS1_SHA384, RSA_PKCS1_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RSA_PSS_SHA256, RSA_PSS_SHA384,
    RSA_PSS_SHA512, RsaEncoding, RsaKeyPair, RsaParameters, RsaPublicKeyComponents,
    UnparsedPublicKey,
};

/// Installs `ring` as the provider with which `jsonwebtoken` signs and verifies, once per process.
pub(super) fn install() {
    static INSTALLED: OnceLock<bool> = OnceLock::new();
    INSTALLED.get_or_init(|| PROVIDER.install_default().is_ok());
}

/// Parses an RSA key pair from PKCS #8 or PKCS #1.
pub(super) fn rsa_pair(der: &[u8]) -> Option<RsaKeyPair> {
    RsaKeyPair::from_pkcs8(der)
        .or_else(|_| RsaKeyPair::from_der(der))
        .ok()
}

/// Parses an EC key pair from PKCS #8.
pub(super) fn ec_pair(algorithm: Algorithm, der: &[u8]) -> Option<EcdsaKeyPair> {
    EcdsaKeyPair::from_pkcs8(curve(algorithm)?, der, &SystemRandom::new()).ok()
}

/// Parses an Ed25519 key pair from PKCS #8; most tools leave out the public key.
pub(super) fn ed_pair(der: &[u8]) -> Option<Ed25519KeyPair> {
    Ed25519KeyPair::from_pkcs8_maybe_unchecked(der).ok()
}

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: signer,
    verifier_factory: verifier,
    // Thumbprints and conversions of keys, which are not used here.
    key_utils: KeyUtils {
        rsa_pub_components_from_private_key: |_| Err(ErrorKind::UnsupportedAlgorithm.into()),
        rsa_pub_components_from_public_key: |_| Err(ErrorKind::UnsupportedAlgorithm.into()),
        ec_pub_components_from_private_key: |_, _| Err(ErrorKind::UnsupportedAlgorithm.into()),
        ed_pub_components_from_private_key: |_, _| Err(ErrorKind::UnsupportedAlgorithm.into()),
        compute_digest: |_, _| Err(ErrorKind::UnsupportedAlgorithm.into()),
    },
};

struct RingSigner {
    algorithm: Algorithm,
    pair: Pair,
}

enum Pair {
    Rsa(RsaKeyPair, &'static dyn RsaEncoding),
    Ec(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
}

fn signer(algorithm: &Algorithm, key: &EncodingKey) -> Result<Box<dyn JwtSigner>> {
    let algorithm = *algorithm;
    let der = key.as_bytes();
    let pair = match algorithm.family() {
        family if family != key.family() => None,
        AlgorithmFamily::Rsa => rsa_pair(der)
            .zip(rsa(algorithm))
            .map(|(pair, (padding, _))| Pair::Rsa(pair, padding)),
        AlgorithmFamily::Ec => ec_pair(algorithm, der).map(Pair::Ec),
        AlgorithmFamily::Ed => ed_pair(der).map(Pair::Ed),
        AlgorithmFamily::Hmac => None,
    };
    let pair = pair.ok_or(ErrorKind::InvalidKeyFormat)?;
    Ok(Box::new(RingSigner { algorithm, pair }))
}

impl Signer<Vec<u8>> for RingSigner {
    fn try_sign(&self, message: &[u8]) -> std::result::Result<Vec<u8>, Error> {
        let random = SystemRandom::new();
        match &self.pair {
            Pair::Rsa(pair, padding) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(*padding, &random, message, &mut signature)
                    .map_err(|_| Error::new())?;
                Ok(signature)
            }
            Pair::Ec(pair) => pair
                .sign(&random, message)
                .map(|s| s.as_ref().to_vec())
                .map_err(|_| Error::new()),
            Pair::Ed(pair) => Ok(pair.sign(message).as_ref().to_vec()),
        }
    }
}

impl JwtSigner for RingSigner {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

struct RingVerifier {
    algorithm: Algorithm,
    key: DecodingKey,
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    if algorithm.family() == AlgorithmFamily::Hmac || algorithm.family() != key.family() {
        return Err(ErrorKind::InvalidKeyFormat.into());
    }
    Ok(Box::new(RingVerifier {
        algorithm: *algorithm,
        key: key.clone(),
    }))
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), Error> {
        let verified = match (self.algorithm, self.key.kind()) {
            (algorithm, DecodingKeyKind::RsaModulusExponent { n, e }) => {
                let (_, parameters) = rsa(algorithm).ok_or_else(Error::new)?;
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)
            }
            (Algorithm::ES256, DecodingKeyKind::SecretOrDer(point)) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature)
            }
            (Algorithm::ES384, DecodingKeyKind::SecretOrDer(point)) => {
                UnparsedPublicKey::new(&ECDSA_P384_SHA384_FIXED, point).verify(message, signature)
            }
            (Algorithm::EdDSA, DecodingKeyKind::SecretOrDer(point)) => {
                UnparsedPublicKey::new(&ED25519, point).verify(message, signature)
            }
            _ => return Err(Error::new()),
        };
        verified.map_err(|_| Error::new())
    }
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

fn rsa(algorithm: Algorithm) -> Option<(&'static dyn RsaEncoding, &'static RsaParameters)> {
    Some(match algorithm {
        Algorithm::RS256 => (&RSA_PKCS1_SHA256, &RSA_PKCS1_2048_8192_SHA256),
        Algorithm::RS384 => (&RSA_PKCS1_SHA384, &RSA_PKCS1_2048_8192_SHA384),
        Algorithm::RS512 => (&RSA_PKCS1_SHA512, &RSA_PKCS1_2048_8192_SHA512),
        Algorithm::PS256 => (&RSA_PSS_SHA256, &RSA_PSS_2048_8192_SHA256),
        Algorithm::PS384 => (&RSA_PSS_SHA384, &RSA_PSS_2048_8192_SHA384),
        Algorithm::PS512 => (&RSA_PSS_SHA512, &RSA_PSS_2048_8192_SHA512),
        _ => return None,
    })
}

fn curve(algorithm: Algorithm) -> Option<&'static EcdsaSigningAlgorithm> {
    match algorithm {
        Algorithm::ES256 => Some(&ECDSA_P256_SHA256_FIXED_SIGNING),
        Algorithm::ES384 => Some(&ECDSA_P384_SHA384_FIXED_SIGNING),
        _ => None,
    }
}
