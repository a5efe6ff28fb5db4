//! Harmless messages arrive byte for byte: every file of `tests/corpus/odd`, on every transport, in
//! both eras, both ways, with all built-in rules enabled. The spelling of the JSON may differ only
//! where a transport cannot carry a character: a line break between tokens (one message per line on
//! stdio; CR in event streams), and in event streams the characters at which some readers end a
//! line (`framing`).

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt;
use lychgate::message::MessageKind;
use tokio::sync::{Mutex, mpsc};

use super::harness::{Agent, Answer, META, Setup, TestGate, message, soon};
use super::servers::{Peer, Script, Server, Wire, initialized, streamed};

/// A file of the corpus.
struct Odd {
    name: String,
    bytes: Bytes,
}

fn corpus() -> Vec<Odd> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/odd");
    let mut all: Vec<Odd> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            Odd {
                name: path.file_name().unwrap().to_str().unwrap().to_owned(),
                bytes: std::fs::read(&path).unwrap().into(),
            }
        })
        .collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(all.len() >= 25, "the corpus is gone");
    all
}

impl Odd {
    /// Returns its id as written.
    fn id(&self) -> Option<String> {
        let message = message(&self.bytes);
        message.id(message.single().unwrap()).map(Into::into)
    }

    fn is_answer(&self) -> bool {
        message(&self.bytes).single().unwrap().is_answer()
    }

    fn is_request(&self) -> bool {
        message(&self.bytes).single().unwrap().is_request()
    }

    /// Returns the id of the call during which a server sends this message.
    fn call_id(&self) -> String {
        let own = self.id().filter(|_| self.is_answer());
        own.unwrap_or_else(|| r#""ask""#.into())
    }

    /// Returns the same request or notification as one of the modern era; `None` if it cannot be
    /// one.
    fn modern(&self) -> Option<Self> {
        let message = message(&self.bytes);
        let envelope = message.single().unwrap();
        let (at, with) = match message.body(envelope) {
            _ if envelope.is_answer() => return None,
            Some(params) if params.raw().starts_with('[') => return None,
            Some(params) => {
                let comma = if params.members().next().is_some() {
                    ","
                } else {
                    ""
                };
                (params.span().start + 1, format!("{META}{comma}"))
            }
            None => (
                message.value(envelope).span().end - 1,
                format!(",\"params\":{{{META}}}"),
            ),
        };
        let mut bytes = self.bytes.to_vec();
        bytes.splice(at..at, with.into_bytes());
        Some(Self {
            name: self.name.clone(),
            bytes: bytes.into(),
        })
    }
}

/// Returns a message as it can be sent on one line, with spaces for the line breaks between tokens.
fn one_line(bytes: &[u8]) -> Bytes {
    bytes
        .iter()
        .map(|byte| {
            if matches!(byte, b'\r' | b'\n') {
                b' '
            } else {
                *byte
            }
        })
        .collect()
}

/// Returns a message as it can be sent in an event, without CR, and with escapes for U+0085, U+2028
/// and U+2029.
fn in_event(bytes: &[u8]) -> Bytes {
    let text = std::str::from_utf8(bytes)
        .unwrap()
        .replace("\r\n", "\n")
        .replace('\r', " ");
    text.replace('\u{85}', "\\u0085")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
        .into()
}

/// Returns a message as a server on this transport can send it.
fn sayable(wire: Wire, bytes: &Bytes) -> Bytes {
    match wire {
        Wire::Json => bytes.clone(),
        Wire::Events | Wire::Sse => in_event(bytes),
        Wire::Stdio => one_line(bytes),
    }
}

/// The server side of a gate: receives what reaches the server, and determines its answers.
struct FarEnd {
    wire: Wire,
    got: mpsc::UnboundedReceiver<Bytes>,
    say: mpsc::UnboundedSender<Vec<Bytes>>,
    _peer: Peer,
}

impl FarEnd {
    async fn start(wire: Wire) -> (TestGate, Self) {
        let (tell, got) = mpsc::unbounded_channel();
        let (say, next) = mpsc::unbounded_channel::<Vec<Bytes>>();
        let next = Arc::new(Mutex::new(next));
        let script: Script = Arc::new(move |bytes| {
            let tell = tell.clone();
            let next = next.clone();
            async move {
                if let Some(answer) = initialized(&bytes) {
                    return answer;
                }
                let wants = message(&bytes).single().unwrap().is_request();
                tell.send(bytes).unwrap();
                if wants {
                    next.lock().await.recv().await.unwrap()
                } else {
                    vec![]
                }
            }
            .boxed()
        });
        let peer = Peer::start(wire, script).await;
        let gate = peer.behind(Setup::new().shipped(), "far").start().await;
        (
            gate,
            Self {
                wire,
                got,
                say,
                _peer: peer,
            },
        )
    }

    /// Checks that this message is the next to reach the server.
    async fn reached_by(&mut self, odd: &Odd) {
        let got = soon("a message at the server", self.got.recv())
            .await
            .unwrap();
        let expected = if self.wire == Wire::Stdio {
            one_line(&odd.bytes)
        } else {
            odd.bytes.clone()
        };
        same(&odd.name, &got, &expected);
    }

    /// Sets the messages with which the server answers the next one that it receives. Returns them
    /// as they are on the wire.
    fn say(&self, messages: &[&Bytes]) -> Vec<Bytes> {
        let said: Vec<Bytes> = messages
            .iter()
            .map(|bytes| sayable(self.wire, bytes))
            .collect();
        self.say.send(said.clone()).unwrap();
        said
    }

    /// Sets the answer to a message from an agent, if it is a request.
    fn answer(&self, odd: &Odd) -> Option<Vec<Bytes>> {
        let id = odd.id().filter(|_| odd.is_request())?;
        Some(self.say(&[&done(&id)]))
    }

    /// Makes the server send a message: as the answer to the next call, or before the answer where
    /// there is a stream; `None` if there is none.
    fn bring(&self, odd: &Odd) -> Option<Vec<Bytes>> {
        match (odd.is_answer(), self.wire) {
            (true, _) => Some(self.say(&[&odd.bytes])),
            (false, Wire::Json) => None,
            (false, _) => Some(self.say(&[&odd.bytes, &done(&odd.call_id())])),
        }
    }
}

#[track_caller]
fn same(name: &str, got: &[u8], expected: &[u8]) {
    let got = String::from_utf8_lossy(got);
    let expected = String::from_utf8_lossy(expected);
    assert!(
        got == expected,
        "{name}:\n     got {got:?}\nexpected {expected:?}"
    );
}

fn call(id: &str) -> Bytes {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{{}}}}}}"#).into()
}

fn done(id: &str) -> Bytes {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{ "content":[]}}}}"#).into()
}

/// Checks that an answer consists of exactly these messages.
async fn holds(name: &str, answer: Answer, messages: &[Bytes]) {
    let mut answer = answer.expect(200).await;
    if answer.header("content-type") == "application/json" {
        assert_eq!(messages.len(), 1, "{name}");
        return same(name, &answer.bytes().await, &messages[0]);
    }
    for expected in messages {
        same(name, &answer.data().await.unwrap(), expected);
    }
    assert!(answer.data().await.is_none(), "{name}: more than was said");
}

async fn legacy(wire: Wire) {
    let (gate, mut far) = FarEnd::start(wire).await;
    let agent = gate.agent();
    let session = agent.initialize("far").await.unwrap();
    let headers = [
        ("mcp-session-id", session.as_str()),
        ("mcp-protocol-version", "2025-11-25"),
    ];
    for odd in corpus() {
        // From the agent to the server, whatever the message.
        let expected = far.answer(&odd);
        let answer = agent.post("far", &headers, odd.bytes.clone()).await;
        far.reached_by(&odd).await;
        match expected {
            Some(expected) => holds(&odd.name, answer, &expected).await,
            None => assert_eq!(
                (answer.status, answer.text().await.as_str()),
                (202, ""),
                "{}",
                odd.name
            ),
        }
        // From the server to the agent.
        let id = odd.call_id();
        let Some(expected) = far.bring(&odd) else {
            continue;
        };
        let answer = agent.post("far", &headers, call(&id)).await;
        soon("the call", far.got.recv()).await.unwrap();
        holds(&odd.name, answer, &expected).await;
    }
    gate.running.drain().await;
}

async fn modern(wire: Wire) {
    let (gate, mut far) = FarEnd::start(wire).await;
    let agent = gate.agent();
    let mut tried = 0;
    for odd in corpus() {
        if let Some(odd) = odd.modern() {
            tried += 1;
            let expected = far.answer(&odd);
            let body = std::str::from_utf8(&odd.bytes).unwrap();
            let answer = agent.post_modern("far", body).await;
            far.reached_by(&odd).await;
            match expected {
                Some(expected) => holds(&odd.name, answer, &expected).await,
                None => assert_eq!(answer.status, 202, "{}", odd.name),
            }
        }
        let id = odd.call_id();
        // Servers send no requests in this era, and a progress notification of another call belongs
        // to no stream here.
        let strays = odd.is_request() || odd.name.contains("token") || wire == Wire::Stdio;
        if strays && !odd.is_answer() {
            continue;
        }
        let Some(expected) = far.bring(&odd) else {
            continue;
        };
        let ask = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo",{META}}}}}"#
        );
        let answer = agent.post_modern("far", &ask).await;
        soon("the call", far.got.recv()).await.unwrap();
        holds(&odd.name, answer, &expected).await;
    }
    assert!(tried > 15, "{tried} modern messages");
    gate.running.drain().await;
}

/// An agent of revision 2024-11-05 with its stream.
struct OldAgent {
    agent: Agent,
    stream: Answer,
    endpoint: String,
}

impl OldAgent {
    async fn open(gate: &TestGate) -> Self {
        let agent = gate.agent();
        let mut stream = agent
            .get("/sse/far", &[("accept", "text/event-stream")])
            .await;
        assert_eq!(
            (stream.status, stream.header("content-type")),
            (200, "text/event-stream; charset=utf-8")
        );
        let endpoint = stream.data_text().await;
        Self {
            agent,
            stream,
            endpoint,
        }
    }

    async fn post(&self, body: impl Into<Bytes>) {
        let answer = self.agent.post_json(&self.endpoint, body).await;
        answer.expect(202).await;
    }
}

/// Normalizes line breaks between tokens, since an event may contain any of them.
fn breaks_alike(bytes: &[u8]) -> Bytes {
    String::from_utf8_lossy(&in_event(bytes))
        .replace('\n', " ")
        .into()
}

async fn old_front(wire: Wire) {
    let (gate, mut far) = FarEnd::start(wire).await;
    let mut old = OldAgent::open(&gate).await;
    old.post(super::harness::INITIALIZE).await;
    let opened = old.stream.data().await.unwrap();
    assert_eq!(message(&opened).single().unwrap().kind, MessageKind::Result);
    for odd in corpus() {
        let expected = far.answer(&odd);
        old.post(odd.bytes.clone()).await;
        far.reached_by(&odd).await;
        for expected in expected.into_iter().flatten() {
            same(&odd.name, &old.stream.data().await.unwrap(), &expected);
        }
        let id = odd.call_id();
        let Some(expected) = far.bring(&odd) else {
            continue;
        };
        old.post(call(&id)).await;
        soon("the call", far.got.recv()).await.unwrap();
        for expected in expected {
            let got = old.stream.data().await.unwrap();
            same(&odd.name, &breaks_alike(&got), &breaks_alike(&expected));
        }
    }
    drop(old);
    gate.running.drain().await;
}

#[tokio::test]
async fn legacy_over_streamable_http_with_json() {
    legacy(Wire::Json).await;
}

#[tokio::test]
async fn legacy_over_streamable_http_with_streams() {
    legacy(Wire::Events).await;
}

#[tokio::test]
async fn legacy_over_http_and_sse() {
    legacy(Wire::Sse).await;
}

#[tokio::test]
async fn legacy_over_stdio() {
    legacy(Wire::Stdio).await;
}

#[tokio::test]
async fn modern_over_streamable_http_with_json() {
    modern(Wire::Json).await;
}

#[tokio::test]
async fn modern_over_streamable_http_with_streams() {
    modern(Wire::Events).await;
}

#[tokio::test]
async fn modern_over_stdio() {
    modern(Wire::Stdio).await;
}

#[tokio::test]
async fn an_agent_of_the_first_revision_over_every_transport() {
    for wire in Wire::ALL {
        old_front(wire).await;
    }
}

/// An event stream keeps its ids, names, `retry:`, priming events, keep-alives and every byte of
/// its messages; the bytes of its framing are written by the gate.
#[tokio::test]
async fn streams_keep_their_fields() {
    const STREAM: &str = concat!(
        ": welcome\n\n",
        "id: 0\ndata:\n\n",
        "id: p/1\r\nretry: 2500\r\ndata:  {\"jsonrpc\":\"2.0\",\r\ndata:\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":\"x\"}}\r\n\r\n",
        ":\n\n",
        "event: message\nx-future: 1\ndata\nid\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n",
    );
    const WRITTEN: &str = concat!(
        ":\n\n",
        "id: 0\ndata: \n\n",
        "id: p/1\nretry: 2500\ndata:  {\"jsonrpc\":\"2.0\",\ndata: \"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":\"x\"}}\n\n",
        ":\n\n",
        "event: message\nid: \ndata: \ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n",
    );
    let server = Server::start(|_| async {
        let (tap, reply) = streamed();
        tokio::spawn(async move {
            for piece in STREAM.as_bytes().chunks(7) {
                tap.say(piece.to_vec()).await;
            }
        });
        reply
    })
    .await;
    let gate = Setup::new()
        .shipped()
        .http("far", server.url())
        .start()
        .await;
    let answer = gate.agent().post("far", &[], call("1")).await;
    same("the stream", &answer.bytes().await, WRITTEN.as_bytes());
}
