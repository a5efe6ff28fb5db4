//! `lychgate replay` reports neither a test that covered nothing nor one that switches protection
//! off as passed.

use super::explain::{BOMB, Bench, command};
use super::harness::assert_contains;

const REPLAY: [&str; 7] = [
    "replay",
    "--policy-config",
    "next.toml",
    "--config",
    "gate.toml",
    "--log",
    "a.jsonl",
];

#[test]
fn what_would_only_be_observed_is_newly_passed() {
    let bench = Bench::new();
    bench.traffic("a.jsonl", &[&command(BOMB), &command("ls")]);
    let written = |mode: &str, file: &str| {
        std::fs::write(
            bench.path(file),
            format!("[policy.default]\nmode = \"{mode}\"\n"),
        )
        .unwrap();
    };
    written("observe", "next.toml");
    let (code, told, err) = bench.lychgate(&REPLAY);
    assert_eq!(code, 1, "{told}{err}");
    assert_contains(
        &told,
        &[
            "1  newly passed",
            "1  of the newly passed are due to observe mode",
            "1  unchanged",
            "would be `pass`",
        ],
    );
    let fail_on = |what: &str| {
        bench
            .lychgate(&[&REPLAY[..], &["--fail-on", what]].concat())
            .0
    };
    assert_eq!((fail_on("newly-passed"), fail_on("newly-blocked")), (1, 0));
    // A log recorded in observe mode, replayed with enforcement.
    written("observe", "gate.toml");
    written("enforce", "next.toml");
    std::fs::remove_file(bench.path("a.jsonl")).unwrap();
    bench.traffic("a.jsonl", &[&command(BOMB), &command("ls")]);
    let (code, told, err) = bench.lychgate(&REPLAY);
    assert_eq!(code, 1, "{told}{err}");
    assert_contains(&told, &["1  newly blocked", "0  newly passed"]);
    written("observe", "next.toml");
    let (code, told, err) = bench.lychgate(&REPLAY);
    assert!(code == 0 && told.contains("2  unchanged"), "{told}{err}");
}

#[test]
fn what_tested_nothing_is_no_success() {
    let bench = Bench::new();
    let lines = bench.traffic("a.jsonl", &[&command("ls"), &command("pwd")]);
    std::fs::copy(bench.path("gate.toml"), bench.path("next.toml")).unwrap();
    let replay = |more: &[&str]| bench.lychgate(&[&REPLAY[..], more].concat());
    let id = lines[1]["audit"].as_str().unwrap();
    for given in [id, &id[id.len() - 8..]] {
        let (code, told, err) = replay(&[given]);
        assert_eq!(code, 0, "{told}{err}");
        assert_contains(&told, &["1 recorded messages, 1 judged again"]);
    }
    let unknown = "01a205d6-03f4-7710-9a93-c7540d6eac97";
    for (ids, why) in [
        (&[unknown][..], "with the id `01a205d6"),
        (&[id, unknown], "with the id"),
        (&["fffffff0"], "with the id"),
        (&["nothing"], "is not a valid audit id"),
    ] {
        let (code, _, err) = replay(ids);
        assert!(code == 2 && err.contains(why), "{ids:?}: {code} {err}");
    }
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let (code, _, err) = replay(&["--since", "1s"]);
    assert_eq!(code, 2, "{err}");
    assert_contains(&err, &["nothing was tested", "--since"]);
    let log = bench.path("a.jsonl");
    for (text, why) in [
        ("", "contains no judged message"),
        ("no line\n", "1 lines cannot be read"),
    ] {
        std::fs::write(&log, text).unwrap();
        let (code, _, err) = replay(&[]);
        assert_eq!(code, 2, "{err}");
        assert_contains(&err, &["nothing was tested", why]);
    }
    // A call whose only text is masked, so that nothing can be judged.
    std::fs::remove_file(&log).unwrap();
    let token = format!("ghp_{}", "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7cF0hJ2lM4");
    bench.traffic(
        "a.jsonl",
        &[&command(&format!(
            "curl -H 'X-Key: {token}' https://x.example"
        ))],
    );
    let (code, told, err) = replay(&[]);
    assert!(
        code == 2
            && told.contains("the log masks a secret")
            && err.contains("could be judged again"),
        "{told}{err}"
    );
    let (code, help, _) = bench.lychgate(&["replay", "--help"]);
    assert_eq!(code, 0, "{help}");
    assert_contains(&help, &["Exit codes: 0", "2 nothing was"]);
}
