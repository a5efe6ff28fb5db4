//! `lychgate wrap`: runs a stdio server behind the gate.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::SystemTime;

use sha2::{Digest, Sha256};

use super::config_file::{ConfigArg, WrapConfig};
use super::print_faults;
use crate::app;
use crate::config::{self, AuditConfig, AuditTo, Config, PinsConfig};
use crate::document::{Fault, suggest};
use crate::export::Exporter;
use crate::inspect::Policy;
use crate::listen::stdio;
use crate::message::hex;
use crate::protocol::UpstreamName;
use crate::proxy::lines::LineSession;
use crate::record::{self, Recorder};
use crate::rules::Library;
use crate::seal::state_folder;

/// Arguments of `lychgate wrap`.
#[derive(clap::Args)]
#[command(after_help = "\
Without --config and LYCHGATE_CONFIG it reads ~/.config/lychgate/lychgate.toml, or
else /etc/lychgate/lychgate.toml (policies and limits only). It never reads
./lychgate.toml: a client starts it in a project's folder, whose file could
disable the rules.

Example:
  lychgate wrap --name files npx -y @modelcontextprotocol/server-filesystem ~/notes")]
pub(super) struct Args {
    /// Policy of the config to apply
    #[arg(long, value_name = "NAME", default_value = "default")]
    policy: String,
    #[command(flatten)]
    config: ConfigArg,
    /// Server name in audit lines, metrics and pins: up to 64 of a-z, 0-9, `_` and `-`; defaults to
    /// the program's name
    #[arg(long, value_name = "NAME", value_parser = server_name)]
    name: Option<String>,
    /// Audit log file; defaults to `file` under `[audit]` of the config
    #[arg(long, value_name = "FILE")]
    audit: Option<PathBuf>,
    /// The server's command line, unchanged; all arguments after its first word belong to it
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Runs the server and judges its standard input and output. The exit code is that of the server; 2
/// if lychgate itself fails, 126 and 127 as in a shell for a command that cannot be started.
#[allow(clippy::print_stderr)]
pub(super) fn run(args: &Args) -> ExitCode {
    record::start_log();
    let (session, exporter) = match session(args) {
        Ok((session, exporter)) => (Arc::new(session), exporter),
        Err(faults) => {
            print_faults(&faults);
            return ExitCode::from(2);
        }
    };
    let result = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .and_then(|runtime| {
            let served = runtime.block_on(stdio::serve(session.clone(), &args.command));
            // A read of standard input may still be pending.
            runtime.shutdown_background();
            served
        });
    session.close();
    session.gate().recorder().flush();
    if let Some(exporter) = exporter {
        exporter.close();
    }
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let program = args
                .command
                .first()
                .map(|program| program.to_string_lossy())
                .unwrap_or_default();
            eprintln!("`{program}` cannot be started: {error}");
            ExitCode::from(if error.kind() == std::io::ErrorKind::NotFound {
                127
            } else {
                126
            })
        }
    }
}

fn session(args: &Args) -> Result<(LineSession, Option<Exporter>), Vec<Fault>> {
    let wrap_config = args.config.find_for_wrap();
    let mut config = wrap_config
        .as_ref()
        .map(load)
        .transpose()?
        .unwrap_or_default();
    config.pins.file = config.pins.file.or_else(PinsConfig::user_lock_file);
    let config = config.with_default_folders(state_folder());
    let default = config::PolicyConfig::default();
    let names: Vec<&str> = config.policies.keys().map(String::as_str).collect();
    let policy = match config.policies.get(&args.policy) {
        Some(policy) => policy,
        None if args.policy == "default" => &default,
        None => {
            let (place, hint) = match &wrap_config {
                Some(found) => (
                    format!(" in `{}`", found.path().display()),
                    suggest(&args.policy, &names),
                ),
                None => (
                    String::new(),
                    "pass the config with `--config FILE`".to_owned(),
                ),
            };
            return Err(vec![Fault::of_file(
                "--policy",
                format!("there is no `[policy.{}]`{place}", args.policy),
                Some(&hint),
            )]);
        }
    };
    let library = Library::load(policy.builtin, &policy.rules)?;
    let name = args
        .name
        .clone()
        .unwrap_or_else(|| program_name(&args.command));
    let roots = &policy.places.roots;
    let own_files = app::gate_files(&Config {
        audit: audit(args, &config)?,
        ..config.clone()
    });
    let policy = Policy::new(&args.policy, policy, &library)?
        .with_gate_files(own_files)
        .at(&name)
        .for_child(roots, None);
    for one in policy
        .suppressions()
        .iter()
        .filter(|one| one.until.end <= SystemTime::now())
    {
        tracing::warn!(
            "suppression expired on {} and has no effect: {}",
            one.until.text,
            one.describe()
        );
    }
    let upstream = UpstreamName(name.into());
    let recorder = Recorder::new(&audit(args, &config)?);
    let recorder = recorder.map_err(|error| {
        vec![Fault::of_file(
            "audit",
            error.to_string(),
            Some("pass a writable file"),
        )]
    })?;
    let recorder = Arc::new(recorder.with_stores(app::stores(&config)?));
    let exporter = app::exporter(&config, &recorder)?;
    let pinned_as = args
        .name
        .clone()
        .unwrap_or_else(|| pin_name(&args.command))
        .into();
    Ok((
        LineSession::new(policy, recorder, &config, upstream, pinned_as)?,
        exporter,
    ))
}

/// Reads the config. If the file was not named explicitly, an audit log on standard output does not
/// apply, since standard output belongs to the server here. Of the system's file, only policies and
/// limits apply: its logs and stores are those of a service's user.
fn load(wrap_config: &WrapConfig) -> Result<Config, Vec<Fault>> {
    let mut config = config::load_policies(wrap_config.path())?;
    match wrap_config {
        WrapConfig::Named(_) => {}
        WrapConfig::User(_) => {
            config.audit.to = config.audit.to.filter(|to| !matches!(to, AuditTo::Stdout))
        }
        WrapConfig::System(_) => {
            let Config {
                policies,
                limits,
                path,
                files,
                ..
            } = config;
            config = Config {
                policies,
                limits,
                path,
                files,
                ..Config::default()
            };
        }
    }
    Ok(config)
}

/// Returns the name under which an unnamed server is pinned: that of its program with a digest of
/// the command, since one program (`npx`) starts many servers. Arguments may contain secrets and
/// are not written down.
pub(super) fn pin_name<S: AsRef<OsStr>>(command: &[S]) -> String {
    let mut hash = Sha256::new();
    for word in command {
        hash.update(word.as_ref().as_encoded_bytes());
        hash.update([0]);
    }
    format!(
        "{}-{}",
        program_name(command),
        hex(hash.finalize().get(..4).unwrap_or_default())
    )
}

fn audit(args: &Args, config: &Config) -> Result<AuditConfig, Vec<Fault>> {
    match (&args.audit, &config.audit.to) {
        (Some(file), _) => Ok(AuditConfig {
            to: Some(AuditTo::File(file.clone())),
            ..config.audit.clone()
        }),
        (None, Some(AuditTo::Stdout)) => {
            let hint = "pass a file with `--audit FILE`";
            Err(vec![Fault::of_file(
                "audit",
                "standard output is used by the server".to_owned(),
                Some(hint),
            )])
        }
        (None, _) => Ok(config.audit.clone()),
    }
}

fn server_name(name: &str) -> Result<String, String> {
    let fault = "use up to 64 of a-z, 0-9, `_` and `-`";
    if config::is_name(name) {
        Ok(name.to_owned())
    } else {
        Err(fault.to_owned())
    }
}

/// Returns the name of a server's program.
pub(super) fn program_name<S: AsRef<OsStr>>(command: &[S]) -> String {
    let program = command
        .first()
        .and_then(|program| Path::new(program).file_name());
    program.map_or_else(
        || "server".to_owned(),
        |program| program.to_string_lossy().into_owned(),
    )
}
