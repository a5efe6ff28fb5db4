use std::sync::Mutex;

use rcgen::KeyPair;
use serde::Serialize;

use super::super::assertion::SigningKey;
use super::super::testing::{Reply, Site, fetcher};
use super::super::unix_now;
use super::*;

#[test]
fn metadata_is_looked_for_where_it_may_be() {
    assert_eq!(
        well_known("https://a.example"),
        ["https://a.example/.well-known/oauth-authorization-server", "https://a.example/.well-known/openid-configuration"]
    );
    assert_eq!(
        well_known("https://a.example/t/1/"),
        [
            "https://a.example/.well-known/oauth-authorization-server/t/1",
            "https://a.example/.well-known/openid-configuration/t/1",
            "https://a.example/t/1/.well-known/openid-configuration"
        ]
    );
}

#[derive(Serialize)]
struct Said<'a> {
    iss: &'a str,
    sub: &'a str,
    aud: &'a str,
    exp: u64,
}

fn key(id: &str) -> SigningKey {
    SigningKey::from_pem(&KeyPair::generate().unwrap().serialize_pem(), Some(id.to_owned())).unwrap()
}

/// An issuer whose key set can be changed, or taken away.
struct Bench {
    site: Site,
    published: Arc<Mutex<Option<String>>>,
    issuer: Issuer,
}

impl Bench {
    async fn new(pause: Duration, keys_keep: Duration) -> Self {
        let published = Arc::new(Mutex::new(None));
        let keys = published.clone();
        let site = Site::new(move |origin, asked| match asked.line.as_str() {
            "GET /.well-known/oauth-authorization-server" => {
                Reply::json(format!(r#"{{"issuer":"{origin}","jwks_uri":"{origin}/keys"}}"#))
            }
            "GET /keys" => keys.lock().unwrap().clone().map_or_else(|| Reply::status(503), Reply::json),
            _ => Reply::status(404),
        })
        .await;
        let config = IssuerConfig {
            issuer: site.origin.clone(),
            jwks_uri: None,
            ca: None,
            audience: vec![],
            leeway: Duration::ZERO,
            keys_keep,
            agent: "oauth".into(),
            agent_claim: None,
            user_claim: "sub".into(),
            groups_claim: "groups".into(),
            scopes: vec![],
        };
        let made = Issuer::new(config, &OAuthConfig::default()).unwrap();
        Self { site, published, issuer: Issuer { fetcher: fetcher(), pause, ..made } }
    }

    fn publish(&self, keys: Option<&SigningKey>) {
        *self.published.lock().unwrap() = keys.map(SigningKey::jwks);
    }

    async fn check(&self, key: &SigningKey) -> Result<(), Refused> {
        let said = Said { iss: &self.site.origin, sub: "ann", aud: "gate", exp: unix_now() + 60 };
        let token = key.sign(&said, &[]).unwrap();
        self.issuer.check(token.expose(), &["gate".to_owned()]).await.map(drop)
    }

    fn fetches(&self) -> usize {
        self.site.lines().iter().filter(|line| *line == "GET /keys").count()
    }
}

#[tokio::test]
async fn a_new_key_is_fetched_when_a_token_needs_it_and_an_old_one_is_over() {
    let (bench, one, two) = (Bench::new(Duration::ZERO, Duration::from_secs(60)).await, key("one"), key("two"));
    bench.publish(Some(&one));
    assert_eq!((bench.check(&one).await, bench.check(&one).await, bench.fetches()), (Ok(()), Ok(()), 1));
    bench.publish(Some(&two));
    assert_eq!((bench.check(&two).await, bench.fetches()), (Ok(()), 2));
    assert_eq!(bench.check(&one).await, Err(Refused::Invalid(JwtError::UnknownKey)));
}

#[tokio::test]
async fn tokens_of_unknown_keys_cannot_make_the_gate_ask_often() {
    let (bench, one, two) = (Bench::new(PAUSE, Duration::from_secs(60)).await, key("one"), key("two"));
    bench.publish(Some(&one));
    assert_eq!(bench.check(&one).await, Ok(()));
    for _ in 0..20 {
        assert_eq!(bench.check(&two).await, Err(Refused::Invalid(JwtError::UnknownKey)));
    }
    let all = futures_util::future::join_all((0..50).map(|_| bench.check(&one))).await;
    assert!(all.iter().all(Result::is_ok));
    assert_eq!(bench.fetches(), 1);
}

#[tokio::test]
async fn known_keys_count_for_a_while_when_the_issuer_is_gone() {
    let (bench, one, two) = (Bench::new(Duration::ZERO, Duration::from_secs(60)).await, key("one"), key("two"));
    assert_eq!(bench.check(&one).await, Err(Refused::Unreachable), "none are known yet");
    bench.publish(Some(&one));
    assert_eq!(bench.check(&one).await, Ok(()));
    bench.publish(None);
    assert_eq!(bench.check(&two).await, Err(Refused::Invalid(JwtError::UnknownKey)));
    assert_eq!(bench.check(&one).await, Ok(()));
    let short = Bench::new(Duration::ZERO, Duration::ZERO).await;
    short.publish(Some(&one));
    assert_eq!(short.check(&one).await, Err(Refused::Unreachable), "kept for no time at all");
}
