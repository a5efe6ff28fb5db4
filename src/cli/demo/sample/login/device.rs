//! Logins on another device (RFC 8628).

use std::time::{Duration, Instant};

use http::{HeaderMap, StatusCode};
use serde_json::json;

use super::authorize::scopes;
use super::page::{Form, message_page};
use super::{Answer, Grant, LOGIN_TTL, Login, Pairs, State, error, reply, secret};

/// The grant type.
pub(super) const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// Minimum interval between two polls of a client.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The letters of user codes, none of which looks like another (RFC 8628, section 6.1).
const LETTERS: &[u8] = b"BCDFGHJKLMNPQRSTVWXZ";
/// Maximum number of wrong passwords for one code.
const MAX_GUESSES: u8 = 5;

/// A login that waits for a user on another device.
pub(super) struct Device {
    user_code: String,
    client_name: String,
    grant: Grant,
    answer: Option<bool>,
    last_poll: Option<Instant>,
    guesses: u8,
}

impl Login {
    /// Starts a login on another device.
    pub(super) fn device(&self, headers: &HeaderMap, form: &Pairs) -> Answer {
        let (id, client) = match self.client(headers, form) {
            Ok(known) => known,
            Err(refusal) => return *refusal,
        };
        if !client.allows_grant(GRANT) {
            return error("unauthorized_client");
        }
        if form
            .get("resource")
            .is_some_and(|resource| resource != self.settings.resource)
        {
            return error("invalid_target");
        }
        let scopes = match scopes(form.get("scope")) {
            Ok(scopes) => scopes,
            Err(code) => return error(code),
        };
        let code = secret();
        let user_code = user_code();
        let page = format!("{}/device/login", self.settings.issuer);
        let response = json!({
            "device_code": code,
            "user_code": user_code,
            "verification_uri": page,
            "verification_uri_complete": format!("{page}?user_code={user_code}"),
            "expires_in": LOGIN_TTL.as_secs(),
            "interval": POLL_INTERVAL.as_secs(),
        });
        let grant = Grant {
            family: secret(),
            client: id,
            scopes,
        };
        let device = Device {
            user_code,
            client_name: client.name,
            grant,
            answer: None,
            last_poll: None,
            guesses: 0,
        };
        self.state.lock().devices.put(code, device, LOGIN_TTL);
        reply(StatusCode::OK, &response)
    }

    /// Shows the page for a code.
    pub(super) fn show_device(&self, query: &Pairs) -> Answer {
        let code = query.get("user_code").unwrap_or_default();
        match self
            .state
            .lock()
            .devices
            .find(|device| device.user_code == code)
        {
            Some(device) => device.form(None).page(StatusCode::OK),
            None => {
                let client = "A client on another device";
                Form {
                    action: "/device/login",
                    ticket: ("user_code", "", true),
                    client,
                    scopes: &[],
                    fault: None,
                }
                .page(StatusCode::OK)
            }
        }
    }

    /// Processes the name and password for a code.
    pub(super) fn take_device(&self, form: &Pairs) -> Answer {
        let typed = form
            .get("user_code")
            .unwrap_or_default()
            .trim()
            .to_ascii_uppercase();
        let is_authenticated = self.is_person(form);
        let mut state = self.state.lock();
        let device = state
            .devices
            .find(|device| device.user_code == typed && device.answer.is_none());
        let Some(device) = device.filter(|device| device.guesses < MAX_GUESSES) else {
            return message_page(
                StatusCode::GONE,
                "Unknown code",
                "There is no such code, or it was used, or is too old.",
            );
        };
        let allowed = form.get("answer") != Some("deny");
        if allowed && !is_authenticated {
            device.guesses += 1;
            return device
                .form(Some("Name or password is wrong."))
                .page(StatusCode::FORBIDDEN);
        }
        device.answer = Some(allowed);
        message_page(
            StatusCode::OK,
            if allowed { "Logged in" } else { "Denied" },
            "Go back to the device. You may close this page.",
        )
    }
}

impl Device {
    fn form<'a>(&'a self, fault: Option<&'a str>) -> Form<'a> {
        let ticket = ("user_code", self.user_code.as_str(), true);
        Form {
            action: "/device/login",
            ticket,
            client: &self.client_name,
            scopes: &self.grant.scopes,
            fault,
        }
    }
}

/// Answers a client that polls (RFC 8628, section 3.5).
pub(super) fn poll(state: &mut State, id: &str, form: &Pairs) -> Result<Grant, &'static str> {
    let code = form.get("device_code").unwrap_or_default();
    let device = state
        .devices
        .get(code)
        .filter(|device| device.grant.client == id)
        .ok_or("expired_token")?;
    match device.answer {
        None => {
            // A tenth is allowed for clock differences and network delay.
            let early = device
                .last_poll
                .replace(Instant::now())
                .is_some_and(|last| last.elapsed() < POLL_INTERVAL.mul_f32(0.9));
            return Err(if early {
                "slow_down"
            } else {
                "authorization_pending"
            });
        }
        Some(false) => return Err("access_denied"),
        Some(true) => {}
    }
    state
        .devices
        .take(code)
        .map(|device| device.grant)
        .ok_or("expired_token")
}

fn user_code() -> String {
    let letters: Vec<char> = uuid::Uuid::new_v4()
        .into_bytes()
        .iter()
        .zip(0..8)
        .filter_map(|(byte, _)| {
            LETTERS
                .get(usize::from(*byte) % LETTERS.len())
                .map(|letter| char::from(*letter))
        })
        .collect();
    let (first, second) = letters.split_at(letters.len() / 2);
    format!(
        "{}-{}",
        first.iter().collect::<String>(),
        second.iter().collect::<String>()
    )
}
