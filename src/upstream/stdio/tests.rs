use std::path::Path;
use std::time::Duration;

use http::StatusCode;

use super::super::testing::*;
use super::*;
use crate::config::{Secret, Transport};
use crate::protocol::{Framing, ProcessFaultKind, header};
use crate::upstream::Health;
use crate::upstream::Upstream;

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#;

/// A server written in shell: `say` writes a line; each incoming line is recorded in `in` and
/// stored in `$line`.
fn script(folder: &Path, body: &str) -> StdioTransport {
    let frame = format!(
        r#"say() {{ printf '%s\n' "$1"; }}
echo $$ >> pids
while IFS= read -r line; do
  printf '%s\n' "$line" >> in
  case "$line" in *'"initialize"'*) say '{{"jsonrpc":"2.0","id":0,"result":{{}}}}'; continue;; esac
  {body}
done"#
    );
    StdioTransport {
        command: vec!["sh".into(), "-c".into(), frame],
        env: vec!["PATH".into()],
        set_env: vec![],
        directory: Some(folder.into()),
    }
}

/// A folder, and such a server in it.
fn server(body: &str) -> (tempfile::TempDir, Upstream) {
    let folder = tempfile::tempdir().unwrap();
    let server = upstream(Transport::Stdio(script(folder.path(), body)), &limits());
    (folder, server)
}

async fn open(upstream: &Upstream) -> String {
    let reply = upstream.call(&legacy(INITIALIZE, None)).await.unwrap();
    assert_eq!(reply.status, StatusCode::OK);
    assert_eq!(reply.framing, Framing::Body);
    reply.headers[header::SESSION].to_str().unwrap().to_owned()
}

fn lines(folder: &Path, name: &str) -> Vec<String> {
    std::fs::read_to_string(folder.join(name))
        .unwrap_or_default()
        .lines()
        .map(Into::into)
        .collect()
}

fn runs(pid: &str) -> bool {
    // Not by its command line, which is empty for a moment during every `exec`.
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        stat.rsplit_once(") ")
            .is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
    })
}

/// Returns how many lines with this part the server got.
fn got(folder: &Path, part: &str) -> usize {
    let lines = lines(folder, "in");
    lines.iter().filter(|line| line.contains(part)).count()
}

async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..600 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{what}: waited for six seconds");
}

#[tokio::test]
async fn bytes_go_out_and_come_back_as_they_are() {
    let (folder, server) =
        server(r#"say ' {"id" : 7,"jsonrpc":"2.0","result":{"s":"\u00e9é\/","n":1.0e+3}}	'"#);
    let session = open(&server).await;
    let ask = "{ \"jsonrpc\":\"2.0\",\n\t\"id\":7,\r\n\"method\":\"x\",\"params\":{\"s\":\"\\u00e9é\\n\",\"n\":-0.10E2}}";
    let reply = server.call(&legacy(ask, Some(&session))).await.unwrap();
    assert_eq!(reply.framing, Framing::Body);
    assert_eq!(
        all(reply).await.0,
        [" {\"id\" : 7,\"jsonrpc\":\"2.0\",\"result\":{\"s\":\"\\u00e9é\\/\",\"n\":1.0e+3}}\t"]
    );
    assert_eq!(
        lines(folder.path(), "in"),
        [
            INITIALIZE.to_owned(),
            ask.replace("\r\n", "  ").replace('\n', " ")
        ]
    );
    assert_eq!(server.health().await, Health::Up);
    server.shutdown().await;
    assert!(!runs(&lines(folder.path(), "pids")[0]));
    assert!(matches!(
        server.call(&legacy(INITIALIZE, None)).await,
        Err(CallError::Draining)
    ));
}

#[tokio::test]
async fn messages_before_the_answer_are_events_as_they_come() {
    let (_folder, server) = server(
        r#"case "$line" in *'"go"'*)
    say '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t"}}'
    say 'starting up: not JSON at all'
    say '{"jsonrpc":"2.0","id":99,"result":{"late":true}}'
    say '{"jsonrpc":"2.0","id":1,"method":"roots/list"}';;
  *'"roots"'*) say '{"jsonrpc":"2.0","id":"1","result":{"done":true}}';; esac"#,
    );
    let session = open(&server).await;
    let go = r#"{"jsonrpc":"2.0","id":"1","method":"go","params":{"_meta":{"progressToken":"t"}}}"#;
    let mut reply = server.call(&legacy(go, Some(&session))).await.unwrap();
    assert_eq!(reply.framing, Framing::Events);
    assert_eq!(
        next(&mut reply).await,
        "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":\"t\"}}\n\n"
    );
    assert!(next(&mut reply).await.contains("roots/list"));
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}"#;
    let accepted = server.call(&legacy(answer, Some(&session))).await.unwrap();
    assert_eq!(accepted.status, StatusCode::ACCEPTED);
    assert_eq!(accepted.framing, Framing::Empty);
    let (rest, error) = all(reply).await;
    assert!(
        error.is_none() && rest.len() == 1 && rest[0].contains("done"),
        "{rest:?} {error:?}"
    );
}

#[tokio::test]
async fn a_session_is_its_agents_and_ends_with_delete() {
    // The helper process that it starts ignores everything but SIGKILL.
    let (folder, server) = server("( trap '' TERM HUP; sleep 300 ) & echo $! >> pids");
    let session = open(&server).await;
    let note = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let foreign = foreign(legacy(note, Some(&session)));
    assert!(is_unknown(&server, &foreign).await);
    for session in [None, Some("made-up")] {
        assert!(is_unknown(&server, &legacy(note, session)).await);
    }
    server.call(&legacy(note, Some(&session))).await.unwrap();
    until("a helper process", || {
        lines(folder.path(), "pids").len() == 2
    })
    .await;
    let pids = lines(folder.path(), "pids");
    assert!(pids.iter().all(|pid| runs(pid)));
    let close = call(CallKind::Close, Era::Legacy, Some(&session));
    let closed = server.call(&close).await.unwrap();
    assert_eq!(closed.status, StatusCode::NO_CONTENT);
    assert_eq!(closed.framing, Framing::Empty);
    assert!(is_unknown(&server, &legacy(note, Some(&session))).await);
    until("the whole process group to end", || {
        !pids.iter().any(|pid| runs(pid))
    })
    .await;
}

#[tokio::test]
async fn what_belongs_to_no_call_goes_to_the_one_listener() {
    let (_folder, server) = server(
        r#"say '{"jsonrpc":"2.0","method":"a"}'; say '{"jsonrpc":"2.0","method":"b"}'; say '{"jsonrpc":"2.0","method":"c"}'"#,
    );
    let session = open(&server).await;
    let note = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    server.call(&legacy(note, Some(&session))).await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let ask = call(CallKind::Listen, Era::Legacy, Some(&session));
    let listen = || server.call(&ask);
    let mut reply = listen().await.unwrap();
    assert!(matches!(listen().await, Err(CallError::NotOffered)));
    assert!(next(&mut reply).await.contains(r#""a""#));
    assert!(next(&mut reply).await.contains(r#""b""#));
    assert!(next(&mut reply).await.contains(r#""c""#));
    server.call(&legacy(note, Some(&session))).await.unwrap();
    assert!(next(&mut reply).await.contains(r#""a""#));
    drop(reply);
    let reply = listen().await.unwrap();
    server.shutdown().await;
    assert!(all(reply).await.1.is_none());
}

#[tokio::test]
async fn modern_calls_of_an_agent_share_a_child_unless_ids_collide() {
    let (folder, server) = server(
        r#"case "$line" in *'"wait"'*) ;;
  *'"method":"subscriptions/listen"'*) say '{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"s"}}}';;
  *) say '{"jsonrpc":"2.0","id":5,"result":{"pid":'$$'}}';; esac"#,
    );
    let ask = |id: &str, method: &str| {
        modern(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}"#
        ))
    };
    let mut listen = server
        .call(&ask("\"s\"", "subscriptions/listen"))
        .await
        .unwrap();
    assert!(next(&mut listen).await.contains("acknowledged"));
    let first = all(server.call(&ask("5", "x")).await.unwrap()).await.0;
    let again = all(server.call(&ask("5", "x")).await.unwrap()).await.0;
    assert_eq!(first, again);
    assert_eq!(lines(folder.path(), "pids").len(), 1);
    let wait = ask("5", "wait");
    let (waits, other) = tokio::join!(server.call(&wait), async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        all(server.call(&ask("5", "x")).await.unwrap()).await.0
    });
    assert!(matches!(waits, Err(CallError::Silent(_))), "{waits:?}");
    assert_ne!(first, other, "the same id in flight twice on one child");
    let foreign = foreign(ask("5", "x"));
    let foreign = all(server.call(&foreign).await.unwrap()).await.0;
    assert!(
        foreign != first && foreign != other,
        "two agents share a child"
    );
    drop(listen);
    until("cancellation", || {
        got(folder.path(), r#""requestId":"s""#) > 0
    })
    .await;
    let cancelled =
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}"#;
    assert!(
        lines(folder.path(), "in")
            .iter()
            .any(|line| line == cancelled),
        "the call that timed out"
    );
    server.shutdown().await;
}

#[tokio::test]
async fn dropping_a_call_cancels_it_in_the_modern_era_only() {
    let (folder, server) =
        server(r#"case "$line" in *'"method":"x"'*) say '{"jsonrpc":"2.0","method":"m"}';; esac"#);
    let session = open(&server).await;
    let ask = r#"{"jsonrpc":"2.0","id":3,"method":"x"}"#;
    drop(server.call(&legacy(ask, Some(&session))).await.unwrap());
    drop(server.call(&modern(ask)).await.unwrap());
    let cancelled = || got(folder.path(), "cancelled");
    until("cancellation", || cancelled() > 0).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(cancelled(), 1);
    server.shutdown().await;
}

#[tokio::test]
async fn a_call_that_its_agent_cancels_or_leaves_is_no_fault_of_the_server() {
    let (folder, server) = server("");
    let server = std::sync::Arc::new(server);
    let session = open(&server).await;
    let ask = |id: u32| {
        let server = server.clone();
        let session = session.clone();
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"slow"}}"#);
        tokio::spawn(async move { server.call(&legacy(&text, Some(&session))).await })
    };

    let cancelled = ask(7);
    until("the call", || got(folder.path(), "slow") == 1).await;
    let note = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#;
    let accepted = server.call(&legacy(note, Some(&session))).await.unwrap();
    assert_eq!(accepted.status, StatusCode::ACCEPTED);
    let reply = tokio::time::timeout(Duration::from_secs(2), cancelled)
        .await
        .expect("the call ends")
        .unwrap()
        .unwrap();
    assert_eq!(reply.status, StatusCode::OK);
    assert_eq!(reply.framing, Framing::Events);
    assert!(all(reply).await.0.is_empty());
    until("the cancellation at the server", || {
        got(folder.path(), "cancelled") > 0
    })
    .await;
    let left = ask(8);
    until("the call", || got(folder.path(), "slow") == 2).await;
    let close = call(CallKind::Close, Era::Legacy, Some(&session));
    server.call(&close).await.unwrap();
    assert!(matches!(
        left.await.unwrap(),
        Err(CallError::UnknownSession)
    ));
    assert_eq!(server.health().await, Health::Up);
    server.shutdown().await;
}

#[tokio::test]
async fn only_what_is_named_reaches_the_child() {
    let folder = tempfile::tempdir().unwrap();
    let mut transport = script(folder.path(), "");
    let shell = "read -r l; env > env; for a; do echo \"$a\" >> args; done; kill $$";
    let command = ["sh", "-c", shell, "zero", "$(touch oops)", "a b"];
    transport.command = command.map(Into::into).into();
    transport.set_env = vec![("TOKEN".into(), Secret("s3cret".into()))];
    let server = upstream(Transport::Stdio(transport), &limits());
    let error = server.call(&legacy(INITIALIZE, None)).await.unwrap_err();
    assert!(matches!(error, CallError::Process(_)), "{error:?}");
    assert_eq!(lines(folder.path(), "args"), ["$(touch oops)", "a b"]);
    let mut names: Vec<_> = lines(folder.path(), "env")
        .iter()
        .map(|line| line.split('=').next().unwrap().to_owned())
        .collect();
    // The shell itself sets the others.
    names.retain(|name| !["PWD", "OLDPWD", "SHLVL", "_"].contains(&name.as_str()));
    names.sort();
    assert_eq!(names, ["PATH", "TOKEN"]);
    assert!(!folder.path().join("oops").exists());
}

#[tokio::test]
async fn limits_hold() {
    let folder = tempfile::tempdir().unwrap();
    let mut few = limits();
    few.children_per_upstream = 1;
    few.read.message_bytes = 1000;
    few.session_idle = Duration::from_millis(600);
    let body = r#"case "$line" in *'"long"'*) printf '%02000d' 1; sleep 60;; esac"#;
    let server = upstream(Transport::Stdio(script(folder.path(), body)), &few);
    let session = open(&server).await;
    let error = server.call(&legacy(INITIALIZE, None)).await.unwrap_err();
    assert_eq!(error.limit(), Some("children_per_upstream"));
    let long = legacy(
        r#"{"jsonrpc":"2.0","id":3,"method":"long"}"#,
        Some(&session),
    );
    assert_eq!(
        server.call(&long).await.unwrap_err().limit(),
        Some("message_bytes")
    );
    assert!(is_unknown(&server, &long).await);
    until("the child to be killed", || {
        !runs(&lines(folder.path(), "pids")[0])
    })
    .await;
    tokio::time::sleep(Duration::from_millis(300)).await;

    let session = open(&server).await;
    until("a session that nobody uses to end", || {
        !runs(&lines(folder.path(), "pids")[1])
    })
    .await;
    let note = legacy(r#"{"jsonrpc":"2.0","method":"n"}"#, Some(&session));
    assert!(is_unknown(&server, &note).await);
}

#[tokio::test]
async fn an_abandoned_session_makes_place_for_a_new_one_of_its_agent_only() {
    let folder = tempfile::tempdir().unwrap();
    let few = Limits {
        children_per_upstream: 1,
        ..limits()
    };
    let transport = script(folder.path(), "");
    let timeout = Duration::from_secs(5);
    let config = UpstreamConfig {
        initialize_timeout: timeout,
        request_timeout: timeout,
        ..UpstreamConfig::new(Transport::Stdio(transport.clone()))
    };
    let mut server = Stdio::new(UpstreamName("it".into()), &transport, &config, &few).unwrap();
    server.abandoned_after = Duration::from_millis(200);
    let ask = || legacy(INITIALIZE, None);
    let first = server.call(&ask()).await.unwrap();
    assert_eq!(
        server.call(&ask()).await.unwrap_err().limit(),
        Some("children_per_upstream"),
        "in use just now"
    );
    tokio::time::sleep(Duration::from_millis(250)).await;
    let foreign = foreign(ask());
    assert_eq!(
        server.call(&foreign).await.unwrap_err().limit(),
        Some("children_per_upstream")
    );
    server.call(&ask()).await.unwrap();
    let gone = legacy(
        r#"{"jsonrpc":"2.0","method":"n"}"#,
        first.headers[header::SESSION].to_str().ok(),
    );
    assert!(matches!(
        server.call(&gone).await,
        Err(CallError::UnknownSession)
    ));
    server.shutdown().await;
}

#[tokio::test]
async fn a_child_that_ends_is_told_of_and_started_again() {
    let (folder, server) = server("exit 3");
    let ask = || modern(r#"{"jsonrpc":"2.0","id":3,"method":"x"}"#);
    let error = server.call(&ask()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the server's process ended (exit status: 3)"
    );
    assert_eq!(error.name(), "unreachable");
    assert!(matches!(server.health().await, Health::Down(_)));
    let begun = Instant::now();
    assert!(server.call(&ask()).await.is_err());
    assert!(
        begun.elapsed() >= Duration::from_millis(200),
        "no pause before the second start"
    );
    assert_eq!(lines(folder.path(), "pids").len(), 2);

    let mut nothing = script(folder.path(), "");
    nothing.command = vec!["no-such-program-here".into()];
    let server = upstream(Transport::Stdio(nothing), &limits());
    assert!(matches!(
        server.call(&ask()).await,
        Err(CallError::NotStarted(_))
    ));
    assert!(
        matches!(server.health().await, Health::Down(why) if why.contains("no-such-program-here"))
    );
}

#[tokio::test]
async fn answers_that_cannot_be_read_fail_their_call_at_once() {
    let (_folder, server) = server(r#"say '{"jsonrpc":"2.0","id":3,"id":3,"result":{}}'"#);
    let session = open(&server).await;
    let ask = r#"{"jsonrpc":"2.0","id":3,"method":"x"}"#;
    let error = server.call(&legacy(ask, Some(&session))).await.unwrap_err();
    assert!(matches!(error, CallError::NotMcp(_)), "{error:?}");
    let ask = r#"{"jsonrpc":"2.0","id":4,"method":"initialize"}"#;
    let reply = server.call(&legacy(ask, Some(&session))).await;
    assert!(
        matches!(reply, Err(CallError::Silent(_))),
        "an answer to another id was taken: {:?}",
        reply.map(drop)
    );
}

#[tokio::test]
async fn what_a_process_printed_before_it_ended_is_in_the_fault_and_the_health() {
    let (_folder, server) = server("echo GITHUB_TOKEN is not set >&2; exit 3");
    let session = open(&server).await;
    let ask = |id| {
        legacy(
            &format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"x"}}"#),
            Some(&session),
        )
    };
    let fault = |error: CallError| match error {
        CallError::Process(fault) => *fault,
        other => panic!("{other:?}"),
    };
    let first = fault(server.call(&ask(3)).await.unwrap_err());
    assert_eq!(first.kind, ProcessFaultKind::Ended);
    assert!(!first.inspected);
    assert_eq!(
        first.output.stderr.last().map(String::as_str),
        Some("GITHUB_TOKEN is not set")
    );
    // The session is over, and returns the reason for as long as its agent asks.
    for id in 4..6 {
        let later = fault(server.call(&ask(id)).await.unwrap_err());
        assert_eq!(later.kind, ProcessFaultKind::SessionEnded);
        assert_eq!(later.description, first.description.clone());
        assert_eq!(later.output, first.output.clone());
    }
    let foreign = foreign(ask(7));
    assert!(
        matches!(server.call(&foreign).await, Err(CallError::UnknownSession)),
        "another agent learns nothing of it"
    );
    let Health::Down(why) = server.health().await else {
        panic!()
    };
    assert_contains!(why, "exit status: 3", "GITHUB_TOKEN is not set");
    assert_eq!(server.output(), Some(first.output));
}

#[tokio::test]
async fn text_on_standard_output_is_named_where_an_answer_does_not_come() {
    let (_folder, server) = server(r#"say 'Listening on port 3000'"#);
    let session = open(&server).await;
    let ask = legacy(r#"{"jsonrpc":"2.0","id":3,"method":"x"}"#, Some(&session));
    let CallError::Process(fault) = server.call(&ask).await.unwrap_err() else {
        panic!()
    };
    assert_eq!(fault.kind, ProcessFaultKind::NoAnswer);
    assert_eq!(
        fault.output.stdout.as_deref(),
        Some("Listening on port 3000")
    );
    assert_contains!(fault.description, "within 1.5 s", "not MCP");
    server.shutdown().await;
}

#[tokio::test]
async fn an_invalid_meta_is_400_and_other_invalid_parameters_are_not() {
    let (_folder, server) =
        server(r#"say '{"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"m"}}'"#);
    let ask = |meta: &str| {
        modern(&format!(
            r#"{{"jsonrpc":"2.0","id":3,"method":"x","params":{{"_meta":{meta}}}}}"#
        ))
    };
    for (meta, status) in [
        (
            r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#,
            StatusCode::BAD_REQUEST,
        ),
        (
            r#"{"io.modelcontextprotocol/clientCapabilities":{}}"#,
            StatusCode::OK,
        ),
    ] {
        let reply = server.call(&ask(meta)).await.unwrap();
        assert_eq!(reply.status, status, "{meta}");
    }
    server.shutdown().await;
}
