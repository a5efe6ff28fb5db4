//! The members of a line.
//!
//! Where OpenTelemetry's conventions for MCP and GenAI (semconv 1.39, `mcp.*`, `gen_ai.*`,
//! `jsonrpc.*`, `rpc.*`, `error.*`, and `trace_id` of "Trace Context in non-OTLP Log Formats") or
//! OCSF 1.6 (`time_dt`, `severity`, `disposition`, `actor.user.name`) define a name, it is used;
//! the others are lychgate's own. Names of lychgate's own numbers carry the unit.

#![allow(
    non_camel_case_types,
    reason = "a member is a type of the same name as the field that has its value"
)]

use super::kind::{Digest, Flag, Id, ListOf, Millis, Number, Ordinal, Raw, Text, Time, True, Word};
use super::object;
#[cfg(test)]
use super::schema::{CAPTIONS, ERRORS, GENAI, MCP, TRACE_CONTEXT, VERDICTS};
#[cfg(test)]
use crate::inspect::Mode;

members! {
    /// When it happened, in UTC with milliseconds (RFC 3339). OCSF's `time` is a number, its twin
    /// in the date-and-time profile is this.
    time: Time = "time_dt" from "OCSF 1.6 (`time_dt`)";
    /// The event that the line records; each value has its own entry under `$defs`. Export it as
    /// the EventName of an OpenTelemetry log record, or as OCSF's `metadata.event_code`: both are
    /// fields of an envelope that a line does not have.
    event: Word = "event";
    /// Severity: of a judged message, the highest of its findings that are not suppressed; of other
    /// events, fixed by the event and its outcome. OCSF's captions.
    severity: Word = "severity" from "OCSF 1.6 (`severity`)", in CAPTIONS;
    /// The number of the line, from 1, without a gap through all rotated files. Written last but
    /// one.
    seq: Ordinal = "seq";
    /// SHA-256 of the bytes of the line before, without its line feed: the chain that `lychgate
    /// audit verify` follows. 64 zeros in the first line of a new log. Written last.
    prev: Digest = "prev";
    /// True where `lychgate prove` caused the line. Counters, the console and, unless asked for,
    /// `audit tail` and `audit stats` leave such lines out; alerts on the log should too.
    prove: True = "prove";
    /// The trace that the call belongs to (W3C Trace Context).
    trace: Text = "trace_id" from TRACE_CONTEXT, like "^[0-9a-f]{32}$";
    /// The span of the call.
    span: Text = "span_id" from TRACE_CONTEXT, like "^[0-9a-f]{16}$";
    /// Id of a judgement (UUID, version 7): the id in refusals and in quarantine notices, and the
    /// argument of `lychgate audit show` and `lychgate explain`. Messages of one batch share it,
    /// and later lines about it repeat it; that is why it is not OCSF's `metadata.uid`, which names
    /// one line.
    audit: Id = "audit";
    /// The agent, by its name in the config; `local` where agents do not authenticate.
    agent: Text = "gen_ai.agent.name" from GENAI;
    /// The user of the agent, according to its token, certificate or proxy.
    user: Text = "actor.user.name" from "OCSF 1.6 (`actor.user.name`)";
    /// The MCP session. The id itself is a credential, so this is the start of its SHA-256 in hex:
    /// the same session has the same value, and nobody can use it.
    session: Text = "mcp.session.id" from MCP, like "^[0-9a-f]{12}$";
    /// The upstream server, by its name in the config, as in the metrics. OpenTelemetry has its
    /// address (`server.address`), OCSF its host; neither has a stable name.
    upstream: Text = "upstream";
    /// The upstream servers concerned.
    upstreams: ListOf<Text> = "upstreams";
    /// The generation of MCP that the agent uses: `legacy` with sessions (2024-11-05 to
    /// 2025-11-25), `modern` without (2026-07-28).
    era: Word = "era", in ["legacy", "modern"];
    /// The revision of MCP of the message, where it is stated or negotiated.
    revision: Text = "mcp.protocol.version" from MCP;
    /// What carries the agent's messages to the gate: `tcp` for HTTP, `pipe` for standard input and
    /// output.
    transport: Word = "network.transport" from "OpenTelemetry, `network.*` (semconv 1.39)", in ["tcp", "pipe"];
    /// Index of the message in its batch, from 0.
    item: Number = "item";
    /// `outbound`: from the agent to the server; `inbound`: back. Not OCSF's
    /// `connection_info.direction`, which is of a connection.
    direction: Word = "direction", in ["outbound", "inbound"];
    /// Kind of message; `text` is a body that is not JSON-RPC, such as the page of an HTTP error.
    kind: Word = "kind", in ["request", "notification", "result", "error", "text"];
    /// The method, or that of the request that is answered.
    method: Text = "mcp.method.name" from MCP;
    /// `execute_tool` for `tools/call`, as the conventions ask for; missing otherwise.
    operation: Word = "gen_ai.operation.name" from GENAI, in ["execute_tool"];
    /// The tool that is called or that responds. Secrets are masked and long names cut.
    tool: Text = "gen_ai.tool.name" from GENAI;
    /// The prompt that is asked for.
    prompt: Text = "gen_ai.prompt.name" from GENAI;
    /// The resource that is read or subscribed to. Secrets are masked and long addresses cut.
    resource: Text = "mcp.resource.uri" from MCP;
    /// The id of the request, or of the one that is answered, without quotation marks.
    request: Text = "jsonrpc.request.id" from "OpenTelemetry, `jsonrpc.*` (semconv 1.39)";
    /// The code of a JSON-RPC error, as a text.
    status: Text = "rpc.response.status_code" from MCP;
    /// Class of the error, a stable identifier: the code of a JSON-RPC error, `tool_error` for a
    /// tool result with `isError`, `_OTHER`, or the gate's own identifier for a call that failed.
    error: Text = "error.type" from ERRORS;
    /// The error with its causes, as a sentence. Parts may come from a server; secrets are masked.
    error_message: Text = "error.message" from ERRORS;
    /// Length of the message, of the list or of the part, in bytes.
    bytes: Number = "bytes";
    /// The arguments of a tool call, redacted: keys and shape kept, secrets masked, long texts cut.
    /// OpenTelemetry's name and place.
    arguments: Raw = "gen_ai.tool.call.arguments" from GENAI;
    /// The same for other content from an agent: `params` of other requests and notifications, or
    /// its answer to a server's request.
    sent: Raw = "sent";
    /// SHA-256 of these arguments or this content as sent.
    sent_sha256: Digest = "sent_sha256";
    /// Number of values left out because of their length.
    sent_left_out: Number = "sent_left_out";
    /// Length of the answer's result or error, in bytes.
    result_bytes: Number = "result_bytes";
    /// Estimated number of model tokens of its text. An estimate, so not
    /// `gen_ai.usage.output_tokens`.
    result_tokens: Number = "result_tokens";
    /// Bytes of an oversized answer that are returned later, on request.
    cut_bytes: Number = "cut_bytes";
    /// Number of texts that were cut.
    kept_rests: Number = "kept_rests";
    /// Places of digests or signatures that no longer match because the gate edited the content
    /// they cover.
    broken_digests: ListOf<Text> = "broken_digests";
    /// Whether verdicts are enforced (`enforce`) or only recorded (`observe`).
    mode: Word = "mode", in Mode::NAMES;
    /// The action taken on the message.
    verdict: Word = "verdict", in VERDICTS;
    /// The action that the policy would have taken in mode `enforce`; only in mode `observe`.
    would: Word = "would", in VERDICTS;
    /// The verdict in OCSF's words: `Allowed`; `Logged`, something was found and it passed;
    /// `Detected`, it would not have passed; `Corrected`, edited; `Quarantined`, something was
    /// taken out; `Delayed`, a person is asked; `Blocked`.
    disposition: Word = "disposition" from "OCSF 1.6 (`disposition`)",
        in ["Allowed", "Logged", "Detected", "Corrected", "Quarantined", "Delayed", "Blocked"];
    /// The rule that blocked it or required approval.
    rule: Text = "rule";
    /// The rules concerned.
    rules: ListOf<Text> = "rules";
    /// Digest of the rules that judged it.
    rule_set: Text = "rule_set";
    /// Duration of the inspection, in microseconds.
    inspect_us: Number = "inspect_us";
    /// Time until the server responded, in milliseconds.
    upstream_ms: Millis = "upstream_ms";
    /// The findings.
    findings: ListOf<object::finding::Object> = "findings";
    /// Number of findings beyond those in the line.
    findings_left_out: Number = "findings_left_out";
    /// Extent of the inspection: `full`, or `partial` where `uninspected` lists the parts that were
    /// not inspected and why.
    coverage: Word = "coverage", in ["full", "partial"];
    /// Everything was inspected and nothing was found: never true where `coverage` is `partial` or
    /// there is a finding.
    clean: Flag = "clean";
    /// Number of texts inspected, in all messages of the body.
    inspected_strings: Number = "inspected_strings";
    /// Their length in bytes.
    inspected_bytes: Number = "inspected_bytes";
    /// Number of these texts that were not judged again, because nothing was found in the same text
    /// before, at the same place and under the same policy: `clean_texts` of the config.
    recognized_strings: Number = "recognized_strings";
    /// Readings of them that were inspected besides the text as received: `plain` (forms folded,
    /// invisible characters removed), `markup`, encodings, ciphers, and interpretations (`shell`,
    /// `path`, `url` and so on). A reading is made only where a cheap check indicates that it may
    /// differ.
    inspected_readings: ListOf<Text> = "inspected_readings";
    /// The parts that no rule inspected, and why.
    uninspected: ListOf<object::uninspected::Object> = "uninspected";
    /// Number of such parts beyond those in the line.
    uninspected_left_out: Number = "uninspected_left_out";
    /// The reason, a stable identifier: of a part that was not inspected, a request that was
    /// rejected, or lines that were lost; of an item in quarantine, in the words of the person.
    reason: Text = "reason";
    /// The result of an external classifier.
    classifier: object::classifier::Object = "classifier";
    /// The party at fault.
    side: Word = "side", in ["agent", "server", "gateway"];
    /// Kind of object: `tool`, `prompt`, `resource`, `template`, `server`, or `upstream` for a
    /// server as a whole.
    thing: Text = "thing";
    /// Its name or address.
    name: Text = "name";
    /// The reason, as a sentence.
    why: Text = "why";
    /// Id of the approval request.
    approval: Text = "approval";
    /// The outcome.
    outcome: Word = "outcome";
    /// Channel: `elicitation`, `console`, `earlier` or `none` for an approval; how a released
    /// message reached its agent.
    way: Word = "way";
    /// Scope of an approval.
    scope: Word = "scope";
    /// The name that the person who decided has given.
    by: Text = "by";
    /// How long the approval request was open, in milliseconds.
    open_ms: Number = "open_ms";
    /// Number of times within the window that counts.
    times: Number = "times";
    /// The policy that applies.
    policy: Text = "policy";
    /// Length of the list as returned to agents, in bytes.
    shown_bytes: Number = "shown_bytes";
    /// Differences of a definition from the pinned one, such as `new-imperative-text` or
    /// `cosmetic`.
    classes: ListOf<Text> = "classes";
    /// The action taken on a changed definition.
    action: Word = "action", in ["pass", "hold", "ask", "refuse", "observed"];
    /// Digest of the pinned definition.
    pinned_sha256: Text = "pinned_sha256";
    /// Digest of the definition that the server lists.
    listed_sha256: Text = "listed_sha256";
    /// The number of them.
    count: Number = "count";
    /// The faults, with file and line.
    faults: ListOf<Text> = "faults";
    /// Number of rules in force.
    rule_count: Number = "rule_count";
    /// Protections that are weaker than before, one sentence each.
    weakened: ListOf<Text> = "weakened";
    /// The owner of a login (`gate`, an agent or a user), or the person who acted on an item in
    /// quarantine.
    principal: Text = "principal";
    /// Expiry of the current token, in seconds since 1970.
    expires_unix: Number = "expires_unix";
    /// How the log continues the previous one: `new`, `continued`, `rotated`, `reopened`,
    /// `after_crash`; `after_cut` (lines are missing or changed), `after_foreign` (another process
    /// has written to it) and `after_deletion` indicate tampering.
    how: Text = "how";
    /// Bytes before it that belong to no line because the last line is incomplete.
    torn_bytes: Number = "torn_bytes";
    /// Number of lines.
    lines: Number = "lines";
}
