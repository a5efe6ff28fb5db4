//! Tests the listener's own checks on an upstream's real path: none of these requests may reach the
//! upstream.

use super::ProveError;
use super::client::{Auth, GateClient};
use super::trial::{Outcome, Trial};

/// The checks: id, title, and the expected status. The last one is skipped if callers need no
/// token.
pub(super) const CHECKS: [(&str, &str, Auth<'static>, u16); 3] = [
    (
        "foreign-host",
        "an unknown host name",
        Auth::Host("attacker.example"),
        403,
    ),
    (
        "foreign-page",
        "a cross-origin request",
        Auth::Origin("https://attacker.example"),
        403,
    ),
    ("no-token", "a request without a token", Auth::Nothing, 401),
];

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

/// Sends the requests that the listener must reject, and returns their outcomes.
pub(super) async fn trials(
    wire: &GateClient,
    upstream: &str,
    is_open: bool,
    except: &[String],
) -> Result<Vec<Trial>, ProveError> {
    let path = format!("/mcp/{upstream}");
    let mut trials = Vec::new();
    for (id, title, auth, expected) in CHECKS
        .into_iter()
        .filter(|(id, ..)| !is_open || *id != "no-token")
    {
        let status = wire
            .post(&path, &[], auth, PING.to_owned())
            .await?
            .status
            .as_u16();
        let (outcome, why) = match status {
            status if status == expected => (Outcome::Caught, String::new()),
            503 => (Outcome::Untried, "the gate is at capacity".to_owned()),
            status => (
                Outcome::Missed,
                format!("the listener answered with {status} instead of {expected}"),
            ),
        };
        let excepted = except.iter().any(|named| named == id);
        trials.push(Trial {
            id,
            title,
            attack: true,
            outcome,
            rules: Vec::new(),
            why,
            excepted,
        });
    }
    Ok(trials)
}
