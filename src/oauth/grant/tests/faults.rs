//! A token endpoint that fails, misbehaves or attacks.

use std::time::Duration;

use super::*;
use crate::oauth::fetch::{Fetcher, Guard};
use crate::oauth::{SecretText, TokenGrant};

const PLANTED: &str = "PLANTED-s3cret";

async fn renewed(site: &Site) -> Result<TokenGrant, GrantError> {
    let server = server(&site.origin);
    let scopes = Scopes::parse("a b");
    let token_client = TokenClient {
        scopes: &scopes,
        ..asking(&server, public())
    };
    token_client.refresh(&hidden(PLANTED)).await
}

/// Renews with a fetcher of its own.
async fn renewed_by(
    fetcher: &Fetcher,
    server: &AuthorizationServer,
) -> Result<TokenGrant, GrantError> {
    let token_client = TokenClient {
        fetcher,
        ..asking(server, public())
    };
    token_client.refresh(&hidden(PLANTED)).await
}

fn refused(code: &str) -> GrantError {
    GrantError::Refused { error: code.into() }
}

#[tokio::test]
async fn each_failure_is_told_from_the_others() {
    let down = |status: u16| GrantError::Unreachable(format!("the answer has the status {status}"));
    let permanent = [
        (
            400,
            r#"{"error":"invalid_grant","error_description":"PLANTED-s3cret"}"#,
            GrantError::InvalidGrant,
        ),
        (
            401,
            r#"{"error":"invalid_client"}"#,
            GrantError::InvalidClient,
        ),
        (
            400,
            r#"{"error":"invalid_scope"}"#,
            refused("invalid_scope"),
        ),
        (
            403,
            r#"{"error":"unauthorized_client"}"#,
            refused("unauthorized_client"),
        ),
        (400, r#"{"error":"PLANTED-s3cret <b>"}"#, refused("unnamed")),
        // Some servers report errors with status 200.
        (
            200,
            r#"{"error":"invalid_grant"}"#,
            GrantError::InvalidGrant,
        ),
        (
            200,
            r#"{"error":"bad_verification_code"}"#,
            refused("bad_verification_code"),
        ),
    ];
    let transient = [
        (
            400,
            r#"{"error":"temporarily_unavailable"}"#,
            refused("temporarily_unavailable"),
        ),
        (500, r#"{"error":"invalid_grant"}"#, down(500)),
        (502, "<html>PLANTED-s3cret</html>", down(502)),
        (503, "", down(503)),
        (429, r#"{"error":"slow_down"}"#, down(429)),
    ];
    let unreadable = [
        (400, r#"{"error":["invalid_grant"]}"#),
        (200, "<html>PLANTED-s3cret</html>"),
        (200, ""),
        (200, "null"),
        (200, "[]"),
        (200, "{}"),
        (200, r#"{"access_token":"PLANTED-s3cret""#),
        (404, "<html>"),
        (401, ""),
        (400, GOOD),
        (302, GOOD),
        (204, ""),
    ]
    .map(|(status, body)| (status, body, GrantError::Unreadable));
    for (status, body, expected) in permanent
        .clone()
        .into_iter()
        .chain(transient)
        .chain(unreadable)
    {
        let site = Site::new(move |_, _| {
            let location = ("location", "https://evil.example/".into());
            Reply(status, vec![location], body.into())
        })
        .await;
        let error = renewed(&site).await.unwrap_err();
        assert_eq!(error, expected, "{status} {body}");
        let is_permanent = permanent.iter().any(|(_, _, error)| *error == expected);
        assert_eq!(error.is_transient(), !is_permanent, "{status} {body}");
        assert_eq!(error.ends_login(), is_permanent, "{status} {body}");
        assert!(!format!("{error} {error:?}").contains(PLANTED), "{error:?}");
        assert_eq!(site.asked().len(), 1, "nothing is followed or asked again");
    }
}

#[tokio::test]
async fn tokens_that_cannot_be_used_are_refused() {
    for body in [
        r#"{"access_token":"a","token_type":"DPoP"}"#,
        r#"{"access_token":"a","token_type":"mac"}"#,
        r#"{"access_token":"a","token_type":""}"#,
    ] {
        let error = renewed(&answering(body).await).await.unwrap_err();
        assert_eq!(error, GrantError::NotBearer, "{body}");
    }
    let long = "a".repeat(40_000);
    let deep = "[".repeat(2_000);
    for body in [
        r#"{"access_token":"a"}"#,
        r#"{"access_token":"a","token_type":7}"#,
        r#"{"token_type":"Bearer"}"#,
        r#"{"access_token":"","token_type":"Bearer"}"#,
        r#"{"access_token":null,"token_type":"Bearer"}"#,
        r#"{"access_token":"a\r\nX-Evil: 1","token_type":"Bearer"}"#,
        r#"{"access_token":"a\n","token_type":"Bearer"}"#,
        r#"{"access_token":"a\u0000b","token_type":"Bearer"}"#,
        r#"{"access_token":"a b","token_type":"Bearer"}"#,
        r#"{"access_token":"\u00e9","token_type":"Bearer"}"#,
        r#"{"access_token":"a","token_type":"Bearer","refresh_token":"r\u0007"}"#,
        r#"{"access_token":"a","token_type":"Bearer","refresh_token":7}"#,
        r#"{"access_token":"a","access_token":"b","token_type":"Bearer"}"#,
        r#"{"access_token":"a","\u0061ccess_token":"b","token_type":"Bearer"}"#,
        &format!(r#"{{"access_token":"{long}","token_type":"Bearer"}}"#),
        &format!(r#"{{"access_token":"a","token_type":"Bearer","x":{deep}}}"#),
    ] {
        let error = renewed(&answering(body).await).await.unwrap_err();
        assert_eq!(error, GrantError::Unreadable, "{body}");
    }
}

#[tokio::test]
async fn lifetimes_are_taken_as_servers_write_them() {
    let decade = 10 * 365 * 86_400;
    for (value, seconds) in [
        ("3600", Some(3600)),
        ("\"3600\"", Some(3600)),
        ("3599.7", Some(3599)),
        ("1e3", Some(1000)),
        ("0", None),
        ("-1", None),
        ("-1e30", None),
        ("null", None),
        ("\"\"", None),
        ("\"soon\"", None),
        ("true", None),
        ("{}", None),
        ("18446744073709551615", Some(decade)),
        ("99999999999999999999999", Some(decade)),
        ("\"18446744073709551615\"", Some(decade)),
    ] {
        let body = format!(r#"{{"access_token":"a","token_type":"Bearer","expires_in":{value}}}"#);
        let site = answering(body).await;
        match renewed(&site).await {
            Ok(granted) => assert_eq!(
                granted.expires_unix.map(|at| at - granted.given_unix),
                seconds,
                "{value}"
            ),
            Err(error) => panic!("{value}: {error}"),
        }
    }
}

#[tokio::test]
async fn scopes_are_taken_as_servers_write_them_and_bounded() {
    for (value, scopes) in [
        (r#""b a""#, "a b"),
        (r#""a""#, "a"),
        (r#"["a","c d"]"#, "a c d"),
        (r#""""#, ""),
        ("null", "a b"),
        (r#""a \"x\" \u0007y zé""#, "a"),
    ] {
        let body = format!(r#"{{"access_token":"t","token_type":"Bearer","scope":{value}}}"#);
        let site = answering(body).await;
        assert_eq!(
            renewed(&site).await.unwrap().scopes,
            Scopes::parse(scopes),
            "{value}"
        );
    }
    let flood: String = (0..50_000).map(|n| format!("s{n} ")).collect();
    let body = format!(r#"{{"access_token":"t","token_type":"Bearer","scope":"{flood}"}}"#);
    let site = answering(body).await;
    let scopes = renewed(&site).await.unwrap().scopes;
    assert!(scopes.parameter().unwrap().len() <= 16 << 10);
}

#[tokio::test]
async fn a_giant_answer_and_one_that_never_comes_end() {
    let giant = format!(
        r#"{{"access_token":"a","token_type":"Bearer","x":"{}"}}"#,
        "x".repeat(3 << 20)
    );
    let site = answering(giant).await;
    assert_eq!(renewed(&site).await.unwrap_err(), GrantError::Unreadable);

    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = server(&format!("http://{}", silent.local_addr().unwrap()));
    let guard = Guard {
        allow_loopback_http: true,
        private_hosts: vec![],
    };
    let hasty = Fetcher::new(guard, Duration::from_millis(200), None).unwrap();
    let began = std::time::Instant::now();
    let error = renewed_by(&hasty, &server).await.unwrap_err();
    assert!(began.elapsed() < Duration::from_secs(5));
    assert!(matches!(error, GrantError::Unreachable(_)) && error.is_transient());
    drop(silent);
    let error = renewed_by(&hasty, &server).await.unwrap_err();
    assert!(matches!(error, GrantError::Unreachable(_)), "{error:?}");
}

#[tokio::test]
async fn what_the_guard_forbids_is_not_asked() {
    let strict = Fetcher::new(Guard::default(), Duration::from_secs(1), None).unwrap();
    let site = answering(GOOD).await;
    for endpoint in [
        site.origin.as_str(),
        "https://169.254.169.254/token",
        "https://10.0.0.1/token",
        "ftp://as.example/token",
    ] {
        let server = AuthorizationServer {
            token_endpoint: endpoint.into(),
            ..server("https://as.example")
        };
        let error = renewed_by(&strict, &server).await.unwrap_err();
        assert!(
            matches!(error, GrantError::Guarded(_)) && !error.is_transient() && !error.ends_login(),
            "{endpoint}: {error:?}"
        );
    }
    assert!(site.asked().is_empty());
}

#[test]
fn nothing_that_is_shown_holds_a_secret() {
    let secret = || SecretText::new(PLANTED.into());
    let granted = TokenGrant {
        access: secret(),
        refresh: Some(secret()),
        expires_unix: None,
        given_unix: 0,
        scopes: Scopes::default(),
    };
    let attempt = Attempt {
        url: format!("https://as.example/a?state={PLANTED}"),
        state: secret(),
        verifier: secret(),
    };
    let query = format!(
        "code={PLANTED}&state={PLANTED}&error_description={PLANTED}&error=access_denied&iss={PLANTED}"
    );
    let answer = Answer::from_query(&query);
    let client = Client {
        secret: Some(secret()),
        ..public().clone()
    };
    for shown in [
        format!("{granted:?}"),
        format!("{attempt:?}"),
        format!("{answer:?}"),
        format!("{client:?}"),
        format!("{:?}", GrantError::of_code(&format!("{PLANTED} "))),
        format!("{}", GrantError::of_code(&format!("{PLANTED} "))),
    ] {
        assert!(!shown.contains(PLANTED), "{shown}");
    }
}
