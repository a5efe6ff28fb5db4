use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::config::{AuditConfig, PolicyConfig};
use crate::inspect::{FIRST_WRITE, Question};
use crate::message::Json;
use crate::protocol::{AgentName, Era, SessionId, UpstreamName};
use crate::rules::{RuleId, Severity};

fn approvals(change: impl FnOnce(&mut ApprovalConfig, &mut Limits)) -> Arc<Approvals> {
    let mut config = ApprovalConfig::default();
    let mut limits = Limits::default();
    change(&mut config, &mut limits);
    let recorder = Arc::new(Recorder::new(&AuditConfig::default()).unwrap());
    Arc::new(Approvals::new(&config, &limits, recorder, false).unwrap())
}

fn context(agent: &str, session: Option<&str>) -> Context {
    let agent = AgentName(agent.into());
    let upstream = UpstreamName("u".into());
    Context {
        session: session.and_then(SessionId::new),
        ..Context::new(agent, upstream, Era::Legacy)
    }
}

fn call(tool: &str, text: &str) -> Message {
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"{tool}","arguments":{{"a":"{text}"}}}}}}"#
    );
    Message::parse(text.into(), &ReadLimits::default()).unwrap()
}

fn matter(context: &Context, rules: &[&str], tool: &str, text: &str) -> ApprovalRequest {
    let question = Question {
        item: 0,
        rules: rules.iter().map(|rule| RuleId::new(rule)).collect(),
        title: "T".into(),
        why: "W.".into(),
        severity: Severity::High,
        scopes: PolicyConfig::default().scopes,
        through_agent: true,
        private: Vec::new(),
    };
    let message = call(tool, text);
    ApprovalRequest::new(&question, context, &message, message.single().unwrap())
}

fn audit() -> AuditId {
    AuditId(uuid::Uuid::nil())
}

fn yes() -> Json {
    Json::parse(
        r#"{"action":"accept","content":{"allow":"once"}}"#.into(),
        &ReadLimits::default(),
    )
    .unwrap()
}

#[tokio::test]
async fn only_the_session_that_was_asked_can_answer_and_only_once() {
    let approvals = approvals(|_, _| {});
    let ann = context("ann", Some("s1"));
    let mut ticket = approvals
        .open(matter(&ann, &["r"], "t", "x"), audit())
        .unwrap();
    let json = yes();
    for other in [
        context("bob", Some("s1")),
        context("ann", Some("s2")),
        context("ann", None),
    ] {
        approvals.take_response(ticket.elicitation_id(), &other, Some(json.root()));
    }
    approvals.take_response("lychgate-approval-made-up", &ann, Some(json.root()));
    approvals.take_response(ticket.id(), &ann, Some(json.root()));
    assert_eq!(
        ticket.current(),
        Settlement::Open,
        "neither others nor other names"
    );
    approvals.take_response(ticket.elicitation_id(), &ann, Some(json.root()));
    approvals.take_response(ticket.elicitation_id(), &ann, None);
    assert!(matches!(
        ticket.wait(Duration::from_secs(5)).await,
        Settlement::Answered(Answer {
            scope: Some(Scope::Once),
            ..
        })
    ));
    assert!(
        approvals
            .resume(ticket.id(), &matter(&ann, &["r"], "t", "x"))
            .is_none(),
        "it is used up"
    );
}

#[tokio::test]
async fn two_calls_alike_need_two_answers() {
    let approvals = approvals(|_, _| {});
    let ann = context("ann", None);
    let first = approvals
        .open(matter(&ann, &["r"], "t", "x"), audit())
        .unwrap();
    let mut second = approvals
        .open(matter(&ann, &["r"], "t", "x"), audit())
        .unwrap();
    assert_ne!(first.id(), second.id());
    approvals.take_response(first.elicitation_id(), &ann, Some(yes().root()));
    assert_eq!(second.current(), Settlement::Open);
    let id = first.id().to_owned();
    drop(first);
    let mut third = approvals
        .open(matter(&ann, &["r"], "t", "x"), audit())
        .unwrap();
    assert_eq!(third.id(), id, "whoever comes back finds the answer");
    assert!(matches!(third.current(), Settlement::Answered(_)));
}

#[test]
fn a_yes_covers_the_rules_that_asked_and_no_others() {
    let approvals = approvals(|_, _| {});
    let ann = context("ann", Some("s1"));
    let of = |rules: &[&str], tool: &str| matter(&ann, rules, tool, "x");
    approvals.remember(&of(&["a"], "t"), Scope::Session);
    let covered = |matter: &ApprovalRequest| approvals.is_covered(matter, audit()).unwrap();
    assert!(covered(&matter(&ann, &["a"], "t", "other arguments")));
    assert!(!covered(&of(&["a", "b"], "t")) && !covered(&of(&["a"], "u")));
    assert!(
        !covered(&matter(&context("ann", Some("s2")), &["a"], "t", "x"))
            && !covered(&matter(&context("bob", Some("s1")), &["a"], "t", "x"))
    );
    let long = |end: &str| matter(&ann, &["a"], &format!("{}{end}", "t".repeat(300)), "x");
    approvals.remember(&long("1"), Scope::Session);
    assert!(
        covered(&long("1")) && !covered(&long("2")),
        "names that look alike where they are cut"
    );
    approvals.remember(&of(&["b"], "t"), Scope::Call);
    assert!(covered(&of(&["a", "b"], "t")), "each by its own yes");
    assert!(!covered(&matter(&ann, &["b"], "t", "other arguments")));
    approvals.remember(&of(&[FIRST_WRITE], "t"), Scope::Once);
    assert!(
        covered(&matter(&ann, &[FIRST_WRITE], "any", "y")),
        "the first write lets the others pass"
    );
    approvals.remember(&of(&[crate::inspect::EVERY_USE], "t"), Scope::Call);
    assert!(
        !covered(&of(&[crate::inspect::EVERY_USE], "t")),
        "every use is every use"
    );
}

#[test]
fn questions_are_bounded_in_number_and_bytes() {
    let approvals = approvals(|_, limits| {
        limits.pending_approvals = 2;
        limits.pending_approval_bytes = 1000;
    });
    let open = |agent: &str, text: &str| {
        approvals.open(matter(&context(agent, None), &["r"], "t", text), audit())
    };
    let _held = [open("ann", "1").unwrap(), open("ann", "2").unwrap()];
    assert!(matches!(
        open("ann", "3"),
        Err(CallError::Limit("pending_approvals"))
    ));
    assert!(
        open("bob", "3").is_ok(),
        "another agent has places of its own"
    );
    assert!(matches!(
        open("eve", &"x".repeat(900)),
        Err(CallError::Limit("pending_approval_bytes"))
    ));
}

#[tokio::test]
async fn what_is_over_is_told_once_and_forgotten() {
    let approvals = approvals(|config, _| config.deadline = Duration::from_millis(20));
    let ann = context("ann", None);
    let told = |outcome: &str| {
        let line = format!("lychgate_approvals_total{{outcome=\"{outcome}\",way=\"none\"}} ");
        let text = approvals.recorder.metrics_text();
        text.lines()
            .find_map(|told| told.strip_prefix(&line))
            .map(|count| count.to_owned())
            .unwrap()
    };
    let mut waits = approvals
        .open(matter(&ann, &["r"], "t", "1"), audit())
        .unwrap();
    drop(
        approvals
            .open(matter(&ann, &["r"], "t", "2"), audit())
            .unwrap(),
    );
    assert_eq!(
        waits.wait(Duration::from_secs(5)).await,
        Settlement::Expired
    );
    approvals.sweep();
    approvals.sweep();
    assert_eq!((told("asked"), told("expired")), ("2".into(), "2".into()));
    assert!(approvals.pending.lock().is_empty());
    let desk = ApprovalApi::open(approvals.clone());
    assert_eq!(
        (desk.list().as_str(), desk.decide("x", None, None)),
        ("[]", Err(DecisionError::Unknown))
    );
}

#[tokio::test]
async fn only_the_call_that_is_taken_back_ends() {
    let approvals = approvals(|_, _| {});
    let ann = context("ann", Some("s1"));
    let mut ticket = approvals
        .open(matter(&ann, &["r"], "t", "x"), audit())
        .unwrap();
    approvals.cancel(&ann, "8");
    approvals.cancel(&ann, "\"07\"");
    approvals.cancel(&context("bob", Some("s1")), "7");
    assert_eq!(ticket.current(), Settlement::Open);
    approvals.cancel(&ann, "7");
    assert_eq!(ticket.current(), Settlement::Cancelled);
}
