use std::collections::BTreeSet;

use regex::Regex;
use serde_json::Value;

use super::reference::alerts;
use super::*;
use crate::record::table::{METRICS, Values};

const REFERENCE: &str = "deploy/metrics.md";
const CASES: &str = include_str!("../../../deploy/alerts_test.yml");

fn dashboard() -> Value {
    serde_json::from_str(DASHBOARD).unwrap()
}

/// Returns the panels of the dashboard, without the rows that group them.
fn panels(dashboard: &Value) -> impl Iterator<Item = &Value> {
    dashboard["panels"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|panel| panel["type"] != "row")
}

/// Returns the queries of the panels, with their legends.
fn panel_queries() -> Vec<(String, String)> {
    let dashboard = dashboard();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let targets = panels(&dashboard).flat_map(|panel| panel["targets"].as_array().unwrap());
    targets
        .map(|target| (text(&target["expr"]), text(&target["legendFormat"])))
        .collect()
}

/// Returns the queries of recording rules and alerts, by name.
fn rule_queries() -> Vec<(&'static str, String)> {
    let rule = |rule: &'static str| {
        let (head, rest) = rule.split_once("expr: >-\n").unwrap();
        let lines = rest
            .lines()
            .take_while(|line| line.starts_with("          "));
        (
            head.trim(),
            lines.map(str::trim).collect::<Vec<_>>().join(" "),
        )
    };
    ALERTS
        .split("- record: ")
        .flat_map(|part| part.split("- alert: "))
        .skip(1)
        .map(rule)
        .collect()
}

/// Returns every query with its source.
fn queries() -> Vec<(String, String)> {
    let dashboard = dashboard();
    let listed = |key: &str| dashboard[key]["list"].as_array().unwrap().clone();
    let named = |entry: &Value, query: &Value| {
        (
            entry["name"].to_string(),
            query.as_str().unwrap_or_default().to_owned(),
        )
    };
    let mut all: Vec<(String, String)> = panel_queries()
        .into_iter()
        .map(|(expr, legend)| (format!("panel, legend `{legend}`"), expr))
        .collect();
    all.extend(
        listed("annotations")
            .iter()
            .map(|entry| named(entry, &entry["expr"])),
    );
    all.extend(
        listed("templating")
            .iter()
            .map(|entry| named(entry, &entry["definition"])),
    );
    all.extend(
        rule_queries()
            .into_iter()
            .map(|(name, expr)| (name.to_owned(), expr)),
    );
    all
}

/// `UPDATE=1 cargo test --lib cli::metrics` rewrites it.
#[test]
fn the_reference_is_current() {
    let file = format!("{}/{REFERENCE}", env!("CARGO_MANIFEST_DIR"));
    let page = reference::page(ALERTS).unwrap();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&file, &page).unwrap();
    }
    let deployed = std::fs::read_to_string(file).unwrap_or_default();
    assert!(
        deployed == page,
        "{REFERENCE} is stale: `UPDATE=1 cargo test --lib cli::metrics` rewrites it"
    );
}

#[test]
fn every_metric_is_on_a_panel() {
    let shown = panel_queries();
    for metric in METRICS {
        let name = Regex::new(&format!(r"\b{metric}(?:_bucket)?\b")).unwrap();
        assert!(
            shown.iter().any(|(expr, _)| name.is_match(expr)),
            "`{metric}` is on no panel: add one to deploy/grafana/lychgate.json"
        );
    }
}

/// The names, labels and label values in a query are those of the table.
#[test]
fn queries_match_the_table() {
    let name = Regex::new(r"\b(?:lychgate|process)_[a-z_]+").unwrap();
    let matcher = Regex::new(r#"([a-z_]+)(=~|!~|=|!=)"([^"]*)""#).unwrap();
    let by = Regex::new(r"(?:\bby \(|\bon \(|, )([a-z_, ]+)\)").unwrap();
    for (of, expr) in queries() {
        let mut labels: BTreeSet<&str> = BTreeSet::from([
            "job",
            "instance",
            "le",
            "alertname",
            "alertstate",
            "severity",
            "upstream",
        ]);
        let mut used = Vec::new();
        for found in name.find_iter(&expr) {
            let bare = found.as_str().trim_end_matches("_bucket");
            let metric = METRICS.iter().find(|metric| metric.name == bare);
            let metric = metric.unwrap_or_else(|| panic!("{of}: no metric `{bare}`: {expr}"));
            labels.extend(metric.labels.iter().map(|label| label.name));
            used.push(metric);
        }
        for found in matcher.captures_iter(&expr) {
            let label = &found[1];
            let value = &found[3];
            assert!(labels.contains(label), "{of}: no label `{label}`: {expr}");
            for metric in &used {
                let Some(Values::Fixed(words)) = metric
                    .labels
                    .iter()
                    .find(|known| known.name == label)
                    .map(|label| label.values)
                else {
                    continue;
                };
                for word in value.split('|') {
                    assert!(
                        words.contains(&word),
                        "{of}: `{label}` of `{metric}` has no value `{word}`: {expr}"
                    );
                }
            }
        }
        for label in by
            .captures_iter(&expr)
            .flat_map(|found| found[1].split(", ").map(str::to_owned).collect::<Vec<_>>())
        {
            assert!(
                labels.contains(label.trim()),
                "{of}: no label `{label}`: {expr}"
            );
        }
    }
}

#[test]
fn legends_and_annotations_use_labels_that_remain() {
    let by = Regex::new(r"by \(([a-z_, ]+)\)").unwrap();
    let left = |expr: &str| -> BTreeSet<String> {
        by.captures_iter(expr)
            .flat_map(|found| found[1].split(", ").map(str::to_owned).collect::<Vec<_>>())
            .collect()
    };
    let legend_label = Regex::new(r"\{\{([a-z_]+)\}\}").unwrap();
    for (expr, legend) in panel_queries() {
        for label in legend_label.captures_iter(&legend) {
            assert!(
                left(&expr).contains(&label[1]),
                "legend `{legend}` of `{expr}`"
            );
        }
    }
    let queries = rule_queries();
    let annotation_label = Regex::new(r"\$labels\.([a-z_]+)").unwrap();
    for alert in alerts(ALERTS) {
        let (_, own) = queries
            .iter()
            .find(|(name, _)| *name == alert.name)
            .unwrap();
        let mut expr = own.clone();
        expr.extend(
            queries
                .iter()
                .filter(|(name, _)| name.contains(':') && own.contains(name))
                .map(|(_, expr)| expr.as_str()),
        );
        let mut labels = left(&expr);
        if expr.starts_with("up{") {
            labels.extend(["job".to_owned(), "instance".to_owned()]);
        }
        for text in [&alert.summary, &alert.description, &alert.runbook] {
            assert!(!text.is_empty(), "{}: an annotation is missing", alert.name);
            for label in annotation_label.captures_iter(text) {
                assert!(
                    labels.contains(&label[1]),
                    "{}: `{}` is not left in `{expr}`",
                    alert.name,
                    &label[1]
                );
            }
        }
        assert!(
            alert.runbook.contains("Run `"),
            "{}: the runbook names no command",
            alert.name
        );
        assert!(
            matches!(alert.severity, "warning" | "critical"),
            "{}",
            alert.name
        );
    }
}

#[test]
fn every_panel_has_a_description_and_fits_the_grid() {
    let dashboard = dashboard();
    let titles: Vec<&str> = panels(&dashboard)
        .map(|panel| panel["title"].as_str().unwrap())
        .collect();
    assert_eq!(
        titles.iter().collect::<BTreeSet<_>>().len(),
        titles.len(),
        "two panels of one title: {titles:?}"
    );
    for panel in panels(&dashboard) {
        assert!(
            panel["description"].as_str().unwrap().len() > 10,
            "{}",
            panel["title"]
        );
        let place = &panel["gridPos"];
        assert!(
            place["x"].as_u64().unwrap() + place["w"].as_u64().unwrap() <= 24,
            "{}",
            panel["title"]
        );
    }
}

/// For each alert there is a case in which it fires and one in which it does not.
#[test]
fn every_alert_has_cases_both_ways() {
    let alerts = alerts(ALERTS);
    for alert in &alerts {
        for case in [
            format!("fires: {}", alert.name),
            format!("spares: {}", alert.name),
        ] {
            assert!(
                CASES.contains(&case),
                "deploy/alerts_test.yml: no case `{case}`"
            );
        }
    }
    let known = Regex::new(r"\bLychgate[A-Z][A-Za-z]+").unwrap();
    for name in known.find_iter(CASES) {
        assert!(
            alerts.iter().any(|alert| alert.name == name.as_str()),
            "no alert `{}`",
            name.as_str()
        );
    }
    let metric = Regex::new(r"\b(?:lychgate|process)_[a-z_]+").unwrap();
    for name in metric.find_iter(CASES) {
        let bare = name.as_str().trim_end_matches("_bucket");
        assert!(
            METRICS.iter().any(|metric| metric.name == bare),
            "alerts_test.yml: no metric `{bare}`"
        );
    }
}
