//! Work limits of the inspection: a message that reaches one is refused, and counted by the limit's
//! name.

use super::*;
use crate::config::{AuditConfig, Config, PolicyConfig};
use crate::detect::work::WorkLimits;
use crate::inspect::Policy;
use crate::message::ReadLimits;
use crate::protocol::{AgentName, Era, UpstreamName};
use crate::proxy::Policies;
use crate::rules::Library;
use crate::upstream::Upstream;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_much_to_look_at_is_refused_and_counted() {
    let policy = Policy::new(
        "default",
        &PolicyConfig::default(),
        &Library::load(true, &[]).unwrap(),
    )
    .unwrap();
    let policy = Arc::new(policy);
    let bomb = miniz_oxide::deflate::compress_to_vec_zlib(&vec![b'a'; 4 << 20], 6);
    let bomb = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, bomb);
    let urls = (0..2_100).fold("curl".to_owned(), |line, n| {
        format!("{line} https://h{n}.example")
    });
    let nested = "$(".repeat(60) + "true" + &")".repeat(60);
    let command = ("run_command", "command");
    let text = ("send_message", "text");
    for (limit, (tool, argument), value) in [
        (work::COMMAND, command, "echo a few words; ".repeat(6_000)),
        (work::COMMAND, command, nested),
        (work::SQL, ("query", "sql"), "select 1;".repeat(30_000)),
        (work::SECRET, text, bomb.clone()),
        (work::UNPACKED, text, bomb.clone()),
        (work::SECRET, text, "secret_key=".repeat(10_000)),
        (work::PATH, ("", ""), "a/".repeat(20_000)),
        (
            work::URL,
            ("fetch", "url"),
            format!("https://example.com/{}", "a".repeat(70_000)),
        ),
        (work::URL, command, urls),
    ] {
        let recorder = Arc::new(Recorder::new(&AuditConfig::default()).unwrap());
        let (method, params) = match tool {
            "" => ("resources/read", serde_json::json!({ "uri": value })),
            tool => (
                "tools/call",
                serde_json::json!({ "name": tool, "arguments": { argument: value } }),
            ),
        };
        let body =
            serde_json::json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let message = Message::parse(body.to_string().into(), &ReadLimits::default()).unwrap();
        let mut config = Config::default();
        if limit == work::UNPACKED {
            config.limits.work = WorkLimits {
                unpacked_bytes: 100_000,
                ..WorkLimits::default()
            };
        }
        let name = UpstreamName("u".into());
        let upstream = (name.clone(), Upstream::faulty("none".into()));
        let policies = Policies::from([(name.clone(), policy.clone())]);
        let gate = Gate::new(vec![upstream], policies, recorder.clone(), &config).unwrap();
        let mut context = Context::new(AgentName("a".into()), name.clone(), Era::Legacy);
        let route = gate
            .route(gate.upstreams.get(&name).unwrap(), &mut context)
            .unwrap();
        let judged = gate
            .judge(&Subject::outbound(&route, &message, &context), &route, None)
            .await
            .unwrap();
        assert!(
            matches!(
                judged.outbound(&message).unwrap(),
                OutboundOutcome::Refused(_)
            ),
            "{limit}: {:?}",
            judged.inspection.verdict
        );
        let metrics = recorder.metrics_text();
        let line = format!("lychgate_limits_hit_total{{limit=\"{limit}\"}} 1");
        assert!(
            metrics.contains(&line),
            "{limit}: {:?}",
            judged.inspection.findings
        );
    }
}
