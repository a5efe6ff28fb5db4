//! `lychgate init` as a program with a home folder of its own.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Output, Stdio};

use tempfile::TempDir;

use super::harness::{assert_contains, assert_text, lychgate};

const DOCS: [&str; 4] = [
    "init",
    "--upstream",
    "docs=https://docs.invalid/mcp",
    "--yes",
];

struct Home(TempDir);

impl Home {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(name)
    }

    /// Runs the program without a terminal.
    fn lychgate(&self, args: &[&str]) -> Output {
        let mut command = lychgate();
        command
            .args(args)
            .env_clear()
            .env("HOME", self.0.path())
            .current_dir(self.0.path())
            .stdin(Stdio::null());
        command
            .env("XDG_CONFIG_HOME", self.at("config"))
            .env("XDG_STATE_HOME", self.at("state"))
            .output()
            .unwrap()
    }
}

fn text(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

#[test]
fn a_first_config_is_valid_private_and_not_replaced_unless_forced() {
    let home = Home::new();
    let missing = home.lychgate(&["check"]);
    assert_contains(&text(&missing), &["`lychgate init`"]);
    let stdio = ["--stdio", "files", "--", "bin/server", "--root", "my notes"];
    let written = home.lychgate(&[&DOCS[..], &stdio].concat());
    assert_eq!(written.status.code(), Some(0), "{}", text(&written));
    let next = "lychgate check\n  lychgate run\n  claude mcp add --transport http docs http://127.0.0.1:8800/mcp/docs\n";
    assert!(text(&written).contains(next), "{}", text(&written));
    let file = home.at("config/lychgate/lychgate.toml");
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let config = fs::read_to_string(&file).unwrap();
    assert!(text(&written).contains(&config), "what is written is shown");
    let command = format!(
        "command = [\"{}\", \"--root\", \"my notes\"]",
        home.at("bin/server").display()
    );
    assert_contains(
        &config,
        &[
            &command,
            &format!(
                "file = \"{}\"",
                home.at("state/lychgate/audit.jsonl").display()
            ),
        ],
    );
    let checked = home.lychgate(&["check"]);
    assert_eq!(checked.status.code(), Some(0), "{}", text(&checked));
    assert_contains(&text(&checked), &[": 2 upstreams"]);

    let other = [
        "init",
        "--upstream",
        "wiki=https://wiki.invalid/mcp",
        "--yes",
    ];
    let refused = home.lychgate(&other);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
    assert_contains(&text(&refused), &["already exists", "--force"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), config);
    let forced = home.lychgate(&[&other[..], &["--force"]].concat());
    assert_eq!(forced.status.code(), Some(0), "{}", text(&forced));
    let config = fs::read_to_string(&file).unwrap();
    assert_text(&config, &["[upstream.wiki]"], &["docs"]);
}

#[test]
fn nothing_is_written_without_an_upstream_an_answer_or_a_valid_config() {
    let home = Home::new();
    for (args, hint) in [
        (&["init"][..], "--upstream NAME=URL"),
        (&["init", "--yes"], "--stdio NAME -- COMMAND"),
        (&DOCS[..3], "pass --yes"),
        (
            &["init", "--upstream", "docs=docs.invalid", "--yes"],
            "not a valid URL",
        ),
        (
            &[
                "init",
                "--upstream",
                "a=http://b/",
                "--stdio",
                "a",
                "--yes",
                "--",
                "c",
            ],
            "two upstreams are named `a`",
        ),
        (&["init", "--stdio", "a", "--yes"], "COMMAND"),
    ] {
        let output = home.lychgate(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", text(&output));
        assert!(text(&output).contains(hint), "{args:?}: {}", text(&output));
    }
    assert!(!home.at("config").exists());
    // If the file is not in the default place, its path is part of the command to run next.
    let written = home.lychgate(&[&DOCS[..], &["--config", "own.toml"]].concat());
    let file = home.at("own.toml");
    assert_contains(
        &text(&written),
        &[&format!("lychgate run --config {}\n", file.display())],
    );
    assert!(file.exists() && !home.at("config").exists());
}
