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

pub use code::{Answer, Attempt, check_answer};
pub use device::DeviceAttempt;
pub use error::GrantError;
pub use wire::TokenClient;

#[cfg(test)]
mod tests;
