//! What the dashboard shows, row by row. A metric that is on none of them fails a test.

use super::panel::{Mark, Panel, Row, Unit, Variable};
use super::query::{
    Span::{Last, Shown, Step},
    changes, increase, now, quantile, rate,
};
use crate::record::table::*;

const UP: &[(&str, &str, &str)] = &[("0", "down", "red"), ("1", "up", "green")];

/// All rows, from what is looked at first to what is looked at last.
pub(super) fn rows() -> Vec<Row> {
    let row = |title, panels| Row { title, panels };
    vec![
        row("Overview", overview()),
        row("Injections from servers", injections()),
        row("Outbound calls of agents", outbound()),
        row("Approvals", approvals()),
        row("Upstreams and logins", upstreams()),
        row("Audit and evidence", audit()),
        row("Limits", limits()),
        row("Process", process()),
    ]
}

fn overview() -> Vec<Panel> {
    vec![
        Panel::table("Alerts firing", &now(UPSTREAM_UP)).asking(super::alerts::firing()).wide(24).high(5).or("none").about(
            "The annotation `runbook` of each alert names the command to run next; `lychgate metrics reference` has them all.",
        ),
        Panel::stat("Injections", &increase(INJECTED_MESSAGES, Shown)).warn(1.0).about(
            "Inbound messages with a match of a rule that wraps, quarantines, withholds or blocks, in the selected time range.",
        ),
        Panel::stat("Calls refused", &increase(COMMANDS_BLOCKED, Shown))
            .warn(1.0)
            .about("Outbound messages refused in the selected time range."),
        Panel::stat("Approval requests", &increase(APPROVALS, Shown).only("outcome", "asked"))
            .about("Approval requests in the selected time range. `lychgate approve` lists the pending ones."),
        Panel::stat("Upstreams down", &now(UPSTREAM_UP))
            .asking(format!("{} - {}", now(UPSTREAM_UP).count(), now(UPSTREAM_UP)))
            .alarm(1.0)
            .about("Servers that are unreachable or do not respond. `/readyz` on the admin port has the reason."),
        Panel::stat("Logins required", &now(AUTH_REQUIRED))
            .warn(1.0)
            .about("Upstream logins that must be made: `lychgate login UPSTREAM`."),
        Panel::stat("Definitions held", &now(DEFINITIONS_HELD))
            .warn(1.0)
            .about("Tools, prompts and resources with unapproved changes: `lychgate pins diff`."),
        Panel::stat("Messages per second", &rate(MESSAGES, Last("5m")))
            .unit(Unit::Requests)
            .about("Both directions, over the last five minutes."),
        Panel::stat("Inspection time (p99)", &quantile("0.99", INSPECT, Step).by(&[]))
            .unit(Unit::Seconds)
            .warn(0.005)
            .alarm(0.05)
            .about("Latency added by the gateway, 99th percentile."),
        Panel::stat("Audit lines lost", &increase(AUDIT_LINES, Shown).only("outcome", "dropped|failed"))
            .alarm(1.0)
            .about("Lines missing from the audit log. Should be zero."),
        Panel::stat("Limits reached", &increase(LIMITS_HIT, Shown))
            .warn(1.0)
            .about("Calls refused or streams closed by a limit."),
        Panel::stat("Rules in force", &now(RULES_IN_FORCE).max_by(&["direction"]))
            .about("Each rule counts once. At zero nothing is detected."),
        Panel::stat("Version", &now(BUILD_INFO).by(&["version"])).called("{{version}}").about("Number of gateways by version."),
    ]
}

/// The panels of what servers sent.
fn injections() -> Vec<Panel> {
    vec![
        Panel::bars("Messages with injections", &increase(INJECTED_MESSAGES, Step).by(&["upstream"]))
            .called("{{upstream}}")
            .wide(12)
            .about("Each message counts once. The panels below count matches; a message may have several."),
        Panel::stat("Matches", &increase(INJECTIONS, Shown))
            .wide(12)
            .about("Matches of injection rules in these messages, in the selected time range."),
        Panel::bars("Matches of injection rules", &increase(INJECTIONS, Step).by(&["rule", "action"]))
            .called("{{rule}} ({{action}})")
            .wide(12)
            .about("Matches per interval. `lychgate rules explain RULE` describes a rule."),
        Panel::bars("Matches by upstream and surface", &increase(INJECTIONS, Step).by(&["upstream", "surface"]))
            .called("{{upstream}}: {{surface}}")
            .wide(12)
            .about("Location of the match: results (`content`), tool definitions, resources, errors and so on."),
        Panel::table("Sources", &increase(INJECTIONS, Shown).by(&["upstream", "tool", "surface", "rule", "action"]).top(20))
            .about("The most frequent in the selected time range. An empty tool: not a tool result."),
        Panel::table("Matches by rule", &increase(FINDINGS, Shown).by(&["rule", "action"]).top(20))
            .about("All rules in both directions, including those that only log or strip."),
        Panel::bars("Suppressed findings", &increase(SUPPRESSED, Step).by(&["rule"])).about("Matches that a policy suppresses."),
        Panel::lines("Suppressions", &now(SUPPRESSIONS).by(&["state"]))
            .about("Expired suppressions have no effect and are due for review: `lychgate check`."),
        Panel::bars("Uninspected bytes", &increase(UNINSPECTED, Step).by(&["reason"]))
            .unit(Unit::Bytes)
            .about("Images, archives, encrypted or oversized content passes uninspected; the audit line has the details."),
        Panel::bars("External classifier", &increase(CLASSIFIED, Step).by(&["outcome"]))
            .about("Results of the classifier, or why it failed; `on_failure` of the policy then applies."),
    ]
}

fn outbound() -> Vec<Panel> {
    vec![
        Panel::bars("Refused calls by rule", &increase(COMMANDS_BLOCKED, Step).by(&["rule"]))
            .wide(12)
            .about("Calls of agents that were refused."),
        Panel::table("Refused calls", &increase(COMMANDS_BLOCKED, Shown).by(&["upstream", "tool", "rule"]).top(20))
            .about("The most frequent in the selected time range. The audit log has the agent of each."),
        Panel::lines("Messages by verdict", &rate(MESSAGES, Step).by(&["direction", "verdict"]))
            .unit(Unit::Requests)
            .wide(12)
            .about("All inspected traffic."),
        Panel::bars("Inbound content tracked in outbound calls", &increase(FLOW_PIECES, Step).by(&["upstream", "from"]))
            .wide(12)
            .about("Fragments of quarantined content, and of content that the policy marks as untrusted or private."),
    ]
}

fn approvals() -> Vec<Panel> {
    vec![
        Panel::bars("Approval requests by outcome", &increase(APPROVALS, Step).by(&["outcome", "way"]))
            .about("Many `expired` or `nobody` outcomes: approvers are not reached, and calls are refused."),
        Panel::bars("Notifications of approval requests", &increase(NOTIFICATIONS, Step).by(&["way", "outcome"]))
            .about("By `notify_command` and `webhook`. `failed` and `dropped` notifications were not delivered."),
        Panel::bars("Changed definitions", &increase(DEFINITION_CHANGES, Step).by(&["class", "action"]))
            .called("{{class}}: {{action}}")
            .about("Compared with the pinned ones, by most severe change: `lychgate pins diff`."),
        Panel::lines("Definitions held for approval", &now(DEFINITIONS_HELD).max_by(&["upstream"]))
            .warn(1.0)
            .about("`lychgate pins approve` accepts them."),
    ]
}

fn upstreams() -> Vec<Panel> {
    vec![
        Panel::states("Availability", &now(UPSTREAM_UP).min_by(&["upstream"]), UP)
            .about("As reported by `/readyz`, which also has the reason."),
        Panel::lines("Server latency", &quantile("0.5", UPSTREAM, Step).by(&["upstream"]))
            .called("{{upstream}} p50")
            .also(&quantile("0.99", UPSTREAM, Step).by(&["upstream"]), "{{upstream}} p99")
            .unit(Unit::Seconds)
            .about("From sending a request until its answer arrived, without the gateway."),
        Panel::lines("Failures by side", &rate(FAILURES, Step).by(&["upstream", "side"]))
            .unit(Unit::Requests)
            .about("Failed calls by the side at fault. The log has the cause."),
        Panel::lines("Required logins by upstream", &now(AUTH_REQUIRED).max_by(&["upstream"]))
            .warn(1.0)
            .about("`lychgate login UPSTREAM`, or the link that agents receive."),
        Panel::bars("Token renewals", &increase(OAUTH_REFRESH, Step).by(&["upstream", "outcome"]))
            .about("`unreachable` is retried; `ended` and `refused` require a new login."),
        Panel::lines("Time until tokens expire", &now(OAUTH_EXPIRES).min_by(&["upstream"]))
            .unit(Unit::Seconds)
            .about("Falls until the gateway renews the token."),
    ]
}

fn audit() -> Vec<Panel> {
    vec![
        Panel::lines("Audit lines", &rate(AUDIT_LINES, Step).by(&["outcome"]))
            .unit(Unit::PerSecond)
            .about("`dropped`: the queue was full. `failed`: the system rejected the write."),
        Panel::bars("Checkpoints", &increase(AUDIT_CHECKPOINTS, Step).by(&["outcome"]))
            .called("checkpoints {{outcome}}")
            .also(&increase(AUDIT_ANCHORS, Step).by(&["outcome"]), "anchors {{outcome}}")
            .about("Signed checkpoints of the audit log, and those sent elsewhere. None should fail: `lychgate audit verify`."),
        Panel::lines("Audit log tampering", &now(AUDIT_TAMPERED).by(&["how"]))
            .warn(1.0)
            .about("Truncated, modified by another program, or deleted while in use: `lychgate audit verify`."),
        Panel::bars("Audit log files", &increase(AUDIT_FILES, Step).by(&["outcome"]))
            .about("Rotated files, and those removed by retention."),
        Panel::bars("Quarantine", &increase(QUARANTINE_ITEMS, Step).by(&["outcome"]))
            .about("Quarantined messages by outcome: `lychgate quarantine list`."),
        Panel::bars("Evidence", &increase(EVIDENCE_RECORDS, Step).by(&["outcome"]))
            .called("records {{outcome}}")
            .also(&increase(EVIDENCE_FORGOTTEN, Step), "segments forgotten")
            .about("Whole messages stored for replay. `failed` and `dropped` ones are missing."),
        Panel::bars("OTLP export", &increase(EXPORTED, Step).by(&["signal", "outcome"]))
            .about("Records that were not accepted are missing at the collector; the audit log is complete."),
        Panel::bars("Reloads", &increase(RELOADS, Step).by(&["outcome"])).about(
            "`weakened`: protection was reduced, as described in the audit line `reloaded`. `refused`: run `lychgate check`.",
        ),
    ]
}

fn limits() -> Vec<Panel> {
    vec![
        Panel::bars("Limits reached, by name", &increase(LIMITS_HIT, Step).by(&["limit"]))
            .about("By config key. A limit that legitimate use reaches is too low."),
        Panel::bars("Rejected requests", &increase(TURNED_AWAY, Step).by(&["reason"]))
            .about("Requests rejected before a call. Many `token` rejections: token guessing, or an agent with a revoked token."),
        Panel::bars("Result paging", &increase(PAGES, Step).by(&["outcome"]))
            .about("Many `gone` outcomes: the limits `kept_result…` are too low."),
        Panel::bars("Capped labels", &increase(LABELS_CAPPED, Step).by(&["metric", "label"]))
            .called("{{label}} of {{metric}}")
            .about("Counts attributed to `other`: a peer generates tool names."),
    ]
}

fn process() -> Vec<Panel> {
    vec![
        Panel::lines("Inspection time", &quantile("0.5", INSPECT, Step).by(&["direction"]))
            .called("{{direction}} p50")
            .also(&quantile("0.99", INSPECT, Step).by(&["direction"]), "{{direction}} p99")
            .unit(Unit::Seconds)
            .about("Latency added by the gateway."),
        Panel::lines("Open streams", &now(STREAMS).by(&["instance"])).about("Event streams to agents."),
        Panel::lines("Memory", &now(PROCESS_MEMORY).by(&["instance"])).unit(Unit::Bytes).about("Memory of the process."),
        Panel::lines("Processor", &rate(PROCESS_CPU, Step).by(&["instance"])).unit(Unit::Share).about("100 % is one processor."),
        Panel::lines("Open files", &now(PROCESS_FILES).by(&["instance"])).about("Includes sockets; the limit is `ulimit -n`."),
        Panel::stat("Uptime", &now(PROCESS_START).max_by(&["instance"]))
            .unit(Unit::Since)
            .wide(8)
            .about("Repeated restarts have a cause: check the logs of the gateway and its service."),
    ]
}

/// What the viewer chooses from.
pub(super) fn variables() -> Vec<Variable> {
    let values = |metric: Metric, of: &str, label: &str| format!("label_values({metric}{of}, {label})");
    vec![
        Variable { name: "job", title: "Job", values: values(BUILD_INFO, "", "job"), any: false },
        Variable { name: "instance", title: "Instance", values: values(BUILD_INFO, r#"{job=~"$job"}"#, "instance"), any: false },
        Variable {
            name: "upstream",
            title: "Upstream",
            values: values(MESSAGES, r#"{job=~"$job",instance=~"$instance"}"#, "upstream"),
            any: true,
        },
    ]
}

/// What is marked on all charts.
pub(super) fn marks() -> Vec<Mark> {
    vec![
        ("Restarts", format!("{} > 0", changes(PROCESS_START, Step).by(&["instance"])), "blue", "restart of {{instance}}"),
        ("Reloads", format!("{} > 0", increase(RELOADS, Step).by(&["outcome"])), "purple", "reload: {{outcome}}"),
    ]
}
