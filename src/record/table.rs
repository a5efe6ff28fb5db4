//! Every metric, its labels and what it means: the one place that names them. The exposition, the
//! reference page, the dashboard and the alert rules follow from it (`cli/metrics`).

use super::approval::{OUTCOMES, WAYS};
use super::label::Values::{Fixed, Given, Named};
use super::retention::QUARANTINE_OUTCOMES;
use crate::config::ChangeClass;
use crate::detect::Surface;
use crate::detect::flow::TaintReason;
use crate::inspect::SkipReason;

pub use super::label::{GIVEN_SERIES, Label, OTHER, Values};

/// A metric as the admin port shows it.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    pub name: &'static str,
    pub kind: Kind,
    /// Its labels, in order.
    pub labels: &'static [Label],
    /// What it means.
    pub help: &'static str,
    /// What to make of it, for the reference page: when to look, and where to look next.
    pub look: &'static str,
}

impl Metric {
    /// The names of its labels, in order.
    pub fn label_names(&self) -> Vec<&'static str> {
        self.labels.iter().map(|label| label.name).collect()
    }
}

impl std::fmt::Display for Metric {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// What a metric does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts by size; the upper bounds of its buckets.
    Histogram(&'static [f64]),
}

const INSPECT_SECONDS: &[f64] = &[
    0.000_01, 0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.05,
    0.25, 1.0,
];
const UPSTREAM_SECONDS: &[f64] = &[
    0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0,
];

const UPSTREAMS: Values = Named("upstreams of the config", 1024);
const RULES: Values = Named("ids of rules", 4096);
const TOOLS: Values = Given("names from agents and servers", 512);
const LIMITS: Values = Named("limits of the config, and budgets within the gate", 256);
const DIRECTIONS: Values = Fixed(&["outbound", "inbound"]);
const VERDICTS: Values = Fixed(&["pass", "rewrite", "ask", "block"]);
const ACTIONS: Values = Fixed(&[
    "log",
    "strip",
    "wrap",
    "redact",
    "quarantine",
    "withhold",
    "ask",
    "block",
    "observed",
    "suppressed",
]);
const SURFACES: Values = Fixed(&Surface::NAMES);
const CHANGES: Values = Fixed(&ChangeClass::NAMES);
const UNREAD: Values = Fixed(&SkipReason::NAMES);
const ORIGINS: Values = Fixed(&TaintReason::NAMES);

macro_rules! metrics {
    ($($id:ident = $kind:expr, $name:literal [$($label:ident: $values:expr),*] $help:literal $look:literal;)*) => {
        $(
            #[doc = $help]
            pub const $id: Metric = Metric {
                name: $name,
                kind: $kind,
                labels: &[$(Label { name: stringify!($label), values: $values }),*],
                help: $help,
                look: $look,
            };
        )*
        /// Every metric.
        pub const METRICS: &[Metric] = &[$($id),*];
    };
}

metrics! {
    MESSAGES = Kind::Counter, "lychgate_messages_total" [upstream: UPSTREAMS, direction: DIRECTIONS, verdict: VERDICTS]
        "Messages inspected, by verdict: `pass`, `rewrite`, `ask` or `block`. Each message of a batch counts."
        "A drop to zero means that agents bypass the gateway or have stopped.";
    FINDINGS = Kind::Counter, "lychgate_findings_total" [rule: RULES, action: ACTIONS]
        "Rule matches by action; `observed` in observe mode, `suppressed` if the policy suppresses them."
        "A rule that matches far more often than others indicates an attack or is too broad: `lychgate rules explain RULE`.";
    SUPPRESSED = Kind::Counter, "lychgate_suppressed_findings_total" [rule: RULES]
        "Rule matches suppressed by a policy (`suppress`)."
        "High values mean that the rule or the suppression is too broad.";
    SUPPRESSIONS = Kind::Gauge, "lychgate_suppressions" [state: Fixed(&["active", "expired"])]
        "Suppressions in the policies in force: `active`, or `expired`, without effect and due for review."
        "`lychgate check` lists the expired ones.";
    INJECTIONS = Kind::Counter, "lychgate_injection_detected_total" [upstream: UPSTREAMS, tool: TOOLS, rule: RULES, action: ACTIONS, surface: SURFACES]
        "Inbound matches of rules that wrap, quarantine, withhold or block, by surface and action; `observed` in observe mode. One series for each upstream, without other labels, exists from the start."
        "Server content that reads as instructions to the agent. The audit line of the rule has the message and location.";
    INJECTED_MESSAGES = Kind::Counter, "lychgate_injection_messages_total" [upstream: UPSTREAMS, tool: TOOLS]
        "Inbound messages with at least one match that `lychgate_injection_detected_total` counts. A message counts once, however many rules match in it; a list of tools counts for the first tool with a match."
        "Injections sent by servers. Alerts use this counter; matches by rule are in `lychgate_injection_detected_total`.";
    COMMANDS_BLOCKED = Kind::Counter, "lychgate_commands_blocked_total" [upstream: UPSTREAMS, tool: TOOLS, rule: RULES]
        "Outbound messages refused, by rule. Series without a tool count messages other than tool calls. One series for each upstream, without other labels, exists from the start."
        "The agent may be following injected instructions.";
    INSPECT = Kind::Histogram(INSPECT_SECONDS), "lychgate_inspect_seconds" [direction: DIRECTIONS]
        "Time to inspect one message body; a batch counts as one."
        "Latency added by the gateway. It grows with message length and processor load.";
    UNINSPECTED = Kind::Counter, "lychgate_uninspected_bytes_total" [reason: UNREAD]
        "Bytes of messages that were not inspected, by reason; for a tool schema that could not be checked, the bytes of the arguments, which other rules did inspect."
        "This content passes uninspected. The audit line has the part and the reason.";
    RECOGNIZED = Kind::Counter, "lychgate_recognized_texts_total" []
        "Texts from servers that were not judged again, because nothing was found in the same text before."
        "They cost a fraction of new texts. `clean_texts` under `[limits]` sets how many are remembered.";
    UPSTREAM = Kind::Histogram(UPSTREAM_SECONDS), "lychgate_upstream_seconds" [upstream: UPSTREAMS]
        "Time from sending a request to a server until its answer arrived."
        "Server latency, without the gateway.";
    UPSTREAM_UP = Kind::Gauge, "lychgate_upstream_up" [upstream: UPSTREAMS]
        "Whether an upstream is up, as in `/readyz`: 1 where its server answers in MCP or requires authentication; 0 where it cannot be reached, does not answer in MCP, or its configuration has a fault."
        "`/readyz` on the admin port has the reason and what to change. A series ends when its upstream is removed.";
    FLOW_PIECES = Kind::Counter, "lychgate_flow_pieces_total" [upstream: UPSTREAMS, from: ORIGINS]
        "Fragments of server content tracked in outbound messages: `quarantined`, or marked `untrusted` or `private` by the policy."
        "Shows that flow tracking is active; matches are counted as findings of flow rules.";
    APPROVALS = Kind::Counter, "lychgate_approvals_total" [outcome: Fixed(&OUTCOMES), way: Fixed(&WAYS)]
        "Approval requests: `asked`; `approved` or `denied`, by the agent's user (`elicitation`), through the admin port (`console`) or by an `earlier` approval; `expired`; `cancelled` with the call; `unused` if the call was not repeated; `nobody` if no approver was available."
        "Many `expired` or `nobody`: approvers are not reached, and calls are refused. `lychgate approve` lists pending requests.";
    NOTIFICATIONS = Kind::Counter, "lychgate_approval_notifications_total" [way: Fixed(&["command", "webhook"]), outcome: Fixed(&["sent", "failed", "dropped"])]
        "Notifications of approval requests by `notify_command` and by `webhook`: `sent`; `failed` after all attempts; `dropped` because too many others waited."
        "Notifications other than `sent` were not delivered. The log has the reason of the first failure.";
    PAGES = Kind::Counter, "lychgate_result_pages_total" [outcome: Fixed(&["read", "gone"])]
        "Requests for parts of long results: `read`, or `gone` because they were not stored, or no longer, for the session."
        "Many `gone`: `kept_results`, `kept_result_bytes` or `kept_result_seconds` are too low.";
    DEFINITION_CHANGES = Kind::Counter, "lychgate_definition_changes_total" [upstream: UPSTREAMS, class: CHANGES, action: Fixed(&["pass", "hold", "ask", "refuse", "observed"])]
        "Changes to pinned definitions of tools, prompts and resources, by most severe class and action: `pass`, `hold`, `ask` or `refuse`; `observed` in observe mode."
        "`lychgate pins diff` shows the changes.";
    DEFINITIONS_HELD = Kind::Gauge, "lychgate_definitions_held" [upstream: UPSTREAMS]
        "Definitions held until `lychgate pins approve`."
        "Agents see the old definitions, or none, until the change is reviewed.";
    CLASSIFIED = Kind::Counter, "lychgate_classified_total" [upstream: UPSTREAMS, outcome: Fixed(&["unflagged", "flagged", "timeout", "busy", "unreachable", "bad-answer", "too-large"])]
        "Messages sent to an external classifier: `flagged`; `unflagged`, which does not cover texts that were not sent; or the reason for a missing answer (`timeout`, `busy`, `unreachable`, `bad-answer`, `too-large`)."
        "For outcomes other than `flagged` and `unflagged`, the policy's `on_failure` applies.";
    OAUTH_REFRESH = Kind::Counter, "lychgate_oauth_refresh_total" [upstream: UPSTREAMS, outcome: Fixed(&["renewed", "unreachable", "ended", "refused"])]
        "Token renewals for a server: `renewed`; `unreachable`, which is retried; `ended`, which requires a new login; or `refused`."
        "`lychgate auth status` has the last error.";
    OAUTH_EXPIRES = Kind::Gauge, "lychgate_oauth_token_expires_seconds" [upstream: UPSTREAMS]
        "Seconds until the token for a server expires, negative afterwards; with several principals, of the token issued last. Absent without a token or an expiry."
        "Falls until the gateway renews the token. A value near zero means that renewal failed: `lychgate auth status`.";
    AUTH_REQUIRED = Kind::Gauge, "lychgate_upstream_auth_required" [upstream: UPSTREAMS]
        "Logins required at a server; 0 if all are made."
        "`lychgate login UPSTREAM`, or the link that agents receive.";
    FAILURES = Kind::Counter, "lychgate_failures_total" [upstream: UPSTREAMS, side: Fixed(&["agent", "server", "gateway"])]
        "Failed calls by the side at fault: `agent`, `server` or `gateway`."
        "The log has the cause of each `server` and `gateway` failure.";
    TURNED_AWAY = Kind::Counter, "lychgate_turned_away_total" [reason: Fixed(&["access", "certificate", "credential", "host", "issuer", "origin", "path", "scope", "tls", "token"])]
        "Requests rejected before a call: wrong host, origin or path, unknown token, issuer or certificate, malformed credential, missing scope, failed TLS handshake; or denied by `access`."
        "Many `token` rejections indicate guessing or a revoked token: `lychgate agent list`.";
    LIMITS_HIT = Kind::Counter, "lychgate_limits_hit_total" [limit: LIMITS]
        "Times a limit was reached, by config key; or `resolve_names` for names of hosts in one call, and `command_work`, `sql_work`, `secret_work`, `pattern_work`, `path_work`, `url_work`, `schema_work` if a text would take too long to inspect and is therefore refused."
        "Calls are refused at a limit, except at `clean_texts` and `verified_tokens`, beyond which more is checked again. A limit that legitimate use reaches is too low: see `[limits]`.";
    RELOADS = Kind::Counter, "lychgate_reloads_total" [outcome: Fixed(&["applied", "weakened", "refused"])]
        "Reloads: `applied`, `weakened` (applied, with reduced protection) or `refused` (the old rules stay)."
        "`lychgate check` lists the errors of a rejected config; the audit line `reloaded` has what was weakened.";
    RULES_IN_FORCE = Kind::Gauge, "lychgate_rules" [direction: DIRECTIONS]
        "Rules in force, each counted once regardless of the number of policies."
        "At zero nothing is detected.";
    AUDIT_LINES = Kind::Counter, "lychgate_audit_lines_total" [outcome: Fixed(&["written", "dropped", "failed"])]
        "Audit lines: `written`, `dropped` because the queue was full, or `failed` because the write failed."
        "Dropped and failed lines are missing from the log. With `audit.required` calls are refused instead.";
    QUARANTINE_ITEMS = Kind::Counter, "lychgate_quarantine_items_total" [outcome: Fixed(&QUARANTINE_OUTCOMES)]
        "Quarantined messages by outcome: `kept`; `skipped` beyond 60 per minute and server; `failed` to be written; `dropped` for newer ones or by age; `shown`, `released` and `deleted` by an operator; `delivered` to the agent; `expired` if the agent did not request it in time."
        "`lychgate quarantine list` lists them. Many `dropped`: the store is too small.";
    EVIDENCE_RECORDS = Kind::Counter, "lychgate_evidence_records_total" [outcome: Fixed(&["kept", "dropped", "failed"])]
        "Whole messages for the evidence store: `kept`; `dropped` because the disk was too slow; `failed` because the write failed."
        "Messages that are not stored cannot be replayed or fully explained.";
    EVIDENCE_FORGOTTEN = Kind::Counter, "lychgate_evidence_segments_forgotten_total" []
        "Segments of the evidence store removed for newer ones or by age."
        "Some removals are normal; many per day mean that the store covers only a short time.";
    AUDIT_CHECKPOINTS = Kind::Counter, "lychgate_audit_checkpoints_total" [outcome: Fixed(&["written", "failed"])]
        "Signed checkpoints of the audit log: `written`, or `failed`."
        "Without checkpoints, a completely rewritten audit log cannot be detected: `lychgate audit verify`.";
    AUDIT_TAMPERED = Kind::Counter, "lychgate_audit_tampered_total" [how: Fixed(&["cut", "foreign", "deleted"])]
        "Audit log tampering events detected: `cut` (lines missing or modified), `foreign` (written by another program), `deleted` while in use."
        "A person or a log rotation program modified the file: `lychgate audit verify`.";
    AUDIT_ANCHORS = Kind::Counter, "lychgate_audit_anchors_total" [outcome: Fixed(&["told", "failed"])]
        "Checkpoints sent to `anchor_command` and `anchor_url` (`told`); `failed` if one did not accept it in time."
        "The log has the reason of a failure.";
    AUDIT_FILES = Kind::Counter, "lychgate_audit_files_total" [outcome: Fixed(&["rotated", "removed"])]
        "Audit log files: `rotated` by size or age, `removed` by retention."
        "Many rotations per hour mean that the log grows faster than planned.";
    EXPORTED = Kind::Counter, "lychgate_otlp_exported_total" [signal: Fixed(&["logs", "traces", "metrics"]), outcome: Fixed(&["accepted", "rejected", "failed", "dropped"])]
        "Records for the collector that `[otlp]` names: `logs` (audit lines), `traces` (spans) and `metrics` (points). `accepted`; `rejected` permanently; `failed` without a valid response after all retries; `dropped` because the queue was full."
        "Records that are not `accepted` are missing at the collector; the audit log is complete.";
    STREAMS = Kind::Gauge, "lychgate_streams" []
        "Open event streams to agents."
        "About one per connected agent.";
    LABELS_CAPPED = Kind::Counter, "lychgate_labels_capped_total" [metric: Named("this table", 256), label: Named("this table", 256)]
        "Counts attributed to `other` because a label reached its maximum number of values, or does not accept the value."
        "A server or an agent generates tool names. Totals remain correct.";
    BUILD_INFO = Kind::Gauge, "lychgate_build_info" [version: Fixed(&[env!("CARGO_PKG_VERSION")])]
        "Always 1; the label is the version."
        "Several versions at once: an upgrade is in progress or incomplete.";
    PROCESS_MEMORY = Kind::Gauge, "process_resident_memory_bytes" []
        "Resident memory of the process, in bytes."
        "It follows connections, sessions and kept results, all of which have limits; unbounded growth is a bug.";
    PROCESS_CPU = Kind::Counter, "process_cpu_seconds_total" []
        "Processor time used by the process, in seconds."
        "At a rate near the number of processors, inspection is delayed.";
    PROCESS_START = Kind::Gauge, "process_start_time_seconds" []
        "Start time of the process, in seconds since 1970."
        "Repeated changes mean restarts: check the logs of the gateway and its service.";
    PROCESS_FILES = Kind::Gauge, "process_open_fds" []
        "Open files and sockets."
        "About two per open call. Near `ulimit -n` connections fail.";
}
