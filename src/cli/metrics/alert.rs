//! Alert rules as data, and as the YAML that Prometheus reads.

use std::fmt::Write as _;

/// A query whose answer is kept under a name of its own, for alerts that need it.
pub(super) struct Record {
    /// Its name.
    pub(super) name: &'static str,
    /// The query.
    pub(super) expr: String,
}

/// An alert.
pub(super) struct Alert {
    /// Its name.
    pub(super) name: &'static str,
    /// It fires for each series that this gives.
    pub(super) expr: String,
    /// For how long it has to, before anybody is told.
    pub(super) lasts: Option<&'static str>,
    /// `critical`: look now. `warning`: look today.
    pub(super) severity: &'static str,
    /// What is the matter, in a line.
    pub(super) summary: &'static str,
    /// What it means.
    pub(super) description: &'static str,
    /// The command to run next, and what it tells.
    pub(super) runbook: &'static str,
}

const HEAD: &str = "\
# Alert rules for Prometheus, made by `lychgate metrics alerts`; alerts_test.yml beside this file shows each of them fire, and
# not fire where it should not.
#
# A series of `lychgate_injection_messages_total` or `lychgate_commands_blocked_total` with a tool's name begins at its first
# hit, and `increase` does not see a series' first value. So each is read as \"what is new within the window, else its increase\".

groups:
";

/// The file of rules.
pub(super) fn yaml(records: &[Record], alerts: &[Alert]) -> Result<String, std::fmt::Error> {
    let mut out = HEAD.to_owned();
    written(&mut out, records, alerts)?;
    Ok(out)
}

fn written(out: &mut String, records: &[Record], alerts: &[Alert]) -> std::fmt::Result {
    writeln!(out, "  - name: lychgate-windows\n    rules:")?;
    for Record { name, expr } in records {
        writeln!(out, "      - record: {name}\n        expr: {}", folded(expr))?;
    }
    writeln!(out, "\n  - name: lychgate\n    rules:")?;
    for (number, alert) in alerts.iter().enumerate() {
        let gap = if number == 0 { "" } else { "\n" };
        writeln!(out, "{gap}      - alert: {}\n        expr: {}", alert.name, folded(&alert.expr))?;
        if let Some(lasts) = alert.lasts {
            writeln!(out, "        for: {lasts}")?;
        }
        writeln!(out, "        labels: {{ severity: {} }}\n        annotations:", alert.severity)?;
        for (name, text) in [("summary", alert.summary), ("description", alert.description), ("runbook", alert.runbook)] {
            writeln!(out, "          {name}: {}", quoted(text))?;
        }
    }
    Ok(())
}

/// A block of YAML whose lines become one.
fn folded(expr: &str) -> String {
    let mut out = String::from(">-");
    for line in expr.lines() {
        out.push_str("\n          ");
        out.push_str(line.trim());
    }
    out
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
