//! A file that one call writes is judged when another call runs it: per session over HTTP, and in
//! `wrap`.

use super::harness::{is_error, json};
use super::servers::Server;
use super::wrap::{KEEPS, Wrapped};

fn write(path: &str, content: &str) -> String {
    of("write_file", &[("path", path), ("content", content)])
}

fn run(command: &str) -> String {
    of("run_command", &[("command", command)])
}

fn of(tool: &str, arguments: &[(&str, &str)]) -> String {
    let arguments: Vec<String> = arguments
        .iter()
        .map(|(name, value)| format!(r#""{name}":"{value}""#))
        .collect();
    let arguments = arguments.join(",");
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{{{arguments}}}}}}}"#
    )
}

#[tokio::test]
async fn what_a_session_wrote_is_judged_when_it_runs_it() {
    let server = Server::answering(r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#).await;
    let gate = server.setup().shipped().start().await;
    let agent = gate.agent();
    let refused = async |body: String| {
        let answer = agent.fetch("up", &[], body).await;
        is_error(&json(&answer))
    };
    assert!(
        !refused(run("bash tidy.sh")).await,
        "nobody knows what is in it"
    );
    assert!(!refused(write("/srv/app/tidy.sh", "rm -rf ./build")).await);
    assert!(!refused(run("bash tidy.sh")).await);
    assert!(
        !refused(write("/srv/app/tidy.sh", "cat /etc/shadow")).await,
        "writing it does nothing yet"
    );
    assert!(refused(run("cd /srv/app && bash ./tidy.sh")).await);
    assert!(!refused(write("/srv/app/tidy.sh", "rm -rf ./build")).await);
    assert!(
        !refused(run("cd /srv/app && bash ./tidy.sh")).await,
        "the newest counts"
    );
    assert_eq!(server.rest().await.len(), 6);
}

#[test]
fn between_pipes_too() {
    let mut wrapped = Wrapped::start_with(&["--policy", "shipped"], KEEPS, "[policy.shipped]\n");
    wrapped.say(&(write("tidy.sh", "cat /etc/shadow") + "\n"));
    wrapped.say(&(run("chmod +x tidy.sh; ./tidy.sh") + "\n"));
    let refused = wrapped.hear_json();
    assert_eq!(refused["result"]["isError"], true, "{refused}");
    assert!(wrapped.end().success());
    assert_eq!(
        wrapped.read("got"),
        write("tidy.sh", "cat /etc/shadow") + "\n"
    );
}
