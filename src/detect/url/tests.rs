//! Every disguise of a host is judged like its plain form.

use super::judge::UrlFacts;
use super::{HostList, HostPattern, Hosts};
use crate::detect::{AccessScope, Details, OutboundDetails, Place, ReadAs};
use crate::reach::Reach;

fn pick(seed: &mut u64, below: usize) -> usize {
    *seed = seed
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) as usize % below
}

fn read_as(read_as: ReadAs) -> Details<'static> {
    Details::Outbound(OutboundDetails {
        read_as,
        ..OutboundDetails::default()
    })
}

fn facts(text: &str) -> UrlFacts {
    UrlFacts::argument(
        text,
        &Place {
            details: read_as(ReadAs::Url),
            ..Place::default()
        },
    )
}

fn is_inside(text: &str) -> bool {
    !facts(text).destinations.is_empty()
}

/// Spellings of a URL with which some client connects to the same host.
const DISGUISES: [fn([u8; 4]) -> String; 24] = [
    |[a, b, c, d]| format!("http://{a}.{b}.{c}.{d}/"),
    |address| format!("http://{}/", u32::from_be_bytes(address)),
    |address| format!("http://0x{:08x}/", u32::from_be_bytes(address)),
    |address| format!("http://0{:o}/", u32::from_be_bytes(address)),
    |[a, b, c, d]| format!("http://{a}.{}/", u32::from_be_bytes([0, b, c, d])),
    |[a, b, c, d]| format!("http://{a}.{b}.{}/", u16::from_be_bytes([c, d])),
    |[a, b, c, d]| format!("http://0x{a:x}.0x{b:x}.0x{c:x}.0x{d:x}/"),
    |[a, b, c, d]| format!("http://0{a:o}.0{b:o}.0{c:o}.0{d:o}:8080/"),
    |[a, b, c, d]| format!("http://0x{a:x}.{b}.0{c:o}.{d}/"),
    |[a, b, c, d]| format!("http://{}.{b}.{c}.{d}/", u32::from(a) + 256),
    |[a, b, c, d]| format!("http://[::ffff:{a}.{b}.{c}.{d}]/"),
    |[a, b, c, d]| format!("http://[::ffff:{a:02x}{b:02x}:{c:02x}{d:02x}]/"),
    |[a, b, c, d]| format!("http://[64:ff9b::{a:02x}{b:02x}:{c:02x}{d:02x}]/"),
    |[a, b, c, d]| format!("http://[2002:{a:02x}{b:02x}:{c:02x}{d:02x}::1]/"),
    |[a, b, c, d]| format!("http://{a}%2e{b}%2E{c}.{d}/"),
    |[a, b, c, d]| format!("http://{a}。{b}．{c}｡{d}/"),
    |[a, b, c, d]| format!("http://user:pass@{a}.{b}.{c}.{d}:80/"),
    |[a, b, c, d]| format!("http://example.com\\@{a}.{b}.{c}.{d}/"),
    |[a, b, c, d]| format!("http://example.com#@{a}.{b}.{c}.{d}/"),
    |[a, b, c, d]| format!("http:\\\\{a}.{b}.{c}.{d}\\"),
    |[a, b, c, d]| format!("ht\ntp://{a}.{b}.\t{c}.{d}/"),
    |[a, b, c, d]| format!("//{a}.{b}.{c}.{d}/x"),
    |[a, b, c, d]| format!("http://{a}.{b}.{c}.{d}.nip.io/"),
    |[a, b, c, d]| format!("https://example.com/?url=http%3A%2F%2F{a}.{b}.{c}.{d}%2F"),
];

#[test]
fn every_spelling_of_an_inside_address_is_inside() {
    let mut seed = 3;
    for _ in 0..4000 {
        let random = |seed: &mut u64| pick(seed, 256) as u8;
        let address = match pick(&mut seed, 5) {
            0 => [
                127,
                random(&mut seed),
                random(&mut seed),
                1 + pick(&mut seed, 254) as u8,
            ],
            1 => [10, random(&mut seed), random(&mut seed), random(&mut seed)],
            2 => [192, 168, random(&mut seed), random(&mut seed)],
            3 => [169, 254, random(&mut seed), random(&mut seed)],
            _ => [
                172,
                16 + pick(&mut seed, 16) as u8,
                random(&mut seed),
                random(&mut seed),
            ],
        };
        let text = DISGUISES[pick(&mut seed, DISGUISES.len())](address);
        assert!(is_inside(&text), "{address:?} as {text}");
    }
}

#[test]
fn no_spelling_of_a_public_address_is_inside() {
    for address in [
        [8, 8, 8, 8],
        [93, 184, 216, 34],
        [1, 1, 1, 1],
        [151, 101, 1, 140],
    ] {
        for disguise in DISGUISES {
            let text = disguise(address);
            // Read without the leading zeros, or as decimal, it may be another address.
            if !text.contains("://0") {
                assert!(!is_inside(&text), "{text}: {:?}", facts(&text));
            }
        }
    }
}

#[test]
fn relative_paths_to_documents_lead_nowhere() {
    for (text, inside) in [
        ("localhost/setup.md", false),
        ("docs.local/readme.md", false),
        ("10.0/upgrade-notes.md", false),
        ("home/private.md#setup", false),
        ("localhost/admin", true),
        ("localhost:8080/setup.md", true),
        ("127.0.0.1/setup.md", true),
        ("metadata.google.internal/x.md", true),
        ("http://localhost/setup.md", true),
    ] {
        assert_eq!(is_inside(text), inside, "{text}");
    }
}

#[test]
fn ordinary_urls_lead_outside() {
    for text in [
        "https://example.com/",
        "https://user@github.com/a/b.git",
        "git@github.com:a/b.git",
        "ssh://git@github.com/a/b.git",
        "https://medium.com/@someone/1-2-3",
        "https://registry.npmjs.org/@types/node",
        "https://example.com/a?b=c@d.e#f@g",
        "https://münchen.de/straße",
        "https://日本語.jp/",
        "example.com",
        "www.example.com:8443/x",
        "https://api.example.com:8443/v1?since=2026-01-01T00:00:00Z",
        "https://maps.example.com/@52.5,13.4,12z",
        "https://example.com/127.0.0.1/x",
        "s3://bucket/key",
        "gs://data/x",
        "https://web.example.org/save/https://example.com/",
        "https://login.example.com/?redirect_uri=http://localhost:3000/cb",
        "/api/items/1",
        "?page=2",
        "#top",
        "../x",
        "main",
        "owner/repo",
        "12345",
        "https://example.com/%20x%2F",
        "mailto:a@b.example",
        "about:blank",
        "data:image/png;base64,AAAA",
        "https://1.2.3.example/",
        "https://[2606:4700::1111]/",
        "urn:isbn:0451450523",
        "{{base}}/x",
        "https://example.com/a b c d e f g h i j k l m n o p q r s t u v w x y z",
        "tel:+49123",
        "v1.2.3",
        "https://x.internal.example.com/",
        "https://nip.io.example.com/",
        "${BASE_URL}/api",
    ] {
        assert!(!is_inside(text), "{text}: {:?}", facts(text));
    }
}

#[test]
fn inside_names_and_tricks_are_inside() {
    for text in [
        "http://localhost",
        "HTTP://LOCALHOST",
        "http://localhost.",
        "http://a.localhost/",
        "http://LOCALHOST:80@example.com/",
        "http://intranet/",
        "http://db:5432",
        "http://x.local",
        "http://x.lan/",
        "http://a.svc.cluster.local",
        "http://host.docker.internal/",
        "http://kubernetes.default.svc/",
        "http://x.nip.io/",
        "http://127-0-0-1.sslip.io",
        "http://rbndr.us/",
        "http://localtest.me/",
        "http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/",
        "http://loc\u{ad}alhost/",
        "http://lo\tcalhost/",
        "http://0/",
        "http://0.0.0.0/",
        "http://[::]/",
        "http://[0:0:0:0:0:0:0:1]/",
        "http://::1/",
        "http://[::1%25lo]/",
        "http://[fe80::1%25eth0]/",
        "http://1.1.1.1 &@2.2.2.2# @127.0.0.1/",
        "http://example.com:80#@127.0.0.1:80/",
        "http:127.0.0.1",
        "http:/localhost/",
        "http:///127.0.0.1",
        "localhost:8080",
        "127.0.0.1",
        "//localhost/",
        "\\\\127.0.0.1\\x",
        "redis://127.0.0.1:6379",
        "view-source:http://127.0.0.1",
        "jar:http://127.0.0.1!/",
        "http://foo@evil.example:80@127.0.0.1/",
        "https://example.com/proxy/http://10.0.0.1/x",
        "http://%6c%6f%63%61%6c%68%6f%73%74/",
        "http://%256c%256fcalhost/",
        "http://metadata/",
        "http://169.254.169.254",
        "https://example.com/?host=169.254.169.254",
        "wss://192.168.0.1/x",
        "http://425.510.425.510/",
        "http://0x7f.0x0.0x0.0x1",
        "http://[::ffff:7f00:1]:80",
    ] {
        assert!(is_inside(text), "{text}: {:?}", facts(text));
    }
}

#[test]
fn what_a_policy_allows_is_left_alone_unless_it_hides() {
    let list = HostList {
        allow: vec![
            HostPattern::read("127.0.0.1:3000").unwrap(),
            HostPattern::read("*.lan").unwrap(),
        ],
        deny: vec![HostPattern::read("*").unwrap()],
    };
    let ground = AccessScope {
        hosts: Hosts::new(Vec::new(), list),
        ..AccessScope::default()
    };
    let place = Place {
        details: read_as(ReadAs::Url),
        scope: Some(&ground),
        ..Place::default()
    };
    for (text, reaches, denied) in [
        ("http://127.0.0.1:3000/x", false, false),
        ("http://127.0.0.1:3001/x", true, true),
        ("http://2130706433:3000/", true, false),
        ("http://nas.lan/", false, false),
        ("https://example.com/", false, true),
    ] {
        let facts = UrlFacts::argument(text, &place);
        assert_eq!(
            (!facts.destinations.is_empty(), facts.denied),
            (reaches, denied),
            "{text}: {facts:?}"
        );
    }
}

#[test]
fn in_commands_only_what_is_grave_or_hidden_is_said() {
    let place = Place {
        details: read_as(ReadAs::Shell),
        ..Place::default()
    };
    let grave = |text: &str| {
        UrlFacts::command(text, &place)
            .destinations
            .iter()
            .any(|reached| reached.odd || reached.reach >= Reach::LinkLocal)
    };
    for text in [
        "http://localhost:8080/@vite/client",
        "http://admin:pw@10.0.0.5/",
        "ada@192.168.1.5:/srv",
        "0.0.0.0:80",
        "[::1]:3000",
        "192.168.1.",
        "http://db:5432",
        "1000000",
        "http://127.0.0.1:3000/a@b",
    ] {
        assert!(!grave(text), "{text}");
    }
    for text in [
        "http://169.254.169.254/",
        "169.254.169.254",
        "http://0x7f.1/",
        "http://2130706433",
        "http://[::ffff:10.0.0.1]/",
        "http://x@metadata.google.internal/",
    ] {
        assert!(grave(text), "{text}");
    }
}

#[test]
fn any_text_is_judged_without_a_panic() {
    let parts = [
        "http",
        "://",
        "@",
        "127.0.0.1",
        ".",
        ":",
        "[",
        "]",
        "::1",
        "%",
        "%31",
        "0x",
        "\\",
        "/",
        "?",
        "#",
        "a",
        "．",
        "é",
        "\t",
        " ",
        "xn--",
        "&",
        "url=",
        "//",
        "99999999999",
        "-",
    ];
    let mut seed = 5;
    for _ in 0..4000 {
        let text: String = (0..pick(&mut seed, 16))
            .map(|_| parts[pick(&mut seed, parts.len())])
            .collect();
        let argument = facts(&text);
        let command = UrlFacts::command(&text, &Place::default());
        assert!(
            argument.destinations.len() < 200 && command.destinations.len() < 200,
            "{text:?}"
        );
    }
    assert!(
        !facts(&"http://a@".repeat(9000)).destinations.is_empty(),
        "what is too long to read is refused"
    );
}
