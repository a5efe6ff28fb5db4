//! The command line. Data goes to standard output, everything else to standard error.

#![allow(
    clippy::disallowed_types,
    reason = "reports, lists and the files of clients are JSON; no message is made of them"
)]

mod admin_client;
mod agent;
mod approve;
mod audit;
mod auth;
mod certificate_verifier;
mod check;
mod completions;
mod config_file;
mod confirm;
mod console;
pub mod demo;
mod doctor;
#[cfg(test)]
mod documents_tests;
mod exit;
mod explain;
mod init;
mod inspect;
mod install;
mod liveness;
mod login;
mod logout;
mod metrics;
mod pins;
mod program;
mod progress;
mod prove;
mod quarantine;
mod replay;
mod response;
mod review_args;
mod rules;
mod run;
mod scan;
mod service;
mod suppress;
mod wrap;

use std::fmt::{Display, Write as _};
use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Command, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::document::Fault;
use exit::Exit;

/// The subcommands by purpose, in the order of `lychgate help`.
const GROUPS: [(&str, &[&str]); 6] = [
    (
        "Set up",
        &["demo", "init", "install", "uninstall", "doctor"],
    ),
    ("Run", &["run", "wrap", "service", "console"]),
    ("Access", &["agent", "login", "logout", "auth"]),
    (
        "Review",
        &[
            "approve",
            "quarantine",
            "pins",
            "audit",
            "explain",
            "suppress",
        ],
    ),
    (
        "Test",
        &["check", "rules", "inspect", "scan", "prove", "replay"],
    ),
    ("Other", &["metrics", "completions", "man", "help"]),
];

const EXAMPLES: &str = "\
Examples:
  lychgate demo                   See the gateway in action
  lychgate install claude-code    Put the servers of Claude Code behind it
  lychgate audit tail             Follow its decisions

`lychgate help COMMAND` describes a command.";

/// A security gateway between AI agents and MCP servers.
#[derive(Parser)]
#[command(name = "lychgate", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Show the gateway in action with a sample agent and server
    Demo(demo::Args),
    /// Create a config file
    Init(init::Args),
    /// Start the gateway
    Run(run::Args),
    /// Run a stdio server behind the gateway
    Wrap(wrap::Args),
    /// Create, list and revoke agent tokens
    Agent(agent::Args),
    /// List and answer approval requests
    Approve(approve::Args),
    /// Follow, search and verify the audit log
    Audit(audit::Args),
    /// Open the web console
    Console(console::Args),
    /// Log in to an upstream
    Login(login::Args),
    /// Log out of an upstream and revoke its tokens
    Logout(logout::Args),
    /// List stored logins and rotate the vault key
    Auth(auth::Args),
    /// Review changes to tools, prompts and resources
    Pins(pins::Args),
    /// Test a gateway with harmless attacks
    Prove(prove::Args),
    /// Put the servers of an MCP client behind the gateway
    Install(install::InstallArgs),
    /// Undo `install`, byte for byte
    Uninstall(install::UninstallArgs),
    /// Run the gateway as a user service
    Service(service::Args),
    /// List, show, release and delete quarantined messages
    Quarantine(quarantine::Args),
    /// Scan MCP servers for malicious definitions
    Scan(scan::Args),
    /// Diagnose the installation and suggest fixes
    Doctor(doctor::Args),
    /// Validate the config file and its rules
    Check(check::Args),
    /// Test, list, explain and export rules
    Rules(rules::Args),
    /// Print the metrics reference, dashboard or alert rules
    Metrics(metrics::Args),
    /// Inspect messages from a file
    Inspect(inspect::Args),
    /// Generate shell completions
    Completions(completions::CompletionsArgs),
    /// Generate manual pages
    Man(completions::ManArgs),
    /// Explain a verdict and how to allow the message
    Explain(explain::Args),
    /// Suppress a false positive
    Suppress(suppress::Args),
    /// Test rule changes against recorded messages
    Replay(replay::Args),
}

/// Runs the command line. Exit codes: 0 success, 1 findings or failed checks, 2 error.
pub fn main() -> ExitCode {
    let parsed = Cli::from_arg_matches(&command().get_matches());
    match parsed.unwrap_or_else(|error| error.exit()).verb {
        Verb::Demo(args) => demo::run(&args),
        Verb::Init(args) => run_command(init::Args::run, &args),
        Verb::Run(args) => run::run(&args),
        Verb::Wrap(args) => wrap::run(&args),
        Verb::Agent(args) => run_command(agent::run, &args),
        Verb::Approve(args) => run_command(approve::Args::run, &args),
        Verb::Audit(args) => run_command(audit::run, &args),
        Verb::Console(args) => run_command(console::run, &args),
        Verb::Login(args) => run_command(login::run, &args),
        Verb::Logout(args) => run_command(logout::Args::run, &args),
        Verb::Auth(args) => run_command(auth::Args::run, &args),
        Verb::Pins(args) => run_command(pins::run, &args),
        Verb::Prove(args) => run_command(prove::run, &args),
        Verb::Install(args) => run_command(install::install, &args),
        Verb::Uninstall(args) => run_command(install::uninstall, &args),
        Verb::Service(args) => run_command(service::run, &args),
        Verb::Quarantine(args) => run_command(quarantine::Args::run, &args),
        Verb::Scan(args) => run_command(scan::run, &args),
        Verb::Doctor(args) => run_command(doctor::run, &args),
        Verb::Check(args) => check::run(&args),
        Verb::Completions(args) => exit_code(completions::completions(
            &args,
            command(),
            &mut io::stdout().lock(),
        )),
        Verb::Man(args) => exit_code(completions::man(
            &args,
            command(),
            &mut io::stdout().lock(),
            &mut io::stderr().lock(),
        )),
        Verb::Inspect(args) => inspect::run(&args),
        Verb::Explain(args) => run_command(explain::Args::run, &args),
        Verb::Suppress(args) => run_command(suppress::Args::run, &args),
        Verb::Replay(args) => run_command(replay::run, &args),
        Verb::Metrics(args) => exit_code(metrics::run(&args, &mut io::stdout().lock())),
        Verb::Rules(args) => run_command(rules::run, &args),
    }
}

/// Runs a command with standard output and standard error, and prints the reason if it ends early;
/// returns its exit code.
fn run_command<A, E: Into<Exit>>(
    command: fn(&A, &mut dyn Write, &mut dyn Write) -> Result<u8, E>,
    args: &A,
) -> ExitCode {
    let mut err = io::stderr().lock();
    let code = command(args, &mut io::stdout().lock(), &mut err);
    exit_code(code.or_else(|error| error.into().report(&mut err)))
}

/// Builds the command line with its subcommands listed in groups, which `clap` cannot do.
fn command() -> Command {
    let mut command = Cli::command();
    command.build();
    let mut template = String::from("{about}\n\n{usage-heading} {usage}\n");
    for (group, verbs) in GROUPS {
        let _infallible = write!(template, "\n{group}:\n");
        for verb in verbs {
            let about = command
                .find_subcommand(verb)
                .and_then(Command::get_about)
                .map(ToString::to_string);
            let _infallible = writeln!(template, "  {verb:<12} {}", about.unwrap_or_default());
        }
    }
    template.push_str("\nOptions:\n{options}\n\n");
    template.push_str(EXAMPLES);
    Cli::command().help_template(template)
}

/// Returns the exit code of a command that writes output. A closed pipe (`| head`) is not an error.
fn exit_code(code: io::Result<u8>) -> ExitCode {
    code.map_or_else(
        |error| {
            ExitCode::from(if error.kind() == io::ErrorKind::BrokenPipe {
                0
            } else {
                2
            })
        },
        ExitCode::from,
    )
}

/// Prints faults, one per paragraph, and their number.
#[allow(clippy::print_stderr)]
fn print_faults(faults: &[Fault]) {
    eprintln!("{}", exit::counted_faults(faults));
}

/// Formats a count with its noun in the singular or plural.
fn format_count<N: Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    let ending = if count == N::from(1) { "" } else { "s" };
    format!("{count} {noun}{ending}")
}

#[cfg(test)]
mod help_tests;
