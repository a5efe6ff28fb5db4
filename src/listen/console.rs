//! `/console` on the admin port: a page on which people see what the gate does and make the
//! decisions that are theirs.
//!
//! Everything except for the page's own files requires a session, on loopback too: other programs,
//! other users and pages in the same browser can reach that port as well. A session is opened with
//! the token of the gate's token file or with a link that is valid once, and is presented as a
//! cookie together with a secret that only the page knows.

mod apply;
mod auth;
mod explain;
mod history;
mod origin;
mod overview;
mod page;
mod pins;
mod quarantine;
mod rules;
mod stream;
mod suppress;
mod trial;
mod visibility;

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use http::header::{HeaderValue, ORIGIN, RETRY_AFTER, SET_COOKIE};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use serde::Serialize;
use tokio::sync::Semaphore;

use super::approvals::ApprovalEndpoint;
use super::connections::Connection;
use super::failed_logins::{self, SecretError};
use super::{Body, Frontend, body};
use crate::config::Config;
use crate::message::{Json, ReadLimits};
use crate::proxy::Gate;
use crate::record::Event;
use auth::{ConsoleAuth, Credential, OpenedSession, SessionKey};
use origin::ConsoleOrigin;
use page::{json, json_response, refuse};

/// The name of the cookie, the browser's part of a session.
const COOKIE_NAME: &str = "lychgate_console";
/// The header with the page's part of a session.
const PROOF: &str = "x-lychgate-console";
/// The header of requests that the page makes on its own, without an action of its user.
const BY_ITSELF: &str = "x-lychgate-by-itself";
/// Maximum length of a request body, in bytes; texts to be tried may be longer.
const BODY_BYTES: usize = 4096;
/// Maximum number of concurrent streams to pages.
const STREAMS: usize = 16;

/// State for serving the page.
pub struct Console {
    approvals: Arc<ApprovalEndpoint>,
    auth: ConsoleAuth,
    origin: ConsoleOrigin,
    streams: Arc<Semaphore>,
    started: SystemTime,
    /// The same time on a clock that is never set back.
    uptime_start: Instant,
    /// The config file that the gate was started with.
    config: Option<PathBuf>,
}

/// A request to be routed.
struct ConsoleRequest {
    method: Method,
    headers: HeaderMap,
    query: String,
    body: Incoming,
    /// Its remote address.
    from: IpAddr,
}

impl Console {
    /// Creates a console for holders of the token of `approvals`. From now on, audit lines are
    /// kept and counted for it, after the earlier ones in the audit log. Blocks on the disk. `file`
    /// is the config file that the gate was started with.
    pub fn open(
        gate: &Gate,
        approvals: &Arc<ApprovalEndpoint>,
        config: &Config,
        file: Option<PathBuf>,
    ) -> Self {
        history::restore(gate.recorder(), &config.audit);
        gate.recorder().audit_tail().start_keeping();
        gate.recorder().start_recent_stats();
        Self {
            approvals: approvals.clone(),
            auth: ConsoleAuth::new(approvals.token(), gate.limits().wrong_tokens_per_minute),
            origin: ConsoleOrigin::new(&config.admin),
            streams: Arc::new(Semaphore::new(STREAMS)),
            started: SystemTime::now(),
            uptime_start: Instant::now(),
            config: file,
        }
    }

    /// Answers a request for `/console` or a path below it, given the rest of its path.
    pub(super) async fn answer(
        self: &Arc<Self>,
        front: &Arc<Frontend>,
        request: Request<Incoming>,
        rest: &str,
        connection: &Connection,
    ) -> Response<Body> {
        let (parts, body) = request.into_parts();
        // Programs with the token are not browsers, whichever host name they use.
        let is_program = rest == "/api/code" && !parts.headers.contains_key(ORIGIN);
        if let Err(rejection) = self.origin.check(&parts.headers, rest.starts_with("/api/"))
            && !is_program
        {
            front.gate.record(Event::Rejected {
                reason: rejection.reason,
            });
            return refuse(StatusCode::FORBIDDEN, rejection.hint);
        }
        let Some(path) = rest.strip_prefix("/api/") else {
            if parts.method != Method::GET {
                return refuse(StatusCode::METHOD_NOT_ALLOWED, "use GET for the page");
            }
            let name = rest.strip_prefix('/').unwrap_or(rest);
            return page::file(name)
                .unwrap_or_else(|| refuse(StatusCode::NOT_FOUND, "no such file"));
        };
        let query = parts.uri.query().unwrap_or_default().to_owned();
        let routed = ConsoleRequest {
            method: parts.method,
            headers: parts.headers,
            query,
            body,
            from: connection.from,
        };
        match (&routed.method, path) {
            (&Method::POST, "code") => self.create_login_link(front, &routed),
            (&Method::POST, "login") => self.login(front, routed).await,
            _ => match self.find_session(&routed.headers) {
                Some(session_key) => {
                    connection.set_authenticated();
                    self.answer_in_session(front, routed, path, session_key)
                        .await
                        .unwrap_or_else(|refused| refused)
                }
                None => refuse(
                    StatusCode::UNAUTHORIZED,
                    "log in: no session, or it has expired",
                ),
            },
        }
    }

    /// Answers a request that requires a session.
    ///
    /// # Errors
    /// The refusal of its body.
    async fn answer_in_session(
        self: &Arc<Self>,
        front: &Arc<Frontend>,
        request: ConsoleRequest,
        path: &str,
        session_key: SessionKey,
    ) -> Result<Response<Body>, Response<Body>> {
        let steps: Vec<&str> = path.split('/').collect();
        let gate = &front.gate;
        Ok(match (&request.method, steps.as_slice()) {
            (&Method::GET, ["session"]) => json(
                StatusCode::OK,
                &ConsoleOrigin::site_info(&front.listen, front.bound_address),
            ),
            (&Method::POST, ["logout"]) => self.logout(session_key),
            (&Method::GET, ["stream"]) => stream::open(self, front, &request.query, session_key),
            (&Method::GET, ["overview"]) => json(
                StatusCode::OK,
                &overview::overview(gate, self.started, self.uptime_start.elapsed()),
            ),
            (&Method::GET, ["upstreams"]) => {
                json(StatusCode::OK, &overview::upstreams(front).await)
            }
            (&Method::GET, ["present"]) => json(StatusCode::OK, &gate.connected_clients()),
            (&Method::POST, ["upstreams", name, "login"]) => {
                overview::login(front, name, &request.query).await
            }
            (&Method::GET, ["pins"]) => pins::list(gate, self.config.is_some()),
            (&Method::POST, ["pins", "approve"]) => {
                let body = self.body(gate, request.body, BODY_BYTES).await?;
                pins::approve(gate, &body).await
            }
            (&Method::POST, ["pins", "hide"]) => {
                let body = self.body(gate, request.body, apply::BODY_BYTES).await?;
                visibility::set(gate, self.config.as_ref(), &body).await
            }
            (&Method::GET, ["rules"]) => json(StatusCode::OK, &rules::list(gate)),
            (&Method::GET, ["rules", id]) => rules::detail(gate, id),
            (&Method::POST, ["try"]) => {
                let body = self.body(gate, request.body, trial::BODY_BYTES).await?;
                trial::try_rules(gate, &body).await
            }
            (&Method::GET, ["explain", id]) => explain::answer(gate, id).await,
            (&Method::POST, ["suppress", id]) => {
                let body = self.body(gate, request.body, apply::BODY_BYTES).await?;
                suppress::write(gate, self.config.as_ref(), id, &body).await
            }
            (&Method::GET, ["quarantine"]) => quarantine::list(gate).await,
            (&Method::POST, ["quarantine", id, action]) => {
                let body = self.body(gate, request.body, BODY_BYTES).await?;
                quarantine::act(gate, id, action, &body).await
            }
            (&Method::GET, ["approvals"]) => {
                json_response(StatusCode::OK, self.approvals.api().list().into())
            }
            (&Method::POST, ["approvals", id]) => {
                let read = self.body(gate, request.body, BODY_BYTES).await?;
                self.approvals.decide(id, &read)
            }
            _ => refuse(
                StatusCode::NOT_FOUND,
                "no such path, or the method is not allowed",
            ),
        })
    }

    async fn body(
        &self,
        gate: &Gate,
        incoming: Incoming,
        max_bytes: usize,
    ) -> Result<Json, Response<Body>> {
        let reject = |why: &str| refuse(StatusCode::BAD_REQUEST, why);
        let bytes = body::read_at_most(incoming, gate.limits(), max_bytes)
            .await
            .map_err(|error| reject(&error.to_string()))?;
        let limits = ReadLimits::of_bytes(max_bytes);
        Json::parse(bytes, &limits).map_err(|_| reject("the body is not JSON"))
    }

    /// Returns the code of a login link, for a program that presents the token.
    fn create_login_link(&self, front: &Frontend, request: &ConsoleRequest) -> Response<Body> {
        #[derive(Serialize)]
        struct Link<'a> {
            code: &'a str,
            seconds: u64,
            at: Option<&'a str>,
        }
        let now = Instant::now();
        match self
            .approvals
            .token()
            .check_bearer(request.from, &request.headers, now)
        {
            Ok(()) => {
                let code = self.auth.create_code(now);
                json(
                    StatusCode::OK,
                    &Link {
                        code: &code,
                        seconds: auth::CODE.as_secs(),
                        at: self.origin.url(),
                    },
                )
            }
            Err(denied) => denied_for(
                &front.gate,
                &denied,
                "send the token of the token file, as `lychgate console` does",
            ),
        }
    }

    async fn login(&self, front: &Frontend, request: ConsoleRequest) -> Response<Body> {
        let body = match self.body(&front.gate, request.body, BODY_BYTES).await {
            Ok(body) => body,
            Err(refused) => return refused,
        };
        let member = |key: &str| body.root().get_str(key);
        let token = member("token");
        let code = member("code");
        let (credential, hint) = match (&token, &code) {
            (Some(token), None) => (Credential::Token(token), "invalid token"),
            (None, Some(code)) => (
                Credential::Code(code),
                "this link was already used or has expired",
            ),
            _ => {
                return refuse(
                    StatusCode::BAD_REQUEST,
                    "send `token` or `code`, one of the two",
                );
            }
        };
        match self.auth.open(request.from, credential, Instant::now()) {
            Ok(session) => self.login_response(&session, &request.headers),
            Err(denied) => denied_for(&front.gate, &denied, hint),
        }
    }

    fn login_response(&self, session: &OpenedSession, headers: &HeaderMap) -> Response<Body> {
        #[derive(Serialize)]
        struct Proof<'a> {
            proof: &'a str,
        }
        tracing::info!("console login");
        let secure = if self.origin.is_secure(headers) {
            "; Secure"
        } else {
            ""
        };
        let cookie = format!(
            "{COOKIE_NAME}={}; HttpOnly; SameSite=Strict; Path=/console/api{secure}",
            session.cookie
        );
        with_cookie(
            json(
                StatusCode::OK,
                &Proof {
                    proof: &session.proof,
                },
            ),
            &cookie,
        )
    }

    fn logout(&self, session: SessionKey) -> Response<Body> {
        self.auth.close(session);
        tracing::info!("console logout");
        let cookie =
            format!("{COOKIE_NAME}=; HttpOnly; SameSite=Strict; Path=/console/api; Max-Age=0");
        with_cookie(json(StatusCode::OK, &()), &cookie)
    }

    /// Returns the session that a request presents.
    fn find_session(&self, headers: &HeaderMap) -> Option<SessionKey> {
        let proof = headers.get(PROOF)?.to_str().ok()?;
        let cookies: Vec<&str> = super::cookies(headers)
            .filter(|(name, _)| *name == COOKIE_NAME)
            .map(|(_, value)| value)
            .take(8)
            .collect();
        self.auth.find_session(
            &cookies,
            proof,
            headers.contains_key(BY_ITSELF),
            Instant::now(),
        )
    }
}

/// Returns the response to an invalid token or link.
pub(super) fn denied_for(gate: &Gate, denied: &SecretError, hint: &str) -> Response<Body> {
    gate.record(Event::Rejected { reason: "token" });
    match denied {
        SecretError::Invalid => refuse(StatusCode::UNAUTHORIZED, hint),
        SecretError::TooMany => {
            gate.record(Event::Limit {
                name: "wrong_tokens_per_minute",
            });
            let why = "too many invalid tokens or links from this address; try again in a minute";
            let mut response = refuse(StatusCode::TOO_MANY_REQUESTS, why);
            response.headers_mut().insert(
                RETRY_AFTER,
                HeaderValue::from(failed_logins::WINDOW.as_secs()),
            );
            response
        }
    }
}

fn with_cookie(mut response: Response<Body>, cookie: &str) -> Response<Body> {
    if let Ok(cookie) = HeaderValue::from_str(cookie) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    response
}
