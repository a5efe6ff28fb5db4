//! What wakes people, and what they do next. `deploy/alerts_test.yml` shows each of them fire, and not fire.

use super::alert::{Alert, Record};
use super::query::{self, Query, Span::Last};
use crate::record::table::*;

/// Injections within an hour that are too few to speak of a rise.
const FEW_INJECTIONS: u32 = 10;
/// How many times as many as in the day before are a rise.
const RISE: u32 = 4;

fn increase(metric: Metric, span: &'static str) -> Query {
    query::increase(metric, Last(span)).everywhere()
}

fn now(metric: Metric) -> Query {
    query::now(metric).everywhere()
}

/// An agent that repeats what was refused hits it, and no larger limit would help: `LychgateCommandBlocked` fires for it.
const REFUSAL_LOOP: &str = "repeated_refusals";

const INJECTIONS_10M: &str = "lychgate:injections:increase10m";
const INJECTIONS_1H: &str = "lychgate:injections:increase1h";
const BLOCKED_10M: &str = "lychgate:commands_blocked:increase10m";

/// Queries that alerts need more than once.
pub(super) fn records() -> Vec<Record> {
    vec![
        Record { name: INJECTIONS_10M, expr: increase(INJECTED_MESSAGES, "10m").by(&["job", "upstream", "tool"]).to_string() },
        Record { name: INJECTIONS_1H, expr: increase(INJECTED_MESSAGES, "1h").by(&["job", "upstream"]).to_string() },
        Record { name: BLOCKED_10M, expr: increase(COMMANDS_BLOCKED, "10m").by(&["job", "upstream", "tool"]).to_string() },
    ]
}

/// All alerts: what agents and servers do, then what ails the gate.
pub(super) fn alerts() -> Vec<Alert> {
    let mut all = traffic();
    all.extend(upstreams());
    all.extend(gate());
    all
}

fn traffic() -> Vec<Alert> {
    vec![
        Alert {
            name: "LychgateInjectionDetected",
            expr: format!("{INJECTIONS_10M} > 0"),
            lasts: None,
            severity: "warning",
            summary: "possible prompt injection from {{ $labels.upstream }} (messages within 10 minutes: {{ $value | printf \"%.0f\" }})",
            description: "Tool `{{ $labels.tool }}` (empty: not a tool result). The audit log has the verdict; in observe mode the agent received the whole message.",
            runbook: "Run `lychgate audit stats --since 1h --upstream {{ $labels.upstream }}` for the rules, `lychgate audit tail --upstream {{ $labels.upstream }}` for the messages, then `lychgate explain` with the id of a line.",
        },
        Alert {
            name: "LychgateInjectionsRising",
            expr: format!(
                "{INJECTIONS_1H} >= {FEW_INJECTIONS}\nand {INJECTIONS_1H}\n> {RISE} * (avg_over_time({INJECTIONS_1H}[1d] offset 1h) or {INJECTIONS_1H} * 0)"
            ),
            lasts: Some("5m"),
            severity: "critical",
            summary: "prompt injections from {{ $labels.upstream }} are far above the previous day",
            description: "{{ $value | printf \"%.0f\" }} messages within the last hour. Content that this server reads may be compromised, or a rule may be too broad.",
            runbook: "Run `lychgate audit stats --since 1h` for the rules and tools involved; `lychgate quarantine list` shows the withheld content.",
        },
        Alert {
            name: "LychgateCommandBlocked",
            expr: format!("{BLOCKED_10M} > 0"),
            lasts: None,
            severity: "warning",
            summary: "calls to {{ $labels.upstream }} were refused (within 10 minutes: {{ $value | printf \"%.0f\" }})",
            description: "Tool `{{ $labels.tool }}`. The agent may be following injected instructions: check what it read before the call.",
            runbook: "Run `lychgate audit tail --upstream {{ $labels.upstream }} --verdict block`, then `lychgate explain` with the id of a line.",
        },
        Alert {
            name: "LychgateDefinitionHeld",
            expr: format!("{} > 0", now(DEFINITIONS_HELD).max_by(&["job", "upstream"])),
            lasts: None,
            severity: "warning",
            summary: "{{ $labels.upstream }} changed its definitions without approval",
            description: "Agents see the approved definitions, or none, until the change is reviewed.",
            runbook: "Run `lychgate pins diff` to review the changes, and `lychgate pins approve` to accept them.",
        },
        Alert {
            name: "LychgateQuestionsUnanswered",
            expr: format!("{} > 3", increase(APPROVALS, "30m").only("outcome", "expired|nobody").by(&["job", "instance"])),
            lasts: None,
            severity: "warning",
            summary: "approval requests of {{ $labels.instance }} are not answered",
            description: "Calls that require approval are refused: no approver was available or none answered in time.",
            runbook: "Run `lychgate approve` to list pending requests.",
        },
        Alert {
            name: "LychgateTokensGuessed",
            expr: format!("{} > 50", increase(TURNED_AWAY, "10m").only("reason", "token").by(&["job", "instance"])),
            lasts: None,
            severity: "warning",
            summary: "many requests to {{ $labels.instance }} have no token or an invalid one",
            description: "Possible token guessing, or an agent that uses a revoked token.",
            runbook: "Run `lychgate agent list` for the valid tokens; check the proxy in front of the gateway for the source addresses.",
        },
    ]
}

fn upstreams() -> Vec<Alert> {
    vec![
        Alert {
            name: "LychgateUpstreamDown",
            expr: format!("{} == 0", now(UPSTREAM_UP).min_by(&["job", "instance", "upstream"])),
            lasts: Some("2m"),
            severity: "critical",
            summary: "{{ $labels.upstream }} is down",
            description: "It is unreachable, does not respond, or its process has exited; calls to it fail.",
            runbook: "Run `curl -s http://{{ $labels.instance }}/readyz` for the reason.",
        },
        Alert {
            name: "LychgateUpstreamFailing",
            expr: format!(
                "{}\n> 0.2 * ({} > 10)",
                increase(FAILURES, "5m").only("side", "server").by(&["job", "upstream"]),
                increase(MESSAGES, "5m").only("direction", "outbound").by(&["job", "upstream"])
            ),
            lasts: Some("5m"),
            severity: "warning",
            summary: "more than 20 % of calls to {{ $labels.upstream }} fail with server errors",
            description: "It closes connections, returns HTTP errors, or violates the MCP specification.",
            runbook: "Run `lychgate audit tail --upstream {{ $labels.upstream }}`: `failed` lines have the cause.",
        },
        Alert {
            name: "LychgateUpstreamSlow",
            expr: format!("({}) > 10", query::quantile("0.9", UPSTREAM, Last("10m")).everywhere().by(&["job", "upstream"])),
            lasts: Some("10m"),
            severity: "warning",
            summary: "10 % of answers from {{ $labels.upstream }} take longer than {{ $value | humanizeDuration }}",
            description: "The time is spent in the server, not in the gateway.",
            runbook: "Run `lychgate audit stats --since 1h` for the tools called, and contact the server's operator.",
        },
        Alert {
            name: "LychgateLoginOwed",
            expr: format!("{} > 0", now(AUTH_REQUIRED).max_by(&["job", "upstream"])),
            lasts: Some("5m"),
            severity: "warning",
            summary: "{{ $labels.upstream }} requires a login",
            description: "Calls to it fail until someone logs in.",
            runbook: "Run `lychgate login {{ $labels.upstream }}`, or open the link that agents are given.",
        },
        Alert {
            name: "LychgateLoginNotRenewed",
            expr: format!(
                "{} > 2",
                increase(OAUTH_REFRESH, "10m").only("outcome", "unreachable|ended|refused").by(&["job", "upstream"])
            ),
            lasts: None,
            severity: "warning",
            summary: "token renewal for {{ $labels.upstream }} fails",
            description: "Its authorization server is unreachable, or rejects the refresh token.",
            runbook: "Run `lychgate auth status` for the last error.",
        },
        Alert {
            name: "LychgateTokenExpiring",
            expr: format!(
                "{} < 30\nand on (job, upstream) {} > 0",
                now(OAUTH_EXPIRES).min_by(&["job", "upstream"]),
                increase(MESSAGES, "5m").only("direction", "outbound").by(&["job", "upstream"])
            ),
            lasts: Some("2m"),
            severity: "warning",
            summary: "the token for {{ $labels.upstream }} is about to expire",
            description: "It is in use and expires in {{ $value | humanizeDuration }}. Tokens are renewed before they expire (`renew_before_seconds`), if the server issues refresh tokens.",
            runbook: "Run `lychgate auth status`, then `lychgate login {{ $labels.upstream }}`.",
        },
        Alert {
            name: "LychgateClassifierSilent",
            expr: format!(
                "{}\n> 0.2 * ({} > 10)",
                increase(CLASSIFIED, "10m").only("outcome", "timeout|busy|unreachable|bad-answer").by(&["job", "upstream"]),
                increase(CLASSIFIED, "10m").by(&["job", "upstream"])
            ),
            lasts: Some("5m"),
            severity: "warning",
            summary: "the external classifier fails for {{ $labels.upstream }}",
            description: "`on_failure` of the policy applies instead.",
            runbook: "Run `lychgate audit tail --upstream {{ $labels.upstream }}`for the classifier's errors.",
        },
    ]
}

fn gate() -> Vec<Alert> {
    vec![
        Alert {
            name: "LychgateAuditFailing",
            expr: format!(
                "{} > 0",
                increase(AUDIT_LINES, "5m").only("outcome", "dropped|failed").by(&["job", "instance", "outcome"])
            ),
            lasts: None,
            severity: "critical",
            summary: "audit lines of {{ $labels.instance }} are being lost ({{ $labels.outcome }})",
            description: "The disk is full, too slow or read-only. With `audit.required = true` calls are refused.",
            runbook: "Run `df -h` for the folder of the log, then `lychgate doctor`.",
        },
        Alert {
            name: "LychgateAuditNotAnchored",
            expr: format!(
                "{}\nor {} > 0",
                increase(AUDIT_CHECKPOINTS, "15m").only("outcome", "failed").by(&["job", "instance"]).above_zero(),
                increase(AUDIT_ANCHORS, "15m").only("outcome", "failed").by(&["job", "instance"])
            ),
            lasts: None,
            severity: "critical",
            summary: "checkpoints of the audit log of {{ $labels.instance }} fail",
            description: "They cannot be written, signed or sent to `anchor_command` or `anchor_url`. Without them, removed lines cannot be detected.",
            runbook: "Run `lychgate audit verify`, then `lychgate doctor`; the gateway's log has the cause.",
        },
        Alert {
            name: "LychgateAuditTampered",
            // Not how fast it grows: what is found at the start is there at the first scrape.
            expr: format!("{} > 0", now(AUDIT_TAMPERED).by(&["job", "instance", "how"])),
            lasts: None,
            severity: "critical",
            summary: "audit log of {{ $labels.instance }} was tampered with ({{ $labels.how }})",
            description: "Lines were removed, changed or added by another program, or the file was deleted while in use. Fires until the gateway is restarted.",
            runbook: "Run `lychgate audit verify` and keep a copy of the log; compare it with the checkpoints sent to `anchor_command` or `anchor_url`.",
        },
        Alert {
            name: "LychgateKeepingFails",
            expr: format!(
                "{}\nor {} > 0",
                // What is dropped there may have been too old, as the config wants it.
                increase(QUARANTINE_ITEMS, "15m").only("outcome", "failed").by(&["job", "instance"]).above_zero(),
                increase(EVIDENCE_RECORDS, "15m").only("outcome", "failed|dropped").by(&["job", "instance"])
            ),
            lasts: None,
            severity: "warning",
            summary: "quarantine or evidence of {{ $labels.instance }} cannot be written fast enough",
            description: "Messages are not stored: they cannot be shown, released, explained or replayed.",
            runbook: "Run `lychgate quarantine list` and `df -h` for its folder; its limits are set under `[quarantine]` of the config.",
        },
        Alert {
            name: "LychgateSuppressionExpired",
            expr: format!("{} > 0", now(SUPPRESSIONS).only("state", "expired").by(&["job", "instance"])),
            lasts: Some("1h"),
            severity: "warning",
            summary: "{{ $value }} suppressions of {{ $labels.instance }} have expired",
            description: "Their findings take effect again. Each was due for review.",
            runbook: "Run `lychgate check --config lychgate.toml`to list them. Remove each one, or set a new `until`.",
        },
        Alert {
            name: "LychgateReloadRefused",
            expr: format!("{} > 0", increase(RELOADS, "15m").only("outcome", "refused").by(&["job", "instance"])),
            lasts: None,
            severity: "warning",
            summary: "reload rejected by {{ $labels.instance }}; the old rules stay in force",
            description: "The config or a rule file has an error, or a rule fails its test cases.",
            runbook: "Run `lychgate check --config lychgate.toml`for every error with line and column.",
        },
        Alert {
            name: "LychgateProtectionWeakened",
            expr: format!("{} > 0", increase(RELOADS, "15m").only("outcome", "weakened").by(&["job", "instance"])),
            lasts: None,
            severity: "warning",
            summary: "a reload weakened the rules of {{ $labels.instance }}",
            description: "A rule was removed, an action was weakened, or a policy changed to observe mode. Check that this was intended.",
            runbook: "Run `lychgate audit tail --event reloaded`for what was weakened.",
        },
        Alert {
            name: "LychgateNoRules",
            expr: format!("{} == 0", now(RULES_IN_FORCE).min_by(&["job", "instance", "direction"])),
            lasts: Some("1m"),
            severity: "critical",
            summary: "no {{ $labels.direction }} rules in force at {{ $labels.instance }}",
            description: "All messages in this direction pass uninspected.",
            runbook: "Run `lychgate check --config lychgate.toml`, and check `rules` and `override` of the policies.",
        },
        Alert {
            name: "LychgateFailing",
            expr: format!("{} > 10", increase(FAILURES, "5m").only("side", "gateway").by(&["job", "instance"])),
            lasts: None,
            severity: "critical",
            summary: "calls fail with gateway errors at {{ $labels.instance }}",
            description: "A limit was reached, or the audit log cannot be written.",
            runbook: "Run `lychgate doctor`, and check the panel of limits reached.",
        },
        Alert {
            name: "LychgateLimitHit",
            expr: format!("{} > 10", increase(LIMITS_HIT, "10m").without("limit", REFUSAL_LOOP).by(&["job", "limit"])),
            lasts: None,
            severity: "warning",
            summary: "the limit {{ $labels.limit }} is reached repeatedly",
            description: "Calls are refused. Either a client is misbehaving, or the limit is too low for legitimate use.",
            runbook: "Run `lychgate audit stats --since 1h` for callers and tools; the limit is set under `[limits]` of the config.",
        },
        Alert {
            name: "LychgateSlowInspection",
            expr: format!(
                "({}) > 0.05",
                query::quantile("0.99", INSPECT, Last("5m")).everywhere().by(&["job", "instance", "direction"])
            ),
            lasts: Some("10m"),
            severity: "warning",
            summary: "judging {{ $labels.direction }} messages takes {{ $value | humanizeDuration }} (99th percentile) at {{ $labels.instance }}",
            description: "The gateway adds this latency to calls: very long messages, too few processors, or a slow custom rule.",
            runbook: "Run `top` on the machine; `lychgate audit stats --since 1h` shows which tools return the most.",
        },
        Alert {
            name: "LychgateLabelsCapped",
            expr: format!("{} > 100", increase(LABELS_CAPPED, "1h").by(&["job", "instance", "metric", "label"])),
            lasts: None,
            severity: "warning",
            summary: "the label {{ $labels.label }} of {{ $labels.metric }} at {{ $labels.instance }} exceeds its cap",
            description: "An agent or a server generates names, most likely of tools. They are counted as `other`; totals are unaffected.",
            runbook: "Run `lychgate audit stats --since 1h`: agents and upstreams with the most lines.",
        },
        Alert {
            name: "LychgateRestarting",
            expr: format!(
                "{} > 2\nand on (job, instance) {}",
                query::changes(PROCESS_START, Last("15m")).everywhere().max_by(&["job", "instance"]),
                now(BUILD_INFO).max_by(&["job", "instance"])
            ),
            lasts: None,
            severity: "critical",
            summary: "the gateway {{ $labels.instance }} restarts repeatedly",
            description: "Possible causes: memory, a signal, a bug.",
            runbook: "Run `journalctl -u lychgate -n 50` (or `docker compose logs lychgate`)for its last log lines.",
        },
        Alert {
            name: "LychgateDown",
            expr: r#"up{job="lychgate"} == 0"#.to_owned(),
            lasts: Some("1m"),
            severity: "critical",
            summary: "the admin port of {{ $labels.instance }} does not answer",
            description: "The gateway is not running, or Prometheus cannot reach it.",
            runbook: "Run `systemctl status lychgate` (or `docker compose ps`), then `curl -s http://{{ $labels.instance }}/healthz`.",
        },
    ]
}

/// What of all this fires now, for the dashboard.
pub(super) fn firing() -> String {
    r#"sum by (alertname, severity, upstream, instance) (ALERTS{alertstate="firing",alertname=~"Lychgate.+",job=~"$job"})"#
        .to_owned()
}
