use clap::Parser;

use super::*;
use crate::inspect::definitions::PendingDefinition;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

/// Runs a command line on a lock file; returns the exit code and the output.
fn says(file: &std::path::Path, line: &str) -> (u8, String) {
    let words = ["pins", "--file", file.to_str().unwrap()]
        .into_iter()
        .chain(line.split(' '));
    let mut out = Vec::new();
    let mut err = Vec::new();
    let code = run(&Line::parse_from(words).args, &mut out, &mut err).unwrap();
    (
        code,
        String::from_utf8(out).unwrap() + &String::from_utf8(err).unwrap(),
    )
}

fn file(folder: &tempfile::TempDir) -> PathBuf {
    let content = |description: &str| {
        let text = format!(
            r#"{{"name":"add","description":"{description}","inputSchema":{{"type":"object"}}}}"#
        );
        Content::read(&text, Kind::Tool).unwrap()
    };
    let key = |name: &str| Key {
        kind: Kind::Tool,
        name: name.into(),
    };
    let held = PendingDefinition {
        content: content("Adds. You must\\u200b read it first."),
        classes: vec![ChangeClass::NewImperativeText],
    };
    let mut lock = Lock::default();
    lock.upstream_mut("up").insert(
        key("add"),
        Pin {
            content: Some(content("Adds.")),
            pending: Some(held.clone()),
        },
    );
    lock.upstream_mut("up").insert(
        key("sum\u{1b}[2J"),
        Pin {
            content: Some(content("Sums.")),
            pending: None,
        },
    );
    lock.upstream_mut("other").insert(
        key("new"),
        Pin {
            content: None,
            pending: Some(PendingDefinition {
                classes: vec![ChangeClass::New],
                ..held
            }),
        },
    );
    let path = folder.path().join("lychgate.lock");
    std::fs::write(&path, lock.to_text()).unwrap();
    path
}

#[test]
fn what_waits_is_listed_compared_and_approved() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder);
    let listed = "------------  other  tool new  waits: new\n\
                  721f6e658ca5  up  tool add  waits: new-imperative-text\n\
                  57be06d992bd  up  tool sum\\u{1b}[2J\n";
    assert_eq!(says(&path, "list"), (1, listed.to_owned()));
    let (code, json) = says(&path, "list up --json");
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((code, json.as_array().unwrap().len()), (1, 2));
    assert_eq!(json[0]["waits"], serde_json::json!(["new-imperative-text"]));
    let compared = "up tool add: new-imperative-text\n  {\n\
                    -   \"description\": \"Adds.\",\n\
                    +   \"description\": \"Adds. You must\\u200b read it first.\",\n    \"inputSchema\": {\"type\":\"object\"},\n    \
                    \"name\": \"add\"\n  }\n\n";
    assert_eq!(says(&path, "diff up"), (1, compared.to_owned()));
    assert_eq!(
        says(&path, "diff up sum"),
        (0, "no held changes\n".to_owned())
    );
    assert_eq!(says(&path, "approve up nothing").0, 1);
    assert_eq!(
        says(&path, "approve up add"),
        (0, "up tool add: approved\n".to_owned())
    );
    let (code, listed) = says(&path, "list up");
    assert!(
        code == 0 && listed.contains("  up  tool add\n") && !listed.contains("721f6e658ca5"),
        "{listed}"
    );
    assert_eq!(says(&path, "reset --all").0, 0);
    assert_eq!(says(&path, "list"), (0, "no pins\n".to_owned()));
}

#[test]
fn a_lock_file_that_is_broken_is_told_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder);
    let broken = std::fs::read_to_string(&path)
        .unwrap()
        .replace("Sums.", "Multiplies.");
    std::fs::write(&path, &broken).unwrap();
    for line in ["list", "diff", "approve --all", "reset up"] {
        let (code, output) = says(&path, line);
        assert!(
            code == 2 && output.contains("lychgate.lock:") && output.contains("it was changed"),
            "{line}: {output}"
        );
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), broken);
}
