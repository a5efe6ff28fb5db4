//! The authorization endpoint: a login page, and the redirect with a code.

use http::header::LOCATION;
use http::{HeaderValue, StatusCode};
use oauth2::url::form_urlencoded::Serializer;

use super::page::{Form, message_page};
use super::{
    Answer, CODE_TTL, FURTHER_SCOPE, Grant, LOGIN_TTL, Login, OFFLINE, Pairs, SCOPE, secret,
};

/// Maximum number of wrong passwords on one page.
const MAX_GUESSES: u8 = 5;

/// A page that waits for name and password.
pub(super) struct Page {
    client: String,
    client_name: String,
    redirect: Redirect,
    challenge: String,
    scopes: Vec<String>,
    guesses: u8,
}

/// The URI to which the user is redirected, and the `state`.
#[derive(Clone)]
struct Redirect {
    uri: String,
    state: Option<String>,
}

/// A code that was issued.
pub(super) struct Code {
    pub(super) grant: Grant,
    pub(super) redirect_uri: String,
    pub(super) challenge: String,
    pub(super) used: bool,
}

impl Login {
    /// Shows the page if the request is valid (RFC 6749, section 4.1.1; RFC 7636; RFC 8707).
    pub(super) fn show_page(&self, query: &Pairs) -> Answer {
        // An unknown client or redirect URI is reported on the page, without a redirect.
        let id = query.get("client_id").unwrap_or_default().to_owned();
        let Some(client) = self.state.lock().clients.get(&id).cloned() else {
            return message_page(
                StatusCode::BAD_REQUEST,
                "Unknown client",
                "No client with this id is registered here.",
            );
        };
        let Some(uri) = query
            .get("redirect_uri")
            .filter(|uri| client.allows_redirect(uri))
        else {
            return message_page(
                StatusCode::BAD_REQUEST,
                "Unknown address",
                "The client did not register this `redirect_uri`.",
            );
        };
        let redirect = Redirect {
            uri: uri.to_owned(),
            state: query.get("state").map(str::to_owned),
        };
        let page = match self.read_request(query, id, &client.name, redirect.clone()) {
            Ok(page) => page,
            Err(code) => return self.redirect_with(&redirect, "error", code),
        };
        let ticket = secret();
        let form = Form {
            action: "/authorize",
            ticket: ("ticket", &ticket, false),
            client: &page.client_name,
            scopes: &page.scopes,
            fault: None,
        };
        let response = form.page(StatusCode::OK);
        self.state.lock().pages.put(ticket, page, LOGIN_TTL);
        response
    }

    fn read_request(
        &self,
        query: &Pairs,
        client: String,
        name: &str,
        redirect: Redirect,
    ) -> Result<Page, &'static str> {
        if query.get("response_type") != Some("code") {
            return Err("unsupported_response_type");
        }
        let challenge = query
            .get("code_challenge")
            .filter(|challenge| challenge.len() == 43);
        let (Some(challenge), Some("S256"), Some(_)) = (
            challenge,
            query.get("code_challenge_method"),
            &redirect.state,
        ) else {
            return Err("invalid_request");
        };
        if query.get("resource") != Some(&self.settings.resource) {
            return Err("invalid_target");
        }
        let scopes = scopes(query.get("scope"))?;
        Ok(Page {
            client,
            client_name: name.to_owned(),
            redirect,
            challenge: challenge.to_owned(),
            scopes,
            guesses: 0,
        })
    }

    /// Processes the name and password, and redirects the user with a code.
    pub(super) fn take_page(&self, form: &Pairs) -> Answer {
        let mut state = self.state.lock();
        let ticket = form.get("ticket").unwrap_or_default();
        let Some(mut page) = state.pages.take(ticket) else {
            return message_page(
                StatusCode::GONE,
                "Too late",
                "This page was used, or is too old. Begin again.",
            );
        };
        if form.get("answer") == Some("deny") {
            return self.redirect_with(&page.redirect, "error", "access_denied");
        }
        if !self.is_person(form) {
            page.guesses += 1;
            let form = Form {
                action: "/authorize",
                ticket: ("ticket", ticket, false),
                client: &page.client_name,
                scopes: &page.scopes,
                fault: Some("Name or password is wrong."),
            };
            let response = form.page(StatusCode::FORBIDDEN);
            if page.guesses < MAX_GUESSES {
                state.pages.put(ticket.to_owned(), page, LOGIN_TTL);
            }
            return response;
        }
        let code = secret();
        let answer = self.redirect_with(&page.redirect, "code", &code);
        let grant = Grant {
            family: secret(),
            client: page.client,
            scopes: page.scopes,
        };
        state.codes.put(
            code,
            Code {
                grant,
                redirect_uri: page.redirect.uri,
                challenge: page.challenge,
                used: false,
            },
            CODE_TTL,
        );
        answer
    }

    pub(super) fn is_person(&self, form: &Pairs) -> bool {
        let (name, password) = &self.settings.person;
        form.get("name") == Some(name) && form.get("password") == Some(password)
    }

    /// Returns the redirect, with `iss` (RFC 9207).
    fn redirect_with(&self, back: &Redirect, name: &str, value: &str) -> Answer {
        let mut query = Serializer::new(String::new());
        query
            .append_pair(name, value)
            .append_pair("iss", &self.settings.issuer);
        if let Some(state) = &back.state {
            query.append_pair("state", state);
        }
        let joint = if back.uri.contains('?') { '&' } else { '?' };
        let mut answer = Answer::default();
        *answer.status_mut() = StatusCode::SEE_OTHER;
        if let Ok(location) =
            HeaderValue::from_str(&format!("{}{joint}{}", back.uri, query.finish()))
        {
            answer.headers_mut().insert(LOCATION, location);
        }
        answer
    }
}

/// Parses the requested scopes, all of which must exist.
pub(super) fn scopes(requested: Option<&str>) -> Result<Vec<String>, &'static str> {
    let scopes: Vec<String> = requested
        .unwrap_or(SCOPE)
        .split(' ')
        .map(str::to_owned)
        .collect();
    let all_known = scopes
        .iter()
        .all(|scope| [SCOPE, FURTHER_SCOPE, OFFLINE].contains(&scope.as_str()));
    if all_known {
        Ok(scopes)
    } else {
        Err("invalid_scope")
    }
}
