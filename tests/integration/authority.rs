//! A server that requires a login: the one of the demo, with faults that a test can inject, and a
//! person who logs in.

#![allow(
    clippy::disallowed_methods,
    reason = "what it says itself is changed as JSON, and is short"
)]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::BodyExt;
use lychgate::cli::demo::sample::{Login, Server as Sample, Settings};

use super::harness::{Agent, assert_text, json, string};
use super::servers::{Reply, Seen, Server, reply};

/// The kinds of requests to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ask {
    /// Any MCP request.
    Mcp,
    /// Metadata of the resource or of the authorization server.
    Metadata,
    /// Client registration.
    Register,
    /// The page for the person, or the form that it sends.
    Page,
    /// Tokens for an authorization code.
    Redeem,
    /// Tokens for a refresh token.
    Refresh,
    /// Tokens by another grant.
    Grant,
    /// Revocation of a token.
    Revoke,
}

impl Ask {
    fn of(seen: &Seen) -> Self {
        let body = String::from_utf8_lossy(&seen.body);
        match seen.path.split('?').next().unwrap_or_default() {
            "/mcp" => Self::Mcp,
            "/register" => Self::Register,
            "/authorize" | "/device/login" => Self::Page,
            "/token" if body.contains("grant_type=authorization_code") => Self::Redeem,
            "/token" if body.contains("grant_type=refresh_token") => Self::Refresh,
            "/token" | "/device" => Self::Grant,
            "/revoke" => Self::Revoke,
            _ => Self::Metadata,
        }
    }
}

/// The fault of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// Returns this status, media type and body instead of an answer; the request has no effect.
    Says(u16, &'static str, &'static str),
    /// Never answers; the request has no effect.
    Hangs,
    /// Processes the request, but never answers.
    Loses,
    /// Processes the request after this time.
    Lags(Duration),
    /// Leaves this member out of the answer.
    Omits(&'static str),
}

impl Fault {
    pub(crate) const ERROR_500: Self = Self::Says(500, "text/plain", "out of order");
    pub(crate) const HTML: Self = Self::Says(
        200,
        "text/html",
        "<!doctype html><title>Log in to the network</title>",
    );
    pub(crate) const INVALID_GRANT: Self =
        Self::Says(400, "application/json", r#"{"error":"invalid_grant"}"#);
}

struct Inside {
    /// Replaced when the authorization server moves.
    sample: Mutex<Arc<Sample>>,
    faults: Mutex<Vec<(Ask, Fault)>>,
    asked: Mutex<BTreeMap<Ask, usize>>,
}

impl Inside {
    async fn answer(&self, seen: Seen) -> Reply {
        let ask = Ask::of(&seen);
        *self.asked.lock().unwrap().entry(ask).or_default() += 1;
        let fault = {
            let mut faults = self.faults.lock().unwrap();
            faults
                .iter()
                .position(|(at, _)| *at == ask)
                .map(|index| faults.remove(index).1)
        };
        match fault {
            Some(Fault::Says(status, media, body)) => {
                return reply(status, &[("content-type", media)], body);
            }
            Some(Fault::Hangs) => std::future::pending().await,
            Some(Fault::Lags(time)) => tokio::time::sleep(time).await,
            _ => {}
        }
        let mut request = Request::builder()
            .method(seen.method)
            .uri(seen.path)
            .body(seen.body)
            .unwrap();
        *request.headers_mut() = seen.headers;
        let sample = self.sample.lock().unwrap().clone();
        let (head, body) = sample.answer(&request).into_parts();
        match fault {
            Some(Fault::Loses) => std::future::pending().await,
            Some(Fault::Omits(member)) => {
                let bytes = body.collect().await.unwrap().to_bytes();
                let mut told: serde_json::Map<String, serde_json::Value> =
                    serde_json::from_slice(&bytes).unwrap();
                assert!(
                    told.remove(member).is_some(),
                    "there is no `{member}` to omit"
                );
                Reply::from_parts(
                    head,
                    http_body_util::Full::new(Bytes::from(serde_json::to_vec(&told).unwrap()))
                        .boxed(),
                )
            }
            _ => Reply::from_parts(head, body.boxed()),
        }
    }
}

pub(crate) struct Authority {
    server: Server,
    inside: Arc<Inside>,
}

impl Authority {
    /// Starts a server whose access tokens last this many seconds.
    pub(crate) async fn start(access_seconds: u64) -> Self {
        Self::start_as(|settings| settings.access = Duration::from_secs(access_seconds)).await
    }

    async fn start_as(change: impl FnOnce(&mut Settings)) -> Self {
        let inside: Arc<OnceLock<Arc<Inside>>> = Arc::default();
        let script = inside.clone();
        let server = Server::start(move |seen| {
            let inside = script.get().cloned();
            async move {
                inside
                    .expect("the server is ready before anybody knows where")
                    .answer(seen)
                    .await
            }
        })
        .await;
        let mut settings = Settings::new(
            &format!("http://{}", server.address),
            Duration::from_secs(60),
        );
        change(&mut settings);
        let sample = Mutex::new(Arc::new(Sample::new(Some(Login::new(settings)))));
        let made = Arc::new(Inside {
            sample,
            faults: Mutex::default(),
            asked: Mutex::default(),
        });
        drop(inside.set(made.clone()));
        Self {
            server,
            inside: made,
        }
    }

    /// Returns the URL of its tools.
    pub(crate) fn url(&self) -> String {
        self.server.url()
    }

    /// Returns the settings that it was started with.
    pub(crate) fn settings(&self) -> Settings {
        let sample = self.inside.sample.lock().unwrap();
        sample.login().unwrap().settings().clone()
    }

    /// Returns how many tool calls it has answered.
    pub(crate) fn calls(&self) -> usize {
        self.inside.sample.lock().unwrap().calls()
    }

    /// Returns how many requests of a kind it has received.
    pub(crate) fn asked(&self, ask: Ask) -> usize {
        let asked = self.inside.asked.lock().unwrap();
        asked.get(&ask).copied().unwrap_or_default()
    }

    /// Makes the next request of a kind fail; several faults of a kind apply one after the other.
    pub(crate) fn fail(&self, ask: Ask, fault: Fault) {
        self.inside.faults.lock().unwrap().push((ask, fault));
    }

    /// Returns the requests that have reached it since the last call of this function.
    pub(crate) async fn seen(&self) -> Vec<Seen> {
        self.server.rest().await
    }

    /// Moves the authorization server: the resource stays where it is and names the new one, which
    /// knows no client. Returns the new one, which answers the requests that are sent to it.
    pub(crate) async fn moves(&self) -> Self {
        let old = self.settings();
        let resource = self.url();
        let new = Self::start_as(|settings| {
            settings.resource = resource;
            settings.person = old.person;
            settings.access = old.access;
        })
        .await;
        *self.inside.sample.lock().unwrap() = new.inside.sample.lock().unwrap().clone();
        new
    }

    /// Does what a person does on the page at `url`: enters name and password, and allows. Returns
    /// the URL that the person is redirected to.
    pub(crate) async fn log_in(&self, url: &str) -> String {
        let (name, password) = self.settings().person;
        let fields = format!("name={name}&password={password}&answer=allow");
        self.fill_in(url, &fields).await
    }

    /// Denies the login on the page at `url`, as a person does who does not want it.
    pub(crate) async fn deny(&self, url: &str) -> String {
        self.fill_in(url, "answer=deny").await
    }

    async fn fill_in(&self, url: &str, fields: &str) -> String {
        let issuer = self.settings().issuer;
        let path = url
            .strip_prefix(&issuer)
            .unwrap_or_else(|| panic!("{url} is not at {issuer}"));
        let browser = Agent::browser(&issuer);
        let page = browser.get_text(path, &[]).await;
        let ticket = page
            .split("name=\"ticket\" value=\"")
            .nth(1)
            .and_then(|rest| rest.split('"').next())
            .unwrap();
        let body = format!("ticket={ticket}&{fields}");
        let answer = browser
            .post_form("/authorize", body)
            .await
            .expect(303)
            .await;
        answer.header("location").to_owned()
    }
}

/// The server fails as requested, as the tests that use it rely on.
#[tokio::test]
async fn it_goes_wrong_as_told_and_counts() {
    let authority = Authority::start(60).await;
    let origin = authority.settings().issuer;
    let client = Agent::browser(&origin);
    let ask = |body: String| client.post_form("/token", body);
    let (id, secret) = authority.settings().client;
    let grant = format!(
        "grant_type=client_credentials&client_id={id}&client_secret={secret}&resource={}",
        authority.url()
    );
    authority.fail(Ask::Grant, Fault::ERROR_500);
    authority.fail(Ask::Grant, Fault::Omits("expires_in"));
    authority.fail(Ask::Grant, Fault::Lags(Duration::from_millis(1)));
    ask(grant.clone()).await.expect(500).await;
    let told = ask(grant.clone()).await.expect_text(200).await;
    assert_text(&told, &["access_token"], &["expires_in"]);
    let told = ask(grant.clone()).await.expect_text(200).await;
    let token = string(&json(&told), &["access_token"]).unwrap();
    for (ask_for, fault) in [(Ask::Grant, Fault::Hangs), (Ask::Grant, Fault::Loses)] {
        authority.fail(ask_for, fault);
        let waited = tokio::time::timeout(Duration::from_millis(50), ask(grant.clone())).await;
        assert!(waited.is_err(), "{fault:?}");
    }
    authority.fail(Ask::Refresh, Fault::HTML);
    authority.fail(Ask::Refresh, Fault::INVALID_GRANT);
    for status in [200, 400] {
        ask("grant_type=refresh_token".to_owned())
            .await
            .expect(status)
            .await;
    }
    let counts =
        [Ask::Grant, Ask::Refresh, Ask::Redeem, Ask::Mcp].map(|kind| authority.asked(kind));
    assert_eq!(counts, [5, 2, 0, 0]);
    assert_eq!((authority.calls(), authority.seen().await.len()), (0, 7));

    let bearer = format!("Bearer {token}");
    let shown = [("authorization", bearer.as_str())];
    let call = || {
        client.ask(
            Method::POST,
            "/mcp",
            &shown,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
        )
    };
    call().await.expect(200).await;
    let new = authority.moves().await;
    call().await.expect(401).await;
    let metadata = client
        .get("/.well-known/oauth-protected-resource/mcp", &[])
        .await
        .text()
        .await;
    let issuer = new.settings().issuer;
    assert!(
        metadata.contains(&issuer) && issuer != origin && metadata.contains(&authority.url()),
        "{metadata}"
    );
    let redirect = serde_json::json!({ "redirect_uris": ["https://gate.example/oauth/callback"], "token_endpoint_auth_method": "none" });
    let there = Agent::browser(&issuer);
    let registered = there
        .ask(Method::POST, "/register", &[], redirect.to_string())
        .await
        .expect_text(201)
        .await;
    let id = string(&json(&registered), &["client_id"]).unwrap();
    let page = format!(
        "{issuer}/authorize?response_type=code&client_id={id}&redirect_uri=https://gate.example/oauth/callback\
         &code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256&state=s&resource={}",
        authority.url()
    );
    let back = new.log_in(&page).await;
    assert!(
        back.starts_with("https://gate.example/oauth/callback?code=") && back.contains("&state=s"),
        "{back}"
    );
    assert!(new.deny(&page).await.contains("error=access_denied"));
}
