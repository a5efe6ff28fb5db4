//! Issuers of agents' tokens: their keys are fetched, cached within limits, and fetched again when
//! they change.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{Method, Request, StatusCode};
use parking_lot::Mutex;
use prometheus::IntCounter;
use serde::Deserialize;

use super::assertion::{Claims, JwtError, Keys, SignedClaims};
use super::fetch::Fetcher;
use super::unix_now;
use super::verified::{TokenDigest, VerifiedTokens};
use crate::config::{IssuerConfig, OAuthConfig};

/// Age at which keys are fetched again, so that a withdrawn key remains valid no longer than this.
const MAX_KEY_AGE: Duration = Duration::from_secs(900);
/// Minimum interval between two requests for keys, for all callers: neither tokens with unknown
/// keys nor an unreachable issuer can cause more frequent requests.
const MIN_FETCH_INTERVAL: Duration = Duration::from_secs(10);

/// An issuer and its cached keys.
pub struct Issuer {
    config: IssuerConfig,
    fetcher: Fetcher,
    cached: Mutex<CachedKeys>,
    verified: VerifiedTokens,
    /// Held by the task that fetches; others wait for its result.
    fetch_lock: tokio::sync::Mutex<()>,
    fetch_interval: Duration,
}

#[derive(Clone, Default)]
struct CachedKeys {
    keys: Option<(Arc<Keys>, Instant)>,
    last_attempt: Option<Instant>,
}

/// Why a token is refused.
#[derive(Debug, PartialEq, Eq)]
pub enum TokenRefused {
    /// The token is invalid.
    Invalid(JwtError),
    /// The issuer's keys cannot be obtained.
    Unreachable,
}

/// The fields of an issuer's metadata that are used (RFC 8414, section 2).
#[derive(Deserialize)]
struct Metadata {
    issuer: String,
    jwks_uri: Option<String>,
}

impl Issuer {
    /// Creates an issuer without fetching anything. Caches at most `verified_tokens` tokens;
    /// `evicted` counts those that are removed to make room for others.
    ///
    /// # Errors
    /// Fails if no connection can be set up, with a message for the operator.
    pub fn new(
        config: IssuerConfig,
        oauth: &OAuthConfig,
        verified_tokens: usize,
        evicted: IntCounter,
    ) -> Result<Self, String> {
        let fetcher = Fetcher::for_config(oauth, config.ca.as_deref())?;
        let verified = VerifiedTokens::new(verified_tokens, evicted);
        Ok(Self {
            config,
            fetcher,
            cached: Mutex::default(),
            verified,
            fetch_lock: tokio::sync::Mutex::default(),
            fetch_interval: MIN_FETCH_INTERVAL,
        })
    }

    /// Returns the config of the issuer.
    pub fn config(&self) -> &IssuerConfig {
        &self.config
    }

    /// Reports whether a token with this digest was verified as this issuer's before. It is valid
    /// only if [`Self::check`] accepts it.
    pub fn has_verified(&self, digest: &TokenDigest) -> bool {
        self.verified.contains(digest)
    }

    /// Clears the cache, so that every token is verified again when it is next presented.
    pub fn forget_verified(&self) {
        self.verified.clear();
    }

    /// Returns the claims of a token if it is this issuer's and valid. It must be for one of
    /// `audiences`, unless the config names others. `digest` is that of the token.
    ///
    /// # Errors
    /// Fails if the token is refused.
    pub async fn check(
        &self,
        token: &str,
        digest: &TokenDigest,
        audiences: &[String],
    ) -> Result<Claims, TokenRefused> {
        self.check_at(unix_now(), token, digest, audiences).await
    }

    async fn check_at(
        &self,
        now_unix: u64,
        token: &str,
        digest: &TokenDigest,
        audiences: &[String],
    ) -> Result<Claims, TokenRefused> {
        let leeway = self.config.leeway;
        let audiences = if self.config.audience.is_empty() {
            audiences
        } else {
            &self.config.audience
        };
        let check_claims = |signed: &SignedClaims| {
            signed
                .check(now_unix, &self.config.issuer, audiences, leeway)
                .map_err(TokenRefused::Invalid)
        };
        let Some(mut keys) = self.keys(None).await else {
            return Err(TokenRefused::Unreachable);
        };
        if let Some(signed) = self.verified.get(digest, &keys) {
            let claims = check_claims(&signed);
            if matches!(claims, Err(TokenRefused::Invalid(JwtError::Expired))) {
                self.verified.remove(digest);
            }
            return claims;
        }
        let mut signed = SignedClaims::verify(token, &keys);
        if matches!(signed, Err(JwtError::UnknownKey))
            && let Some(newer) = self.keys(Some(&keys)).await
        {
            keys = newer;
            signed = SignedClaims::verify(token, &keys);
        }
        let signed = signed.map_err(TokenRefused::Invalid)?;
        let claims = check_claims(&signed)?;
        let expires_unix = claims.expires_unix().saturating_add(leeway.as_secs());
        self.verified
            .insert(*digest, &keys, signed, expires_unix, now_unix);
        Ok(claims)
    }

    /// Returns the current keys; if `rejected` is given, only keys other than those if there are
    /// any. `None` if there are no valid keys.
    async fn keys(&self, rejected: Option<&Arc<Keys>>) -> Option<Arc<Keys>> {
        let usable_keys = |entry: &CachedKeys| {
            let (keys, since) = entry.keys.as_ref()?;
            let is_other = rejected.is_none_or(|but| !Arc::ptr_eq(but, keys));
            (is_other && since.elapsed() < MAX_KEY_AGE).then(|| keys.clone())
        };
        if let Some(keys) = usable_keys(&self.cached.lock()) {
            return Some(keys);
        }
        let _fetch_guard = self.fetch_lock.lock().await;
        let snapshot = self.cached.lock().clone();
        if let Some(keys) = usable_keys(&snapshot) {
            return Some(keys);
        }
        if snapshot
            .last_attempt
            .is_none_or(|tried| tried.elapsed() >= self.fetch_interval)
        {
            let fetched = self.fetch().await;
            let mut cached = self.cached.lock();
            cached.last_attempt = Some(Instant::now());
            match fetched {
                Ok(keys) => cached.keys = Some((Arc::new(keys), Instant::now())),
                Err(why) => tracing::warn!(
                    issuer = self.config.issuer,
                    why,
                    "cannot fetch the issuer's keys"
                ),
            }
        }
        let cached = self.cached.lock();
        let (keys, since) = cached.keys.as_ref()?;
        (since.elapsed() < self.config.keys_keep).then(|| keys.clone())
    }

    async fn fetch(&self) -> Result<Keys, String> {
        let uri = match &self.config.jwks_uri {
            Some(uri) => uri.clone(),
            None => self.jwks_uri().await?,
        };
        let request = Request::builder()
            .method(Method::GET)
            .uri(&uri)
            .header("accept", "application/json")
            .body(Vec::new());
        let request = request.map_err(|_| "its `jwks_uri` is no URL".to_owned())?;
        let response = self
            .fetcher
            .exchange(request)
            .await
            .map_err(|error| error.to_string())?;
        if response.status() != StatusCode::OK {
            return Err(format!(
                "its `jwks_uri` answers {}",
                response.status().as_u16()
            ));
        }
        let keys = Keys::parse(response.body()).map_err(|error| error.to_string())?;
        if keys.is_empty() {
            Err("its key set has no key that can be used".to_owned())
        } else {
            Ok(keys)
        }
    }

    /// Returns the key set URL in the issuer's metadata. Metadata of another issuer is ignored.
    async fn jwks_uri(&self) -> Result<String, String> {
        let mut why = String::new();
        for url in well_known(&self.config.issuer) {
            match self.fetcher.get_json::<Metadata>(&url).await {
                Ok(Metadata {
                    issuer,
                    jwks_uri: Some(uri),
                }) if issuer == self.config.issuer => return Ok(uri),
                Ok(_) => {
                    "its metadata is another issuer's, or names no `jwks_uri`".clone_into(&mut why)
                }
                Err(error) => why = error.to_string(),
            }
        }
        Err(why)
    }
}

/// Returns the URLs at which an issuer's metadata may be (RFC 8414, section 3.1; OpenID Connect
/// Discovery 1.0, section 4).
fn well_known(issuer: &str) -> Vec<String> {
    let after_scheme = issuer.find("://").map_or(0, |at| at + 3);
    let path_at = issuer
        .get(after_scheme..)
        .and_then(|rest| rest.find('/'))
        .map_or(issuer.len(), |at| after_scheme + at);
    let (site, path) = issuer.split_at_checked(path_at).unwrap_or((issuer, ""));
    let path = path.trim_end_matches('/');
    let mut urls: Vec<String> = ["oauth-authorization-server", "openid-configuration"]
        .iter()
        .map(|name| format!("{site}/.well-known/{name}{path}"))
        .collect();
    if !path.is_empty() {
        urls.push(format!("{site}{path}/.well-known/openid-configuration"));
    }
    urls
}

#[cfg(test)]
mod tests;
