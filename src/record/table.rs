//! Every metric, its labels and what it means: the one place that names them. The exposition, the reference page, the
//! dashboard and the alert rules follow from it (`cli/metrics`).

use super::approval::{OUTCOMES, WAYS};
use super::label::Values::{Fixed, Given, Named};
use super::label::words;
use super::retention::QUARANTINE_OUTCOMES;
use crate::config::ChangeClass;
use crate::detect::flow::From;
use crate::inspect::Unread;

pub use super::label::{GIVEN_SERIES, Label, OTHER, Values};

/// A metric as the admin port shows it.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// What kind it is.
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

const INSPECT_SECONDS: &[f64] =
    &[0.000_01, 0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.05, 0.25, 1.0];
const UPSTREAM_SECONDS: &[f64] = &[0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0];

const UPSTREAMS: Values = Named("upstreams of the config", 1024);
const RULES: Values = Named("ids of rules", 4096);
const TOOLS: Values = Given("what agents call and servers list", 512);
const LIMITS: Values = Named("limits of the config, and budgets within the gate", 256);
const DIRECTIONS: Values = Fixed(&["outbound", "inbound"]);
const VERDICTS: Values = Fixed(&["pass", "rewrite", "ask", "block"]);
const ACTIONS: Values =
    Fixed(&["log", "strip", "wrap", "redact", "quarantine", "withhold", "ask", "block", "observed", "suppressed"]);
const SURFACES: Values = Fixed(&[
    "arguments",
    "params",
    "answer",
    "content",
    "structured",
    "definition",
    "instructions",
    "prompt",
    "resource",
    "error",
    "notification",
    "question",
    "other",
]);
const CHANGES: Values = Fixed(&words(ChangeClass::WORDS));
const UNREAD: Values = Fixed(&words(Unread::WORDS));
const ORIGINS: Values = Fixed(&words(From::WORDS));

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
        "Messages judged, by what was done with them: `pass`, `rewrite`, `ask` or `block`. Each message of a batch counts."
        "The traffic. A fall to nothing means that agents go another way, or nowhere.";
    FINDINGS = Kind::Counter, "lychgate_findings_total" [rule: RULES, action: ACTIONS]
        "Matches of a rule, by what was done about them; `observed` where the policy only observes, `suppressed` where it suppresses them."
        "A rule that matches far more than others is either under attack or too wide: `lychgate rules explain RULE`.";
    SUPPRESSED = Kind::Counter, "lychgate_suppressed_findings_total" [rule: RULES]
        "Matches of a rule that had no consequence, because a policy suppresses them (`suppress`)."
        "Much of it, and the rule is too wide, or the suppression is.";
    SUPPRESSIONS = Kind::Gauge, "lychgate_suppressions" [state: Fixed(&["active", "expired"])]
        "Suppressions in the policies in force: `active`, or `expired` and so without effect, which somebody should look at."
        "`lychgate check` names those that are over.";
    INJECTIONS = Kind::Counter, "lychgate_injection_detected_total" [upstream: UPSTREAMS, tool: TOOLS, rule: RULES, action: ACTIONS, surface: SURFACES]
        "Inbound matches of rules that wrap, quarantine, withhold or block, by where they stood and by what was done about them; `observed` where the policy only observes. Series with an empty tool are there from the start."
        "What a server said that reads as an order to the agent. The audit line of the same rule has message and place.";
    INJECTED_MESSAGES = Kind::Counter, "lychgate_injection_messages_total" [upstream: UPSTREAMS, tool: TOOLS]
        "Inbound messages with at least one match that `lychgate_injection_detected_total` counts. A message counts once, however many rules match in it; a list of tools counts for the first tool with a match."
        "How often servers sent an injection. Alerts use this counter; the matches, by rule, are in `lychgate_injection_detected_total`.";
    COMMANDS_BLOCKED = Kind::Counter, "lychgate_commands_blocked_total" [upstream: UPSTREAMS, tool: TOOLS, rule: RULES]
        "Outbound messages refused, by the rule that refused them. Series with an empty tool are there from the start, and count what calls no tool."
        "What an agent asked for and did not get. It may follow orders that it read just before.";
    INSPECT = Kind::Histogram(INSPECT_SECONDS), "lychgate_inspect_seconds" [direction: DIRECTIONS]
        "Time that judging one body took, a batch as a whole."
        "What the gate itself adds to a call. It grows with the length of messages, and when the processor is busy elsewhere.";
    UNINSPECTED = Kind::Counter, "lychgate_uninspected_bytes_total" [reason: UNREAD]
        "Bytes of messages that no rule looked at, by why not; where a tool's schema could not be checked, those of its arguments, which other rules did look at."
        "What passes unread. The audit line of a message says which part of it, and why.";
    UPSTREAM = Kind::Histogram(UPSTREAM_SECONDS), "lychgate_upstream_seconds" [upstream: UPSTREAMS]
        "Time from sending a request to a server until its answer was there."
        "How slow a server is, without the gate.";
    UPSTREAM_UP = Kind::Gauge, "lychgate_upstream_up" [upstream: UPSTREAMS]
        "Whether an upstream is up, as in `/readyz`: 1 where its server answers in MCP or requires authentication; 0 where it cannot be reached, does not answer in MCP, or its configuration has a fault."
        "`/readyz` on the admin port has the reason and what to change. A series ends when its upstream is removed.";
    FLOW_PIECES = Kind::Counter, "lychgate_flow_pieces_total" [upstream: UPSTREAMS, from: ORIGINS]
        "Pieces of what a server sent that are watched for in what agents send: of what was `quarantined`, and of what the policy calls `untrusted` or `private`."
        "It shows that flows are watched at all; what is found of them is in the findings of flow rules.";
    APPROVALS = Kind::Counter, "lychgate_approvals_total" [outcome: Fixed(&OUTCOMES), way: Fixed(&WAYS)]
        "Questions to people: `asked`; `approved` or `denied`, by the agent's own user (`elicitation`), through the admin port (`console`) or by an `earlier` yes; `expired`; `cancelled` with the call; `unused` where the call never came back; `nobody` where there was nobody to ask."
        "Many `expired` or `nobody`: people are not reached, and their agents are refused. `lychgate approve` shows what waits.";
    NOTIFICATIONS = Kind::Counter, "lychgate_approval_notifications_total" [way: Fixed(&["command", "webhook"]), outcome: Fixed(&["sent", "failed", "dropped"])]
        "Notifications of approval requests by `notify_command` and by `webhook`: `sent`; `failed` after all attempts; `dropped` because too many others waited."
        "What is not `sent` did not reach anybody. The log has the reason of the first failure.";
    PAGES = Kind::Counter, "lychgate_result_pages_total" [outcome: Fixed(&["read", "gone"])]
        "Parts of answers that were too long to be shown at once: asked for and `read`, or `gone` because they were not kept (any more) for the session that asked."
        "Where many are `gone`, `kept_results`, `kept_result_bytes` or `kept_result_seconds` are too small.";
    DEFINITION_CHANGES = Kind::Counter, "lychgate_definition_changes_total" [upstream: UPSTREAMS, class: CHANGES, action: Fixed(&["pass", "hold", "ask", "refuse", "observed"])]
        "Definitions of tools, prompts and resources that are not what they were when they were pinned, by the gravest class of the change and by what was done: `pass`, `hold`, `ask` or `refuse`; `observed` where the policy only observes."
        "`lychgate pins diff` shows what has changed.";
    DEFINITIONS_HELD = Kind::Gauge, "lychgate_definitions_held" [upstream: UPSTREAMS]
        "Definitions that wait for `lychgate pins approve`."
        "Agents see the old definitions, or none, until somebody has looked.";
    CLASSIFIED = Kind::Counter, "lychgate_classified_total" [upstream: UPSTREAMS, outcome: Fixed(&["unflagged", "flagged", "timeout", "busy", "unreachable", "bad-answer", "too-large"])]
        "Messages that an external classifier was asked about: `flagged`; `unflagged`, which says nothing of what it was not asked about; or why there was no answer (`timeout`, `busy`, `unreachable`, `bad-answer`, `too-large`)."
        "Anything but `unflagged` and `flagged` means that the policy's `on_failure` decides in the classifier's place.";
    OAUTH_REFRESH = Kind::Counter, "lychgate_oauth_refresh_total" [upstream: UPSTREAMS, outcome: Fixed(&["renewed", "unreachable", "ended", "refused"])]
        "Renewals of a token for a server: `renewed`; `unreachable`, which is tried again; `ended`, so that somebody has to log in; or `refused`."
        "`lychgate auth status` tells the last error.";
    OAUTH_EXPIRES = Kind::Gauge, "lychgate_oauth_token_expires_seconds" [upstream: UPSTREAMS]
        "Time until the token for a server ends, in seconds, below zero once it has; of several principals the one that was given last. Missing where there is none or it has no end."
        "It falls until the gate renews the token. One that nears zero was not renewed: `lychgate auth status`.";
    AUTH_REQUIRED = Kind::Gauge, "lychgate_upstream_auth_required" [upstream: UPSTREAMS]
        "Logins that people owe at a server: 0 where all are made."
        "`lychgate login UPSTREAM`, or the link that agents are given.";
    FAILURES = Kind::Counter, "lychgate_failures_total" [upstream: UPSTREAMS, side: Fixed(&["agent", "server", "gateway"])]
        "Calls that failed, by whose fault it was: `agent`, `server` or `gateway`."
        "The log names each of `server` and `gateway` with its cause.";
    TURNED_AWAY = Kind::Counter, "lychgate_turned_away_total" [reason: Fixed(&["access", "certificate", "credential", "host", "issuer", "origin", "path", "scope", "tls", "token"])]
        "Requests turned away before they were a call: wrong host, origin or path, unknown token, issuer or certificate, malformed credential, missing scope, failed TLS handshake; or asked for what its caller has no `access` to."
        "Much of `token` is somebody who guesses, or an agent whose token was taken back: `lychgate agent list`.";
    LIMITS_HIT = Kind::Counter, "lychgate_limits_hit_total" [limit: LIMITS]
        "How often a limit was hit, by its name in the config; or `resolve_names` for names of hosts in one call, and `command_work`, `sql_work`, `secret_work`, `pattern_work`, `path_work`, `url_work`, `schema_work` where a text would have taken too long to judge, which has it refused."
        "Calls are refused by limits that are hit. A limit that honest work hits is too small: it stands under `[limits]`.";
    RELOADS = Kind::Counter, "lychgate_reloads_total" [outcome: Fixed(&["applied", "weakened", "refused"])]
        "Reloads: `applied`, `weakened` (applied, and something protects less than before) or `refused` (the old rules stay)."
        "`lychgate check` tells what is wrong with a config that was refused; the audit line `reloaded` says what became weaker.";
    RULES_IN_FORCE = Kind::Gauge, "lychgate_rules" [direction: DIRECTIONS]
        "Rules in force, each counted once however many policies use it."
        "At zero nothing is looked for.";
    AUDIT_LINES = Kind::Counter, "lychgate_audit_lines_total" [outcome: Fixed(&["written", "dropped", "failed"])]
        "Audit lines: `written`, `dropped` because the queue was full, or `failed` because the system refused them."
        "Anything dropped or failed is missing in the log. With `audit.required` calls are refused instead.";
    QUARANTINE_ITEMS = Kind::Counter, "lychgate_quarantine_items_total" [outcome: Fixed(&QUARANTINE_OUTCOMES)]
        "Messages in quarantine, by what became of them: `kept`; `skipped` where one server had more than 60 in a minute; `failed` where they could not be written; `dropped` for newer ones or because they were too old; `shown`, `released` and `deleted` by a person; `delivered` to their agent; `expired` where the agent did not ask in time."
        "`lychgate quarantine list` shows what is there. Much of `dropped`: the store is too small for what comes.";
    EVIDENCE_RECORDS = Kind::Counter, "lychgate_evidence_records_total" [outcome: Fixed(&["kept", "dropped", "failed"])]
        "Whole messages for the evidence store: `kept`; `dropped` because more was to be written than the disk takes; `failed` because the system refused."
        "What is not kept cannot be replayed or explained in full.";
    EVIDENCE_FORGOTTEN = Kind::Counter, "lychgate_evidence_segments_forgotten_total" []
        "Segments of the evidence store that went for newer ones or because they were too old."
        "Some are to be expected; many a day, and the store holds less time than one may think.";
    AUDIT_CHECKPOINTS = Kind::Counter, "lychgate_audit_checkpoints_total" [outcome: Fixed(&["written", "failed"])]
        "Signed checkpoints of the audit log: `written`, or `failed` because they could not be."
        "Without checkpoints an audit log that was rewritten as a whole cannot be told: `lychgate audit verify`.";
    AUDIT_TAMPERED = Kind::Counter, "lychgate_audit_tampered_total" [how: Fixed(&["cut", "foreign", "deleted"])]
        "Times that the audit log was found otherwise than it was left: `cut` (lines missing or changed), `foreign` (with what somebody else wrote), `deleted` while it was written."
        "Somebody, or a program that rotates logs its own way, has been at it: `lychgate audit verify`.";
    AUDIT_ANCHORS = Kind::Counter, "lychgate_audit_anchors_total" [outcome: Fixed(&["told", "failed"])]
        "Checkpoints that `anchor_command` and `anchor_url` were `told`; `failed` where one of them did not take it in time."
        "The log has why an anchor failed.";
    AUDIT_FILES = Kind::Counter, "lychgate_audit_files_total" [outcome: Fixed(&["rotated", "removed"])]
        "Files of the audit log: `rotated` because they were too large or too old, `removed` because they need not be kept any longer."
        "Where many are rotated an hour, `audit.jsonl` grows faster than was thought.";
    EXPORTED = Kind::Counter, "lychgate_otlp_exported_total" [signal: Fixed(&["logs", "traces", "metrics"]), outcome: Fixed(&["accepted", "rejected", "failed", "dropped"])]
        "Records for the collector that `[otlp]` names: `logs` (audit lines), `traces` (spans) and `metrics` (points). `accepted` by it; `rejected` by it for good; `failed` where it gave no answer, or none that can be read, after all tries; `dropped` because the queue was full."
        "What is not `accepted` is missing at the collector; the audit log has its lines all the same.";
    STREAMS = Kind::Gauge, "lychgate_streams" []
        "Event streams to agents that are open now."
        "About one for each agent that is connected.";
    LABELS_CAPPED = Kind::Counter, "lychgate_labels_capped_total" [metric: Named("this table", 256), label: Named("this table", 256)]
        "Counts that went to `other` because a label had as many values as it may have, or could not have this one."
        "A server or an agent that invents names of tools. What is counted stays right in sum.";
    BUILD_INFO = Kind::Gauge, "lychgate_build_info" [version: Fixed(&[env!("CARGO_PKG_VERSION")])]
        "Always 1; the label tells which version this is."
        "Several values at once: an update is under way, or was forgotten somewhere.";
    PROCESS_MEMORY = Kind::Gauge, "process_resident_memory_bytes" []
        "Memory that the process holds, in bytes."
        "It follows connections, sessions and kept results, all of which have limits; one that only grows is a fault of ours.";
    PROCESS_CPU = Kind::Counter, "process_cpu_seconds_total" []
        "Processor time that the process used, in seconds."
        "Near the number of processors, judging waits for its turn.";
    PROCESS_START = Kind::Gauge, "process_start_time_seconds" []
        "When the process started, in seconds since 1970."
        "Changes again and again where something ends the gate: see its log, and the service's.";
    PROCESS_FILES = Kind::Gauge, "process_open_fds" []
        "Open files and sockets."
        "About two for each call under way. Near `ulimit -n` connections fail.";
}
