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

use http::header::{COOKIE, HeaderValue, ORIGIN, RETRY_AFTER, SET_COOKIE};
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
    counter: Arc<ApprovalEndpoint>,
    door: ConsoleAuth,
    site: ConsoleOrigin,
    streams: Arc<Semaphore>,
    started: (SystemTime, Instant),
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
    /// Creates a console for holders of the token of the `counter`. From now on, audit lines are
    /// kept and counted for it, after the earlier ones in the audit log. Blocks on the disk. `file`
    /// is the config file that the gate was started with.
    pub fn open(
        gate: &Gate,
        counter: &Arc<ApprovalEndpoint>,
        config: &Config,
        file: Option<PathBuf>,
    ) -> Self {
        history::restore(gate.recorder(), &config.audit);
        gate.recorder().audit_tail().keep();
        gate.recorder().start_recent_stats();
        Self {
            counter: counter.clone(),
            door: ConsoleAuth::new(counter.token(), gate.limits().wrong_tokens_per_minute),
            site: ConsoleOrigin::new(&config.admin),
            streams: Arc::new(Semaphore::new(STREAMS)),
            started: (SystemTime::now(), Instant::now()),
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
        if let Err(why) = self.site.fits(&parts.headers, rest.starts_with("/api/"))
            && !is_program
        {
            front.gate.record(Event::Rejected { reason: why.reason });
            return refuse(StatusCode::FORBIDDEN, why.hint);
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
        let asked = ConsoleRequest {
            method: parts.method,
            headers: parts.headers,
            query,
            body,
            from: connection.from,
        };
        match (&asked.method, path) {
            (&Method::POST, "code") => self.code(front, &asked),
            (&Method::POST, "login") => self.login(front, asked).await,
            _ => match self.inner(&asked.headers) {
                Some(inner) => {
                    connection.authenticated();
                    self.inside(front, asked, path, inner).await
                }
                None => refuse(
                    StatusCode::UNAUTHORIZED,
                    "log in: no session, or it has expired",
                ),
            },
        }
    }

    /// Answers a request that requires a session.
    async fn inside(
        self: &Arc<Self>,
        front: &Arc<Frontend>,
        asked: ConsoleRequest,
        path: &str,
        inner: SessionKey,
    ) -> Response<Body> {
        let steps: Vec<&str> = path.split('/').collect();
        let gate = &front.gate;
        match (&asked.method, steps.as_slice()) {
            (&Method::GET, ["session"]) => json(
                StatusCode::OK,
                &ConsoleOrigin::info(&front.listen, front.bound),
            ),
            (&Method::POST, ["logout"]) => self.logout(inner),
            (&Method::GET, ["stream"]) => stream::open(self, front, &asked.query, inner),
            (&Method::GET, ["overview"]) => {
                json(StatusCode::OK, &overview::overview(gate, self.started))
            }
            (&Method::GET, ["upstreams"]) => {
                json(StatusCode::OK, &overview::upstreams(front).await)
            }
            (&Method::GET, ["present"]) => json(StatusCode::OK, &gate.present()),
            (&Method::POST, ["upstreams", name, "login"]) => {
                overview::login(front, name, &asked.query).await
            }
            (&Method::GET, ["pins"]) => pins::list(gate, self.config.is_some()),
            (&Method::POST, ["pins", "approve"]) => {
                match self.read(gate, asked.body, BODY_BYTES).await {
                    Ok(read) => pins::approve(gate, &read).await,
                    Err(refused) => refused,
                }
            }
            (&Method::POST, ["pins", "hide"]) => {
                match self.read(gate, asked.body, apply::BODY_BYTES).await {
                    Ok(read) => visibility::set(gate, self.config.as_ref(), &read).await,
                    Err(refused) => refused,
                }
            }
            (&Method::GET, ["rules"]) => json(StatusCode::OK, &rules::list(gate)),
            (&Method::GET, ["rules", id]) => rules::detail(gate, id),
            (&Method::POST, ["try"]) => {
                match self.read(gate, asked.body, trial::BODY_BYTES).await {
                    Ok(read) => trial::try_rules(gate, &read).await,
                    Err(refused) => refused,
                }
            }
            (&Method::GET, ["explain", id]) => explain::answer(gate, id).await,
            (&Method::POST, ["suppress", id]) => {
                match self.read(gate, asked.body, apply::BODY_BYTES).await {
                    Ok(read) => suppress::write(gate, self.config.as_ref(), id, &read).await,
                    Err(refused) => refused,
                }
            }
            (&Method::GET, ["quarantine"]) => quarantine::list(gate).await,
            (&Method::POST, ["quarantine", id, what]) => {
                match self.read(gate, asked.body, BODY_BYTES).await {
                    Ok(read) => quarantine::act(gate, id, what, &read).await,
                    Err(refused) => refused,
                }
            }
            (&Method::GET, ["approvals"]) => {
                json_response(StatusCode::OK, self.counter.desk().list().into())
            }
            (&Method::POST, ["approvals", id]) => {
                match self.read(gate, asked.body, BODY_BYTES).await {
                    Ok(read) => self.counter.decide(id, &read),
                    Err(refused) => refused,
                }
            }
            _ => refuse(
                StatusCode::NOT_FOUND,
                "no such path, or the method is not allowed",
            ),
        }
    }

    async fn read(
        &self,
        gate: &Gate,
        incoming: Incoming,
        most: usize,
    ) -> Result<Json, Response<Body>> {
        let refused = |why: &str| refuse(StatusCode::BAD_REQUEST, why);
        let bytes = body::read_at_most(incoming, gate.limits(), most)
            .await
            .map_err(|error| refused(&error.to_string()))?;
        let limits = ReadLimits {
            message_bytes: most,
            ..ReadLimits::default()
        };
        Json::parse(bytes, &limits).map_err(|_| refused("the body is not JSON"))
    }

    /// Returns the code of a login link, for a program that presents the token.
    fn code(&self, front: &Frontend, asked: &ConsoleRequest) -> Response<Body> {
        #[derive(Serialize)]
        struct Link<'a> {
            code: &'a str,
            seconds: u64,
            at: Option<&'a str>,
        }
        let now = Instant::now();
        match self
            .counter
            .token()
            .check_bearer(asked.from, &asked.headers, now)
        {
            Ok(()) => {
                let code = self.door.code(now);
                json(
                    StatusCode::OK,
                    &Link {
                        code: &code,
                        seconds: auth::CODE.as_secs(),
                        at: self.site.url(),
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

    async fn login(&self, front: &Frontend, asked: ConsoleRequest) -> Response<Body> {
        let read = match self.read(&front.gate, asked.body, BODY_BYTES).await {
            Ok(read) => read,
            Err(refused) => return refused,
        };
        let word = |key: &str| read.root().get(key).and_then(|value| value.str());
        let token = word("token");
        let code = word("code");
        let (shown, hint) = match (&token, &code) {
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
        match self.door.open(asked.from, shown, Instant::now()) {
            Ok(opened) => self.session_reply(&opened, &asked.headers),
            Err(denied) => denied_for(&front.gate, &denied, hint),
        }
    }

    fn session_reply(&self, opened: &OpenedSession, headers: &HeaderMap) -> Response<Body> {
        #[derive(Serialize)]
        struct Proof<'a> {
            proof: &'a str,
        }
        tracing::info!("console login");
        let secure = if self.site.is_secure(headers) {
            "; Secure"
        } else {
            ""
        };
        let cookie = format!(
            "{COOKIE_NAME}={}; HttpOnly; SameSite=Strict; Path=/console/api{secure}",
            opened.cookie
        );
        with_cookie(
            json(
                StatusCode::OK,
                &Proof {
                    proof: &opened.proof,
                },
            ),
            &cookie,
        )
    }

    fn logout(&self, inner: SessionKey) -> Response<Body> {
        self.door.close(inner);
        tracing::info!("console logout");
        let gone =
            format!("{COOKIE_NAME}=; HttpOnly; SameSite=Strict; Path=/console/api; Max-Age=0");
        with_cookie(json(StatusCode::OK, &()), &gone)
    }

    /// Returns the session that a request presents.
    fn inner(&self, headers: &HeaderMap) -> Option<SessionKey> {
        let proof = headers.get(PROOF)?.to_str().ok()?;
        let lines = headers
            .get_all(COOKIE)
            .iter()
            .filter_map(|line| line.to_str().ok());
        let pairs = lines
            .flat_map(|line| line.split(';'))
            .filter_map(|pair| pair.trim().split_once('='));
        let cookies: Vec<&str> = pairs
            .filter(|(name, _)| *name == COOKIE_NAME)
            .map(|(_, value)| value)
            .take(8)
            .collect();
        self.door.inner(
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
        SecretError::Wrong => refuse(StatusCode::UNAUTHORIZED, hint),
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
