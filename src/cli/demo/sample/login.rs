//! The sample server's login: an OAuth 2.1 authorization server that stores everything in memory,
//! and the validation of its tokens. One user can log in, with a name and a password.
//!
//! It is as strict as a server may be. It rejects what many servers accept (an authorization
//! request without `state` or `resource`, reuse of a refresh token), so that a gate that works here
//! works with those servers too.

mod authorize;
mod clients;
mod device;
mod metadata;
mod page;
mod token;
mod ttl_map;

#[cfg(test)]
mod tests;

use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use oauth2::url::form_urlencoded;
use parking_lot::Mutex;
use serde_json::{Value, json};

use clients::Client;
use ttl_map::TtlMap;

use super::PATH;
use crate::protocol::secret;

/// A complete response.
pub type Answer = Response<Full<Bytes>>;

/// The scope that every tool requires.
pub const SCOPE: &str = "tools";
/// The scope that running commands requires in addition to [`SCOPE`].
pub const FURTHER_SCOPE: &str = "commands";
/// The scope that a refresh token requires.
const OFFLINE: &str = "offline_access";
/// How long a user may take to log in, and how long a code is valid.
const LOGIN_TTL: Duration = Duration::from_secs(600);
const CODE_TTL: Duration = Duration::from_secs(60);
/// How long clients and refresh tokens are valid.
const LONG_TTL: Duration = Duration::from_secs(30 * 24 * 3600);

/// The settings of the server.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The issuer identifier, which is the server's origin.
    pub issuer: String,
    /// The URL for which tokens are issued.
    pub resource: String,
    /// The name and the password of the user.
    pub person: (String, String),
    /// The id and the secret of a preregistered client that may act on its own behalf.
    pub client: (String, String),
    /// How long an access token is valid.
    pub access: Duration,
}

impl Settings {
    /// Returns the settings of a server at `issuer`, with an unguessable password and client
    /// secret.
    pub fn new(issuer: &str, access: Duration) -> Self {
        let password: String = secret().chars().take(10).collect();
        Self {
            issuer: issuer.to_owned(),
            resource: format!("{issuer}{PATH}"),
            person: ("ada".to_owned(), password),
            client: ("sample-client".to_owned(), secret()),
            access,
        }
    }
}

/// The authorization server and what it has issued.
pub struct Login {
    settings: Settings,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    clients: TtlMap<Client>,
    pages: TtlMap<authorize::Page>,
    codes: TtlMap<authorize::Code>,
    devices: TtlMap<device::Device>,
    access: TtlMap<Grant>,
    refresh: TtlMap<Refresh>,
}

/// What was granted to a client.
#[derive(Clone)]
struct Grant {
    /// The login that the grant comes from; everything issued for it ends together.
    family: String,
    client: String,
    scopes: Vec<String>,
}

struct Refresh {
    grant: Grant,
    used: bool,
}

impl State {
    /// Ends everything that was issued for a login.
    fn revoke_family(&mut self, family: &str) {
        self.access.retain(|grant| grant.family != family);
        self.refresh
            .retain(|refresh| refresh.grant.family != family);
    }
}

impl Login {
    /// Creates a server that has not received any requests.
    pub fn new(settings: Settings) -> Self {
        let mut state = State::default();
        let (id, secret) = settings.client.clone();
        state
            .clients
            .put(id, Client::confidential(secret), LONG_TTL);
        Self {
            settings,
            state: Mutex::new(state),
        }
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Answers requests to the authorization server; `None` for a path that is not its own.
    pub fn answer(&self, request: &Request<Bytes>) -> Option<Answer> {
        let query = parse_pairs(request.uri().query().unwrap_or_default().as_bytes());
        let form = parse_pairs(request.body());
        Some(match (request.method(), request.uri().path()) {
            (&Method::GET, "/.well-known/oauth-protected-resource/mcp") => self.resource_metadata(),
            (&Method::GET, "/.well-known/oauth-authorization-server") => self.server_metadata(),
            (&Method::POST, "/register") => self.register(request.body()),
            (&Method::GET, "/authorize") => self.show_page(&query),
            (&Method::POST, "/authorize") => self.take_page(&form),
            (&Method::POST, "/token") => self.token(request.headers(), &form),
            (&Method::POST, "/revoke") => self.revoke(request.headers(), &form),
            (&Method::POST, "/device") => self.device(request.headers(), &form),
            (&Method::GET, "/device/login") => self.show_device(&query),
            (&Method::POST, "/device/login") => self.take_device(&form),
            _ => return None,
        })
    }

    /// Checks that a request has the `required` scopes; otherwise returns a response that names
    /// what is missing (RFC 6750, section 3).
    pub fn admit(&self, headers: &HeaderMap, required: &[&str]) -> Result<(), Box<Answer>> {
        let header = headers
            .get(AUTHORIZATION)
            .and_then(|value| value.to_str().ok());
        let Some(token) = header.and_then(|value| value.strip_prefix("Bearer ")) else {
            return Err(self.challenge(StatusCode::UNAUTHORIZED, None, SCOPE));
        };
        let mut state = self.state.lock();
        let Some(grant) = state.access.get(token) else {
            return Err(self.challenge(StatusCode::UNAUTHORIZED, Some("invalid_token"), SCOPE));
        };
        if required
            .iter()
            .all(|needed| grant.scopes.iter().any(|scope| scope == needed))
        {
            return Ok(());
        }
        Err(self.challenge(
            StatusCode::FORBIDDEN,
            Some("insufficient_scope"),
            &required.join(" "),
        ))
    }

    fn challenge(&self, status: StatusCode, error: Option<&str>, scope: &str) -> Box<Answer> {
        let error = error
            .map(|error| format!("error=\"{error}\", "))
            .unwrap_or_default();
        let origin = self
            .settings
            .resource
            .strip_suffix(PATH)
            .unwrap_or_default();
        let metadata = format!("{origin}/.well-known/oauth-protected-resource{PATH}");
        let challenge =
            format!("Bearer {error}scope=\"{scope}\", resource_metadata=\"{metadata}\"");
        let mut answer = Answer::default();
        *answer.status_mut() = status;
        if let Ok(challenge) = HeaderValue::from_str(&challenge) {
            answer.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        }
        Box::new(answer)
    }
}

/// The names and values of a query or a form.
struct Pairs(Vec<(String, String)>);

fn parse_pairs(text: &[u8]) -> Pairs {
    Pairs(form_urlencoded::parse(text).into_owned().collect())
}

impl Pairs {
    /// Returns the value of a name that occurs once; a repeated name counts as missing (RFC 6749,
    /// section 3.1).
    fn get(&self, name: &str) -> Option<&str> {
        let mut values = self
            .0
            .iter()
            .filter(|(key, _)| key == name)
            .map(|(_, value)| value.as_str());
        values
            .next()
            .filter(|value| !value.is_empty() && values.next().is_none())
    }
}

/// Returns a JSON response that must not be cached.
fn reply(status: StatusCode, body: &Value) -> Answer {
    let mut answer = Answer::new(Full::new(body.to_string().into()));
    *answer.status_mut() = status;
    answer
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
        .headers_mut()
        .insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

/// Returns an error of the token endpoint and similar endpoints (RFC 6749, section 5.2).
fn error(code: &str) -> Answer {
    let status = if code == "invalid_client" {
        StatusCode::UNAUTHORIZED
    } else {
        StatusCode::BAD_REQUEST
    };
    reply(status, &json!({ "error": code }))
}
