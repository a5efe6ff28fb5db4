//! The command line. Data goes to standard output, everything else to standard error.

mod agent;
mod approve;
mod auth;
mod check;
pub mod demo;
mod inspect;
mod login;
mod logout;
mod pins;
mod rules;
mod run;
mod wrap;

use std::io;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

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
    /// Serve until told to stop
    Run(run::Args),
    /// Stand where a stdio server stood, and judge what passes
    Wrap(wrap::Args),
    /// Make, list and take back tokens of agents
    Agent(agent::Args),
    /// Answer for a person: list the calls that wait for a yes, and allow or refuse them
    Approve(approve::Args),
    /// Log in to an upstream, in a browser or on another device
    Login(login::Args),
    /// Log out of an upstream: give tokens back, and forget them
    Logout(logout::Args),
    /// Show which logins are kept, and change the key that they are kept under
    Auth(auth::Args),
    /// List, compare, approve and reset what servers say of their tools, prompts and resources
    Pins(pins::Args),
    /// Check the config file and all rules that it names
    Check(check::Args),
    /// Try, list, explain or write out rules
    Rules(rules::Args),
    /// Judge messages from a file, as the gate would
    Inspect(inspect::Args),
}

/// Runs the command line. Exit codes: 0 nothing wrong, 1 something found, 2 error.
pub fn main() -> ExitCode {
    match Cli::parse().verb {
        Verb::Demo(args) => demo::run(&args),
        Verb::Run(args) => run::run(&args),
        Verb::Wrap(args) => wrap::run(&args),
        Verb::Agent(args) => written(agent::run(&args, &mut io::stdout().lock(), &mut io::stderr().lock())),
        Verb::Approve(args) => written(approve::run(&args, &mut io::stdout().lock(), &mut io::stderr().lock())),
        Verb::Login(args) => written(login::run(&args, &mut io::stdout().lock(), &mut io::stderr().lock())),
        Verb::Logout(args) => written(logout::run(&args, &mut io::stdout().lock(), &mut io::stderr().lock())),
        Verb::Auth(args) => written(auth::run(&args, &mut io::stdout().lock(), &mut io::stderr().lock())),
        Verb::Pins(args) => written(pins::run(&args, &mut io::stdout().lock(), &mut io::stderr().lock())),
        Verb::Check(args) => check::run(&args),
        Verb::Inspect(args) => inspect::run(&args),
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
