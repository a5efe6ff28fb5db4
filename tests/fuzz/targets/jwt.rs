//! Reads any text as a token, as claims, as a key set, and as a pasted answer of a browser. Only
//! signed tokens are accepted, and another JSON reader reads the same values in accepted claims.

use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

use lychgate::oauth::assertion::{Claims, JwtError, Keys, SignedClaims, SigningKey, issuer_of};
use lychgate::oauth::grant::Answer;
use serde_json::Value;
use serde_json::value::RawValue;

const ISSUER: &str = "https://as.example";
const GATE: &str = "https://gate.example/mcp";

/// Generated for this target.
static KEY: LazyLock<SigningKey> = LazyLock::new(|| {
    let pem = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIEzBGNhl7MvRR7XLmwoqZXdbC/kha25JiHFFGFt7ybTr\n-----END PRIVATE KEY-----\n";
    SigningKey::from_pem(pem, Some("1".to_owned())).expect("a key")
});
static KEYS: LazyLock<Keys> =
    LazyLock::new(|| Keys::parse(KEY.jwks().as_bytes()).expect("its set"));

fn verify(token: &str, keys: &Keys, leeway: Duration) -> Result<Claims, JwtError> {
    let now = SystemTime::UNIX_EPOCH.elapsed().expect("a clock").as_secs();
    SignedClaims::verify(token, keys)?.check(now, ISSUER, &[GATE.to_owned()], leeway)
}

pub fn fuzz(input: &str) {
    let check = |token: &str| verify(token, &KEYS, Duration::from_secs(60));
    assert!(check(input).is_err(), "nobody signed this");
    let _ = issuer_of(input);
    if let Ok(keys) = Keys::parse(input.as_bytes()) {
        assert!(keys.len() <= 100);
        let _ = verify(input, &keys, Duration::ZERO);
    }
    if let Some(state) = Answer::from_pasted(input).state {
        assert!(input.len() >= state.expose().len());
    }

    let Ok(claims) = RawValue::from_string(input.to_owned()) else {
        return;
    };
    let token = KEY.sign(&claims, &[]).expect("signing");
    let token = token.expose();
    let Ok(said) = check(token) else { return };
    let theirs: Value = serde_json::from_str(input).expect("what is believed is JSON");
    assert_eq!(theirs["iss"], ISSUER);
    assert!(
        theirs["aud"] == GATE
            || theirs["aud"]
                .as_array()
                .is_some_and(|list| list.iter().any(|one| *one == GATE))
    );
    assert_eq!(
        theirs["exp"].as_f64().expect("a number").trunc(),
        said.expires_unix() as f64
    );
    assert_eq!(theirs["sub"].as_str(), said.subject().as_deref());
    // A change of any one character is detected.
    let at = input.len() % token.len();
    let mut other = token.to_owned().into_bytes();
    other[at] = if other[at] == b'A' { b'B' } else { b'A' };
    assert!(check(std::str::from_utf8(&other).expect("ASCII")).is_err());
}
