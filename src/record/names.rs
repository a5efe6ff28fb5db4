//! The names of everything that stands in an audit line: the one place that spells them.
//!
//! Where OpenTelemetry's conventions for MCP and GenAI (semconv 1.39, `mcp.*`, `gen_ai.*`, `jsonrpc.*`, `rpc.*`, `error.*`,
//! and `trace_id` of "Trace Context in non-OTLP Log Formats") or OCSF 1.6 (`time_dt`, `severity`, `disposition`,
//! `actor.user.name`) name a thing, it has that name; the rest is lychgate's own. What each
//! means, and where its name comes from, is told in `deploy/audit.schema.json`, which a test holds against this table.

macro_rules! names {
    ($($id:ident = $name:literal;)*) => {
        $(#[doc = concat!("`", $name, "`")] pub const $id: &str = $name;)*
        /// All of them.
        pub const ALL: &[&str] = &[$($id),*];
    };
}

names! {
    // Every line.
    TIME = "time_dt";
    EVENT = "event";
    SEVERITY = "severity";
    TRACE = "trace_id";
    SPAN = "span_id";
    SEQ = "seq";
    PREV = "prev";
    PROVE = "prove";

    // Who, to whom, as part of what.
    AUDIT = "audit";
    AGENT = "gen_ai.agent.name";
    USER = "actor.user.name";
    SESSION = "mcp.session.id";
    UPSTREAM = "upstream";
    UPSTREAMS = "upstreams";
    ERA = "era";
    REVISION = "mcp.protocol.version";
    TRANSPORT = "network.transport";

    // A message.
    ITEM = "item";
    DIRECTION = "direction";
    KIND = "kind";
    METHOD = "mcp.method.name";
    OPERATION = "gen_ai.operation.name";
    TOOL = "gen_ai.tool.name";
    PROMPT = "gen_ai.prompt.name";
    RESOURCE = "mcp.resource.uri";
    REQUEST = "jsonrpc.request.id";
    STATUS = "rpc.response.status_code";
    ERROR = "error.type";
    ERROR_MESSAGE = "error.message";
    BYTES = "bytes";
    ARGUMENTS = "gen_ai.tool.call.arguments";
    SENT = "sent";
    SENT_SHA256 = "sent_sha256";
    SENT_LEFT_OUT = "sent_left_out";
    RESULT_BYTES = "result_bytes";
    RESULT_TOKENS = "result_tokens";
    CUT_BYTES = "cut_bytes";
    KEPT_RESTS = "kept_rests";
    BROKEN_DIGESTS = "broken_digests";

    // What was decided.
    MODE = "mode";
    VERDICT = "verdict";
    WOULD = "would";
    DISPOSITION = "disposition";
    RULE = "rule";
    RULES = "rules";
    RULE_SET = "rule_set";
    MODEL = "model";
    INSPECT_US = "inspect_us";
    UPSTREAM_MS = "upstream_ms";

    // What was found.
    FINDINGS = "findings";
    FINDINGS_LEFT_OUT = "findings_left_out";
    ACTION = "action";
    SUPPRESSED = "suppressed";
    SUPPRESSED_ACTION = "suppressed_action";
    SUPPRESSED_REASON = "suppressed_reason";
    SUPPRESSED_UNTIL = "suppressed_until";
    SURFACE = "surface";
    AT = "at";
    READING = "reading";
    EVIDENCE = "evidence";
    SHA256 = "sha256";
    LENGTH = "length";
    SCORE = "score";
    BY = "by";
    SOURCE = "source";
    SOURCE_AGE = "source_age_s";
    WORDING = "wording";
    WORDS = "words";
    POINTS = "points";

    // How much was looked at.
    COVERAGE = "coverage";
    CLEAN = "clean";
    INSPECTED_STRINGS = "inspected_strings";
    INSPECTED_BYTES = "inspected_bytes";
    INSPECTED_READINGS = "inspected_readings";
    UNINSPECTED = "uninspected";
    UNINSPECTED_LEFT_OUT = "uninspected_left_out";
    REASON = "reason";

    // An external classifier.
    CLASSIFIER = "classifier";
    NAME = "name";
    VERSION = "version";
    TEXTS = "texts";
    HIGHEST = "highest";
    FAILED = "failed";
    MS = "ms";

    // Other events.
    SIDE = "side";
    THING = "thing";
    WHY = "why";
    APPROVAL = "approval";
    OUTCOME = "outcome";
    WAY = "way";
    SCOPE = "scope";
    OPEN_MS = "open_ms";
    TIMES = "times";
    POLICY = "policy";
    SHOWN_BYTES = "shown_bytes";
    CLASSES = "classes";
    PINNED_SHA256 = "pinned_sha256";
    LISTED_SHA256 = "listed_sha256";
    COUNT = "count";
    FAULTS = "faults";
    RULE_COUNT = "rule_count";
    WEAKENED = "weakened";
    PRINCIPAL = "principal";
    EXPIRES_UNIX = "expires_unix";
    HOW = "how";
    TORN_BYTES = "torn_bytes";
    LINES = "lines";
}

#[cfg(test)]
pub(super) mod tests;
