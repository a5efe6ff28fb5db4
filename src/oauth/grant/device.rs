//! Logins on another device (RFC 8628).

use std::fmt;
use std::time::Duration;

use oauth2::url::Url;
use serde::Deserialize;
use tokio::time::{Instant, sleep};

use super::GrantError;
use super::code::is_safe_for_browser;
use super::tokens::{Seconds, Tokens, is_sendable};
use super::wire::{TokenClient, read};
use crate::oauth::{SecretText, TokenGrant};

const DEVICE_CODE: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// Lifetime of a code if the server does not state it, and maximum lifetime that is accepted.
const CODE_SECONDS: u64 = 600;
const MOST_CODE_SECONDS: u64 = 1800;
/// Polling interval if the server does not state it (section 3.2), and minimum and maximum if it
/// does.
const INTERVAL_SECONDS: u64 = 5;
const INTERVALS_SECONDS: (u64, u64) = (1, 60);
/// Time that `slow_down` adds to the interval (section 3.5).
const SLOW_DOWN_STEP: Duration = Duration::from_secs(5);
/// Maximum length of a code that a person types, in bytes.
const MOST_USER_CODE_BYTES: usize = 64;

/// A login that waits for a person on another device.
#[derive(Clone)]
pub struct DeviceAttempt {
    /// The code that the person types there.
    pub user_code: String,
    /// The page on which it is typed, checked to be `https` (or `http` on loopback).
    pub verification_uri: String,
    /// The same page with the code in the URL, if there is one.
    pub verification_uri_complete: Option<String>,
    /// Time until the code expires.
    pub lifetime: Duration,
    interval: Duration,
    code: SecretText,
}

impl fmt::Debug for DeviceAttempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let page = &self.verification_uri;
        let lifetime = &self.lifetime;
        f.debug_struct("Device")
            .field("verification_uri", page)
            .field("lasts", lifetime)
            .finish_non_exhaustive()
    }
}

/// The answer with which a login on another device begins (RFC 8628, section 3.2).
#[derive(Deserialize)]
struct DeviceResponse {
    device_code: SecretText,
    user_code: String,
    // The second name predates the standard.
    #[serde(alias = "verification_url")]
    verification_uri: String,
    #[serde(default)]
    verification_uri_complete: Option<String>,
    #[serde(default)]
    expires_in: Seconds,
    #[serde(default)]
    interval: Seconds,
}

impl TokenClient<'_> {
    /// Requests a code that a person types on another device.
    ///
    /// # Errors
    /// Fails with `NotOffered` if the server has no such endpoint, otherwise with the error with
    /// which it responds.
    pub async fn device_begin(&self) -> Result<DeviceAttempt, GrantError> {
        let endpoint = self
            .server
            .device_authorization_endpoint
            .as_deref()
            .ok_or(GrantError::NotOffered("device codes"))?;
        let answer = self.ask(endpoint, &[("resource", self.resource)]).await?;
        let response: DeviceResponse =
            serde_json::from_slice(answer.bytes()).map_err(|_| GrantError::Unreadable)?;
        let is_visitable =
            |text: &String| Url::parse(text).is_ok_and(|url| is_safe_for_browser(&url));
        if !is_visitable(&response.verification_uri) {
            return Err(GrantError::Url("page for device codes"));
        }
        let is_readable = response
            .user_code
            .bytes()
            .all(|b| b.is_ascii_graphic() || b == b' ');
        if !is_readable
            || !(1..=MOST_USER_CODE_BYTES).contains(&response.user_code.len())
            || !is_sendable(&response.device_code, b' ')
        {
            return Err(GrantError::Unreadable);
        }
        let lifetime = response.expires_in.0.unwrap_or(CODE_SECONDS);
        let interval = response.interval.0.unwrap_or(INTERVAL_SECONDS);
        let (least, most) = INTERVALS_SECONDS;
        Ok(DeviceAttempt {
            user_code: response.user_code,
            verification_uri: response.verification_uri,
            verification_uri_complete: response.verification_uri_complete.filter(is_visitable),
            lifetime: Duration::from_secs(lifetime.min(MOST_CODE_SECONDS)),
            interval: Duration::from_secs(interval.clamp(least, most)),
            code: response.device_code,
        })
    }

    /// Polls until the person has finished or the code has expired, no more often than the server
    /// permits.
    ///
    /// # Errors
    /// Fails with `Refused` and `access_denied`, or `expired_token` if the person did not finish in
    /// time; otherwise with the error with which the server responds.
    pub async fn device_poll(&self, device: &DeviceAttempt) -> Result<TokenGrant, GrantError> {
        let deadline = Instant::now() + device.lifetime;
        let max_interval = Duration::from_secs(INTERVALS_SECONDS.1);
        let mut interval = device.interval;
        let parameters = [
            ("grant_type", DEVICE_CODE),
            ("device_code", device.code.expose()),
            ("resource", self.resource),
        ];
        loop {
            if Instant::now() + interval > deadline {
                return Err(GrantError::Refused {
                    error: "expired_token".to_owned(),
                });
            }
            sleep(interval).await;
            let answer = match self.post(&self.server.token_endpoint, &parameters).await {
                Ok(response) => read(&response),
                Err(error) => Err(error),
            };
            match answer {
                Ok(json) => return Tokens::read(&json)?.into_grant(self.scopes, None),
                Err(GrantError::Refused { error }) if error == "authorization_pending" => {}
                Err(GrantError::Refused { error }) if error == "slow_down" => {
                    interval = (interval + SLOW_DOWN_STEP).min(max_interval)
                }
                // A failed request is not an answer: poll less often, until the code expires
                // (section 3.5).
                Err(error) if error.is_transient() => interval = (interval * 2).min(max_interval),
                Err(error) => return Err(error),
            }
        }
    }
}
