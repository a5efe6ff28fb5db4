//! Loading of the config file: all faults are reported at once, each with its location and a hint
//! on how to fix it.

mod access;
mod agents;
mod approval;
mod audit;
mod calls;
mod classifier;
mod command_output;
mod edit;
mod flow;
mod foreign;
mod guarded_secrets;
mod listen;
mod notify;
mod oauth;
mod otlp;
mod pins;
mod places;
mod policy;
mod stores;
mod suppress;
mod tool;
mod upstream;
mod values;

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::detect::flow::TaintLimits;
use crate::detect::work::{self, WorkLimits};
use crate::document::{self, Fault, Located, Table};
use crate::message::ReadLimits;

use super::{
    Admin, AgentsFile, ApprovalConfig, AuditConfig, Config, EvidenceConfig, HttpTransport, Limits,
    Listen, OAuthConfig, PinsConfig, PolicyConfig, QuarantineConfig, StoredResultLimits, Transport,
};
pub use edit::load_edited;
use values::Reader;

/// Minimum value of `header_bytes`: the HTTP/1 parser keeps a buffer of at least this size, so a
/// smaller limit would have no effect.
const HEADER_BYTES: u64 = 8192;
/// Maximum length of a config file, in bytes.
const CONFIG_BYTES: u64 = 1 << 20;

/// Reads a config file. Secrets are read from the sources that it references, relative paths are
/// resolved against the file's folder, and every file and folder that is named must exist.
///
/// # Errors
/// Returns all faults, in the order of the file.
pub fn load(path: &Path) -> Result<Config, Vec<Fault>> {
    load_in(path, &Machine, LoadScope::Upstreams)
}

/// Like [`load`], for a gate that serves traffic: a variable, secret or file that is missing for
/// one upstream is not an error but is listed in that upstream's faults.
///
/// # Errors
/// See [`load`].
pub fn load_to_run(path: &Path) -> Result<Config, Vec<Fault>> {
    let config = |root: &Table<'_>, reader: &Reader<'_>| config(root, reader, LoadScope::Upstreams);
    // If another error is fatal anyway, all faults are reported together.
    read_with(
        path,
        Reader::new(path, &Machine).isolating_upstreams(),
        config,
    )
    .or_else(|_| load(path))
}

/// Like [`load`], for callers that supply the server themselves: the file need not name an
/// upstream, and variables, secrets and files that are missing for the listener, for agents or for
/// an upstream are not an error.
///
/// # Errors
/// See [`load`].
pub fn load_policies(path: &Path) -> Result<Config, Vec<Fault>> {
    load_in(path, &Machine, LoadScope::Policies)
}

/// Reads only the sections of the admin port and of approvals: the rest need not be valid, nor
/// readable by the caller.
///
/// # Errors
/// Returns the faults in these two sections.
pub fn load_admin(path: &Path) -> Result<(Admin, ApprovalConfig), Vec<Fault>> {
    read(path, &Machine, |root, reader| {
        let listen = listen::listen(root, reader);
        (
            listen::admin(root, listen.address),
            approval::approval(root, reader),
        )
    })
}

/// Reads only what [`load_admin`] reads, and the listener for agents.
///
/// # Errors
/// Returns the faults in these sections.
pub fn load_listen(path: &Path) -> Result<(Listen, Admin, ApprovalConfig), Vec<Fault>> {
    read(path, &Machine, |root, reader| {
        let listen = listen::listen(root, reader);
        let admin = listen::admin(root, listen.address);
        (listen, admin, approval::approval(root, reader))
    })
}

/// Reads only the section of pins, like [`load_admin`].
///
/// # Errors
/// Returns the faults in that section.
pub fn load_pins(path: &Path) -> Result<PinsConfig, Vec<Fault>> {
    read(path, &Machine, pins::pins)
}

/// Reads only the sections of stored messages, like [`load_admin`].
///
/// # Errors
/// Returns the faults in these two sections.
pub fn load_stores(path: &Path) -> Result<(QuarantineConfig, EvidenceConfig), Vec<Fault>> {
    read(path, &Machine, |root, reader| {
        (
            stores::quarantine(root, reader),
            stores::evidence(root, reader),
        )
    })
}

/// Reads only the section of the audit log, like [`load_admin`].
///
/// # Errors
/// Returns the faults in that section.
pub fn load_audit(path: &Path) -> Result<AuditConfig, Vec<Fault>> {
    read(path, &Machine, audit::audit)
}

/// Reads only the path of the agents file, like [`load_admin`].
///
/// # Errors
/// Returns the faults in that section.
pub fn load_agents(path: &Path) -> Result<AgentsFile, Vec<Fault>> {
    read(path, &Machine, agents::file)
}

/// Reads only the section of logins at servers, like [`load_admin`].
///
/// # Errors
/// Returns the faults in that section.
pub fn load_oauth(path: &Path) -> Result<OAuthConfig, Vec<Fault>> {
    read(path, &Machine, oauth::oauth)
}

/// Reads only what [`load_oauth`] reads, and the transport of one upstream, if that is HTTP.
///
/// # Errors
/// Returns the faults in these two sections.
pub fn load_login(
    path: &Path,
    upstream: &str,
) -> Result<(OAuthConfig, Option<HttpTransport>), Vec<Fault>> {
    read(path, &Machine, |root, reader| {
        let upstream_table = root.table("upstream").and_then(|all| all.table(upstream));
        let transport =
            upstream_table.map(|table| upstream::upstream(&table, reader).config.transport);
        let http = transport.and_then(|transport| match transport {
            Transport::Http(http) | Transport::Sse(http) => Some(http),
            Transport::Stdio(_) => None,
        });
        (oauth::oauth(root, reader), http)
    })
}

/// The purpose for which a config file is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LoadScope {
    Upstreams,
    Policies,
}

/// What a config file may reference outside itself; by default, what is on this machine.
trait Environment {
    /// Returns an environment variable; `None` if it is not set or not UTF-8.
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    /// Returns the text of a file of at most `most` bytes.
    fn read(&self, path: &Path, most: u64) -> io::Result<String> {
        let mut text = String::new();
        std::fs::File::open(path)?
            .take(most + 1)
            .read_to_string(&mut text)?;
        check_length(text, most)
    }

    /// Runs a program and returns its output, up to [`guarded_secrets::VALUE_BYTES`], if it exits
    /// successfully within this time.
    fn run(&self, command: &[String], timeout: Duration) -> io::Result<String> {
        command_output::read_output(command, timeout, guarded_secrets::VALUE_BYTES)
    }

    fn is_file(&self, path: &Path) -> bool {
        path.is_file()
    }

    fn is_folder(&self, path: &Path) -> bool {
        path.is_dir()
    }
}

/// The machine that the gate runs on.
struct Machine;

impl Environment for Machine {}

fn check_length(text: String, most: u64) -> io::Result<String> {
    if text.len() as u64 > most {
        return Err(io::Error::other(format!("longer than {most} bytes")));
    }
    Ok(text)
}

fn load_in(
    path: &Path,
    environment: &dyn Environment,
    scope: LoadScope,
) -> Result<Config, Vec<Fault>> {
    let reader = Reader::new(path, environment);
    let reader = if scope == LoadScope::Policies {
        reader.isolating_upstreams()
    } else {
        reader
    };
    read_with(path, reader, |root, reader| config(root, reader, scope))
}

fn read<T>(
    path: &Path,
    environment: &dyn Environment,
    make: impl FnOnce(&Table<'_>, &Reader<'_>) -> T,
) -> Result<T, Vec<Fault>> {
    read_with(path, Reader::new(path, environment), make)
}

fn read_with<T>(
    path: &Path,
    reader: Reader<'_>,
    make: impl FnOnce(&Table<'_>, &Reader<'_>) -> T,
) -> Result<T, Vec<Fault>> {
    let file = path.display().to_string();
    let text = reader.config(path, CONFIG_BYTES).map_err(|error| {
        vec![Fault::of_file(
            &file,
            format!("cannot be read: {error}"),
            Some("pass another file with `--config FILE`"),
        )]
    })?;
    if let Some(fault) = foreign::check(&file, &text) {
        return Err(vec![fault]);
    }
    document::read(&file, &text, |root| Some(make(root, &reader)))
}

/// Reads all sections. Values with a fault are replaced by some value: once a fault is recorded,
/// the result is not used.
fn config(root: &Table<'_>, reader: &Reader<'_>, scope: LoadScope) -> Config {
    let read_listener = || {
        (
            listen::listen(root, reader),
            agents::agents(root, reader),
            agents::issuers(root, reader),
        )
    };
    let (listen, (agents, agents_file), issuers) = match scope {
        LoadScope::Upstreams => read_listener(),
        LoadScope::Policies => reader.collect_missing(read_listener).0,
    };
    let policies = read_named(root, "policy", |name, table| {
        policy::policy(name, table, reader)
    });
    let upstreams = read_named(root, "upstream", |_, table| {
        upstream::upstream(table, reader)
    });
    let names: Vec<&str> = upstreams
        .iter()
        .map(|(name, _)| name.value.as_str())
        .collect();
    let access = read_named(root, "access", |name, table| {
        access::access(name, table, &names)
    });
    let audit = audit::audit(root, reader);
    let admin = listen::admin(root, listen.address);
    let approval = approval::approval(root, reader);
    let notify = notify::notify(root, reader);
    let pins = pins::pins(root, reader);
    let oauth = oauth::oauth(root, reader);
    let quarantine = stores::quarantine(root, reader);
    let evidence = stores::evidence(root, reader);
    let otlp = otlp::otlp(root, reader);
    let limits = root
        .table("limits")
        .map_or_else(Limits::default, |table| limits(&table));
    root.finish();

    let mut policies: BTreeMap<String, PolicyConfig> = policies
        .into_iter()
        .map(|(name, policy)| (name.value, policy))
        .collect();
    policies.entry("default".to_owned()).or_default();
    let is_open = agents.is_empty() && agents_file.file.is_none() && issuers.is_empty();
    check_listener(root, &listen, is_open);
    agents::check_listener(root, &agents, &issuers, &listen);
    agents::check(root, &agents, &upstreams);
    policy::check(root, &policies, &upstreams);
    approval::check(root, &approval, &policies);
    if scope == LoadScope::Upstreams {
        suppress::check(root, &policies, &upstreams);
    }
    if upstreams.is_empty() && scope == LoadScope::Upstreams {
        let hint = "add `[upstream.NAME]` with `http`, `sse` or `stdio`";
        root.fault("no upstream is configured", Some(hint));
    }

    Config {
        listen,
        agents: agents.into_iter().map(|parsed| parsed.agent).collect(),
        agents_file,
        issuers,
        access: access
            .into_iter()
            .map(|(_, access)| Arc::new(access))
            .collect(),
        policies,
        upstreams: upstreams
            .into_iter()
            .map(|(name, parsed)| (name.value, parsed.config))
            .collect(),
        audit,
        admin,
        approval,
        notify,
        pins,
        oauth,
        quarantine,
        evidence,
        otlp,
        limits,
        path: Some(reader.config_file()),
        files: reader.files(),
    }
}

/// Reads every `[section.NAME]`, ordered by name.
fn read_named<T>(
    root: &Table<'_>,
    section: &str,
    read: impl Fn(&str, &Table<'_>) -> T,
) -> Vec<(Located<String>, T)> {
    let Some(all) = root.table(section) else {
        return Vec::new();
    };
    let mut out = Vec::new();
    for name in all.sorted_keys() {
        values::check_name(&all, &name, section);
        if let Some(table) = all.table(&name.value) {
            let value = read(&name.value, &table);
            table.finish();
            out.push((name, value));
        }
    }
    out
}

fn check_listener(root: &Table<'_>, listen: &Listen, no_callers: bool) {
    if listen.address.ip().to_canonical().is_loopback() || !no_callers || listen.allow_anyone {
        return;
    }
    let message = format!(
        "`{}` is reachable from other machines, and callers are not authenticated",
        listen.address
    );
    let hint = "add agents with tokens (`[[agent]]`), listen on 127.0.0.1, or set `allow_unauthenticated_agents_off_loopback = true`";
    root.fault_at_key("listen", message, Some(hint));
}

fn limits(table: &Table<'_>) -> Limits {
    let base = Limits::default();
    let count = |key: &str, range, base| table.count(key, range, base);
    let seconds = |key: &str, most: u64, base| table.duration(key, 1..=most, base);
    let limits = Limits {
        read: ReadLimits {
            message_bytes: count("message_bytes", 1024..=1 << 30, base.read.message_bytes),
            strings_per_message: count(
                "strings_per_message",
                100..=100_000_000,
                base.read.strings_per_message,
            ),
            depth: count("depth", 8..=1024, base.read.depth),
            batch_items: count("batch_items", 1..=1_000_000, base.read.batch_items),
            values_per_message: count(
                "values_per_message",
                100..=200_000_000,
                base.read.values_per_message,
            ),
        },
        work: WorkLimits {
            unpacked_bytes: count(work::UNPACKED, 1024..=1 << 30, base.work.unpacked_bytes),
            judged_bytes: count(work::JUDGED, 1024..=1 << 32, base.work.judged_bytes),
        },
        judging: table.duration("judging_milliseconds", 1..=600_000, base.judging),
        header_bytes: count("header_bytes", HEADER_BYTES..=1 << 20, base.header_bytes),
        connections: count("connections", 1..=1_000_000, base.connections),
        unauthenticated_connections: count(
            "unauthenticated_connections",
            1..=1_000_000,
            base.unauthenticated_connections,
        ),
        connections_per_address: table
            .integer("connections_per_address", 1..=1_000_000)
            .map(|n| usize::try_from(n).unwrap_or(usize::MAX)),
        admin_connections: count("admin_connections", 4..=10_000, base.admin_connections),
        wrong_tokens_per_minute: count(
            "wrong_tokens_per_minute",
            1..=10_000,
            base.wrong_tokens_per_minute,
        ),
        verified_tokens: count("verified_tokens", 0..=100_000, base.verified_tokens),
        clean_texts: count("clean_texts", 0..=10_000_000, base.clean_texts),
        bytes_in_flight: count("bytes_in_flight", 1024..=1 << 40, base.bytes_in_flight),
        bytes_in_flight_per_agent: count(
            "bytes_in_flight_per_agent",
            1024..=1 << 40,
            base.bytes_in_flight_per_agent,
        ),
        calls_per_agent: count("calls_per_agent", 1..=1_000_000, base.calls_per_agent),
        calls_per_upstream: count("calls_per_upstream", 1..=1_000_000, base.calls_per_upstream),
        calls: calls::call_limits(table),
        sessions: count("sessions", 1..=10_000_000, base.sessions),
        session_idle: seconds("session_idle_seconds", 30 * 86_400, base.session_idle),
        stream_idle: seconds("stream_idle_seconds", 7 * 86_400, base.stream_idle),
        keep_alive: table.duration("keep_alive_seconds", 0..=3600, base.keep_alive),
        request_read: seconds("request_read_seconds", 3600, base.request_read),
        children_per_upstream: count(
            "children_per_upstream",
            1..=10_000,
            base.children_per_upstream,
        ),
        queued_messages: count("queued_messages", 1..=1_000_000, base.queued_messages),
        pending_approvals: count("pending_approvals", 1..=10_000, base.pending_approvals),
        pending_approval_bytes: count(
            "pending_approval_bytes",
            1024..=1 << 30,
            base.pending_approval_bytes,
        ),
        pinned_definitions: count("pinned_definitions", 1..=1_000_000, base.pinned_definitions),
        pinned_definition_bytes: count(
            "pinned_definition_bytes",
            1024..=1 << 30,
            base.pinned_definition_bytes,
        ),
        repeated_refusals: count("repeated_refusals", 2..=10_000, base.repeated_refusals),
        repeated_refusal: seconds("repeated_refusal_seconds", 86_400, base.repeated_refusal),
        flow: TaintLimits {
            pieces: count("flow_pieces", 1000..=10_000_000, base.flow.pieces),
            quarantined: count(
                "flow_quarantined_pieces",
                100..=100_000,
                base.flow.quarantined,
            ),
            message_bytes: count(
                "flow_message_bytes",
                1024..=1 << 30,
                base.flow.message_bytes,
            ),
            age: seconds("flow_age_seconds", 30 * 86_400, base.flow.age),
        },
        stored_results: StoredResultLimits {
            count: count("kept_results", 0..=100_000, base.stored_results.count),
            bytes: count(
                "kept_result_bytes",
                1024..=1 << 32,
                base.stored_results.bytes,
            ),
            age: seconds("kept_result_seconds", 86_400, base.stored_results.age),
        },
        drain: seconds("drain_seconds", 3600, base.drain),
    };
    for (key, limit) in [
        ("bytes_in_flight", limits.bytes_in_flight),
        (
            "bytes_in_flight_per_agent",
            limits.bytes_in_flight_per_agent,
        ),
    ] {
        if limit < limits.read.message_bytes {
            let message = format!("`{key}` is less than `message_bytes`");
            let hint = "no message of that size could pass";
            table.fault(message, Some(hint));
        }
    }
    table.finish();
    limits
}

#[cfg(test)]
mod tests;
