use std::collections::HashMap;

use super::*;
use crate::record::table::METRICS;
use prometheus::{Encoder, TextEncoder};

/// Number of distinct made-up values.
const FLOOD: usize = 100_000;

fn hostile(number: usize) -> String {
    match number % 8 {
        0 => format!("tool-{number}"),
        1 => format!("{}{number}", "a".repeat(4096)),
        2 => format!("two\nlines {number}"),
        3 => format!("\"}} 1\nlychgate_rules{{x=\"{number}"),
        4 => format!("\\{number}\\"),
        5 => format!("\u{fffd}\u{202e}{number}\0"),
        6 => format!("wörter/{number}"),
        _ => format!("ns/{number}.x"),
    }
}

/// Parses text in the exposition format into its series and their values; panics if it is invalid.
fn parsed(text: &str) -> HashMap<String, f64> {
    let mut series = HashMap::new();
    for line in text.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            assert!(
                comment.starts_with("HELP ") || comment.starts_with("TYPE "),
                "{line}"
            );
            continue;
        }
        let (key, value) = line.rsplit_once(' ').unwrap();
        let name_end = key.find('{').unwrap_or(key.len());
        let (name, labels) = key.split_at(name_end);
        assert!(
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'),
            "{line}"
        );
        if let Some(inner) = labels.strip_prefix('{') {
            let mut rest = inner.strip_suffix('}').unwrap();
            while !rest.is_empty() {
                let (label, after) = rest.split_once("=\"").unwrap();
                assert!(
                    label.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'),
                    "{line}"
                );
                let mut escaped = false;
                let end = after.char_indices().find(|(_, c)| {
                    let ends = *c == '"' && !escaped;
                    escaped = *c == '\\' && !escaped;
                    ends
                });
                let (value, after) = after.split_at(end.unwrap().0);
                assert!(
                    value.len() <= 2 * MAX_VALUE_BYTES && !value.chars().any(char::is_control),
                    "{line}"
                );
                let behind = after.get(1..).unwrap();
                rest = behind.strip_prefix(',').unwrap_or(behind);
            }
        }
        assert!(
            series
                .insert(key.to_owned(), value.parse().unwrap())
                .is_none(),
            "twice: {key}"
        );
    }
    series
}

fn text(made: &Maker) -> String {
    let mut out = Vec::new();
    TextEncoder::new()
        .encode(&made.registry.gather(), &mut out)
        .unwrap();
    String::from_utf8(out).unwrap()
}

/// Returns the first permitted value of each label, except for the label `changed`.
fn values<'v>(metric: &Metric, changed: &str, value: &'v str) -> Vec<&'v str> {
    let value_of = |label: &Label| match label.values {
        _ if label.name == changed => value,
        Values::Fixed(words) => words[0],
        Values::Named(..) | Values::Given(..) => "steady",
    };
    metric.labels.iter().map(value_of).collect()
}

/// Increments the counter with these label values.
type CountFn = Box<dyn Fn(&[&str])>;

#[test]
fn no_label_follows_a_flood() {
    for metric in METRICS {
        for label in metric.labels {
            let made = Maker::new().unwrap();
            if metric.name == table::LABELS_CAPPED.name {
                continue;
            }
            let (flood, most) = match label.values {
                Values::Fixed(words) => (1000, words.len()),
                Values::Named(_, most) => (2 * most, most),
                Values::Given(_, most) => (FLOOD, most),
            };
            let with: CountFn = match metric.kind {
                Kind::Counter => {
                    let family = made.counters(*metric).unwrap();
                    Box::new(move |values| family.with(values).inc())
                }
                Kind::Gauge => {
                    let family = made.gauges(*metric).unwrap();
                    Box::new(move |values| family.with(values).set(1))
                }
                Kind::Histogram(_) => {
                    let family = made.histograms(*metric).unwrap();
                    Box::new(move |values| family.with(values).observe(0.1))
                }
            };
            for number in 0..flood {
                with(&values(metric, label.name, &hostile(number)));
            }
            let text = text(&made);
            let series = parsed(&text);
            let of_one = match metric.kind {
                Kind::Histogram(bounds) => bounds.len() + 3,
                Kind::Counter | Kind::Gauge => 1,
            };
            let counted = series
                .keys()
                .filter(|key| key.starts_with(metric.name))
                .count();
            assert!(
                counted <= (most + 2) * of_one,
                "{metric}, {}: {counted} series",
                label.name
            );
            assert!(
                text.len() < 2_000_000,
                "{metric}, {}: {} bytes",
                label.name,
                text.len()
            );
            assert!(
                text.contains(&format!("{}=\"{OTHER}\"", label.name)),
                "{metric}, {}",
                label.name
            );
            let capped = format!(
                "{}{{label=\"{}\",metric=\"{metric}\"}}",
                table::LABELS_CAPPED,
                label.name
            );
            assert!(
                series[&capped] >= (flood - most) as f64 * 0.5,
                "{metric}, {}: {}",
                label.name,
                series[&capped]
            );
        }
    }
}

#[test]
fn a_name_that_may_be_a_secret_is_no_label() {
    let made = Maker::new().unwrap();
    let family = made.counters(table::COMMANDS_BLOCKED).unwrap();
    let key = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
    let hex = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b";
    for tool in [
        key,
        hex,
        key,
        "create_issue",
        "list-pull-requests_v2",
        "ns/Read.file2",
    ] {
        family.with(&["up", tool, "rule"]).inc();
    }
    let text = text(&made);
    assert!(!text.contains(key) && !text.contains(hex), "{text}");
    assert_contains!(text, r#"rule="rule",tool="other",upstream="up"} 3"#);
    for tool in ["create_issue", "list-pull-requests_v2", "ns/Read.file2"] {
        assert!(text.contains(&format!("tool=\"{tool}\"")), "{text}");
    }
}

/// Even with many servers that each have many tools which trigger many rules, the total is limited.
#[test]
fn series_have_a_bound_of_their_own() {
    let made = Maker::new().unwrap();
    let blocked = made.counters(table::COMMANDS_BLOCKED).unwrap();
    for number in 0..3 * GIVEN_SERIES {
        let tool = format!("tool-{}", number % 400);
        let rule = format!("rule-{}", number % 401);
        blocked.with(&["up", &tool, &rule]).inc();
    }
    let series = parsed(&text(&made));
    let of = |tool: &str| {
        series
            .iter()
            .filter(|(key, _)| key.contains("blocked_total{") && key.contains(tool))
            .collect::<Vec<_>>()
    };
    assert_eq!(of("tool=\"tool-").len(), GIVEN_SERIES);
    assert!(of("tool=\"other\"").len() <= 401);
    let sum: f64 = of("tool=").iter().map(|(_, value)| **value).sum();
    assert_eq!(
        sum,
        3.0 * GIVEN_SERIES as f64,
        "what is capped still counts"
    );
}

#[test]
fn a_server_cannot_use_up_the_names_of_another() {
    let made = Maker::new().unwrap();
    let blocked = made.counters(table::COMMANDS_BLOCKED).unwrap();
    (0..2000).for_each(|number| blocked.with(&["hostile", &format!("t{number}"), "r"]).inc());
    blocked.with(&["honest", "read_file", "r"]).inc();
    assert!(parsed(&text(&made)).contains_key(
        "lychgate_commands_blocked_total{rule=\"r\",tool=\"read_file\",upstream=\"honest\"}"
    ));
}

#[test]
fn fixed_words_are_those_of_the_code() {
    let words = |metric: Metric, name: &str| match metric
        .labels
        .iter()
        .find(|label| label.name == name)
        .unwrap()
        .values
    {
        Values::Fixed(words) => words.to_vec(),
        Values::Named(..) | Values::Given(..) => panic!("{name} has no fixed words"),
    };
    assert_eq!(
        words(table::INJECTIONS, "surface"),
        crate::detect::Surface::NAMES
    );
    let actions = [
        &crate::rules::Action::NAMES[..],
        &["observed", "suppressed"],
    ]
    .concat();
    assert_eq!(words(table::FINDINGS, "action"), actions);
    assert_eq!(words(table::FAILURES, "side"), crate::protocol::Side::NAMES);
    let failures = &crate::inspect::ClassifierFailure::NAMES[..];
    assert_eq!(
        words(table::CLASSIFIED, "outcome"),
        [&["unflagged", "flagged"], failures].concat()
    );
    let changes = [&crate::config::ChangeAction::NAMES[..], &["observed"]].concat();
    assert_eq!(words(table::DEFINITION_CHANGES, "action"), changes);
}

/// A word that is recorded but not in the table would count as `other`.
#[test]
fn reasons_that_are_told_are_in_the_table() {
    let mut told = 0;
    for file in [
        "listen/admit.rs",
        "listen/approvals.rs",
        "listen/authentication.rs",
        "listen.rs",
        "listen/resource.rs",
        "record.rs",
    ] {
        let text =
            std::fs::read_to_string(format!("{}/src/{file}", env!("CARGO_MANIFEST_DIR"))).unwrap();
        let Values::Fixed(words) = table::TURNED_AWAY.labels[0].values else {
            panic!("not fixed")
        };
        // The reason is the first text among the arguments of `reject`.
        let rejections = text
            .split("reject(")
            .skip(1)
            .filter(|call| call.trim_start().starts_with("StatusCode::"))
            .filter_map(|call| Some(call.split_once('"')?.1));
        for after in text
            .split("reason: \"")
            .skip(1)
            .chain(text.split("turned_away(\"").skip(1))
            .chain(rejections)
        {
            let reason = after.split('"').next().unwrap();
            told += 1;
            assert!(
                words.contains(&reason),
                "{file}: `{reason}` is not in the table"
            );
        }
    }
    assert!(told > 5, "{told}");
}
