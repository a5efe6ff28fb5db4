//! Formats the results of a scan, for people and for programs.

use serde_json::{Value, json};

use super::judge::{Item, ScanFinding};
use super::{Report, Server, ServerReport};
use crate::cli::format_count;
use crate::inspect::definitions::Kind;
use crate::rules::Severity;

/// Maximum length of a name from a server that is shown, in characters.
const MAX_NAME_CHARACTERS: usize = 60;

/// Escapes text from a server for display on a terminal: characters that are not visible are shown
/// by their code point.
pub(in crate::cli) fn escape_text(text: &str, limit: usize) -> String {
    let mut out = String::new();
    for (count, c) in text.chars().enumerate() {
        if count == limit {
            out.push('…');
            break;
        }
        match c {
            c if c.is_alphanumeric() || (' '..='~').contains(&c) => out.push(c),
            c => out.extend(c.escape_unicode()),
        }
    }
    out
}

/// Formats the report for people.
pub(super) fn format_text(report: &Report, all: bool) -> String {
    let mut out = String::new();
    for server in &report.servers {
        format_server(server, all, &mut out);
    }
    out.push_str(&summary(report));
    out
}

fn format_server(server: &Server, all: bool, out: &mut String) {
    let observed = if server.observed {
        " (observe mode)"
    } else {
        ""
    };
    out.push_str(&format!(
        "{} · {} · policy {}{observed}\n",
        escape_text(&server.name, MAX_NAME_CHARACTERS),
        escape_text(&server.location, 200),
        server.policy
    ));
    let report = match &server.report {
        Ok(looked) => looked,
        Err(why) => {
            out.push_str(&format!("  not scanned: {}\n\n", why.replace('\n', "\n  ")));
            return;
        }
    };
    out.push_str(&format!(
        "  {}, MCP {}{}\n",
        format_counts(report),
        report.version,
        format_capabilities(report)
    ));
    for note in &report.notes {
        out.push_str(&format!("  incomplete: {note}\n"));
    }
    let items: Vec<&Item> = report
        .items
        .iter()
        .filter(|item| all || !item.findings.is_empty())
        .collect();
    if items.iter().any(|item| !item.findings.is_empty()) || all && !items.is_empty() {
        let width = items
            .iter()
            .map(|item| escape_text(&item.name, MAX_NAME_CHARACTERS).chars().count())
            .max()
            .unwrap_or(4)
            .max(4);
        out.push_str(&format!(
            "\n  {:<9} {:<width$}  {:<10}  {:<8}  {:<26}  {}\n",
            "KIND", "ITEM", "VERDICT", "SEVERITY", "RULE", "PLACE"
        ));
        for item in items {
            rows(item, width, all, out);
        }
    } else {
        let part = if report.notes.is_empty() {
            ""
        } else {
            " in the inspected part"
        };
        out.push_str(&format!("  nothing found{part}\n"));
    }
    out.push('\n');
}

/// Formats the rows of an item. Findings that would only be logged are counted, unless `all` is
/// set.
fn rows(item: &Item, width: usize, all: bool, out: &mut String) {
    let name = escape_text(&item.name, MAX_NAME_CHARACTERS);
    if item.findings.is_empty() {
        out.push_str(&format!("  {:<9} {name:<width$}  pass\n", item.kind.name()));
    }
    let (visible, logged): (Vec<&ScanFinding>, Vec<&ScanFinding>) =
        item.findings.iter().partition(|found| all || found.acts);
    for (index, found) in visible.iter().enumerate() {
        let (kind, name) = if index == 0 {
            (item.kind.name(), name.as_str())
        } else {
            ("", "")
        };
        let ScanFinding {
            rule,
            severity,
            verdict,
            place,
            title,
            ..
        } = found;
        out.push_str(&format!(
            "  {kind:<9} {name:<width$}  {verdict:<10}  {:<8}  {rule:<26}  {}\n  {:<9} {:<width$}  {title}\n",
            severity.name(),
            escape_text(place, 80),
            "",
            ""
        ));
    }
    if !logged.is_empty() {
        let (kind, name) = if visible.is_empty() {
            (item.kind.name(), name.as_str())
        } else {
            ("", "")
        };
        let more = if visible.is_empty() { "" } else { "more " };
        let count = format_count(logged.len(), &format!("{more}finding"));
        out.push_str(&format!(
            "  {kind:<9} {name:<width$}  log         {count} (`--all` shows them)\n"
        ));
    }
}

fn format_counts(report: &ServerReport) -> String {
    let number = |kind, what: &str| match report.count(kind) {
        0 => None,
        1 => Some(format!("1 {what}")),
        many => Some(format!("{many} {what}s")),
    };
    let kinds = [
        (Kind::Tool, "tool"),
        (Kind::Prompt, "prompt"),
        (Kind::Resource, "resource"),
        (Kind::Template, "template"),
    ];
    let all: Vec<String> = kinds
        .into_iter()
        .filter_map(|(kind, what)| number(kind, what))
        .collect();
    if all.is_empty() {
        "no items".to_owned()
    } else {
        all.join(", ")
    }
}

fn format_capabilities(report: &ServerReport) -> String {
    let names: Vec<String> = report
        .capabilities
        .iter()
        .map(|name| escape_text(name, 40))
        .collect();
    if names.is_empty() {
        String::new()
    } else {
        format!("; capabilities: {}", names.join(", "))
    }
}

fn summary(report: &Report) -> String {
    let reports: Vec<&ServerReport> = report
        .servers
        .iter()
        .filter_map(|server| server.report.as_ref().ok())
        .collect();
    let items = || reports.iter().flat_map(|looked| &looked.items);
    let acting: Vec<&Item> = items()
        .filter(|item| item.findings.iter().any(|found| found.acts))
        .collect();
    let worst = |severity: Severity| {
        let has_severity = |item: &&&Item| {
            item.findings
                .iter()
                .filter(|found| found.acts)
                .map(|found| found.severity)
                .max()
                == Some(severity)
        };
        acting.iter().filter(has_severity).count()
    };
    let mut summary = format!(
        "{} scanned, {}",
        format_count(reports.len(), "server"),
        format_count(items().count(), "item")
    );
    if acting.is_empty() {
        summary.push_str(": no findings that the gate would act on");
    } else {
        let counts = [
            Severity::Critical,
            Severity::High,
            Severity::Medium,
            Severity::Low,
        ]
        .map(|severity| (worst(severity), severity.name()));
        let parts: Vec<String> = counts
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, name)| format!("{count} {name}"))
            .collect();
        summary.push_str(&format!(
            ": the gate would act on {} ({})",
            acting.len(),
            parts.join(", ")
        ));
    }
    match report.servers.len() - reports.len() {
        0 => {}
        missing => summary.push_str(&format!(
            "; {} could not be scanned",
            format_count(missing, "server")
        )),
    }
    match reports
        .iter()
        .filter(|looked| !looked.notes.is_empty())
        .count()
    {
        0 => {}
        part => summary.push_str(&format!(
            "; {} only partially scanned",
            format_count(part, "server")
        )),
    }
    summary.push('\n');
    summary
}

/// Formats the report as one JSON document.
pub(super) fn format_json(report: &Report) -> String {
    let finding_json = |found: &ScanFinding| {
        json!({
            "rule": found.rule, "title": found.title, "why": found.why, "severity": found.severity.name(),
            "verdict": found.verdict, "acts": found.acts, "place": found.place, "reading": found.reading,
        })
    };
    let item_json = |item: &Item| {
        let all: Vec<Value> = item.findings.iter().map(finding_json).collect();
        json!({ "kind": item.kind.name(), "name": item.name, "found": all })
    };
    let server_json = |server: &Server| {
        let mut summary = json!({
            "name": server.name, "reached": server.location, "policy": server.policy,
            "mode": if server.observed { "observe" } else { "enforce" },
        });
        let more = match &server.report {
            Err(why) => json!({ "error": why }),
            Ok(looked) => json!({
                "protocol": looked.version,
                "capabilities": looked.capabilities,
                "incomplete": looked.notes,
                "items": looked.items.iter().map(item_json).collect::<Vec<Value>>(),
            }),
        };
        if let (Some(summary), Value::Object(more)) = (summary.as_object_mut(), more) {
            summary.extend(more);
        }
        summary
    };
    let servers: Vec<Value> = report.servers.iter().map(server_json).collect();
    format!(
        "{:#}\n",
        json!({ "ok": report.code() == 0, "servers": servers })
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_written_by_its_number() {
        assert_eq!(
            escape_text("a\x1b[2J\u{202e}b\nü", 80),
            "a\\u{1b}[2J\\u{202e}b\\u{a}ü"
        );
        assert_eq!(escape_text("abcdef", 3), "abc…");
    }
}
