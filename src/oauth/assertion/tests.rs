use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jsonwebtoken::Algorithm;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair,
    EcdsaSigningAlgorithm, Ed25519KeyPair,
};
use serde_json::{Value, json};

use super::*;

/// Created for these tests: `openssl genpkey -algorithm RSA`.
const RSA: &str = include_str!("rsa.test.pem");
const ISSUER: &str = "https://as.example";
const GATE: &str = "https://gate.example/mcp";
const NOW: u64 = 1_800_000_000;

fn pem(der: &[u8]) -> String {
    format!(
        "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
        STANDARD.encode(der)
    )
}

fn ec(curve: &'static EcdsaSigningAlgorithm) -> String {
    let pair = EcdsaKeyPair::generate_pkcs8(curve, &SystemRandom::new());
    pem(pair.unwrap().as_ref())
}

fn p256() -> String {
    ec(&ECDSA_P256_SHA256_FIXED_SIGNING)
}

fn p384() -> String {
    ec(&ECDSA_P384_SHA384_FIXED_SIGNING)
}

fn ed() -> String {
    let pair = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new());
    pem(pair.unwrap().as_ref())
}

fn key(pem: &str, id: &str) -> SigningKey {
    SigningKey::from_pem(pem, Some(id.into())).unwrap()
}

fn keys(key: &SigningKey) -> Keys {
    Keys::parse(key.jwks().as_bytes()).unwrap()
}

/// Returns the public part of a key.
fn jwk(key: &SigningKey) -> Value {
    let set: Value = serde_json::from_str(&key.jwks()).unwrap();
    set["keys"][0].clone()
}

/// Parses a set of these keys.
fn parse(keys: Value) -> Result<Keys, KeysError> {
    Keys::parse(json!({ "keys": keys }).to_string().as_bytes())
}

fn good() -> Value {
    json!({ "iss": ISSUER, "aud": GATE, "exp": NOW + 60, "iat": NOW, "sub": "ann" })
}

fn verify(token: &str, keys: &Keys, issuer: &str, leeway: Duration) -> Result<Claims, JwtError> {
    SignedClaims::verify(token, keys)?.check(NOW, issuer, &[GATE.to_owned()], leeway)
}

fn check(token: &str, keys: &Keys) -> Result<Claims, JwtError> {
    verify(token, keys, ISSUER, Duration::from_secs(5))
}

/// Signs a header and claims exactly as written, which no library would do.
fn raw(key: &SigningKey, algorithm: Algorithm, header: &str, claims: &str) -> String {
    let signed = format!(
        "{}.{}",
        URL_SAFE_NO_PAD.encode(header),
        URL_SAFE_NO_PAD.encode(claims)
    );
    let signature =
        jsonwebtoken::crypto::sign(signed.as_bytes(), key.encoding(), algorithm).unwrap();
    format!("{signed}.{signature}")
}

#[test]
fn what_one_key_signs_it_verifies_and_no_other_does() {
    let all = [
        key(RSA, "a"),
        key(&p256(), "a"),
        key(&p384(), "a"),
        key(&ed(), "a"),
        key(&p256(), "a"),
    ];
    for (at, signer) in all.iter().enumerate() {
        let token = signer.sign(&good(), &[]).unwrap();
        for (other, verifier) in all.iter().enumerate() {
            let said = check(token.expose(), &keys(verifier));
            assert_eq!(said.is_ok(), at == other, "{at} {other}");
            if at != other {
                assert!(matches!(
                    said.unwrap_err(),
                    JwtError::UnknownKey | JwtError::Signature
                ));
            }
        }
    }
}

#[test]
fn an_rsa_key_signs_with_what_the_server_takes() {
    let key = key(RSA, "r");
    for (taken, header) in [
        (vec![], "RS256"),
        (vec!["ES256", "RS512", "PS256"], "PS256"),
        (vec!["PS384"], "PS384"),
        (vec!["RS384"], "RS384"),
        (vec!["PS512"], "PS512"),
        (vec!["RS512"], "RS512"),
    ] {
        let taken: Vec<String> = taken.into_iter().map(str::to_owned).collect();
        let token = key.sign(&good(), &taken).unwrap();
        let head = URL_SAFE_NO_PAD
            .decode(token.expose().split('.').next().unwrap())
            .unwrap();
        let head: Value = serde_json::from_slice(&head).unwrap();
        assert_eq!(head, json!({ "typ": "JWT", "alg": header, "kid": "r" }));
        let claims = check(token.expose(), &keys(&key)).unwrap();
        assert_eq!(claims.subject().unwrap(), "ann");
    }
    for taken in [vec!["ES256"], vec!["HS256", "none"]] {
        let taken: Vec<String> = taken.into_iter().map(str::to_owned).collect();
        let error = key.sign(&good(), &taken).unwrap_err();
        assert_eq!(error, SignError::NoCommonAlgorithm);
    }
}

#[test]
fn keys_that_cannot_sign_are_refused_in_words_that_do_not_show_them() {
    let sec1 =
        "-----BEGIN EC PRIVATE KEY-----\nc2VjcmV0c2VjcmV0c2VjcmV0\n-----END EC PRIVATE KEY-----\n";
    let locked =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nc2VjcmV0\n-----END ENCRYPTED PRIVATE KEY-----\n";
    for (pem, error) in [
        ("", SignError::NotPem),
        ("hunter2", SignError::NotPem),
        (locked, SignError::NotPem),
        (sec1, SignError::Sec1),
        (&pem(b"hunter2"), SignError::Kind),
    ] {
        assert_eq!(SigningKey::from_pem(pem, None).unwrap_err(), error);
        assert!(!error.to_string().contains("c2Vj"));
    }
    let shown = format!("{:?}", key(RSA, "r"));
    assert!(
        RSA.lines().nth(1).is_some_and(|line| !shown.contains(line)),
        "{shown}"
    );
    assert_eq!(
        shown,
        r#"SigningKey { algorithms: [RS256, PS256, RS384, PS384, RS512, PS512], id: Some("r"), .. }"#
    );
}

#[test]
fn an_example_of_the_standard_verifies() {
    // RFC 7515, appendix A.3: valid except that it has no audience.
    let keys = Keys::parse(
        br#"{"keys":[{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
            "y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]}"#,
    )
    .unwrap();
    let token = "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";
    let by_joe = |token: &str| verify(token, &keys, "joe", Duration::ZERO);
    assert_eq!(by_joe(token).unwrap_err(), JwtError::Claim("aud"));
    assert_eq!(
        by_joe(&token.replace(".Dt", ".Dx")).unwrap_err(),
        JwtError::UnknownKey
    );
    assert_eq!(issuer_of(token).unwrap(), "joe");
}

#[test]
fn no_algorithm_is_taken_from_the_token_alone() {
    let rsa = key(RSA, "k");
    let ec = key(&p256(), "k");
    let claims = good().to_string();
    let encode = |part: &str| URL_SAFE_NO_PAD.encode(part);
    let unsigned = |header: &str| format!("{}.{}.", encode(header), encode(&claims));
    for header in [
        r#"{"alg":"none"}"#,
        r#"{"alg":"None","kid":"k"}"#,
        r#"{"alg":""}"#,
        r#"{}"#,
        r#"{"alg":["RS256"]}"#,
        r#"{"alg":null}"#,
        r#"{"alg":"HS256","kid":"k"}"#,
        r#"{"alg":"HS512","kid":"k"}"#,
        r#"{"alg":"ES512","kid":"k"}"#,
    ] {
        let error = check(&unsigned(header), &keys(&rsa)).unwrap_err();
        assert_eq!(error, JwtError::Algorithm, "{header}");
    }
    // A public key must not be used as a shared secret: neither its JWK nor its modulus.
    let set = Keys::parse(br#"{"keys":[{"kty":"oct","kid":"k","alg":"HS256","k":"c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0"}]}"#);
    assert!(set.unwrap().is_empty());
    // A token signed with one key that names the algorithm of another.
    let token = raw(
        &ec,
        Algorithm::ES256,
        r#"{"alg":"RS256","kid":"k"}"#,
        &claims,
    );
    assert_eq!(check(&token, &keys(&rsa)).unwrap_err(), JwtError::Signature);
    assert_eq!(check(&token, &keys(&ec)).unwrap_err(), JwtError::UnknownKey);
    // A key that names its algorithm is used for no other.
    let only = rsa
        .jwks()
        .replace(r#""use":"sig""#, r#""use":"sig","alg":"PS256""#);
    let only = Keys::parse(only.as_bytes()).unwrap();
    for (algorithm, expected) in [("RS256", Some(JwtError::UnknownKey)), ("PS256", None)] {
        let token = rsa.sign(&good(), &[algorithm.into()]).unwrap();
        assert_eq!(check(token.expose(), &only).err(), expected);
    }
}

#[test]
fn keys_in_the_header_are_not_listened_to() {
    let ours = key(&p256(), "k");
    let theirs = key(&p256(), "k");
    let header = json!({ "alg": "ES256", "kid": "k", "jwk": jwk(&theirs), "jku": "https://evil.example/jwks" });
    let token = raw(
        &theirs,
        Algorithm::ES256,
        &header.to_string(),
        &good().to_string(),
    );
    assert_eq!(
        check(&token, &keys(&ours)).unwrap_err(),
        JwtError::Signature
    );
}

#[test]
fn headers_are_read_strictly() {
    let key = key(&p256(), "k");
    let keys = keys(&key);
    let claims = good().to_string();
    for header in [
        r#"{"alg":"ES256","kid":"k"}"#,
        r#"{"alg":"ES256"}"#,
        r#"{"alg":"ES256","typ":"at+jwt"}"#,
        r#"{"alg":"ES256","typ":"AT+JWT"}"#,
        r#"{"alg":"ES256","typ":"application/at+jwt"}"#,
        r#"{"alg":"ES256","typ":"jwt"}"#,
    ] {
        let token = raw(&key, Algorithm::ES256, header, &claims);
        assert_eq!(check(&token, &keys).err(), None, "{header}");
    }
    use JwtError::{Critical, Kind, NotJwt, UnknownKey};
    for (header, expected) in [
        (r#"{"alg":"ES256","typ":"oauth-id-jag+jwt"}"#, Kind),
        (r#"{"alg":"ES256","typ":"dpop+jwt"}"#, Kind),
        (r#"{"alg":"ES256","typ":"logout+jwt"}"#, Kind),
        (r#"{"alg":"ES256","typ":7}"#, Kind),
        (r#"{"alg":"ES256","typ":null}"#, Kind),
        (r#"{"alg":"ES256","crit":["exp"],"exp":1}"#, Critical),
        (r#"{"alg":"ES256","crit":[]}"#, Critical),
        (r#"{"alg":"ES256","alg":"ES256"}"#, NotJwt),
        (r#"{"alg":"ES256","\u0061lg":"none"}"#, NotJwt),
        (r#"{"alg":"ES256","kid":7}"#, NotJwt),
        (r#"{"alg":"ES256","kid":"other"}"#, UnknownKey),
        (r#"["ES256"]"#, NotJwt),
        ("", NotJwt),
    ] {
        let token = raw(&key, Algorithm::ES256, header, &claims);
        assert_eq!(check(&token, &keys).err(), Some(expected), "{header}");
    }
}

#[test]
fn claims_are_read_strictly() {
    let key = key(&p256(), "k");
    let keys = keys(&key);
    let sign = |claims: &str| {
        raw(
            &key,
            Algorithm::ES256,
            r#"{"alg":"ES256","kid":"k"}"#,
            claims,
        )
    };
    let with = |name: &str, value: Value| {
        let mut claims = good();
        claims[name] = value;
        claims.to_string()
    };
    let without = |name: &str| {
        let mut claims = good();
        claims.as_object_mut().unwrap().remove(name);
        claims.to_string()
    };
    let before = |members: &str| {
        good()
            .to_string()
            .replacen('{', &format!("{{{members},"), 1)
    };
    let checked = |claims: &str| check(&sign(claims), &keys).err();
    for claims in [
        good().to_string(),
        with("aud", json!(["https://other.example", GATE])),
        with("exp", json!(NOW as f64 + 0.5)),
        with("exp", json!(NOW - 4)),
        with("nbf", json!(NOW + 5)),
        without("iat"),
        before(r#""other":[-1e308]"#),
    ] {
        assert_eq!(checked(&claims), None, "{claims}");
    }
    use JwtError::{Audience, Claim, Expired, Issuer, NotJwt, NotYet, TooLong};
    for (claims, expected) in [
        (with("aud", json!("https://gate.example/mcp/")), Audience),
        (with("aud", json!("HTTPS://gate.example/mcp")), Audience),
        (with("aud", json!(["https://upstream.example"])), Audience),
        (with("aud", json!([])), Claim("aud")),
        (with("aud", json!([[GATE]])), Claim("aud")),
        (with("aud", json!({ GATE: GATE })), Claim("aud")),
        (without("aud"), Claim("aud")),
        (with("iss", json!("https://as.example/")), Issuer),
        (with("iss", json!([ISSUER])), Claim("iss")),
        (without("iss"), Claim("iss")),
        (without("exp"), Claim("exp")),
        (with("exp", json!((NOW + 60).to_string())), Claim("exp")),
        (with("exp", json!(null)), Claim("exp")),
        (with("exp", json!(-1)), Claim("exp")),
        (with("exp", json!(1e300)), Claim("exp")),
        (with("exp", json!(NOW - 5)), Expired),
        (with("exp", json!(0)), Expired),
        (with("nbf", json!(NOW + 6)), NotYet),
        (with("nbf", json!("soon")), Claim("nbf")),
        (with("iat", json!(NOW + 6)), NotYet),
        (with("iat", json!(true)), Claim("iat")),
        (before(r#""sub":"root""#), NotJwt),
        (before(r#""\u0073ub":"root""#), NotJwt),
        (before(r#""other":[1e999]"#), NotJwt),
        (format!("{}1{}", "[".repeat(40), "]".repeat(40)), NotJwt),
        (with("big", json!("x".repeat(20_000))), TooLong),
    ] {
        let shown = claims.get(..200).unwrap_or(&claims);
        assert_eq!(checked(&claims), Some(expected), "{shown}");
    }
    let old = sign(&with("exp", json!(NOW - 1000)));
    let patient = verify(&old, &keys, ISSUER, Duration::MAX);
    assert_eq!(patient.unwrap_err(), Expired);
}

#[test]
fn what_is_no_jwt_is_refused() {
    let key = key(&p256(), "k");
    let token = key.sign(&good(), &[]).unwrap();
    let token = token.expose();
    let (signed, signature) = token.rsplit_once('.').unwrap();
    use JwtError::{NotJwt, Signature, TooLong};
    for (bad, expected) in [
        (String::new(), NotJwt),
        (".".into(), NotJwt),
        ("..".into(), NotJwt),
        ("...".into(), NotJwt),
        (signed.into(), NotJwt),
        (format!("{token}.{signature}"), NotJwt),
        (format!("{token}.a.b"), NotJwt),
        (format!("{signed}==.{signature}"), NotJwt),
        (format!(" {token}"), NotJwt),
        (token.replace('.', " "), NotJwt),
        (format!("{token}="), Signature),
        (format!("{token}\n"), Signature),
        (format!("{signed}."), Signature),
        ("e".repeat(20_000), TooLong),
    ] {
        assert_eq!(check(&bad, &keys(&key)).unwrap_err(), expected, "{bad}");
    }
}

#[test]
fn claims_are_found_by_name() {
    let key = key(&p256(), "k");
    let mut claims = good();
    for (name, value) in [
        ("azp", json!("cli")),
        ("scp", json!(["a", "b c", 7])),
        ("jti", json!("t1")),
        ("groups", json!(["dev", 1, "ops"])),
        ("realm_access", json!({ "roles": ["admin"], "a/b": "x" })),
        ("https://id.example/team", json!("blue\u{e9}\"")),
    ] {
        claims[name] = value;
    }
    let claims = check(key.sign(&claims, &[]).unwrap().expose(), &keys(&key)).unwrap();
    assert_eq!(claims.client().unwrap(), "cli");
    assert_eq!(claims.scopes().parameter().unwrap(), "a b c");
    assert_eq!(claims.id().unwrap(), "t1");
    assert_eq!(claims.expires_unix(), NOW + 60);
    assert_eq!(claims.texts("groups"), ["dev", "ops"]);
    assert_eq!(claims.texts("sub"), ["ann"]);
    assert_eq!(claims.texts("/realm_access/roles"), ["admin"]);
    assert_eq!(claims.text("/realm_access/a~1b").unwrap(), "x");
    assert_eq!(
        claims.text("https://id.example/team").unwrap(),
        "blue\u{e9}\""
    );
    assert_eq!(claims.text("groups"), None);
    assert_eq!(claims.texts("/realm_access/none/x"), [""; 0]);
    let shown = format!("{claims:?}");
    assert!(!shown.contains("ann"), "{shown}");
}

#[test]
fn key_sets_are_bounded_and_what_is_unknown_is_left_out() {
    let good = &jwk(&key(&p256(), "good"));
    let rsa = &jwk(&key(RSA, "rsa"));
    let edit = |key: &Value, name: &str, value: Value| {
        let mut key = key.clone();
        key[name] = value;
        key
    };
    let weak = edit(rsa, "n", json!(URL_SAFE_NO_PAD.encode([0xff; 128])));
    let huge = edit(rsa, "n", json!(URL_SAFE_NO_PAD.encode([0xff; 2048])));
    for left_out in [
        weak,
        huge,
        edit(rsa, "e", json!("AAAA")),
        edit(rsa, "e", json!(URL_SAFE_NO_PAD.encode([1; 9]))),
        edit(rsa, "use", json!("enc")),
        edit(rsa, "alg", json!("RSA-OAEP")),
        edit(rsa, "alg", json!("ES256")),
        edit(rsa, "alg", json!("HS256")),
        edit(rsa, "alg", json!(7)),
        edit(rsa, "key_ops", json!(["encrypt"])),
        edit(good, "kid", json!("k".repeat(2000))),
        edit(good, "kid", json!(7)),
        edit(good, "x", json!("AAAA")),
        edit(good, "crv", json!("P-521")),
        edit(good, "crv", json!("secp256k1")),
        json!({ "kty": "OKP", "crv": "X25519", "x": URL_SAFE_NO_PAD.encode([1; 32]) }),
        json!({ "kty": "AKP", "alg": "ML-DSA-44", "pub": "AAAA" }),
        json!({}),
        json!("key"),
        json!(null),
    ] {
        let set = parse(json!([left_out, good])).unwrap();
        assert_eq!(set.len(), 1, "{left_out}");
    }
    // A key with the sign byte of DER is not left out.
    let modulus = URL_SAFE_NO_PAD.decode(rsa["n"].as_str().unwrap()).unwrap();
    let signed = edit(
        rsa,
        "n",
        json!(URL_SAFE_NO_PAD.encode([&[0], &*modulus].concat())),
    );
    let set = Keys::parse(
        json!({ "keys": [signed], "more": 1 })
            .to_string()
            .as_bytes(),
    )
    .unwrap();
    let token = key(RSA, "rsa").sign(&self::good(), &[]).unwrap();
    assert!(check(token.expose(), &set).is_ok());

    assert_eq!(
        parse(json!(vec![good; 101])).unwrap_err(),
        KeysError::TooMany
    );
    for bad in [
        "",
        "[]",
        "{}",
        r#"{"keys":{}}"#,
        r#"{"keys":[],"keys":[]}"#,
        "<html>",
        &" ".repeat(600_000),
    ] {
        assert_eq!(Keys::parse(bad.as_bytes()).unwrap_err(), KeysError::NotJwks);
    }
    assert!(Keys::parse(br#"{"keys":[]}"#).unwrap().is_empty());
}

#[test]
fn a_token_without_a_key_id_is_tried_with_a_bounded_number_of_keys() {
    let signer = key(&p256(), "k");
    let token = raw(
        &signer,
        Algorithm::ES256,
        r#"{"alg":"ES256"}"#,
        &good().to_string(),
    );
    let mut set: Vec<Value> = (0..9).map(|_| jwk(&key(&p256(), "other"))).collect();
    set.push(jwk(&signer));

    assert!(check(&token, &parse(json!(set)).unwrap()).is_ok());
    set.insert(0, jwk(&key(&p256(), "other")));
    let error = check(&token, &parse(json!(set)).unwrap()).unwrap_err();
    assert_eq!(error, JwtError::UnknownKey);
}
