//! `/approvals` on the admin port: the approval requests that calls are waiting for, and the
//! decisions on them.
//!
//! Requests must present the token from a file that only the gate's own user can read. A page in a
//! browser therefore cannot decide (it does not know the token, and learns nothing), nor can an
//! agent that only reaches the port.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use http::header::{HOST, ORIGIN, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;

use super::admin::text_response;
use super::connections::Connection;
use super::console::denied_for;
use super::token::Token;
use super::{Body, body};
use crate::approval::{ApprovalApi, DecisionError};
use crate::config::Scope;
use crate::message::{Json, ReadLimits, quote};
use crate::proxy::Gate;
use crate::record::Event;

/// Maximum length of a decision, in bytes.
const ANSWER_BYTES: usize = 4096;
const JSON: &str = "application/json";

/// The endpoint for decisions on approval requests.
pub struct ApprovalEndpoint {
    api: ApprovalApi,
    token: Arc<Token>,
}

impl ApprovalEndpoint {
    /// Creates a token and writes it to `file`, readable only by its owner. From now on, the gate
    /// expects decisions here.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn open(gate: &Gate, file: &Path) -> io::Result<Self> {
        let token = Arc::new(Token::create(file, gate.limits().wrong_tokens_per_minute)?);
        Ok(Self {
            api: gate.approval_api(),
            token,
        })
    }

    /// Returns the SHA-256 of the token, for other endpoints that its holder may use.
    pub fn token_sha256(&self) -> [u8; 32] {
        self.token.sha256()
    }

    /// Answers an HTTP request about the approval request `id`, or about all of them if it is
    /// empty.
    pub(super) async fn answer(
        &self,
        gate: &Gate,
        request: Request<Incoming>,
        id: &str,
        connection: &Connection,
    ) -> Response<Body> {
        if !is_same_origin(request.headers()) {
            gate.record(Event::Rejected { reason: "origin" });
            return refuse(
                StatusCode::FORBIDDEN,
                "requests from other origins are not allowed",
            );
        }
        if let Err(denied) =
            self.token
                .check_bearer(connection.from, request.headers(), Instant::now())
        {
            let mut response = denied_for(
                gate,
                &denied,
                "send the token of the token file, as `lychgate approve` does",
            );
            response
                .headers_mut()
                .insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            return response;
        }
        connection.set_authenticated();
        match (request.method(), id) {
            (&Method::GET, "") => text_response(StatusCode::OK, JSON, self.api.list()),
            (&Method::POST, id) if !id.is_empty() => {
                let id = id.to_owned();
                match body::read_at_most(request.into_body(), gate.limits(), ANSWER_BYTES).await {
                    Ok(bytes) => self.decide_from_body(&id, bytes),
                    Err(error) => refuse(StatusCode::BAD_REQUEST, &error.to_string()),
                }
            }
            _ => refuse(
                StatusCode::METHOD_NOT_ALLOWED,
                "GET `/approvals`, or POST to `/approvals/ID`",
            ),
        }
    }

    /// Returns the token that is valid here.
    pub(super) fn token(&self) -> Arc<Token> {
        self.token.clone()
    }

    /// Returns the API of the approval requests.
    pub(super) fn api(&self) -> &ApprovalApi {
        &self.api
    }

    fn decide_from_body(&self, id: &str, bytes: bytes::Bytes) -> Response<Body> {
        let limits = ReadLimits::of_bytes(ANSWER_BYTES);
        match Json::parse(bytes, &limits) {
            Ok(json) => self.decide(id, &json),
            Err(_) => refuse(StatusCode::BAD_REQUEST, "the body is not JSON"),
        }
    }

    /// Decides on an approval request according to a body.
    pub(super) fn decide(&self, id: &str, json: &Json) -> Response<Body> {
        let text_member = |key: &str| json.root().get_str(key);
        let scope = text_member("scope").map(|word| Scope::named(&word));
        let granted = match (text_member("decision").as_deref(), scope) {
            (Some("deny"), None) => None,
            (Some("approve"), Some(Some(scope))) => Some(scope),
            _ => {
                let hint = "send `{\"decision\":\"deny\"}`, or `{\"decision\":\"approve\",\"scope\":\"once\"}` (or `session`, `call`, `always`)";
                return refuse(StatusCode::BAD_REQUEST, hint);
            }
        };
        match self.api.decide(id, granted, text_member("by").as_deref()) {
            Ok(()) => text_response(StatusCode::OK, JSON, "{\"decided\":true}".into()),
            Err(DecisionError::Unknown) => {
                refuse(StatusCode::NOT_FOUND, "no such request, or it has expired")
            }
            Err(DecisionError::AlreadyAnswered) => {
                refuse(StatusCode::CONFLICT, "it was already answered")
            }
            Err(DecisionError::NotRecorded) => refuse(
                StatusCode::SERVICE_UNAVAILABLE,
                "cannot write the audit log",
            ),
            Err(DecisionError::Scope(scopes)) => {
                let words: Vec<String> = scopes
                    .iter()
                    .map(|scope| format!("`{}`", scope.name()))
                    .collect();
                refuse(
                    StatusCode::FORBIDDEN,
                    &format!("the policy allows approval for {} only", words.join(", ")),
                )
            }
        }
    }
}

/// Reports whether a request has no origin, as those of programs, or the gate's own.
fn is_same_origin(headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(ORIGIN) else {
        return true;
    };
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    origin
        .to_str()
        .ok()
        .and_then(|origin| origin.strip_prefix("http://"))
        .is_some_and(|origin| Some(origin) == host)
}

fn refuse(status: StatusCode, why: &str) -> Response<Body> {
    text_response(status, JSON, format!("{{\"error\":{}}}", quote(why)))
}
