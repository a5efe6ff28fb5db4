//! Judging alone, as it is part of the path of a call.

use lychgate::config::PolicyConfig;
use lychgate::inspect::{InspectContext, Policy, Verdict};
use lychgate::message::{Direction, Message, ReadLimits, quote};
use lychgate::protocol::{AgentName, AuditId, Context, Era, UpstreamName};
use lychgate::rules::Library;

pub struct Judge {
    policy: Policy,
    context: Context,
}

impl Judge {
    pub fn new() -> Self {
        let policy = Policy::new("default", &PolicyConfig::default(), &Library::builtin())
            .expect("the shipped rules");
        let agent = AgentName("a".into());
        let upstream = UpstreamName("u".into());
        Self {
            policy,
            context: Context::new(agent, upstream, Era::Modern),
        }
    }

    /// Returns a call that gives `command` to a shell.
    pub fn call(command: &str) -> Message {
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"run_command","arguments":{{"command":{}}}}}}}"#,
            quote(command)
        );
        Message::parse(call.into(), &ReadLimits::default()).expect("a message")
    }

    /// Reports whether the call is refused.
    pub fn refuses(&self, call: &Message) -> bool {
        let inspection = self.policy.inspect(
            Direction::Outbound,
            call,
            &self.context,
            AuditId::generate(),
            &InspectContext::default(),
        );
        matches!(inspection.verdict, Verdict::Block(_))
    }
}
