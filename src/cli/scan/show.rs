//! Formats the results of a scan, for people and for programs.

use serde_json::{Value, json};

use super::judge::{Item, ScanFinding};
use super::{Report, Server, ServerReport};
use crate::inspect::definitions::Kind;
use crate::rules::Severity;

/// Maximum length of a name from a server that is shown, in characters.
const NAME: usize = 60;

/// Escapes text from a server for display on a terminal: characters that are not visible are shown
/// by their code point.
pub(in crate::cli) fn plain(text: &str, most: usize) -> String {
    let mut out = String::new();
    for (count, c) in text.chars().enumerate() {
        if count == most {
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
pub(super) fn text(report: &Report, all: bool) -> String {
    let mut out = String::new();
    for server in &report.servers {
        one(server, all, &mut out);
    }
    out.push_str(&summary(report));
    out
}

fn one(server: &Server, all: bool, out: &mut String) {
    let observed = if server.observed {
        " (observe mode)"
    } else {
        ""
    };
    out.push_str(&format!(
        "{} · {} · policy {}{observed}\n",
        plain(&server.name, NAME),
        plain(&server.reached, 200),
        server.policy
    ));
    let looked = match &server.looked {
        Ok(looked) => looked,
        Err(why) => {
            out.push_str(&format!("  not scanned: {}\n\n", why.replace('\n', "\n  ")));
            return;
        }
    };
    out.push_str(&format!(
        "  {}, MCP {}{}\n",
        counted(looked),
        looked.version,
        offers(looked)
    ));
    for note in &looked.notes {
        out.push_str(&format!("  incomplete: {note}\n"));
    }
    let shown: Vec<&Item> = looked
        .items
        .iter()
        .filter(|item| all || !item.found.is_empty())
        .collect();
    if shown.iter().any(|item| !item.found.is_empty()) || all && !shown.is_empty() {
        let width = shown
            .iter()
            .map(|item| plain(&item.name, NAME).chars().count())
            .max()
            .unwrap_or(4)
            .max(4);
        out.push_str(&format!(
            "\n  {:<9} {:<width$}  {:<10}  {:<8}  {:<26}  {}\n",
            "KIND", "ITEM", "VERDICT", "SEVERITY", "RULE", "PLACE"
        ));
        for item in shown {
            rows(item, width, all, out);
        }
    } else {
        let part = if looked.notes.is_empty() {
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
    let name = plain(&item.name, NAME);
    if item.found.is_empty() {
        out.push_str(&format!("  {:<9} {name:<width$}  pass\n", item.kind.name()));
    }
    let (shown, noted): (Vec<&ScanFinding>, Vec<&ScanFinding>) =
        item.found.iter().partition(|found| all || found.acts);
    for (index, found) in shown.iter().enumerate() {
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
            plain(place, 80),
            "",
            ""
        ));
    }
    if !noted.is_empty() {
        let (kind, name) = if shown.is_empty() {
            (item.kind.name(), name.as_str())
        } else {
            ("", "")
        };
        let more = if shown.is_empty() { "" } else { "more " };
        let things = if noted.len() == 1 {
            "finding"
        } else {
            "findings"
        };
        out.push_str(&format!(
            "  {kind:<9} {name:<width$}  log         {} {more}{things} (`--all` shows them)\n",
            noted.len()
        ));
    }
}

fn counted(looked: &ServerReport) -> String {
    let number = |kind, what: &str| match looked.count(kind) {
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

fn offers(looked: &ServerReport) -> String {
    let names: Vec<String> = looked
        .capabilities
        .iter()
        .map(|name| plain(name, 40))
        .collect();
    if names.is_empty() {
        String::new()
    } else {
        format!("; capabilities: {}", names.join(", "))
    }
}

fn summary(report: &Report) -> String {
    let looked: Vec<&ServerReport> = report
        .servers
        .iter()
        .filter_map(|server| server.looked.as_ref().ok())
        .collect();
    let items = || looked.iter().flat_map(|looked| &looked.items);
    let acting: Vec<&Item> = items()
        .filter(|item| item.found.iter().any(|found| found.acts))
        .collect();
    let worst = |severity: Severity| {
        let of = |item: &&&Item| {
            item.found
                .iter()
                .filter(|found| found.acts)
                .map(|found| found.severity)
                .max()
                == Some(severity)
        };
        acting.iter().filter(of).count()
    };
    let mut summary = format!(
        "{} scanned, {}",
        number(looked.len(), "server"),
        number(items().count(), "item")
    );
    if acting.is_empty() {
        summary.push_str(": no findings that the gate would act on");
    } else {
        let named = [
            Severity::Critical,
            Severity::High,
            Severity::Medium,
            Severity::Low,
        ]
        .map(|severity| (worst(severity), severity.name()));
        let by: Vec<String> = named
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, name)| format!("{count} {name}"))
            .collect();
        summary.push_str(&format!(
            ": the gate would act on {} ({})",
            acting.len(),
            by.join(", ")
        ));
    }
    match report.servers.len() - looked.len() {
        0 => {}
        missing => summary.push_str(&format!(
            "; {} could not be scanned",
            number(missing, "server")
        )),
    }
    match looked
        .iter()
        .filter(|looked| !looked.notes.is_empty())
        .count()
    {
        0 => {}
        part => summary.push_str(&format!(
            "; {} only partially scanned",
            number(part, "server")
        )),
    }
    summary.push('\n');
    summary
}

fn number(count: usize, what: &str) -> String {
    if count == 1 {
        format!("1 {what}")
    } else {
        format!("{count} {what}s")
    }
}

/// Formats the report as one JSON document.
pub(super) fn json(report: &Report) -> String {
    let found = |found: &ScanFinding| {
        json!({
            "rule": found.rule, "title": found.title, "why": found.why, "severity": found.severity.name(),
            "verdict": found.verdict, "acts": found.acts, "place": found.place, "reading": found.reading,
        })
    };
    let item = |item: &Item| {
        let all: Vec<Value> = item.found.iter().map(found).collect();
        json!({ "kind": item.kind.name(), "name": item.name, "found": all })
    };
    let server = |server: &Server| {
        let mut summary = json!({
            "name": server.name, "reached": server.reached, "policy": server.policy,
            "mode": if server.observed { "observe" } else { "enforce" },
        });
        let more = match &server.looked {
            Err(why) => json!({ "error": why }),
            Ok(looked) => json!({
                "protocol": looked.version,
                "capabilities": looked.capabilities,
                "incomplete": looked.notes,
                "items": looked.items.iter().map(item).collect::<Vec<Value>>(),
            }),
        };
        if let (Some(summary), Value::Object(more)) = (summary.as_object_mut(), more) {
            summary.extend(more);
        }
        summary
    };
    let servers: Vec<Value> = report.servers.iter().map(server).collect();
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
            plain("a\x1b[2J\u{202e}b\nü", 80),
            "a\\u{1b}[2J\\u{202e}b\\u{a}ü"
        );
        assert_eq!(plain("abcdef", 3), "abc…");
    }
}
