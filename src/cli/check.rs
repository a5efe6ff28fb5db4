//! `lychgate check`: validates the config with all its rules.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::SystemTime;

use super::config_file::ConfigArg;
use super::{format_count, print_faults};
use crate::config::{self, AuditConfig, Config, Suppression};
use crate::document::{Fault, suggest};
use crate::inspect::Mode;
use crate::message::Direction;
use crate::oauth::Shared;
use crate::pins::LockFile;
use crate::protocol::UpstreamName;
use crate::proxy::Policies;
use crate::record::Recorder;
use crate::record::stores::Stores;
use crate::rules::{Library, Rule};
use crate::seal::state_folder;
use crate::upstream::Upstream;
use crate::{app, listen};

/// Arguments of `lychgate check`.
#[derive(clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    config: ConfigArg,
}

/// Reports all faults in the config file and in the rules that it names; exit code 1 if there are
/// any. Starts nothing and contacts no server.
pub(super) fn run(args: &Args) -> ExitCode {
    match check(args) {
        // A closed output needs no error message.
        Ok(report) => match writeln!(io::stdout(), "{report}") {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::from(2),
        },
        Err(faults) => {
            print_faults(&faults);
            ExitCode::FAILURE
        }
    }
}

fn check(args: &Args) -> Result<String, Vec<Fault>> {
    let file = args.config.find()?;
    let config = config::load(&file)?;
    let (policies, mut faults) = match app::policies(&config) {
        Ok(policies) => (policies, Vec::new()),
        Err(faults) => (Policies::new(), faults),
    };
    // Certificates and keys are read as at startup; nothing is connected, and nothing is written.
    let recorder = Recorder::new(&AuditConfig::default()).map(Arc::new);
    let recorder =
        recorder.map_err(|error| vec![Fault::of_file("audit", error.to_string(), None)])?;
    let logins = Shared::new(&config.oauth, recorder).map(Arc::new);
    let logins = logins
        .map_err(|error| faults.push(Fault::of_file("oauth", error.to_string(), None)))
        .ok();
    for (name, upstream) in &config.upstreams {
        faults.extend(
            Upstream::new(
                UpstreamName(name.as_str().into()),
                upstream,
                &config.limits,
                logins.as_ref(),
            )
            .err(),
        );
    }
    let tls = config
        .listen
        .tls
        .as_ref()
        .map(listen::tls::acceptor)
        .transpose();
    faults.extend(
        tls.err()
            .map(|error| Fault::of_file("listen.tls", error, None)),
    );
    if let Some(file) = &config
        .pins
        .clone()
        .with_default_file(state_folder(), &file)
        .file
    {
        faults.extend(LockFile::new(file).read().err().unwrap_or_default());
    }
    let resolved = config.clone().with_default_folders(state_folder());
    let stores = Stores::open(&resolved.quarantine, &resolved.evidence);
    faults.extend(
        stores
            .err()
            .map(|error| Fault::of_file(file.display().to_string(), error.to_string(), None)),
    );
    if !faults.is_empty() {
        return Err(faults);
    }
    let mut report = format!(
        "{}: {}",
        file.display(),
        describe_counts(&config, &policies)
    );
    for sentence in replacements(&config)? {
        report.push_str(&format!(
            "\n{sentence}\n  hint: give it a different id if both rules should apply"
        ));
    }
    for sentence in app::expired(&policies, SystemTime::now()) {
        report.push_str(&format!(
            "\n{sentence}\n  hint: review it: remove it, or set a new `until`"
        ));
    }
    for sentence in describe_unused_suppressions(&config) {
        report.push_str(&format!("\nwarning: {sentence}"));
    }
    for sentence in app::unencrypted(&config) {
        report.push_str(&format!("\nwarning: {sentence}"));
    }
    Ok(report)
}

/// Describes, in sentences, the rules in the config's own folders that replace built-in ones.
fn replacements(config: &Config) -> Result<BTreeSet<String>, Vec<Fault>> {
    let mut all = BTreeSet::new();
    for policy in config
        .policies
        .values()
        .filter(|policy| policy.builtin && !policy.rules.is_empty())
    {
        let library = Library::read(policy.builtin, &policy.rules)?;
        all.extend(library.replacements().map(|(own, builtin)| {
            let Rule { file, line, id, .. } = &**own;
            format!(
                "{file}:{line}: rule `{id}` replaces the built-in rule of that id ({}:{})",
                builtin.file, builtin.line
            )
        }));
    }
    Ok(all)
}

/// Describes, in sentences, the suppressions for names that are not upstreams of the config.
fn describe_unused_suppressions(config: &Config) -> Vec<String> {
    let names: Vec<&str> = config.upstreams.keys().map(String::as_str).collect();
    let all = config.policies.values().flat_map(|policy| &policy.suppress);
    let warning = |entry: &Arc<Suppression>| {
        let upstream = entry
            .upstream
            .as_deref()
            .filter(|upstream| !config.upstreams.contains_key(*upstream))?;
        let (file, line, column) = &entry.place;
        let hint = suggest(upstream, &names);
        Some(format!(
            "{file}:{line}:{column}: no `[upstream.{upstream}]` exists; the suppression applies only to a server started \
             by `lychgate wrap --name {upstream}`\n  hint: {hint}"
        ))
    };
    all.filter_map(warning).collect()
}

fn describe_counts(config: &Config, policies: &Policies) -> String {
    let rules = |direction| {
        let all = policies
            .values()
            .flat_map(|policy| policy.rules(direction).rules());
        all.map(|rule| rule.id.as_str())
            .collect::<BTreeSet<_>>()
            .len()
    };
    let observing: Vec<String> = policies
        .iter()
        .filter(|(_, policy)| policy.mode == Mode::Observe)
        .map(|(upstream, _)| format!("`{upstream}`"))
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    let mut report = [
        format_count(config.upstreams.len(), "upstream"),
        format_count(config.agents.len(), "agent"),
        match config.policies.len() {
            1 => "1 policy".to_owned(),
            count => format!("{count} policies"),
        },
        format_count(rules(Direction::Outbound), "outbound rule"),
        format_count(rules(Direction::Inbound), "inbound rule"),
    ]
    .join(", ");
    let guarded: usize = config
        .policies
        .values()
        .map(|policy| policy.guarded_secrets.guarded.len())
        .sum();
    if guarded > 0 {
        report.push_str(&format!(", {}", format_count(guarded, "guarded secret")));
    }
    let suppressions = app::suppressions(policies).len();
    if suppressions > 0 {
        report.push_str(&format!(", {}", format_count(suppressions, "suppression")));
    }
    if !observing.is_empty() {
        report.push_str(&format!(
            "; observed, not enforced: {}",
            observing.join(", ")
        ));
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(text: &str) -> Result<String, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gate.toml");
        std::fs::write(&path, text).unwrap();
        let without_folder =
            |text: String| text.replace(&format!("{}/", folder.path().display()), "");
        let report = check(&Args {
            config: ConfigArg::new(path),
        });
        report.map(without_folder).map_err(|faults| {
            without_folder(faults.iter().map(|fault| format!("{fault}\n")).collect())
        })
    }

    #[test]
    fn a_sound_config_is_counted() {
        let report = checked(
            "[policy.watch]\nmode = \"observe\"\n[upstream.a]\nhttp = { url = \"https://example.org\" }\n\
             [upstream.b]\nstdio = { command = [\"server\"] }\npolicy = \"watch\"\n",
        )
        .unwrap();
        assert!(
            report.starts_with("gate.toml: 2 upstreams, 0 agents, 2 policies, "),
            "{report}"
        );
        assert!(
            report.ends_with(" inbound rules; observed, not enforced: `b`"),
            "{report}"
        );
    }

    #[test]
    fn an_own_rule_that_replaces_a_built_in_one_is_named() {
        let rules = tempfile::tempdir().unwrap();
        let rule = |id: &str| {
            format!(
                "format = 1\ndirection = \"outbound\"\n[[rule]]\nid = \"{id}\"\ntitle = \"A cannon\"\nwhy = \"No.\"\nseverity = \"high\"\n\
                 action = \"block\"\nfind.pattern = {{ keywords = [\"cannon\"], any = ['cannon'] }}\ncatches = [\"cannon\"]\n\
                 spares = [\"canon\"]\n"
            )
        };
        let folder = rules.path().display();
        let config = format!(
            "[policy.default]\nrules = [\"builtin\", \"{folder}\"]\n[upstream.a]\nhttp = {{ url = \"https://example.org\" }}\n"
        );
        std::fs::write(rules.path().join("mine.toml"), rule("no-cannons")).unwrap();
        let report = checked(&config).unwrap();
        assert_eq!(report.lines().count(), 1, "{report}");
        std::fs::write(rules.path().join("mine.toml"), rule("fork-bomb")).unwrap();
        let report = checked(&config).unwrap();
        assert_contains!(
            report,
            &format!("\n{folder}/mine.toml:3: rule `fork-bomb` replaces the built-in rule")
        );
        assert_contains!(report, "(rules/outbound/", "a different id");
    }

    #[test]
    fn an_upstream_without_encryption_is_warned_of() {
        let report =
            |url: &str| checked(&format!("[upstream.a]\nhttp = {{ url = \"{url}\" }}\n")).unwrap();
        let warned = report("http://mcp.example.org/mcp");
        assert_contains!(
            warned,
            "\nwarning: `upstream.a` sends to `http://mcp.example.org` without encryption"
        );
        for url in ["https://mcp.example.org/mcp", "http://127.0.0.1:3000/mcp"] {
            assert!(!report(url).contains("warning"), "{url}");
        }
    }

    #[test]
    fn a_suppression_for_a_name_that_no_upstream_has_is_warned_of() {
        let report = |upstream: &str| {
            checked(&format!(
                "[upstream.docs]\nhttp = {{ url = \"https://example.org\" }}\n[[policy.default.suppress]]\nrule = \"fork-bomb\"\n\
                 upstream = \"{upstream}\"\nreason = \"r\"\nuntil = 2026-12-01\n"
            ))
            .unwrap()
        };
        let warned = report("doc");
        assert_contains!(
            warned,
            "\nwarning: gate.toml:3:1: no `[upstream.doc]` exists"
        );
        assert_contains!(warned, "`lychgate wrap --name doc`", "did you mean `docs`?");
        assert!(!report("docs").contains("warning"));
    }

    #[test]
    fn faults_of_rules_are_told_as_those_of_the_file() {
        let upstream = "[upstream.a]\nhttp = { url = \"https://example.org\" }\n";
        let report = checked(&format!(
            "[policy.default.override]\n\"no-such-rule\" = {{ enabled = false }}\n{upstream}"
        ))
        .unwrap_err();
        assert!(report.contains("no-such-rule"), "{report}");
        let report = checked(
            "[listen]\ntls = { cert = \"gate.toml\", key = \"gate.toml\" }\n\
             [upstream.a]\nhttp = { url = \"https://example.org\", ca = \"gate.toml\" }\n",
        );
        let report = report.unwrap_err();
        assert!(
            report.contains("listen.tls") && report.matches("gate.toml").count() >= 2,
            "no certificate in these: {report}"
        );
        let report = checked(&format!("colour = 1\n{upstream}")).unwrap_err();
        assert_contains!(report, "gate.toml:1:1: unknown key `colour`");
    }
}
