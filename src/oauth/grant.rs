//! All requests that obtain or revoke a token.
//!
//! The `oauth2` crate implements the authorization request, PKCE and the grants that it supports.
//! The others (token exchange, JWT bearer, device polling with fresh assertions, revocation on
//! loopback) are implemented here. All of them are sent by `wire`. Responses are parsed strictly,
//! errors contain at most a code, and text that a server writes for people is not repeated.

mod code;
mod device;
mod enterprise;
mod error;
mod renew;
mod tokens;
mod wire;

pub use code::{Answer, Attempt, begin, check_answer, redeem};
pub use device::{DeviceAttempt, device_begin, device_poll};
pub use enterprise::{enterprise, redeem_assertion};
pub use error::GrantError;
pub use renew::{client_credentials, refresh, revoke};

#[cfg(test)]
mod tests;
