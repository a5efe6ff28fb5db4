//! The gate as an OAuth client: what it needs to log in to servers, and to stay logged in.
//!
//! Nothing here knows of MCP messages. Strings that other parties compare (issuer, resource, redirect URI, client id)
//! are kept as they came: a URL type that normalises them would make equal what is not.

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
#[cfg(test)]
mod testing;
mod types;
pub mod vault;
mod verified;

pub use authorizer::{Authorizer, Bearer, DeviceLogin, Refusal, Shared, StartedLogin};
pub use error::LoginError;
pub use logins::{CallbackRoute, LoginPage, Logins, Plan};
pub use types::{
    AuthorizationServer, Client, ClientAuth, Hidden, LoginParty, Origin, Principal, Scopes,
    TokenGrant, unix_now,
};
pub use verified::TokenDigest;
