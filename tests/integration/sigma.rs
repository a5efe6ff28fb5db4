//! The Sigma rules in `deploy/sigma` are valid, use members that audit lines have, and match the
//! lines that they are meant for.

use std::path::PathBuf;

use serde_json::Value;

use super::lines;

/// A rule, as far as this test parses YAML: two levels, texts, lists.
struct Rule {
    name: String,
    top: Vec<(String, String)>,
    lists: Vec<(String, String)>,
    /// Selection, alternative within it, field with modifier, values.
    wants: Vec<(String, usize, String, Vec<String>)>,
    condition: String,
}

fn rules() -> Vec<Rule> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("deploy/sigma");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    files.sort();
    files
        .iter()
        .map(|file| {
            read(
                file.file_stem().unwrap().to_str().unwrap(),
                &std::fs::read_to_string(file).unwrap(),
            )
        })
        .collect()
}

fn read(name: &str, text: &str) -> Rule {
    let mut rule = Rule {
        name: name.to_owned(),
        top: Vec::new(),
        lists: Vec::new(),
        wants: Vec::new(),
        condition: String::new(),
    };
    let mut section = String::new();
    let mut selection = String::new();
    let mut alternative = 0;
    for line in text.lines() {
        let depth = line.len() - line.trim_start().len();
        let told = line.trim();
        let pair = |told: &str| {
            let (key, value) = told
                .split_once(':')
                .unwrap_or_else(|| panic!("{name}: {told}"));
            (key.to_owned(), value.trim().trim_matches('"').to_owned())
        };
        match (depth, told.strip_prefix("- ")) {
            (0, None) => {
                rule.top.push(pair(told));
                section = pair(told).0;
            }
            (4, Some(item)) => rule
                .lists
                .push((section.clone(), item.trim_matches('"').to_owned())),
            (4, None) if section == "detection" && told.starts_with("condition:") => {
                rule.condition = pair(told).1
            }
            (4, None) if section == "detection" => (selection, alternative) = (pair(told).0, 0),
            (4, None) => rule.lists.push((section.clone(), told.to_owned())),
            (8, Some(item)) => {
                alternative += 1;
                let (field, value) = pair(item);
                rule.wants
                    .push((selection.clone(), alternative, field, vec![value]));
            }
            (8, None) => {
                let (field, value) = pair(told);
                let values = if value.is_empty() {
                    Vec::new()
                } else {
                    vec![value]
                };
                rule.wants
                    .push((selection.clone(), alternative, field, values));
            }
            (12, Some(item)) => rule.wants.last_mut().unwrap().3.push(item.to_owned()),
            _ => panic!("{name}: `{line}` is not read"),
        }
    }
    rule
}

impl Rule {
    fn matches(&self, line: &Value) -> bool {
        let selections: Vec<&str> = {
            let mut names: Vec<&str> = self.wants.iter().map(|(name, ..)| name.as_str()).collect();
            names.dedup();
            names
        };
        let mut holds = selections.iter().map(|selection| {
            let of = || {
                self.wants
                    .iter()
                    .filter(move |(name, ..)| name == selection)
            };
            let last = of().map(|(_, alternative, ..)| *alternative).max().unwrap();
            let first = of().map(|(_, alternative, ..)| *alternative).min().unwrap();
            let fits = |at| {
                of().filter(|(_, one, ..)| *one == at)
                    .all(|(_, _, field, values)| fits(line, field, values))
            };
            (first..=last).any(fits) != (*selection == "prove")
        });
        match self.condition.as_str() {
            "1 of them" => holds.any(|holds| holds),
            "selection" | "selection and not prove" | "selection and rules and not prove" => {
                holds.all(|holds| holds)
            }
            other => panic!("{}: `{other}` is not read", self.name),
        }
    }
}

/// Reports whether a field has one of the values; Sigma ignores case.
fn fits(line: &Value, field: &str, values: &[String]) -> bool {
    let (name, modifier) = field.split_once('|').unwrap_or((field, ""));
    let found = &line[name];
    let told = found
        .as_str()
        .map_or_else(|| found.to_string(), str::to_owned)
        .to_lowercase();
    !found.is_null()
        && values
            .iter()
            .map(|value| value.to_lowercase())
            .any(|value| match modifier {
                "" => told == value,
                "startswith" => told.starts_with(&value),
                "gte" => found.as_u64().unwrap() >= value.parse().unwrap(),
                other => panic!("`{other}` is not read"),
            })
}

#[test]
fn rules_are_whole_and_name_what_lines_have() {
    let rules = rules();
    assert!(rules.len() >= 8);
    let mut ids: Vec<&str> = Vec::new();
    for rule in &rules {
        let top = |key: &str| {
            rule.top
                .iter()
                .find(|(name, _)| name == key)
                .map_or("", |(_, value)| value.as_str())
        };
        for key in ["title", "description", "author"] {
            assert!(!top(key).is_empty(), "{}: no `{key}`", rule.name);
        }
        assert!(
            ["low", "medium", "high", "critical"].contains(&top("level"))
                && top("status") == "experimental",
            "{}",
            rule.name
        );
        assert!(
            top("title").len() <= 110
                && uuid::Uuid::parse_str(top("id")).is_ok_and(|id| id.get_version_num() == 4),
            "{}",
            rule.name
        );
        ids.push(top("id"));
        let list = |key: &str| {
            rule.lists
                .iter()
                .filter(|(name, _)| name == key)
                .map(|(_, item)| item.as_str())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            list("logsource"),
            ["product: lychgate", "service: audit"],
            "{}",
            rule.name
        );
        assert!(
            !list("falsepositives").is_empty()
                && list("tags").iter().all(|tag| tag.starts_with("attack.")),
            "{}",
            rule.name
        );
        let fields = rule
            .wants
            .iter()
            .map(|(_, _, field, _)| field.split('|').next().unwrap())
            .chain(list("fields"));
        for field in fields {
            assert!(
                !lines::SCHEMA["properties"][field].is_null(),
                "{}: `{field}` is in no audit line",
                rule.name
            );
        }
        for (_, _, field, values) in &rule.wants {
            let allowed = &lines::SCHEMA["properties"][field.as_str()]["enum"];
            for value in values.iter().filter(|_| allowed.is_array()) {
                assert!(
                    allowed.as_array().unwrap().iter().any(|one| one == value),
                    "{}: `{field}` is never `{value}`",
                    rule.name
                );
            }
        }
    }
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), rules.len(), "each has an id of its own");
}

/// The fixture has several lines for each rule: the first matches the rule, the others are similar
/// but do not.
#[test]
fn rules_match_what_they_are_for_and_nothing_else() {
    let fixture = include_str!("../snapshots/sigma.jsonl");
    for rule in rules() {
        let of: Vec<Value> = fixture
            .lines()
            .filter_map(|line| line.strip_prefix(&format!("{} ", rule.name)))
            .map(|line| {
                assert_eq!(lines::fault(line), None, "{line}");
                serde_json::from_str(line).unwrap()
            })
            .collect();
        assert!(of.len() >= 2, "{}: no lines in the fixture", rule.name);
        assert!(
            rule.matches(&of[0]),
            "{} does not match {}",
            rule.name,
            of[0]
        );
        for spared in &of[1..] {
            assert!(!rule.matches(spared), "{} matches {spared}", rule.name);
        }
    }
    assert_eq!(
        fixture
            .lines()
            .filter(|line| rules().iter().any(|rule| line.starts_with(&rule.name)))
            .count(),
        fixture.lines().count()
    );
}
