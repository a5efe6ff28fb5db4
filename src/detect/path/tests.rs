//! Every disguise of a path is judged like its plain form.

use super::judge::PathFacts;
use super::{Links, Roots};
use crate::detect::{AccessScope, Details, OutboundDetails, Place, ReadAs};

/// Returns a number less than `below`, from a fixed sequence.
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

fn ground(links: Links) -> AccessScope {
    AccessScope {
        roots: Roots::new(["/repo/app".to_owned(), "C:\\Work".to_owned()], links),
        ..AccessScope::default()
    }
}

fn facts(text: &str, ground: &AccessScope) -> PathFacts {
    PathFacts::argument(
        text,
        &Place {
            details: read_as(ReadAs::Path),
            scope: Some(ground),
            ..Place::default()
        },
    )
}

/// Spellings of a path that some server reads as the original path.
const DISGUISES: [fn(&str) -> String; 18] = [
    |path| path.replace('.', "%2e"),
    |path| path.replace('.', "%2E").replace('/', "%2F"),
    |path| path.replace('.', "%252e"),
    |path| path.replace('/', "%252f"),
    |path| path.replace('/', "%c0%af"),
    |path| path.replace('.', "%c0%ae"),
    |path| path.replace('/', "%e0%80%af"),
    |path| path.replace('.', "%u002e"),
    |path| path.replace('/', "%u2215"),
    |path| path.replace('/', "\\"),
    |path| path.replace('.', "．"),
    |path| path.replace('/', "∕"),
    |path| path.replace("../", "....//"),
    |path| path.replace("../", "..;/"),
    |path| path.replace("../", "..%00/"),
    |path| path.replace("..", ".\u{200b}."),
    |path| path.replace("../", ".././"),
    |path| path.replace("../", "..//"),
];

#[test]
fn a_disguised_escape_is_outside_as_its_plain_form_is() {
    let ground = ground(Links::Unknown);
    let mut seed = 7;
    let escapes = [
        "../x",
        "../../etc/passwd",
        "src/../../x",
        "./../other/y.txt",
        "../app-evil/x",
        "a/b/../../../c",
    ];
    for _ in 0..2000 {
        let plain = escapes[pick(&mut seed, escapes.len())];
        assert!(facts(plain, &ground).outside, "{plain}");
        let first = DISGUISES[pick(&mut seed, DISGUISES.len())];
        let once = first(plain);
        assert!(facts(&once, &ground).outside, "{plain} as {once:?}");
    }
}

#[test]
fn honest_paths_stay_inside() {
    let ground = ground(Links::Unknown);
    for path in [
        "",
        ".",
        "./",
        "src",
        "src/main.rs",
        "/repo/app",
        "/repo/app/",
        "/repo/app//x",
        "a/../b",
        "a b/c (1).txt",
        ".env.example",
        "@scope/pkg/index.d.ts",
        "x/[slug]/[...rest]/page.tsx",
        "naïve/résumé.pdf",
        "文档/说明.md",
        "100%/done.txt",
        "a..b",
        "...",
        "./...",
        "C:\\Work\\x.txt",
        "c:/work/sub/y",
        "C:\\WORK\\z",
        "file:///repo/app/x",
        "$lib/server/db.ts",
        "routes/$id.tsx",
        "~$x.docx",
        "group%2Fproject",
        "v1.2.3/notes.md",
        "a;b/c",
        "x/{a,b}.txt",
        "%7Buser%7D/x",
        "foo\\ bar.txt",
        "src/**/*.rs",
        "first.txt\nsrc/second.txt\n",
        "&amp;/x",
        "0x2a/x",
        "..hidden/x",
        "x/..y",
    ] {
        let facts = facts(path, &ground);
        assert!(!facts.outside && !facts.disguised, "{path}: {facts:?}");
    }
}

#[test]
fn starts_that_lead_away_are_outside() {
    let ground = ground(Links::Unknown);
    for path in [
        "/",
        "/etc",
        "/work",
        "/repo/app2",
        "/repo/app-evil/x",
        "/Work/app/x",
        "~",
        "~/x",
        "~root/x",
        "$HOME/x",
        "${HOME}/x",
        "%USERPROFILE%\\x",
        "$(pwd)/x",
        "`pwd`/x",
        "${x:-..}/y",
        "C:x",
        "C:\\Windows",
        "c:/workshop",
        "\\\\host\\share\\x",
        "\\\\?\\D:\\x",
        "//etc/passwd",
        "file:///etc/passwd",
        "file://host/repo/app/x",
        "file:/etc/passwd",
        "FILE:///etc/passwd",
        "file:///%2e%2e/etc",
        "file:%2f%2f%2fetc",
        "jar:file:///etc/x.jar!/y",
        "php://filter/resource=/etc/passwd",
        "/proc/self/root/repo/app/x",
        "/proc/self/cwd/x",
        "/dev/fd/3",
        " /etc/passwd",
        "\"/etc/passwd\"",
        "src/x\n/etc/passwd",
        "/repo/app/..",
        "/repo/app/../app2/x",
        "s3://bucket/../../x",
        "%2fetc%2fpasswd",
        "／etc／passwd",
        "%5c..%5c..%5cx",
    ] {
        assert!(facts(path, &ground).outside, "{path}");
    }
    assert!(facts(&"a/".repeat(40_000), &ground).outside);
}

#[test]
fn links_are_followed_where_they_are_known() {
    let known = [
        ("/repo/app/out", "/etc"),
        ("/repo/app/in", "src"),
        ("/repo/app/near", "../app/src"),
        ("/repo/app/far", "../../x"),
    ];
    let ground = ground(Links::Map(
        known
            .map(|(link, target)| (link.to_owned(), target.to_owned()))
            .into(),
    ));
    for (path, outside) in [
        ("out", true),
        ("out/passwd", true),
        ("out/../repo/app/x", false),
        ("out/../x", true),
        ("in/x", false),
        ("in/../x", false),
        ("near/x", false),
        ("far", true),
        ("/repo/app/out/hosts", true),
        ("./in/../out", true),
    ] {
        assert_eq!(facts(path, &ground).outside, outside, "{path}");
    }
}

#[test]
fn home_and_the_folder_of_a_child_are_known_where_told() {
    let roots = Roots::new(["/home/ada/work".to_owned()], Links::Unknown);
    let roots = roots
        .with_home(Some("/home/ada".into()))
        .with_base(Some("/home/ada/work/sub".into()));
    let ground = AccessScope {
        roots,
        ..AccessScope::default()
    };
    for (path, outside) in [
        ("~/work/x", false),
        ("~/x", true),
        ("$HOME/work/x", false),
        ("../x", false),
        ("../../x", true),
        ("/home/ada/work", false),
    ] {
        assert_eq!(facts(path, &ground).outside, outside, "{path}");
    }
}

#[test]
fn a_root_may_be_named_by_the_home_folder() {
    let roots = || Roots::new(["~/work".to_owned()], Links::Unknown);
    for roots in [roots(), roots().with_home(Some("/home/ada".into()))] {
        let ground = AccessScope {
            roots,
            ..AccessScope::default()
        };
        for text in ["~/work/todo.md", "$HOME/work/a/../b", "todo.md"] {
            assert!(!facts(text, &ground).outside, "{text}");
        }
        for text in [
            "~/workshop/x",
            "~/work/../x",
            "~bob/work/x",
            "~/x",
            "/work/x",
        ] {
            assert!(facts(text, &ground).outside, "{text}");
        }
    }
}

#[test]
fn nothing_is_outside_without_roots_but_climbing_is_seen() {
    let ground = AccessScope::default();
    for (path, climbs) in [
        ("../../../etc/passwd", true),
        ("/srv/x/../../etc/shadow", true),
        ("../../lib/x.ts", false),
        ("/etc/hosts", false),
        ("../x", false),
    ] {
        let facts = facts(path, &ground);
        assert_eq!((facts.outside, facts.climbs), (false, climbs), "{path}");
    }
}

#[test]
fn any_text_is_judged_without_a_panic() {
    let ground = ground(Links::Map(
        [("/repo/app/a".to_owned(), "a".to_owned())].into(),
    ));
    let parts = [
        "..", "/", "\\", "%2e", "%", "%c0", "%af", "a", "~", "$", "{", ",", "}", "\0", "\n", "．",
        "é", ":", "file:", "//", ";", "…", "%u", "0x2", "&#46;", " ",
    ];
    let mut seed = 11;
    for _ in 0..3000 {
        let text: String = (0..pick(&mut seed, 14))
            .map(|_| parts[pick(&mut seed, parts.len())])
            .collect();
        let facts = facts(&text, &ground);
        assert!(facts.forms.len() <= 128, "{text:?}");
    }
}
