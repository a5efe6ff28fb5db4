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

/// Returns the inbound rules of a library, without changes by a policy.
fn inbound(library: &Library) -> RuleSet {
    library
        .rule_set(Direction::Inbound, &PolicyConfig::default())
        .unwrap()
}

/// Returns the inbound rules of one file, of which this is what follows the head.
fn inbound_rules(rules: &str) -> RuleSet {
    inbound(&library(&[("a.toml", format!("{HEAD}{rules}"))]))
}

fn action(action: Action) -> Override {
    Override {
        action: Some(action),
        enabled: None,
    }
}

const OFF: Override = Override {
    action: None,
    enabled: Some(false),
};

/// Returns a policy with these packs and overrides.
fn policy(packs: &[(&str, bool)], overrides: &[(&str, Override)]) -> PolicyConfig {
    let packs = packs.iter().map(|(name, on)| ((*name).to_owned(), *on));
    let overrides = overrides
        .iter()
        .map(|(rule, change)| ((*rule).to_owned(), change.clone()));
    PolicyConfig {
        packs: packs.collect(),
        overrides: overrides.collect(),
        ..PolicyConfig::default()
    }
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
    assert_eq!(hits(&inbound(&library), "alpha beta gamma"), ["two", "one"]);
    let outbound = library.rule_set(Direction::Outbound, &PolicyConfig::default());
    assert!(outbound.unwrap().rules().is_empty());
}

#[test]
fn overrides_and_packs() {
    let first = rule("one", "alpha", "was = [\"uno\"]");
    let ops = "pack = \"ops\"\nenabled = false";
    let both = "packs = [\"ops\", \"git\"]\nenabled = false";
    let files = [
        (
            "a.toml",
            format!("{HEAD}{first}{}", rule("two", "beta", "")),
        ),
        (
            "b.toml",
            format!("{HEAD}{ops}\n{}", rule("three", "gamma", "")),
        ),
        (
            "c.toml",
            format!("{HEAD}{both}\n{}", rule("four", "delta", "")),
        ),
    ];
    let library = library(&files);
    let text = "alpha beta gamma delta";
    let plain = inbound(&library);
    assert_eq!(hits(&plain, text), ["one", "two"]);

    let set = |policy: &PolicyConfig| library.rule_set(Direction::Inbound, policy);
    let changes = [("uno", action(Action::Log)), ("two", OFF)];
    let changed = set(&policy(&[("ops", true)], &changes)).unwrap();
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
    for (packs, rules) in [
        (
            &[("ops", true), ("git", false)][..],
            ["one", "two", "three"],
        ),
        (&[("git", true)], ["one", "two", "four"]),
        (&[("ops", false), ("git", true)], ["one", "two", "four"]),
    ] {
        assert_eq!(
            hits(&set(&policy(packs, &[])).unwrap(), text),
            rules,
            "{packs:?}"
        );
    }

    let faults = set(&policy(&[("opps", true)], &[("twoo", OFF)])).unwrap_err();
    let messages: Vec<String> = faults.iter().map(ToString::to_string).collect();
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
    for (direction, never) in [
        (Direction::Outbound, Action::Redact),
        (Direction::Inbound, Action::Ask),
    ] {
        let head = HEAD.replace("inbound", direction.name());
        let library = library(&[("a.toml", head + &rule("one", "alpha", ""))]);
        let faults = library.rule_set(direction, &policy(&[], &[("one", action(never))]));
        let faults = faults.unwrap_err();
        let cannot = format!("cannot `{}`", never.name());
        assert!(faults[0].message.contains(&cannot), "{faults:?}");
    }
}

#[test]
fn equal_sets_share_their_automata_and_digest() {
    let rules = rule("one", "alpha", "") + &rule("two", "beta", "");
    let library = library(&[("a.toml", format!("{HEAD}{rules}"))]);
    let first = inbound(&library);
    let second = inbound(&library);
    let off = policy(&[], &[("two", OFF)]);
    let third = library.rule_set(Direction::Inbound, &off).unwrap();
    assert!(std::ptr::eq(first.rules(), second.rules()));
    assert_eq!(first.digest().len(), 64);
    assert_ne!(first.digest(), third.digest());
    let a = Library::builtin();
    let b = Library::builtin();
    for direction in [Direction::Inbound, Direction::Outbound] {
        let [a, b] = [&a, &b].map(|library| {
            let set = library.rule_set(direction, &PolicyConfig::default());
            set.unwrap().digest().to_owned()
        });
        assert_eq!(a, b, "a digest must not depend on the run");
    }
}

#[test]
fn unless_spares_only_near_the_match() {
    let set = inbound_rules(&rule("one", "alpha", "unless = ['''for example''']"));
    assert!(hits(&set, "for example, alpha").is_empty());
    let far = format!("for example, {} alpha", "x ".repeat(400));
    assert_eq!(hits(&set, &far), ["one"]);
}

#[test]
fn only_limits_where_a_rule_looks() {
    let only = "only = { tools = [\"fetch_*\"], surfaces = [\"content\"], hidden = false }";
    let set = inbound_rules(&rule("one", "alpha", only));
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
    let other_tool = Place {
        tool: Some("x"),
        ..place
    };
    assert_eq!(count(&place), 1);
    assert_eq!(count(&place.with_hidden(true)), 0);
    assert_eq!(count(&other_tool), 0);
}

#[test]
fn a_strict_policy_leaves_out_the_rules_that_are_only_likely() {
    let library = Library::builtin();
    let ids = |policy: &PolicyConfig| -> Vec<String> {
        let set = library.rule_set(Direction::Inbound, policy).unwrap();
        set.rules().iter().map(|rule| rule.id.to_string()).collect()
    };
    let usual = ids(&PolicyConfig::default());
    let strict = ids(&policy(&[("likely", false)], &[]));
    let has = |ids: &[String], id: &str| ids.iter().any(|other| other == id);
    assert!(has(&usual, "steering-text") && !has(&strict, "steering-text"));
    assert!(has(&strict, "steering-text-clear") && has(&strict, "override-instructions"));
}

#[test]
fn a_sum_leaves_out_the_intents_that_it_excepts() {
    let signal = |id: &str, severity: &str, catches: &str, find: &str| {
        format!(
            "[[rule]]\nid = \"{id}\"\ntitle = \"t\"\nwhy = \"w\"\n{severity}\ncatches = [\"{catches}\"]\n\
             spares = [\"other\"]\nfind.signal = {{ {find} }}\n"
        )
    };
    let phrase = |id: &str, word: &str| {
        let find = format!("intent = \"{id}\", weight = 40, any = ['''\\b{word}\\b''']");
        signal(id, "severity = \"info\"\naction = \"log\"", word, &find)
    };
    let sum = |id: &str, rest: &str| {
        let find = format!("sum = 70{rest}");
        let all = "kettle, walnut and marble";
        signal(id, "severity = \"high\"\naction = \"block\"", all, &find)
    };
    let rules = [
        phrase("one", "kettle"),
        phrase("two", "walnut"),
        phrase("three", "marble"),
        sum("all", ""),
        sum("some", ", except = [\"two\"]"),
    ];
    let set = inbound_rules(&rules.concat());
    let of_sums = |text: &str| -> Vec<String> {
        hits(&set, text)
            .into_iter()
            .filter(|id| id == "all" || id == "some")
            .collect()
    };
    assert_eq!(of_sums("A kettle and a marble."), ["all", "some"]);
    assert_eq!(of_sums("A kettle and a walnut."), ["all"]);
}
