//! The metadata documents of the server.

use http::StatusCode;
use serde_json::json;

use super::{Answer, FURTHER_SCOPE, Login, OFFLINE, SCOPE, reply};

impl Login {
    /// Returns the metadata of the resource (RFC 9728, section 2). The additional scope is not
    /// listed: clients learn about it when it is missing.
    pub(super) fn resource_metadata(&self) -> Answer {
        let body = json!({
            "resource": self.settings.resource,
            "authorization_servers": [self.settings.issuer],
            "scopes_supported": [SCOPE],
            "bearer_methods_supported": ["header"],
            "resource_name": "lychgate's sample server",
        });
        reply(StatusCode::OK, &body)
    }

    /// Returns the metadata of the authorization server (RFC 8414, section 2).
    pub(super) fn server_metadata(&self) -> Answer {
        let at = |path: &str| format!("{}{path}", self.settings.issuer);
        let methods = ["none", "client_secret_basic", "client_secret_post"];
        let body = json!({
            "issuer": self.settings.issuer,
            "authorization_endpoint": at("/authorize"),
            "token_endpoint": at("/token"),
            "registration_endpoint": at("/register"),
            "revocation_endpoint": at("/revoke"),
            "device_authorization_endpoint": at("/device"),
            "scopes_supported": [SCOPE, FURTHER_SCOPE, OFFLINE],
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token", "client_credentials", super::device::GRANT],
            "token_endpoint_auth_methods_supported": methods,
            "revocation_endpoint_auth_methods_supported": methods,
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": true,
        });
        reply(StatusCode::OK, &body)
    }
}
