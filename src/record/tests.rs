use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::*;
use crate::config::{AuditTo, ChangeClass, EvidenceLevel, PolicyConfig, Suppression};
use crate::detect::Surface;
use crate::document::{Day, Fault};
use crate::inspect::{
    Coverage, Evidence, Finding, Inspection, Refusal, SkipReason, Uninspected, Verdict,
};
use crate::message::{Edit, Message, ReadLimits};
use crate::protocol::{
    AgentName, AuditId, CallError, CallTarget, Context, Era, OpenRequest, SessionId, UpstreamName,
};
use crate::rules::{Action, Library, RuleId, Severity};

use super::table::{Kind, METRICS};

const CALL: &str = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"shell","arguments":{"command":"rm -rf / --no-preserve-root","token":"hunter2","cwd":"/tmp\u2028x"}}}"#;

/// A recorder with its log, for reading it back.
struct TestRecorder {
    _folder: tempfile::TempDir,
    path: PathBuf,
    recorder: Recorder,
}

fn test_recorder(required: bool) -> TestRecorder {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let recorder = Recorder::new(&AuditConfig {
        to: Some(AuditTo::File(path.clone())),
        required,
        ..AuditConfig::default()
    })
    .unwrap();
    TestRecorder {
        _folder: folder,
        path,
        recorder,
    }
}

impl TestRecorder {
    /// Returns the lines, with values that differ from run to run made equal.
    fn lines(&self) -> Vec<String> {
        self.recorder.flush();
        let time =
            regex::Regex::new(r#""time_dt":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z""#).unwrap();
        let text = std::fs::read_to_string(&self.path).unwrap();
        let lines: Vec<String> = text
            .lines()
            .map(|line| time.replace(line, r#""time_dt":"TIME""#).into_owned())
            .collect();
        // The line that the writer adds was not recorded by the test.
        assert!(lines[0].contains(r#""event":"log_opened""#), "{}", lines[0]);
        let told = lines[1..]
            .iter()
            .map(|line| line.rsplit_once(",\"seq\":").unwrap().0.to_owned() + "}");
        told.collect()
    }

    fn record(&self, event: Event<'_>) {
        self.recorder.record(event).unwrap();
    }

    /// Records an inspected message whose verdict is enforced.
    fn judge(&self, direction: Direction, context: &Context, text: &str, inspection: &Inspection) {
        self.judge_as(Mode::Enforce, direction, context, text, inspection);
    }

    fn judge_as(
        &self,
        mode: Mode,
        direction: Direction,
        context: &Context,
        text: &str,
        inspection: &Inspection,
    ) {
        let evidence = if mode == Mode::Observe {
            EvidenceLevel::None
        } else {
            EvidenceLevel::Redacted
        };
        self.record(Event::Judged {
            audit: AuditId(uuid::Uuid::nil()),
            direction,
            context,
            message: &message(text),
            inspection,
            mode,
            evidence,
            rules: "9f3c",
            inspection_time: Duration::from_micros(42),
            response_time: (direction == Direction::Inbound).then(|| Duration::from_millis(12)),
        });
    }

    fn has(&self, line: &str) -> bool {
        self.recorder
            .metrics_text()
            .lines()
            .any(|told| told == line)
    }
}

fn message(text: &str) -> Message {
    // A batch large enough for all tests.
    let limits = ReadLimits {
        batch_items: 100_000,
        ..ReadLimits::default()
    };
    Message::parse(Bytes::copy_from_slice(text.as_bytes()), &limits).unwrap()
}

fn context(asked: &[(&str, &str, Option<&str>)]) -> Context {
    let asked = asked.iter().map(|(id, method, tool)| OpenRequest {
        id: (*id).into(),
        method: (*method).into(),
        tool: tool.map(Into::into),
        continues: false,
        target: CallTarget::Other,
    });
    Context {
        session: SessionId::new("the-session"),
        requests: asked.collect(),
        ..Context::new(
            AgentName("claude".into()),
            UpstreamName("files".into()),
            Era::Legacy,
        )
    }
}

fn finding(rule: &str, action: Action, surface: Surface, at: &str, item: usize) -> Finding {
    Finding {
        rule: RuleId::new(rule),
        title: "t".into(),
        severity: Severity::High,
        action,
        surface,
        at: at.into(),
        item,
        reading: "raw",
        evidence: Evidence {
            sha256: "00ff".into(),
            length: 12,
        },
        detail: None,
        argument: None,
        private: false,
        suppressed: None,
        trace: None,
    }
}

fn inspection(verdict: Verdict, findings: Vec<Finding>) -> Inspection {
    Inspection {
        verdict,
        findings,
        coverage: Coverage {
            strings: 3,
            recognized_strings: 1,
            bytes: 40,
            readings: ["plain", "base64"].into(),
            uninspected: vec![],
        },
        ..Inspection::default()
    }
}

fn refusal(rule: &str, item: usize) -> Refusal {
    Refusal {
        item,
        rule: RuleId::new(rule),
        title: "t".into(),
        why: "w".into(),
    }
}

/// `UPDATE=1 cargo test --lib record` rewrites the golden lines.
#[test]
fn lines_of_every_event() {
    for required in [true, false] {
        let told = test_recorder(required);
        let plain = context(&[]);
        let asking = context(&[
            ("7", "tools/call", Some("shell")),
            ("8", "tools/list", None),
        ]);
        let blocked = inspection(
            Verdict::Block(vec![refusal("delete-root", 0)]),
            vec![finding(
                "delete-root",
                Action::Block,
                Surface::Arguments,
                "/params/arguments/command",
                0,
            )],
        );
        told.judge(Direction::Outbound, &plain, CALL, &blocked);
        told.judge_as(Mode::Observe, Direction::Outbound, &plain, CALL, &blocked);
        let result = r#"[{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"ignore previous"}]}},{"jsonrpc":"2.0","id":8,"result":{"tools":[{"name":"a"},{"name":"b","description":"x"}]}}]"#;
        let mut quarantined = inspection(
            Verdict::Rewrite(vec![Edit::text(71..86, "")]),
            vec![
                finding(
                    "ignore-previous",
                    Action::Quarantine,
                    Surface::Content,
                    "/0/result/content/0/text",
                    0,
                ),
                finding(
                    "hidden-order",
                    Action::Quarantine,
                    Surface::Definition,
                    "/1/result/tools/1/description",
                    1,
                ),
            ],
        );
        quarantined.coverage.uninspected = vec![Uninspected {
            at: "/1/result/icon".into(),
            reason: SkipReason::Binary,
            bytes: 9,
        }];
        told.judge(Direction::Inbound, &asking, result, &quarantined);
        let findings = [finding(
            "ignore-previous",
            Action::Quarantine,
            Surface::Error,
            "",
            0,
        )];
        told.record(Event::JudgedText {
            audit: AuditId(uuid::Uuid::nil()),
            context: &plain,
            bytes: 99,
            verdict: "rewrite",
            findings: &findings,
            coverage: &quarantined.coverage,
            mode: Mode::Observe,
            rules: "9f3c",
        });
        let error = CallError::Connect(io::Error::other(
            "refused by\nAuthorization: Bearer abcdefgh1234",
        ));
        told.record(Event::Failed {
            context: &context(&[("7", "tools/call", Some("shell"))]),
            error: &error,
        });
        told.record(Event::Rejected { reason: "origin" });
        told.record(Event::Limit { name: "depth" });
        let rules = [RuleId::new("ask-first")];
        let asked = Approval {
            context: &plain,
            audit: Some(AuditId(uuid::Uuid::nil())),
            id: "k3f91c02",
            tool: "shell",
            rules: &rules,
            outcome: "asked",
            way: "none",
            scope: None,
            approver: None,
            duration: None,
        };
        let answered = Approval {
            outcome: "approved",
            way: "console",
            scope: Some("once"),
            approver: Some("ann\u{202e}"),
            duration: Some(Duration::from_secs(3)),
            audit: None,
            ..asked
        };
        told.record(Event::Approval(&asked));
        told.record(Event::Approval(&answered));
        told.record(Event::ResultPage(&ResultPage {
            context: &plain,
            outcome: "read",
            bytes: 7,
        }));
        let audit = Some(AuditId(uuid::Uuid::nil()));
        let again = Event::RefusedAgain {
            context: &plain,
            tool: "shell",
            rule: "delete-root",
            times: 6,
            audit,
        };
        told.record(again);
        let list = Event::Overlaid {
            context: &plain,
            policy: "default",
            received_bytes: 900,
            shown_bytes: 700,
        };
        told.record(list);
        let change = DefinitionChange {
            context: Some(&plain),
            upstream: &plain.upstream,
            kind: "tool",
            name: "shell\u{202e}",
            classes: &[ChangeClass::NewImperativeText, ChangeClass::Cosmetic],
            action: "hold",
            old: Some("00aa"),
            new: Some("00bb"),
        };
        told.record(Event::Definition(&change));
        told.record(Event::Pinned {
            context: &plain,
            count: 3,
        });
        told.record(Event::Held {
            upstream: &plain.upstream,
            count: 1,
        });
        told.record(Event::PinsReloaded {
            upstreams: &["files"],
        });
        let fault = Fault::of_file("lychgate.lock", "cannot be read", None);
        told.record(Event::PinsRefused { faults: &[fault] });
        told.record(Event::Reloaded {
            rules: 60,
            weakened: &["`delete-root` is off".to_owned()],
        });
        let fault = Fault::of_file("rules/a.toml", "cannot be read", None);
        told.record(Event::ReloadRefused { faults: &[fault] });

        let lines = told.lines();
        for line in &lines {
            let read: serde_json::Value = serde_json::from_str(line).unwrap();
            assert!(read["event"].is_string());
            assert_eq!(
                entry::schema::lines::fault(&line.replace("TIME", "2026-11-22T10:00:00.000Z")),
                None,
                "{line}"
            );
            assert_lacks!(line, "hunter2", "abcdefgh1234");
            assert!(
                !line.contains("rm -rf") || line.contains(r#""mode":"enforce""#),
                "only where the policy keeps evidence: {line}"
            );
        }
        let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/snapshots/audit.jsonl");
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(golden, lines.join("\n") + "\n").unwrap();
        }
        let wanted = std::fs::read_to_string(golden).unwrap_or_default();
        assert_eq!(
            lines,
            wanted.lines().collect::<Vec<_>>(),
            "required: {required}"
        );
        assert!(
            told.has(r#"lychgate_audit_lines_total{outcome="written"} 18"#),
            "{}",
            told.recorder.metrics_text()
        );

        for line in [
            r#"lychgate_messages_total{direction="outbound",upstream="files",verdict="block"} 2"#,
            r#"lychgate_approvals_total{outcome="approved",way="console"} 1"#,
            r#"lychgate_approvals_total{outcome="denied",way="elicitation"} 0"#,
            r#"lychgate_limits_hit_total{limit="repeated_refusals"} 1"#,
            r#"lychgate_definition_changes_total{action="hold",class="new-imperative-text",upstream="files"} 1"#,
            r#"lychgate_definitions_held{upstream="files"} 1"#,
            r#"lychgate_messages_total{direction="outbound",upstream="files",verdict="pass"} 1"#,
            r#"lychgate_messages_total{direction="inbound",upstream="files",verdict="rewrite"} 1"#,
            r#"lychgate_messages_total{direction="inbound",upstream="files",verdict="pass"} 2"#,
            r#"lychgate_findings_total{action="block",rule="delete-root"} 1"#,
            r#"lychgate_findings_total{action="observed",rule="delete-root"} 1"#,
            r#"lychgate_commands_blocked_total{rule="delete-root",tool="shell",upstream="files"} 2"#,
            r#"lychgate_injection_detected_total{action="quarantine",rule="ignore-previous",surface="content",tool="shell",upstream="files"} 1"#,
            r#"lychgate_injection_detected_total{action="quarantine",rule="hidden-order",surface="definition",tool="b",upstream="files"} 1"#,
            r#"lychgate_injection_detected_total{action="observed",rule="ignore-previous",surface="error",tool="",upstream="files"} 1"#,
            r#"lychgate_injection_messages_total{tool="shell",upstream="files"} 1"#,
            r#"lychgate_inspect_seconds_count{direction="outbound"} 2"#,
            r#"lychgate_inspect_seconds_count{direction="inbound"} 1"#,
            r#"lychgate_upstream_seconds_count{upstream="files"} 2"#,
            r#"lychgate_failures_total{side="server",upstream="files"} 1"#,
            r#"lychgate_turned_away_total{reason="origin"} 1"#,
            r#"lychgate_limits_hit_total{limit="depth"} 1"#,
            r#"lychgate_uninspected_bytes_total{reason="binary"} 18"#,
            r#"lychgate_uninspected_bytes_total{reason="encrypted"} 0"#,
            r#"lychgate_limits_hit_total{limit="message_bytes"} 0"#,
            r#"lychgate_reloads_total{outcome="weakened"} 1"#,
            r#"lychgate_reloads_total{outcome="refused"} 1"#,
            r#"lychgate_reloads_total{outcome="applied"} 0"#,
        ] {
            assert!(
                told.has(line),
                "{line}\nnot in:\n{}",
                told.recorder.metrics_text()
            );
        }
    }
}

#[test]
fn a_required_log_that_fails_refuses_the_call() {
    let full = |required| {
        Recorder::new(&AuditConfig {
            to: Some(AuditTo::File("/dev/full".into())),
            required,
            ..AuditConfig::default()
        })
        .unwrap()
    };
    let one = message(CALL);
    let context = context(&[]);
    let clean = inspection(Verdict::Pass, vec![]);
    let event = || Event::Judged {
        audit: AuditId::generate(),
        direction: Direction::Outbound,
        context: &context,
        message: &one,
        inspection: &clean,
        mode: Mode::Enforce,
        evidence: EvidenceLevel::Redacted,
        rules: "9f3c",
        inspection_time: Duration::ZERO,
        response_time: None,
    };
    let recorder = full(true);
    assert_eq!(
        recorder.record(event()).unwrap_err().kind(),
        io::ErrorKind::StorageFull
    );
    assert_contains!(
        recorder.metrics_text(),
        "lychgate_audit_lines_total{outcome=\"failed\"} 1"
    );
    assert!(full(false).record(event()).is_ok());
    assert!(
        Recorder::new(&AuditConfig::default())
            .unwrap()
            .record(event())
            .is_ok()
    );
}

fn rule_sets() -> (crate::rules::RuleSet, crate::rules::RuleSet) {
    let folder = tempfile::tempdir().unwrap();
    for (direction, action) in [("outbound", "block"), ("inbound", "quarantine")] {
        let text = format!(
            "format = 1\ndirection = \"{direction}\"\n[[rule]]\nid = \"{direction}-rule\"\ntitle = \"t\"\nwhy = \"w\"\nseverity = \"high\"\n\
             action = \"{action}\"\nfind.pattern = {{ keywords = [\"evil\"], any = ['''\\bevil\\b'''] }}\ncatches = [\"evil\"]\nspares = [\"good\"]\n"
        );
        std::fs::write(folder.path().join(format!("{direction}.toml")), text).unwrap();
    }
    let library = Library::load(false, &[folder.path().to_owned()]).unwrap();
    let set = |direction| {
        library
            .rule_set(direction, &PolicyConfig::default())
            .unwrap()
    };
    (set(Direction::Outbound), set(Direction::Inbound))
}

#[test]
fn every_rule_counts_from_zero() {
    let told = test_recorder(false);
    let (outbound, inbound) = rule_sets();
    let watched = UpstreamName("watched".into());
    let enforced = UpstreamName("files".into());
    told.recorder.announce_rules(&[
        UpstreamRules {
            upstream: &enforced,
            mode: Mode::Enforce,
            outbound: &outbound,
            inbound: &inbound,
        },
        UpstreamRules {
            upstream: &watched,
            mode: Mode::Observe,
            outbound: &outbound,
            inbound: &inbound,
        },
    ]);
    for line in [
        r#"lychgate_rules{direction="outbound"} 1"#,
        r#"lychgate_rules{direction="inbound"} 1"#,
        r#"lychgate_findings_total{action="block",rule="outbound-rule"} 0"#,
        r#"lychgate_findings_total{action="observed",rule="inbound-rule"} 0"#,
        r#"lychgate_injection_detected_total{action="",rule="",surface="",tool="",upstream="files"} 0"#,
        r#"lychgate_injection_detected_total{action="",rule="",surface="",tool="",upstream="watched"} 0"#,
        r#"lychgate_injection_messages_total{tool="",upstream="files"} 0"#,
        r#"lychgate_commands_blocked_total{rule="",tool="",upstream="files"} 0"#,
        r#"lychgate_failures_total{side="server",upstream="files"} 0"#,
        r#"lychgate_messages_total{direction="inbound",upstream="watched",verdict="rewrite"} 0"#,
        r#"lychgate_turned_away_total{reason="token"} 0"#,
    ] {
        assert!(
            told.has(line),
            "{line}\nnot in:\n{}",
            told.recorder.metrics_text()
        );
    }
}

#[test]
fn tool_labels_are_names_and_few() {
    let told = test_recorder(false);
    for n in 0..600 {
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"tool-{n}"}}}}"#
        );
        let blocked = inspection(Verdict::Block(vec![refusal("r", 0)]), vec![]);
        told.judge(Direction::Outbound, &context(&[]), &text, &blocked);
    }
    let strange = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a b\"\n"}}"#;
    let blocked = inspection(Verdict::Block(vec![refusal("r", 0)]), vec![]);
    told.judge(Direction::Outbound, &context(&[]), strange, &blocked);
    let text = told.recorder.metrics_text();
    assert_eq!(
        text.lines()
            .filter(|line| line.starts_with("lychgate_commands_blocked_total{"))
            .count(),
        513
    );
    assert!(
        told.has(r#"lychgate_commands_blocked_total{rule="r",tool="other",upstream="files"} 89"#)
    );
}

#[test]
fn the_table_names_every_metric_and_nothing_else() {
    let told = test_recorder(false);
    let (outbound, inbound) = rule_sets();
    let files = UpstreamName("files".into());
    told.recorder.announce_rules(&[UpstreamRules {
        upstream: &files,
        mode: Mode::Enforce,
        outbound: &outbound,
        inbound: &inbound,
    }]);
    told.recorder.set_suppressions(&[Arc::new(Suppression {
        rules: ["fork-bomb".into()].into(),
        upstream: None,
        tool: None,
        argument: None,
        at: [].into(),
        sha256: [].into(),
        reason: "r".into(),
        until: Day::read("2026-01-01").unwrap(),
        place: Default::default(),
    })]);
    let _stream = told.recorder.open_stream();
    let login = Login {
        upstream: "files",
        principal: "gate",
        outcome: "renewed",
        error: None,
        expires_unix: Some(4_000_000_000),
        required_logins: 0,
    };
    told.record(Event::Login(&login));
    told.recorder.set_upstream_up(&files, true);
    let text = told.recorder.metrics_text();
    for metric in METRICS {
        let (name, kind) = (
            metric.name,
            match metric.kind {
                Kind::Counter => "counter",
                Kind::Gauge => "gauge",
                Kind::Histogram(_) => "histogram",
            },
        );
        assert!(
            text.contains(&format!(
                "# HELP {name} {}\n# TYPE {name} {kind}\n",
                metric.help
            )),
            "{name}"
        );
        let mut labels = metric.label_names();
        labels.sort_unstable();
        let line = text.lines().find(|line| {
            line.starts_with(&format!("{name}{{")) || line.starts_with(&format!("{name}_bucket{{"))
        });
        let shown = line
            .and_then(|line| line.split_once('{')?.1.split_once('}'))
            .map_or("", |(labels, _)| labels);
        let names: Vec<&str> = shown
            .split(',')
            .filter_map(|pair| pair.split_once('='))
            .map(|(name, _)| name)
            .filter(|name| *name != "le")
            .collect();
        assert_eq!(names, labels, "{name}");
    }
    assert_eq!(
        text.lines()
            .filter(|line| line.starts_with("# TYPE"))
            .count(),
        METRICS.len()
    );
}

/// Thousands of findings, in one list or over a batch, cost their sum: with a search for each, it
/// would take minutes.
#[test]
fn many_findings_cost_their_sum() {
    let told = test_recorder(true);
    let number = 20_000;
    let tools: Vec<String> = (0..number)
        .map(|n| format!(r#"{{"name":"t{n}"}}"#))
        .collect();
    let list = format!(
        r#"{{"jsonrpc":"2.0","id":8,"result":{{"tools":[{}]}}}}"#,
        tools.join(",")
    );
    let one = r#"{"jsonrpc":"2.0","method":"n","params":{"a":"b"}}"#;
    let batch = format!("[{}]", vec![one; number].join(","));
    let found = |at: fn(usize) -> String, is_batch: bool| {
        let finding = |n| {
            finding(
                "r",
                Action::Quarantine,
                Surface::Definition,
                &at(n),
                if is_batch { n } else { 0 },
            )
        };
        inspection(
            Verdict::Block(vec![refusal("r", 0)]),
            (0..number).map(finding).collect(),
        )
    };
    let started = std::time::Instant::now();
    let listed = found(|n| format!("/result/tools/{n}/description"), false);
    told.judge(
        Direction::Inbound,
        &context(&[("8", "tools/list", None)]),
        &list,
        &listed,
    );
    let spread = found(|n| format!("/{n}/params/a"), true);
    told.judge(Direction::Outbound, &context(&[]), &batch, &spread);
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
    assert_eq!(told.lines().len(), 1 + number);
    assert!(told.has(
        r#"lychgate_messages_total{direction="outbound",upstream="files",verdict="block"} 20000"#
    ));
}

#[test]
fn open_streams_are_counted_until_they_close() {
    let told = test_recorder(false);
    let streams = [told.recorder.open_stream(), told.recorder.open_stream()];
    assert!(told.has("lychgate_streams 2"));
    drop(streams);
    assert!(told.has("lychgate_streams 0"));
}
