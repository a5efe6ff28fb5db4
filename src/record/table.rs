//! Every metric, its labels and what it means: the one place that names them.

/// A metric as the admin port shows it.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// What kind it is.
    pub kind: Kind,
    /// Its labels, in order.
    pub labels: &'static [&'static str],
    /// What it means.
    pub help: &'static str,
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

macro_rules! metrics {
    ($($id:ident = $kind:expr, $name:literal [$($label:literal)*] $help:literal;)*) => {
        $(pub(super) const $id: Metric = Metric { name: $name, kind: $kind, labels: &[$($label),*], help: $help };)*
        /// Every metric.
        pub const METRICS: &[Metric] = &[$($id),*];
    };
}

metrics! {
    MESSAGES = Kind::Counter, "lychgate_messages_total" ["upstream" "direction" "verdict"]
        "Messages judged, by what was done with them: `pass`, `rewrite`, `ask` or `block`. Each message of a batch counts.";
    FINDINGS = Kind::Counter, "lychgate_findings_total" ["rule" "action"]
        "Matches of a rule, by what was done about them; `observed` where the policy only observes.";
    INJECTIONS = Kind::Counter, "lychgate_injection_detected_total" ["upstream" "tool" "rule" "action" "surface"]
        "Inbound matches of rules that wrap, quarantine, withhold or block, by where they stood and by what was done about them; `observed` where the policy only observes. Series with an empty tool are there from the start.";
    COMMANDS_BLOCKED = Kind::Counter, "lychgate_commands_blocked_total" ["upstream" "tool" "rule"]
        "Outbound messages refused, by the rule that refused them. Series with an empty tool are there from the start, and count what calls no tool.";
    INSPECT = Kind::Histogram(INSPECT_SECONDS), "lychgate_inspect_seconds" ["direction"]
        "Time that judging one body took, a batch as a whole.";
    UPSTREAM = Kind::Histogram(UPSTREAM_SECONDS), "lychgate_upstream_seconds" ["upstream"]
        "Time from sending a request to a server until its answer was there.";
    FLOW_PIECES = Kind::Counter, "lychgate_flow_pieces_total" ["upstream" "from"]
        "Pieces of what a server sent that are watched for in what agents send: of what was `quarantined`, and of what the policy calls `untrusted` or `private`.";
    APPROVALS = Kind::Counter, "lychgate_approvals_total" ["outcome" "way"]
        "Questions to people: `asked`; `approved` or `denied`, by the agent's own user (`elicitation`), through the admin port (`console`) or by an `earlier` yes; `expired`; `cancelled` with the call; `unused` where the call never came back; `nobody` where there was nobody to ask.";
    PAGES = Kind::Counter, "lychgate_result_pages_total" ["outcome"]
        "Parts of answers that were too long to be shown at once: asked for and `read`, or `gone` because they were not kept (any more) for the session that asked.";
    DEFINITION_CHANGES = Kind::Counter, "lychgate_definition_changes_total" ["upstream" "class" "action"]
        "Definitions of tools, prompts and resources that are not what they were when they were pinned, by the gravest class of the change and by what was done: `pass`, `hold`, `ask` or `refuse`; `observed` where the policy only observes.";
    DEFINITIONS_HELD = Kind::Gauge, "lychgate_definitions_held" ["upstream"]
        "Definitions that wait for `lychgate pins approve`.";
    CLASSIFIED = Kind::Counter, "lychgate_classified_total" ["upstream" "outcome"]
        "Messages that an external classifier was asked about: `clean`, `flagged`, or why there was no answer (`timeout`, `busy`, `unreachable`, `bad-answer`, `too-large`).";
    OAUTH_REFRESH = Kind::Counter, "lychgate_oauth_refresh_total" ["upstream" "outcome"]
        "Renewals of a token for a server: `renewed`; `unreachable`, which is tried again; `ended`, so that somebody has to log in; or `refused`.";
    OAUTH_EXPIRES = Kind::Gauge, "lychgate_oauth_token_expires_seconds" ["upstream"]
        "Time until the token for a server ends, in seconds, below zero once it has; of several principals the one that was given last. Missing where there is none or it has no end.";
    AUTH_REQUIRED = Kind::Gauge, "lychgate_upstream_auth_required" ["upstream"]
        "Logins that people owe at a server: 0 where all are made.";
    FAILURES = Kind::Counter, "lychgate_failures_total" ["upstream" "side"]
        "Calls that failed, by whose fault it was: `agent`, `server` or `gateway`.";
    TURNED_AWAY = Kind::Counter, "lychgate_turned_away_total" ["reason"]
        "Requests turned away before they were a call: wrong host, origin or path, unknown token or certificate, malformed credential, missing scope, failed TLS handshake; or asked for what its caller has no `access` to.";
    LIMITS_HIT = Kind::Counter, "lychgate_limits_hit_total" ["limit"]
        "How often a limit was hit, by its name in the config; or `resolve_names` for names of hosts in one call, and `command_work`, `sql_work`, `secret_work`, `pattern_work`, `path_work`, `url_work`, `schema_work` where a text would have taken too long to judge, which has it refused.";
    RELOADS = Kind::Counter, "lychgate_reloads_total" ["outcome"]
        "Reloads: `applied`, `weakened` (applied, and something protects less than before) or `refused` (the old rules stay).";
    RULES = Kind::Gauge, "lychgate_rules" ["direction"]
        "Rules in force, each counted once however many policies use it.";
    AUDIT_LINES = Kind::Counter, "lychgate_audit_lines_total" ["outcome"]
        "Audit lines: `written`, `dropped` because the queue was full, or `failed` because the system refused them.";
    STREAMS = Kind::Gauge, "lychgate_streams" []
        "Event streams to agents that are open now.";
    BUILD_INFO = Kind::Gauge, "lychgate_build_info" ["version"]
        "Always 1; the label tells which version this is.";
    PROCESS_MEMORY = Kind::Gauge, "process_resident_memory_bytes" []
        "Memory that the process holds, in bytes.";
    PROCESS_CPU = Kind::Counter, "process_cpu_seconds_total" []
        "Processor time that the process used, in seconds.";
    PROCESS_START = Kind::Gauge, "process_start_time_seconds" []
        "When the process started, in seconds since 1970.";
    PROCESS_FILES = Kind::Gauge, "process_open_fds" []
        "Open files and sockets.";
}
