use serde_json::{Value as Json, json};

use super::*;
use crate::config::Secret;
use crate::oauth::Scopes;
use crate::oauth::testing::{Reply, Site, fetcher};

const DOCUMENT: &str = "https://gate.example/oauth/client.json";

fn server() -> AuthorizationServer {
    AuthorizationServer {
        issuer: "https://login.example".into(),
        authorization_endpoint: Some("https://login.example/authorize".into()),
        token_endpoint: "https://login.example/token".into(),
        s256: true,
        ..AuthorizationServer::default()
    }
}

fn configured() -> LoginConfig {
    LoginConfig {
        issuer: Some("https://login.example".into()),
        client_id: Some("gate-1".into()),
        ..LoginConfig::default()
    }
}

fn known() -> Client {
    Client {
        id: "old".into(),
        secret: Some(SecretText::new("s".into())),
        secret_expires_unix: Some(unix_now() + 3600),
        auth: ClientAuth::Basic,
        origin: Origin::Registered,
        redirect_uris: uris(),
    }
}

fn uris() -> Vec<String> {
    vec!["http://127.0.0.1:8123/oauth/callback".into()]
}

async fn who(
    server: &AuthorizationServer,
    config: &LoginConfig,
    document: Option<&str>,
    known: Option<&Client>,
) -> Result<Client, IdentityError> {
    let fetcher = fetcher();
    identify(
        &fetcher,
        server,
        config,
        document,
        &uris(),
        known,
        "lychgate",
    )
    .await
}

/// Makes a server accept these ways to authenticate at the token endpoint.
fn taking(server: AuthorizationServer, methods: &[&str]) -> AuthorizationServer {
    AuthorizationServer {
        token_endpoint_auth_methods: methods.iter().map(|&method| method.to_owned()).collect(),
        ..server
    }
}

/// The refusal of a registration.
fn refused(error: &str) -> Reply {
    let body = json!({"error": error, "error_description": "planted"});
    Reply(400, vec![], body.to_string())
}

/// Identifies the gate at a server with nothing in the config.
async fn unconfigured(server: &AuthorizationServer) -> Result<Client, IdentityError> {
    who(server, &LoginConfig::default(), None, None).await
}

/// A server that responds to registrations with `answer`.
async fn registrar(
    answer: impl Fn(&Json) -> Reply + Send + Sync + 'static,
) -> (Site, AuthorizationServer) {
    let site = Site::new(move |_, asked| answer(&serde_json::from_str(&asked.body).unwrap())).await;
    let server = AuthorizationServer {
        registration_endpoint: Some(format!("{}/register", site.origin)),
        ..server()
    };
    (site, server)
}

#[tokio::test]
async fn the_config_comes_first_and_for_its_issuer_only() {
    let mut server = AuthorizationServer {
        client_id_metadata_document: true,
        ..server()
    };
    let client = who(&server, &configured(), Some(DOCUMENT), Some(&known()))
        .await
        .unwrap();
    assert_eq!(client.id.as_str(), "gate-1");
    assert_eq!(client.origin, Origin::Preregistered);
    assert_eq!(client.auth, ClientAuth::None);

    for other in ["https://login.example/", "https://evil.example"] {
        server.issuer = other.into();
        let error = who(&server, &configured(), Some(DOCUMENT), Some(&known()))
            .await
            .unwrap_err();
        let configured = "https://login.example".to_owned();
        assert_eq!(
            error,
            IdentityError::OtherIssuer {
                configured,
                found: other.into()
            }
        );
        assert!(error.to_string().contains(other.trim_end_matches('/')) && !error.is_transient());
    }
    let config = LoginConfig {
        issuer: None,
        ..configured()
    };
    assert!(matches!(
        who(&server, &config, None, None).await,
        Err(IdentityError::OtherIssuer { .. })
    ));
}

#[tokio::test]
async fn it_proves_itself_by_what_it_has_and_the_server_takes() {
    let secret = || Some(Secret("planted".into()));
    let with = |secret: Option<Secret>, key: Option<Secret>, auth: Option<&str>| LoginConfig {
        client_secret: secret,
        client_key: key,
        client_auth: auth.map(str::to_owned),
        ..configured()
    };
    let asked = async |offered: &[&str], config: LoginConfig| {
        who(&taking(server(), offered), &config, None, None).await
    };
    let with_secret = || with(secret(), None, None);
    let with_both = || with(secret(), secret(), None);
    let basic = &["client_secret_basic"][..];
    let post = &["client_secret_post"][..];
    for (offered, config, expected) in [
        (&[][..], with_secret(), ClientAuth::Basic),
        (post, with_secret(), ClientAuth::Post),
        (&[post, basic].concat(), with_secret(), ClientAuth::Basic),
        (
            &["client_secret_post", "private_key_jwt"],
            with_both(),
            ClientAuth::PrivateKeyJwt,
        ),
        (post, with_both(), ClientAuth::Post),
        (&[], with(None, secret(), None), ClientAuth::PrivateKeyJwt),
        (basic, with(None, None, None), ClientAuth::None),
        (
            basic,
            with(secret(), None, Some("client_secret_post")),
            ClientAuth::Post,
        ),
        (basic, with(secret(), None, Some("none")), ClientAuth::None),
    ] {
        let client = asked(offered, config).await.unwrap();
        assert_eq!(client.auth, expected, "{offered:?}");
        assert_eq!(
            client.secret.is_some(),
            matches!(expected, ClientAuth::Basic | ClientAuth::Post)
        );
        assert!(!format!("{client:?}").contains("planted"));
    }
    for (offered, config) in [
        (&["private_key_jwt"][..], with(secret(), None, None)),
        (&["client_secret_basic"], with(None, secret(), None)),
        (&[], with(None, None, Some("client_secret_basic"))),
        (&[], with(secret(), None, Some("private_key_jwt"))),
        (&[], with(secret(), None, Some("tls_client_auth"))),
    ] {
        let error = asked(offered, config).await.unwrap_err();
        assert!(
            matches!(error, IdentityError::Auth { .. }) && !error.to_string().contains("planted"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn nobody_is_sent_where_codes_can_be_stolen() {
    let (site, server) = registrar(|_| Reply(201, vec![], r#"{"client_id": "x"}"#.into())).await;
    let server = AuthorizationServer {
        s256: false,
        client_id_metadata_document: true,
        ..server
    };
    for config in [LoginConfig::default(), configured()] {
        let error = who(&server, &config, Some(DOCUMENT), Some(&known()))
            .await
            .unwrap_err();
        assert_eq!(error, IdentityError::NoS256(server.issuer.clone()));
    }
    assert!(site.lines().is_empty());
    // A client that authenticates as itself uses no code.
    let config = LoginConfig {
        grant: Grant::Client,
        ..configured()
    };
    assert!(who(&server, &config, None, None).await.is_ok());
}

#[tokio::test]
async fn then_its_document_where_the_server_reads_it() {
    let server = AuthorizationServer {
        client_id_metadata_document: true,
        ..server()
    };
    let config = LoginConfig::default();
    let client = who(&server, &config, Some(DOCUMENT), Some(&known())).await;
    let client = client.unwrap();
    assert_eq!(client.id.as_str(), DOCUMENT);
    assert_eq!(client.origin, Origin::Document);
    assert_eq!(client.auth, ClientAuth::None);
    assert_eq!(client.redirect_uris, uris());
    for none in [
        "https://gate.example",
        "https://gate.example/",
        "http://gate.example/x",
        "http://127.0.0.1/x",
    ] {
        let client = who(&server, &config, Some(none), Some(&known())).await;
        assert_eq!(client.unwrap().id, "old", "{none}");
    }
    let reads_none = AuthorizationServer {
        client_id_metadata_document: false,
        ..server
    };
    let client = who(&reads_none, &config, Some(DOCUMENT), Some(&known())).await;
    assert_eq!(client.unwrap().id, "old");
}

#[test]
fn the_document_says_who_it_is() {
    let document: Json = serde_json::from_str(&document(
        DOCUMENT,
        &["https://gate.example/oauth/callback".into()],
        "lych \"gate\"",
    ))
    .unwrap();
    assert_eq!(document["client_id"], DOCUMENT);
    assert_eq!(document["client_name"], "lych \"gate\"");
    assert_eq!(
        document["redirect_uris"],
        json!(["https://gate.example/oauth/callback"])
    );
    assert_eq!(
        document["grant_types"],
        json!(["authorization_code", "refresh_token"])
    );
    assert_eq!(document["token_endpoint_auth_method"], json!("none"));
    assert_eq!(document["application_type"], json!("web"));
}

#[tokio::test]
async fn a_client_that_is_known_is_used_while_it_lasts_and_fits() {
    let server = server();
    let config = LoginConfig::default();
    assert_eq!(
        who(&server, &config, None, Some(&known())).await.unwrap(),
        known()
    );
    let mut others = vec![known(), known(), known()];
    others[0].secret_expires_unix = Some(unix_now() + 5);
    others[1].redirect_uris = vec!["http://127.0.0.1:9999/oauth/callback".into()];
    others[2].origin = Origin::Preregistered;
    for client in others {
        let error = who(&server, &config, None, Some(&client))
            .await
            .unwrap_err();
        assert!(
            matches!(error, IdentityError::NeedsOperator { .. }),
            "{client:?}"
        );
    }
    let error = who(&server, &config, None, None)
        .await
        .unwrap_err()
        .to_string();
    assert_contains!(
        error,
        "https://login.example",
        "`issuer`",
        "`client_id`",
        "http://127.0.0.1:8123/oauth/callback"
    );
}

#[tokio::test]
async fn registration_asks_for_what_is_needed_and_takes_what_is_given() {
    let (site, server) = registrar(|_| {
        let body = r#"{"client_id": "new", "client_secret": "planted", "client_secret_expires_at": 4102444800,
            "token_endpoint_auth_method": "client_secret_post", "redirect_uris": []}"#;
        Reply(201, vec![], body.into())
    })
    .await;
    let server = AuthorizationServer {
        scopes: Scopes::parse("read offline_access"),
        ..server
    };
    let client = unconfigured(&server).await.unwrap();
    assert_eq!(client.id.as_str(), "new");
    assert_eq!(client.auth, ClientAuth::Post);
    assert_eq!(client.origin, Origin::Registered);
    assert_eq!(client.secret.as_ref().unwrap().expose(), "planted");
    assert_eq!(client.secret_expires_unix, Some(4_102_444_800));
    assert_eq!(client.redirect_uris, uris());
    assert!(!format!("{client:?}").contains("planted"));
    let asked: Json = serde_json::from_str(&site.asked()[0].body).unwrap();
    assert_eq!(
        asked,
        json!({
            "client_name": "lychgate",
            "redirect_uris": uris(),
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "client_secret_basic",
            "application_type": "native",
            "scope": "offline_access read",
        })
    );
}

#[tokio::test]
async fn the_method_is_one_that_the_server_lists() {
    let (site, server) = registrar(|asked| {
        Reply::json(
            json!({"client_id": "x", "client_secret": "s", "token_endpoint_auth_method": asked["token_endpoint_auth_method"]})
                .to_string(),
        )
    })
    .await;
    let web = ["https://gate.example/oauth/callback".to_owned()];
    let all = ["client_secret_post", "client_secret_basic", "none"];
    for (offered, uris, expected, kind) in [
        (&all[..], &uris()[..], ClientAuth::None, "native"),
        (&all[..], &web, ClientAuth::Basic, "web"),
        (&all[..1], &uris(), ClientAuth::Post, "native"),
        (&all[1..2], &uris(), ClientAuth::Basic, "native"),
        (&all[2..], &web, ClientAuth::None, "web"),
        (&["private_key_jwt"], &web, ClientAuth::None, "web"),
        (&[], &web, ClientAuth::Basic, "web"),
    ] {
        let server = taking(server.clone(), offered);
        let config = LoginConfig::default();
        let client = identify(&fetcher(), &server, &config, None, uris, None, "x").await;
        let client = client.unwrap();
        assert_eq!(client.auth, expected);
        assert_eq!(client.secret.is_some(), expected != ClientAuth::None);
        let asked: Json = serde_json::from_str(&site.asked().last().unwrap().body).unwrap();
        assert_eq!(asked["application_type"], json!(kind));
        assert_eq!(asked.get("scope"), None);
    }
}

#[tokio::test]
async fn what_is_given_is_made_sense_of_or_refused() {
    let public = Some((ClientAuth::None, false, None));
    let secret = |expires_unix| Some((ClientAuth::Basic, true, expires_unix));
    for (given, expected) in [
        (json!({}), public),
        (json!({"client_secret": "s"}), secret(None)),
        (
            json!({"client_secret": "s", "client_secret_expires_at": 0}),
            secret(None),
        ),
        (
            json!({"client_secret": "s", "client_secret_expires_at": 99.0}),
            secret(Some(99)),
        ),
        (
            json!({"client_secret": null, "client_secret_expires_at": 9}),
            public,
        ),
        (json!({"client_secret": ""}), public),
        (
            json!({"client_secret": "s", "token_endpoint_auth_method": "none"}),
            public,
        ),
        (json!({"client_id": ""}), None),
        (json!({"client_id": "x\r\ny"}), None),
        (json!({"client_id": "x".repeat(100_000)}), None),
        (json!({"client_secret": "a\nb"}), None),
        (
            json!({"token_endpoint_auth_method": "client_secret_basic"}),
            None,
        ),
        (
            json!({"token_endpoint_auth_method": "private_key_jwt"}),
            None,
        ),
        (json!({"token_endpoint_auth_method": "magic"}), None),
    ] {
        let mut answer = json!({"client_id": "x"});
        for (name, value) in given.as_object().unwrap() {
            answer[name] = value.clone();
        }
        let body = answer.to_string();
        let (_site, server) = registrar(move |_| Reply(201, vec![], body.clone())).await;
        let outcome = unconfigured(&server).await;
        match expected {
            Some(expected) => {
                let client = outcome.unwrap();
                let has_secret = client.secret.is_some();
                let outcome = (client.auth, has_secret, client.secret_expires_unix);
                assert_eq!(outcome, expected, "{given}");
            }
            None => assert!(
                matches!(outcome, Err(IdentityError::Registered { .. })),
                "{outcome:?}"
            ),
        }
    }
}

#[tokio::test]
async fn a_refusal_is_told_with_its_code() {
    let (site, server) = registrar(|_| refused("invalid_redirect_uri")).await;
    let error = unconfigured(&server).await.unwrap_err();
    assert!(
        error.to_string().contains("invalid_redirect_uri")
            && !error.to_string().contains("planted"),
        "{error}"
    );
    assert!(!error.is_transient() && site.lines() == ["POST /register"]);

    // Servers without metadata are assumed to support registration; most that are not OAuth servers
    // do not.
    let (_site, server) = registrar(|_| Reply::status(404)).await;
    let error = unconfigured(&server).await.unwrap_err();
    assert!(
        matches!(error, IdentityError::NeedsOperator { .. })
            && error.to_string().contains("`bearer`"),
        "{error}"
    );

    let (_site, server) = registrar(|_| Reply::status(503)).await;
    assert!(unconfigured(&server).await.unwrap_err().is_transient());
    let (_site, server) = registrar(|_| Reply(200, vec![], "<html>".into())).await;
    assert!(matches!(
        unconfigured(&server).await,
        Err(IdentityError::Registration { .. })
    ));
}

#[tokio::test]
async fn who_takes_no_list_of_scopes_is_asked_without() {
    let (site, server) = registrar(|asked| match asked.get("scope") {
        Some(_) => refused("invalid_client_metadata"),
        None => Reply(201, vec![], r#"{"client_id": "x"}"#.into()),
    })
    .await;
    let server = AuthorizationServer {
        scopes: Scopes::parse("a"),
        ..server
    };
    assert_eq!(unconfigured(&server).await.unwrap().id, "x");
    assert_eq!(site.lines().len(), 2);
    // A permanent refusal is not requested again.
    let (site, server) = registrar(|_| refused("invalid_client_metadata")).await;
    assert!(unconfigured(&server).await.is_err());
    assert_eq!(site.lines().len(), 1);
}
