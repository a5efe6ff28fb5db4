//! Tests of the data that a script provides to other kinds of rules.

use std::collections::HashMap;

use super::{Content, FileUse, Script, WrittenFiles};
use crate::detect::ReadAs;

fn script(text: &str) -> Script<'_> {
    Script::new(text, ReadAs::Shell)
}

#[test]
fn paths_are_told_with_what_is_done_to_them() {
    let text = "cat /etc/passwd > /tmp/out; sh /opt/x.sh; ls ~/.ssh/../.aws";
    let script = script(text);
    let accesses: Vec<(&str, FileUse)> = script
        .paths()
        .map(|access| (access.path, access.file_use))
        .collect();
    for expected in [
        ("/etc/passwd", FileUse::Read),
        ("/tmp/out", FileUse::Write),
        ("/opt/x.sh", FileUse::Run),
        ("~/.aws", FileUse::Named),
    ] {
        assert!(
            accesses.contains(&expected),
            "{expected:?} is not in {accesses:?}"
        );
    }
}

#[test]
fn urls_and_hosts_are_told_as_written() {
    let text = "curl -H x http://169.254.169.254/latest; nc 10.0.0.1 4444; ssh me@host.example ls; wget -qO- -i - <<<'http://10.0.0.2/x'; echo a.b > /dev/tcp/1.2.3.4/9";
    let script = script(text);
    let urls: Vec<&str> = script.urls().collect();
    assert_eq!(
        urls,
        [
            "http://169.254.169.254/latest",
            "10.0.0.1",
            "me@host.example",
            "http://10.0.0.2/x",
            "1.2.3.4"
        ]
    );
}

#[test]
fn texts_are_what_was_unwrapped() {
    let text = "echo bHMgLWxh | base64 -d | sh; bash -c 'id -u'";
    let script = script(text);
    let texts: Vec<&str> = script.texts().collect();
    assert!(
        texts.contains(&"ls -la") && texts.contains(&"id -u"),
        "{texts:?}"
    );
}

#[test]
fn text_is_not_read() {
    let script = Script::new("rm -rf /", ReadAs::Text);
    assert_eq!((script.paths().count(), script.texts().count()), (0, 0));
}

struct Files(HashMap<&'static str, Content>);

impl WrittenFiles for Files {
    fn content(&self, path: &str) -> Option<&Content> {
        self.0.get(path)
    }

    fn folder(&self) -> Option<&str> {
        None
    }
}

#[test]
fn what_an_earlier_call_wrote_is_run() {
    let files = Files([("x.sh", Content::new("shred /dev/sda"))].into());
    for text in ["bash x.sh", "sh < x.sh", ". x.sh", "cat x.sh | sh"] {
        let script = script(text).with_written_files(&files);
        assert!(
            script.paths().any(|access| access.path == "/dev/sda"),
            "{text}"
        );
    }
}
