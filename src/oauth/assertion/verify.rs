//! JWTs that other parties present: RFC 7519, RFC 8725 (best current practice) and RFC 9068 (access
//! tokens).

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::crypto;

use super::claims::{Claims, strings};
use super::keys::{Keys, algorithm};
use super::provider;
use crate::message::{Json, Value, ValueKind};
use crate::oauth::strict;

/// Maximum length of a token, in bytes.
const MOST_BYTES: usize = 16 << 10;
/// Maximum number of keys that are tried for a token that does not name its key.
const MOST_TRIES: usize = 10;
/// Maximum leeway for clock skew, regardless of the config.
const MOST_LEEWAY: Duration = Duration::from_secs(300);
/// Upper limit of times: beyond it, a double cannot represent every whole second.
const LATEST: f64 = 9_007_199_254_740_992.0;

/// Why a token is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JwtError {
    /// The token exceeds the maximum length.
    #[error("the token is longer than {MOST_BYTES} bytes")]
    TooLong,
    /// Not three parts in base64url, of which the first two are JSON objects with unique keys and
    /// numbers that fit a double.
    #[error("the token is no signed JWT")]
    NotJwt,
    /// A JWT for another use.
    #[error("the token's `typ` is neither `at+jwt` nor `JWT`")]
    Kind,
    /// The token requires an extension that is not supported (RFC 7515, section 4.1.11).
    #[error("the token has `crit`, which is not supported")]
    Critical,
    /// The token is unsigned, or signed with a shared secret or an unknown algorithm.
    #[error("the token is not signed with an accepted algorithm")]
    Algorithm,
    /// None of the available keys has the key id and algorithm that the token names; the issuer may
    /// have new keys.
    #[error("the token is signed with a key that the issuer's key set does not have")]
    UnknownKey,
    /// The signature was not made with the key.
    #[error("the token's signature is wrong")]
    Signature,
    /// A claim is missing or has the wrong type.
    #[error("the token's `{0}` is missing or malformed")]
    Claim(&'static str),
    /// The token was issued by another issuer.
    #[error("the token is of another issuer")]
    Issuer,
    /// The token is for another audience.
    #[error("the token is for another audience")]
    Audience,
    /// The token has expired.
    #[error("the token has expired")]
    Expired,
    /// The token is not valid yet.
    #[error("the token is not valid yet")]
    NotYet,
}

/// The claims of a token that was signed with one of an issuer's keys. Nothing else about them has
/// been checked.
#[derive(Clone)]
pub struct SignedClaims(Arc<Json>);

impl SignedClaims {
    /// Verifies the form and the signature of a token, which do not change while the keys are the
    /// same.
    ///
    /// # Errors
    /// Fails if either is invalid. On [`JwtError::UnknownKey`], fetching the issuer's current keys
    /// may help.
    pub fn verify(token: &str, keys: &Keys) -> Result<Self, JwtError> {
        let parts = Parts::read(token)?;
        parts.check_header()?;
        parts.check_signature(keys)?;
        Ok(Self(Arc::new(parts.claims)))
    }

    /// Checks what depends on the time and on the gate: the token is from `issuer` (exactly), for
    /// one of `audiences`, and valid now, within `leeway` (5 minutes at most).
    ///
    /// # Errors
    /// Fails if any of these does not hold.
    pub fn check(
        &self,
        now_unix: u64,
        issuer: &str,
        audiences: &[String],
        leeway: Duration,
    ) -> Result<Claims, JwtError> {
        let claims = self.0.root();
        let text = |name| claims.get_str(name);
        if text("iss").ok_or(JwtError::Claim("iss"))? != issuer {
            return Err(JwtError::Issuer);
        }
        let token_audiences = claims
            .get("aud")
            .map(strings)
            .filter(|values| !values.is_empty())
            .ok_or(JwtError::Claim("aud"))?;
        if !token_audiences
            .iter()
            .any(|meant| audiences.contains(meant))
        {
            return Err(JwtError::Audience);
        }
        let leeway = leeway.min(MOST_LEEWAY).as_secs();
        let expires_unix = time(claims, "exp")?.ok_or(JwtError::Claim("exp"))?;
        if expires_unix.saturating_add(leeway) <= now_unix {
            return Err(JwtError::Expired);
        }
        for name in ["nbf", "iat"] {
            if time(claims, name)?
                .is_some_and(|valid_from| valid_from > now_unix.saturating_add(leeway))
            {
                return Err(JwtError::NotYet);
            }
        }
        Ok(Claims {
            json: self.0.clone(),
            expires_unix,
        })
    }
}

/// Returns the issuer that a token names, unverified: use it only to choose the keys to verify the
/// token with.
///
/// # Errors
/// Fails if the token is not a JWT or has no `iss`.
pub fn issuer_of(token: &str) -> Result<String, JwtError> {
    let claims = Parts::read(token)?.claims;
    claims
        .root()
        .get_str("iss")
        .map(Into::into)
        .ok_or(JwtError::Claim("iss"))
}

/// A token split into its parts, none of them verified.
struct Parts<'t> {
    header: Json,
    claims: Json,
    signing_input: &'t str,
    signature: &'t str,
}

impl<'t> Parts<'t> {
    fn read(token: &'t str) -> Result<Self, JwtError> {
        if token.len() > MOST_BYTES {
            return Err(JwtError::TooLong);
        }
        let (signing_input, signature) = token.rsplit_once('.').ok_or(JwtError::NotJwt)?;
        let (header, claims) = signing_input.split_once('.').ok_or(JwtError::NotJwt)?;
        Ok(Self {
            header: object(header)?,
            claims: object(claims)?,
            signing_input,
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

    /// Verifies the signature. Keys come only from the issuer: a header that contains or references
    /// its own keys (`jwk`, `jku`, `x5c`, `x5u`) is ignored.
    fn check_signature(&self, keys: &Keys) -> Result<(), JwtError> {
        provider::install();
        let header = self.header.root();
        let algorithm_name = header.get_str("alg").ok_or(JwtError::Algorithm)?;
        let algorithm = algorithm(&algorithm_name).ok_or(JwtError::Algorithm)?;
        let id = match header.get("kid") {
            Some(id) => Some(id.str().ok_or(JwtError::NotJwt)?),
            None => None,
        };
        let mut has_candidate = false;
        for key in keys.candidates(id.as_deref(), algorithm).take(MOST_TRIES) {
            has_candidate = true;
            if crypto::verify(
                self.signature,
                self.signing_input.as_bytes(),
                &key.key,
                algorithm,
            )
            .unwrap_or(false)
            {
                return Ok(());
            }
        }
        // Without a key id, it is unknown whether the key was the right one.
        if has_candidate && id.is_some() {
            Err(JwtError::Signature)
        } else {
            Err(JwtError::UnknownKey)
        }
    }
}

fn object(part: &str) -> Result<Json, JwtError> {
    let bytes = URL_SAFE_NO_PAD.decode(part).map_err(|_| JwtError::NotJwt)?;
    strict::parse(&bytes, MOST_BYTES, 2_000, 16)
        .filter(|json| json.root().kind() == ValueKind::Object && strict::has_finite_numbers(json))
        .ok_or(JwtError::NotJwt)
}

/// Returns a time (RFC 7519, section 2): a number, possibly with a fraction.
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
