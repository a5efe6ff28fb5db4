//! Tests against a small loopback server that responds as each test specifies.

mod device;
mod faults;
mod others;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use oauth2::url::{Url, form_urlencoded};

use super::*;
use crate::oauth::assertion::{Keys, SignedClaims, SigningKey};
use crate::oauth::fetch::Fetcher;
use crate::oauth::testing::{Asked, Reply, Site, fetcher};
use crate::oauth::{AuthorizationServer, Client, ClientAuth, Origin, Scopes, SecretText};

const RESOURCE: &str = "https://MCP.example:443/mcp?tenant=a%2Fb";
const REDIRECT: &str = "http://127.0.0.1:49152/oauth/callback?x=1";
const GOOD: &str = r#"{"access_token":"at-1","token_type":"Bearer","expires_in":60,"refresh_token":"rt-1","scope":"a b"}"#;

fn server(origin: &str) -> AuthorizationServer {
    AuthorizationServer {
        issuer: format!("{origin}/tenant"),
        authorization_endpoint: Some("https://as.example/authorize?prompt=login".into()),
        token_endpoint: format!("{origin}/token?kind=a"),
        revocation_endpoint: Some(format!("{origin}/revoke")),
        device_authorization_endpoint: Some(format!("{origin}/device")),
        s256: true,
        ..AuthorizationServer::default()
    }
}

fn client(auth: ClientAuth) -> Client {
    Client {
        id: "the client/ü".into(),
        secret: Some(hidden("s3cret:+ %é")),
        secret_expires_unix: None,
        auth,
        origin: Origin::Preregistered,
        redirect_uris: vec![],
    }
}

fn public() -> &'static Client {
    static PUBLIC: LazyLock<Client> = LazyLock::new(|| Client {
        secret: None,
        ..client(ClientAuth::None)
    });
    &PUBLIC
}

fn hidden(text: &str) -> SecretText {
    SecretText::new(text.to_owned())
}

fn form(asked: &Asked) -> BTreeMap<String, String> {
    let pairs: Vec<_> = form_urlencoded::parse(asked.body.as_bytes())
        .into_owned()
        .collect();
    let map: BTreeMap<_, _> = pairs.iter().cloned().collect();
    assert_eq!(map.len(), pairs.len(), "a parameter twice: {}", asked.body);
    map
}

fn pairs(map: &BTreeMap<String, String>) -> Vec<(&str, &str)> {
    map.iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect()
}

async fn answering(body: impl Into<String>) -> Site {
    let body = body.into();
    Site::new(move |_, _| Reply::json(body.clone())).await
}

/// A client without a key, which requests no scopes.
fn asking<'a>(server: &'a AuthorizationServer, client: &'a Client) -> TokenClient<'a> {
    static FETCHER: LazyLock<Fetcher> = LazyLock::new(fetcher);
    static NO_SCOPES: Scopes = Scopes(BTreeSet::new());
    TokenClient {
        fetcher: &FETCHER,
        server,
        client,
        key: None,
        resource: RESOURCE,
        scopes: &NO_SCOPES,
    }
}

#[test]
fn a_login_begins_with_what_the_standards_want() {
    let server = server("https://as.example");
    let scopes = Scopes::parse("read write:all");
    let plain = asking(&server, public());
    let scoped = TokenClient {
        scopes: &scopes,
        ..plain
    };
    let attempt = scoped.begin(REDIRECT).unwrap();
    let url = Url::parse(&attempt.url).unwrap();
    let said: Vec<(String, String)> = url.query_pairs().into_owned().collect();
    let map: BTreeMap<_, _> = said.iter().cloned().collect();
    assert_eq!(said.len(), map.len());
    assert!(
        attempt
            .url
            .starts_with("https://as.example/authorize?prompt=login&")
    );
    for (name, value) in [
        ("prompt", "login"),
        ("response_type", "code"),
        ("client_id", "the client/ü"),
        ("redirect_uri", REDIRECT),
        ("resource", RESOURCE),
        ("scope", "read write:all"),
        ("code_challenge_method", "S256"),
        ("state", attempt.state.expose()),
    ] {
        assert_eq!(map.get(name).map(String::as_str), Some(value), "{name}");
    }
    assert_eq!(map.len(), 9);
    let challenge = oauth2::PkceCodeChallenge::from_code_verifier_sha256(
        &oauth2::PkceCodeVerifier::new(attempt.verifier.expose().to_owned()),
    );
    assert_eq!(map["code_challenge"], challenge.as_str());
    assert!(attempt.state.expose().len() >= 43 && attempt.verifier.expose().len() >= 43);
    let again = plain.begin(REDIRECT).unwrap();
    assert_ne!(again.state, attempt.state);
    assert_ne!(again.verifier, attempt.verifier);
    assert!(!again.url.contains("scope="));
}

#[test]
fn nobody_is_sent_where_no_login_can_be() {
    let with = |endpoint: &str| {
        let server = AuthorizationServer {
            authorization_endpoint: Some(endpoint.into()),
            ..server("https://as.example")
        };
        asking(&server, public()).begin(REDIRECT)
    };
    for good in [
        "https://as.example/a",
        "http://127.0.0.1:7/a",
        "http://localhost/a",
        "http://[::1]:7/a?b=c",
    ] {
        assert!(with(good).is_ok(), "{good}");
    }
    for bad in [
        "http://as.example/a",
        "http://localhost.evil.example/a",
        "javascript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "vbscript:x",
        "com.example.app:/a",
        "https://user@as.example/a",
        "https://as.example/a#x",
        "/a",
        "",
        "https://as.example/a?client_id=other",
        "https://as.example/a?st%61te=known",
        "https://as.example/a?request_uri=https://evil.example",
    ] {
        assert_eq!(
            with(bad).unwrap_err(),
            GrantError::Url("authorization endpoint"),
            "{bad}"
        );
    }
    let plain = AuthorizationServer {
        s256: false,
        ..server("https://as.example")
    };
    let none = AuthorizationServer {
        authorization_endpoint: None,
        ..server("https://as.example")
    };
    for server in [plain, none] {
        assert!(matches!(
            asking(&server, public()).begin(REDIRECT),
            Err(GrantError::NotOffered(_))
        ));
    }
}

#[test]
fn the_four_cases_of_iss() {
    let plain = server("https://as.example");
    let state = hidden("st");
    let says = AuthorizationServer {
        iss_in_response: true,
        ..plain.clone()
    };
    let answer = |query: &str| Answer::from_query(&format!("state=st&code=c+1&{query}"));
    let right = "iss=https%3A%2F%2Fas.example%2Ftenant";
    for (server, query, good) in [
        (&says, right, true),
        (&says, "", false),
        (&plain, right, true),
        (&plain, "", true),
        (&says, "iss=https://as.example/tenant/", false),
        (&says, "iss=HTTPS://as.example/tenant", false),
        (&says, "iss=https://as.example:443/tenant", false),
        (&says, "iss=https://as.example/ten%2561nt", false),
        (&says, "iss=", false),
        (&plain, "iss=", false),
        (&plain, "iss=https://evil.example", false),
        (
            &plain,
            "iss=https://evil.example&error=access_denied&error_description=click+here",
            false,
        ),
        (
            &says,
            "error=access_denied&error_description=click+here",
            false,
        ),
    ] {
        match check_answer(server, &state, &answer(query)) {
            Ok(code) => assert!(good && code.expose() == "c 1", "{query}"),
            Err(error) => {
                assert!(!good && error == GrantError::Issuer, "{query}");
                assert!(!error.to_string().contains("click"));
            }
        }
    }
    // The state is checked first: an answer that belongs to no login gets no other information.
    let stranger = Answer::from_query("state=other&code=c&iss=https://evil.example");
    assert_eq!(
        check_answer(&says, &state, &stranger).unwrap_err(),
        GrantError::State
    );
}

#[test]
fn answers_are_read_strictly() {
    let server = server("https://as.example");
    let state = hidden("st");
    let check = |query: &str| check_answer(&server, &state, &Answer::from_query(query));
    assert_eq!(check("code=c&state=st").unwrap().expose(), "c");
    for query in [
        "code=c",
        "code=c&state=",
        "code=c&state=s",
        "code=c&state=stt",
        "state=st&state=st&code=c",
        "code=c&code=d&state=st",
        "",
    ] {
        assert_eq!(check(query).unwrap_err(), GrantError::State, "{query}");
    }
    assert_eq!(check("state=st").unwrap_err(), GrantError::Unreadable);
    assert_eq!(check("state=st&code=").unwrap_err(), GrantError::Unreadable);
    assert_eq!(
        check("state=st&code=a%0d%0ab").unwrap_err(),
        GrantError::Unreadable
    );
    assert_eq!(
        check(&format!("state=st&code=c&x={}", "y".repeat(40_000))).unwrap_err(),
        GrantError::State
    );
    for (error, told) in [
        ("access_denied", "access_denied"),
        ("<script>", "unnamed"),
        ("invalid_grant", "invalid_grant"),
        ("", "unnamed"),
    ] {
        let said = check(&format!(
            "state=st&code=c&error={error}&error_description=planted"
        ))
        .unwrap_err();
        assert_eq!(said, GrantError::Refused { error: told.into() });
        assert!(!said.is_transient() && !format!("{said:?} {said}").contains("planted"));
    }
    for pasted in [
        "http://127.0.0.1:1/cb?code=c&state=st",
        " http://127.0.0.1:1/cb?code=c&state=st#x\n",
        "code=c&state=st",
    ] {
        assert_eq!(
            check_answer(&server, &state, &Answer::from_pasted(pasted))
                .unwrap()
                .expose(),
            "c"
        );
    }
}

#[tokio::test]
async fn a_code_is_redeemed_with_everything_as_it_was_asked_for() {
    let site = answering(GOOD).await;
    let server = server(&site.origin);
    let scopes = Scopes::parse("a b c");
    let code = hidden("c/1+ ");
    let verifier = hidden(&"v".repeat(43));
    let token_client = TokenClient {
        scopes: &scopes,
        ..asking(&server, public())
    };
    let granted = token_client.redeem(REDIRECT, &code, &verifier).await;
    let granted = granted.unwrap();
    assert_eq!(granted.access.expose(), "at-1");
    assert_eq!(granted.refresh.unwrap().expose(), "rt-1");
    assert_eq!(
        granted.scopes,
        Scopes::parse("a b"),
        "narrower is what counts"
    );
    assert_eq!(granted.expires_unix, Some(granted.given_unix + 60));
    let asked = site.asked();
    assert_eq!(asked[0].line, "POST /token?kind=a");
    assert_eq!(
        pairs(&form(&asked[0])),
        [
            ("client_id", "the client/ü"),
            ("code", "c/1+ "),
            ("code_verifier", verifier.expose()),
            ("grant_type", "authorization_code"),
            ("redirect_uri", REDIRECT),
            ("resource", RESOURCE),
        ]
    );
    assert_lacks!(asked[0].head.to_ascii_lowercase(), "authorization:");
}

#[tokio::test]
async fn a_renewal_keeps_the_old_refresh_token_where_no_new_one_comes() {
    let old = hidden("rt-0");
    for (body, token) in [
        (GOOD, "rt-1"),
        (r#"{"access_token":"at-1","token_type":"bearer"}"#, "rt-0"),
        (
            r#"{"access_token":"at-1","token_type":"BEARER","refresh_token":null}"#,
            "rt-0",
        ),
        (
            r#"{"access_token":"at-1","token_type":"Bearer","refresh_token":""}"#,
            "rt-0",
        ),
    ] {
        let site = answering(body).await;
        let scopes = Scopes::parse("x y");
        let server = server(&site.origin);
        let token_client = TokenClient {
            scopes: &scopes,
            ..asking(&server, public())
        };
        let granted = token_client.refresh(&old).await.unwrap();
        assert_eq!(granted.refresh.unwrap().expose(), token);
        assert_eq!(
            pairs(&form(&site.asked()[0])),
            [
                ("client_id", "the client/ü"),
                ("grant_type", "refresh_token"),
                ("refresh_token", "rt-0"),
                ("resource", RESOURCE),
                ("scope", "x y"),
            ]
        );
    }
}

#[tokio::test]
async fn clients_prove_who_they_are_in_each_way() {
    use base64::Engine;
    let pem = include_str!("../assertion/rsa.test.pem");
    let key = SigningKey::from_pem(pem, Some("k1".into())).unwrap();
    let basic = base64::engine::general_purpose::STANDARD
        .encode("the+client%2F%C3%BC:s3cret%3A%2B+%25%C3%A9");
    for auth in [
        ClientAuth::None,
        ClientAuth::Basic,
        ClientAuth::Post,
        ClientAuth::PrivateKeyJwt,
    ] {
        let site = answering(GOOD).await;
        let server = AuthorizationServer {
            token_endpoint_auth_signing_algs: vec!["PS256".into()],
            ..server(&site.origin)
        };
        let client = client(auth);
        let scopes = Scopes::parse("a");
        let token_client = TokenClient {
            key: Some(&key),
            scopes: &scopes,
            ..asking(&server, &client)
        };
        token_client.client_credentials().await.unwrap();
        // Requests that the crate does not support are authenticated in the same way.
        let redeemed = token_client.redeem_assertion(&hidden("e.y.J")).await;
        redeemed.unwrap();
        let asked = site.asked();
        let mut ids = vec![];
        for (asked, kind) in asked.iter().zip([
            "client_credentials",
            "urn:ietf:params:oauth:grant-type:jwt-bearer",
        ]) {
            let form = form(asked);
            assert_eq!(form["grant_type"], kind);
            assert_eq!(form["resource"].as_str(), RESOURCE);
            assert_eq!(form["scope"].as_str(), "a");
            let authorization = asked
                .head
                .lines()
                .find(|line| line.to_ascii_lowercase().starts_with("authorization:"));
            let by_header = authorization.map(|line| line.split_once(": ").unwrap().1.to_owned());
            assert_eq!(
                by_header,
                (auth == ClientAuth::Basic).then(|| format!("Basic {basic}"))
            );
            let id = (auth != ClientAuth::Basic).then_some("the client/ü");
            assert_eq!(form.get("client_id").map(String::as_str), id);
            let secret = (auth == ClientAuth::Post).then_some("s3cret:+ %é");
            assert_eq!(form.get("client_secret").map(String::as_str), secret);
            assert_eq!(
                form.contains_key("client_assertion"),
                auth == ClientAuth::PrivateKeyJwt
            );
            if let Some(assertion) = form.get("client_assertion") {
                assert_eq!(
                    form["client_assertion_type"],
                    "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
                );
                let keys = Keys::parse(key.jwks().as_bytes()).unwrap();
                let audience = [server.issuer.clone()];
                let signed = SignedClaims::verify(assertion, &keys).unwrap();
                let claims = signed
                    .check(
                        crate::oauth::unix_now(),
                        &client.id,
                        &audience,
                        std::time::Duration::ZERO,
                    )
                    .unwrap();
                assert_eq!(claims.subject().unwrap(), client.id);
                assert!(claims.expires_unix() <= crate::oauth::unix_now() + 120);
                ids.push(claims.id().unwrap());
            }
        }
        ids.dedup();
        assert_eq!(
            ids.len(),
            if auth == ClientAuth::PrivateKeyJwt {
                2
            } else {
                0
            }
        );
    }
    let site = answering(GOOD).await;
    let keyless = client(ClientAuth::PrivateKeyJwt);
    let lenient = server(&site.origin);
    let said = asking(&lenient, &keyless).client_credentials().await;
    assert!(matches!(said, Err(GrantError::Key(_))));
    let strict = AuthorizationServer {
        token_endpoint_auth_signing_algs: vec!["ES256".into()],
        ..server(&site.origin)
    };
    let token_client = TokenClient {
        key: Some(&key),
        ..asking(&strict, &keyless)
    };
    let said = token_client.client_credentials().await;
    assert!(matches!(said, Err(GrantError::NotOffered(_))));
    assert!(site.asked().is_empty());
}
