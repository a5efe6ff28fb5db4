//! Every request for a token, and for its end.
//!
//! The `oauth2` crate has the authorization request, PKCE and the grants that it knows; what it does not (token
//! exchange, JWT bearer, a device's polling with fresh assertions, revocation on loopback) is sent by `wire`, which all
//! of them pass. Answers are read strictly, errors hold a code at most, and nothing that a server writes for people is
//! repeated.

mod code;
mod device;
mod enterprise;
mod error;
mod renew;
mod tokens;
mod wire;

pub use code::{Answer, Attempt, begin, check_answer, redeem};
pub use device::{DeviceAttempt, device_begin, device_poll};
pub use enterprise::{enterprise, workload};
pub use error::GrantError;
pub use renew::{client_credentials, refresh, revoke};

#[cfg(test)]
mod tests;
