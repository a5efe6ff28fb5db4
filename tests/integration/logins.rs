//! A server requires a login: somebody makes it once, and from then on calls work without another.

use std::path::{Path, PathBuf};
use std::time::Duration;

use lychgate::config::{HttpTransport, LoginConfig, TokenOf, Transport, VaultKey};

use super::agent::Answer;
use super::authority::{Ask, Authority, Fault};
use super::harness::{
    Agent, INITIALIZE, Setup, TestGate, assert_contains, assert_text, call, json, modern_call,
    string,
};

/// The redirect of a browser back to the gate: path and query, and the browser's cookie.
struct Back {
    path: String,
    cookie: String,
}

/// Returns the setup of a gate for `authority`, with its vault in `folder`.
pub(super) fn setup(authority: &Authority, folder: &Path) -> Setup {
    let folder = folder.to_owned();
    let url = authority.url();
    Setup::new().http("up", url.clone()).with(move |config| {
        config.oauth.vault = Some(folder.join("vault"));
        config.oauth.vault_key = VaultKey::File(folder.join("vault.key"));
        config.oauth.allow_loopback_http = true;
        let transport = &mut config.upstreams.get_mut("up").unwrap().transport;
        *transport = Transport::Http(HttpTransport::new(url));
    })
}

fn login(setup: Setup, change: impl FnOnce(&mut LoginConfig)) -> Setup {
    setup.with(|config| {
        let Transport::Http(http) = &mut config.upstreams.get_mut("up").unwrap().transport else {
            panic!("it is over HTTP")
        };
        change(http.login.as_mut().unwrap());
    })
}

pub(super) async fn says(agent: &Agent) -> String {
    agent.fetch_result("up", &[], call("1", "x")).await
}

/// Returns the login link in the answer to a call, as a path at the gate.
pub(super) async fn owed(agent: &Agent) -> String {
    link_in(&says(agent).await)
}

/// Returns the login link in a text, as a path at the gate.
fn link_in(text: &str) -> String {
    let mut words = text.split_whitespace();
    let link = words.find(|word| word.contains("/oauth/login/"));
    path_of(link.unwrap_or_else(|| panic!("{text}")))
}

/// Returns the path of a URL of the gate, which begins with `/oauth/`.
fn path_of(url: &str) -> String {
    format!("/oauth/{}", url.split_once("/oauth/").unwrap().1)
}

pub(super) async fn works(agent: &Agent) -> bool {
    !says(agent).await.contains("/oauth/login/") && !says(agent).await.contains("not logged in")
}

/// Continues from the page at `path` to the authorization server; returns the URL of the redirect
/// and the cookie.
async fn goes_on(browser: &Agent, path: &str) -> (String, String) {
    let page = browser.get_ok(path, &[]).await;
    assert_contains(
        page.header("content-security-policy"),
        &["frame-ancestors 'none'"],
    );
    let text = page.text().await;
    assert_text(&text, &["<code>up</code>"], &["<script"]);
    let answer = browser.post_form(path, "").await.expect(303).await;
    let cookie = answer.header("set-cookie").to_owned();
    assert_contains(&cookie, &["HttpOnly", "SameSite=Lax"]);
    (
        answer.header("location").to_owned(),
        cookie.split(';').next().unwrap().to_owned(),
    )
}

/// Logs in as a person, up to the redirect back to the gate.
async fn logs_in(gate: &TestGate, authority: &Authority, path: &str) -> Back {
    let (location, cookie) = goes_on(&gate.agent(), path).await;
    let back = authority.log_in(&location).await;
    let path = path_of(&back);
    Back { path, cookie }
}

async fn comes_back(gate: &TestGate, back: &Back) -> Answer {
    gate.agent()
        .get(&back.path, &[("cookie", &back.cookie)])
        .await
}

/// Completes a login, beginning with the link in the answer to a call.
pub(super) async fn logged_in(gate: &TestGate, authority: &Authority, agent: &Agent) {
    let page = completed(gate, authority, &owed(agent).await).await;
    assert!(page.contains("Logged in"), "{page}");
}

/// Completes the login at this path, and returns the page that ends it.
async fn completed(gate: &TestGate, authority: &Authority, path: &str) -> String {
    let back = logs_in(gate, authority, path).await;
    comes_back(gate, &back).await.expect_text(200).await
}

/// Starts a gate for `authority` that is logged in.
pub(super) async fn logged_in_gate(authority: &Authority, folder: &Path) -> TestGate {
    let gate = setup(authority, folder).start().await;
    logged_in(&gate, authority, &gate.agent()).await;
    gate
}

/// Makes so many calls at once, by two agents in turn, and panics if one of them requires a login.
pub(super) async fn call_at_once(agents: [Agent; 2], count: usize) {
    let calls = (0..count).map(|n| says(&agents[n % 2]));
    let said = futures_util::future::join_all(calls).await;
    assert!(said.iter().all(|said| !said.contains("oauth")), "{said:?}");
}

pub(super) fn metric(gate: &TestGate, name: &str, outcome: &str) -> f64 {
    gate.metric(name, &[("upstream", "up"), ("outcome", outcome)])
        .unwrap_or_default()
}

fn renewed(gate: &TestGate) -> f64 {
    metric(gate, "lychgate_oauth_refresh_total", "renewed")
}

fn owed_now(gate: &TestGate) -> f64 {
    gate.metric("lychgate_upstream_auth_required", &[("upstream", "up")])
        .unwrap()
}

pub(super) fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    (folder, path)
}

#[tokio::test]
async fn a_call_is_answered_with_a_link_and_goes_on_after_the_login() {
    let (authority, (_kept, folder)) = (Authority::start(60).await, folder());
    let gate = setup(&authority, &folder).start().await;
    let agent = gate.agent();
    assert_eq!(owed_now(&gate), 0.0);
    let link = owed(&agent).await;
    assert_eq!(
        owed(&agent).await,
        link,
        "however many calls come, there is one page"
    );
    assert_eq!(
        (authority.asked(Ask::Register), owed_now(&gate)),
        (0, 1.0),
        "nothing is registered for nobody"
    );
    assert_contains(
        &gate.admin("/readyz").await.1,
        &[r#""up":{"state":"auth_required"}"#],
    );
    let back = logs_in(&gate, &authority, &link).await;
    comes_back(&gate, &back).await.expect(200).await;
    assert!(works(&agent).await);
    assert_eq!(authority.asked(Ask::Register), 1);
    assert_eq!(authority.asked(Ask::Redeem), 1);
    assert_eq!(owed_now(&gate), 0.0);
    let left = gate
        .metric(
            "lychgate_oauth_token_expires_seconds",
            &[("upstream", "up")],
        )
        .unwrap();
    assert!((50.0..=60.0).contains(&left), "{left}");
    comes_back(&gate, &back).await.expect(400).await;
    gate.agent().get(&link, &[]).await.expect(404).await;

    let again = setup(&authority, &folder).start().await;
    assert!(
        works(&again.agent()).await,
        "a gate that starts anew is logged in"
    );
    let audit = gate.audit_text();
    assert_contains(&audit, &[r#""event":"login""#, r#""outcome":"logged_in""#]);
}

#[tokio::test]
async fn an_answer_counts_in_the_browser_that_began_or_in_its_page() {
    let (authority, (_kept, folder)) = (Authority::start(60).await, folder());
    let gate = setup(&authority, &folder).start().await;
    let agent = gate.agent();
    let link = owed(&agent).await;
    let back = logs_in(&gate, &authority, &link).await;
    let foreign = Back {
        path: back.path.clone(),
        cookie: "lychgate-login-1=else".into(),
    };
    comes_back(&gate, &foreign).await.expect(400).await;
    let wrong = Back {
        path: back.path.replace("state=", "state=0"),
        cookie: back.cookie.clone(),
    };
    comes_back(&gate, &wrong).await.expect(400).await;
    assert_eq!(authority.asked(Ask::Redeem), 0);
    let pasted = format!("http://127.0.0.1:1{}", back.path);
    let body: String = format!(
        "address={}",
        pasted
            .replace('%', "%25")
            .replace('&', "%26")
            .replace('+', "%2B")
    );
    let page = gate
        .agent()
        .post_form(&link, body)
        .await
        .expect_text(200)
        .await;
    assert!(page.contains("Logged in"), "{page}");
    assert!(works(&agent).await);
}

#[tokio::test]
async fn a_person_may_say_no() {
    let (authority, (_kept, folder)) = (Authority::start(60).await, folder());
    let gate = setup(&authority, &folder).start().await;
    let link = owed(&gate.agent()).await;
    let (location, cookie) = goes_on(&gate.agent(), &link).await;
    let back = authority.deny(&location).await;
    let path = path_of(&back);
    let page = comes_back(&gate, &Back { path, cookie })
        .await
        .expect_text(400)
        .await;
    assert!(page.contains("Not logged in"), "{page}");
    assert_eq!(owed(&gate.agent()).await, link, "the login is still owed");
}

#[tokio::test]
async fn fifty_calls_at_the_end_of_a_token_make_one_renewal() {
    let (authority, (_kept, folder)) = (Authority::start(2).await, folder());
    let one = logged_in_gate(&authority, &folder).await;
    let other = setup(&authority, &folder).start().await;
    tokio::time::sleep(Duration::from_millis(1100)).await;
    assert!(
        works(&other.agent()).await,
        "the other gate takes the login up"
    );
    let before = authority.asked(Ask::Refresh);
    tokio::time::sleep(Duration::from_millis(2200)).await;
    call_at_once([one.agent(), other.agent()], 50).await;
    assert_eq!(
        authority.asked(Ask::Refresh) - before,
        1,
        "of two gates on one vault"
    );
    assert!(renewed(&one) + renewed(&other) >= 1.0);
}

#[tokio::test]
async fn a_renewal_does_not_end_with_the_call_that_began_it() {
    let (authority, (_kept, folder)) = (Authority::start(1).await, folder());
    let gate = logged_in_gate(&authority, &folder).await;
    let agent = gate.agent();
    tokio::time::sleep(Duration::from_millis(1200)).await;
    authority.fail(Ask::Refresh, Fault::Lags(Duration::from_millis(400)));
    let gone = tokio::time::timeout(Duration::from_millis(150), says(&agent)).await;
    assert!(gone.is_err(), "the call waits for its token");
    let said = says(&agent).await;
    assert!(!said.contains("oauth"), "{said}");
    assert_eq!(
        authority.asked(Ask::Refresh),
        1,
        "the next call has what the first one began"
    );
}

#[tokio::test]
async fn what_goes_wrong_at_the_token_endpoint_loses_no_login() {
    let (authority, (_kept, folder)) = (Authority::start(1).await, folder());
    let gate = setup(&authority, &folder)
        .start_with(|config| config.oauth.request = Duration::from_secs(1))
        .await;
    let agent = gate.agent();
    logged_in(&gate, &authority, &agent).await;
    for fault in [Fault::ERROR_500, Fault::HTML, Fault::Hangs] {
        tokio::time::sleep(Duration::from_millis(1200)).await;
        authority.fail(Ask::Refresh, fault);
        let said = says(&agent).await;
        assert!(
            said.contains("authorization server") && !said.contains("/oauth/login/"),
            "{fault:?}: {said}"
        );
        let said = says(&agent).await;
        assert!(!said.contains("not logged in"), "{fault:?}: {said}");
    }
    assert_eq!(
        metric(&gate, "lychgate_oauth_refresh_total", "unreachable"),
        3.0
    );
    tokio::time::sleep(Duration::from_millis(1200)).await;
    authority.fail(Ask::Refresh, Fault::INVALID_GRANT);
    owed(&agent).await;
    assert_eq!(metric(&gate, "lychgate_oauth_refresh_total", "ended"), 1.0);
    logged_in(&gate, &authority, &agent).await;
    assert_eq!(
        authority.asked(Ask::Register),
        1,
        "the client is still known"
    );
}

#[tokio::test]
async fn a_server_that_asks_for_more_scopes_gets_them_from_a_person() {
    let (authority, (_kept, folder)) = (Authority::start(60).await, folder());
    let setup = setup(&authority, &folder);
    let setup = login(setup, |login| login.scopes = Some(vec!["tools".into()]));
    let gate = setup.start().await;
    let agent = gate.agent();
    logged_in(&gate, &authority, &agent).await;
    let guarded = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_command","arguments":{"command":"ls"}}}"#;
    let said = agent.fetch_result("up", &[], guarded).await;
    let path = link_in(&said);
    let page = agent.get(&path, &[]).await.text().await;
    assert_contains(&page, &["<code>commands</code>", "<code>tools</code>"]);
    completed(&gate, &authority, &path).await;
    let said = agent.fetch_result("up", &[], guarded).await;
    assert!(!said.contains("oauth"), "{said}");
    assert!(works(&agent).await);
}

#[tokio::test]
async fn another_authorization_server_never_sees_what_the_old_one_gave() {
    let (authority, (_kept, folder)) = (Authority::start(60).await, folder());
    let gate = logged_in_gate(&authority, &folder).await;
    let agent = gate.agent();
    authority.seen().await;
    let new = authority.moves().await;
    completed(&gate, &new, &owed(&agent).await).await;
    assert!(works(&agent).await);
    assert_eq!(new.asked(Ask::Register), 1);
    assert_eq!(new.asked(Ask::Refresh), 0);
    assert_eq!(authority.asked(Ask::Refresh), 0);
}

#[tokio::test]
async fn clients_that_open_links_are_given_one_in_their_own_terms() {
    let (authority, (_kept, folder)) = (Authority::start(60).await, folder());
    let gate = setup(&authority, &folder).start().await;
    let agent = gate.agent();
    let meta = r#""io.modelcontextprotocol/clientCapabilities":{"elicitation":{"url":{}}}"#;
    let modern =
        modern_call("7", "x").replace(r#""io.modelcontextprotocol/clientCapabilities":{}"#, meta);
    let asked = json(&agent.fetch_modern("up", &modern).await);
    assert_eq!(
        string(&asked, &["result", "resultType"]).as_deref(),
        Some("input_required")
    );
    let way = ["result", "inputRequests", "lychgate-login", "params"];
    assert_eq!(
        string(&asked, &[&way[..], &["mode"]].concat()).as_deref(),
        Some("url")
    );
    let url = string(&asked, &[&way[..], &["url"]].concat()).unwrap();
    let state = string(&asked, &["result", "requestState"]).unwrap();
    completed(&gate, &authority, &path_of(&url)).await;
    authority.seen().await;
    let answers = format!(
        r#""inputResponses":{{"lychgate-login":{{"action":"accept"}}}},"requestState":"{state}","#
    );
    let again = modern.replace(r#""params":{"#, &format!(r#""params":{{{answers}"#));
    let answer = agent.fetch_modern("up", &again).await;
    assert!(!answer.contains("input_required"), "{answer}");
    let seen = authority.seen().await;
    assert!(
        seen.iter()
            .all(|seen| !String::from_utf8_lossy(&seen.body).contains("lychgate-login")),
        "the server is not told"
    );

    let (_other, apart) = self::folder();
    let gate = setup(&authority, &apart).start().await;
    let agent = gate.agent();
    let opening = INITIALIZE.replace(
        r#""capabilities":{}"#,
        r#""capabilities":{"elicitation":{"url":{}}}"#,
    );
    let told = agent.fetch("up", &[], opening).await;
    assert_contains(&told, &["-32042", "/oauth/login/"]);
}

#[tokio::test]
async fn each_agent_has_its_own_login_where_the_config_says_so() {
    let (authority, (_kept, folder)) = (Authority::start(60).await, folder());
    let gate = login(setup(&authority, &folder), |login| {
        login.token_of = TokenOf::Agent
    })
    .agents(&["ann", "bob"])
    .start()
    .await;
    let ann = gate.agent_named("ann");
    let bob = gate.agent_named("bob");
    let link = owed(&ann).await;
    assert_ne!(owed(&bob).await, link);
    let page = ann.get(&link, &[]).await.text().await;
    assert!(page.contains("the agent <code>ann</code> alone"), "{page}");
    completed(&gate, &authority, &link).await;
    assert!(works(&ann).await);
    owed(&bob).await;
    let user = login(setup(&authority, &folder), |login| {
        login.token_of = TokenOf::User
    })
    .start()
    .await;
    let said = says(&user.agent()).await;
    assert!(said.contains("names no user"), "{said}");
}

#[tokio::test]
async fn a_client_that_was_registered_beforehand_logs_in_by_itself() {
    let (authority, (_kept, folder)) = (Authority::start(1).await, folder());
    let settings = authority.settings();
    let gate = login(setup(&authority, &folder), |login| {
        login.grant = lychgate::config::Grant::Client;
        login.issuer = Some(settings.issuer.clone());
        login.client_id = Some(settings.client.0.clone());
        login.client_secret = Some(lychgate::config::Secret(settings.client.1.clone()));
        login.scopes = Some(vec!["tools".into()]);
    })
    .start()
    .await;
    assert!(works(&gate.agent()).await);
    tokio::time::sleep(Duration::from_millis(1200)).await;
    assert!(
        works(&gate.agent()).await,
        "and again when its token is over"
    );
    assert_eq!(authority.asked(Ask::Page), 0);
    assert_eq!(authority.asked(Ask::Refresh), 0);
}

/// Returns the values of a form or query with one of these names.
fn told_in(text: &str, names: &[&str]) -> Vec<String> {
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    pairs
        .filter(|(name, _)| names.contains(name))
        .map(|(_, value)| value.to_owned())
        .collect()
}

#[tokio::test]
async fn no_secret_of_a_login_is_shown_anywhere() {
    let (authority, (_kept, folder)) = (Authority::start(1).await, folder());
    let gate = setup(&authority, &folder).agents(&["ann"]).start().await;
    let agent = gate.agent_named("ann");
    let first = says(&agent).await;
    let link = owed(&agent).await;
    let page = agent.get(&link, &[]).await.text().await;
    let back = logs_in(&gate, &authority, &link).await;
    let done = comes_back(&gate, &back).await.expect_text(200).await;
    let answer = says(&agent).await;
    tokio::time::sleep(Duration::from_millis(2100)).await;
    let renewed = says(&agent).await;
    authority.fail(Ask::Refresh, Fault::INVALID_GRANT);
    tokio::time::sleep(Duration::from_millis(2100)).await;
    let over = says(&agent).await;

    let seen = authority.seen().await;
    let mut secrets = told_in(back.path.split_once('?').unwrap().1, &["code", "state"]);
    for request in &seen {
        let body = String::from_utf8_lossy(&request.body);
        secrets.extend(told_in(
            &body,
            &["code", "code_verifier", "refresh_token", "client_secret"],
        ));
        let bearer = request
            .headers
            .get("authorization")
            .and_then(|value| value.to_str().unwrap().strip_prefix("Bearer "));
        secrets.extend(bearer.map(str::to_owned));
        let whole = format!("{} {:?} {body}", request.path, request.headers);
        let ticket = link.rsplit('/').next().unwrap();
        assert!(
            !whole.contains(&super::harness::token("ann")) && !whole.contains(ticket),
            "{}",
            request.path
        );
    }
    assert!(
        authority.asked(Ask::Refresh) >= 2
            && secrets.len() >= 7
            && secrets.iter().all(|secret| secret.len() > 20)
    );
    let mut shown = vec![
        ("the audit log", gate.audit_text()),
        ("the metrics", gate.admin("/metrics").await.1),
        ("/readyz", gate.admin("/readyz").await.1),
        ("the log", super::harness::log()),
        (
            "pages and answers",
            [first, page, done, answer, renewed, over].concat(),
        ),
    ];
    for file in std::fs::read_dir(folder.join("vault")).unwrap() {
        let path = file.unwrap().path();
        if path.is_file() {
            let bytes = std::fs::read(path).unwrap();
            shown.push((
                "the vault's files",
                String::from_utf8_lossy(&bytes).into_owned(),
            ));
        }
    }
    for (place, text) in &shown {
        assert!(
            !secrets.iter().any(|secret| text.contains(secret.as_str())),
            "a secret stands in {place}"
        );
        assert!(
            *place == "pages and answers" || !text.contains(link.rsplit('/').next().unwrap()),
            "the link stands in {place}"
        );
    }
}

#[tokio::test]
async fn a_link_is_good_as_long_as_the_config_says() {
    let (authority, (_kept, folder)) = (Authority::start(60).await, folder());
    for (lasts, good) in [
        (Duration::from_millis(300), false),
        (Duration::from_secs(600), true),
    ] {
        let gate = setup(&authority, &folder)
            .start_with(|config| config.oauth.login = lasts)
            .await;
        let asked = std::time::Instant::now();
        let link = owed(&gate.agent()).await;
        super::harness::until("the time to pass", || {
            asked.elapsed() > Duration::from_millis(600)
        })
        .await;
        let status = gate.agent().get(&link, &[]).await.status;
        assert_eq!(status, if good { 200 } else { 404 });
    }
}
