//! Logins on another device (RFC 8628).

use std::time::{Duration, Instant};

use http::{HeaderMap, StatusCode};
use serde_json::json;

use super::authorize::scopes;
use super::page::{Form, saying};
use super::{Answer, Given, Login, PATIENCE, Pairs, State, error, random, reply};

/// The grant type.
pub(super) const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// Minimum interval between two polls of a client.
const INTERVAL: Duration = Duration::from_secs(1);
/// The letters of user codes, none of which looks like another (RFC 8628, section 6.1).
const LETTERS: &[u8] = b"BCDFGHJKLMNPQRSTVWXZ";
/// Maximum number of wrong passwords for one code.
const GUESSES: u8 = 5;

/// A login that waits for a user on another device.
pub(super) struct Device {
    user_code: String,
    client_name: String,
    given: Given,
    answer: Option<bool>,
    asked: Option<Instant>,
    guesses: u8,
}

impl Login {
    /// Starts a login on another device.
    pub(super) fn device(&self, headers: &HeaderMap, form: &Pairs) -> Answer {
        let (id, client) = match self.client(headers, form) {
            Ok(known) => known,
            Err(refusal) => return *refusal,
        };
        if !client.may(GRANT) {
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
        let code = random();
        let user_code = user_code();
        let page = format!("{}/device/login", self.settings.issuer);
        let started = json!({
            "device_code": code,
            "user_code": user_code,
            "verification_uri": page,
            "verification_uri_complete": format!("{page}?user_code={user_code}"),
            "expires_in": PATIENCE.as_secs(),
            "interval": INTERVAL.as_secs(),
        });
        let given = Given {
            family: random(),
            client: id,
            scopes,
        };
        let device = Device {
            user_code,
            client_name: client.name,
            given,
            answer: None,
            asked: None,
            guesses: 0,
        };
        self.state.lock().devices.put(code, device, PATIENCE);
        reply(StatusCode::OK, &started)
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
        let known = self.is_person(form);
        let mut state = self.state.lock();
        let device = state
            .devices
            .find(|device| device.user_code == typed && device.answer.is_none());
        let Some(device) = device.filter(|device| device.guesses < GUESSES) else {
            return saying(
                StatusCode::GONE,
                "Unknown code",
                "There is no such code, or it was used, or is too old.",
            );
        };
        let allowed = form.get("answer") != Some("deny");
        if allowed && !known {
            device.guesses += 1;
            return device
                .form(Some("Name or password is wrong."))
                .page(StatusCode::FORBIDDEN);
        }
        device.answer = Some(allowed);
        saying(
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
            scopes: &self.given.scopes,
            fault,
        }
    }
}

/// Answers a client that polls (RFC 8628, section 3.5).
pub(super) fn poll(state: &mut State, id: &str, form: &Pairs) -> Result<Given, &'static str> {
    let code = form.get("device_code").unwrap_or_default();
    let device = state
        .devices
        .get(code)
        .filter(|device| device.given.client == id)
        .ok_or("expired_token")?;
    match device.answer {
        None => {
            // A tenth is allowed for clock differences and network delay.
            let early = device
                .asked
                .replace(Instant::now())
                .is_some_and(|asked| asked.elapsed() < INTERVAL.mul_f32(0.9));
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
        .map(|device| device.given)
        .ok_or("expired_token")
}

fn user_code() -> String {
    let picked: Vec<char> = uuid::Uuid::new_v4()
        .into_bytes()
        .iter()
        .zip(0..8)
        .filter_map(|(byte, _)| {
            LETTERS
                .get(usize::from(*byte) % LETTERS.len())
                .map(|letter| char::from(*letter))
        })
        .collect();
    let (first, second) = picked.split_at(picked.len() / 2);
    format!(
        "{}-{}",
        first.iter().collect::<String>(),
        second.iter().collect::<String>()
    )
}
