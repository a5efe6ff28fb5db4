use super::*;
use crate::message::ReadLimits;
use crate::protocol::{AgentName, Call, CallKind, Caller};
use http::{HeaderMap, StatusCode};

fn context(agent: &str, session: Option<&str>) -> Context {
    let session = session.and_then(SessionId::new);
    Context {
        session,
        ..Context::new(
            AgentName(agent.into()),
            UpstreamName("u".into()),
            Era::Legacy,
        )
    }
}

fn parse(text: &str) -> Message {
    Message::parse(text.to_owned().into(), &ReadLimits::default()).unwrap()
}

fn sessions(most: usize, idle: Duration) -> Sessions {
    Sessions::new(&Limits {
        sessions: most,
        session_idle: idle,
        ..Limits::default()
    })
}

/// Opens a session for an agent.
fn open(sessions: &Sessions, context: &Context, id: &str) {
    let mut reply = answer::empty_reply(StatusCode::OK);
    reply
        .headers
        .insert(crate::protocol::header::SESSION, id.parse().unwrap());
    let asker = sessions.admit(&mut context.clone()).unwrap();
    sessions.observe(&asker, context, None, &reply);
}

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn a_session_belongs_to_the_agent_that_opened_it() {
    let sessions = sessions(10, MINUTE);
    open(&sessions, &context("a", None), "s1");
    assert!(sessions.admit(&mut context("a", Some("s1"))).is_ok());
    assert!(matches!(
        sessions.admit(&mut context("b", Some("s1"))),
        Err(CallError::UnknownSession)
    ));
    assert!(sessions.admit(&mut context("a", Some("s2"))).is_err());
    open(&sessions, &context("b", None), "s1");
    assert!(
        sessions.admit(&mut context("b", Some("s1"))).is_err(),
        "not taken over"
    );
    sessions.forget(&context("a", Some("s1")));
    assert!(sessions.admit(&mut context("a", Some("s1"))).is_err());
}

#[test]
fn a_session_belongs_to_one_user_of_its_agent() {
    let sessions = sessions(10, MINUTE);
    let of = |user: Option<&str>, session: Option<&str>| {
        let caller = Caller {
            user: user.map(Into::into),
            ..Caller::default()
        };
        Context {
            caller,
            ..context("a", session)
        }
    };
    open(&sessions, &of(Some("ann"), None), "s1");
    assert!(sessions.admit(&mut of(Some("ann"), Some("s1"))).is_ok());
    for other in [Some("bob"), None] {
        assert!(
            matches!(
                sessions.admit(&mut of(other, Some("s1"))),
                Err(CallError::UnknownSession)
            ),
            "{other:?}"
        );
    }
    let initialize = parse(
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{"elicitation":{"form":{}}}}}"#,
    );
    let ann = sessions.admit(&mut of(Some("ann"), None)).unwrap();
    sessions.observe(
        &ann,
        &of(Some("ann"), None),
        Some(&initialize),
        &answer::empty_reply(StatusCode::OK),
    );
    let elicits = |user| {
        sessions
            .admit(&mut of(user, None))
            .unwrap()
            .state()
            .elicitation
            .form
    };
    assert!(elicits(Some("ann")) && !elicits(Some("bob")));
}

#[test]
fn sessions_are_bounded() {
    let full = sessions(2, MINUTE);
    for id in ["s1", "s2", "s3"] {
        open(&full, &context("a", None), id);
    }
    assert!(full.admit(&mut context("a", Some("s1"))).is_err());
    assert!(full.admit(&mut context("a", Some("s3"))).is_ok());
    let brief = sessions(2, Duration::ZERO);
    open(&brief, &context("a", None), "s1");
    assert!(brief.admit(&mut context("a", Some("s1"))).is_err(), "idle");
    for number in 0..10 {
        full.admit(&mut context(&format!("agent-{number}"), None))
            .unwrap();
    }
    let table = full.table.lock();
    assert_eq!(table.sessionless.len(), 2);
    assert!(table.agents.len() <= 4, "{}", table.agents.len());
}

#[test]
fn an_agent_keeps_its_record_while_a_session_holds_it() {
    let sessions = sessions(1, MINUTE);
    open(&sessions, &context("a", None), "s1");
    sessions.admit(&mut context("b", None)).unwrap();
    let session = sessions.admit(&mut context("a", Some("s1"))).unwrap();
    let again = sessions.admit(&mut context("a", None)).unwrap();
    assert!(Arc::ptr_eq(&session.agent, &again.agent));
}

#[test]
fn open_requests_are_remembered_until_they_are_answered() {
    let sessions = sessions(2, MINUTE);
    open(&sessions, &context("a", None), "s1");
    let session = sessions.admit(&mut context("a", Some("s1"))).unwrap();
    let era = Era::Legacy;
    let call = |id: &str, tool: &str| {
        session
            .record_requests(era, &parse(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}"}}}}"#)))
    };
    let tools = || {
        session
            .open_requests(era)
            .iter()
            .filter_map(|asked| asked.tool.clone())
            .collect::<Vec<_>>()
    };
    let answered = parse(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    call("1", "t");
    call("\"1\"", "u");
    session.close_answered(era, &answered);
    assert_eq!(
        tools(),
        ["t".into(), "u".into()],
        "an answer may be sent again on a resumed stream"
    );
    session.close_answered(era, &answered);
    assert_eq!(
        tools(),
        ["t".into(), "u".into()],
        "clients take `1` for `\"1\"`"
    );
    call("2", "v");
    assert_eq!(
        tools(),
        ["t".into(), "u".into(), "v".into()],
        "those that are open last"
    );
    let modern = sessions.admit(&mut context("a", None)).unwrap();
    modern.record_requests(
        Era::Modern,
        &parse(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#),
    );
    assert!(
        modern.open_requests(Era::Legacy).is_empty(),
        "a modern request belongs to no session"
    );
}

#[test]
fn places_and_budgets_are_given_back() {
    let sessions = Sessions::new(&Limits {
        calls_per_agent: 1,
        ..Limits::default()
    });
    let upstream = Arc::new(tokio::sync::Semaphore::new(9));
    let session = sessions.admit(&mut context("a", None)).unwrap();
    let permit = session.acquire_slots(false, &upstream).unwrap();
    assert!(matches!(
        session.acquire_slots(false, &upstream),
        Err(CallError::Limit("calls_per_agent"))
    ));
    assert!(
        session.acquire_slots(true, &upstream).is_ok(),
        "a stream needs no place"
    );
    drop(permit);
    assert!(session.acquire_slots(false, &upstream).is_ok());
    let now = Instant::now();
    session.spend("", now, MINUTE);
    session.spend("", now, MINUTE);
    assert!(session.has_budget("", 3, now, MINUTE) && !session.has_budget("", 2, now, MINUTE));
    assert!(
        session.has_budget("x*", 1, now, MINUTE) && session.has_budget("", 1, now + MINUTE, MINUTE)
    );
}

#[test]
fn presence_is_recorded_while_it_lasts() {
    let sessions = sessions(9, MINUTE);
    let call = |ask| Call {
        kind: ask,
        headers: HeaderMap::new(),
        context: context("a", None),
    };
    let session = sessions.admit(&mut context("a", None)).unwrap();
    let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"clientInfo":{"name":"inspector","version":"0.17"}}}"#;
    drop(session.track_call(&call(CallKind::Send(parse(initialize)))));
    open(&sessions, &context("a", None), "s1");
    let own_session = sessions.admit(&mut context("a", Some("s1"))).unwrap();
    assert!(
        own_session.state().presence.client.is_some(),
        "the client of a session is the one that opened it"
    );
    let listens = own_session.track_call(&call(CallKind::Listen));
    assert!(own_session.is_busy() && !session.is_busy());
    assert_eq!(sessions.live().len(), 2);
    drop(listens);
    assert!(!own_session.is_busy());
}
