//! The pages that users see.

use bytes::Bytes;
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY};
use http_body_util::Full;

use super::Answer;
use crate::protocol::headers;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:26rem;margin:10vh auto;padding:0 1rem;\
color:#1c1c1c;background:#fafafa}form{display:grid;gap:.75rem}label{display:grid;gap:.25rem}\
input,button{font:inherit;padding:.5rem}[role=alert]{color:#a00}li{font-family:monospace}";

/// The form for name and password.
pub(super) struct Form<'a> {
    pub(super) action: &'a str,
    /// The field that identifies the login, its value, and whether the user fills it in.
    pub(super) ticket: (&'a str, &'a str, bool),
    pub(super) client: &'a str,
    pub(super) scopes: &'a [String],
    pub(super) fault: Option<&'a str>,
}

impl Form<'_> {
    pub(super) fn page(&self, status: StatusCode) -> Answer {
        let scopes: String = self
            .scopes
            .iter()
            .map(|scope| format!("<li>{}</li>", escape_html(scope)))
            .collect();
        let fault = self
            .fault
            .map(|fault| format!("<p role=\"alert\">{}</p>", escape_html(fault)))
            .unwrap_or_default();
        let (name, value, is_visible) = self.ticket;
        let ticket = match is_visible {
            true => {
                format!(
                    "<label>Code<input name=\"{name}\" value=\"{}\" autocomplete=\"off\" required></label>",
                    escape_html(value)
                )
            }
            false => format!(
                "<input type=\"hidden\" name=\"{name}\" value=\"{}\">",
                escape_html(value)
            ),
        };
        let body = format!(
            "<p><strong>{}</strong> asks to use the sample server for you.</p><ul>{scopes}</ul>{fault}\
             <form method=\"post\" action=\"{}\">{ticket}\
             <label>Name<input name=\"name\" autocomplete=\"username\" required autofocus></label>\
             <label>Password<input name=\"password\" type=\"password\" autocomplete=\"current-password\" required></label>\
             <button name=\"answer\" value=\"allow\">Log in and allow</button>\
             <button name=\"answer\" value=\"deny\" formnovalidate>Deny</button></form>",
            escape_html(self.client),
            self.action
        );
        page(status, "Log in to the sample server", &body)
    }
}

/// Returns a page that only shows a message.
pub(super) fn message_page(status: StatusCode, title: &str, text: &str) -> Answer {
    page(status, title, &format!("<p>{}</p>", escape_html(text)))
}

fn page(status: StatusCode, title: &str, body: &str) -> Answer {
    let html = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>{title}</title><style>{STYLE}</style><h1>{title}</h1>{body}</html>"
    );
    let mut answer = Answer::new(Full::new(Bytes::from(html)));
    *answer.status_mut() = status;
    let values = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CACHE_CONTROL, "no-store"),
        (REFERRER_POLICY, "no-referrer"),
        (
            CONTENT_SECURITY_POLICY,
            "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
        ),
    ];
    headers::set(answer.headers_mut(), values);
    answer
}

fn escape_html(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}
