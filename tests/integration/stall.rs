//! Expensive answers of one server delay neither the calls to another nor the probes.

use std::time::{Duration, Instant};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use miniz_oxide::deflate::compress_to_vec;

use super::harness::{Setup, assert_contains, assert_text, call, line_with, raw, soon};
use super::servers::{Server, json_reply};

/// Returns an answer of at most 60 kB whose blocks each unpack to a megabyte of markup.
fn expensive() -> String {
    let page = compress_to_vec(
        "<p>Some <b>bold</b> words.</p>\n".repeat(33_000).as_bytes(),
        6,
    );
    let data = BASE64_STANDARD
        .encode([&[0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3][..], &page, &[0; 8]].concat());
    let block = format!(
        r#"{{"type":"resource","resource":{{"uri":"a:b","mimeType":"application/gzip","blob":"{data}"}}}}"#
    );
    let blocks = vec![block.as_str(); 60_000 / (block.len() + 1)];
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":[{}]}}}}"#,
        blocks.join(",")
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_few_expensive_answers_hold_up_nobody_else() {
    let body = expensive();
    assert!((30_000..60_100).contains(&body.len()), "{}", body.len());
    let hostile = Server::start(move |_| {
        let body = body.clone();
        async move { json_reply(body) }
    })
    .await;
    let harmless = Server::answering(r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#).await;
    // Four messages of 1 MB each keep two workers busy for long enough, even where tests are not
    // optimized.
    let limit = |config: &mut lychgate::config::Config| config.limits.work.unpacked_bytes = 1 << 20;
    let gate = Setup::new()
        .http("hostile", hostile.url())
        .http("harmless", harmless.url())
        .start_with(limit)
        .await;
    let agent = gate.agent();
    // The first call includes the time to compile the rules.
    agent.fetch("harmless", &[], call("1", "go")).await;
    let expensive: Vec<_> = (0..4)
        .map(|_| {
            let agent = gate.agent();
            tokio::spawn(async move { agent.fetch("hostile", &[], call("1", "go")).await })
        })
        .collect();
    for _ in 0..4 {
        hostile.next().await;
    }
    let mut longest = Duration::ZERO;
    loop {
        let started = Instant::now();
        agent.fetch("harmless", &[], call("1", "go")).await;
        assert_eq!(gate.admin("/healthz").await.0, 200);
        longest = longest.max(started.elapsed());
        if expensive.iter().all(tokio::task::JoinHandle::is_finished) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(
        longest < Duration::from_secs(5),
        "a call and a probe took {longest:?}"
    );
    for answer in expensive {
        soon("an expensive answer", answer).await.unwrap();
    }
    let uninspected = gate
        .audit()
        .iter()
        .filter_map(|line| raw(line, &["uninspected"]))
        .collect::<String>();
    assert_contains(&uninspected, &[r#""reason":"over-budget""#]);
    assert!(gate.limit_hits("unpacked_bytes_per_message") >= 4.0);
    assert!(
        gate.metric(
            "lychgate_uninspected_bytes_total",
            &[("reason", "over-budget")]
        ) > Some(0.0)
    );
}

#[tokio::test]
async fn a_slow_judgement_on_a_thread_that_carries_traffic_is_counted_and_logged() {
    let text = "The quick brown fox jumps over the lazy dog. ".repeat(1_300);
    let server = Server::saying(&text).await;
    let limit =
        |config: &mut lychgate::config::Config| config.limits.judging = Duration::from_micros(1);
    let gate = server.setup().start_with(limit).await;
    gate.agent().fetch("up", &[], call("1", "go")).await;
    assert!(gate.limit_hits("judging_milliseconds") >= 2.0);
    let log = super::harness::log();
    let line = line_with(&log, "slow inspection delayed other traffic");
    assert_text(line, &["audit=", "milliseconds="], &["quick brown"]);
}
