//! The page about metrics.

use std::fmt::Write as _;

use super::alert::Alert;
use super::query::kind;
use crate::record::table::{GIVEN_SERIES, Kind, METRICS, Metric, OTHER, Values};

/// Markdown, with a part for each metric and a table of alerts.
pub(super) fn page(alerts: &[Alert]) -> Result<String, std::fmt::Error> {
    let mut out = String::new();
    written(&mut out, alerts)?;
    Ok(out)
}

fn written(out: &mut String, alerts: &[Alert]) -> std::fmt::Result {
    writeln!(
        out,
        "# Metrics\n\nMade by `lychgate metrics reference`, of the version that you run. They are on the admin port, at `/metrics`, in the\n\
         text format of Prometheus (0.0.4). `lychgate metrics dashboard` prints a dashboard for Grafana, `lychgate metrics alerts` alert\n\
         rules for Prometheus.\n\n\
         Series are there from the start, at zero, as far as their labels are known then. A label that follows what agents or servers\n\
         say has a cap: what is beyond it counts as `{OTHER}`, and in `lychgate_labels_capped_total`; besides, one metric has at most\n\
         {GIVEN_SERIES} series of such labels. So nobody can make the gate, or who scrapes it, hold more and more.\n\n\
         | metric | kind | labels |\n| --- | --- | --- |"
    )?;
    for metric in METRICS {
        let labels = metric.label_names().iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        writeln!(out, "| [`{metric}`](#{metric}) | {} | {labels} |", kind(*metric))?;
    }
    for metric in METRICS {
        one(out, metric)?;
    }
    writeln!(out, "\n## Alerts\n\n| alert | severity | what is the matter | what to do |\n| --- | --- | --- | --- |")?;
    for Alert { name, severity, lasts, description, runbook, .. } in alerts {
        let lasts = lasts.map(|lasts| format!(", for {lasts}")).unwrap_or_default();
        let plain = |text: &str| plain(text);
        writeln!(out, "| `{name}` | {severity}{lasts} | {} | {} |", plain(description), plain(runbook))?;
    }
    Ok(())
}

fn one(out: &mut String, metric: &Metric) -> std::fmt::Result {
    writeln!(out, "\n## {metric}\n\n{}\n\n{}", metric.help, metric.look)?;
    if let Kind::Histogram(bounds) = metric.kind {
        let bounds = bounds.iter().map(|bound| format!("{bound}")).collect::<Vec<_>>().join(", ");
        writeln!(out, "\nBuckets end at {bounds} s.")?;
    }
    if !metric.labels.is_empty() {
        writeln!(out)?;
    }
    for label in metric.labels {
        match label.values {
            Values::Fixed([_]) if label.name == "version" => writeln!(out, "- `version`: this one.")?,
            Values::Fixed(words) => {
                let words = words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
                writeln!(out, "- `{}`: {words}.", label.name)?;
            }
            Values::Named(from, most) => writeln!(out, "- `{}`: {from}; at most {most}.", label.name)?,
            Values::Given(from, most) => {
                writeln!(
                    out,
                    "- `{}`: {from}; at most {most} for each upstream, and only what MCP allows as a name.",
                    label.name
                )?;
            }
        }
    }
    Ok(())
}

/// The text of an annotation without its templates' signs.
fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{ ") {
        let (inner, after) = after.split_once(" }}").unwrap_or((after, ""));
        out.push_str(before);
        let name = inner.split(' ').next().unwrap_or(inner).trim_start_matches("$labels.").trim_start_matches('$');
        out.push_str(&name.to_uppercase());
        rest = after;
    }
    out.push_str(rest);
    out
}
