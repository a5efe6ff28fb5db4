use std::sync::Mutex;

use rcgen::KeyPair;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::super::assertion::SigningKey;
use super::super::testing::{Reply, Site, fetcher};
use super::super::unix_now;
use super::*;

#[test]
fn metadata_is_looked_for_where_it_may_be() {
    assert_eq!(
        well_known("https://a.example"),
        [
            "https://a.example/.well-known/oauth-authorization-server",
            "https://a.example/.well-known/openid-configuration"
        ]
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
    nbf: u64,
}

fn key(id: &str) -> SigningKey {
    SigningKey::from_pem(
        &KeyPair::generate().unwrap().serialize_pem(),
        Some(id.to_owned()),
    )
    .unwrap()
}

fn digest(token: &str) -> TokenDigest {
    Sha256::digest(token).into()
}

fn invalid(error: JwtError) -> Result<(), TokenRefused> {
    Err(TokenRefused::Invalid(error))
}

/// An issuer whose key set can be changed or removed.
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
            "GET /.well-known/oauth-authorization-server" => Reply::json(format!(
                r#"{{"issuer":"{origin}","jwks_uri":"{origin}/keys"}}"#
            )),
            "GET /keys" => keys
                .lock()
                .unwrap()
                .clone()
                .map_or_else(|| Reply::status(503), Reply::json),
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
        let made = Issuer::new(
            config,
            &OAuthConfig::default(),
            2,
            IntCounter::new("n", "n").unwrap(),
        )
        .unwrap();
        Self {
            site,
            published,
            issuer: Issuer {
                fetcher: fetcher(),
                fetch_interval: pause,
                ..made
            },
        }
    }

    fn publish(&self, keys: Option<&SigningKey>) {
        *self.published.lock().unwrap() = keys.map(SigningKey::jwks);
    }

    async fn check(&self, key: &SigningKey) -> Result<(), TokenRefused> {
        self.show(&self.token(key, "ann"), "gate").await
    }

    /// Returns a token that is valid for a minute.
    fn token(&self, key: &SigningKey, user: &str) -> String {
        let now = unix_now();
        let said = Said {
            iss: &self.site.origin,
            sub: user,
            aud: "gate",
            exp: now + 60,
            nbf: now,
        };
        key.sign(&said, &[]).unwrap().expose().to_owned()
    }

    async fn show(&self, token: &str, audience: &str) -> Result<(), TokenRefused> {
        self.show_at(unix_now(), token, audience).await
    }

    async fn show_at(
        &self,
        now_unix: u64,
        token: &str,
        audience: &str,
    ) -> Result<(), TokenRefused> {
        self.issuer
            .check_at(now_unix, token, &digest(token), &[audience.to_owned()])
            .await
            .map(drop)
    }

    fn is_cached(&self, token: &str) -> bool {
        self.issuer.has_verified(&digest(token))
    }

    fn fetches(&self) -> usize {
        self.site
            .lines()
            .iter()
            .filter(|line| *line == "GET /keys")
            .count()
    }
}

#[tokio::test]
async fn a_new_key_is_fetched_when_a_token_needs_it_and_an_old_one_is_over() {
    let bench = Bench::new(Duration::ZERO, Duration::from_secs(60)).await;
    let [one, two] = ["one", "two"].map(key);
    bench.publish(Some(&one));
    assert_eq!(bench.check(&one).await, Ok(()));
    assert_eq!(bench.check(&one).await, Ok(()));
    assert_eq!(bench.fetches(), 1);
    bench.publish(Some(&two));
    assert_eq!((bench.check(&two).await, bench.fetches()), (Ok(()), 2));
    assert_eq!(bench.check(&one).await, invalid(JwtError::UnknownKey));
}

#[tokio::test]
async fn tokens_of_unknown_keys_cannot_make_the_gate_ask_often() {
    let bench = Bench::new(MIN_FETCH_INTERVAL, Duration::from_secs(60)).await;
    let [one, two] = ["one", "two"].map(key);
    bench.publish(Some(&one));
    assert_eq!(bench.check(&one).await, Ok(()));
    for _ in 0..20 {
        assert_eq!(bench.check(&two).await, invalid(JwtError::UnknownKey));
    }
    let all = futures_util::future::join_all((0..50).map(|_| bench.check(&one))).await;
    assert!(all.iter().all(Result::is_ok));
    assert_eq!(bench.fetches(), 1);
}

#[tokio::test]
async fn known_keys_count_for_a_while_when_the_issuer_is_gone() {
    let bench = Bench::new(Duration::ZERO, Duration::from_secs(60)).await;
    let [one, two] = ["one", "two"].map(key);
    assert_eq!(
        bench.check(&one).await,
        Err(TokenRefused::Unreachable),
        "none are known yet"
    );
    bench.publish(Some(&one));
    assert_eq!(bench.check(&one).await, Ok(()));
    bench.publish(None);
    assert_eq!(bench.check(&two).await, invalid(JwtError::UnknownKey));
    assert_eq!(bench.check(&one).await, Ok(()));
    let short = Bench::new(Duration::ZERO, Duration::ZERO).await;
    short.publish(Some(&one));
    assert_eq!(
        short.check(&one).await,
        Err(TokenRefused::Unreachable),
        "kept for no time at all"
    );
}

#[tokio::test]
async fn a_verified_token_is_checked_for_audience_and_times_at_every_use() {
    let bench = Bench::new(MIN_FETCH_INTERVAL, Duration::from_secs(60)).await;
    let one = key("one");
    bench.publish(Some(&one));
    let token = bench.token(&one, "ann");
    let now = unix_now();
    assert!(!bench.is_cached(&token));
    assert_eq!(bench.show(&token, "gate").await, Ok(()));
    assert!(bench.is_cached(&token));
    // Neither its signature nor its form is checked again: the digest identifies the token.
    let of_the_same_digest = bench
        .issuer
        .check("no JWT", &digest(&token), &["gate".to_owned()])
        .await;
    assert_eq!(
        of_the_same_digest.unwrap().subject().as_deref(),
        Some("ann")
    );
    assert_eq!(
        bench.show(&token, "another").await,
        invalid(JwtError::Audience)
    );
    assert_eq!(
        bench.show_at(now - 30, &token, "gate").await,
        invalid(JwtError::NotYet)
    );
    assert_eq!(bench.show_at(now + 59, &token, "gate").await, Ok(()));
    assert!(bench.is_cached(&token));
    assert_eq!(
        bench.show_at(now + 62, &token, "gate").await,
        invalid(JwtError::Expired)
    );
    assert!(!bench.is_cached(&token), "an expired token is removed");
    let changed = format!("{token}A");
    assert!(
        bench.show(&changed, "gate").await.is_err() && !bench.is_cached(&changed),
        "another token, another digest"
    );
}

#[tokio::test]
async fn a_token_that_does_not_count_is_not_cached() {
    let (bench, one, two) = (
        Bench::new(MIN_FETCH_INTERVAL, Duration::from_secs(60)).await,
        key("one"),
        key("one"),
    );
    bench.publish(Some(&one));
    let good = bench.token(&one, "ann");
    let forged = bench.token(&two, "ann");
    assert_eq!(
        bench.show(&forged, "gate").await,
        invalid(JwtError::Signature)
    );
    assert_eq!(
        bench.show(&good, "another").await,
        invalid(JwtError::Audience)
    );
    assert!(!bench.is_cached(&forged));
    assert!(!bench.is_cached(&good));
}

#[tokio::test]
async fn a_verified_token_counts_no_longer_than_its_key() {
    let bench = Bench::new(Duration::ZERO, Duration::from_secs(60)).await;
    let [one, two] = ["one", "two"].map(key);
    bench.publish(Some(&one));
    let token = bench.token(&one, "ann");
    assert_eq!(bench.show(&token, "gate").await, Ok(()));
    // The issuer withdraws the key; the gate notices when a token signed with the new one is
    // presented.
    bench.publish(Some(&two));
    assert_eq!(bench.check(&two).await, Ok(()));
    assert_eq!(
        bench.show(&token, "gate").await,
        invalid(JwtError::UnknownKey)
    );
    assert!(!bench.is_cached(&token));
    // The same keys, when fetched again, require verification again.
    let token = bench.token(&two, "ann");
    assert_eq!(bench.show(&token, "gate").await, Ok(()));
    let before = bench.fetches();
    bench.issuer.cached.lock().keys = None;
    assert_eq!(
        bench
            .issuer
            .check("no JWT", &digest(&token), &["gate".to_owned()])
            .await
            .err(),
        Some(TokenRefused::Invalid(JwtError::NotJwt))
    );
    assert_eq!(bench.fetches(), before + 1);
    // It is not accepted either when there are no keys at all.
    assert_eq!(bench.show(&token, "gate").await, Ok(()));
    bench.publish(None);
    bench.issuer.cached.lock().keys = None;
    assert_eq!(
        bench.show(&token, "gate").await,
        Err(TokenRefused::Unreachable)
    );
}

#[tokio::test]
async fn verified_tokens_are_bounded_and_the_least_used_makes_room() {
    let bench = Bench::new(MIN_FETCH_INTERVAL, Duration::from_secs(60)).await;
    let one = key("one");
    bench.publish(Some(&one));
    let [ann, bob, eve] = ["ann", "bob", "eve"].map(|user| bench.token(&one, user));
    for token in [&ann, &bob, &ann, &eve] {
        assert_eq!(bench.show(token, "gate").await, Ok(()));
    }
    let evicted = bench.issuer.verified.evicted();
    assert_eq!((bench.issuer.verified.len(), evicted.get()), (2, 1));
    assert_eq!(
        [&ann, &bob, &eve].map(|token| bench.is_cached(token)),
        [true, false, true]
    );
    assert_eq!(
        bench.show(&bob, "gate").await,
        Ok(()),
        "it is verified again"
    );
    assert_eq!((bench.issuer.verified.len(), evicted.get()), (2, 2));
    bench.issuer.forget_verified();
    assert_eq!(bench.issuer.verified.len(), 0);
    assert!(!bench.is_cached(&bob));
}

#[test]
fn expired_tokens_make_room_first_and_a_limit_of_zero_keeps_none() {
    let one = key("one");
    let keys = Arc::new(Keys::parse(one.jwks().as_bytes()).unwrap());
    let token = one
        .sign(
            &Said {
                iss: "i",
                sub: "s",
                aud: "a",
                exp: 0,
                nbf: 0,
            },
            &[],
        )
        .unwrap();
    let signed = SignedClaims::verify(token.expose(), &keys).unwrap();
    let evicted = IntCounter::new("n", "n").unwrap();
    let verified = VerifiedTokens::new(2, evicted.clone());
    for (digest, expires_unix, now_unix) in [(1, 50, 0), (2, 20, 0), (3, 90, 30)] {
        verified.insert([digest; 32], &keys, signed.clone(), expires_unix, now_unix);
    }
    assert_eq!(
        [1, 2, 3].map(|digest| verified.contains(&[digest; 32])),
        [true, false, true]
    );
    assert_eq!(evicted.get(), 0);
    let none = VerifiedTokens::new(0, evicted);
    none.insert([1; 32], &keys, signed, 90, 0);
    assert!(!none.contains(&[1; 32]));
}
