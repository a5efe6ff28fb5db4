//! Calls stay where the policy allows them: in its roots, with symbolic links followed where the
//! gate can follow them, and away from internal hosts.

use super::harness::{Setup, argument_call, is_error, json, result_text};
use super::servers::{Peer, Wire, says, script};

#[tokio::test]
async fn paths_stay_in_the_roots_and_links_are_followed_for_a_child() {
    for wire in [Wire::Stdio, Wire::Json] {
        let disk = tempfile::tempdir().unwrap();
        let disk = disk.path().canonicalize().unwrap();
        let (root, other) = (disk.join("root"), disk.join("other"));
        std::fs::create_dir_all(root.join("src")).unwrap();
        std::fs::create_dir_all(&other).unwrap();
        std::os::unix::fs::symlink(&other, root.join("out")).unwrap();
        std::os::unix::fs::symlink("src", root.join("in")).unwrap();
        let peer = Peer::start(wire, script(|asked| says(asked, "fine"))).await;
        let folder = root.display().to_string();
        let gate = peer.behind(Setup::new().shipped(), "up");
        let gate = gate
            .start_with_policy(|policy| policy.places.roots = vec![folder.clone()])
            .await;
        let agent = gate.agent();
        let session = agent.initialize("up").await.unwrap();
        let headers = [("mcp-session-id", session.as_str())];
        let child = wire == Wire::Stdio;
        for (path, refused) in [
            ("src/main.rs", false),
            ("in/main.rs", false),
            ("in/../src/x", false),
            ("../other/x", true),
            ("%2e%2e/other/x", true),
            ("out/x", child),
            ("out/../other/x", child),
        ] {
            for path in [path.to_owned(), format!("{folder}/{path}")] {
                let answer = agent
                    .fetch("up", &headers, argument_call("read_file", "path", &path))
                    .await;
                // Streams contain the answer as an event.
                let event = answer.lines().find_map(|line| line.strip_prefix("data: "));
                let answer = json(event.unwrap_or(&answer));
                assert_eq!(is_error(&answer), refused, "{wire:?} {path}");
                let told = result_text(&answer);
                assert!(!refused || told.contains("path-"), "{told}");
            }
        }
        let unresolved = gate.audit_text().contains("\"links\"");
        assert_eq!(
            unresolved, !child,
            "where links are not followed, the audit log says so"
        );
        gate.running.drain().await;
    }
}

#[tokio::test]
async fn hosts_inside_are_refused_unless_the_policy_or_the_tool_allows_them() {
    let peer = Peer::start(Wire::Json, script(|asked| says(asked, "fine"))).await;
    let config = r#"
        [policy.default]
        urls = { allow = ["127.0.0.1:3000"], deny = ["*.denied.example"] }
        [policy.default.tool.browse]
        urls = { allow = ["*.corp.example", "10.0.0.0/8"], deny = ["*"] }
        [upstream.up]
        http = { url = "http://127.0.0.1:1/" }
    "#;
    let setup = peer.behind(Setup::new(), "up");
    let file = setup.folder.path().join("lychgate.toml");
    std::fs::write(&file, config).unwrap();
    let read = lychgate::config::load(&file).unwrap();
    let gate = setup
        .start_with(|config| config.policies = read.policies)
        .await;
    let agent = gate.agent();
    let session = agent.initialize("up").await.unwrap();
    let headers = [("mcp-session-id", session.as_str())];
    for (tool, url, refused_by) in [
        ("fetch", "https://example.com/", None),
        ("fetch", "http://127.0.0.1:3000/", None),
        ("fetch", "http://127.0.0.1:3001/", Some("url-internal")),
        ("fetch", "http://0x7f.1:3000/", Some("url-hidden-host")),
        ("fetch", "https://a.denied.example/", Some("url-denied")),
        ("fetch", "http://10.1.2.3/", Some("url-internal")),
        ("browse", "http://10.1.2.3/", None),
        ("browse", "https://wiki.corp.example/", None),
        ("browse", "https://example.com/", Some("url-denied")),
        ("browse", "http://169.254.169.254/", Some("url-metadata")),
    ] {
        let answer = agent
            .fetch("up", &headers, argument_call(tool, "url", url))
            .await;
        let told = result_text(&json(&answer));
        match refused_by {
            None => assert_eq!(told, "fine", "{tool} {url}"),
            Some(rule) => assert!(told.contains(&format!("`{rule}`")), "{tool} {url}: {told}"),
        }
    }
    gate.running.drain().await;
}
