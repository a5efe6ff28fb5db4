use bytes::Bytes;

use super::*;
use crate::message::{Json, ReadLimits};

fn shown(text: &str, found: &[&str]) -> RedactedJson {
    let json = Json::parse(
        Bytes::copy_from_slice(text.as_bytes()),
        &ReadLimits::default(),
    )
    .unwrap();
    Redactor::new()
        .unwrap()
        .value(json.root(), "/params/arguments", found)
}

fn text(text: &str) -> String {
    Redactor::new()
        .unwrap()
        .text(text, MAX_TEXT_BYTES)
        .into_owned()
}

#[test]
fn secrets_are_seen_wherever_they_stand() {
    for (written, secret) in [
        ("curl -H 'Authorization: Bearer abc.DEF-123456'", "abc.DEF"),
        ("Authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
        ("git clone https://ada:hunter2@example.org/x.git", "hunter2"),
        ("mysql --password=hunter2 -u root", "hunter2"),
        ("tool --token hunter22", "hunter22"),
        ("export DB_PASSWORD='hunter2'; run", "hunter2"),
        ("{\"api_key\": \"hunter2\"}", "hunter2"),
        ("?access_token=hunter2&x=1", "hunter2"),
        ("Cookie: session=hunter2; other=1", "hunter2"),
        ("ghp_0123456789abcdefghij", "0123456789abc"),
        ("AKIAIOSFODNN7EXAMPLE is it", "IOSFODNN7"),
        ("eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl", "eyJzdWIi"),
        (
            "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1r\n-----END OPENSSH PRIVATE KEY----- rest",
            "b3BlbnNzaC1r",
        ),
        ("-----BEGIN PRIVATE KEY-----\nMIIEvQIBADAN", "MIIEvQ"),
        ("0123456789abcdef0123456789abcdef", "0123456789abcdef"),
        ("x aB3dE5fG7hI9jK1lM3nO5 y", "aB3dE5fG7hI9jK1lM3nO5"),
    ] {
        let shown = text(written);
        assert!(
            !shown.contains(secret) && shown.contains("[redacted"),
            "{written} -> {shown}"
        );
    }
}

#[test]
fn every_text_with_a_match_is_a_suspect() {
    let redactor = Redactor::new().unwrap();
    let patterns = Patterns::new().unwrap();
    let mut matches = 0;
    for text in [
        "é Authorization: Bearer abc.DEF-123456 é",
        "git clone https://ada:hunter2@example.org/x.git",
        "x --password='hünter2' --api-key ab -secret=c",
        "DB_PASSPHRASE_OLD\" : \"hunter2\", my_to\u{212a}en_1=x",
        "cookie\t=\u{a0}'session=1'; Cookie: x",
        "aghp_0123456789 xoxb-0123456789.a AKIA-_.012345",
        "eyJhbGciOiJI.eyJzdWIi.c2lnbmF0dXJl",
        "x -----BEGIN OPENSSH KEY-----\nb3Bl\n-----END OPENSSH KEY----- y",
        "ab aB3dE5fG7hI9jK1lM3nO5_+=- y",
    ] {
        let bounds: Vec<usize> = (0..=text.len())
            .filter(|at| text.is_char_boundary(*at))
            .collect();
        for (index, start) in bounds.iter().enumerate() {
            for end in bounds.iter().skip(index) {
                let part = text.get(*start..*end).unwrap();
                if patterns.secrets.is_match(part) || patterns.runs.is_match(part) {
                    assert!(redactor.suspects.is_match(part), "{part}");
                    matches += 1;
                }
            }
        }
    }
    assert!(matches > 1_500, "{matches}");
}

#[test]
fn ordinary_text_stays_readable() {
    for plain in [
        "rm -rf ./build && cargo test --workspace --no-fail-fast",
        "/home/ada/projects/a-rather-long-folder-name/src/main.rs",
        "The quick brown fox, 2026-11-21T23:50:00.000Z, v1.2.3",
        "SELECT name, key FROM things WHERE id = 12345678901234567890",
        "npm_install_package",
        "this_is_a_rather_long_function_name_in_snake_case",
        "http://example.org:8080/path?x=1",
        "00000000-0000-0000-0000-000000000000",
    ] {
        assert_eq!(text(plain), plain);
    }
}

#[test]
fn the_shape_stays_and_what_is_covered_goes() {
    let written = r#"{"command":"rm -rf /","list":[1,true,null,{"deep":["a","b"]}],"password":{"a":["b",2]},"n":1e2,"e":{},"f":[],"apiKey":42,"after":"shown"}"#;
    assert_eq!(
        shown(
            written,
            &["/params/arguments/command", "/params/arguments/list/3"]
        )
        .json,
        r#"{"command":"[redacted]","list":[1,true,null,{"deep":["[redacted]","[redacted]"]}],"password":{"a":["[redacted]","[redacted]"]},"n":1e2,"e":{},"f":[],"apiKey":"[redacted]","after":"shown"}"#
    );
    assert_eq!(shown(r#""x""#, &[]).json, r#""x""#);
    assert_eq!(
        shown(r#"{"ab":"x","a":"y"}"#, &["/params/arguments/a"]).json,
        r#"{"ab":"x","a":"[redacted]"}"#
    );
    let hidden = r#"{"a":["[redacted]"],"[redacted]":"[redacted]"}"#;
    let written = r#"{"a":["x"],"b/c~":"y"}"#;
    for all in [
        "/params/arguments",
        "/params",
        "",
        "/params/arguments/gone",
        "/params/arguments/a/7",
    ] {
        assert_eq!(shown(written, &[all]).json, hidden, "{all}");
    }
    assert_eq!(
        shown(
            written,
            &["/params/arguments/a/0", "/params/arguments/b~1c~0"]
        )
        .json
        .matches("[redacted]")
        .count(),
        3
    );
    assert_eq!(
        shown(written, &["/params/argumentsx", "/paramsx", "/result"]).json,
        written
    );
    assert_eq!(
        shown(written, &["/params/arguments/a/0"; 33]).json,
        hidden,
        "too many to follow"
    );
}

#[test]
fn equal_texts_have_equal_marks_and_short_ones_none() {
    assert_eq!(mask_text("exactly sixteen!"), mask_text("exactly sixteen!"));
    assert_ne!(mask_text("exactly sixteen!"), mask_text("exactly sixteen?"));
    assert_eq!(
        mask_text("1234"),
        mask_text("4321"),
        "a short text could be found again by trying"
    );
}

#[test]
fn what_is_shown_is_bounded() {
    let long = format!(r#"{{"a":"{}","b":{}}}"#, "é".repeat(5000), "1".repeat(5000));
    let RedactedJson { json, left_out } = shown(&long, &[]);
    assert!(
        json.len() < 700 && json.contains("… (10000 bytes)") && json.contains("… (5000 digits)"),
        "{json}"
    );
    assert_eq!(left_out, 0);
    let many = format!("[{}]", vec![r#"{"k":["0123456789"]}"#; 3000].join(","));
    let RedactedJson { json, left_out } = shown(&many, &[]);
    assert!(
        json.len() < MAX_ARGUMENTS_BYTES + 100 && left_out > 7000,
        "{} {left_out}",
        json.len()
    );
    let read: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(read.as_array().unwrap().len() > 300);
}

#[test]
fn a_cut_never_leaves_part_of_a_secret() {
    let secret = "q9Zx7Kw2Lm4Np6Rt8Vb0Yc3Df5Gh1Jk";
    let redactor = Redactor::new().unwrap();
    for before in 0..1400 {
        let written = format!(
            "{} {secret} {}",
            "x y ".repeat(before / 4) + &"z".repeat(before % 4),
            "w ".repeat(900)
        );
        let shown = redactor.text(&written, MAX_TEXT_BYTES);
        assert!(!shown.contains("q9Zx"), "{before}: {shown}");
        assert!(shown.len() < MAX_TEXT_BYTES + 40);
    }
}

#[test]
fn hostile_text_costs_no_more_than_its_length() {
    let redactor = Redactor::new().unwrap();
    for unit in [
        "-----BEGIN A",
        "a:b",
        "token",
        "://a:",
        "eyJaaaaaaaa.",
        "--pass ",
        "Bearer ",
    ] {
        let long = unit.repeat(2_000_000 / unit.len());
        let started = std::time::Instant::now();
        assert!(redactor.text(&long, MAX_TEXT_BYTES).len() < 2 * MAX_TEXT_BYTES);
        assert!(started.elapsed().as_millis() < 200, "{unit}");
    }
}

#[test]
fn the_prefilter_passes_over_nothing_that_a_pattern_finds() {
    let redactor = Redactor::new().unwrap();
    // Pieces of every pattern, long runs, and separators, in every order.
    let pieces = [
        "-----BEGIN KEY-----",
        "bearer ",
        "Basic\t",
        "abcdefgh",
        "://",
        "u:p@h",
        "passw",
        "d=",
        "token",
        "SECRET: ",
        "api-key",
        "=",
        "--auth ",
        "cookie",
        ":",
        "ghp_",
        "sk-",
        "SG.",
        "AKIA",
        "01234567",
        "eyJ",
        ".",
        "aB3",
        "x y",
        "ſecret",
        "\u{212a}ey",
        "aB3dE5fG7hI9jK1lM3nO5",
        "0123456789abcdef0123456789abcdef",
        "\n",
    ];
    let mut cut = 0;
    for first in pieces {
        for second in pieces {
            for third in pieces {
                let text = [first, second, third].concat();
                if text.bytes().all(|b| matches!(b, b'a'..=b'z' | b'_' | b'/')) {
                    // A lower-case word is shown, whatever its prefix.
                    continue;
                }
                let slow = redactor.clean(&text);
                assert_eq!(redactor.text(&text, MAX_TEXT_BYTES), slow, "{text}");
                cut += usize::from(slow != text);
            }
        }
    }
    assert!(cut > 1000, "{cut}");
    // Random short texts made of the characters of the shortest secrets.
    let letters = [
        "g", "h", "p", "_", "s", "k", "S", "G", ".", "A", "I", "z", "7",
    ];
    let mut state = 1_u64;
    for _ in 0..20_000 {
        let mut text = String::new();
        for _ in 0..TOO_SHORT_BYTES {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            text.push_str(letters[usize::try_from(state >> 40).unwrap() % letters.len()]);
        }
        assert_eq!(redactor.clean(&text), text);
    }
}
