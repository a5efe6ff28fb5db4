//! The command line. Data goes to standard output, everything else to standard error.

mod agent;
mod approve;
mod audit;
mod auth;
mod check;
mod completions;
mod config_file;
mod confirm;
mod console;
pub mod demo;
mod desk;
mod doctor;
#[cfg(test)]
mod documents_tests;
mod explain;
mod init;
mod inspect;
mod install;
mod judges;
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
mod rules;
mod run;
mod scan;
mod service;
mod suppress;
mod trouble;
mod wrap;

use std::io;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use crate::document::Fault;

/// A security gateway between AI agents and MCP servers.
#[derive(Parser)]
#[command(name = "lychgate", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Show the gate at work, with an agent and a server that it brings along
    Demo(demo::Args),
    /// Write a first config file
    Init(init::Args),
    /// Serve until told to stop
    Run(run::Args),
    /// Stand where a stdio server stood, and judge what passes
    Wrap(wrap::Args),
    /// Make, list and take back tokens of agents
    Agent(agent::Args),
    /// Answer for a person: list the calls that wait for a yes, and allow or refuse them
    Approve(approve::Args),
    /// Follow, search and check the audit log, and show the key that it is signed with
    Audit(audit::Args),
    /// Open the console: a page on which to see what the gate does
    Console(console::Args),
    /// Log in to an upstream, in a browser or on another device
    Login(login::Args),
    /// Log out of an upstream: give tokens back, and forget them
    Logout(logout::Args),
    /// Show which logins are kept, and change the key that they are kept under
    Auth(auth::Args),
    /// List, compare, approve and reset what servers say of their tools, prompts and resources
    Pins(pins::Args),
    /// Try the gate with attacks that hurt nobody, and say what it catches, what not, and why
    Prove(prove::Args),
    /// Move the servers of an agent's config behind the gate
    Install(install::InstallArgs),
    /// Put back what `install` moved, byte for byte
    Uninstall(install::UninstallArgs),
    /// Run the gate as a service of this user, in the background and after each login
    Service(service::Args),
    /// List, show, release and delete what was taken out of messages
    Quarantine(quarantine::Args),
    /// Look at what servers say of themselves and of what they have, by the rules that judge it in the gate
    Scan(scan::Args),
    /// Find out what is wrong with a gate and around it, with what mends it
    Doctor(doctor::Args),
    /// Check the config file and all rules that it names
    Check(check::Args),
    /// Try, list, explain or write out rules
    Rules(rules::Args),
    /// Print the reference page of metrics, the dashboard or the alert rules of this version
    Metrics(metrics::Args),
    /// Judge messages from a file, as the gate would
    Inspect(inspect::Args),
    /// Write what a shell completes these verbs by
    Completions(completions::CompletionsArgs),
    /// Write the manual page, or one for each verb
    Man(completions::ManArgs),
    /// Say why a message was judged as it was, and how to have it pass next time
    Explain(explain::Args),
    /// Silence a false alarm: add the narrowest suppression of what was found in a message to the config
    Suppress(suppress::Args),
    /// Judge what was recorded by other rules, and show what they would change
    Replay(replay::Args),
}

/// Runs the command line. Exit codes: 0 nothing wrong, 1 something found, 2 error.
pub fn main() -> ExitCode {
    match Cli::parse().verb {
        Verb::Demo(args) => demo::run(&args),
        Verb::Init(args) => written(init::run(&args, &mut io::stdout().lock(), &mut io::stderr().lock())),
        Verb::Run(args) => run::run(&args),
        Verb::Wrap(args) => wrap::run(&args),
        Verb::Agent(args) => written(agent::run(&args, &mut io::stdout().lock(), &mut io::stderr().lock())),
        Verb::Approve(args) => written(approve::run(&args, &mut io::stdout().lock(), &mut io::stderr().lock())),
        Verb::Audit(args) => written(audit::run(&args, &mut io::stdout().lock(), &mut io::stderr().lock())),
        Verb::Console(args) => written(console::run(&args, &mut io::stdout().lock(), &mut io::stderr().lock())),
        Verb::Login(args) => written(login::run(&args, &mut io::stdout().lock(), &mut io::stderr().lock())),
        Verb::Logout(args) => written(logout::run(&args, &mut io::stdout().lock(), &mut io::stderr().lock())),
        Verb::Auth(args) => written(auth::run(&args, &mut io::stdout().lock(), &mut io::stderr().lock())),
        Verb::Pins(args) => written(pins::run(&args, &mut io::stdout().lock(), &mut io::stderr().lock())),
        Verb::Prove(args) => written(prove::run(&args, &mut io::stdout().lock(), &mut io::stderr().lock())),
        Verb::Install(args) => written(install::install(&args, &mut io::stdout().lock(), &mut io::stderr().lock())),
        Verb::Uninstall(args) => written(install::uninstall(&args, &mut io::stdout().lock(), &mut io::stderr().lock())),
        Verb::Service(args) => written(service::run(&args, &mut io::stdout().lock(), &mut io::stderr().lock())),
        Verb::Quarantine(args) => written(quarantine::run(&args, &mut io::stdout().lock(), &mut io::stderr().lock())),
        Verb::Scan(args) => written(scan::run(&args, &mut io::stdout().lock(), &mut io::stderr().lock())),
        Verb::Doctor(args) => written(doctor::run(&args, &mut io::stdout().lock(), &mut io::stderr().lock())),
        Verb::Check(args) => check::run(&args),
        Verb::Completions(args) => written(completions::completions(&args, Cli::command(), &mut io::stdout().lock())),
        Verb::Man(args) => written(completions::man(&args, Cli::command(), &mut io::stdout().lock(), &mut io::stderr().lock())),
        Verb::Inspect(args) => inspect::run(&args),
        Verb::Explain(args) => written(explain::run(&args, &mut io::stdout().lock(), &mut io::stderr().lock())),
        Verb::Suppress(args) => written(suppress::run(&args, &mut io::stdout().lock(), &mut io::stderr().lock())),
        Verb::Replay(args) => written(replay::run(&args, &mut io::stdout().lock(), &mut io::stderr().lock())),
        Verb::Metrics(args) => written(metrics::run(&args, &mut io::stdout().lock())),
        Verb::Rules(args) => written(rules::run(&args, &mut io::stdout().lock(), &mut io::stderr().lock())),
    }
}

/// The exit code of a verb that writes. A reader that has had enough (`| head`) is no error.
fn written(code: io::Result<u8>) -> ExitCode {
    code.map_or_else(|error| ExitCode::from(if error.kind() == io::ErrorKind::BrokenPipe { 0 } else { 2 }), ExitCode::from)
}

/// Tells faults, one a paragraph.
#[allow(clippy::print_stderr)]
fn tell_faults(faults: &[Fault]) {
    for fault in faults {
        eprintln!("{fault}");
    }
    eprintln!("{} fault{}", faults.len(), if faults.len() == 1 { "" } else { "s" });
}
