//! Secrets do not leave: detected by their shape, because the operator guards them, or because they
//! came from another server. The gate's own output never contains one.

use super::harness::{
    Setup, argument_call, assert_contains, assert_text, call, is_error, json, log,
};
use super::servers::Server;
use super::wrap::Wrapped;
use lychgate::detect::secret::GuardedValues;

/// Random, never issued.
const KEY: &str = "glpat-q8Zt4vNp2rKx7wDf9yGj";
const OWN: &str = "blue-Kettle7-and-more";
const SENT: &str = "w4Tn8sQz-Vb6Hk2Lp0";

fn guarded() -> GuardedValues {
    let mut own = GuardedValues::default();
    assert!(own.guard(OWN));
    own
}

#[tokio::test]
async fn a_secret_is_refused_and_shown_nowhere() {
    let server = Server::saying("fine").await;
    let setup = Setup::new()
        .shipped()
        .policy(|policy| policy.guarded_secrets.guarded = guarded());
    let gate = setup.http("up", server.url()).start().await;
    let agent = gate.agent();
    let hex: String = OWN.bytes().map(|byte| format!("{byte:02x}")).collect();
    let backwards: String = OWN.chars().rev().collect();
    let planted = [
        KEY.to_owned(),
        KEY.chars().rev().collect(),
        OWN.to_owned(),
        hex,
        backwards,
    ];
    for secret in &planted {
        let refused = agent
            .fetch("up", &[], call("1", &format!("take {secret} along")))
            .await;
        assert!(is_error(&json(&refused)), "{secret}: {refused}");
        assert_text(&refused, &["secret-"], &[secret.as_str()]);
    }
    let fine = agent
        .fetch(
            "up",
            &[],
            call("1", "take glpat-XXXXXXXXXXXXXXXXXXXX along"),
        )
        .await;
    assert!(fine.contains("fine"), "{fine}");
    assert_eq!(
        server.rest().await.len(),
        1,
        "only what is harmless arrived"
    );
    let audit = gate.audit_text();
    let metrics = gate.admin("/metrics").await.1;
    let log = log();
    assert_contains(&audit, &["secret-own", "secret-source"]);
    for secret in &planted {
        for (name, text) in [("audit", &audit), ("metrics", &metrics), ("log", &log)] {
            assert!(!text.contains(secret.as_str()), "{name} shows a secret");
        }
    }
}

#[tokio::test]
async fn what_one_server_sent_goes_back_to_it_and_nowhere_else() {
    let vault = Server::saying("DB_PASSWORD=w4Tn8sQz-Vb6Hk2Lp0").await;
    let blog = Server::saying("fine").await;
    let gate = Setup::new()
        .shipped()
        .http("vault", vault.url())
        .http("blog", blog.url())
        .start()
        .await;
    let agent = gate.agent();
    let post = |upstream: &'static str, text: String| {
        let agent = gate.agent();
        async move { agent.fetch(upstream, &[], call("1", &text)).await }
    };
    assert_contains(
        &agent.fetch("vault", &[], call("1", "read it")).await,
        &[SENT],
    );
    for text in [format!("see {SENT}"), SENT.chars().rev().collect()] {
        let refused = post("blog", text).await;
        assert!(refused.contains("secret-from-elsewhere"), "{refused}");
    }
    let back = post("vault", format!("DB_PASSWORD={SENT}")).await;
    assert!(back.contains(SENT), "it may go back: {back}");
    assert!(gate.audit_text().contains("secret-returned"));
}

#[tokio::test]
async fn pieces_of_two_calls_are_one_secret() {
    let server = Server::saying("fine").await;
    let gate = server.setup().shipped().start().await;
    let agent = gate.agent();
    let (first, second) = KEY.split_at(14);
    let passed = agent
        .fetch("up", &[], call("1", &format!("part one: {first}")))
        .await;
    assert_contains(&passed, &["fine"]);
    let refused = agent
        .fetch("up", &[], call("2", &format!("{second} was part two")))
        .await;
    assert_text(&refused, &["secret-source"], &[second]);
}

#[test]
fn wrapped_servers_get_no_secret_either() {
    let own = "printf %s an-own-value-0815";
    let more = format!(
        "[[policy.strict.secret]]\nname = \"one\"\ncommand = [\"sh\", \"-c\", \"{own}\"]\n"
    );
    let mut wrapped = Wrapped::start_with(&["--policy", "strict"], "cat > /dev/null", &more);
    for secret in [KEY, "an-own-value-0815", "5180-eulav-nwo-na"] {
        let refused = wrapped.ask(&argument_call("say", "text", secret));
        assert_eq!(refused["result"]["isError"], true, "{secret}: {refused}");
        assert!(!refused.to_string().contains(secret), "{refused}");
    }
    assert!(wrapped.end().success());
}
