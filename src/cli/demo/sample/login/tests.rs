#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may panic"
)]

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt;
use oauth2::url::form_urlencoded::{self, Serializer};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{FURTHER_SCOPE, Login, SCOPE, Settings};

const ISSUER: &str = "http://127.0.0.1:1";
const BACK: &str = "http://127.0.0.1:4711/callback";
const VERIFIER: &str = "0123456789012345678901234567890123456789012";
const SCOPES: &str = "tools offline_access";
const RESOURCE: (&str, &str) = ("resource", "http://127.0.0.1:1/mcp");

fn login() -> Login {
    Login::new(Settings::new(ISSUER, Duration::from_secs(60)))
}

struct Said {
    status: StatusCode,
    headers: HeaderMap,
    body: String,
}

impl Said {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    fn error(&self) -> String {
        self.json()["error"].as_str().unwrap().to_owned()
    }

    /// Returns a parameter of the redirect.
    fn brings(&self, name: &str) -> Option<String> {
        assert_eq!(self.status, StatusCode::SEE_OTHER, "{}", self.body);
        let location = self.headers["location"].to_str().unwrap();
        let query = location
            .strip_prefix(BACK)
            .unwrap()
            .strip_prefix('?')
            .unwrap();
        form_urlencoded::parse(query.as_bytes())
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.into_owned())
    }
}

fn ask(login: &Login, method: &str, uri: &str, body: impl Into<Bytes>) -> Said {
    let request = Request::builder()
        .method(method)
        .uri(uri)
        .body(body.into())
        .unwrap();
    let (head, body) = login.answer(&request).unwrap().into_parts();
    let mut body = body;
    let collected = futures_util::FutureExt::now_or_never(body.frame()).unwrap();
    let bytes = collected
        .and_then(|frame| frame.unwrap().into_data().ok())
        .unwrap_or_default();
    Said {
        status: head.status,
        headers: head.headers,
        body: String::from_utf8(bytes.to_vec()).unwrap(),
    }
}

fn form(fields: &[(&str, &str)]) -> String {
    Serializer::new(String::new())
        .extend_pairs(fields.iter().filter(|(_, value)| !value.is_empty()))
        .finish()
}

fn post(login: &Login, path: &str, fields: &[(&str, &str)]) -> Said {
    ask(login, "POST", path, form(fields))
}

fn register(login: &Login) -> String {
    let body = json!({
        "redirect_uris": [BACK],
        "grant_types": ["authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code"],
        "token_endpoint_auth_method": "none",
        "client_name": "<b>gate</b>",
    });
    let said = ask(login, "POST", "/register", body.to_string());
    assert_eq!(said.status, StatusCode::CREATED);
    said.json()["client_id"].as_str().unwrap().to_owned()
}

/// Replaces some parameters.
fn with<'a>(
    fields: &[(&'a str, &'a str)],
    changed: &[(&'a str, &'a str)],
) -> Vec<(&'a str, &'a str)> {
    let is_changed = |name: &str| changed.iter().any(|(other, _)| *other == name);
    let kept = fields.iter().filter(|(name, _)| !is_changed(name));
    kept.chain(changed).copied().collect()
}

/// Sends an authorization request with some parameters changed; an empty value omits a parameter.
fn authorize(login: &Login, client: &str, changed: &[(&str, &str)]) -> Said {
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(VERIFIER));
    let fields = [
        ("response_type", "code"),
        ("client_id", client),
        ("redirect_uri", BACK),
        ("code_challenge", &challenge),
        ("code_challenge_method", "S256"),
        ("state", "s t"),
        ("scope", SCOPES),
        RESOURCE,
    ];
    let fields = with(&fields, changed);
    ask(login, "GET", &format!("/authorize?{}", form(&fields)), "")
}

fn ticket(page: &Said) -> String {
    assert_eq!(page.status, StatusCode::OK, "{}", page.body);
    let (_, rest) = page.body.split_once("name=\"ticket\" value=\"").unwrap();
    rest.split('"').next().unwrap().to_owned()
}

fn allow(login: &Login, ticket: &str) -> Said {
    let (name, password) = login.settings().person.clone();
    post(
        login,
        "/authorize",
        &[
            ("ticket", ticket),
            ("name", &name),
            ("password", &password),
            ("answer", "allow"),
        ],
    )
}

fn code(login: &Login, client: &str) -> String {
    let page = authorize(login, client, &[]);
    allow(login, &ticket(&page)).brings("code").unwrap()
}

fn redeem(login: &Login, client: &str, code: &str, changed: &[(&str, &str)]) -> Said {
    let fields = [
        ("grant_type", "authorization_code"),
        ("client_id", client),
        ("code", code),
        ("redirect_uri", BACK),
        ("code_verifier", VERIFIER),
        RESOURCE,
    ];
    post(login, "/token", &with(&fields, changed))
}

fn refresh(login: &Login, client: &str, token: &str) -> Said {
    let grant = ("grant_type", "refresh_token");
    let token = ("refresh_token", token);
    post(
        login,
        "/token",
        &[grant, ("client_id", client), token, RESOURCE],
    )
}

fn admitted(login: &Login, token: &str, needed: &[&str]) -> Result<(), StatusCode> {
    let headers = HeaderMap::from_iter([(
        http::header::AUTHORIZATION,
        format!("Bearer {token}").parse().unwrap(),
    )]);
    login
        .admit(&headers, needed)
        .map_err(|refusal| refusal.status())
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap()
}

#[test]
fn a_login_gives_tokens_that_admit_and_that_a_further_scope_is_missing_from() {
    let login = login();
    let client = register(&login);
    let page = authorize(&login, &client, &[]);
    assert_contains!(page.body, "&lt;b&gt;gate&lt;/b&gt;");
    assert_lacks!(page.body, "<b>");
    let back = allow(&login, &ticket(&page));
    assert_eq!(back.brings("state").as_deref(), Some("s t"));
    assert_eq!(back.brings("iss").as_deref(), Some(ISSUER));
    let granted = redeem(&login, &client, &back.brings("code").unwrap(), &[]).json();
    let access = text(&granted, "access_token");
    assert_eq!(admitted(&login, access, &[SCOPE]), Ok(()));
    assert_eq!(
        admitted(&login, access, &[SCOPE, FURTHER_SCOPE]),
        Err(StatusCode::FORBIDDEN)
    );
    assert_eq!(
        admitted(&login, "other", &[SCOPE]),
        Err(StatusCode::UNAUTHORIZED)
    );
}

#[test]
fn what_an_authorization_request_lacks_is_said_on_the_way_back() {
    let login = login();
    let client = register(&login);
    for (name, value, error) in [
        ("response_type", "token", "unsupported_response_type"),
        ("code_challenge_method", "plain", "invalid_request"),
        ("code_challenge", "", "invalid_request"),
        ("state", "", "invalid_request"),
        ("resource", "", "invalid_target"),
        ("resource", "http://127.0.0.1:1/mcp/", "invalid_target"),
        ("scope", "tools everything", "invalid_scope"),
    ] {
        assert_eq!(
            authorize(&login, &client, &[(name, value)])
                .brings("error")
                .as_deref(),
            Some(error),
            "{name}"
        );
    }
    for (name, value) in [
        ("client_id", "other"),
        ("redirect_uri", "https://elsewhere.example/callback"),
    ] {
        let said = authorize(&login, &client, &[(name, value)]);
        assert_eq!(
            said.status,
            StatusCode::BAD_REQUEST,
            "nobody is sent to where the client did not say"
        );
    }
    let other_port = authorize(
        &login,
        &client,
        &[("redirect_uri", "http://127.0.0.1:4712/callback")],
    );
    assert_eq!(other_port.status, StatusCode::OK);
}

#[test]
fn a_page_takes_the_right_password_once_and_not_too_many_wrong_ones() {
    let login = login();
    let client = register(&login);
    let first = ticket(&authorize(&login, &client, &[]));
    for _ in 0..5 {
        let said = post(
            &login,
            "/authorize",
            &[("ticket", &first), ("name", "ada"), ("password", "wrong")],
        );
        assert_eq!(said.status, StatusCode::FORBIDDEN);
    }
    assert_eq!(allow(&login, &first).status, StatusCode::GONE);
    let second = ticket(&authorize(&login, &client, &[]));
    assert!(allow(&login, &second).brings("code").is_some());
    assert_eq!(allow(&login, &second).status, StatusCode::GONE);
    let third = ticket(&authorize(&login, &client, &[]));
    let denied = post(
        &login,
        "/authorize",
        &[("ticket", &third), ("answer", "deny")],
    );
    assert_eq!(denied.brings("error").as_deref(), Some("access_denied"));
}

#[test]
fn a_code_is_redeemed_once_by_whom_it_was_given_to() {
    let login = login();
    let client = register(&login);
    let other = register(&login);
    let wrong = [
        (
            "code_verifier",
            "9999999999999999999999999999999999999999999",
            "invalid_grant",
        ),
        (
            "redirect_uri",
            "http://127.0.0.1:4712/callback",
            "invalid_grant",
        ),
        ("client_id", other.as_str(), "invalid_grant"),
        ("client_id", "unknown", "invalid_client"),
        (
            "resource",
            "https://elsewhere.example/mcp",
            "invalid_target",
        ),
    ];
    for (name, value, error) in wrong {
        assert_eq!(
            redeem(&login, &client, &code(&login, &client), &[(name, value)]).error(),
            error,
            "{name}"
        );
    }
    let code = code(&login, &client);
    let granted = redeem(&login, &client, &code, &[]).json();
    assert_eq!(redeem(&login, &client, &code, &[]).error(), "invalid_grant");
    let access = admitted(&login, text(&granted, "access_token"), &[SCOPE]);
    assert_eq!(
        access,
        Err(StatusCode::UNAUTHORIZED),
        "what was given for a code that comes twice ends"
    );
}

#[test]
fn a_refresh_token_that_comes_twice_ends_the_login() {
    let login = login();
    let client = register(&login);
    let first = redeem(&login, &client, &code(&login, &client), &[]).json();
    let second = refresh(&login, &client, text(&first, "refresh_token")).json();
    let access = text(&second, "access_token");
    assert_eq!(admitted(&login, access, &[SCOPE]), Ok(()));
    for granted in [&first, &second] {
        let again = refresh(&login, &client, text(granted, "refresh_token"));
        assert_eq!(again.error(), "invalid_grant");
    }
    assert_eq!(
        admitted(&login, access, &[SCOPE]),
        Err(StatusCode::UNAUTHORIZED)
    );
}

#[test]
fn a_token_that_is_given_back_ends_the_login() {
    let login = login();
    let client = register(&login);
    let granted = redeem(&login, &client, &code(&login, &client), &[]).json();
    let token = text(&granted, "refresh_token");
    let other = register(&login);
    let revoke = |client: &str| {
        post(
            &login,
            "/revoke",
            &[("client_id", client), ("token", token)],
        )
    };
    assert_eq!(revoke(&other).status, StatusCode::OK);
    assert_eq!(
        admitted(&login, text(&granted, "access_token"), &[SCOPE]),
        Ok(()),
        "another client cannot"
    );
    assert_eq!(revoke(&client).status, StatusCode::OK);
    assert_eq!(
        admitted(&login, text(&granted, "access_token"), &[SCOPE]),
        Err(StatusCode::UNAUTHORIZED)
    );
    assert_eq!(refresh(&login, &client, token).error(), "invalid_grant");
}

#[test]
fn a_device_asks_until_somebody_has_answered_elsewhere() {
    let login = login();
    let client = register(&login);
    let begun = post(
        &login,
        "/device",
        &[("client_id", &client), ("scope", SCOPES)],
    )
    .json();
    let grant = "urn:ietf:params:oauth:grant-type:device_code";
    let poll = || {
        post(
            &login,
            "/token",
            &[
                ("grant_type", grant),
                ("client_id", &client),
                ("device_code", text(&begun, "device_code")),
            ],
        )
    };
    assert_eq!(poll().error(), "authorization_pending");
    assert_eq!(poll().error(), "slow_down");
    let (name, password) = login.settings().person.clone();
    let typed = text(&begun, "user_code").to_lowercase();
    for (password, status) in [
        ("wrong", StatusCode::FORBIDDEN),
        (&password, StatusCode::OK),
    ] {
        let fields = [
            ("user_code", &*typed),
            ("name", &name),
            ("password", password),
        ];
        assert_eq!(post(&login, "/device/login", &fields).status, status);
    }
    assert_eq!(
        admitted(&login, text(&poll().json(), "access_token"), &[SCOPE]),
        Ok(())
    );
    assert_eq!(poll().error(), "expired_token");
}

#[test]
fn a_client_with_a_secret_acts_by_itself() {
    let login = login();
    let (id, secret) = login.settings().client.clone();
    let ask = |secret: &str| {
        let grant = ("grant_type", "client_credentials");
        let secret = ("client_secret", secret);
        post(
            &login,
            "/token",
            &[grant, ("client_id", &id), secret, RESOURCE],
        )
    };
    assert_eq!(ask("wrong").error(), "invalid_client");
    let granted = ask(&secret).json();
    assert_eq!(
        admitted(&login, text(&granted, "access_token"), &[SCOPE]),
        Ok(())
    );
    assert!(granted.get("refresh_token").is_none());
}
