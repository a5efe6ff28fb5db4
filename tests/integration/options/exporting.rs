//! Keys of `[otlp]`.

use std::sync::{Arc, Mutex};

use super::super::harness::{TestGate, call, until};
use super::super::servers::{Server, reply};
use super::{done, faults, start};

/// What reached a collector: the path of each request, its relevant headers, and its body as loose
/// text.
type Got = Arc<Mutex<Vec<(String, String, String)>>>;

async fn collector() -> (Server, Got) {
    let got: Got = Arc::default();
    let into = got.clone();
    let server = Server::start(move |seen| {
        let header = seen
            .headers
            .get("x-scope-orgid")
            .map(|value| value.to_str().unwrap().to_owned())
            .unwrap_or_default();
        let body = String::from_utf8_lossy(&seen.body).into_owned();
        into.lock().unwrap().push((seen.path, header, body));
        async { reply(200, &[("content-type", "application/x-protobuf")], "") }
    })
    .await;
    (server, got)
}

/// Makes two calls through a gate with these keys, stops it, and returns what the collector
/// received.
async fn exported(keys: &str) -> Vec<(String, String, String)> {
    let (collector, got) = collector().await;
    let server = done().await;
    let text = format!(
        "[otlp]\nendpoint = \"http://{}\"\n{keys}\n",
        collector.address
    );
    let gate = start(&text, &server).await;
    calls(&gate).await;
    gate.running.drain().await;
    Arc::try_unwrap(got).map_or_else(
        |shared| shared.lock().unwrap().clone(),
        |own| own.into_inner().unwrap(),
    )
}

async fn calls(gate: &TestGate) {
    for _ in 0..2 {
        gate.agent().fetch("up", &[], call("1", "hello")).await;
    }
}

fn paths(got: &[(String, String, String)], path: &str) -> usize {
    got.iter().filter(|(at, _, _)| at == path).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_signal_can_be_left_out() {
    let all = ["/v1/logs", "/v1/traces", "/v1/metrics"];
    let got = exported("").await;
    assert!(all.iter().all(|path| paths(&got, path) > 0));
    for (index, key) in ["logs", "traces", "metrics"].into_iter().enumerate() {
        let got = exported(&format!("{key} = false")).await;
        for (at, path) in all.iter().enumerate() {
            assert_eq!(paths(&got, path) > 0, at != index, "{key}: {path}");
        }
    }
    assert_eq!(
        paths(&exported("sample_ratio = 0.0").await, "/v1/traces"),
        0
    );
    assert!(paths(&exported("sample_ratio = 1.0").await, "/v1/traces") > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_carry_headers_and_resource_and_are_as_large_as_written() {
    let keys = "headers = { X-Scope-OrgID = \"orchard\" }\nresource = { \"deployment.environment.name\" = \"meadow\" }\nbatch_records = 1\n";
    let with = exported(keys).await;
    let without = exported("").await;
    for (got, set) in [(&with, true), (&without, false)] {
        assert!(
            !got.is_empty()
                && got
                    .iter()
                    .all(|(_, header, body)| (header == "orchard") == set
                        && body.contains("meadow") == set)
        );
    }
    // Two calls make four lines.
    assert!(paths(&with, "/v1/logs") >= 4);
    assert_eq!(paths(&without, "/v1/logs"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_gathered_is_sent_at_the_interval_that_is_written() {
    let (collector, got) = collector().await;
    let server = done().await;
    let endpoint = format!("[otlp]\nendpoint = \"http://{}\"\n", collector.address);
    let gate = start(
        &format!("{endpoint}interval_ms = 600000\nmetrics_interval_ms = 100\n"),
        &server,
    )
    .await;
    calls(&gate).await;
    until("metrics", || {
        paths(&got.lock().unwrap(), "/v1/metrics") >= 2
    })
    .await;
    assert_eq!(paths(&got.lock().unwrap(), "/v1/logs"), 0);
    let gate = start(
        &format!("{endpoint}interval_ms = 100\nmetrics_interval_ms = 600000\n"),
        &server,
    )
    .await;
    let before = paths(&got.lock().unwrap(), "/v1/logs");
    calls(&gate).await;
    until("lines", || paths(&got.lock().unwrap(), "/v1/logs") > before).await;
}

#[test]
fn lines_leave_the_machine_unencrypted_only_where_the_config_says_so() {
    let far = "[otlp]\nendpoint = \"http://collector.example.org\"\n";
    assert!(faults(far).contains("allow_plain_http"));
    assert_eq!(faults(&format!("{far}allow_plain_http = true\n")), "");
    assert_eq!(
        faults("[otlp]\nendpoint = \"https://collector.example.org\"\n"),
        ""
    );
}
