//! Grants that the crate does not support, and the revocation of tokens.

use std::io::Write;

use super::*;
use crate::config::{EnterpriseConfig, Secret};
use crate::oauth::TokenGrant;

const ID_JAG: &str = r#"{"access_token":"id.j.ag","issued_token_type":"urn:ietf:params:oauth:token-type:id-jag","token_type":"N_A"}"#;

fn idp(file: &tempfile::NamedTempFile) -> EnterpriseConfig {
    EnterpriseConfig {
        issuer: "https://idp.example".into(),
        token_endpoint: None,
        client_id: "gate-at-idp".into(),
        client_secret: None,
        subject_token_file: file.path().to_owned(),
        saml: false,
    }
}

fn subject(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

async fn managed(site: &Site, idp: &EnterpriseConfig) -> Result<TokenGrant, GrantError> {
    let server = server(&site.origin);
    let idp_url = format!("{}/idp", site.origin);
    let client = client(ClientAuth::Post);
    let token_client = TokenClient {
        scopes: &Scopes::parse("a b"),
        ..asking(&server, &client)
    };
    token_client.enterprise(&idp_url, idp).await
}

#[tokio::test]
async fn an_organisation_gives_tokens_without_a_person() {
    let site = Site::new(|_, request| {
        Reply::json(if request.line.ends_with("/idp") {
            ID_JAG
        } else {
            GOOD
        })
    })
    .await;
    let file = subject(" id.tok.en\n");
    let granted = managed(&site, &idp(&file)).await.unwrap();
    assert_eq!(granted.access.expose(), "at-1");
    let requests = site.asked();
    let issuer = format!("{}/tenant", site.origin);
    assert_eq!(
        pairs(&form(&requests[0])),
        [
            ("audience", issuer.as_str()),
            ("client_id", "gate-at-idp"),
            (
                "grant_type",
                "urn:ietf:params:oauth:grant-type:token-exchange"
            ),
            (
                "requested_token_type",
                "urn:ietf:params:oauth:token-type:id-jag"
            ),
            ("resource", RESOURCE),
            ("scope", "a b"),
            ("subject_token", "id.tok.en"),
            (
                "subject_token_type",
                "urn:ietf:params:oauth:token-type:id_token"
            ),
        ]
    );
    assert_eq!(
        pairs(&form(&requests[1])),
        [
            ("assertion", "id.j.ag"),
            ("client_id", "the client/ü"),
            ("client_secret", "s3cret:+ %é"),
            ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"),
            ("resource", RESOURCE),
            ("scope", "a b"),
        ]
    );
}

#[tokio::test]
async fn what_the_organisation_gives_must_be_what_was_asked_for() {
    let file = subject("saml");
    for bad in [
        GOOD,
        r#"{"access_token":"x","issued_token_type":"urn:ietf:params:oauth:token-type:access_token","token_type":"Bearer"}"#,
        r#"{"access_token":"a\r\nb","issued_token_type":"urn:ietf:params:oauth:token-type:id-jag","token_type":"N_A"}"#,
    ] {
        let site = answering(bad).await;
        let saml = EnterpriseConfig {
            saml: true,
            client_secret: Some(Secret("geheim".into())),
            ..idp(&file)
        };
        let error = managed(&site, &saml).await.unwrap_err();
        assert_eq!(error, GrantError::Unreadable, "{bad}");
        let requests = site.asked();
        assert_eq!(requests.len(), 1, "nothing goes on to the other server");
        assert_eq!(
            form(&requests[0])["subject_token_type"],
            "urn:ietf:params:oauth:token-type:saml2"
        );
        assert!(
            requests[0].head.contains("Basic Z2F0ZS1hdC1pZHA6Z2VoZWlt"),
            "{}",
            requests[0].head
        );
    }
}

#[tokio::test]
async fn a_refusal_of_an_assertion_is_final() {
    let refuses = |_: &str, request: &Asked| match request.line.ends_with("/idp") {
        true => Reply::json(ID_JAG),
        false => Reply(400, vec![], r#"{"error":"invalid_grant"}"#.into()),
    };
    let site = Site::new(refuses).await;
    assert_eq!(
        managed(&site, &idp(&subject("x"))).await.unwrap_err(),
        GrantError::InvalidGrant
    );
    assert_eq!(site.asked().len(), 2);
    for missing in [subject(""), subject(" \n"), subject(&"x".repeat(300_000))] {
        assert_eq!(
            managed(&site, &idp(&missing)).await.unwrap_err(),
            GrantError::Subject
        );
    }
    let absent = EnterpriseConfig {
        subject_token_file: "/nonexistent/token".into(),
        ..idp(&subject("x"))
    };
    assert_eq!(
        managed(&site, &absent).await.unwrap_err(),
        GrantError::Subject
    );
    assert_eq!(site.asked().len(), 2);
}

fn granted() -> TokenGrant {
    TokenGrant {
        access: hidden("at"),
        refresh: Some(hidden("rt")),
        expires_unix: None,
        given_unix: 0,
        scopes: Scopes::default(),
    }
}

#[tokio::test]
async fn tokens_are_given_back_the_refresh_token_first() {
    let site = Site::new(|_, _| Reply::status(200)).await;
    let as_server = server(&site.origin);
    let revoked = asking(&as_server, &client(ClientAuth::Post))
        .revoke(&granted())
        .await;
    revoked.unwrap();
    let forms: Vec<_> = site.asked().iter().map(form).collect();
    let revoked: Vec<_> = forms
        .iter()
        .map(|form| (form["token"].as_str(), form["token_type_hint"].as_str()))
        .collect();
    assert_eq!(revoked, [("rt", "refresh_token"), ("at", "access_token")]);
    assert!(
        forms
            .iter()
            .all(|form| form["client_id"] == "the client/ü"
                && form["client_secret"] == "s3cret:+ %é")
    );
    assert_eq!(site.lines(), ["POST /revoke", "POST /revoke"]);

    let alone = TokenGrant {
        refresh: None,
        ..granted()
    };
    let revoked = asking(&as_server, public()).revoke(&alone).await;
    revoked.unwrap();
    assert_eq!(site.asked().len(), 3);
    let none = AuthorizationServer {
        revocation_endpoint: None,
        ..as_server
    };
    let result = asking(&none, public()).revoke(&granted()).await;
    assert_eq!(result.unwrap_err(), GrantError::NotOffered("revocation"));
}

#[tokio::test]
async fn a_failed_return_is_told_after_both_were_tried() {
    for (refresh, access, expected) in [
        (
            (503, ""),
            (200, ""),
            Err(GrantError::Unreachable(
                "the answer has the status 503".into(),
            )),
        ),
        (
            (400, r#"{"error":"invalid_client"}"#),
            (200, ""),
            Err(GrantError::InvalidClient),
        ),
        (
            (200, ""),
            (400, r#"{"error":"unsupported_token_type"}"#),
            Ok(()),
        ),
        (
            (404, "<html>"),
            (404, "<html>"),
            Err(GrantError::Unreadable),
        ),
    ] {
        let site = Site::new(move |_, request| {
            let (status, body) = if request.body.contains("token=rt") {
                refresh
            } else {
                access
            };
            Reply(status, vec![], body.into())
        })
        .await;
        let server = server(&site.origin);
        let result = asking(&server, public()).revoke(&granted()).await;
        assert_eq!(result, expected);
        assert_eq!(site.asked().len(), 2);
    }
}
