use std::sync::Mutex;
use std::time::Duration;

use hyper::body::Incoming;
use tokio::sync::mpsc;

use super::super::testing::*;
use super::*;
use crate::config::Transport;
use crate::protocol::{CallKind, Framing};
use crate::upstream::Health;
use crate::upstream::Upstream;

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#;
const ASK: &str = "{\"jsonrpc\":\"2.0\",\n \"id\":1, \"method\":\"x\"}";

/// A server that answers `initialize` and stores everything else that it receives; and the stream
/// that it sends on.
#[derive(Default)]
struct Server {
    got: Mutex<Vec<String>>,
    says: Mutex<Option<mpsc::Sender<Bytes>>>,
}

impl Server {
    async fn start(endpoint: &'static str) -> (Arc<Self>, Upstream) {
        let server = Arc::new(Self::default());
        let shared = server.clone();
        let address = serve(None, move |request| {
            let server = shared.clone();
            async move { server.answer(request, endpoint).await }
        })
        .await;
        let upstream = upstream(
            Transport::Sse(http(format!("http://{address}/a/sse?k=1"))),
            &limits(),
        );
        (server, upstream)
    }

    async fn answer(&self, request: http::Request<Incoming>, endpoint: &str) -> Answer {
        assert!(!request.headers().contains_key("mcp-session-id"));
        if request.method() == Method::GET {
            assert_eq!(request.headers()["accept"], "text/event-stream");
            let (says, answer) = streamed();
            says.send(format!(": hello\n\nevent: endpoint\ndata: {endpoint}\n\n").into())
                .await
                .unwrap();
            *self.says.lock().unwrap() = Some(says);
            return answer;
        }
        assert_eq!(request.uri().to_string().as_str(), "/a/post?s=9");
        assert_eq!(request.headers()["content-type"], "application/json");
        let body = body::read_whole(request.into_body(), &limits().read, Duration::from_secs(1))
            .await
            .unwrap();
        let text = String::from_utf8(body.to_vec()).unwrap();
        let opens = text.contains("initialize\"");
        self.got.lock().unwrap().push(text.clone());
        if opens {
            self.say("event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}\n\n")
                .await;
        }
        match text.contains("\"refuse\"") {
            true => answer(400, &[], "no"),
            false => answer(202, &[], "Accepted"),
        }
    }

    fn stream(&self) -> mpsc::Sender<Bytes> {
        self.says.lock().unwrap().clone().unwrap()
    }

    async fn say(&self, text: &str) {
        self.stream()
            .send(Bytes::copy_from_slice(text.as_bytes()))
            .await
            .unwrap();
    }
}

async fn open(upstream: &Upstream) -> String {
    let mut ask = legacy(INITIALIZE, None);
    ask.headers
        .insert("mcp-session-id", "not-for-upstreams".parse().unwrap());
    let reply = upstream.call(&ask).await.unwrap();
    assert_eq!(reply.framing, Framing::Body);
    let session = reply.headers[mcp::SESSION].to_str().unwrap().to_owned();
    assert_eq!(
        all(reply).await.0,
        [r#"{"jsonrpc":"2.0","id":0,"result":{}}"#]
    );
    session
}

#[tokio::test]
async fn a_stream_is_a_session() {
    let (server, upstream) = Server::start("post?s=9").await;
    let session = open(&upstream).await;
    assert_eq!(upstream.health().await, Health::Up);
    let note = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let accepted = upstream.call(&legacy(note, Some(&session))).await.unwrap();
    assert_eq!(accepted.status, StatusCode::ACCEPTED);
    assert_eq!(accepted.framing, Framing::Empty);

    let ask = legacy(ASK, Some(&session));
    let (reply, ()) = tokio::join!(upstream.call(&ask), async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        server
            .say("data: {\"jsonrpc\":\"2.0\",\ndata:  \"id\":1,\"result\":{\"a\":1.0}}\n\n")
            .await;
    });
    assert_eq!(
        all(reply.unwrap()).await.0,
        ["{\"jsonrpc\":\"2.0\",\n \"id\":1,\"result\":{\"a\":1.0}}"]
    );
    assert_eq!(*server.got.lock().unwrap(), [INITIALIZE, note, ASK]);

    let mut listen = upstream
        .call(&call(CallKind::Listen, Era::Legacy, Some(&session)))
        .await
        .unwrap();
    server
        .say("event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n\n")
        .await;
    assert_eq!(
        next(&mut listen).await,
        "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n\n"
    );

    let foreign = foreign(legacy(note, Some(&session)));
    assert!(is_unknown(&upstream, &foreign).await);
    assert!(matches!(
        upstream.call(&modern(ASK)).await,
        Err(CallError::NotOffered)
    ));
    let refused = upstream
        .call(&legacy(&ASK.replace("\"x\"", "\"refuse\""), Some(&session)))
        .await;
    assert!(
        matches!(refused, Err(CallError::BadReply(_))),
        "{refused:?}"
    );

    let stream = server.stream();
    upstream
        .call(&call(CallKind::Close, Era::Legacy, Some(&session)))
        .await
        .unwrap();
    tokio::time::timeout(Duration::from_secs(2), stream.closed())
        .await
        .expect("the stream is closed upstream");
    assert!(is_unknown(&upstream, &legacy(note, Some(&session))).await);
}

#[tokio::test]
async fn when_the_stream_ends_open_calls_fail() {
    let (server, upstream) = Server::start("/a/post?s=9").await;
    let session = open(&upstream).await;
    let ask = legacy(ASK, Some(&session));
    let (reply, ()) = tokio::join!(upstream.call(&ask), async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        server.says.lock().unwrap().take();
    });
    assert!(matches!(reply, Err(CallError::Connect(_))), "{reply:?}");
    assert!(is_unknown(&upstream, &legacy(ASK, Some(&session))).await);

    let session = open(&upstream).await;
    let ask = legacy(ASK, Some(&session));
    let (reply, ()) = tokio::join!(upstream.call(&ask), async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        server.say(&format!("data: {}\n", "x".repeat(70_000))).await;
    });
    assert_eq!(reply.unwrap_err().limit(), Some("message_bytes"));
}

#[tokio::test]
async fn an_endpoint_elsewhere_is_refused() {
    let (server, upstream) = Server::start("http://evil.test/a/post?s=9").await;
    let error = upstream.call(&legacy(INITIALIZE, None)).await.unwrap_err();
    assert!(matches!(error, CallError::BadReply(_)), "{error:?}");
    let stream = server.stream();
    tokio::time::timeout(Duration::from_secs(2), stream.closed())
        .await
        .expect("the stream is closed upstream");
}

#[test]
fn endpoints_are_resolved() {
    let base: Uri = "https://h.test:444/a/b/sse?k=1".parse().unwrap();
    for (reference, whole) in [
        ("/m?x=1", "https://h.test:444/m?x=1"),
        ("m", "https://h.test:444/a/b/m"),
        ("./m", "https://h.test:444/a/b/m"),
        ("../m/.", "https://h.test:444/a/m/"),
        ("../../../../m", "https://h.test:444/m"),
        ("?s=/../1", "https://h.test:444/a/b/sse?s=/../1"),
        ("//H.test:444/m#f", "https://h.test:444/m"),
        (
            "https://h.test:444/m?u=http://x/",
            "https://h.test:444/m?u=http://x/",
        ),
    ] {
        assert_eq!(
            resolve(&base, reference)
                .map(|uri| uri.to_string())
                .as_deref(),
            Some(whole),
            "{reference}"
        );
    }
    for reference in [
        "http://h.test:444/m",
        "https://h.test/m",
        "https://evil.test:444/m",
        "//evil.test/m",
        "https://u@h.test:444/m",
        "/a b",
        "",
        "/\r\nx: y",
    ] {
        assert_eq!(resolve(&base, reference), None, "{reference}");
    }
}
