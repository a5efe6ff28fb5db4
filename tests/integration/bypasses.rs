//! What `rules/bypasses.md` lists as caught is caught, and what it lists as passing passes.

use super::harness::lychgate;
use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

const PAGE: &str = include_str!("../../rules/bypasses.md");

/// The beginning of the heading above the rows with text from servers.
const INBOUND: &str = "Orders from a server";

struct Row {
    record: Value,
    caught: bool,
}

/// Parses a row of a table: a form, an example in backticks, a verdict, a reason. The heading above
/// the table names tool and argument, or neither where the example is text from a server.
fn row(line: &str, tool: &str, argument: &str) -> Option<Row> {
    let line = line.strip_prefix("| ")?.replace("\\|", "\u{1}");
    let cells: Vec<&str> = line.split('|').map(str::trim).collect();
    let [_, example, verdict, ..] = cells.as_slice() else {
        return None;
    };
    let caught = match *verdict {
        "caught" => true,
        "passes" => false,
        _ => return None,
    };
    let text = example
        .trim_matches('`')
        .trim()
        .replace('\u{1}', "|")
        .replace('⏎', "\n")
        .replace("\\u000d", "\r");
    let record = if tool.is_empty() {
        json!({ "id": "", "format": "text", "text": text })
    } else {
        json!({ "id": "", "tool_name": tool, "arguments": { argument: text }, "allowed_roots": ["/srv/project"] })
    };
    Some(Row { record, caught })
}

/// Returns the rows of one direction.
fn rows(inbound: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut place = ("", "");
    let mut from_server = false;
    for line in PAGE.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            from_server = heading.starts_with(INBOUND);
            place = heading
                .rsplit('`')
                .nth(1)
                .and_then(|name| name.split_once('.'))
                .unwrap_or_default();
        }
        if from_server == inbound {
            rows.extend(row(line, place.0, place.1));
        }
    }
    for (number, row) in rows.iter_mut().enumerate() {
        row.record["id"] = json!(number);
    }
    rows
}

#[test]
fn every_row_of_the_page_holds() {
    let rows = rows(false);
    assert!(
        rows.len() > 55 && rows.iter().any(|row| !row.caught),
        "{} rows",
        rows.len()
    );
    check("outbound", &rows);
}

#[test]
fn every_row_about_text_from_servers_holds() {
    let rows = rows(true);
    assert!(
        rows.len() > 20 && rows.iter().any(|row| !row.caught),
        "{} rows",
        rows.len()
    );
    check("inbound", &rows);
}

fn check(direction: &str, rows: &[Row]) {
    let mut inspect = lychgate()
        .args(["inspect", "--direction", direction, "--jsonl", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines: Vec<String> = rows.iter().map(|row| row.record.to_string()).collect();
    inspect
        .stdin
        .take()
        .unwrap()
        .write_all(lines.join("\n").as_bytes())
        .unwrap();
    let told = inspect.wait_with_output().unwrap().stdout;
    let told: Vec<Value> = told
        .split(|b| *b == b'\n')
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect();
    assert_eq!(told.len(), rows.len());
    let wrong: Vec<String> = rows
        .iter()
        .zip(&told)
        .filter(|(row, told)| row.caught == (told["verdict"] == "pass"))
        .map(|(row, told)| format!("{} came out as {}", row.record, told["verdict"]))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}
