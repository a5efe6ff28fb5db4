//! `/approvals` on the admin port: the questions that calls wait on, and their answers.
//!
//! Whoever answers shows the token of a file that only the gate's own user can read. So a page in a browser cannot
//! answer (it does not know the token, and is told nothing), nor can an agent that only reaches the port.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use http::header::{HOST, ORIGIN, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;

use super::admin::text;
use super::connections::Connection;
use super::console::denied_for;
use super::token::Token;
use super::{Body, body};
use crate::approval::{ApprovalApi, DecisionError};
use crate::config::Scope;
use crate::message::{Json, ReadLimits, quote};
use crate::proxy::Gate;
use crate::record::Event;

/// Longest answer, in bytes.
const ANSWER_BYTES: usize = 4096;
const JSON: &str = "application/json";

/// Where people answer.
pub struct ApprovalEndpoint {
    desk: ApprovalApi,
    token: Arc<Token>,
}

impl ApprovalEndpoint {
    /// Makes a token and writes it to `file`, for its owner alone. The gate counts on somebody to answer from now on.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn open(gate: &Gate, file: &Path) -> io::Result<Self> {
        let token = Arc::new(Token::create(file, gate.limits().wrong_tokens_per_minute)?);
        Ok(Self {
            desk: gate.desk(),
            token,
        })
    }

    /// The SHA-256 of the token, for whatever else its holder may do.
    pub fn token_sha256(&self) -> [u8; 32] {
        self.token.sha256()
    }

    /// Answers one request about the question `id`, or about all if it is empty.
    pub(super) async fn answer(
        &self,
        gate: &Gate,
        request: Request<Incoming>,
        id: &str,
        connection: &Connection,
    ) -> Response<Body> {
        if !same_origin(request.headers()) {
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
        connection.authenticated();
        match (request.method(), id) {
            (&Method::GET, "") => text(StatusCode::OK, JSON, self.desk.list()),
            (&Method::POST, id) if !id.is_empty() => {
                let id = id.to_owned();
                match body::read_at_most(request.into_body(), gate.limits(), ANSWER_BYTES).await {
                    Ok(bytes) => self.decided(&id, bytes),
                    Err(error) => refuse(StatusCode::BAD_REQUEST, &error.to_string()),
                }
            }
            _ => refuse(
                StatusCode::METHOD_NOT_ALLOWED,
                "GET `/approvals`, or POST to `/approvals/ID`",
            ),
        }
    }

    /// The token that counts here.
    pub(super) fn token(&self) -> Arc<Token> {
        self.token.clone()
    }

    /// The questions.
    pub(super) fn desk(&self) -> &ApprovalApi {
        &self.desk
    }

    fn decided(&self, id: &str, bytes: bytes::Bytes) -> Response<Body> {
        let limits = ReadLimits {
            message_bytes: ANSWER_BYTES,
            ..ReadLimits::default()
        };
        match Json::parse(bytes, &limits) {
            Ok(json) => self.decide(id, &json),
            Err(_) => refuse(StatusCode::BAD_REQUEST, "the body is not JSON"),
        }
    }

    /// Answers a question as a body says.
    pub(super) fn decide(&self, id: &str, json: &Json) -> Response<Body> {
        let word = |key: &str| json.root().get(key).and_then(|value| value.str());
        let scope = word("scope").map(|word| Scope::named(&word));
        let yes = match (word("decision").as_deref(), scope) {
            (Some("deny"), None) => None,
            (Some("approve"), Some(Some(scope))) => Some(scope),
            _ => {
                let hint = "send `{\"decision\":\"deny\"}`, or `{\"decision\":\"approve\",\"scope\":\"once\"}` (or `session`, `call`, `always`)";
                return refuse(StatusCode::BAD_REQUEST, hint);
            }
        };
        match self.desk.decide(id, yes, word("by").as_deref()) {
            Ok(()) => text(StatusCode::OK, JSON, "{\"decided\":true}".into()),
            Err(DecisionError::Unknown) => {
                refuse(StatusCode::NOT_FOUND, "no such request, or it has expired")
            }
            Err(DecisionError::Already) => refuse(StatusCode::CONFLICT, "it was already answered"),
            Err(DecisionError::Untold) => refuse(
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

/// Programs send no origin; pages do, and only the gate's own may ask.
fn same_origin(headers: &HeaderMap) -> bool {
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
    text(status, JSON, format!("{{\"error\":{}}}", quote(why)))
}
