//! Builds policies, stores and upstreams from the config.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use http::Uri;

use crate::config::{
    AuditTo, Config, EvidenceLevel, Limits, PinsConfig, Suppression, Transport, UpstreamConfig,
};
use crate::detect::path::GateFiles;
use crate::document::Fault;
use crate::inspect::{Mode, Policy};
use crate::message::Direction;
use crate::oauth::Shared;
use crate::protocol::UpstreamName;
use crate::proxy::Policies;
use crate::record::stores::{StoreError, Stores};
use crate::record::{Recorder, UpstreamRules};
use crate::rules::Library;
use crate::seal::{SealError, check_writable, state_folder};
use crate::upstream::Upstream;

/// Hint for a folder of stored messages that cannot be used.
const STORE_HINT: &str = "let this user enter and write the folder, or set `folder` under `[quarantine]` and `[evidence]`, or \
                         `XDG_STATE_HOME`, to one that it can";

/// Compiles the policies of a config, one for each upstream. Rule folders that several policies
/// share are read once.
///
/// # Errors
/// All faults of all rule files and overrides.
pub fn policies(config: &Config) -> Result<Policies, Vec<Fault>> {
    let mut faults = Vec::new();
    let mut libraries: HashMap<(bool, Vec<PathBuf>), Option<Library>> = HashMap::new();
    let own_files = gate_files(config);
    let mut compiled: BTreeMap<&str, Arc<Policy>> = BTreeMap::new();
    for (name, policy) in &config.policies {
        let key = (policy.builtin, policy.rules.clone());
        let library = libraries.entry(key).or_insert_with(|| {
            Library::load(policy.builtin, &policy.rules)
                .map_err(|more| faults.extend(more))
                .ok()
        });
        let Some(library) = library else { continue };
        match Policy::new(name, policy, library) {
            Ok(policy) => {
                compiled.insert(name, Arc::new(policy.with_gate_files(own_files.clone())));
            }
            Err(more) => faults.extend(more),
        }
    }
    let mut out = Policies::new();
    for (name, upstream) in &config.upstreams {
        match compiled.get(upstream.policy.as_str()) {
            Some(policy) => {
                let mut policy = match config.policies.get(&upstream.policy) {
                    Some(policy_config) => policy.for_upstream(name, policy_config, upstream),
                    None => Policy::clone(policy),
                };
                if let Some(enforce) = upstream.enforce {
                    policy.mode = if enforce {
                        Mode::Enforce
                    } else {
                        Mode::Observe
                    };
                }
                out.insert(UpstreamName(name.as_str().into()), Arc::new(policy));
            }
            None if faults.is_empty() => {
                faults.push(Fault::of_file(
                    format!("upstream.{name}"),
                    format!("there is no policy `{}`", upstream.policy),
                    None,
                ));
            }
            None => {}
        }
    }
    if faults.is_empty() {
        Ok(out)
    } else {
        Err(faults)
    }
}

/// Returns the files and folders of a gate with this config, which agents must not change or, where
/// they contain keys, read.
pub fn gate_files(config: &Config) -> GateFiles {
    let Config {
        path,
        policies,
        agents_file,
        audit,
        pins,
        approval,
        oauth,
        quarantine,
        evidence,
        ..
    } = config;
    let rules = policies.values().flat_map(|policy| policy.rules.clone());
    let audit = match &audit.to {
        Some(AuditTo::File(file)) => Some(file.clone()),
        _ => None,
    };
    let told = [
        path.clone(),
        agents_file.file.clone(),
        audit,
        pins.file.clone(),
        approval.file.clone(),
    ];
    let kept = [
        state_folder(),
        approval.token_file.clone(),
        oauth.vault.clone(),
        quarantine.folder.clone(),
        evidence.folder.clone(),
    ];
    let told: Vec<PathBuf> = told.into_iter().flatten().chain(rules).collect();
    let kept: Vec<PathBuf> = kept.into_iter().flatten().collect();
    GateFiles::new(&told, &kept)
}

/// Builds an upstream. One that cannot be used as configured is down with the reason, and the
/// others are not affected.
pub(super) fn upstream(
    name: &UpstreamName,
    config: &UpstreamConfig,
    limits: &Limits,
    logins: Option<&Arc<Shared>>,
) -> Upstream {
    if !config.faults.is_empty() {
        return Upstream::faulty(reason(&config.faults));
    }
    Upstream::new(name.clone(), config, limits, logins)
        .unwrap_or_else(|fault| Upstream::faulty(reason(&[fault])))
}

/// Returns what is wrong, where, and how to fix it, on one line.
fn reason(faults: &[Fault]) -> String {
    let sentence = |fault: &Fault| {
        let hint = fault
            .hint
            .as_ref()
            .map(|hint| format!("; {hint}"))
            .unwrap_or_default();
        let place = if fault.line > 0 {
            format!(" ({}:{}:{})", fault.file, fault.line, fault.column)
        } else {
            String::new()
        };
        format!("{}{hint}{place}", fault.message)
    };
    faults.iter().map(sentence).collect::<Vec<_>>().join(". ")
}

/// Opens the stores for messages, and logs where they are.
///
/// # Errors
/// A store cannot be used, or a policy stores evidence and there is no folder for it.
pub fn stores(config: &Config) -> Result<Stores, Vec<Fault>> {
    let sealed = config
        .policies
        .iter()
        .find(|(_, policy)| policy.evidence == EvidenceLevel::Sealed);
    if let (Some((name, _)), None) = (sealed, &config.evidence.folder) {
        let hint = "name a folder: `folder` under `[evidence]`";
        let text = format!("`policy.{name}` stores sealed evidence, but no evidence folder is set");
        return Err(vec![Fault::of_file("evidence", text, Some(hint))]);
    }
    let mut evidence = config.evidence.clone();
    evidence.folder = evidence.folder.filter(|_| sealed.is_some());
    let stores = Stores::open(&config.quarantine, &evidence);
    let stores = stores.map_err(|error| {
        // Other errors have a hint of their own.
        let hint = matches!(
            error,
            StoreError::Place {
                error: SealError::Io { .. },
                ..
            }
        )
        .then_some(STORE_HINT);
        vec![Fault::of_file("kept messages", error.to_string(), hint)]
    })?;
    match &stores.quarantine {
        Some(quarantine) => {
            if is_writable(
                "the quarantine",
                quarantine.path(),
                "`folder` under `[quarantine]`",
            ) {
                tracing::info!(folder = %quarantine.path().display(), "quarantine enabled");
            }
        }
        None if !config.quarantine.enabled => {
            tracing::info!("quarantine disabled by `enabled` under `[quarantine]`")
        }
        None => tracing::warn!(
            "quarantine disabled: no state folder; set `folder` under `[quarantine]`"
        ),
    }
    if let Some(evidence) = &stores.evidence
        && is_writable(
            "the evidence store",
            evidence.path(),
            "`folder` under `[evidence]`",
        )
    {
        tracing::info!(folder = %evidence.path().display(), "evidence store enabled");
    }
    Ok(stores)
}

/// Reports whether `path` can be written. If not, logs a warning with the fix, since the problem
/// would otherwise be noticed only when content is lost.
fn is_writable(subject: &str, path: &Path, option: &str) -> bool {
    let Err((nearest, error)) = check_writable(path) else {
        return true;
    };
    tracing::warn!(
        path = %path.display(),
        %error,
        "{subject} cannot be written: `{}` is not writable for this user, so it stores nothing; set {option}, or `XDG_STATE_HOME`, \
         to a folder that this user can write to",
        nearest.display()
    );
    false
}

/// Warns if pins are lost when the process ends although the config does not ask for that.
pub(super) fn check_pins(pins: &PinsConfig) {
    match &pins.file {
        Some(file) => {
            is_writable("the lock file", file, "`file` under `[pins]`");
        }
        None if pins.persistent => tracing::warn!(
            "definitions are pinned in memory only: there is no state folder; set `file` under `[pins]`, or `XDG_STATE_HOME`"
        ),
        None => {}
    }
}

/// Returns a sentence for each upstream whose traffic to another machine is not encrypted.
pub fn unencrypted(config: &Config) -> Vec<String> {
    let warning_for = |(name, upstream): (&String, &UpstreamConfig)| {
        let (Transport::Http(http) | Transport::Sse(http)) = &upstream.transport else {
            return None;
        };
        let url = http
            .url
            .parse::<Uri>()
            .ok()
            .filter(|url| url.scheme_str() == Some("http"))?;
        let host = url.host().filter(|host| !is_this_machine(host))?;
        Some(format!(
            "`upstream.{name}` sends to `http://{host}` without encryption: anyone on the network path can read and change \
             messages and tokens; use an `https://` URL, or a tunnel that ends on 127.0.0.1"
        ))
    };
    config.upstreams.iter().filter_map(warning_for).collect()
}

/// Reports whether a host is reached without leaving this machine.
fn is_this_machine(host: &str) -> bool {
    let name = host
        .trim_matches(['[', ']'])
        .trim_end_matches('.')
        .to_ascii_lowercase();
    // The last two are names that a container has for its host.
    name == "localhost"
        || name.ends_with(".localhost")
        || matches!(
            name.as_str(),
            "host.docker.internal" | "host.containers.internal"
        )
        || name
            .parse::<IpAddr>()
            .is_ok_and(|address| address.to_canonical().is_loopback())
}

/// Creates the counters of every rule in force, at zero.
pub(super) fn announce(recorder: &Recorder, policies: &Policies) {
    let in_force: Vec<UpstreamRules<'_>> = policies
        .iter()
        .map(|(upstream, policy)| UpstreamRules {
            upstream,
            mode: policy.mode,
            outbound: policy.rules(Direction::Outbound),
            inbound: policy.rules(Direction::Inbound),
        })
        .collect();
    recorder.announce_rules(&in_force);
    recorder.set_suppressions(&suppressions(policies));
}

/// Returns every suppression of these policies once.
pub fn suppressions(policies: &Policies) -> Vec<Arc<Suppression>> {
    let mut all: Vec<Arc<Suppression>> = Vec::new();
    for suppression in policies
        .values()
        .flat_map(|policy| policy.suppressions().iter())
    {
        if !all.iter().any(|other| Arc::ptr_eq(other, suppression)) {
            all.push(suppression.clone());
        }
    }
    all.sort_by_key(|suppression| suppression.place.clone());
    all
}

/// Returns a sentence for each expired suppression.
pub fn expired(policies: &Policies, now: SystemTime) -> Vec<String> {
    let expiry_warning = |one: &Arc<Suppression>| {
        let (file, line, column) = &one.place;
        let is_expired = one.until.end <= now;
        let text = format!(
            "{file}:{line}:{column}: suppression expired on {} and has no effect: {}",
            one.until.text,
            one.describe()
        );
        is_expired.then_some(text)
    };
    suppressions(policies)
        .iter()
        .filter_map(expiry_warning)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::HttpTransport;

    #[test]
    fn plain_http_to_another_machine_is_reported() {
        for (url, is_reported) in [
            ("http://mcp.example.org/mcp", true),
            ("http://10.0.0.7:3000/mcp", true),
            ("http://localhost.example.org/mcp", true),
            ("https://mcp.example.org/mcp", false),
            ("http://localhost:3000/mcp", false),
            ("http://127.0.0.1:3000/mcp", false),
            ("http://[::1]:3000/mcp", false),
            ("http://host.docker.internal:3001/mcp", false),
        ] {
            let mut config = Config::default();
            let transport = Transport::Http(HttpTransport::new(url.to_owned()));
            config
                .upstreams
                .insert("far".to_owned(), UpstreamConfig::new(transport));
            let reported = unencrypted(&config);
            assert_eq!(!reported.is_empty(), is_reported, "{url}: {reported:?}");
        }
    }

    /// Opens the stores of a config with this folder for the quarantine, and returns the result and
    /// the log.
    fn opened(folder: PathBuf) -> (Result<Stores, Vec<Fault>>, String) {
        let log = tempfile::NamedTempFile::new().unwrap();
        let writer = std::sync::Mutex::new(log.reopen().unwrap());
        let subscriber = tracing_subscriber::fmt()
            .with_writer(writer)
            .with_ansi(false)
            .finish();
        let mut config = Config::default();
        config.quarantine.folder = Some(folder);
        let result = tracing::subscriber::with_default(subscriber, || stores(&config));
        (result, std::fs::read_to_string(log.path()).unwrap())
    }

    #[test]
    fn a_quarantine_that_cannot_be_written_is_a_warning_with_the_fix() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let (result, log) = opened(file.join("quarantine"));
        assert!(
            result.is_ok() && log.contains("WARN") && !log.contains("quarantine enabled"),
            "{log}"
        );
        assert_contains!(
            log,
            "the quarantine cannot be written",
            &*file.display().to_string(),
            "`folder` under `[quarantine]`"
        );
        let (result, log) = opened(folder.path().join("quarantine"));
        assert!(
            result.is_ok() && log.contains("quarantine enabled") && !log.contains("WARN"),
            "{log}"
        );
    }

    #[test]
    fn a_quarantine_that_cannot_be_looked_at_is_an_error_with_a_hint() {
        let folder = tempfile::tempdir().unwrap();
        // A name that is too long fails for root, too.
        let (result, _) = opened(folder.path().join("q".repeat(300)));
        let message = result.unwrap_err().remove(0).to_string();
        assert_contains!(
            message,
            "kept messages",
            "hint: let this user enter and write"
        );
        let open = folder.path().join("open");
        std::fs::create_dir(&open).unwrap();
        std::fs::set_permissions(&open, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .unwrap();
        let message = opened(open).0.unwrap_err().remove(0).to_string();
        assert_eq!(message.matches("hint: ").count(), 1, "{message}");
    }
}
