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
    for (_, _, finding) in all_findings(report) {
        rules.entry(&finding.rule).or_insert(finding);
    }
    let index: BTreeMap<&str, usize> = rules
        .keys()
        .enumerate()
        .map(|(index, rule)| (*rule, index))
        .collect();
    let results: Vec<Value> = all_findings(report)
        .map(|(server, item, found)| result(server, item, found, &index))
        .collect();
    let notifications: Vec<Value> = report
        .servers
        .iter()
        .flat_map(|server| match &server.report {
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
        "invocations": [{ "executionSuccessful": notifications.is_empty(), "toolExecutionNotifications": notifications }],
        "results": results,
    });
    format!(
        "{:#}\n",
        json!({ "$schema": SCHEMA, "version": "2.1.0", "runs": [run] })
    )
}

fn all_findings(report: &Report) -> impl Iterator<Item = (&Server, &Item, &ScanFinding)> {
    report.servers.iter().flat_map(|server| {
        let items = server.report.iter().flat_map(|looked| &looked.items);
        items.flat_map(move |item| item.findings.iter().map(move |found| (server, item, found)))
    })
}

fn rule(finding: &ScanFinding) -> Value {
    let mut rule = json!({
        "id": finding.rule,
        "shortDescription": { "text": finding.title },
        "fullDescription": { "text": if finding.why.is_empty() { &finding.title } else { &finding.why } },
        "help": { "text": help(finding) },
        "defaultConfiguration": { "level": level(finding.severity) },
        "properties": { "security-severity": score(finding.severity), "tags": ["security", "mcp"] },
    });
    if let (Some(reference), Some(rule)) = (
        finding
            .references
            .iter()
            .find(|at| at.starts_with("https://")),
        rule.as_object_mut(),
    ) {
        rule.insert("helpUri".to_owned(), reference.as_str().into());
    }
    rule
}

fn help(finding: &ScanFinding) -> String {
    let mut text = format!("{}.", finding.title);
    if !finding.why.is_empty() {
        text.push_str(&format!(" {}", finding.why));
    }
    if !finding.references.is_empty() {
        text.push_str(&format!("\n\nSee {}", finding.references.join(", ")));
    }
    text
}

fn result(
    server: &Server,
    item: &Item,
    finding: &ScanFinding,
    index: &BTreeMap<&str, usize>,
) -> Value {
    let kind = item.kind.name();
    let name = &item.name;
    let qualified = format!("{}/{kind}/{name}{}", server.name, finding.place);
    let text = format!(
        "{} in the {kind} `{name}` of the MCP server `{}`, at {}. The gate's verdict by policy `{}`: {}.",
        finding.title, server.name, finding.place, server.policy, finding.verdict
    );
    let (file, line) = match &server.source {
        Some((file, line)) => (relative(&file.display().to_string()), *line),
        None => ("lychgate.toml".to_owned(), 1),
    };
    // A finding keeps its fingerprint if lines move or the surrounding text changes.
    let digest = Sha256::digest(format!("{}\n{qualified}", finding.rule).as_bytes());
    let fingerprint = hex(digest.get(..16).unwrap_or_default());
    json!({
        "ruleId": finding.rule,
        "ruleIndex": index.get(finding.rule.as_str()).copied().unwrap_or(0),
        "level": if finding.acts { level(finding.severity) } else { "note" },
        "kind": "fail",
        "message": { "text": text },
        "locations": [{
            "physicalLocation": { "artifactLocation": { "uri": file }, "region": { "startLine": line } },
            "logicalLocations": [{ "name": name, "fullyQualifiedName": qualified, "kind": "object" }],
        }],
        "partialFingerprints": { "primaryLocationLineHash": fingerprint },
        "properties": {
            "server": server.name, "item": name, "itemKind": kind, "place": finding.place, "severity": finding.severity.name(),
            "verdict": finding.verdict, "reading": finding.reading,
        },
    })
}

/// Returns a path as a URI, relative to the current folder if it is inside it.
fn relative(path: &str) -> String {
    let folder = std::env::current_dir()
        .map(|folder| format!("{}/", folder.display()))
        .unwrap_or_default();
    let relative_path = path.strip_prefix(folder.as_str()).unwrap_or(path);
    let relative_path = relative_path.strip_prefix("./").unwrap_or(relative_path);
    let mut uri = if relative_path.starts_with('/') {
        "file://".to_owned()
    } else {
        String::new()
    };
    for byte in relative_path.bytes() {
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
