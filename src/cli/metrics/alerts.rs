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
            summary: "{{ $labels.upstream }} sent what looks like a prompt injection (messages within 10 minutes: {{ $value | printf \"%.0f\" }})",
            description: "Tool `{{ $labels.tool }}` (empty: not the result of a tool). The verdict in the audit log says what the agent got; with `observe` it got the whole message.",
            runbook: "Run `lychgate audit stats --since 1h --upstream {{ $labels.upstream }}` for the rules, `lychgate audit tail --upstream {{ $labels.upstream }}` for the messages, then `lychgate explain` with the id of a line.",
        },
        Alert {
            name: "LychgateInjectionsRising",
            expr: format!(
                "{INJECTIONS_1H} >= {FEW_INJECTIONS}\nand {INJECTIONS_1H}\n> {RISE} * (avg_over_time({INJECTIONS_1H}[1d] offset 1h) or {INJECTIONS_1H} * 0)"
            ),
            lasts: Some("5m"),
            severity: "critical",
            summary: "{{ $labels.upstream }} sends far more prompt injections than in the day before",
            description: "{{ $value | printf \"%.0f\" }} messages within the last hour. Somebody has got at what this server reads, or a rule has become too wide.",
            runbook: "Run `lychgate audit stats --since 1h` for the rules and tools they come by; `lychgate quarantine list` shows what was taken out.",
        },
        Alert {
            name: "LychgateCommandBlocked",
            expr: format!("{BLOCKED_10M} > 0"),
            lasts: None,
            severity: "warning",
            summary: "calls to {{ $labels.upstream }} were refused (within 10 minutes: {{ $value | printf \"%.0f\" }})",
            description: "Tool `{{ $labels.tool }}`. An agent that asks for this may be following injected orders: see what it read just before.",
            runbook: "Run `lychgate audit tail --upstream {{ $labels.upstream }} --verdict block`, then `lychgate explain` with the id of a line.",
        },
        Alert {
            name: "LychgateDefinitionHeld",
            expr: format!("{} > 0", now(DEFINITIONS_HELD).max_by(&["job", "upstream"])),
            lasts: None,
            severity: "warning",
            summary: "{{ $labels.upstream }} says something else of its tools than was approved",
            description: "Agents see what was approved, or nothing, until somebody has looked.",
            runbook: "Run `lychgate pins diff` for what has changed; `lychgate pins approve` lets it pass.",
        },
        Alert {
            name: "LychgateQuestionsUnanswered",
            expr: format!("{} > 3", increase(APPROVALS, "30m").only("outcome", "expired|nobody").by(&["job", "instance"])),
            lasts: None,
            severity: "warning",
            summary: "people do not answer the questions of {{ $labels.instance }}",
            description: "Calls that need a yes are refused: nobody could be asked, or nobody answered in time.",
            runbook: "Run `lychgate approve` to see what waits now.",
        },
        Alert {
            name: "LychgateTokensGuessed",
            expr: format!("{} > 50", increase(TURNED_AWAY, "10m").only("reason", "token").by(&["job", "instance"])),
            lasts: None,
            severity: "warning",
            summary: "many requests to {{ $labels.instance }} come with no or a wrong token",
            description: "Somebody guesses, or an agent goes on with a token that was taken back.",
            runbook: "Run `lychgate agent list` to see which tokens there are; what is in front of the gate knows from where they come.",
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
            description: "It cannot be reached, does not answer, or its process has ended; calls to it fail.",
            runbook: "Run `curl -s http://{{ $labels.instance }}/readyz`: it says why.",
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
            summary: "more than a fifth of the calls to {{ $labels.upstream }} fail by the server's fault",
            description: "It breaks off, answers with errors of HTTP, or not as MCP has it.",
            runbook: "Run `lychgate audit tail --upstream {{ $labels.upstream }}`: a line `failed` has the cause.",
        },
        Alert {
            name: "LychgateUpstreamSlow",
            expr: format!("({}) > 10", query::quantile("0.9", UPSTREAM, Last("10m")).everywhere().by(&["job", "upstream"])),
            lasts: Some("10m"),
            severity: "warning",
            summary: "one of ten answers of {{ $labels.upstream }} takes longer than {{ $value | humanizeDuration }}",
            description: "The server takes it, not the gate.",
            runbook: "Run `lychgate audit stats --since 1h` for which tools are called, and ask whoever runs the server.",
        },
        Alert {
            name: "LychgateLoginOwed",
            expr: format!("{} > 0", now(AUTH_REQUIRED).max_by(&["job", "upstream"])),
            lasts: Some("5m"),
            severity: "warning",
            summary: "somebody has to log in to {{ $labels.upstream }}",
            description: "Calls to it fail until then.",
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
            summary: "the login at {{ $labels.upstream }} is not renewed",
            description: "Its authorization server cannot be reached, or does not take the refresh token any more.",
            runbook: "Run `lychgate auth status`: it tells the last error.",
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
            summary: "the token for {{ $labels.upstream }} ends and is not renewed",
            description: "Calls go there, and {{ $value | humanizeDuration }} are left. A token is renewed before its end (`renew_before_seconds`), where its server gives a refresh token.",
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
            summary: "the external classifier does not answer for {{ $labels.upstream }}",
            description: "`on_failure` of the policy decides in its place.",
            runbook: "Run `lychgate audit tail --upstream {{ $labels.upstream }}`: its lines say how the classifier failed.",
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
            description: "Disk full, too slow or read-only. With `audit.required = true` calls are refused meanwhile.",
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
            description: "They cannot be written, signed or told to `anchor_command` or `anchor_url`. Until then nothing shows whether lines were taken away.",
            runbook: "Run `lychgate audit verify`, then `lychgate doctor`; the gate's own log has the cause.",
        },
        Alert {
            name: "LychgateAuditTampered",
            // Not how fast it grows: what is found at the start is there at the first scrape.
            expr: format!("{} > 0", now(AUDIT_TAMPERED).by(&["job", "instance", "how"])),
            lasts: None,
            severity: "critical",
            summary: "the audit log of {{ $labels.instance }} is not as the gate left it ({{ $labels.how }})",
            description: "Lines were cut or changed, put there by somebody else, or the file was deleted while it was written. It is told until the gate is started anew.",
            runbook: "Run `lychgate audit verify` and keep a copy of the log; compare it with what `anchor_command` or `anchor_url` has kept elsewhere.",
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
            summary: "quarantine or evidence of {{ $labels.instance }} cannot be written, or not fast enough",
            description: "Messages that were to be kept are not: they cannot be looked at, released, explained or replayed.",
            runbook: "Run `lychgate quarantine list` and `df -h` for its folder; its limits stand under `[quarantine]` of the config.",
        },
        Alert {
            name: "LychgateSuppressionExpired",
            expr: format!("{} > 0", now(SUPPRESSIONS).only("state", "expired").by(&["job", "instance"])),
            lasts: Some("1h"),
            severity: "warning",
            summary: "{{ $value }} suppressions of {{ $labels.instance }} are over",
            description: "What they let pass is acted on again. Each was to be looked at by then.",
            runbook: "Run `lychgate check --config lychgate.toml`: it names them. Take each out, or set its `until` anew.",
        },
        Alert {
            name: "LychgateReloadRefused",
            expr: format!("{} > 0", increase(RELOADS, "15m").only("outcome", "refused").by(&["job", "instance"])),
            lasts: None,
            severity: "warning",
            summary: "changed rules were refused by {{ $labels.instance }}; the old ones stay in force",
            description: "The config or a rule file has a fault, or a rule fails its own cases.",
            runbook: "Run `lychgate check --config lychgate.toml`: it tells every fault with line and column.",
        },
        Alert {
            name: "LychgateProtectionWeakened",
            expr: format!("{} > 0", increase(RELOADS, "15m").only("outcome", "weakened").by(&["job", "instance"])),
            lasts: None,
            severity: "warning",
            summary: "the rules in force at {{ $labels.instance }} protect less than before",
            description: "A rule has gone, an action has become milder, or a policy only observes. Was it meant?",
            runbook: "Run `lychgate audit tail --event reloaded`: the line says what became weaker.",
        },
        Alert {
            name: "LychgateNoRules",
            expr: format!("{} == 0", now(RULES_IN_FORCE).min_by(&["job", "instance", "direction"])),
            lasts: Some("1m"),
            severity: "critical",
            summary: "no {{ $labels.direction }} rules are in force at {{ $labels.instance }}",
            description: "Everything passes that way.",
            runbook: "Run `lychgate check --config lychgate.toml`, and look at `rules` and `override` of the policies.",
        },
        Alert {
            name: "LychgateFailing",
            expr: format!("{} > 10", increase(FAILURES, "5m").only("side", "gateway").by(&["job", "instance"])),
            lasts: None,
            severity: "critical",
            summary: "calls fail in the gateway {{ $labels.instance }} itself",
            description: "A limit was reached, or the audit log cannot be written.",
            runbook: "Run `lychgate doctor`, and see the panel of limits hit.",
        },
        Alert {
            name: "LychgateLimitHit",
            expr: format!("{} > 10", increase(LIMITS_HIT, "10m").without("limit", REFUSAL_LOOP).by(&["job", "limit"])),
            lasts: None,
            severity: "warning",
            summary: "the limit {{ $labels.limit }} is hit again and again",
            description: "Calls are refused by it. Either somebody does too much, or the limit is too small for honest work.",
            runbook: "Run `lychgate audit stats --since 1h` for who calls what; the limit stands under `[limits]` of the config.",
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
            description: "The gate adds that to calls: very long messages, too few processors, or a rule of one's own that is slow.",
            runbook: "Run `top` on the machine; `lychgate audit stats --since 1h` shows which tools give so much.",
        },
        Alert {
            name: "LychgateLabelsCapped",
            expr: format!("{} > 100", increase(LABELS_CAPPED, "1h").by(&["job", "instance", "metric", "label"])),
            lasts: None,
            severity: "warning",
            summary: "somebody floods the label {{ $labels.label }} of {{ $labels.metric }} at {{ $labels.instance }}",
            description: "An agent or a server invents names, of tools most likely. They are counted as `other`, and nothing is lost in sum.",
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
            summary: "the gate {{ $labels.instance }} begins again and again",
            description: "Something ends it: memory, a signal, a fault of ours.",
            runbook: "Run `journalctl -u lychgate -n 50` (or `docker compose logs lychgate`); its last words are there.",
        },
        Alert {
            name: "LychgateDown",
            expr: r#"up{job="lychgate"} == 0"#.to_owned(),
            lasts: Some("1m"),
            severity: "critical",
            summary: "the admin port of {{ $labels.instance }} does not answer",
            description: "The gate does not run, or Prometheus cannot reach it.",
            runbook: "Run `systemctl status lychgate` (or `docker compose ps`), then `curl -s http://{{ $labels.instance }}/healthz`.",
        },
    ]
}

/// What of all this fires now, for the dashboard.
pub(super) fn firing() -> String {
    r#"sum by (alertname, severity, upstream, instance) (ALERTS{alertstate="firing",alertname=~"Lychgate.+",job=~"$job"})"#
        .to_owned()
}
