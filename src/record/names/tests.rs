#![allow(clippy::disallowed_types, reason = "the schema is JSON")]

use std::collections::BTreeSet;

use serde_json::Value;

use super::ALL;

#[path = "../../../tests/integration/lines.rs"]
#[allow(dead_code, reason = "some of it is for the tests of whole gates")]
pub(in crate::record) mod lines;

/// Every table of members in the schema.
fn tables(value: &Value, found: &mut Vec<(String, Value)>) {
    if let Some(object) = value.as_object() {
        for (key, value) in object {
            match value.as_object() {
                Some(members) if key == "properties" && object.get("description").is_some() && object.contains_key("type") => {
                    found.extend(members.iter().map(|(name, member)| (name.clone(), member.clone())));
                    members.values().for_each(|member| tables(member, found));
                }
                _ => tables(value, found),
            }
        }
    }
}

#[test]
fn the_schema_describes_every_name_and_no_other() {
    let mut members = Vec::new();
    tables(&lines::SCHEMA, &mut members);
    let named: BTreeSet<&str> = ALL.iter().copied().collect();
    let described: BTreeSet<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(named.len(), ALL.len(), "no name twice");
    let missing: Vec<_> = named.difference(&described).collect();
    assert!(missing.is_empty(), "in `record/names.rs` and not in `deploy/audit.schema.json`: {missing:?}");
    let unnamed: Vec<_> = described.difference(&named).collect();
    assert!(unnamed.is_empty(), "in `deploy/audit.schema.json` and not in `record/names.rs`: {unnamed:?}");
    for (name, member) in &members {
        for word in ["description", "x-name-from"] {
            assert!(member[word].as_str().is_some_and(|text| !text.is_empty()), "`{name}` has no `{word}` in the schema");
        }
    }
}

#[test]
fn every_event_says_what_it_is_and_which_members_it_has() {
    let schema = &*lines::SCHEMA;
    let mut used = BTreeSet::new();
    let events = schema["properties"]["event"]["enum"].as_array().unwrap();
    for event in events {
        let event = event.as_str().unwrap();
        let told = &schema["$defs"][event];
        assert!(told["description"].as_str().is_some_and(|text| text.contains("OCSF class: ")), "`{event}`");
        let members = told["propertyNames"]["enum"].as_array().unwrap_or_else(|| panic!("`{event}` lists no members"));
        for member in members.iter().chain(told["required"].as_array().unwrap()) {
            let member = member.as_str().unwrap();
            assert!(!schema["properties"][member].is_null(), "`{event}` has `{member}`, which is not described");
            assert!(members.iter().any(|one| one == member), "`{event}` requires `{member}`, which it does not have");
            used.insert(member.to_owned());
        }
        let applied = schema["allOf"].as_array().unwrap().iter().any(|one| one["then"]["$ref"] == format!("#/$defs/{event}"));
        assert!(applied, "`{event}` is not in `allOf`");
    }
    let members = schema["properties"].as_object().unwrap();
    let unused: Vec<_> = members.keys().filter(|member| !used.contains(*member)).collect();
    assert!(unused.is_empty(), "no event has {unused:?}");
}

#[test]
fn a_line_that_is_not_as_described_is_told_apart() {
    let line =
        include_str!("../../../tests/snapshots/audit.jsonl").lines().next().unwrap().replace("TIME", "2026-11-22T10:00:00.000Z");
    assert_eq!(lines::fault(&line), None);
    for (old, new, told) in [
        (r#""event":"judged""#, r#""event":"joked""#, "the event `joked` is not in"),
        (r#""era""#, r#""epoch""#, "the event `judged` has no member `epoch`"),
        (r#""clean":false"#, r#""clean":true"#, "findings"),
        (r#""coverage":"full""#, r#""coverage":"partial""#, "uninspected"),
        (r#""bytes":164"#, r#""bytes":"164""#, "/bytes"),
        (r#""reading":"raw","#, "", "reading"),
        (r#""mode":"enforce""#, r#""mode":"observe""#, "would"),
    ] {
        let changed = line.replacen(old, new, 1);
        assert_ne!(changed, line);
        let fault = lines::fault(&changed).unwrap_or_else(|| panic!("{new} is taken"));
        assert!(fault.contains(told), "{new}: {fault}");
    }
}

#[test]
fn the_schema_lists_every_reason_for_not_looking() {
    let listed = lines::SCHEMA["$defs"]["uninspected"]["properties"]["reason"]["enum"].as_array().unwrap();
    let listed: Vec<&str> = listed.iter().map(|reason| reason.as_str().unwrap()).collect();
    assert_eq!(listed, crate::inspect::Unread::WORDS.map(|(word, _)| word));
}
