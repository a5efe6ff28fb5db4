//! JWTs that others show: RFC 7519, RFC 8725 (best practice) and RFC 9068 (access tokens).

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use jsonwebtoken::crypto;

use super::claims::{Claims, strings};
use super::keys::{Keys, algorithm};
use super::provider;
use crate::message::{Json, ReadLimits, Value, ValueKind};

/// Longest token.
const MOST_BYTES: usize = 16 << 10;
/// Maximum number of keys that are tried where a token does not say which it was signed with.
const MOST_TRIES: usize = 10;
/// Maximum difference of clocks, whatever the config sets.
const MOST_LEEWAY: Duration = Duration::from_secs(300);
/// Numbers beyond are no times: a double holds no whole seconds there.
const LATEST: f64 = 9_007_199_254_740_992.0;

/// Why a token is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JwtError {
    /// Too long to be read.
    #[error("the token is longer than {MOST_BYTES} bytes")]
    TooLong,
    /// Not three parts in base64url, the first two JSON objects with each key once and numbers that fit a double.
    #[error("the token is no signed JWT")]
    NotJwt,
    /// It is a JWT for something else.
    #[error("the token's `typ` is neither `at+jwt` nor `JWT`")]
    Kind,
    /// It wants something to be understood that is not (RFC 7515, section 4.1.11).
    #[error("the token has `crit`, which is not supported")]
    Critical,
    /// Unsigned, signed with a shared secret, or in a way that is not known.
    #[error("the token is not signed with an accepted algorithm")]
    Algorithm,
    /// None of the keys at hand has the id and algorithm that it names: the issuer may have new ones.
    #[error("the token is signed with a key that the issuer's key set does not have")]
    UnknownKey,
    /// The key did not sign this.
    #[error("the token's signature is wrong")]
    Signature,
    /// A claim is missing, or is not of the kind that it must be.
    #[error("the token's `{0}` is missing or malformed")]
    Claim(&'static str),
    /// Somebody else's.
    #[error("the token is of another issuer")]
    Issuer,
    /// Not for this gate.
    #[error("the token is for another audience")]
    Audience,
    /// Over.
    #[error("the token has expired")]
    Expired,
    /// Of the future.
    #[error("the token is not valid yet")]
    NotYet,
}

/// The claims of a token that one of an issuer's keys has signed. Nothing else of them has been checked yet.
#[derive(Clone)]
pub struct SignedClaims(Arc<Json>);

impl SignedClaims {
    /// Verifies the form and the signature of a token, which never change while the keys are the same.
    ///
    /// # Errors
    /// Either is invalid; [`JwtError::UnknownKey`] is worth a look at the issuer's current keys.
    pub fn verify(token: &str, keys: &Keys) -> Result<Self, JwtError> {
        let parts = Parts::read(token)?;
        parts.check_header()?;
        parts.check_signature(keys)?;
        Ok(Self(Arc::new(parts.claims)))
    }

    /// Checks what depends on the time and on the gate: the token is by `issuer` (exactly), for one of `audiences`, and valid
    /// now, give or take `leeway` (5 minutes at most).
    ///
    /// # Errors
    /// It is not.
    pub fn check(
        &self,
        now_unix: u64,
        issuer: &str,
        audiences: &[String],
        leeway: Duration,
    ) -> Result<Claims, JwtError> {
        let claims = self.0.root();
        let text = |name| claims.get(name).and_then(|value| value.str());
        if text("iss").ok_or(JwtError::Claim("iss"))? != issuer {
            return Err(JwtError::Issuer);
        }
        let meant = claims
            .get("aud")
            .map(strings)
            .filter(|meant| !meant.is_empty())
            .ok_or(JwtError::Claim("aud"))?;
        if !meant.iter().any(|meant| audiences.contains(meant)) {
            return Err(JwtError::Audience);
        }
        let leeway = leeway.min(MOST_LEEWAY).as_secs();
        let expires_unix = time(claims, "exp")?.ok_or(JwtError::Claim("exp"))?;
        if expires_unix.saturating_add(leeway) <= now_unix {
            return Err(JwtError::Expired);
        }
        for name in ["nbf", "iat"] {
            if time(claims, name)?.is_some_and(|from| from > now_unix.saturating_add(leeway)) {
                return Err(JwtError::NotYet);
            }
        }
        Ok(Claims {
            json: self.0.clone(),
            expires_unix,
        })
    }
}

/// Who a token says it is by, unverified: good for choosing whose keys to verify it with, and for nothing else.
///
/// # Errors
/// What is no JWT, or has no `iss`.
pub fn issuer_of(token: &str) -> Result<String, JwtError> {
    let claims = Parts::read(token)?.claims;
    claims
        .root()
        .get("iss")
        .and_then(|issuer| issuer.str())
        .map(Into::into)
        .ok_or(JwtError::Claim("iss"))
}

/// A token taken apart, nothing of it believed.
struct Parts<'t> {
    header: Json,
    claims: Json,
    signed: &'t str,
    signature: &'t str,
}

impl<'t> Parts<'t> {
    fn read(token: &'t str) -> Result<Self, JwtError> {
        if token.len() > MOST_BYTES {
            return Err(JwtError::TooLong);
        }
        let (signed, signature) = token.rsplit_once('.').ok_or(JwtError::NotJwt)?;
        let (header, claims) = signed.split_once('.').ok_or(JwtError::NotJwt)?;
        Ok(Self {
            header: object(header)?,
            claims: object(claims)?,
            signed,
            signature,
        })
    }

    fn check_header(&self) -> Result<(), JwtError> {
        let header = self.header.root();
        if header.get("crit").is_some() {
            return Err(JwtError::Critical);
        }
        match header.get("typ") {
            None => Ok(()),
            Some(kind) => {
                let kind = kind.str().unwrap_or_default().to_ascii_lowercase();
                let kind = kind.strip_prefix("application/").unwrap_or(&kind);
                if matches!(kind, "at+jwt" | "jwt") {
                    Ok(())
                } else {
                    Err(JwtError::Kind)
                }
            }
        }
    }

    /// The keys come from the issuer alone: a header that brings or points to its own (`jwk`, `jku`, `x5c`, `x5u`) is not
    /// listened to.
    fn check_signature(&self, keys: &Keys) -> Result<(), JwtError> {
        provider::install();
        let header = self.header.root();
        let named = header
            .get("alg")
            .and_then(|name| name.str())
            .ok_or(JwtError::Algorithm)?;
        let algorithm = algorithm(&named).ok_or(JwtError::Algorithm)?;
        let id = match header.get("kid") {
            Some(id) => Some(id.str().ok_or(JwtError::NotJwt)?),
            None => None,
        };
        let mut any = false;
        for key in keys.fitting(id.as_deref(), algorithm).take(MOST_TRIES) {
            any = true;
            if crypto::verify(self.signature, self.signed.as_bytes(), &key.key, algorithm)
                .unwrap_or(false)
            {
                return Ok(());
            }
        }
        // Without an id nobody knows whether the key was the right one.
        if any && id.is_some() {
            Err(JwtError::Signature)
        } else {
            Err(JwtError::UnknownKey)
        }
    }
}

fn object(part: &str) -> Result<Json, JwtError> {
    let bytes = URL_SAFE_NO_PAD.decode(part).map_err(|_| JwtError::NotJwt)?;
    let limits = ReadLimits {
        message_bytes: MOST_BYTES,
        strings_per_message: 2_000,
        depth: 16,
        batch_items: 0,
        ..ReadLimits::default()
    };
    let json = Json::parse(Bytes::from(bytes), &limits).map_err(|_| JwtError::NotJwt)?;
    // Beyond the range of an IEEE 754 double a number is infinite to one reader and an error to the next (RFC 8259, section 6).
    let mut fits = json.root().kind() == ValueKind::Object;
    json.root().walk(|_, value, _| {
        fits &= value.kind() != ValueKind::Number || value.raw().parse().is_ok_and(f64::is_finite);
    });
    if fits {
        Ok(json)
    } else {
        Err(JwtError::NotJwt)
    }
}

/// A time (RFC 7519, section 2): a number, with a fraction at will.
fn time(claims: Value<'_>, name: &'static str) -> Result<Option<u64>, JwtError> {
    let Some(value) = claims.get(name) else {
        return Ok(None);
    };
    let seconds = (value.kind() == ValueKind::Number)
        .then(|| value.raw().parse::<f64>().ok())
        .flatten();
    let seconds = seconds
        .filter(|seconds| (0.0..LATEST).contains(seconds))
        .ok_or(JwtError::Claim(name))?;
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and 2^53"
    )]
    Ok(Some(seconds as u64))
}
