use std::collections::BTreeSet;

use regex::Regex;

use super::*;
use crate::record::table::{METRICS, Values};

const ALL: [Verb; 3] = [Verb::Reference, Verb::Dashboard, Verb::Alerts];

fn deployed(name: &str) -> String {
    std::fs::read_to_string(format!("{}/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap_or_default()
}

/// Every query, with what it is of.
fn queries() -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    for row in panels::rows() {
        for panel in &row.panels {
            all.extend(panel.queries().map(|(expr, legend)| (format!("panel, legend `{legend}`"), expr.clone())));
        }
    }
    all.extend(panels::marks().into_iter().map(|(name, expr, ..)| (name.to_owned(), expr)));
    all.extend(panels::variables().into_iter().map(|variable| (variable.name.to_owned(), variable.values)));
    all.extend(alerts::records().into_iter().map(|record| (record.name.to_owned(), record.expr)));
    all.extend(alerts::alerts().into_iter().map(|alert| (alert.name.to_owned(), alert.expr)));
    all
}

/// `UPDATE=1 cargo test --lib cli::metrics` writes them anew.
#[test]
fn what_deploy_holds_is_what_the_table_makes() {
    let mut stale = Vec::new();
    for verb in ALL {
        let (name, made) = (verb.file(), verb.text().unwrap());
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(format!("{}/{name}", env!("CARGO_MANIFEST_DIR")), made).unwrap();
        } else if deployed(name) != made {
            stale.push(name);
        }
    }
    assert!(stale.is_empty(), "not what the code makes: {stale:?}; `UPDATE=1 cargo test --lib cli::metrics` writes them anew");
}

#[test]
fn every_metric_is_on_a_panel() {
    let shown: Vec<String> = queries().into_iter().filter(|(of, _)| of.starts_with("panel")).map(|(_, expr)| expr).collect();
    for metric in METRICS {
        let name = Regex::new(&format!(r"\b{metric}(?:_bucket)?\b")).unwrap();
        assert!(
            shown.iter().any(|expr| name.is_match(expr)),
            "`{metric}` is on no panel of the dashboard: add a line for it to `src/cli/metrics/panels.rs`, then run \
             `UPDATE=1 cargo test --lib cli::metrics`"
        );
    }
}

/// Names, labels and values of labels in a query are those of the table.
#[test]
fn queries_ask_for_what_there_is() {
    let name = Regex::new(r"\b(?:lychgate|process)_[a-z_]+").unwrap();
    let matcher = Regex::new(r#"([a-z_]+)(=~|!~|=|!=)"([^"]*)""#).unwrap();
    let by = Regex::new(r"(?:\bby \(|\bon \(|, )([a-z_, ]+)\)").unwrap();
    for (of, expr) in queries() {
        let mut labels: BTreeSet<&str> =
            BTreeSet::from(["job", "instance", "le", "alertname", "alertstate", "severity", "upstream"]);
        let mut used = Vec::new();
        for found in name.find_iter(&expr) {
            let bare = found.as_str().trim_end_matches("_bucket");
            let metric = METRICS.iter().find(|metric| metric.name == bare);
            let metric = metric.unwrap_or_else(|| panic!("{of}: no metric is called `{bare}`: {expr}"));
            labels.extend(metric.labels.iter().map(|label| label.name));
            used.push(metric);
        }
        for found in matcher.captures_iter(&expr) {
            let (label, value) = (&found[1], &found[3]);
            assert!(labels.contains(label), "{of}: no label is called `{label}`: {expr}");
            for metric in &used {
                let Some(Values::Fixed(words)) = metric.labels.iter().find(|known| known.name == label).map(|label| label.values)
                else {
                    continue;
                };
                for word in value.split('|') {
                    assert!(words.contains(&word), "{of}: `{label}` of `{metric}` never says `{word}`: {expr}");
                }
            }
        }
        for label in by.captures_iter(&expr).flat_map(|found| found[1].split(", ").map(str::to_owned).collect::<Vec<_>>()) {
            assert!(labels.contains(label.trim()), "{of}: no label is called `{label}`: {expr}");
        }
    }
}

#[test]
fn legends_and_annotations_name_labels_that_are_left() {
    let by = Regex::new(r"by \(([a-z_, ]+)\)").unwrap();
    let left = |expr: &str| -> BTreeSet<String> {
        by.captures_iter(expr).flat_map(|found| found[1].split(", ").map(str::to_owned).collect::<Vec<_>>()).collect()
    };
    let legend_label = Regex::new(r"\{\{([a-z_]+)\}\}").unwrap();
    for panel in panels::rows().iter().flat_map(|row| &row.panels) {
        for (expr, legend) in panel.queries() {
            for label in legend_label.captures_iter(legend) {
                assert!(left(expr).contains(&label[1]), "legend `{legend}` of `{expr}`");
            }
        }
    }
    let records: Vec<(&str, String)> = alerts::records().into_iter().map(|record| (record.name, record.expr)).collect();
    let annotation_label = Regex::new(r"\$labels\.([a-z_]+)").unwrap();
    for alert in alerts::alerts() {
        let mut expr = alert.expr.clone();
        expr.extend(records.iter().filter(|(name, _)| alert.expr.contains(name)).map(|(_, expr)| expr.as_str()));
        let mut labels = left(&expr);
        if expr.starts_with("up{") {
            labels.extend(["job".to_owned(), "instance".to_owned()]);
        }
        for text in [alert.summary, alert.description, alert.runbook] {
            for label in annotation_label.captures_iter(text) {
                assert!(labels.contains(&label[1]), "{}: `{}` is not left in `{expr}`", alert.name, &label[1]);
            }
        }
        assert!(alert.runbook.contains("Run `"), "{}: the runbook names no command", alert.name);
        assert!(matches!(alert.severity, "warning" | "critical"), "{}", alert.name);
    }
}

#[test]
fn every_panel_says_what_it_shows() {
    let titles: Vec<&str> = panels::rows().iter().flat_map(|row| row.panels.iter().map(panel::Panel::title)).collect();
    assert_eq!(titles.iter().collect::<BTreeSet<_>>().len(), titles.len(), "two panels of one title: {titles:?}");
    let made = panel::dashboard(&panels::rows(), &panels::variables(), &panels::marks());
    let shown = made["panels"].as_array().unwrap();
    for panel in shown.iter().filter(|panel| panel["type"] != "row") {
        assert!(panel["description"].as_str().unwrap().len() > 10, "{}", panel["title"]);
        let place = &panel["gridPos"];
        assert!(place["x"].as_u64().unwrap() + place["w"].as_u64().unwrap() <= 24, "{}", panel["title"]);
    }
}

/// Each alert is seen to fire, and seen not to.
#[test]
fn every_alert_has_cases_both_ways() {
    let cases = deployed("deploy/alerts_test.yml");
    for alert in alerts::alerts() {
        let name = alert.name;
        assert!(cases.contains(&format!("fires: {name}")), "deploy/alerts_test.yml: no case is called `fires: {name}`");
        assert!(cases.contains(&format!("spares: {name}")), "deploy/alerts_test.yml: no case is called `spares: {name}`");
    }
    let known = Regex::new(r"\bLychgate[A-Z][A-Za-z]+").unwrap();
    for name in known.find_iter(&cases) {
        assert!(alerts::alerts().iter().any(|alert| alert.name == name.as_str()), "no alert is called `{}`", name.as_str());
    }
    let metric = Regex::new(r"\b(?:lychgate|process)_[a-z_]+").unwrap();
    for name in metric.find_iter(&cases) {
        let bare = name.as_str().trim_end_matches("_bucket");
        assert!(METRICS.iter().any(|metric| metric.name == bare), "alerts_test.yml: no metric is called `{bare}`");
    }
}
