use std::collections::HashMap;
use std::path::PathBuf;

use super::*;
use crate::config::{AuditTo, Transport};

/// A machine with these variables and secret files, on which every path that contains `ok` exists.
#[derive(Default)]
struct FakeEnvironment {
    text: String,
    variables: HashMap<&'static str, &'static str>,
    files: HashMap<&'static str, &'static str>,
    all_paths: bool,
}

impl Environment for FakeEnvironment {
    fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).map(ToString::to_string)
    }

    fn read(&self, path: &Path, _: u64) -> io::Result<String> {
        if path.ends_with("lychgate.toml") {
            return Ok(self.text.clone());
        }
        if path.ends_with("agents.toml") {
            return Ok(String::new());
        }
        if self.all_paths {
            return Ok("a-secret-of-some-length\n".to_owned());
        }
        let file = self.files.iter().find(|(name, _)| path.ends_with(name));
        file.map(|(_, text)| text.to_string())
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn run(&self, command: &[String], _: Duration) -> io::Result<String> {
        match command {
            [program, name] if program == "print" => Ok(format!("{name}\n")),
            _ if self.all_paths => Ok("a-secret-of-some-length".to_owned()),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn is_file(&self, path: &Path) -> bool {
        self.all_paths || path.to_string_lossy().contains("ok")
    }

    fn is_folder(&self, path: &Path) -> bool {
        self.is_file(path)
    }
}

fn pretend(text: &str) -> FakeEnvironment {
    FakeEnvironment {
        text: text.to_owned(),
        variables: HashMap::from([
            ("HOME", "/home/ada"),
            ("TOKEN_THREE", "three-three-three-three"),
            ("SHORT", "short"),
            ("BEARER", "up-stream-token"),
        ]),
        files: HashMap::from([("token-file", "from-a-file-0123456789\n")]),
        all_paths: false,
    }
}

fn load_text(text: &str) -> Result<Config, String> {
    load_in(
        Path::new("/etc/gate/lychgate.toml"),
        &pretend(text),
        LoadScope::Upstreams,
    )
    .map_err(|faults| fault_text(&faults))
}

fn fault_text(faults: &[Fault]) -> String {
    faults
        .iter()
        .map(|fault| format!("{fault}\n"))
        .collect::<String>()
        .replace("/etc/gate/lychgate.toml", "faulty.toml")
}

const UPSTREAM: &str = "[upstream.a]\nhttp = { url = \"https://example.org/mcp\" }\n";

#[test]
fn the_config_of_a_client_is_named_as_such() {
    let output = load_text(r#"{ "mcpServers": { "files": { "command": "npx" } } }"#).unwrap_err();
    assert!(
        output.starts_with("faulty.toml: this is the config of an MCP client (`mcpServers`"),
        "{output}"
    );
    assert!(
        output.contains("`lychgate install CLIENT`") && output.lines().count() == 2,
        "nothing else is reported: {output}"
    );
}

#[test]
fn every_fault_is_told_at_once_with_place_and_hint() {
    let output =
        load_text(include_str!("../../../tests/snapshots/config/faulty.toml")).unwrap_err();
    for secret in ["hunter2", "ghp_abc", "user:pass", "inline\"", "three-three"] {
        assert!(!output.contains(secret), "a fault shows a secret: {output}");
    }
    assert_eq!(
        output,
        include_str!("../../../tests/snapshots/config/faulty.txt"),
        "got:\n{output}"
    );
}

#[test]
fn an_empty_file_and_a_missing_one_are_faults() {
    assert_contains!(load_text("").unwrap_err(), "no upstream is configured");
    let output = fault_text(&load(Path::new("/nowhere/at/all.toml")).unwrap_err());
    assert_contains!(output, "/nowhere/at/all.toml: cannot be read", "--config");
}

#[test]
fn little_is_enough_and_the_rest_has_defaults() {
    let config = load_text(UPSTREAM).unwrap();
    assert_eq!(config.listen.address, "127.0.0.1:8800".parse().unwrap());
    assert!(
        config.agents.is_empty()
            && config.policies.contains_key("default")
            && config.audit.to.is_none()
    );
    assert_eq!(
        (config.limits.read.message_bytes, config.limits.header_bytes),
        (8 << 20, 32 << 10)
    );
    let upstream = &config.upstreams["a"];
    assert_eq!(
        (upstream.policy.as_str(), upstream.request_timeout.as_secs()),
        ("default", 300)
    );
}

#[test]
fn secrets_come_from_outside_and_agents_keep_only_hashes() {
    let config = load_text(
        "[[agent]]\nname = \"a\"\ntoken = { env = \"TOKEN_THREE\" }\n\
         [[agent]]\nname = \"b\"\ntoken = { file = \"token-file\" }\nupstreams = [\"a\"]\n\
         [upstream.a]\nhttp = { url = \"https://example.org\", bearer = { env = \"BEARER\" }, \
         headers = { \"X-Region\" = \"eu\", \"X-Api-Key\" = { file = \"token-file\" } } }\n",
    )
    .unwrap();
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    assert_eq!(
        hex(&config.agents[0].tokens[0]),
        // printf %s three-three-three-three | sha256sum
        "4fb91117a1da7bee627506cd097dbc65db9008160bc902e261e4b53a4621f458",
    );
    assert_eq!(
        config.agents[1].upstreams.as_deref(),
        Some(&["a".to_owned()][..])
    );
    let Transport::Http(http) = &config.upstreams["a"].transport else {
        panic!("not http")
    };
    assert_eq!(http.bearer.as_deref(), Some("up-stream-token"));
    assert_eq!(
        http.headers,
        [
            ("x-api-key".to_owned(), "from-a-file-0123456789".to_owned()),
            ("x-region".to_owned(), "eu".to_owned())
        ]
    );
    let shown = format!("{config:?}");
    for secret in ["three-three", "up-stream-token", "from-a-file"] {
        assert!(!shown.contains(secret), "{shown}");
    }
}

#[test]
fn a_written_hash_is_the_hash_of_the_token() {
    let hash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"; // of `test`, FIPS 180-4
    let config = load_text(&format!(
        "[[agent]]\nname = \"a\"\ntoken_sha256 = \"{hash}\"\n{UPSTREAM}"
    ))
    .unwrap();
    use sha2::Digest;
    assert_eq!(
        config.agents[0].tokens,
        [<[u8; 32]>::from(sha2::Sha256::digest(b"test"))]
    );
}

#[test]
fn paths_start_at_the_files_folder_or_at_home() {
    let config = load_text(
        "[policy.default]\nrules = [\"builtin\", \"./ok-rules\", \"~/ok-rules\"]\n\
         [upstream.a]\nstdio = { command = [\"./bin/server\", \"./argument\"], directory = \"/ok\" }\n\
         [upstream.b]\nstdio = { command = [\"npx\"] }\n\
         [audit]\nfile = \"log/audit.jsonl\"\nrequired = true\n",
    )
    .unwrap();
    let policy = &config.policies["default"];
    assert!(policy.builtin);
    assert_eq!(
        policy.rules,
        [
            PathBuf::from("/etc/gate/ok-rules"),
            PathBuf::from("/home/ada/ok-rules")
        ]
    );
    assert_eq!(
        config.audit.to,
        Some(AuditTo::File("/etc/gate/log/audit.jsonl".into()))
    );
    assert!(config.audit.required);
    let Transport::Stdio(stdio) = &config.upstreams["a"].transport else {
        panic!("not stdio")
    };
    assert_eq!(
        stdio.command,
        ["/etc/gate/bin/server", "./argument"],
        "arguments are passed without a shell"
    );
    let Transport::Stdio(stdio) = &config.upstreams["b"].transport else {
        panic!("not stdio")
    };
    assert_eq!(stdio.command, ["npx"], "looked up in PATH");
}

#[test]
fn off_loopback_someone_must_log_in_unless_told_otherwise() {
    for address in ["0.0.0.0:1", "[::]:1", "192.0.2.1:1"] {
        let open = format!("[listen]\naddress = \"{address}\"\n");
        let fault = load_text(&format!("{open}{UPSTREAM}")).unwrap_err();
        assert_contains!(fault, "allow_unauthenticated_agents_off_loopback");
        let told_so = format!("{open}allow_unauthenticated_agents_off_loopback = true\n{UPSTREAM}");
        assert!(load_text(&told_so).unwrap().listen.allow_anyone);
        let with_agent = format!(
            "{open}[[agent]]\nname = \"a\"\ntoken = {{ env = \"TOKEN_THREE\" }}\n{UPSTREAM}"
        );
        assert_eq!(load_text(&with_agent).unwrap().agents.len(), 1);
    }
    for address in ["127.0.0.2:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
        let closed = format!("[listen]\naddress = \"{address}\"\n{UPSTREAM}");
        assert!(load_text(&closed).is_ok(), "{address}");
    }
}

#[test]
fn ports_must_differ_where_addresses_meet() {
    for (listen, admin, fits) in [
        ("127.0.0.1:8800", "127.0.0.1:8800", false),
        ("127.0.0.1:8800", "0.0.0.0:8800", false),
        ("127.0.0.1:8800", "127.0.0.1:8801", true),
        ("127.0.0.1:0", "127.0.0.1:0", true),
    ] {
        let text =
            format!("[listen]\naddress = \"{listen}\"\n[admin]\naddress = \"{admin}\"\n{UPSTREAM}");
        assert_eq!(load_text(&text).is_ok(), fits, "{listen} {admin}");
    }
}

#[test]
fn pins_are_kept_in_the_state_folder_unless_the_config_says_otherwise() {
    let file = |text: &str| {
        let pins = load_text(&format!("{UPSTREAM}{text}")).unwrap().pins;
        pins.with_default_file(Some("/state".into()), Path::new("/etc/gate/lychgate.toml"))
            .file
    };
    assert!(file("").unwrap().starts_with("/state"));
    assert!(
        file("[pins]\npersistent = true\n")
            .unwrap()
            .starts_with("/state")
    );
    assert_eq!(file("[pins]\npersistent = false\n"), None);
    assert_eq!(
        file("[pins]\nfile = \"own.lock\"\n").unwrap(),
        Path::new("/etc/gate/own.lock")
    );
}

const SAMPLE: &str = include_str!("../../../deploy/lychgate.toml");

fn load_sample(text: String) -> Config {
    let mut world = FakeEnvironment {
        all_paths: true,
        text,
        ..FakeEnvironment::default()
    };
    for name in [
        "LYCHGATE_TOKEN_CI",
        "GITHUB_MCP_TOKEN",
        "DB_PASSWORD",
        "TRACKER_CLIENT_SECRET",
        "SSO_CLIENT_SECRET",
        "LYCHGATE_OLD_VAULT_KEY",
        "APPROVAL_WEBHOOK_TOKEN",
    ] {
        world
            .variables
            .insert(name, "another-secret-of-some-length");
    }
    load_in(
        Path::new("/etc/lychgate/lychgate.toml"),
        &world,
        LoadScope::Upstreams,
    )
    .map_err(|faults| fault_text(&faults))
    .unwrap()
}

#[test]
fn the_sample_loads_as_it_is_and_with_every_option_set() {
    let config = load_sample(SAMPLE.to_owned());
    assert_eq!((config.upstreams.len(), config.agents.len()), (1, 0));
    let every: String = SAMPLE
        .lines()
        .map(|line| match line.strip_prefix('#') {
            Some(option) if option.starts_with(|c: char| !c.is_whitespace()) => {
                format!("{option}\n")
            }
            _ => format!("{line}\n"),
        })
        .collect();
    let mut config = load_sample(every);
    // These have no default: if not set, they limit nothing.
    assert_eq!(config.limits.calls.per_session, Some(2000));
    config.limits.calls = Limits::default().calls;
    // If not set, it depends on the address.
    assert_eq!(config.limits.connections_per_address, Some(1024));
    config.limits.connections_per_address = None;
    assert_eq!(
        (
            config.upstreams.len(),
            config.agents.len(),
            config.policies.len()
        ),
        (5, 3, 2)
    );
    assert_eq!((config.issuers.len(), config.access.len()), (1, 3));
    assert_eq!(
        format!("{:?}", config.limits),
        format!("{:?}", Limits::default()),
        "the sample has other defaults"
    );
    let output = crate::config::OAuthConfig {
        vault: config.oauth.vault.clone(),
        vault_key: config.oauth.vault_key.clone(),
        earlier_vault_keys: config.oauth.earlier_vault_keys.clone(),
        private_hosts: config.oauth.private_hosts.clone(),
        client_document: config.oauth.client_document.clone(),
        ..Default::default()
    };
    assert_eq!(config.oauth, output, "the sample has other defaults");
    let output = crate::config::QuarantineConfig {
        folder: config.quarantine.folder.clone(),
        key: config.quarantine.key.clone(),
        ..Default::default()
    };
    assert_eq!(config.quarantine, output, "the sample has other defaults");
    let output = crate::config::EvidenceConfig {
        folder: config.evidence.folder.clone(),
        key: config.evidence.key.clone(),
        ..Default::default()
    };
    assert_eq!(config.evidence, output, "the sample has other defaults");
    let output = config.otlp.unwrap();
    let plain = crate::config::OtlpConfig {
        headers: output.headers.clone(),
        ca: output.ca.clone(),
        resource: output.resource.clone(),
        ..crate::config::OtlpConfig::new(output.endpoint.clone())
    };
    assert!(output == plain, "the sample has other defaults");
    let plain = crate::config::UpstreamConfig::new(config.upstreams["github"].transport.clone());
    assert_eq!(
        config.upstreams["github"].request_timeout,
        plain.request_timeout
    );
    assert_eq!(
        config.upstreams["github"].initialize_timeout,
        plain.initialize_timeout
    );
}

#[test]
fn the_sample_explains_every_key_that_is_read() {
    let sources = [
        include_str!("../load.rs"),
        include_str!("listen.rs"),
        include_str!("agents.rs"),
        include_str!("access.rs"),
        include_str!("policy.rs"),
        include_str!("upstream.rs"),
        include_str!("places.rs"),
        include_str!("approval.rs"),
        include_str!("notify.rs"),
        include_str!("oauth.rs"),
        include_str!("stores.rs"),
        include_str!("otlp.rs"),
        include_str!("guarded_secrets.rs"),
        include_str!("pins.rs"),
        include_str!("suppress.rs"),
        include_str!("tool.rs"),
    ]
    .concat()
        + include_str!("values.rs");
    let reads = r#"\b(?:string|required|strings|values?|boolean|flag|integer|duration|choice|number|fraction|milliseconds|tables?|named|secret|file|any_path|arguments|count|seconds)\((?:&?\w+, )?"([a-z0-9_]+)""#;
    let keys: Vec<&str> = regex::Regex::new(reads)
        .unwrap()
        .captures_iter(&sources)
        .map(|found| found.get(1).unwrap().as_str())
        .collect();
    assert!(
        keys.len() > 45 && keys.contains(&"drain_seconds") && keys.contains(&"client_ca"),
        "{keys:?}"
    );
    for key in keys
        .into_iter()
        .chain(["http", "sse", "stdio"])
        .chain(Limits::NAMES)
    {
        let output = regex::Regex::new(&format!(r"\b{key}(?: =|\]|\.)")).unwrap();
        assert!(
            output.is_match(SAMPLE),
            "`{key}` is not in deploy/lychgate.toml"
        );
    }
}

#[test]
fn names_are_looked_up_where_the_policy_says_so() {
    let resolve = |urls: &str| {
        load_text(&format!("{UPSTREAM}[policy.default]\nurls = {urls}\n"))
            .unwrap()
            .policies["default"]
            .places
            .resolve
    };
    assert_eq!(resolve("{ allow = [\"a.example\"] }"), None);
    assert_eq!(resolve("{ resolve = false, resolve_ms = 50 }"), None);
    assert_eq!(
        resolve("{ resolve = true }"),
        Some(Duration::from_millis(500))
    );
    assert_eq!(
        resolve("{ resolve = true, resolve_ms = 50 }"),
        Some(Duration::from_millis(50))
    );
    assert!(
        load_text(&format!(
            "{UPSTREAM}[policy.default]\nurls = {{ resolve_ms = 1 }}\n"
        ))
        .is_err()
    );
}

#[test]
fn what_is_wrong_with_those_who_come_in_is_told() {
    let agent = "[[agent]]\nname = \"a\"\ncertificate = ";
    let issuer = "[[issuer]]\nissuer = ";
    for (text, says) in [
        ("[agents]\n".to_owned(), "`file` is missing"),
        (
            "[[agent]]\nname = \"a\"\n".to_owned(),
            "`token`, `token_sha256` or `certificate`",
        ),
        (
            format!("{agent}\"ci.example\"\n"),
            "the listener requests none",
        ),
        (format!("{agent}\"no name\"\n"), "is not a valid name"),
        (
            format!("{issuer}\"ftp://i\"\n"),
            "is not a valid issuer URL",
        ),
        (
            format!("{issuer}\"https://i\"\nleeway_seconds = 301\n"),
            "between 0 and 300",
        ),
        (
            format!("{issuer}\"https://i\"\nscopes = [\"a b\"]\n"),
            "is not a valid scope",
        ),
        (
            format!("{issuer}\"https://i\"\n{issuer}\"https://i\"\n"),
            "two issuers",
        ),
        (
            format!("[listen]\naddress = \"0.0.0.0:1\"\n{issuer}\"https://i\"\n"),
            "`public_url`",
        ),
        (
            "[listen]\npublic_url = \"https://g.example/path\"\n".to_owned(),
            "is not a valid `public_url`",
        ),
        ("[access.a]\n".to_owned(), "applies to nobody"),
        (
            "[access.a]\nagents = [\"*\"]\ndeny_tools = [\"b/t\"]\n".to_owned(),
            "matches no upstream",
        ),
        (
            "[access.a]\nagents = [\"*\"]\nreading_tools = [\"t\"]\n".to_owned(),
            "classifies tools without",
        ),
    ] {
        let output = load_text(&format!("{text}{UPSTREAM}")).unwrap_err();
        assert!(output.contains(says), "{text}{output}");
    }
    let config = load_text(&format!(
        "[access.a]\ngroups = [\"g\"]\nallow_tools = [\"t\", \"a/u\"]\nallow_resources = [\"file:///x/*\"]\n{issuer}\"https://i\"\n{UPSTREAM}"
    ));
    let config = config.unwrap();
    assert_eq!(
        config.access[0].allow.tools.as_deref(),
        Some(&["*/t".to_owned(), "a/u".to_owned()][..])
    );
    assert_eq!(
        config.access[0].allow.resources.as_deref(),
        Some(&["*/file:///x/*".to_owned()][..])
    );
    assert_eq!(
        (
            config.issuers[0].user_claim.as_str(),
            config.issuers[0].agent.as_str()
        ),
        ("sub", "oauth")
    );
    assert!(!config.is_open());
}

#[test]
fn the_console_is_open_off_loopback_only_behind_tls() {
    let admin = |more: &str| {
        load_text(&format!(
            "{UPSTREAM}[admin]\naddress = \"10.0.0.1:8801\"\n{more}"
        ))
    };
    assert_contains!(
        admin("console = true\n").unwrap_err(),
        "off loopback the console requires TLS"
    );
    assert!(admin("").is_ok());
    assert!(admin("console = true\nconsole_url = \"https://gate-admin.example.org\"\n").is_ok());
}

#[test]
fn a_suppression_names_one_rule_or_several() {
    let load = |keys: &str| {
        let text = format!(
            "{UPSTREAM}[[policy.default.suppress]]\n{keys}\nreason = \"r\"\nuntil = 2026-01-31\n"
        );
        load_text(&text).map(|config| config.policies["default"].suppress[0].describe())
    };
    assert_eq!(
        load("rule = \"a\"\nsha256 = \"0123456789abcdef0123456789abcdef\"").unwrap(),
        "rule `a`, digest `0123456789abcdef0123456789abcdef`"
    );
    assert_eq!(
        load("rules = [\"a\", \"b\"]\ntool = \"t\"\nat = [\"/x\", \"/y\"]").unwrap(),
        "rules `a`, `b`, tool `t`, places `/x`, `/y`"
    );
    for (keys, fault) in [
        (
            "rule = \"a\"\nrules = [\"b\"]",
            "5:9: `rule` and `rules` are both set",
        ),
        ("rules = []", "4:9: `rules` is empty"),
        ("rules = [\"a\", \" \"]", "4:15: `rules` is empty"),
        (
            "rules = [\"a\", 1]",
            "4:15: `rules` must be a list of strings, not a whole number",
        ),
        ("tool = \"t\"", "3:1: `rule` is missing"),
        ("rule = \"a\"\nat = []", "5:6: `at` is empty"),
        (
            "rule = \"a\"\nat = [\"/x\", \"y\"]",
            "5:13: `y` is not a valid `at`",
        ),
        (
            "rule = \"a\"\nsha256 = [\"xyz\"]",
            "5:11: `xyz` is not a valid `sha256`",
        ),
    ] {
        let output = load(keys).unwrap_err();
        assert!(
            output.starts_with(&format!("faulty.toml:{fault}")),
            "{output}"
        );
    }
}
