use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::*;
use crate::config::{Override, PolicyConfig};
use crate::detect::{Match, Place};
use crate::text::Text;

const HEAD: &str = "format = 1\ndirection = \"inbound\"\n";

fn rule(id: &str, word: &str, rest: &str) -> String {
    format!(
        "[[rule]]\nid = \"{id}\"\ntitle = \"t\"\nwhy = \"w\"\nseverity = \"high\"\naction = \"block\"\n\
         find.pattern = {{ keywords = [\"{word}\"], any = ['''\\b{word}\\b'''] }}\ncatches = [\"a {word}!\"]\nspares = [\"{word}s\"]\n{rest}\n"
    )
}

fn folder(files: &[(&str, String)]) -> (TempDir, PathBuf) {
    let dir = TempDir::new().unwrap();
    for (name, text) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let path = dir.path().to_owned();
    (dir, path)
}

fn library(files: &[(&str, String)]) -> Library {
    let (_dir, path) = folder(files);
    Library::load(false, &[path]).unwrap()
}

fn hits(set: &RuleSet, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    set.scan(&Text::new(text), &Place::default(), &mut found);
    found
        .iter()
        .map(|hit: &Match| set.rules()[hit.rule].id.to_string())
        .collect()
}

/// The faults of each file are in a file next to it. `UPDATE=1 cargo test --lib faults` rewrites
/// it.
#[test]
fn faults_of_rule_files_read_well() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots/rule-faults");
    let mut tried = 0;
    for entry in fs::read_dir(&root).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|end| end != "toml") {
            continue;
        }
        let faults = Library::load(false, std::slice::from_ref(&path)).expect_err("a faulty file");
        let report: String = faults.iter().map(|fault| format!("{fault}\n")).collect();
        let report = report.replace(&format!("{}/", root.display()), "");
        let golden = path.with_extension("txt");
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&golden, &report).unwrap();
        }
        assert_eq!(
            report,
            fs::read_to_string(&golden).unwrap_or_default(),
            "{}",
            path.display()
        );
        tried += 1;
    }
    assert!(tried >= 6, "only {tried} files");
}

#[test]
fn the_built_in_rules_do_what_their_cases_say() {
    let trial = Library::builtin().try_cases().unwrap();
    assert!(trial.failed_cases.is_empty(), "{trial}");
    assert!(
        trial.rules >= 2 && trial.cases >= 4 * trial.rules / 2,
        "{trial}"
    );
}

#[test]
fn a_later_folder_replaces_a_rule_by_id() {
    let (_a, first) = folder(&[
        ("x.toml", format!("{HEAD}{}", rule("one", "alpha", ""))),
        ("deep/y.toml", format!("{HEAD}{}", rule("two", "beta", ""))),
    ]);
    let (_b, second) = folder(&[("z.toml", format!("{HEAD}{}", rule("one", "gamma", "")))]);
    let library = Library::load(false, &[first, second]).unwrap();
    let set = library
        .rule_set(Direction::Inbound, &PolicyConfig::default())
        .unwrap();
    assert_eq!(hits(&set, "alpha beta gamma"), ["two", "one"]);
    assert!(
        library
            .rule_set(Direction::Outbound, &PolicyConfig::default())
            .unwrap()
            .rules()
            .is_empty()
    );
}

#[test]
fn overrides_and_packs() {
    let files = [
        (
            "a.toml",
            format!(
                "{HEAD}{}{}",
                rule("one", "alpha", "was = [\"uno\"]"),
                rule("two", "beta", "")
            ),
        ),
        (
            "b.toml",
            format!(
                "{HEAD}pack = \"ops\"\nenabled = false\n{}",
                rule("three", "gamma", "")
            ),
        ),
        (
            "c.toml",
            format!(
                "{HEAD}packs = [\"ops\", \"git\"]\nenabled = false\n{}",
                rule("four", "delta", "")
            ),
        ),
    ];
    let library = library(&files);
    let text = "alpha beta gamma delta";
    let plain = library
        .rule_set(Direction::Inbound, &PolicyConfig::default())
        .unwrap();
    assert_eq!(hits(&plain, text), ["one", "two"]);

    let mut policy = PolicyConfig::default();
    policy.packs.insert("ops".into(), true);
    policy.overrides.insert(
        "uno".into(),
        Override {
            action: Some(Action::Log),
            enabled: None,
        },
    );
    policy.overrides.insert(
        "two".into(),
        Override {
            action: None,
            enabled: Some(false),
        },
    );
    let changed = library.rule_set(Direction::Inbound, &policy).unwrap();
    assert_eq!(hits(&changed, text), ["one", "three", "four"]);
    assert_eq!(changed.rules()[0].action, Action::Log);
    assert_eq!(
        describe_weakening(&plain, &changed),
        [
            "rule `one` has the action `log`, was `block`",
            "inbound rule `two` is no longer in force"
        ]
    );
    assert!(describe_weakening(&plain, &plain).is_empty());

    // The narrowest pack that is named takes precedence.
    let with = |packs: &[(&str, bool)]| {
        let packs = packs
            .iter()
            .map(|(name, on)| ((*name).to_owned(), *on))
            .collect();
        library
            .rule_set(
                Direction::Inbound,
                &PolicyConfig {
                    packs,
                    ..PolicyConfig::default()
                },
            )
            .unwrap()
    };
    assert_eq!(
        hits(&with(&[("ops", true), ("git", false)]), text),
        ["one", "two", "three"]
    );
    assert_eq!(hits(&with(&[("git", true)]), text), ["one", "two", "four"]);
    assert_eq!(
        hits(&with(&[("ops", false), ("git", true)]), text),
        ["one", "two", "four"]
    );

    let mut invalid = PolicyConfig::default();
    invalid.packs.insert("opps".into(), true);
    invalid.overrides.insert(
        "twoo".into(),
        Override {
            action: None,
            enabled: Some(false),
        },
    );
    let messages: Vec<String> = library
        .rule_set(Direction::Inbound, &invalid)
        .unwrap_err()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        messages,
        [
            "policy: there is no rule `twoo` to change\n  hint: did you mean `two`?",
            "policy: there is no pack `opps` to change\n  hint: did you mean `ops`?"
        ]
    );
}

#[test]
fn an_override_cannot_ask_for_what_is_never_done() {
    let file = format!(
        "format = 1\ndirection = \"outbound\"\n{}",
        rule("one", "alpha", "")
    );
    let mut policy = PolicyConfig::default();
    policy.overrides.insert(
        "one".into(),
        Override {
            action: Some(Action::Redact),
            enabled: None,
        },
    );
    let faults = library(&[("a.toml", file)])
        .rule_set(Direction::Outbound, &policy)
        .unwrap_err();
    assert!(faults[0].message.contains("cannot `redact`"), "{faults:?}");
    let file = format!(
        "format = 1\ndirection = \"inbound\"\n{}",
        rule("one", "alpha", "")
    );
    policy.overrides.insert(
        "one".into(),
        Override {
            action: Some(Action::Ask),
            enabled: None,
        },
    );
    let faults = library(&[("a.toml", file)])
        .rule_set(Direction::Inbound, &policy)
        .unwrap_err();
    assert!(faults[0].message.contains("cannot `ask`"), "{faults:?}");
}

#[test]
fn equal_sets_share_their_automata_and_digest() {
    let files = [(
        "a.toml",
        format!(
            "{HEAD}{}{}",
            rule("one", "alpha", ""),
            rule("two", "beta", "")
        ),
    )];
    let library = library(&files);
    let set = |policy: &PolicyConfig| library.rule_set(Direction::Inbound, policy).unwrap();
    let mut off = PolicyConfig::default();
    off.overrides.insert(
        "two".into(),
        Override {
            action: None,
            enabled: Some(false),
        },
    );
    let first = set(&PolicyConfig::default());
    let second = set(&PolicyConfig::default());
    let third = set(&off);
    assert!(std::ptr::eq(first.rules(), second.rules()));
    assert_eq!(first.digest().len(), 64);
    assert_ne!(first.digest(), third.digest());
    let a = Library::builtin();
    let b = Library::builtin();
    for direction in [Direction::Inbound, Direction::Outbound] {
        let digest = |library: &Library| {
            library
                .rule_set(direction, &PolicyConfig::default())
                .unwrap()
                .digest()
                .to_owned()
        };
        assert_eq!(
            digest(&a),
            digest(&b),
            "a digest must not depend on the run"
        );
    }
}

#[test]
fn unless_spares_only_near_the_match() {
    let files = [(
        "a.toml",
        format!(
            "{HEAD}{}",
            rule("one", "alpha", "unless = ['''for example''']")
        ),
    )];
    let set = library(&files)
        .rule_set(Direction::Inbound, &PolicyConfig::default())
        .unwrap();
    assert!(hits(&set, "for example, alpha").is_empty());
    let far = format!("for example, {} alpha", "x ".repeat(400));
    assert_eq!(hits(&set, &far), ["one"]);
}

#[test]
fn only_limits_where_a_rule_looks() {
    let only = "only = { tools = [\"fetch_*\"], surfaces = [\"content\"], hidden = false }";
    let set = library(&[("a.toml", format!("{HEAD}{}", rule("one", "alpha", only)))])
        .rule_set(Direction::Inbound, &PolicyConfig::default())
        .unwrap();
    let place = Place {
        tool: Some("fetch_page"),
        surface: crate::detect::Surface::Content,
        ..Place::default()
    };
    let count = |place: &Place<'_>| {
        let mut found = Vec::new();
        set.scan(&Text::new("alpha"), place, &mut found);
        found.len()
    };
    assert_eq!(
        (
            count(&place),
            count(&place.with_hidden(true)),
            count(&Place {
                tool: Some("x"),
                ..place
            })
        ),
        (1, 0, 0)
    );
}

#[test]
fn a_strict_policy_leaves_out_the_rules_that_are_only_likely() {
    let mut strict = PolicyConfig::default();
    strict.packs.insert("likely".into(), false);
    let library = Library::builtin();
    let ids = |policy: &PolicyConfig| -> Vec<String> {
        library
            .rule_set(Direction::Inbound, policy)
            .unwrap()
            .rules()
            .iter()
            .map(|rule| rule.id.to_string())
            .collect()
    };
    let usual = ids(&PolicyConfig::default());
    let strict = ids(&strict);
    assert!(
        usual.contains(&"steering-text".to_owned())
            && !strict.contains(&"steering-text".to_owned())
    );
    assert!(
        strict.contains(&"steering-text-clear".to_owned())
            && strict.contains(&"override-instructions".to_owned())
    );
}

#[test]
fn a_sum_leaves_out_the_intents_that_it_excepts() {
    let phrase = |id: &str, word: &str| {
        format!(
            "[[rule]]\nid = \"{id}\"\ntitle = \"t\"\nwhy = \"w\"\nseverity = \"info\"\naction = \"log\"\ncatches = [\"{word}\"]\n\
             spares = [\"other\"]\nfind.signal = {{ intent = \"{id}\", weight = 40, any = ['''\\b{word}\\b'''] }}\n"
        )
    };
    let sum = |id: &str, rest: &str| {
        format!(
            "[[rule]]\nid = \"{id}\"\ntitle = \"t\"\nwhy = \"w\"\nseverity = \"high\"\naction = \"block\"\ncatches = [\"kettle, walnut and marble\"]\n\
             spares = [\"other\"]\nfind.signal = {{ sum = 70{rest} }}\n"
        )
    };
    let phrases = [
        phrase("one", "kettle"),
        phrase("two", "walnut"),
        phrase("three", "marble"),
    ]
    .concat();
    let text = format!(
        "{HEAD}{phrases}{}{}",
        sum("all", ""),
        sum("some", ", except = [\"two\"]")
    );
    let set = library(&[("a.toml", text)])
        .rule_set(Direction::Inbound, &PolicyConfig::default())
        .unwrap();
    let of_sums = |text: &str| -> Vec<String> {
        hits(&set, text)
            .into_iter()
            .filter(|id| id == "all" || id == "some")
            .collect()
    };
    assert_eq!(of_sums("A kettle and a marble."), ["all", "some"]);
    assert_eq!(of_sums("A kettle and a walnut."), ["all"]);
}
