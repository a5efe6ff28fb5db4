//! `lychgate login`, `logout` and `auth` as whole programs, with a server that requires a login.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use lychgate::config::{HttpTransport, Transport, VaultKey};
use tempfile::TempDir;

use super::authority::{Ask, Authority, Fault};
use super::harness::{Agent, Setup, assert_contains, assert_text, call, lychgate};

/// The files of a user: a config with the server as `sample`, and a vault.
struct Desk {
    authority: Authority,
    folder: TempDir,
}

impl Desk {
    async fn new(oauth: &str) -> Self {
        let desk = Self {
            authority: Authority::start(60).await,
            folder: tempfile::tempdir().unwrap(),
        };
        desk.configure("vault_key = { file = \"key\" }", oauth);
        desk
    }

    fn configure(&self, keys: &str, oauth: &str) {
        let vault = self.folder.path().join("vault");
        let url = self.authority.url();
        let config = format!(
            "[oauth]\nvault = \"{}\"\n{keys}\nallow_loopback_http = true\n\n[upstream.sample.http]\nurl = \"{url}\"\n{oauth}\n\n\
             [upstream.files]\nstdio = {{ command = [\"true\"] }}\n\n[upstream.other.http]\nurl = \"{url}\"\nbearer = {{ env = \"UNSET_ANYWHERE\" }}\n",
            vault.display()
        );
        fs::write(self.folder.path().join("lychgate.toml"), config).unwrap();
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = lychgate();
        command
            .args(words)
            .arg("--config")
            .arg(self.folder.path().join("lychgate.toml"))
            .current_dir(&self.folder);
        command
            .env_remove("BROWSER")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs a verb to its end, on another thread because the server is in this process.
    async fn run(&self, words: &[&str]) -> Output {
        let mut command = self.command(words);
        tokio::task::spawn_blocking(move || command.output().unwrap())
            .await
            .unwrap()
    }

    async fn say(&self, words: &[&str]) -> (i32, String) {
        let output = self.run(words).await;
        (output.status.code().unwrap(), text(&output))
    }

    /// Starts a login that prints a link; returns both.
    async fn begin(&self, words: &[&str]) -> (Login, String) {
        let mut child = self.command(words).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let mut login = Login { child, out };
        let link = login.line().await;
        (login, link)
    }

    /// Completes a login.
    async fn log_in(&self, words: &[&str]) {
        let (login, link) = self.begin(words).await;
        come_back(&self.authority.log_in(&link).await, "200").await;
        let (code, told) = login.end().await;
        assert_eq!(code, 0, "{told}");
    }
}

/// A running verb that waits for a person.
struct Login {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Login {
    async fn line(&mut self) -> String {
        tokio::task::block_in_place(|| {
            let mut line = String::new();
            self.out.read_line(&mut line).unwrap();
            if line.is_empty() {
                let mut told = String::new();
                self.child
                    .stderr
                    .take()
                    .unwrap()
                    .read_to_string(&mut told)
                    .unwrap();
                panic!("it printed nothing: {told}");
            }
            line.trim().to_owned()
        })
    }

    fn paste(&mut self, line: &str) {
        self.child
            .stdin
            .as_mut()
            .unwrap()
            .write_all(format!("{line}\n").as_bytes())
            .unwrap();
    }

    async fn end(self) -> (i32, String) {
        let output = tokio::task::spawn_blocking(move || self.child.wait_with_output().unwrap())
            .await
            .unwrap();
        (output.status.code().unwrap(), text(&output))
    }
}

fn text(output: &Output) -> String {
    [&output.stdout, &output.stderr]
        .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        .concat()
}

/// Does what a browser does that is redirected to this address on loopback.
async fn come_back(location: &str, status: &str) {
    let rest = location.strip_prefix("http://").unwrap();
    let (address, path) = rest.split_at(rest.find('/').unwrap());
    let answer = Agent::new(address.parse().unwrap(), None)
        .get(path, &[])
        .await;
    let page = answer.expect(status.parse().unwrap()).await.text().await;
    assert!(page.contains("<p>") && !page.contains("code="), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_is_made_shown_given_back_and_forgotten() {
    let desk = Desk::new("").await;
    assert_eq!(
        desk.say(&["auth", "status"]).await,
        (0, "no stored logins\n".into())
    );
    let (login, link) = desk.begin(&["login", "sample", "--no-browser"]).await;
    let ended = desk.authority.log_in(&link).await;
    // An answer to another login is refused, and this one continues.
    let state = ended
        .split("state=")
        .nth(1)
        .unwrap()
        .split('&')
        .next()
        .unwrap();
    come_back(&ended.replace(state, "guessed"), "400").await;
    come_back(&ended, "200").await;
    let (code, told) = login.end().await;
    assert_eq!(code, 0, "{told}");
    assert_contains(&told, &["gate is logged in to `sample`"]);

    let issuer = desk.authority.settings().issuer;
    let (code, told) = desk.say(&["auth", "status"]).await;
    assert_eq!(code, 0, "{told}");
    assert_contains(&told, &["sample  gate", &issuer, "ends in"]);
    let (code, json) = desk.say(&["auth", "status", "--json"]).await;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let of = &json["logins"][0];
    assert_eq!(code, 0, "{json}");
    assert_eq!(of["issuer"], issuer, "{json}");
    assert_eq!(of["logged_in"], true, "{json}");
    assert_eq!(of["renews"], true, "{json}");
    assert!(
        (1..=60).contains(&of["expires_in_seconds"].as_i64().unwrap()),
        "{json}"
    );
    for hidden in ["access_token", "refresh_token", "secret", "verifier"] {
        assert!(!json.to_string().contains(hidden), "{hidden} in {json}");
    }

    let (code, told) = desk.say(&["logout", "sample"]).await;
    assert_eq!(code, 0);
    assert_eq!(told.as_str(), "sample: gate is logged out\n");
    assert_eq!(desk.authority.asked(Ask::Revoke), 2);
    let (code, told) = desk.say(&["logout", "sample"]).await;
    assert!(code == 1 && told.contains("no stored login"), "{told}");
    assert_eq!(
        desk.say(&["auth", "status"]).await,
        (0, "no stored logins\n".into())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_is_made_from_another_machine_by_pasting_the_address() {
    let desk = Desk::new("").await;
    let (mut login, link) = desk.begin(&["login", "sample", "--paste"]).await;
    let ended = desk.authority.log_in(&link).await;
    login.paste("what?");
    login.paste(&ended.replace("state=", "state=x"));
    login.paste(&format!("  {ended} "));
    let (code, told) = login.end().await;
    assert!(
        code == 0 && told.matches("`state` is missing or different").count() == 2,
        "{told}"
    );
    assert_eq!(desk.say(&["auth", "status"]).await.0, 0);

    let (mut login, _) = desk.begin(&["login", "sample", "--paste"]).await;
    drop(login.child.stdin.take());
    let (code, told) = login.end().await;
    assert_eq!(code, 1, "{told}");
    assert_contains(&told, &["no matching address was pasted"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_is_opened_without_a_shell() {
    let desk = Desk::new("").await;
    let (script, seen) = (
        desk.folder.path().join("browser"),
        desk.folder.path().join("seen"),
    );
    let mut shell = Command::new("sh");
    shell.args([
        "-c",
        "printf '#!/bin/sh\\nprintf %%s \"$2\" > \"$1.new\" && mv \"$1.new\" \"$1\"\\n' > \"$0\" && chmod 755 \"$0\"",
    ]);
    assert!(shell.arg(&script).status().unwrap().success());
    let mut command = desk.command(&["login", "sample"]);
    command.env(
        "BROWSER",
        format!("{} {} %s", script.display(), seen.display()),
    );
    let child = command.spawn().unwrap();
    super::harness::until("the browser", || seen.exists()).await;
    let link = fs::read_to_string(&seen).unwrap();
    come_back(&desk.authority.log_in(&link).await, "200").await;
    let output = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap())
        .await
        .unwrap();
    assert!(output.status.success(), "{}", text(&output));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_is_made_on_another_device() {
    let desk = Desk::new("").await;
    let (login, line) = desk.begin(&["login", "sample", "--device"]).await;
    let (address, code) = line.split_once(' ').unwrap();
    let issuer = desk.authority.settings().issuer;
    let browser = Agent::browser(&issuer);
    assert!(address.starts_with(&issuer), "{line}");
    let (name, password) = desk.authority.settings().person;
    let body = format!("user_code={code}&name={name}&password={password}&answer=allow");
    browser
        .post_form("/device/login", body)
        .await
        .expect(200)
        .await;
    let (code, told) = login.end().await;
    assert!(code == 0 && told.contains("is logged in"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_that_is_not_made_keeps_nothing_and_says_why() {
    let desk = Desk::new("").await;
    let (login, link) = desk.begin(&["login", "sample", "--no-browser"]).await;
    come_back(&desk.authority.deny(&link).await, "200").await;
    let (code, told) = login.end().await;
    assert!(code == 1 && told.contains("access_denied"), "{told}");

    desk.authority.fail(Ask::Redeem, Fault::HTML);
    let (login, link) = desk.begin(&["login", "sample", "--no-browser"]).await;
    come_back(&desk.authority.log_in(&link).await, "200").await;
    let (code, told) = login.end().await;
    assert_eq!(code, 1, "{told}");
    assert_text(&told, &["login failed"], &["doctype"]);
    let (_, told) = desk.say(&["auth", "status"]).await;
    assert!(!told.contains("ends in"), "{told}");

    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for (words, wanted) in [
        (
            vec!["login", "sample", "--agent", "x"],
            "all agents share one login",
        ),
        (vec!["login", "files"], "no server `files` to log in to"),
        (vec!["login", "nowhere"], "no server `nowhere` to log in to"),
        (
            vec!["login", "sample", "--paste", "--device"],
            "cannot be used with",
        ),
        (
            vec!["login", "sample", "--port", &port],
            "cannot listen on the callback port",
        ),
    ] {
        let (code, told) = desk.say(&words).await;
        assert!(code == 2 && told.contains(wanted), "{words:?}: {told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_agent_has_its_own_login_and_all_are_ended_at_once() {
    let desk = Desk::new("oauth = { token_of = \"agent\" }").await;
    let (code, told) = desk.say(&["login", "sample"]).await;
    assert!(code == 2 && told.contains("pass `--agent NAME`"), "{told}");
    for agent in ["a", "b", "c"] {
        desk.log_in(&["login", "sample", "--no-browser", "--agent", agent])
            .await;
    }
    let (code, told) = desk.say(&["logout", "sample", "--agent", "a"]).await;
    assert_eq!(code, 0);
    assert_eq!(told.as_str(), "sample: agent a is logged out\n");
    // Tokens that cannot be revoked are deleted all the same, and this is reported.
    desk.authority.fail(Ask::Revoke, Fault::ERROR_500);
    desk.authority.fail(Ask::Revoke, Fault::ERROR_500);
    let (code, told) = desk.say(&["logout", "sample", "--all"]).await;
    let (first, second) = told.split_once('\n').unwrap();
    assert!(
        code == 1
            && first
                .contains("agent b is logged out here; the token was not revoked at the server"),
        "{told}"
    );
    assert_eq!(second, "sample: agent c is logged out\n");
    assert_eq!(
        desk.say(&["auth", "status"]).await,
        (0, "no stored logins\n".into())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_logout_counts_at_once_in_a_running_gate() {
    let desk = Desk::new("").await;
    desk.log_in(&["login", "sample", "--no-browser"]).await;
    let vault = desk.folder.path().join("vault");
    let key = desk.folder.path().join("key");
    let url = desk.authority.url();
    let setup = Setup::new()
        .http("sample", url.clone())
        .with(move |config| {
            config.oauth.vault = Some(vault);
            config.oauth.vault_key = VaultKey::File(key);
            config.oauth.allow_loopback_http = true;
            config.upstreams.get_mut("sample").unwrap().transport =
                Transport::Http(HttpTransport::new(url));
        });
    let gate = setup.start().await;
    let agent = gate.agent();
    let owes = async || {
        agent
            .fetch("sample", &[], call("1", "x"))
            .await
            .contains("/oauth/login/")
    };
    assert!(!owes().await && !owes().await);
    // The server still accepts the token: only the gate knows that it is no longer valid.
    desk.authority.fail(Ask::Revoke, Fault::ERROR_500);
    desk.authority.fail(Ask::Revoke, Fault::ERROR_500);
    assert_eq!(desk.say(&["logout", "sample"]).await.0, 1);
    assert!(owes().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_key_is_taken_up_and_a_lost_one_is_said() {
    let desk = Desk::new("").await;
    desk.log_in(&["login", "sample", "--no-browser"]).await;
    desk.configure("vault_key = { file = \"second\" }", "");
    let (code, told) = desk.say(&["auth", "status"]).await;
    assert!(code == 1 && told.contains("earlier_vault_keys"), "{told}");
    desk.configure(
        "vault_key = { file = \"second\" }\nearlier_vault_keys = [{ file = \"key\" }]",
        "",
    );
    assert_eq!(desk.say(&["auth", "status"]).await.0, 0);
    assert_eq!(
        desk.say(&["auth", "rekey"]).await,
        (0, "re-encrypted 1, 0 already current\n".into())
    );
    assert_eq!(
        desk.say(&["auth", "rekey"]).await,
        (0, "re-encrypted 0, 1 already current\n".into())
    );
    fs::remove_file(desk.folder.path().join("key")).unwrap();
    desk.configure("vault_key = { file = \"second\" }", "");
    assert_eq!(desk.say(&["auth", "status"]).await.0, 0);

    fs::remove_file(desk.folder.path().join("second")).unwrap();
    let (code, told) = desk.say(&["logout", "sample"]).await;
    assert_eq!(code, 1, "{told}");
    assert_contains(&told, &["not revoked at the server"]);
    assert_eq!(
        desk.say(&["auth", "status"]).await,
        (0, "no stored logins\n".into())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_callback_is_on_the_port_of_the_config() {
    let desk = Desk::new("").await;
    let port = super::servers::free_port();
    for (keys, fixed) in [
        (format!("callback_port = {port}"), true),
        ("callback_port = 0".to_owned(), false),
    ] {
        desk.configure(&format!("vault_key = {{ file = \"key\" }}\n{keys}"), "");
        let (login, link) = desk.begin(&["login", "sample", "--no-browser"]).await;
        assert_eq!(
            link.contains(&format!("127.0.0.1%3A{port}%2F")),
            fixed,
            "{link}"
        );
        come_back(&desk.authority.log_in(&link).await, "200").await;
        assert_eq!(login.end().await.0, 0);
    }
}
