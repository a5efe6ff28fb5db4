//! Every key of `deploy/lychgate.toml` has a test that shows its effect, with the key and without
//! it: what it stops, and what still passes.
//!
//! - `keys`: the keys of a config file, as paths
//! - `judging`: the cases for policies in `cases.toml`; each names a key, a policy with it and one
//!   without, and two calls
//! - `serving`, `callers`, `traffic`: keys that need a gate of their own, set in a config file
//! - `logins`, `issuers`, `exporting`: the same for logins at servers, for issuers and for OTLP
//! - `covered.toml`: the tests of the keys that have no case
//! - `fields`: the field of the loaded config that a key sets, for keys whose test sets the field
//!   in Rust; their rows are in `fields.toml`
//!
//! The tests below fail if a key has no test, if a case names a key that is not in the sample, if a
//! test that is named does not exist, or if a test outside this folder shows a key that has no row
//! in `fields`. To add a key: add it to the sample, then add a case to `cases.toml`, or a test and
//! its line in `covered.toml`.

mod callers;
mod exporting;
mod fields;
mod issuers;
mod judging;
mod keys;
mod logins;
mod serving;
mod traffic;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use lychgate::config;

use super::harness::{Setup, TestGate, token};
use super::servers::{Peer, Wire, says, script};

/// Returns the sample with every option set.
fn sample() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/lychgate.toml");
    keys::uncomment(&std::fs::read_to_string(path).unwrap())
}

/// The content of the file `secret` beside the config.
const SECRET: &str = "filed-value-7310";

/// Starts a gate from the text of a config file. `listen`, `audit` and the token file are set here
/// unless the text sets them; `{url}` is the server's address. The folder of the file also contains
/// `rules` (few, so that a gate starts at once), `secret` and `token-of-bob`. A line `# no [TABLE]`
/// leaves one of the tables out.
async fn start(text: &str, server: &Peer) -> TestGate {
    let Peer::Http(server) = server else {
        panic!("the server is reached by http")
    };
    start_at(text, &server.url()).await
}

async fn start_at(text: &str, url: &str) -> TestGate {
    let (setup, text) = prepare(text, url);
    let file = setup.folder.path().join("lychgate.toml");
    std::fs::write(&file, &text).unwrap();
    let read = config::load(&file).unwrap_or_else(|faults| panic!("{faults:?}\n{text}"));
    setup.start_with(|config| *config = read).await
}

/// Returns the faults of a config file as text; empty if it loads.
fn faults(text: &str) -> String {
    let (setup, text) = prepare(text, "http://127.0.0.1:1/mcp");
    let file = setup.folder.path().join("lychgate.toml");
    std::fs::write(&file, &text).unwrap();
    let faults = config::load(&file).err().unwrap_or_default();
    faults.iter().map(|fault| format!("{fault}\n")).collect()
}

fn prepare(text: &str, url: &str) -> (Setup, String) {
    let setup = Setup::new();
    let mut whole = String::new();
    for (table, body) in [
        ("[listen]", "address = \"127.0.0.1:0\""),
        ("[admin]", "address = \"127.0.0.1:0\""),
        ("[audit]", "file = \"audit.jsonl\""),
        (
            "[approval]",
            "token_file = \"approve.token\"\nwait_seconds = 1",
        ),
        ("[upstream.up]", "http = { url = \"{url}\" }"),
        ("[policy.default]", "rules = [\"rules\"]"),
    ] {
        if !text
            .lines()
            .any(|line| line.trim().trim_start_matches("# no ") == table)
        {
            whole += &format!("{table}\n{body}\n");
        }
    }
    whole += text;
    std::fs::write(setup.folder.path().join("token-of-bob"), token("bob")).unwrap();
    std::fs::write(setup.folder.path().join("secret"), SECRET).unwrap();
    let whole = whole.replace("{url}", url);
    (setup, whole)
}

/// Starts a server whose tools answer `harvested`.
async fn done() -> Peer {
    Peer::start(Wire::Json, script(|asked| says(asked, "harvested"))).await
}

/// Returns the tests of the keys that have no case in `judging`: as `FILE::FUNCTION`, with their
/// keys.
fn covered() -> BTreeMap<String, Vec<String>> {
    toml::from_str(include_str!("options/covered.toml")).unwrap()
}

#[test]
fn every_key_of_the_sample_has_a_test() {
    let sample = keys::of(sample().parse().unwrap());
    assert!(sample.len() > 230, "only {} keys found", sample.len());
    let cases = judging::cases().into_iter().map(|case| case.key);
    let shown: BTreeSet<String> = cases.chain(covered().into_values().flatten()).collect();
    let missing: Vec<_> = sample.difference(&shown).collect();
    assert!(
        missing.is_empty(),
        "no test shows what these keys change, see tests/integration/options.rs: {missing:#?}"
    );
    let unknown: Vec<_> = shown.difference(&sample).collect();
    assert!(
        unknown.is_empty(),
        "deploy/lychgate.toml has no such keys: {unknown:#?}"
    );
}

/// A test outside this folder sets a field; without a row in `fields` it would pass even if no key
/// of the file set that field.
#[test]
fn every_key_that_is_shown_elsewhere_has_its_field() {
    let mut elsewhere = covered();
    elsewhere.retain(|test, _| !test.starts_with("tests/integration/options/"));
    let wanted: BTreeSet<String> = elsewhere.into_values().flatten().collect();
    let had: BTreeSet<String> = fields::keys().collect();
    let missing: Vec<_> = wanted.difference(&had).collect();
    assert!(
        missing.is_empty(),
        "no row in tests/integration/options/fields.toml: {missing:#?}"
    );
    let sample = keys::of(sample().parse().unwrap());
    let unknown: Vec<_> = had.difference(&sample).collect();
    assert!(
        unknown.is_empty(),
        "deploy/lychgate.toml has no such keys: {unknown:#?}"
    );
}

#[test]
fn every_test_that_is_named_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut wrong = Vec::new();
    for (test, keys) in covered() {
        let (file, name) = test.split_once("::").unwrap();
        let text = std::fs::read_to_string(root.join(file)).unwrap_or_default();
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let found = lines.windows(2).any(|pair| {
            let marked = pair[0].starts_with("#[test]") || pair[0].starts_with("#[tokio::test");
            marked
                && pair[1]
                    .trim_start_matches("async ")
                    .starts_with(&format!("fn {name}("))
        });
        if !found {
            wrong.push(format!("{keys:?}: {test}"));
        }
    }
    assert!(wrong.is_empty(), "no such tests: {wrong:#?}");
}
