//! The built-in rules, and their own cases.

use lychgate::config::PolicyConfig;
use lychgate::inspect::{Inspection, Policy, Verdict};
use lychgate::message::{Direction, Message, ReadLimits, quote};
use lychgate::protocol::{AgentName, CallTarget, Context, Era, OpenRequest, UpstreamName};
use lychgate::rules::{Find, Library};

pub(crate) struct Judge {
    policy: Policy,
    context: Context,
}

impl Judge {
    pub(crate) fn new() -> Self {
        Self::by(&PolicyConfig::default())
    }

    /// Returns a judge with the built-in rules under another policy.
    pub(crate) fn by(config: &PolicyConfig) -> Self {
        let policy =
            Policy::new("default", config, &Library::builtin()).expect("the shipped rules");
        let agent = AgentName("a".into());
        let upstream = UpstreamName("u".into());
        let context = Context::new(agent, upstream, Era::Modern);
        Self { policy, context }
    }

    /// Reports whether a call that gives `script` to a shell is refused.
    pub(crate) fn refuses(&self, script: &str) -> bool {
        self.refuses_call("run_command", "command", script)
    }

    /// Reports whether a call that sends `text` to somebody is refused.
    pub(crate) fn refuses_text(&self, text: &str) -> bool {
        self.refuses_call("send_message", "text", text)
    }

    /// Judges a tool's result.
    pub(crate) fn answer(&self, result: &str) -> Inspection {
        self.answer_of("tools/call", result)
    }

    /// Judges the result of a request.
    pub(crate) fn answer_of(&self, method: &str, result: &str) -> Inspection {
        let tool = (method == "tools/call").then(|| "fetch".into());
        let asked = OpenRequest {
            id: "1".into(),
            method: method.into(),
            tool,
            continues: false,
            target: CallTarget::Other,
        };
        let context = Context {
            requests: [asked].into(),
            ..self.context.clone()
        };
        let message = Message::parse(
            format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#).into(),
            &ReadLimits::default(),
        );
        let message = message.expect("a message");
        self.policy
            .inspect_alone(Direction::Inbound, &message, &context)
    }

    fn refuses_call(&self, tool: &str, argument: &str, value: &str) -> bool {
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{{"{argument}":{}}}}}}}"#,
            quote(value)
        );
        let message = Message::parse(call.into(), &ReadLimits::default()).expect("a message");
        let inspection = self
            .policy
            .inspect_alone(Direction::Outbound, &message, &self.context);
        matches!(inspection.verdict, Verdict::Block(_))
    }
}

/// Returns the cases that the built-in core rules for commands catch in a shell, each once.
pub(crate) fn cases() -> Vec<String> {
    let library = Library::builtin();
    let core = library.rules().iter().filter(|rule| {
        rule.direction == Direction::Outbound
            && rule.enabled
            && rule.action == lychgate::rules::Action::Block
            && matches!(*rule.find, Find::Command(_))
            && rule.only == lychgate::rules::Only::default()
            // PowerShell and cmd.exe have disguises of their own.
            && !rule.file.contains("windows")
    });
    let judge = Judge::new();
    let mut cases: Vec<String> = core
        .flat_map(|rule| rule.cases().catches.iter().map(|case| case.text.clone()))
        .collect();
    cases.sort();
    cases.dedup();
    // Removes cases of PowerShell in other files, very long ones, and those that are not refused as
    // they are.
    cases.retain(|case| {
        case.len() < 2_000 && !case.contains(":\\") && posix(case) && judge.refuses(case)
    });
    cases
}

fn posix(case: &str) -> bool {
    let lower = case.to_ascii_lowercase();
    let windows = [
        "powershell",
        "wevtutil",
        "reg ",
        "net user",
        "schtasks",
        "invoke-",
        "iex",
        "-item",
        "certutil",
        "taskkill",
        "wmic",
        "netsh ",
        "set-dns",
        "send-mail",
    ];
    !windows.iter().any(|word| lower.contains(word))
}
