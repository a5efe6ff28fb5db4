//! Reads any script as a shell would: in bounded time, without a panic, with the same verdict
//! twice; a script that is refused alone is also refused after a harmless line. The texts taken
//! from it stay within their limit.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use lychgate::config::PolicyConfig;
use lychgate::detect::ReadAs;
use lychgate::detect::command::Script;
use lychgate::inspect::{InspectContext, Policy, Verdict};
use lychgate::message::{Direction, Message, ReadLimits, quote};
use lychgate::protocol::{AgentName, AuditId, Context, Era, UpstreamName};
use lychgate::rules::Library;

const MOST: Duration = Duration::from_secs(1);
/// Maximum total size in bytes of the texts taken from a script.
const TEXT_BYTES: usize = 8 << 20;

static POLICY: LazyLock<Policy> = LazyLock::new(|| {
    Policy::new("default", &PolicyConfig::default(), &Library::builtin())
        .expect("the shipped rules")
});

pub fn fuzz(input: &str) {
    // Loading the rules is not part of judging.
    LazyLock::force(&POLICY);
    let began = Instant::now();
    let script = Script::new(input, ReadAs::Shell);
    let bytes: usize = script.texts().map(str::len).sum();
    assert!(bytes <= TEXT_BYTES, "{bytes} bytes of texts");
    for touched in script.paths() {
        assert!(
            !touched.path.contains("//"),
            "{:?} is not in one form",
            touched.path
        );
    }
    for url in script.urls() {
        assert!(!url.is_empty());
    }
    let refused = refuses(input);
    assert_eq!(refused, refuses(input), "judged in two ways");
    // A harmless line before the script does not change what the script does.
    if refused {
        assert!(
            refuses(&format!("true\n{input}")),
            "passed behind a harmless line"
        );
    }
    super::assert_in_time(began, MOST, input.len());
}

fn refuses(script: &str) -> bool {
    let context = Context::new(AgentName("a".into()), UpstreamName("u".into()), Era::Modern);
    let call = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"run_command","arguments":{{"command":{}}}}}}}"#,
        quote(script)
    );
    let message = Message::parse(call.into(), &ReadLimits::default()).expect("a message");
    let inspection = POLICY.inspect(
        Direction::Outbound,
        &message,
        &context,
        AuditId::generate(),
        &InspectContext::default(),
    );
    matches!(inspection.verdict, Verdict::Block(_))
}
