//! The gate as an OAuth client: logging in to upstream servers, and keeping the logins valid.
//!
//! Nothing in this module depends on MCP messages. Strings that other parties compare (issuer,
//! resource, redirect URI, client id) are kept exactly as received: a URL type that normalizes them
//! would make different strings equal.

pub mod assertion;
mod authorizer;
mod bounds;
pub mod browser;
pub mod callback;
pub mod challenge;
pub mod discover;
mod error;
pub mod fetch;
pub mod grant;
pub mod identity;
pub mod issuer;
mod logins;
mod strict;
#[cfg(test)]
mod testing;
mod types;
pub mod vault;
mod verified;

pub use authorizer::{Authorizer, Bearer, DeviceLogin, Refusal, Shared, StartedLogin};
pub use error::LoginError;
pub use logins::{CallbackRoute, LoginPage, Logins, Plan};
pub use types::{
    AuthorizationServer, Client, ClientAuth, LoginParty, Origin, Principal, Scopes, SecretText,
    TokenGrant, unix_now,
};
pub use verified::TokenDigest;
