//! `/oauth/`: the pages on which people log in to servers, the callback of authorization servers,
//! and the gate's metadata as a client.
//!
//! No agent token is required here: a page is identified by its ticket, which only the agent that
//! made the call has received, and an answer is valid only in the browser that began the login,
//! which proves it with a cookie.

mod page;

use std::sync::Arc;

use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, LOCATION, SET_COOKIE};
use http::{HeaderMap, HeaderName, Method, Request, Response, StatusCode};
use hyper::body::Incoming;

pub(super) use page::{escape, page};

use super::{Body, Frontend, body, respond_json};
use crate::oauth::grant::Answer;
use crate::oauth::{CallbackRoute, LoginError, identity};
use crate::protocol::headers;

/// Maximum length of a form that is read, in bytes: a URL that a person has pasted.
const FORM_BYTES: usize = 16 << 10;
/// Prefix of cookie names; there is one cookie for each login that a browser has begun.
const COOKIE_PREFIX: &str = "lychgate-login-";
/// Maximum number of cookies of one browser that are examined.
const MAX_COOKIES: usize = 64;

/// Answers a request for `/oauth/PATH`.
pub(super) async fn answer(
    front: &Arc<Frontend>,
    request: Request<Incoming>,
    path: &str,
) -> Response<Body> {
    let parts: Vec<&str> = path.split('/').collect();
    match (request.method().clone(), parts.as_slice()) {
        (Method::GET, ["login", ticket]) => match front.logins.logins.page(ticket) {
            Some(login_page) => html(StatusCode::OK, page::login(&login_page)),
            None => html(StatusCode::NOT_FOUND, page::expired()),
        },
        (Method::POST, ["login", ticket]) => handle_form(front, request, ticket).await,
        (Method::GET, ["callback"]) => handle_callback(front, &request).await,
        (Method::GET, ["client.json"]) => client_document(front),
        (_, ["login", _] | ["callback"] | ["client.json"]) => html(
            StatusCode::METHOD_NOT_ALLOWED,
            page::failed("use GET for this page"),
        ),
        _ => html(StatusCode::NOT_FOUND, page::expired()),
    }
}

/// Handles the form on the page of a ticket: a person continues, or has pasted the URL at which
/// their browser ended.
async fn handle_form(front: &Frontend, request: Request<Incoming>, ticket: &str) -> Response<Body> {
    let Ok(form) = body::read_at_most(request.into_body(), front.gate.limits(), FORM_BYTES).await
    else {
        return html(StatusCode::BAD_REQUEST, page::failed("invalid form"));
    };
    let pasted = form_urlencoded::parse(&form)
        .find(|(name, _)| name == "address")
        .map(|(_, address)| address.into_owned());
    match pasted {
        Some(address) => outcome_page(
            front
                .logins
                .logins
                .end(&Answer::from_pasted(&address), CallbackRoute::Page(ticket))
                .await,
        ),
        None => begin(front, ticket).await,
    }
}

async fn begin(front: &Frontend, ticket: &str) -> Response<Body> {
    let (url, browser) = match front.logins.logins.begin(ticket).await {
        Ok(started) => started,
        Err(error) => return failure_page(&error),
    };
    let secure = if front
        .logins
        .logins
        .redirect_uri()
        .is_some_and(|uri| uri.starts_with("https:"))
    {
        "; Secure"
    } else {
        ""
    };
    let number = uuid::Uuid::new_v4().simple().to_string();
    let lasts = front.logins.config.login.as_secs();
    let cookie = format!(
        "{COOKIE_PREFIX}{}={}; HttpOnly; SameSite=Lax; Path=/oauth/callback; Max-Age={lasts}{secure}",
        number.get(..8).unwrap_or_default(),
        browser.expose()
    );
    let (Ok(cookie), Ok(location)) = (HeaderValue::from_str(&cookie), HeaderValue::from_str(&url))
    else {
        return html(
            StatusCode::BAD_GATEWAY,
            page::failed("invalid authorization server URL"),
        );
    };
    let mut response = html(StatusCode::SEE_OTHER, String::new());
    response.headers_mut().insert(SET_COOKIE, cookie);
    response.headers_mut().insert(LOCATION, location);
    response
}

async fn handle_callback(front: &Frontend, request: &Request<Incoming>) -> Response<Body> {
    let answer = Answer::from_query(request.uri().query().unwrap_or_default());
    let presented = cookies(request.headers());
    outcome_page(
        front
            .logins
            .logins
            .end(&answer, CallbackRoute::Browser(&presented))
            .await,
    )
}

/// Returns the cookies of the logins that a browser began.
fn cookies(headers: &HeaderMap) -> Vec<&str> {
    super::cookies(headers)
        .filter(|(name, _)| name.starts_with(COOKIE_PREFIX))
        .map(|(_, value)| value)
        .take(MAX_COOKIES)
        .collect()
}

fn outcome_page(outcome: Result<String, LoginError>) -> Response<Body> {
    match outcome {
        Ok(upstream) => html(StatusCode::OK, page::success(&upstream)),
        Err(error) => failure_page(&error),
    }
}

fn failure_page(error: &LoginError) -> Response<Body> {
    let status = if matches!(error, LoginError::Unreachable(_)) {
        StatusCode::BAD_GATEWAY
    } else {
        StatusCode::BAD_REQUEST
    };
    html(status, page::failed(&error.to_string()))
}

/// Returns the gate's metadata for servers that accept a URL as a client id.
fn client_document(front: &Frontend) -> Response<Body> {
    let logins = &front.logins.logins;
    let (Some(id), Some(redirect)) = (logins.document_url(), logins.redirect_uri()) else {
        return html(StatusCode::NOT_FOUND, page::expired());
    };
    let text = identity::document(&id, &[redirect], &front.logins.config.client_name);
    respond_json(StatusCode::OK, text)
}

/// Returns a page without scripts and subresources that cannot be framed; its URL is sent to no
/// other site.
pub(super) fn html(status: StatusCode, text: String) -> Response<Body> {
    let mut response = Response::new(Body::Whole(text.into()));
    *response.status_mut() = status;
    let values = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CACHE_CONTROL, "no-store"),
        (
            HeaderName::from_static("content-security-policy"),
            "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'",
        ),
        // Not `no-referrer`: with it, a browser sends the page's own form with `Origin: null`,
        // which is refused here.
        (HeaderName::from_static("referrer-policy"), "same-origin"),
        (HeaderName::from_static("x-content-type-options"), "nosniff"),
        (HeaderName::from_static("x-frame-options"), "DENY"),
    ];
    headers::set(response.headers_mut(), values);
    response
}
