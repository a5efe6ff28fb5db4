//! The report as SARIF 2.1.0 (OASIS), as accepted by GitHub code scanning. Each result has a place
//! in a file, which is the config, and a logical one, which is the item.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::judge::{Item, ScanFinding};
use super::{Report, Server};
use crate::message::hex;
use crate::rules::Severity;

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// Returns the SARIF document.
pub(super) fn document(report: &Report) -> String {
    let mut rules: BTreeMap<&str, &ScanFinding> = BTreeMap::new();
    for (_, _, found) in all(report) {
        rules.entry(&found.rule).or_insert(found);
    }
    let index: BTreeMap<&str, usize> = rules
        .keys()
        .enumerate()
        .map(|(index, rule)| (*rule, index))
        .collect();
    let results: Vec<Value> = all(report)
        .map(|(server, item, found)| result(server, item, found, &index))
        .collect();
    let failed: Vec<Value> = report
        .servers
        .iter()
        .flat_map(|server| match &server.looked {
            Ok(looked) => looked
                .notes
                .iter()
                .map(|why| format!("`{}` was only partially inspected: {why}", server.name))
                .collect(),
            Err(why) => vec![format!("`{}` could not be inspected: {why}", server.name)],
        })
        .map(|text| json!({ "level": "error", "message": { "text": text } }))
        .collect();
    let run = json!({
        "tool": { "driver": {
            "name": "lychgate",
            "version": env!("CARGO_PKG_VERSION"),
            "semanticVersion": env!("CARGO_PKG_VERSION"),
            "rules": rules.values().map(|found| rule(found)).collect::<Vec<Value>>(),
        }},
        "columnKind": "unicodeCodePoints",
        "invocations": [{ "executionSuccessful": failed.is_empty(), "toolExecutionNotifications": failed }],
        "results": results,
    });
    format!(
        "{:#}\n",
        json!({ "$schema": SCHEMA, "version": "2.1.0", "runs": [run] })
    )
}

fn all(report: &Report) -> impl Iterator<Item = (&Server, &Item, &ScanFinding)> {
    report.servers.iter().flat_map(|server| {
        let items = server.looked.iter().flat_map(|looked| &looked.items);
        items.flat_map(move |item| item.found.iter().map(move |found| (server, item, found)))
    })
}

fn rule(found: &ScanFinding) -> Value {
    let mut rule = json!({
        "id": found.rule,
        "shortDescription": { "text": found.title },
        "fullDescription": { "text": if found.why.is_empty() { &found.title } else { &found.why } },
        "help": { "text": help(found) },
        "defaultConfiguration": { "level": level(found.severity) },
        "properties": { "security-severity": score(found.severity), "tags": ["security", "mcp"] },
    });
    if let (Some(reference), Some(rule)) = (
        found
            .references
            .iter()
            .find(|at| at.starts_with("https://")),
        rule.as_object_mut(),
    ) {
        rule.insert("helpUri".to_owned(), reference.as_str().into());
    }
    rule
}

fn help(found: &ScanFinding) -> String {
    let mut text = format!("{}.", found.title);
    if !found.why.is_empty() {
        text.push_str(&format!(" {}", found.why));
    }
    if !found.references.is_empty() {
        text.push_str(&format!("\n\nSee {}", found.references.join(", ")));
    }
    text
}

fn result(
    server: &Server,
    item: &Item,
    found: &ScanFinding,
    index: &BTreeMap<&str, usize>,
) -> Value {
    let kind = item.kind.name();
    let name = &item.name;
    let qualified = format!("{}/{kind}/{name}{}", server.name, found.place);
    let text = format!(
        "{} in the {kind} `{name}` of the MCP server `{}`, at {}. The gate's verdict by policy `{}`: {}.",
        found.title, server.name, found.place, server.policy, found.verdict
    );
    let (file, line) = match &server.stands {
        Some((file, line)) => (relative(&file.display().to_string()), *line),
        None => ("lychgate.toml".to_owned(), 1),
    };
    // A finding keeps its fingerprint if lines move or the surrounding text changes.
    let digest = Sha256::digest(format!("{}\n{qualified}", found.rule).as_bytes());
    let fingerprint = hex(digest.get(..16).unwrap_or_default());
    json!({
        "ruleId": found.rule,
        "ruleIndex": index.get(found.rule.as_str()).copied().unwrap_or(0),
        "level": if found.acts { level(found.severity) } else { "note" },
        "kind": "fail",
        "message": { "text": text },
        "locations": [{
            "physicalLocation": { "artifactLocation": { "uri": file }, "region": { "startLine": line } },
            "logicalLocations": [{ "name": name, "fullyQualifiedName": qualified, "kind": "object" }],
        }],
        "partialFingerprints": { "primaryLocationLineHash": fingerprint },
        "properties": {
            "server": server.name, "item": name, "itemKind": kind, "place": found.place, "severity": found.severity.name(),
            "verdict": found.verdict, "reading": found.reading,
        },
    })
}

/// Returns a path as a URI, relative to the current folder if it is inside it.
fn relative(path: &str) -> String {
    let folder = std::env::current_dir()
        .map(|folder| format!("{}/", folder.display()))
        .unwrap_or_default();
    let below = path.strip_prefix(folder.as_str()).unwrap_or(path);
    let below = below.strip_prefix("./").unwrap_or(below);
    let mut uri = if below.starts_with('/') {
        "file://".to_owned()
    } else {
        String::new()
    };
    for byte in below.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(char::from(byte))
            }
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical | Severity::High => "error",
        Severity::Medium => "warning",
        _ => "note",
    }
}

/// Returns the score by which GitHub sorts: above 9 critical, 7 high, 4 medium.
fn score(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "9.5",
        Severity::High => "8.0",
        Severity::Medium => "5.5",
        _ => "3.0",
    }
}
