//! The clients that may request tokens.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::AUTHORIZATION;
use http::{HeaderMap, StatusCode, Uri};
use serde_json::{Value, json};

use super::{Answer, LONG_TTL, Login, Pairs, error, parse_pairs, reply, secret};

/// A registered client.
#[derive(Clone)]
pub(super) struct Client {
    pub(super) name: String,
    redirects: Vec<String>,
    grants: Vec<String>,
    secret: Option<(SecretMethod, String)>,
}

/// How a client sends its secret.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SecretMethod {
    Basic,
    Post,
    Either,
}

impl Client {
    /// Creates a client that may act on its own behalf, and has no other grant.
    pub(super) fn confidential(secret: String) -> Self {
        let grants = vec!["client_credentials".to_owned()];
        Self {
            name: "sample client".to_owned(),
            redirects: vec![],
            grants,
            secret: Some((SecretMethod::Either, secret)),
        }
    }

    pub(super) fn allows_grant(&self, grant: &str) -> bool {
        self.grants.iter().any(|granted| granted == grant)
    }

    /// Reports whether users may be redirected to `uri`. A loopback address may have any port (RFC
    /// 8252, section 7.3).
    pub(super) fn allows_redirect(&self, uri: &str) -> bool {
        self.redirects.iter().any(|registered| {
            registered == uri
                || portless(registered).is_some_and(|known| Some(known) == portless(uri))
        })
    }
}

/// Returns a redirect URI on a loopback address without its port.
fn portless(uri: &str) -> Option<(String, String)> {
    let uri: Uri = uri.parse().ok()?;
    let loopback = uri.scheme_str() == Some("http") && matches!(uri.host()?, "127.0.0.1" | "[::1]");
    loopback.then(|| Some((uri.host()?.to_owned(), uri.path_and_query()?.to_string())))?
}

impl Login {
    /// Registers a client (RFC 7591).
    pub(super) fn register(&self, body: &[u8]) -> Answer {
        let Ok(metadata) = serde_json::from_slice::<Value>(body) else {
            return error("invalid_client_metadata");
        };
        let strings = |name: &str| -> Vec<String> {
            let list = metadata.get(name).and_then(Value::as_array);
            list.into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect()
        };
        let redirects = strings("redirect_uris");
        let mut grants = strings("grant_types");
        // The default of a client that does not list any (RFC 7591, section 2).
        if grants.is_empty() {
            grants.push("authorization_code".to_owned());
        }
        let needs_uri = grants.iter().any(|grant| grant == "authorization_code");
        if needs_uri && redirects.is_empty()
            || !redirects
                .iter()
                .all(|uri| uri.starts_with("https://") || portless(uri).is_some())
        {
            return error("invalid_redirect_uri");
        }
        let method = metadata
            .get("token_endpoint_auth_method")
            .and_then(Value::as_str)
            .unwrap_or("client_secret_basic");
        let id = secret();
        let secret = match method {
            "none" => None,
            "client_secret_basic" => Some((SecretMethod::Basic, secret())),
            "client_secret_post" => Some((SecretMethod::Post, secret())),
            _ => return error("invalid_client_metadata"),
        };
        // Registered clients may not act on their own behalf; one without a secret could not
        // authenticate for that.
        grants.retain(|grant| grant != "client_credentials");
        let name: String = metadata
            .get("client_name")
            .and_then(Value::as_str)
            .unwrap_or("a client")
            .chars()
            .take(80)
            .collect();
        let mut response = json!({
            "client_id": id,
            "client_name": name,
            "redirect_uris": redirects,
            "grant_types": grants,
            "response_types": ["code"],
            "token_endpoint_auth_method": method,
        });
        if let (Some((_, secret)), Some(object)) = (&secret, response.as_object_mut()) {
            object.insert("client_secret".to_owned(), secret.as_str().into());
            object.insert("client_secret_expires_at".to_owned(), 0.into());
        }
        self.state.lock().clients.put(
            id,
            Client {
                name,
                redirects,
                grants,
                secret,
            },
            LONG_TTL,
        );
        reply(StatusCode::CREATED, &response)
    }

    /// Returns the client that sent a request to the token endpoint or a similar one (RFC 6749,
    /// section 2.3).
    pub(super) fn client(
        &self,
        headers: &HeaderMap,
        form: &Pairs,
    ) -> Result<(String, Client), Box<Answer>> {
        let refusal = || Box::new(error("invalid_client"));
        let basic = headers
            .get(AUTHORIZATION)
            .map(|value| basic(value.as_bytes()).ok_or_else(refusal))
            .transpose()?;
        let (method, id, secret) = match (basic, form.get("client_secret")) {
            (Some(_), Some(_)) => return Err(refusal()),
            (Some((id, secret)), None) => (Some(SecretMethod::Basic), id, Some(secret)),
            (None, secret) => {
                let id = form.get("client_id").ok_or_else(refusal)?.to_owned();
                (
                    secret.map(|_| SecretMethod::Post),
                    id,
                    secret.map(str::to_owned),
                )
            }
        };
        let client = self
            .state
            .lock()
            .clients
            .get(&id)
            .cloned()
            .ok_or_else(refusal)?;
        let is_valid = match (&client.secret, method) {
            (None, None) => true,
            (Some((registered, stored_secret)), Some(way)) => {
                (*registered == way || *registered == SecretMethod::Either)
                    && Some(stored_secret) == secret.as_ref()
            }
            _ => false,
        };
        if is_valid {
            Ok((id, client))
        } else {
            Err(refusal())
        }
    }
}

/// Decodes the id and the secret in a `Basic` header; both are form-encoded (RFC 6749, section
/// 2.3.1).
fn basic(value: &[u8]) -> Option<(String, String)> {
    let encoded = std::str::from_utf8(value).ok()?.strip_prefix("Basic ")?;
    let decoded = String::from_utf8(STANDARD.decode(encoded).ok()?).ok()?;
    let (id, secret) = decoded.split_once(':')?;
    // The form decoder only accepts pairs, so each value is decoded as a form with a dummy name.
    let decode = |text: &str| {
        parse_pairs(format!("v={text}").as_bytes())
            .get("v")
            .map(str::to_owned)
    };
    Some((decode(id)?, decode(secret)?))
}
