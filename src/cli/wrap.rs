//! `lychgate wrap`: stands where a stdio server stood.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::SystemTime;

use sha2::{Digest, Sha256};

use super::tell_faults;
use crate::app;
use crate::config::{self, AuditConfig, AuditTo, Config, PinsConfig};
use crate::document::{Fault, suggest};
use crate::export::Exporter;
use crate::inspect::Policy;
use crate::listen::stdio;
use crate::protocol::UpstreamName;
use crate::proxy::pipe::Pipe;
use crate::record::{self, Recorder};
use crate::rules::Library;
use crate::seal::state_folder;

/// Arguments of `lychgate wrap`.
#[derive(clap::Args)]
pub(super) struct Args {
    /// The policy to judge by, as the config names it
    #[arg(long, value_name = "NAME", default_value = "default")]
    policy: String,
    /// A config file: its policies and limits; none is needed
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where audit lines go; without it none are written
    #[arg(long, value_name = "FILE")]
    audit: Option<PathBuf>,
    /// The server, exactly as it was started without lychgate
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Runs the server with its standard input and output judged. The exit code is the server's; 2 if lychgate is at
/// fault, 126 and 127 as a shell gives them for a command that cannot be started.
#[allow(clippy::print_stderr)]
pub(super) fn run(args: &Args) -> ExitCode {
    record::start_log();
    let (pipe, exporter) = match pipe(args) {
        Ok((pipe, exporter)) => (Arc::new(pipe), exporter),
        Err(faults) => {
            tell_faults(&faults);
            return ExitCode::from(2);
        }
    };
    let served = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .and_then(|runtime| runtime.block_on(stdio::serve(pipe.clone(), &args.command)));
    pipe.close();
    pipe.recorder().flush();
    if let Some(exporter) = exporter {
        exporter.close();
    }
    match served {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let program = args.command.first().map(|program| program.to_string_lossy()).unwrap_or_default();
            eprintln!("`{program}` cannot be started: {error}");
            ExitCode::from(if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 })
        }
    }
}

fn pipe(args: &Args) -> Result<(Pipe, Option<Exporter>), Vec<Fault>> {
    let mut config = args.config.as_deref().map(config::load_policies).transpose()?.unwrap_or_default();
    config.pins.file = config.pins.file.or_else(PinsConfig::of_user);
    let config = config.keeping_at_home(state_folder());
    let default = config::PolicyConfig::default();
    let known: Vec<&str> = config.policies.keys().map(String::as_str).collect();
    let policy = match config.policies.get(&args.policy) {
        Some(policy) => policy,
        None if args.policy == "default" => &default,
        None => {
            let hint =
                if args.config.is_some() { suggest(&args.policy, &known) } else { "name the config with `--config FILE`".into() };
            return Err(vec![Fault::of_file("--policy", format!("there is no `[policy.{}]`", args.policy), Some(&hint))]);
        }
    };
    let library = Library::load(policy.builtin, &policy.rules)?;
    let name = name(&args.command);
    let policy = Policy::new(&args.policy, policy, &library)?.at(&name).for_child(&policy.places.roots, None);
    for one in policy.suppressions().iter().filter(|one| one.until.ends <= SystemTime::now()) {
        tracing::warn!("a suppression has ended on {} and has no effect: {}", one.until.written, one.named());
    }
    let upstream = UpstreamName(name.into());
    let recorder = Recorder::new(&audit(args, &config)?);
    let recorder =
        recorder.map_err(|error| vec![Fault::of_file("audit", error.to_string(), Some("name a file that can be written"))])?;
    let recorder = Arc::new(recorder.keeping(app::stores(&config)?));
    let exporter = app::exporter(&config, &recorder)?;
    Ok((Pipe::new(policy, recorder, &config, upstream, pinned_as(&args.command))?, exporter))
}

/// The name by which a server is pinned: that of its program, and what tells it from others that the same program starts.
/// Arguments may hold secrets and are not written down.
fn pinned_as(command: &[OsString]) -> Box<str> {
    let mut hash = Sha256::new();
    for word in command {
        hash.update(word.as_encoded_bytes());
        hash.update([0]);
    }
    let digest: String = hash.finalize().iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{digest}", name(command)).into()
}

fn audit(args: &Args, config: &Config) -> Result<AuditConfig, Vec<Fault>> {
    match (&args.audit, &config.audit.to) {
        (Some(file), _) => Ok(AuditConfig { to: Some(AuditTo::File(file.clone())), ..config.audit.clone() }),
        (None, Some(AuditTo::Stdout)) => {
            let hint = "name a file with `--audit FILE`";
            Err(vec![Fault::of_file("audit", "standard output belongs to the server here".to_owned(), Some(hint))])
        }
        (None, _) => Ok(config.audit.clone()),
    }
}

/// The server's name in audit lines: that of its program.
fn name(command: &[OsString]) -> String {
    let program = command.first().and_then(|program| Path::new(program).file_name());
    program.map_or_else(|| "server".to_owned(), |program| program.to_string_lossy().into_owned())
}
