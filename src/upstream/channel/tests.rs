use futures_util::FutureExt;
use futures_util::StreamExt;

use super::super::body::MaxSilence;
use super::super::testing::{limits, message, next};
use super::*;
use crate::protocol::{Framing, Reply};

const LONG: Duration = Duration::from_secs(2);

fn channel(era: Era) -> Arc<Channel> {
    Channel::new(
        era,
        UpstreamName("it".into()),
        &Limits {
            queued_messages: 2,
            ..limits()
        },
    )
}

fn ask(channel: &Arc<Channel>, text: &str) -> InFlightCall {
    channel
        .register(&message(text))
        .unwrap()
        .expect("the id is free")
}

async fn say(channel: &Channel, text: &str) {
    // Some of the texts sent here are not messages.
    drop(
        channel
            .receive(Bytes::copy_from_slice(text.as_bytes()))
            .await,
    );
}

async fn reply(ticket: InFlightCall) -> Reply {
    ticket
        .reply(LONG, MaxSilence::Idle(LONG))
        .await
        .unwrap()
        .reply
}

fn quiet(reply: &mut Reply) -> bool {
    reply.frames.next().now_or_never().is_none()
}

#[tokio::test]
async fn each_message_finds_its_call() {
    let channel = channel(Era::Legacy);
    let one = ask(
        &channel,
        r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"_meta":{"progressToken":"p"}}}"#,
    );
    let two = ask(
        &channel,
        r#"{"jsonrpc":"2.0","id":"\u0032","method":"b","params":{"_meta":{"progressToken":7}}}"#,
    );
    say(
        &channel,
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7}}"#,
    )
    .await;
    say(&channel, r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"\u0070"}}"#).await;
    // It names an id of the server's own, regardless of the agent's ids.
    say(
        &channel,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
    )
    .await;
    // Some servers convert an id of digits to a number, and clients accept the answer.
    say(&channel, r#"{"jsonrpc":"2.0","id":2,"result":{}}"#).await;
    let mut two = reply(two).await;
    assert!(next(&mut two).await.contains("\"progressToken\":7"));
    assert!(next(&mut two).await.contains("\"id\":2"));
    assert!(two.frames.next().await.is_none());
    let mut one = reply(one).await;
    assert!(next(&mut one).await.contains("0070"));
    assert!(next(&mut one).await.contains("cancelled"));
    assert!(quiet(&mut one));
}

#[tokio::test]
async fn batches_are_answered_whole_or_item_by_item() {
    let channel = channel(Era::Legacy);
    let both = ask(
        &channel,
        r#"[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","id":2,"method":"b"}]"#,
    );
    let other = ask(&channel, r#"{"jsonrpc":"2.0","id":3,"method":"c"}"#);
    say(
        &channel,
        r#"[{"jsonrpc":"2.0","id":2,"result":{}}, {"jsonrpc":"2.0","id":3,"result":{}}]"#,
    )
    .await;
    say(&channel, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).await;
    let mut other = reply(other).await;
    assert_eq!(
        (other.framing, next(&mut other).await.as_str()),
        (Framing::Body, r#"{"jsonrpc":"2.0","id":3,"result":{}}"#)
    );
    let mut both = reply(both).await;
    assert_eq!(both.framing, Framing::Events);
    assert!(
        next(&mut both).await.contains("\"id\":2") && next(&mut both).await.contains("\"id\":1")
    );
    assert!(both.frames.next().await.is_none());

    let whole = ask(
        &channel,
        r#"[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","id":2,"method":"b"}]"#,
    );
    let batch = r#"[ {"jsonrpc":"2.0","id":2,"result":{}},{"jsonrpc":"2.0","id":1,"result":{}} ]"#;
    say(&channel, batch).await;
    let mut whole = reply(whole).await;
    assert_eq!(whole.framing, Framing::Body);
    assert_eq!(next(&mut whole).await.as_str(), batch);
}

#[tokio::test]
async fn what_nobody_comes_for_is_kept_up_to_a_bound() {
    let channel = channel(Era::Legacy);
    for name in ["a", "b", "c"] {
        say(
            &channel,
            &format!(r#"{{"jsonrpc":"2.0","method":"{name}"}}"#),
        )
        .await;
    }
    let mut listener = channel.listen().unwrap().reply(MaxSilence::Idle(LONG));
    assert!(
        next(&mut listener).await.contains("\"b\"") && next(&mut listener).await.contains("\"c\"")
    );
    drop(listener);
    // More bytes than there is room for: the oldest messages are dropped, and nothing blocks.
    let long = format!(r#"{{"jsonrpc":"2.0","method":"{}"}}"#, "x".repeat(60_000));
    for _ in 0..40 {
        tokio::time::timeout(LONG, say(&channel, &long))
            .await
            .expect("nobody is waited for");
    }
}

#[tokio::test]
async fn a_reader_that_is_behind_holds_the_server_back() {
    let channel = channel(Era::Legacy);
    let ticket = ask(&channel, r#"{"jsonrpc":"2.0","id":1,"method":"a"}"#);
    let long = format!(r#"{{"jsonrpc":"2.0","method":"{}"}}"#, "x".repeat(60_000));
    let mut said = 0;
    while tokio::time::timeout(Duration::from_millis(100), say(&channel, &long))
        .await
        .is_ok()
    {
        said += 1;
        assert!(said < 100, "messages pile up without bound");
    }
    let mut reply = reply(ticket).await;
    for _ in 0..said {
        next(&mut reply).await;
    }
    tokio::time::timeout(LONG, say(&channel, &long))
        .await
        .expect("there is room again");
}

#[tokio::test]
async fn modern_messages_go_to_the_one_call_they_can_belong_to() {
    let channel = channel(Era::Modern);
    let listen = ask(
        &channel,
        r#"{"jsonrpc":"2.0","id":9,"method":"subscriptions/listen"}"#,
    );
    let call = ask(
        &channel,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":1}}}"#,
    );
    let taken =
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":1}}}"#;
    assert!(
        channel.register(&message(taken)).unwrap().is_none(),
        "the progress token is in use"
    );
    say(
        &channel,
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"hi"}}"#,
    )
    .await;
    let changed = r#"{"jsonrpc":"2.0","method":"n","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":9}}}"#;
    say(&channel, changed).await;
    let other = ask(&channel, r#"{"jsonrpc":"2.0","id":2,"method":"x"}"#);
    say(
        &channel,
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"whose?"}}"#,
    )
    .await;
    drop(other);
    say(
        &channel,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}"#,
    )
    .await;
    let mut listen = reply(listen).await;
    assert!(
        next(&mut listen).await.contains("subscriptionId")
            && next(&mut listen).await.contains("cancelled")
    );
    assert!(listen.frames.next().await.is_none());
    let mut call = reply(call).await;
    assert!(next(&mut call).await.contains("hi"));
    assert!(quiet(&mut call));
}

#[tokio::test]
async fn carriage_returns_do_not_break_events() {
    let channel = channel(Era::Legacy);
    let ticket = ask(&channel, r#"{"jsonrpc":"2.0","id":1,"method":"a"}"#);
    say(&channel, "{\"jsonrpc\":\"2.0\",\r\"method\":\"n\"}\r").await;
    assert_eq!(
        next(&mut reply(ticket).await).await,
        "event: message\ndata: {\"jsonrpc\":\"2.0\", \"method\":\"n\"} \n\n"
    );
}
