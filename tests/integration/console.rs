//! The console's way in, and what it tells: as a browser, another page and a program ask.

use http::Method;

use super::approval::token;
use super::harness::{Agent, Setup, TestGate, call, json};
use super::servers::{Peer, Wire, says, script};

/// A page in a browser, with what it shows.
#[derive(Default)]
struct Page {
    cookie: String,
    proof: String,
}

impl Page {
    async fn ask(&self, gate: &TestGate, method: Method, path: &str, more: &[(&str, &str)], body: &str) -> (u16, String) {
        let agent = Agent::new(gate.running.admin.unwrap(), None);
        let mut headers = vec![("cookie", self.cookie.as_str()), ("x-lychgate-console", self.proof.as_str())];
        headers.retain(|(_, value)| !value.is_empty());
        headers.extend(more);
        let answer = agent.ask(method, &format!("/console/api/{path}"), &headers, body.to_owned()).await;
        (answer.status, answer.text().await)
    }

    async fn get(&self, gate: &TestGate, path: &str) -> (u16, String) {
        self.ask(gate, Method::GET, path, &[], "").await
    }

    /// Logs in; gives the whole `Set-Cookie`.
    async fn log_in(gate: &TestGate, body: String) -> (u16, Self, String) {
        let agent = Agent::new(gate.running.admin.unwrap(), None);
        let answer = agent.ask(Method::POST, "/console/api/login", &[], body).await;
        let set = answer.headers.get("set-cookie").map(|set| set.to_str().unwrap().to_owned()).unwrap_or_default();
        let cookie = set.split(';').next().unwrap_or_default().to_owned();
        let status = answer.status;
        let said = json(&answer.text().await);
        let proof = said.root().get("proof").map(|proof| proof.str().unwrap().into_owned()).unwrap_or_default();
        (status, Self { cookie, proof }, set)
    }
}

async fn gate() -> (Peer, TestGate) {
    let peer = Peer::start(Wire::Json, script(|asked| says(asked, "done"))).await;
    let gate = peer.behind(Setup::new(), "up").start().await;
    (peer, gate)
}

#[tokio::test]
async fn nothing_is_told_without_a_session_and_a_session_is_two_secrets() {
    let (_peer, gate) = gate().await;
    let stranger = Page::default();
    for path in ["session", "stream", "overview", "upstreams", "rules", "present", "approvals", "quarantine", "none"] {
        assert_eq!(stranger.get(&gate, path).await.0, 401, "{path}");
    }
    let (status, page, set) = Page::log_in(&gate, format!(r#"{{"token":"{}"}}"#, token(&gate))).await;
    assert_eq!(status, 200);
    assert!(set.contains("; HttpOnly; SameSite=Strict; Path=/console/api") && !set.contains("Secure"), "{set}");
    assert_eq!(page.get(&gate, "session").await.0, 200);
    let (_, other, _) = Page::log_in(&gate, format!(r#"{{"token":"{}"}}"#, token(&gate))).await;
    let mixed = Page { cookie: page.cookie.clone(), proof: other.proof.clone() };
    assert_eq!(mixed.get(&gate, "session").await.0, 401, "the cookie alone, as another port would get it");
    for (name, value) in
        [("origin", "http://evil.example"), ("origin", "null"), ("sec-fetch-site", "cross-site"), ("host", "evil.example")]
    {
        assert_eq!(page.ask(&gate, Method::GET, "session", &[(name, value)], "").await.0, 403, "{name}");
    }
    assert_eq!(page.ask(&gate, Method::POST, "logout", &[], "").await.0, 200);
    assert_eq!(page.get(&gate, "session").await.0, 401);
}

#[tokio::test]
async fn guesses_are_limited_and_a_link_counts_once() {
    let (_peer, gate) = gate().await;
    let bearer = Agent::new(gate.running.admin.unwrap(), Some(token(&gate)));
    let answer = bearer.ask(Method::POST, "/console/api/code", &[], String::new()).await;
    let code = json(&answer.text().await).root().get("code").unwrap().str().unwrap().into_owned();
    let body = format!(r#"{{"code":"{code}"}}"#);
    assert_eq!(Page::log_in(&gate, body.clone()).await.0, 200);
    assert_eq!(Page::log_in(&gate, body).await.0, 401);
    let mut last = 0;
    for _ in 0..11 {
        last = Page::log_in(&gate, r#"{"token":"guess"}"#.to_owned()).await.0;
    }
    assert_eq!(last, 429);
    assert_eq!(Page::log_in(&gate, format!(r#"{{"token":"{}"}}"#, token(&gate))).await.0, 429, "the right one waits too");
}

#[tokio::test]
async fn it_tells_what_is_judged_by_what_and_how_often() {
    let (_peer, gate) = gate().await;
    let agent = gate.agent();
    agent.post("up", &[], call("1", "detonate it")).await.text().await;
    agent.post("up", &[], call("2", "hello")).await.text().await;
    let (_, page, _) = Page::log_in(&gate, format!(r#"{{"token":"{}"}}"#, token(&gate))).await;
    let rule = page.get(&gate, "rules/no-bombs").await.1;
    let read = json(&rule);
    assert_eq!(read.root().get("count").unwrap().raw(), "1", "{rule}");
    assert!(rule.contains("An order to set off a bomb") && rule.contains("detonate it") && rule.contains("detonator"), "{rule}");
    let overview = page.get(&gate, "overview").await.1;
    assert!(overview.contains(r#""blocked":1"#) && overview.contains(r#""rule":"no-bombs""#), "{overview}");
    let upstreams = page.get(&gate, "upstreams").await.1;
    assert!(upstreams.contains(r#""name":"up","state":"up""#) && upstreams.contains(r#""blocked":1"#), "{upstreams}");
    let present = page.get(&gate, "present").await.1;
    assert!(present.contains(r#""upstream":"up""#) && present.contains(r#""calls":2"#), "{present}");
    let tried = r#"{"upstream":"up","place":"argument","tool":"t","argument":"a","text":"now detonate"}"#;
    let told = page.ask(&gate, Method::POST, "try", &[], tried).await.1;
    assert!(told.contains(r#""verdict":"block""#) && told.contains("no-bombs"), "{told}");
    assert!(told.contains(r#"{"text":"now ","matched":false},{"text":"detonate","matched":true}"#), "{told}");
    assert_eq!(
        json(&page.get(&gate, "rules/no-bombs").await.1).root().get("count").unwrap().raw(),
        "1",
        "a trial is not counted"
    );
}
