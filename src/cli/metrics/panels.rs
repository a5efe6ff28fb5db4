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
        row("Injections: what servers said", injections()),
        row("Outbound: what agents asked for", outbound()),
        row("Approvals: what waits for people", approvals()),
        row("Upstreams and logins", upstreams()),
        row("Audit and evidence", audit()),
        row("Limits", limits()),
        row("Process", process()),
    ]
}

fn overview() -> Vec<Panel> {
    vec![
        Panel::table("Alerts firing", &now(UPSTREAM_UP))
            .asking(super::alerts::firing())
            .wide(24)
            .high(5)
            .or("none")
            .about("The annotation `runbook` of each names the command to run next; `lychgate metrics reference` has them all."),
        Panel::stat("Injections", &increase(INJECTED_MESSAGES, Shown))
            .warn(1.0)
            .about("Inbound messages in which a rule that wraps, quarantines, withholds or blocks found something, within the time shown."),
        Panel::stat("Calls refused", &increase(COMMANDS_BLOCKED, Shown))
            .warn(1.0)
            .about("Outbound messages refused, within the time shown."),
        Panel::stat("People asked", &increase(APPROVALS, Shown).only("outcome", "asked"))
            .about("Questions put to people, within the time shown. `lychgate approve` shows those that wait now."),
        Panel::stat("Upstreams down", &now(UPSTREAM_UP))
            .asking(format!("{} - {}", now(UPSTREAM_UP).count(), now(UPSTREAM_UP)))
            .alarm(1.0)
            .about("Servers that cannot be reached or do not answer. `/readyz` on the admin port says why."),
        Panel::stat("Logins owed", &now(AUTH_REQUIRED))
            .warn(1.0)
            .about("Logins that people owe at servers: `lychgate login UPSTREAM`."),
        Panel::stat("Definitions held", &now(DEFINITIONS_HELD))
            .warn(1.0)
            .about("Tools, prompts and resources that are not what was approved: `lychgate pins diff`."),
        Panel::stat("Messages a second", &rate(MESSAGES, Last("5m")))
            .unit(Unit::Requests)
            .about("Both ways, over the last five minutes."),
        Panel::stat("Judging takes (p99)", &quantile("0.99", INSPECT, Step).by(&[]))
            .unit(Unit::Seconds)
            .warn(0.005)
            .alarm(0.05)
            .about("What the gate itself adds to one of a hundred messages."),
        Panel::stat("Audit lines lost", &increase(AUDIT_LINES, Shown).only("outcome", "dropped|failed"))
            .alarm(1.0)
            .about("Lines that are missing in the audit log. None should be."),
        Panel::stat("Limits hit", &increase(LIMITS_HIT, Shown))
            .warn(1.0)
            .about("Calls that were refused, or streams that were ended, by a limit."),
        Panel::stat("Rules in force", &now(RULES_IN_FORCE).max_by(&["direction"]))
            .about("Each rule counted once. At zero nothing is looked for."),
        Panel::stat("Version", &now(BUILD_INFO).by(&["version"]))
            .called("{{version}}")
            .about("How many gates run which version."),
    ]
}

/// The panels of what servers sent.
fn injections() -> Vec<Panel> {
    vec![
        Panel::bars("Messages with injections", &increase(INJECTED_MESSAGES, Step).by(&["upstream"]))
            .called("{{upstream}}")
            .wide(12)
            .about("Each message counts once. The panels below count matches, of which a message may have several."),
        Panel::stat("Matches", &increase(INJECTIONS, Shown))
            .wide(12)
            .about("Matches of injection rules in these messages, within the time shown."),
        Panel::bars("Matches of injection rules", &increase(INJECTIONS, Step).by(&["rule", "action"]))
            .called("{{rule}} ({{action}})")
            .wide(12)
            .about("Each bar is what was found within it. `lychgate rules explain RULE` shows what a rule is after."),
        Panel::bars("Matches by upstream and surface", &increase(INJECTIONS, Step).by(&["upstream", "surface"]))
            .called("{{upstream}}: {{surface}}")
            .wide(12)
            .about("Where it stood: in results (`content`), definitions of tools, resources, errors and so on."),
        Panel::table(
            "Where they came from",
            &increase(INJECTIONS, Shown).by(&["upstream", "tool", "surface", "rule", "action"]).top(20),
        )
        .about("The most frequent within the time shown. An empty tool: not in the result of a tool."),
        Panel::table("Matches by rule", &increase(FINDINGS, Shown).by(&["rule", "action"]).top(20))
            .about("Of all rules, both ways, whatever they do: those that only log or strip among them."),
        Panel::bars("Suppressed findings", &increase(SUPPRESSED, Step).by(&["rule"]))
            .about("Matches without consequence, because a policy suppresses them."),
        Panel::lines("Suppressions", &now(SUPPRESSIONS).by(&["state"]))
            .about("Those that expired have no effect any more, and somebody should look at them: `lychgate check`."),
        Panel::bars("Bytes that nobody looked at", &increase(UNINSPECTED, Step).by(&["reason"])).unit(Unit::Bytes).about(
            "Images, archives, what is encrypted or too long: it passes unread, and the audit line says which part of what.",
        ),
        Panel::bars("External classifier", &increase(CLASSIFIED, Step).by(&["outcome"]))
            .about("What it said, or why it said nothing: then `on_failure` of the policy decides."),
    ]
}

fn outbound() -> Vec<Panel> {
    vec![
        Panel::bars("Refused calls by rule", &increase(COMMANDS_BLOCKED, Step).by(&["rule"]))
            .wide(12)
            .about("What agents asked for and did not get."),
        Panel::table("What was refused", &increase(COMMANDS_BLOCKED, Shown).by(&["upstream", "tool", "rule"]).top(20))
            .about("The most frequent within the time shown. The audit log has each with its agent."),
        Panel::lines("Messages by verdict", &rate(MESSAGES, Step).by(&["direction", "verdict"]))
            .unit(Unit::Requests)
            .wide(12)
            .about("All traffic that was judged."),
        Panel::bars(
            "Pieces of what came in, watched for in what goes out",
            &increase(FLOW_PIECES, Step).by(&["upstream", "from"]),
        )
        .wide(12)
        .about("Of what was quarantined, and of what the policy calls untrusted or private."),
    ]
}

fn approvals() -> Vec<Panel> {
    vec![
        Panel::bars("Questions to people", &increase(APPROVALS, Step).by(&["outcome", "way"]))
            .about("Many that expired or found nobody: people are not reached, and their agents are refused."),
        Panel::bars("Notifications of approval requests", &increase(NOTIFICATIONS, Step).by(&["way", "outcome"]))
            .about("By `notify_command` and `webhook`. `failed` and `dropped` ones reached nobody."),
        Panel::bars("Definitions that changed", &increase(DEFINITION_CHANGES, Step).by(&["class", "action"]))
            .called("{{class}}: {{action}}")
            .about("Against what was pinned, by the gravest change: `lychgate pins diff`."),
        Panel::lines("Definitions that wait for approval", &now(DEFINITIONS_HELD).max_by(&["upstream"]))
            .warn(1.0)
            .about("`lychgate pins approve` lets them pass."),
    ]
}

fn upstreams() -> Vec<Panel> {
    vec![
        Panel::states("There or not", &now(UPSTREAM_UP).min_by(&["upstream"]), UP)
            .about("As `/readyz` tells, which also says why one is down."),
        Panel::lines("Waiting for servers", &quantile("0.5", UPSTREAM, Step).by(&["upstream"]))
            .called("{{upstream}} p50")
            .also(&quantile("0.99", UPSTREAM, Step).by(&["upstream"]), "{{upstream}} p99")
            .unit(Unit::Seconds)
            .about("From sending a request until its answer was there, without the gate."),
        Panel::lines("Failures by side", &rate(FAILURES, Step).by(&["upstream", "side"]))
            .unit(Unit::Requests)
            .about("By whose fault a call failed. The log names the cause."),
        Panel::lines("Logins owed at servers", &now(AUTH_REQUIRED).max_by(&["upstream"]))
            .warn(1.0)
            .about("`lychgate login UPSTREAM`, or the link that agents are given."),
        Panel::bars("Renewals of tokens", &increase(OAUTH_REFRESH, Step).by(&["upstream", "outcome"]))
            .about("`unreachable` is tried again; `ended` and `refused` want a person."),
        Panel::lines("Time until tokens end", &now(OAUTH_EXPIRES).min_by(&["upstream"]))
            .unit(Unit::Seconds)
            .about("It falls until the gate renews the token, and begins anew."),
    ]
}

fn audit() -> Vec<Panel> {
    vec![
        Panel::lines("Audit lines", &rate(AUDIT_LINES, Step).by(&["outcome"])).unit(Unit::PerSecond)
            .about("`dropped`: the queue was full. `failed`: the system refused them."),
        Panel::bars("Checkpoints", &increase(AUDIT_CHECKPOINTS, Step).by(&["outcome"])).called("checkpoints {{outcome}}")
            .also(&increase(AUDIT_ANCHORS, Step).by(&["outcome"]), "anchors {{outcome}}")
            .about("Signed heads of the audit log, and those that were told elsewhere. None should fail: `lychgate audit verify`."),
        Panel::lines("Audit log found tampered with", &now(AUDIT_TAMPERED).by(&["how"]))
            .warn(1.0)
            .about("Cut, written to by somebody else, or deleted while the gate wrote it: `lychgate audit verify`."),
        Panel::bars("Files of the audit log", &increase(AUDIT_FILES, Step).by(&["outcome"])).about("Put aside, and removed once they need not be kept."),
        Panel::bars("Quarantine", &increase(QUARANTINE_ITEMS, Step).by(&["outcome"])).about("What was taken out and what became of it: `lychgate quarantine list`."),
        Panel::bars("Evidence", &increase(EVIDENCE_RECORDS, Step).by(&["outcome"])).called("records {{outcome}}")
            .also(&increase(EVIDENCE_FORGOTTEN, Step), "segments forgotten")
            .about("Whole messages that are kept to be replayed. `failed` and `dropped` ones are missing there."),
        Panel::bars("Sent to the collector", &increase(EXPORTED, Step).by(&["signal", "outcome"])).about("Over OTLP. What was not accepted is missing there; the audit log has its lines all the same."),
        Panel::bars("Reloads", &increase(RELOADS, Step).by(&["outcome"]))
            .about("`weakened`: something protects less than before, and the audit line `reloaded` says what. `refused`: `lychgate check`."),
    ]
}

fn limits() -> Vec<Panel> {
    vec![
        Panel::bars("Limits hit, by name", &increase(LIMITS_HIT, Step).by(&["limit"]))
            .about("By their names in the config. One that honest work hits is too small."),
        Panel::bars("Turned away", &increase(TURNED_AWAY, Step).by(&["reason"]))
            .about("Requests that never became a call. Much of `token`: somebody guesses, or an agent's token was taken back."),
        Panel::bars("Long answers read on", &increase(PAGES, Step).by(&["outcome"]))
            .about("Where many are `gone`, the limits `kept_result…` are too small."),
        Panel::bars("Labels capped", &increase(LABELS_CAPPED, Step).by(&["metric", "label"]))
            .called("{{label}} of {{metric}}")
            .about("Counts that went to `other`: somebody invents names of tools."),
    ]
}

fn process() -> Vec<Panel> {
    vec![
        Panel::lines("Judging a message", &quantile("0.5", INSPECT, Step).by(&["direction"]))
            .called("{{direction}} p50")
            .also(&quantile("0.99", INSPECT, Step).by(&["direction"]), "{{direction}} p99")
            .unit(Unit::Seconds)
            .about("What the gate itself adds."),
        Panel::lines("Open streams", &now(STREAMS).by(&["instance"])).about("Event streams to agents."),
        Panel::lines("Memory", &now(PROCESS_MEMORY).by(&["instance"])).unit(Unit::Bytes).about("Held by the process."),
        Panel::lines("Processor", &rate(PROCESS_CPU, Step).by(&["instance"])).unit(Unit::Share).about("100 % is one processor."),
        Panel::lines("Open files", &now(PROCESS_FILES).by(&["instance"])).about("Sockets among them; `ulimit -n` is the bound."),
        Panel::stat("Running since", &now(PROCESS_START).max_by(&["instance"]))
            .unit(Unit::Since)
            .wide(8)
            .about("A gate that begins again and again is ended by something: see its log, and the service's."),
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
