//! Judges any text in a result or an argument by all built-in rules: in bounded time, without a
//! panic; rewritten messages are valid.

use std::sync::{LazyLock, Once};
use std::time::{Duration, Instant};

use lychgate::config::PolicyConfig;
use lychgate::inspect::{InspectContext, Policy, Verdict};
use lychgate::message::{Direction, Message, ReadLimits, quote, splice};
use lychgate::protocol::{AgentName, AuditId, CallTarget, Context, Era, OpenRequest, UpstreamName};
use lychgate::rules::Library;

const MOST: Duration = Duration::from_secs(3);

static HOOK: Once = Once::new();
static POLICY: LazyLock<Policy> = LazyLock::new(|| {
    let config = PolicyConfig {
        packs: [("ops".to_owned(), true)].into(),
        ..PolicyConfig::default()
    };
    Policy::new("default", &config, &Library::builtin()).expect("the shipped rules")
});

pub fn fuzz(input: &str) {
    // libFuzzer's hook also aborts on panics that are caught, as those of html2text are.
    HOOK.call_once(|| drop(std::panic::take_hook()));
    let policy = &*POLICY;
    let limits = ReadLimits::default();
    let text = quote(input);
    let context = Context {
        requests: [OpenRequest {
            id: "1".into(),
            method: "tools/call".into(),
            tool: Some("fetch".into()),
            continues: false,
            target: CallTarget::Other,
        }]
        .into(),
        ..Context::new(AgentName("a".into()), UpstreamName("u".into()), Era::Modern)
    };
    let began = Instant::now();
    let result = format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":[{{"type":"text","text":{text}}}]}}}}"#
    );
    let message = Message::parse(result.into(), &limits).expect("a message");
    if let Verdict::Rewrite(edits) = policy
        .inspect(
            Direction::Inbound,
            &message,
            &context,
            AuditId::generate(),
            &InspectContext::default(),
        )
        .verdict
    {
        let spliced = splice(message.bytes(), edits).expect("edits fit together");
        Message::parse(spliced, &limits).expect("what is rewritten is a message");
    }
    let call = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"run_command","arguments":{{"command":{text}}}}}}}"#
    );
    let message = Message::parse(call.into(), &limits).expect("a message");
    let verdict = policy
        .inspect(
            Direction::Outbound,
            &message,
            &context,
            AuditId::generate(),
            &InspectContext::default(),
        )
        .verdict;
    assert!(
        !matches!(verdict, Verdict::Rewrite(_)),
        "what goes out is passed or refused"
    );
    policy.inspect_text(input, AuditId::generate(), &InspectContext::default());
    super::assert_in_time(began, MOST, input.len());
}
