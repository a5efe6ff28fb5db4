//! `lychgate doctor`: checks the installation and gives the command that fixes each finding.

mod dates;
mod environment;
mod files;
mod listener;
mod upstreams;

use std::future::Future;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::config_file::ConfigArg;
use super::exit::{Exit, usage_error};
use super::format_count;
use super::scan::escape_text;
use crate::app;
use crate::config::{self, Config};
use crate::document::Fault;
use crate::inspect::Mode;
use crate::message::Direction;

/// Time limit of one check; the checks run concurrently.
const CHECK_TIMEOUT: Duration = Duration::from_secs(8);
/// Time limit of the check of the rules, which does not wait for I/O but runs all rule tests.
const RULES_TIMEOUT: Duration = Duration::from_secs(120);

/// A running check.
type Check = std::pin::Pin<Box<dyn Future<Output = (&'static str, CheckResult)>>>;
/// Maximum length of a sentence that is shown, in characters: parts of it may come from a server,
/// such as the last lines of its standard error.
const MAX_SENTENCE_CHARACTERS: usize = 2000;

/// Arguments of `lychgate doctor`.
#[derive(clap::Args)]
#[command(after_help = "\
Checks the config, rules, ports, certificates, file modes, disks, logins, clocks
and servers in parallel, and names the command that fixes each finding. Takes at
most 8 seconds per 32 servers, plus the time to test custom rules. Servers are
only asked to identify themselves; the programs of `stdio` upstreams are started
and stopped. No secret is printed.

Exit codes: 0 no problem (notes aside); 1 a problem, including config errors;
2 no such config.")]
pub(super) struct Args {
    #[command(flatten)]
    config: ConfigArg,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

enum_with_names! {
    /// The severity of a finding.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    enum Level {
        /// For information.
        Note = "note",
        /// It works, but should be changed.
        Warning = "warning",
        /// It does not work, or does not protect.
        Error = "error",
    }
}

#[derive(Debug)]
struct Finding {
    level: Level,
    message: String,
    /// The command or config line that fixes it.
    fix: String,
}

/// The result of one check.
#[derive(Debug, Default)]
struct CheckResult {
    findings: Vec<Finding>,
    passed: Vec<String>,
}

impl CheckResult {
    fn add_finding(&mut self, level: Level, message: impl Into<String>, fix: impl Into<String>) {
        self.findings.push(Finding {
            level,
            message: message.into(),
            fix: fix.into(),
        });
    }

    fn add_error(&mut self, message: impl Into<String>, fix: impl Into<String>) {
        self.add_finding(Level::Error, message, fix);
    }

    fn add_warning(&mut self, message: impl Into<String>, fix: impl Into<String>) {
        self.add_finding(Level::Warning, message, fix);
    }

    fn add_note(&mut self, message: impl Into<String>, fix: impl Into<String>) {
        self.add_finding(Level::Note, message, fix);
    }

    fn pass(&mut self, message: impl Into<String>) {
        self.passed.push(message.into());
    }

    fn merge(&mut self, other: Self) {
        self.findings.extend(other.findings);
        self.passed.extend(other.passed);
    }

    fn add_faults(&mut self, faults: &[Fault]) {
        for fault in faults {
            let place = if fault.line > 0 {
                format!("{}:{}:{}: ", fault.file, fault.line, fault.column)
            } else {
                format!("{}: ", fault.file)
            };
            let fix = fault
                .hint
                .clone()
                .unwrap_or_else(|| "`lychgate check` lists all faults".to_owned());
            self.add_error(format!("{place}{}", fault.message), fix);
        }
    }
}

/// Adds the `--config` option of the command line to a command. Without that option, every command
/// finds the same file by itself.
fn with_config_option(fix: &str, config_file: Option<&Path>) -> String {
    let Some(config) = config_file.filter(|_| fix.starts_with("lychgate ")) else {
        return fix.to_owned();
    };
    let (command, rest) = fix
        .split_once(", ")
        .map_or((fix, String::new()), |(command, rest)| {
            (command, format!(", {rest}"))
        });
    format!("{command} --config '{}'{rest}", config.display())
}

/// The results by name of the check.
type Report = Vec<(&'static str, CheckResult)>;

/// Runs all checks; exit code 0 if there are no problems, 1 if there are, 2 if the config cannot be
/// read.
pub(super) fn run(args: &Args, out: &mut dyn Write, err: &mut dyn Write) -> Result<u8, Exit> {
    let file = args.config.find()?;
    if let Err(error) = std::fs::File::open(&file) {
        return Err(usage_error(format!(
            "{}: cannot be read: {error}\n  hint: pass another file with `--config FILE`",
            file.display()
        )));
    }
    let progress = io::stderr().is_terminal();
    if progress {
        write!(err, "checking …")?;
        err.flush()?;
    }
    let runtime = super::login::runtime(2)?;
    let mut report = runtime.block_on(check(file));
    for finding in report
        .iter_mut()
        .flat_map(|(_, checked)| &mut checked.findings)
    {
        finding.fix = with_config_option(&finding.fix, args.config.on_command_line());
    }
    // Checks that hang are not awaited.
    runtime.shutdown_timeout(Duration::from_millis(100));
    if progress {
        write!(err, "\r\x1b[K")?;
    }
    out.write_all(
        if args.json {
            format_json(&report)
        } else {
            format_text(&report)
        }
        .as_bytes(),
    )?;
    out.flush()?;
    Ok(u8::from(worst(&report) > Some(Level::Note)))
}

fn worst(report: &Report) -> Option<Level> {
    report
        .iter()
        .flat_map(|(_, result)| &result.findings)
        .map(|finding| finding.level)
        .max()
}

async fn check(file: PathBuf) -> Report {
    let path = file.clone();
    let mut result = CheckResult::default();
    let loaded = tokio::task::spawn_blocking(move || config::load(&path)).await;
    let config = match loaded {
        Ok(Ok(config)) => Arc::new(config),
        Ok(Err(faults)) => {
            result.add_faults(&faults);
            let surroundings = run_bounded("surroundings", blocking(environment::variables)).await;
            return vec![("config", result), surroundings];
        }
        Err(_) => {
            result.add_error("reading the config failed", "run `lychgate check`");
            return vec![("config", result)];
        }
    };
    result.pass(format!(
        "{} is valid: {} upstreams, {} policies",
        file.display(),
        config.upstreams.len(),
        config.policies.len()
    ));
    let path = file;
    let config_check = |check: fn(&Config) -> CheckResult| {
        let config = config.clone();
        blocking(move || check(&config))
    };
    let modes = {
        let config = config.clone();
        blocking(move || files::modes(&config, &path))
    };
    let rounds = u32::try_from(config.upstreams.len().div_ceil(upstreams::MAX_CONCURRENT))
        .unwrap_or(u32::MAX)
        .max(1);
    let checks: Vec<Check> = vec![
        Box::pin(run_within(RULES_TIMEOUT, "rules", config_check(rules))),
        Box::pin(run_bounded("ports", config_check(listener::ports))),
        Box::pin(run_bounded(
            "certificates",
            config_check(listener::certificates),
        )),
        Box::pin(run_bounded("files", modes)),
        Box::pin(run_bounded("disk", config_check(files::disks))),
        Box::pin(run_bounded("audit", config_check(files::audit))),
        Box::pin(run_bounded("logins", upstreams::logins(config.clone()))),
        Box::pin(run_within(
            CHECK_TIMEOUT * rounds,
            "upstreams",
            upstreams::check_upstreams(config.clone()),
        )),
        Box::pin(run_bounded("limits", config_check(environment::limits))),
        Box::pin(run_bounded(
            "surroundings",
            blocking(environment::variables),
        )),
    ];
    let mut report = vec![("config", result)];
    report.extend(join_all(checks).await);
    report
}

/// Runs a check that may block on disk I/O.
async fn blocking(check: impl FnOnce() -> CheckResult + Send + 'static) -> CheckResult {
    tokio::task::spawn_blocking(check)
        .await
        .unwrap_or_else(|_| {
            let mut result = CheckResult::default();
            result.add_error("the check itself failed", "please report it");
            result
        })
}

async fn run_bounded(
    name: &'static str,
    check: impl Future<Output = CheckResult>,
) -> (&'static str, CheckResult) {
    run_within(CHECK_TIMEOUT, name, check).await
}

async fn run_within(
    limit: Duration,
    name: &'static str,
    check: impl Future<Output = CheckResult>,
) -> (&'static str, CheckResult) {
    let checked = tokio::time::timeout(limit, check)
        .await
        .unwrap_or_else(|_| {
            let mut result = CheckResult::default();
            result.add_warning(
                format!("not checked: timed out after {} s", limit.as_secs()),
                "check the disk and the network",
            );
            result
        });
    (name, checked)
}

/// Checks that the rules load, that all their tests pass, and that they are enforced.
fn rules(config: &Config) -> CheckResult {
    let mut result = CheckResult::default();
    let policies = match app::policies(config) {
        Ok(policies) => policies,
        Err(faults) => {
            result.add_faults(&faults);
            return result;
        }
    };
    let count = |direction| {
        policies
            .values()
            .map(|policy| policy.rules(direction).rules().len())
            .max()
            .unwrap_or(0)
    };
    result.pass(format!(
        "{} outbound and {} inbound rules loaded; all rule tests pass",
        count(Direction::Outbound),
        count(Direction::Inbound)
    ));
    let mut observed: Vec<&str> = policies
        .iter()
        .filter(|(_, policy)| policy.mode == Mode::Observe)
        .map(|(name, _)| &*name.0)
        .collect();
    observed.sort_unstable();
    for name in observed {
        let policy = config
            .upstreams
            .get(name)
            .map_or("default", |upstream| upstream.policy.as_str());
        result.add_warning(format!("`{name}` is in observe mode: attacks are recorded but not blocked"),
            format!("set `mode = \"enforce\"` in `[policy.{policy}]` (or in `[upstream.{name}]`) once the audit log shows no false positives"),
        );
    }
    for sentence in app::unencrypted(config) {
        result.add_warning(sentence, "use `https://` in `url` of this upstream");
    }
    for (name, policy) in config.policies.iter().filter(|(_, policy)| !policy.builtin) {
        let what = format!(
            "policy `{name}` does not use the built-in rules ({} custom folders)",
            policy.rules.len()
        );
        result.add_warning(
            what,
            format!("add `\"builtin\"` to `rules` in `[policy.{name}]`"),
        );
    }
    result
}

fn format_text(report: &Report) -> String {
    let mut out = String::new();
    let mut all: Vec<(&str, &Finding)> = report
        .iter()
        .flat_map(|(area, checked)| checked.findings.iter().map(|finding| (*area, finding)))
        .collect();
    all.sort_by_key(|(_, finding)| std::cmp::Reverse(finding.level));
    for (
        area,
        Finding {
            level,
            message: what,
            fix,
        },
    ) in &all
    {
        let level = level.name();
        let what = escape_text(what, MAX_SENTENCE_CHARACTERS);
        let fix = escape_text(fix, MAX_SENTENCE_CHARACTERS);
        out.push_str(&format!(
            "{level:<8} {area:<13} {what}\n                       fix: {fix}\n"
        ));
    }
    if !all.is_empty() {
        out.push('\n');
    }
    out.push_str("checked and ok\n");
    for (area, what) in report
        .iter()
        .flat_map(|(area, result)| result.passed.iter().map(move |what| (area, what)))
    {
        out.push_str(&format!(
            "  {area:<13} {}\n",
            escape_text(what, MAX_SENTENCE_CHARACTERS)
        ));
    }
    let count = |level| {
        all.iter()
            .filter(|(_, finding)| finding.level == level)
            .count()
    };
    let errors = count(Level::Error);
    let warnings = count(Level::Warning);
    let notes = count(Level::Note);
    out.push_str(&format!(
        "\n{}, {}, {}\n",
        format_count(errors, "error"),
        format_count(warnings, "warning"),
        format_count(notes, "note")
    ));
    out
}

fn format_json(report: &Report) -> String {
    let found = report.iter().flat_map(|(area, result)| {
        result.findings.iter().map(
            move |Finding {
                      level,
                      message: what,
                      fix,
                  }| json!({ "area": area, "level": level.name(), "what": what, "fix": fix }),
        )
    });
    let passed = report.iter().flat_map(|(area, result)| {
        result
            .passed
            .iter()
            .map(move |what| json!({ "area": area, "what": what }))
    });
    let findings: Vec<Value> = found.collect();
    let passed: Vec<Value> = passed.collect();
    format!(
        "{:#}\n",
        json!({ "ok": worst(report) <= Some(Level::Note), "findings": findings, "passed": passed })
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_for_the_config_that_was_looked_at() {
        let fix = "lychgate agent add NAME, with `[agents]` in the config";
        assert_eq!(with_config_option(fix, None), fix);
        let result = with_config_option(fix, Some(Path::new("many.toml")));
        assert_eq!(
            result,
            "lychgate agent add NAME --config 'many.toml', with `[agents]` in the config"
        );
        assert_eq!(
            with_config_option("chmod 600 'x'", Some(Path::new("many.toml"))),
            "chmod 600 'x'"
        );
    }
}
