//! Logins on another device.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::*;

const CODES: &str = r#"{"device_code":"dc-1","user_code":"WDJB-MJHT","verification_uri":"https://as.example/device",
    "verification_uri_complete":"https://as.example/device?c=WDJB-MJHT","expires_in":30,"interval":1}"#;

#[tokio::test]
async fn a_device_waits_until_the_person_is_done() {
    let polls = AtomicUsize::new(0);
    let site = Site::new(move |_, request| {
        if request.line.ends_with("/device") {
            return Reply::json(CODES);
        }
        match polls.fetch_add(1, Ordering::SeqCst) {
            0 => Reply(400, vec![], r#"{"error":"authorization_pending"}"#.into()),
            _ => Reply::json(GOOD),
        }
    })
    .await;
    let server = server(&site.origin);
    let scopes = Scopes::parse("a b");
    let client = client(ClientAuth::Post);
    let token_client = TokenClient {
        scopes: &scopes,
        ..asking(&server, &client)
    };
    let device = token_client.device_begin().await.unwrap();
    assert_eq!(device.user_code, "WDJB-MJHT");
    assert_eq!(device.verification_uri, "https://as.example/device");
    assert_eq!(
        device.verification_uri_complete.as_deref(),
        Some("https://as.example/device?c=WDJB-MJHT")
    );
    assert!(!format!("{device:?}").contains("dc-1"));
    let granted = token_client.device_poll(&device).await.unwrap();
    assert_eq!(granted.access.expose(), "at-1");
    let requests = site.asked();
    assert_eq!(requests.len(), 3);
    assert_eq!(
        pairs(&form(&requests[0])),
        [
            ("client_id", "the client/ü"),
            ("client_secret", "s3cret:+ %é"),
            ("resource", RESOURCE),
            ("scope", "a b")
        ]
    );
    assert_eq!(
        pairs(&form(&requests[1])),
        [
            ("client_id", "the client/ü"),
            ("client_secret", "s3cret:+ %é"),
            ("device_code", "dc-1"),
            ("grant_type", "urn:ietf:params:oauth:grant-type:device_code"),
            ("resource", RESOURCE),
        ]
    );
}

async fn polled(
    answer: &'static str,
    lifetime: u64,
) -> (
    Result<crate::oauth::TokenGrant, GrantError>,
    usize,
    Duration,
) {
    let site = Site::new(move |_, request| match request.line.ends_with("/device") {
        true => Reply::json(CODES.replace("30", &lifetime.to_string())),
        false => Reply(400, vec![], answer.into()),
    })
    .await;
    let server = server(&site.origin);
    let token_client = asking(&server, public());
    let device = token_client.device_begin().await.unwrap();
    let began = Instant::now();
    let result = token_client.device_poll(&device).await;
    (result, site.asked().len() - 1, began.elapsed())
}

#[tokio::test]
async fn a_device_does_not_wait_for_ever() {
    let refused = |code: &str| GrantError::Refused { error: code.into() };
    let (result, polls, took) = polled(r#"{"error":"authorization_pending"}"#, 2).await;
    assert_eq!(result.unwrap_err(), refused("expired_token"));
    assert!(
        polls <= 2 && took < Duration::from_secs(3),
        "{polls} {took:?}"
    );
    for (answer, lifetime, expected) in [
        // After `slow_down`, the next poll would be too late.
        (r#"{"error":"slow_down"}"#, 4, (refused("expired_token"), 1)),
        (
            r#"{"error":"access_denied"}"#,
            9,
            (refused("access_denied"), 1),
        ),
        (
            r#"{"error":"invalid_grant"}"#,
            9,
            (GrantError::InvalidGrant, 1),
        ),
        // After failures, polls become less frequent.
        ("<html>", 4, (refused("expired_token"), 2)),
    ] {
        let (result, polls, _) = polled(answer, lifetime).await;
        assert_eq!((result.unwrap_err(), polls), expected, "{answer}");
    }
}

async fn begun(body: &str) -> Result<DeviceAttempt, GrantError> {
    let site = answering(body).await;
    let server = server(&site.origin);
    asking(&server, public()).device_begin().await
}

#[tokio::test]
async fn what_a_device_shows_is_checked() {
    for (bad, with, expected) in [
        (
            "https://as.example/device\"",
            "http://as.example/device\"",
            GrantError::Url("page for device codes"),
        ),
        (
            "https://as.example/device\"",
            "javascript:alert(1)\"",
            GrantError::Url("page for device codes"),
        ),
        ("WDJB-MJHT\"", "\\u001b[2J\"", GrantError::Unreadable),
        ("WDJB-MJHT\"", "\"", GrantError::Unreadable),
        ("dc-1", "", GrantError::Unreadable),
        ("\"user_code\"", "\"other\"", GrantError::Unreadable),
    ] {
        let result = begun(&CODES.replacen(bad, with, 1)).await;
        assert_eq!(result.unwrap_err(), expected, "{with}");
    }
    let evil = CODES.replace("https://as.example/device?c", "javascript:alert(1)//");
    let device = begun(&evil).await.unwrap();
    assert_eq!(device.verification_uri_complete, None);
    let huge = CODES.replace("30", "999999999");
    let device = begun(&huge).await.unwrap();
    assert_eq!(device.lifetime, Duration::from_secs(1800));
    let none = AuthorizationServer {
        device_authorization_endpoint: None,
        ..server("https://as.example")
    };
    let result = asking(&none, public()).device_begin().await;
    assert_eq!(result.unwrap_err(), GrantError::NotOffered("device codes"));
}
