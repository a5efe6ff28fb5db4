use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use hyper::body::Incoming;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use rustls::RootCertStore;
use rustls::server::WebPkiClientVerifier;
use rustls_pki_types::PrivateKeyDer;

use super::super::testing::*;
use super::*;
use crate::config::Transport;
use crate::protocol::Era;
use crate::upstream::Health;
use crate::upstream::Upstream;

const ASK: &str = r#"{"jsonrpc":"2.0","id":1,"method":"x"}"#;
const REPLY: &str =
    " {\"jsonrpc\" :\"2.0\",\"id\":1,\r\n\"result\":{\"a\":1.50,\"\\u0061b\":\"\\/\"}}\r\n";
const JSON: &[(&str, &str)] = &[("content-type", "application/json")];

fn at(address: std::net::SocketAddr) -> Upstream {
    upstream(
        Transport::Http(http(format!("http://{address}/mcp?x=1"))),
        &limits(),
    )
}

/// Serves one event stream, to which the test sends.
async fn one_stream() -> (tokio::sync::mpsc::Sender<Bytes>, std::net::SocketAddr) {
    let (send, answer) = streamed();
    let answer = std::sync::Mutex::new(Some(answer));
    let address = serve(None, move |_| {
        let answer = answer.lock().unwrap().take().unwrap();
        async move { answer }
    })
    .await;
    (send, address)
}

async fn answered_with(answer: fn() -> Answer) -> Result<Reply, CallError> {
    at(serve(None, move |_| async move { answer() }).await)
        .call(&modern(ASK))
        .await
}

#[tokio::test]
async fn bytes_go_out_and_come_back_as_they_are() {
    let ask = r#"{ "jsonrpc":"2.0",   "id" : 12345678901234567890, "method":"tools\/call","params":{"n":1.0e+3,"s":"\u00e9é"} }"#;
    let got = Arc::new(std::sync::Mutex::new(Bytes::new()));
    let taken = got.clone();
    let script = async move |request: http::Request<Incoming>,
                             taken: Arc<std::sync::Mutex<Bytes>>| {
        let (head, body) = request.into_parts();
        assert_eq!(head.uri, "/mcp?x=1");
        let header = |name: &str| {
            head.headers
                .get(name)
                .map(|value| value.to_str().unwrap().to_owned())
        };
        assert_eq!(header("authorization").as_deref(), Some("Bearer s3cret"));
        assert_eq!(header("accept-encoding").as_deref(), Some("identity"));
        assert_eq!(header("cookie"), None);
        assert_eq!(header("x-own").as_deref(), Some("mine"));
        assert_eq!(header("mcp-session-id").as_deref(), Some("abc"));
        assert_eq!(header("user-agent").as_deref(), Some("agent/1"));
        assert!(header("host").unwrap().starts_with("127.0.0.1:"));
        *taken.lock().unwrap() = body::read_whole(body, &limits().read, Duration::from_secs(1))
            .await
            .unwrap();
        let headers = [
            ("content-type", "application/json; charset=utf-8"),
            ("set-cookie", "a=b"),
            ("mcp-session-id", "abc"),
            ("connection", "x-hop"),
            ("x-hop", "1"),
            ("access-control-allow-origin", "*"),
            ("proxy-status", "x"),
            ("x-kept", "1"),
        ];
        answer(200, &headers, REPLY)
    };
    let address = serve(None, move |request| script(request, taken.clone())).await;
    let mut transport = http(format!("http://{address}/mcp?x=1"));
    transport.bearer = Some("s3cret".into());
    transport.headers = vec![("x-own".into(), "mine".into())];
    let upstream = upstream(Transport::Http(transport), &limits());
    let mut call = modern(ask);
    for (name, value) in [
        ("authorization", "Bearer agent"),
        ("cookie", "a=b"),
        ("x-own", "no"),
        ("mcp-session-id", "abc"),
        ("user-agent", "agent/1"),
    ] {
        call.headers.insert(name, value.parse().unwrap());
    }
    let reply = upstream.call(&call).await.unwrap();
    assert_eq!((reply.status.as_u16(), reply.framing), (200, Framing::Body));
    let mut names: Vec<_> = reply
        .headers
        .keys()
        .map(|name| name.as_str().to_owned())
        .collect();
    names.sort();
    assert_eq!(names, ["content-type", "date", "mcp-session-id", "x-kept"]);
    let (frames, error) = all(reply).await;
    assert!(error.is_none());
    assert_eq!(frames, [REPLY]);
    assert_eq!(*got.lock().unwrap(), ask.as_bytes());
    assert_eq!(upstream.health().await, Health::Up);
}

#[tokio::test]
async fn an_event_is_passed_on_when_its_blank_line_is_in() {
    let (send, address) = one_stream().await;
    let mut reply = at(address).call(&modern(ASK)).await.unwrap();
    assert_eq!(reply.framing, Framing::Events);
    for (sent, written, kind) in [
        (": ping\r\n\r\n", ":\n\n", "empty"),
        ("id: 7\ndata:\n\n", "id: 7\ndata: \n\n", "text"),
        (
            "id: 8\r\nevent: message\r\nretry:5\r\ndata: {\"jsonrpc\":\"2.0\",\r\ndata:\"method\":\"n\"}\r\n\r\n",
            "event: message\nid: 8\nretry: 5\ndata: {\"jsonrpc\":\"2.0\",\ndata: \"method\":\"n\"}\n\n",
            "message",
        ),
        (
            "event: endpoint\ndata: /x\n\n",
            "event: endpoint\ndata: /x\n\n",
            "text",
        ),
    ] {
        let (first, second) = sent.split_at(sent.len() / 2);
        send.send(Bytes::copy_from_slice(first.as_bytes()))
            .await
            .unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
        send.send(Bytes::copy_from_slice(second.as_bytes()))
            .await
            .unwrap();
        let frame = tokio::time::timeout(Duration::from_secs(1), reply.frames.next())
            .await
            .unwrap()
            .unwrap()
            .unwrap();
        assert_eq!(frame.event(), written.as_bytes());
        let found = match frame.payload {
            Payload::Message(_) => "message",
            Payload::Text(_) => "text",
            Payload::Inspected(_) | Payload::Empty => "empty",
        };
        assert_eq!(found, kind, "{sent}");
    }
    send.send(Bytes::from_static(b"data: hello\n\ndata: {}\n\n"))
        .await
        .unwrap();
    let (frames, error) = all(reply).await;
    assert!(
        frames.is_empty() && matches!(error, Some(CallError::NotMcp(_))),
        "{error:?}"
    );
    tokio::time::timeout(Duration::from_secs(2), send.closed())
        .await
        .expect("the stream is closed upstream");
}

#[tokio::test]
async fn dropping_the_frames_or_the_call_closes_the_stream_upstream() {
    let open = Arc::new(AtomicUsize::new(0));
    struct Held(Arc<AtomicUsize>);
    impl Drop for Held {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }
    let counter = open.clone();
    let address = serve(None, move |_| {
        counter.fetch_add(1, Ordering::SeqCst);
        let held = Held(counter.clone());
        async move {
            tokio::time::sleep(Duration::from_secs(60)).await;
            drop(held);
            answer(202, &[], "")
        }
    })
    .await;
    let upstream = at(address);
    let ask = || modern(ASK);
    assert!(
        tokio::time::timeout(Duration::from_millis(300), upstream.call(&ask()))
            .await
            .is_err()
    );
    let waited = Instant::now();
    while open.load(Ordering::SeqCst) > 0 && waited.elapsed() < Duration::from_secs(2) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(
        open.load(Ordering::SeqCst),
        0,
        "the server still works on a call that was given up"
    );

    let (send, address) = one_stream().await;
    let reply = at(address).call(&ask()).await.unwrap();
    drop(reply);
    tokio::time::timeout(Duration::from_secs(2), send.closed())
        .await
        .expect("the stream is closed upstream");
}

#[tokio::test]
async fn a_stream_without_events_ends_at_the_limit_and_one_with_them_does_not() {
    let address = serve(None, |request| async move {
        assert_eq!(request.method(), Method::GET);
        let (send, answer) = streamed();
        tokio::spawn(async move {
            for _ in 0..4 {
                tokio::time::sleep(Duration::from_millis(200)).await;
                send.send(Bytes::from_static(b": still here\n\n"))
                    .await
                    .unwrap();
            }
            send.closed().await;
        });
        answer
    })
    .await;
    let short = crate::config::Limits {
        stream_idle: Duration::from_millis(400),
        ..limits()
    };
    let upstream = upstream(Transport::Http(http(format!("http://{address}/"))), &short);
    let reply = upstream
        .call(&call(CallKind::Listen, Era::Legacy, Some("s")))
        .await
        .unwrap();
    let (frames, error) = all(reply).await;
    assert_eq!(frames.len(), 4);
    assert_eq!(error.unwrap().limit(), Some("stream_idle_seconds"));
}

#[tokio::test]
async fn json_in_events_of_other_names_is_read_as_strictly() {
    let body = |data: &str| format!("event: other\ndata: {data}\n\n");
    for (data, passes) in [
        ("{\"a\":1}", true),
        ("hello", true),
        ("{\"a\":1,\"a\":2}", false),
        ("[1,\u{ff}]", false),
    ] {
        let body = body(data);
        let address = serve(None, move |_| {
            let body = body.clone();
            async move { answer(200, &[("content-type", "text/event-stream")], body) }
        })
        .await;
        let (frames, error) = all(at(address).call(&modern(ASK)).await.unwrap()).await;
        assert_eq!(frames.len() == 1, passes, "{data}");
        assert_eq!(error.is_none(), passes, "{data}");
    }
}

#[tokio::test]
async fn answers_that_cannot_be_judged_are_refused() {
    let bad = |answer: fn() -> Answer| async move { answered_with(answer).await.unwrap_err() };
    let not_mcp: [fn() -> Answer; 2] = [
        || answer(200, JSON, "{\"hello\":1}"),
        || answer(200, JSON, "oops"),
    ];
    for answer in not_mcp {
        assert!(matches!(bad(answer).await, CallError::NotMcp(_)));
    }
    let bad_replies: [fn() -> Answer; 4] = [
        || answer(200, &[("content-type", "text/html")], "<p>"),
        || answer(200, &[], "{}"),
        || answer(200, &[("content-encoding", "gzip")], "x"),
        || answer(307, &[("location", "http://evil.test/")], ""),
    ];
    for answer in bad_replies {
        assert!(matches!(bad(answer).await, CallError::BadReply(_)));
    }
    let refused = bad(|| answer(401, &[("www-authenticate", "Bearer")], "")).await;
    assert!(matches!(refused, CallError::AuthRequired));
    let long = bad(|| answer(200, JSON, vec![b' '; 70_000])).await;
    assert_eq!(long.limit(), Some("message_bytes"));
}

#[tokio::test]
async fn http_errors_keep_their_status_and_what_can_be_judged_of_their_body() {
    let text = |answer: fn() -> Answer| async move {
        let mut reply = answered_with(answer).await.unwrap();
        match reply.frames.next().await {
            None => (reply.status.as_u16(), "nothing"),
            Some(frame) => match frame.unwrap().payload {
                Payload::Message(_) => (reply.status.as_u16(), "message"),
                Payload::Text(_) => (reply.status.as_u16(), "text"),
                Payload::Inspected(_) | Payload::Empty => (reply.status.as_u16(), "other"),
            },
        }
    };
    const ERROR: &str = r#"{"jsonrpc":"2.0","error":{"code":-32001,"message":"x"},"id":null}"#;
    let html = || answer(500, &[("content-type", "text/html")], "<p>sorry");
    let gzip = || answer(404, &[("content-encoding", "gzip")], "x");
    type Case = (fn() -> Answer, (u16, &'static str));
    let cases: [Case; 8] = [
        (|| answer(404, JSON, ERROR), (404, "message")),
        (|| answer(400, JSON, r#"{"error":"x"}"#), (400, "text")),
        (html, (500, "text")),
        (|| answer(400, JSON, r#"{"a":1,"a":2}"#), (400, "nothing")),
        (|| answer(400, &[], &b"\xff\xfe"[..]), (400, "nothing")),
        (gzip, (404, "nothing")),
        (|| answer(405, &[], ""), (405, "nothing")),
        (|| answer(202, JSON, "null"), (202, "nothing")),
    ];
    for (answer, expected) in cases {
        assert_eq!(text(answer).await, expected);
    }
}

#[tokio::test]
async fn silence_is_told() {
    let address = serve(None, |_| async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        answer(202, &[], "")
    })
    .await;
    let upstream = at(address);
    let error = upstream.call(&modern(ASK)).await.unwrap_err();
    assert!(
        matches!(error, CallError::Silent(time) if time == Duration::from_millis(1500)),
        "{error:?}"
    );
    let error = upstream
        .call(&legacy(
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#,
            None,
        ))
        .await
        .unwrap_err();
    assert!(
        matches!(error, CallError::Silent(time) if time == Duration::from_secs(3)),
        "{error:?}"
    );
    assert!(matches!(upstream.health().await, Health::Down(_)));

    let nobody = at("127.0.0.1:1".parse().unwrap());
    let error = nobody
        .call(&call(CallKind::Listen, Era::Legacy, None))
        .await
        .unwrap_err();
    assert!(matches!(error, CallError::Connect(_)), "{error:?}");
    assert!(matches!(nobody.health().await, Health::Down(why) if why.contains("refused")));
}

#[tokio::test]
async fn tls_with_an_own_authority_and_a_client_certificate_speaks_http_2() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut params = CertificateParams::new(vec![]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    std::fs::write(path("ca.pem"), authority.pem()).unwrap();
    let issue = |name: &str, usage| {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &authority).unwrap(), key)
    };
    let (cert, key) = issue("agent.test", ExtendedKeyUsagePurpose::ClientAuth);
    std::fs::write(path("client.pem"), cert.pem()).unwrap();
    std::fs::write(path("client.key"), key.serialize_pem()).unwrap();

    let (cert, key) = issue("localhost", ExtendedKeyUsagePurpose::ServerAuth);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(authority.der().clone()).unwrap();
    let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider.clone())
        .build()
        .unwrap();
    let mut server = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(
            vec![cert.der().clone()],
            PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        )
        .unwrap();
    server.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let speaker = Arc::new(std::sync::Mutex::new(None));
    let kept = speaker.clone();
    let script = async move |request: http::Request<Incoming>, kept: Arc<std::sync::Mutex<_>>| {
        // A stream that stays open does not use up a stream of a shared connection.
        let listens = request.method() == Method::GET;
        assert_eq!(listens, request.version() == http::Version::HTTP_11);
        if listens || request.headers().contains_key("x-stream") {
            let (send, answer) = streamed();
            *kept.lock().unwrap() = Some(send);
            return answer;
        }
        answer(
            200,
            JSON,
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"result":{{"v":"{:?}"}}}}"#,
                request.version()
            ),
        )
    };
    let address = serve(Some(server), move |request| script(request, kept.clone())).await;

    let mut transport = http(format!("https://localhost:{}/", address.port()));
    transport.ca = Some(path("ca.pem"));
    transport.client_cert = Some((path("client.pem"), path("client.key")));
    let ask = || modern(ASK);
    let server = upstream(Transport::Http(transport.clone()), &limits());
    let reply = server.call(&ask()).await.unwrap();
    assert_eq!(
        all(reply).await.0,
        [r#"{"jsonrpc":"2.0","id":1,"result":{"v":"HTTP/2.0"}}"#]
    );
    let mut streams = ask();
    streams.headers.insert("x-stream", "1".parse().unwrap());
    for stream in [streams, call(CallKind::Listen, Era::Legacy, None)] {
        drop(server.call(&stream).await.unwrap());
        let sender: tokio::sync::mpsc::Sender<Bytes> = speaker.lock().unwrap().take().unwrap();
        tokio::time::timeout(Duration::from_secs(2), sender.closed())
            .await
            .expect("the stream is reset upstream");
    }
    assert_eq!(
        all(server.call(&ask()).await.unwrap()).await.0.len(),
        1,
        "and the connection goes on"
    );

    transport.client_cert = None;
    let error = upstream(Transport::Http(transport), &limits())
        .call(&ask())
        .await
        .unwrap_err();
    assert!(
        matches!(error, CallError::Connect(_)),
        "without a certificate: {error:?}"
    );
    let error = upstream(
        Transport::Http(http(format!("https://localhost:{}/", address.port()))),
        &limits(),
    )
    .call(&ask())
    .await;
    assert!(
        matches!(error, Err(CallError::Connect(_))),
        "an authority that nobody trusts"
    );
}

#[test]
fn faults_of_the_config_are_told() {
    let faulty = |change: fn(&mut HttpTransport)| {
        let mut transport = http("http://localhost/".into());
        change(&mut transport);
        Client::new(&transport, None).map(|_| ()).unwrap_err()
    };
    assert!(faulty(|t| t.url = "ftp://x/".into()).contains("neither"));
    assert!(faulty(|t| t.url = "http://u:p@x/".into()).contains("login"));
    assert!(faulty(|t| t.headers = vec![("a b".into(), "1".into())]).contains("no header name"));
    assert!(faulty(|t| t.headers = vec![("host".into(), "1".into())]).contains("cannot be set"));
    let told = faulty(|t| t.bearer = Some("a\nsecret".into()));
    assert!(told.contains("bearer") && !told.contains("secret"));
    assert!(faulty(|t| t.ca = Some("/nowhere.pem".into())).contains("/nowhere.pem"));
}
