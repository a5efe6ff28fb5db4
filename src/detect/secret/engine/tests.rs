use super::*;
use crate::detect::secret::check::Check;

const BYTES: usize = 100_000;

/// Returns the rules that match: 0 is a shape, 1 a name, 2 unread content.
fn matched_rules(text: &str) -> Vec<(usize, &'static str)> {
    let shape = |name: &str, source: &str, near: &[&str]| {
        Arc::new(
            Shape::new(
                name,
                source,
                Check::default(),
                near.iter().map(|word| (*word).to_owned()).collect(),
            )
            .unwrap(),
        )
    };
    let shapes = vec![
        shape("telephone", "KEY[0-9A-F]{32}_[A-Za-z0-9]{22}", &[]),
        shape("service", "svc-[A-Za-z0-9]{20}", &[]),
        shape("alone", "SK[0-9a-f]{32}", &[]),
        shape("bot", r"\d{8,10}:A[A-Za-z][\w-]{33}", &[]),
        shape("near", "[0-9a-f]{32}", &["key", "token"]),
    ];
    let specs = [
        Spec {
            shapes,
            ..Spec::default()
        },
        Spec {
            named: true,
            ..Spec::default()
        },
        Spec {
            unread: true,
            ..Spec::default()
        },
    ];
    let rules: Vec<(usize, &Spec)> = specs.iter().enumerate().collect();
    let secrets = Secrets::new(&rules).unwrap();
    let mut found = Vec::new();
    let place = Place::default();
    let mut search = Search::new(&secrets, &place, text.len(), &mut found);
    search.scan_reading(text, &Facts::new(text), "plain", &Some);
    found
        .iter()
        .map(|found| (found.rule, found.reading))
        .collect()
}

/// Returns bytes that look random.
fn noise(count: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state.to_be_bytes()[0]
    };
    (0..count).map(|_| next()).collect()
}

#[test]
fn large_ordinary_texts_are_read_to_their_end() {
    use base64::Engine;
    let image = base64::engine::general_purpose::STANDARD
        .encode([b"\x89PNG\r\n\x1a\n".to_vec(), noise(BYTES * 3 / 4)].concat());
    let lines: Vec<String> = image
        .as_bytes()
        .chunks(76)
        .map(|line| String::from_utf8(line.to_vec()).unwrap())
        .collect();
    let row = "0.4183,17.25,-3,98.6,1024,7\n";
    let code = "function k(t,e){var n=e.key||t.token;return n&&n.length>3?this.getKey(n,2):o.session(e,\"auth\")}";
    let prose = "The key to the session is that they pass the token on, and no secret of the author is lost. ";
    for text in [prose, "long key ", "key ", "token: ", row, code] {
        assert_eq!(
            matched_rules(&text.repeat(BYTES / text.len())),
            [],
            "{text}"
        );
    }
    assert_eq!(matched_rules(&format!("data:image/png;base64,{image}")), []);
    assert_eq!(matched_rules(&lines.join("\n")), []);
}

#[test]
fn what_is_known_by_its_name_is_known_backwards() {
    for text in [
        "DB_PASSWORD=q8Zt4vNp2rKx7w",
        "client_secret = TfU9e8bi1y1FRVSrVdj5Bziy6C9H",
    ] {
        let backwards = crate::detect::secret::mirror::reverse(text);
        assert!(
            matched_rules(&backwards).contains(&(1, "reversed")),
            "{backwards}"
        );
        assert!(
            !matched_rules(text)
                .iter()
                .any(|(_, reading)| *reading == "reversed"),
            "{text}"
        );
    }
}

#[test]
fn a_shape_without_literals_stands_behind_any_sign() {
    let key = "SK9f1c5e0a7b3d2468ace013579bdf24c6";
    let bot = "7381920465:AAHq8Zt4vNp2rKx7wDf9yGj3hLm5kQs6uWb";
    for text in [key.to_owned(), format!("x:{bot}"), format!("id=x:{bot}")] {
        assert_eq!(matched_rules(&text), [(0, "plain")], "{text}");
    }
    assert_eq!(matched_rules(&key.replace("SK", "AC")), []);
}
