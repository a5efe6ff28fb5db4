//! Faults around a login: processes that race, a process that is killed, answers that are lost or
//! unusual, clocks that jump.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use lychgate::config::{OAuthConfig, VaultKey};
use lychgate::oauth::unix_now;
use lychgate::oauth::vault::{Account, Vault};

use super::authority::{Ask, Authority, Fault};
use super::harness::{Agent, OUTBOUND, lychgate};
use super::logins::{
    call_at_once, folder, logged_in, logged_in_gate, metric, owed, says, setup, works,
};

/// A gate in a process of its own.
struct Process {
    child: Child,
    address: SocketAddr,
}

impl Process {
    /// Starts a gate for `authority`, with the vault that the gates of [`setup`] use.
    async fn start(authority: &Authority, folder: &Path) -> Self {
        Self::start_with(authority, folder, "", "true").await
    }

    /// Starts a gate with additional keys of `[oauth]`, and a program in place of a browser.
    async fn start_with(authority: &Authority, folder: &Path, keys: &str, browser: &str) -> Self {
        let address = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let rules = folder.join("rules");
        std::fs::create_dir_all(&rules).unwrap();
        std::fs::write(rules.join("test.toml"), OUTBOUND).unwrap();
        let config = folder.join(format!("gate-{}.toml", address.port()));
        let text = format!(
            "[listen]\naddress = \"{address}\"\n[policy.default]\nrules = [\"{}\"]\n[upstream.up.http]\nurl = \"{}\"\n\
             [oauth]\nvault = \"{}\"\nvault_key = {{ file = \"{}\" }}\nallow_loopback_http = true\nlease_seconds = 2\nrequest_seconds = 1\n{keys}\n",
            rules.display(),
            authority.url(),
            folder.join("vault").display(),
            folder.join("vault.key").display(),
        );
        std::fs::write(&config, text).unwrap();
        let log =
            std::fs::File::create(folder.join(format!("gate-{}.log", address.port()))).unwrap();
        let child = lychgate()
            .args(["run", "--config"])
            .arg(&config)
            .env("XDG_STATE_HOME", folder)
            .env("BROWSER", browser)
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let began = Instant::now();
        while std::net::TcpStream::connect(address).is_err() {
            assert!(
                began.elapsed() < Duration::from_secs(30),
                "it does not start"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Self { child, address }
    }

    fn agent(&self) -> Agent {
        Agent::new(self.address, None)
    }

    /// Kills the process, with the effect of a power cut.
    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

fn vault(folder: &Path) -> Vault {
    let vault_key = VaultKey::File(folder.join("vault.key"));
    Vault::open(&OAuthConfig {
        vault: Some(folder.join("vault")),
        vault_key,
        ..OAuthConfig::default()
    })
    .unwrap()
}

/// Returns the only login in the vault, which must be intact.
async fn kept(folder: &Path) -> Account {
    let mut kept = vault(folder).list().await.unwrap();
    assert!(kept.faults.is_empty(), "{:?}", kept.faults);
    assert_eq!(kept.accounts.len(), 1);
    kept.accounts.remove(0)
}

pub(super) async fn change(folder: &Path, change: impl FnOnce(&mut Account)) {
    let mut account = kept(folder).await;
    change(&mut account);
    vault(folder).write(&account).await.unwrap();
}

/// Marks the token in the vault as expired.
async fn expire(folder: &Path) {
    change(folder, |account| {
        account.granted.as_mut().unwrap().expires_unix = Some(1)
    })
    .await;
}

/// Waits until a token that lasts this many seconds has expired.
async fn over(seconds: u64) {
    tokio::time::sleep(Duration::from_millis(seconds * 1000 + 1100)).await;
}

#[tokio::test]
async fn two_processes_on_one_vault_make_one_renewal() {
    let (authority, (_kept, folder)) = (Authority::start(2).await, folder());
    let _gate = logged_in_gate(&authority, &folder).await;
    let one = Process::start(&authority, &folder).await;
    let other = Process::start(&authority, &folder).await;
    assert!(
        works(&one.agent()).await && works(&other.agent()).await,
        "both take the login up"
    );
    over(2).await;
    let before = authority.asked(Ask::Refresh);
    call_at_once([one.agent(), other.agent()], 40).await;
    assert_eq!(authority.asked(Ask::Refresh) - before, 1);
    assert!(kept(&folder).await.last_refresh_unix.is_some());
}

#[tokio::test]
async fn a_process_that_is_killed_leaves_the_vault_whole() {
    let (authority, (_kept, folder)) = (Authority::start(1).await, folder());
    let _gate = logged_in_gate(&authority, &folder).await;
    let mut renewed = 0;
    for round in 0..6 {
        let mut process = Process::start(&authority, &folder).await;
        over(1).await;
        let before = authority.asked(Ask::Refresh);
        let used = kept(&folder).await.granted;
        authority.fail(Ask::Refresh, Fault::Lags(Duration::from_millis(10)));
        let agent = process.agent();
        let call = tokio::spawn(async move {
            agent
                .post("up", &[], super::harness::call("1", "x"))
                .await
                .status
        });
        tokio::time::sleep(Duration::from_millis(round * 12)).await;
        process.kill();
        call.abort();
        let account = kept(&folder).await;
        // At any moment the vault contains either the old login or the new one, complete.
        let now = account
            .granted
            .clone()
            .expect("nobody said that it is over");
        assert!(now.refresh.is_some());
        renewed += usize::from(account.granted != used);
        let asked = authority.asked(Ask::Refresh) > before;
        let next = setup(&authority, &folder)
            .start_with(|config| config.oauth.lease = Duration::from_secs(2))
            .await;
        if account.granted != used || !asked {
            assert!(
                works(&next.agent()).await,
                "round {round}: nothing was lost"
            );
        } else if !works(&next.agent()).await {
            // The answer was lost with the process, and the server has ended the login because its
            // refresh token was used twice. The gate reports this, and a new login fixes it.
            logged_in(&next, &authority, &next.agent()).await;
        }
    }
    assert!(renewed <= 6);
}

#[tokio::test]
async fn an_answer_that_is_lost_ends_in_a_login_not_in_a_loop() {
    let (authority, (_kept, folder)) = (Authority::start(1).await, folder());
    let gate = setup(&authority, &folder)
        .start_with(|config| config.oauth.request = Duration::from_millis(500))
        .await;
    let agent = gate.agent();
    logged_in(&gate, &authority, &agent).await;
    over(1).await;
    authority.fail(Ask::Refresh, Fault::Loses);
    let said = says(&agent).await;
    assert!(
        !said.contains("/oauth/login/"),
        "nobody said that the login is over: {said}"
    );
    let link = owed(&agent).await;
    for _ in 0..10 {
        assert_eq!(owed(&agent).await, link);
    }
    assert_eq!(
        authority.asked(Ask::Refresh),
        2,
        "what is over is not asked for again and again"
    );
    logged_in(&gate, &authority, &agent).await;
    assert!(works(&agent).await);
}

#[tokio::test]
async fn an_answer_without_a_refresh_token_keeps_the_old_one() {
    let (authority, (_kept, folder)) = (Authority::start(60).await, folder());
    let _gate = logged_in_gate(&authority, &folder).await;
    let old = kept(&folder).await.granted.unwrap();
    expire(&folder).await;
    authority.fail(Ask::Refresh, Fault::Omits("refresh_token"));
    let gate = setup(&authority, &folder).start().await;
    assert!(works(&gate.agent()).await);
    let new = kept(&folder).await.granted.unwrap();
    assert_eq!(authority.asked(Ask::Refresh), 1);
    assert_eq!(new.refresh, old.refresh);
    assert_ne!(new.access, old.access);
}

#[tokio::test]
async fn a_token_of_which_nothing_is_said_lasts_until_the_server_says_no() {
    let (authority, (_kept, folder)) = (Authority::start(2).await, folder());
    let gate = setup(&authority, &folder).start().await;
    authority.fail(Ask::Redeem, Fault::Omits("expires_in"));
    logged_in(&gate, &authority, &gate.agent()).await;
    assert!(works(&gate.agent()).await);
    assert_eq!(kept(&folder).await.granted.unwrap().expires_unix, None);
    over(2).await;
    assert!(
        works(&gate.agent()).await,
        "401, a renewal, and the call once more"
    );
    assert_eq!(authority.asked(Ask::Refresh), 1);
}

#[tokio::test]
async fn odd_answers_lose_no_login() {
    let (authority, (_kept, folder)) = (Authority::start(60).await, folder());
    let _gate = logged_in_gate(&authority, &folder).await;
    const JSON: &str = "application/json";
    for fault in [
        Fault::Says(200, JSON, ""),
        Fault::Says(200, JSON, "{}"),
        Fault::Says(
            200,
            JSON,
            r#"{"access_token":"a\r\nX-Evil: 1","token_type":"Bearer"}"#,
        ),
        Fault::Says(404, "text/html", "<html>"),
        Fault::Says(302, "text/html", ""),
        Fault::Says(429, JSON, r#"{"error":"slow_down"}"#),
        Fault::Says(503, JSON, r#"{"error":"invalid_grant"}"#),
    ] {
        expire(&folder).await;
        let before = kept(&folder).await.granted;
        authority.fail(Ask::Refresh, fault);
        let gate = setup(&authority, &folder).start().await;
        says(&gate.agent()).await;
        assert_eq!(
            kept(&folder).await.granted,
            before,
            "{fault:?}: the refresh token is kept"
        );
        drop(gate);
        let gate = setup(&authority, &folder).start().await;
        assert!(works(&gate.agent()).await, "{fault:?}: and good");
    }
}

#[tokio::test]
async fn a_clock_that_jumps_costs_one_renewal_at_most() {
    let (authority, (_kept, folder)) = (Authority::start(60).await, folder());
    let _gate = logged_in_gate(&authority, &folder).await;
    // Forward: the token seems to have expired long ago.
    change(&folder, |account| {
        let granted = account.granted.as_mut().unwrap();
        granted.given_unix -= 86_400;
        granted.expires_unix = granted.expires_unix.map(|end| end - 86_400);
    })
    .await;
    let gate = setup(&authority, &folder).start().await;
    assert!(works(&gate.agent()).await && works(&gate.agent()).await);
    assert_eq!(authority.asked(Ask::Refresh), 1);
    // Back: the token seems to have been issued and renewed in the future, and the server has ended
    // it in the meantime.
    change(&folder, |account| {
        account.last_refresh_unix = Some(unix_now() + 86_400);
        let granted = account.granted.as_mut().unwrap();
        granted.access = lychgate::oauth::SecretText::new("over-long-since".into());
        granted.given_unix += 86_400;
        granted.expires_unix = granted.expires_unix.map(|end| end + 86_400);
    })
    .await;
    let gate = setup(&authority, &folder).start().await;
    assert!(
        works(&gate.agent()).await,
        "the server's no counts more than the clock"
    );
    assert_eq!(authority.asked(Ask::Refresh), 2);
    assert_eq!(metric(&gate, "lychgate_oauth_refresh_total", "ended"), 0.0);
}

#[tokio::test]
async fn a_vault_that_cannot_be_written_does_not_end_a_login() {
    let (authority, (_kept, folder)) = (Authority::start(2).await, folder());
    let gate = logged_in_gate(&authority, &folder).await;
    let agent = gate.agent();
    over(2).await;
    // Replaces the file of the login with a folder, which a rename cannot replace.
    let file = std::fs::read_dir(folder.join("vault"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let files: Vec<_> = file.filter(|path| path.is_file()).collect();
    for file in &files {
        std::fs::rename(file, file.with_extension("kept")).unwrap();
        std::fs::create_dir_all(file.join("in-the-way")).unwrap();
    }
    let said = says(&agent).await;
    for file in &files {
        std::fs::remove_dir_all(file).unwrap();
        std::fs::rename(file.with_extension("kept"), file).unwrap();
    }
    assert!(!said.contains("/oauth/login/"), "{said}");
    assert!(works(&agent).await);
}

#[tokio::test]
async fn a_gate_opens_a_browser_only_where_the_config_says_so() {
    let (authority, (_kept, folder)) = (Authority::start(60).await, folder());
    for (keys, opens) in [
        ("open_browser = false", false),
        ("open_browser = true", true),
    ] {
        let seen = folder.join(format!("seen-{opens}"));
        let browser = format!("touch {} --", seen.display());
        let gate = Process::start_with(&authority, &folder, keys, &browser).await;
        owed(&gate.agent()).await;
        if opens {
            super::harness::until("the browser", || seen.exists()).await;
        }
        drop(gate);
        assert_eq!(seen.exists(), opens);
    }
}
