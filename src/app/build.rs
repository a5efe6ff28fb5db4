//! From the config to policies.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use crate::config::{Config, Keeps, Suppression};
use crate::document::Fault;
use crate::inspect::{Mode, Policy};
use crate::message::Direction;
use crate::protocol::UpstreamName;
use crate::proxy::Policies;
use crate::record::kept::Stores;
use crate::record::{InForce, Recorder};
use crate::rules::Library;

/// Compiles the policies of a config, for each upstream its own. Rule folders that several policies share are read once.
///
/// # Errors
/// Every fault of every rule file and override.
pub fn policies(config: &Config) -> Result<Policies, Vec<Fault>> {
    let mut faults = Vec::new();
    let mut libraries: HashMap<(bool, Vec<PathBuf>), Option<Library>> = HashMap::new();
    let mut compiled: BTreeMap<&str, Arc<Policy>> = BTreeMap::new();
    for (name, policy) in &config.policies {
        let key = (policy.builtin, policy.rules.clone());
        let library = libraries
            .entry(key)
            .or_insert_with(|| Library::load(policy.builtin, &policy.rules).map_err(|more| faults.extend(more)).ok());
        let Some(library) = library else { continue };
        match Policy::new(name, policy, library) {
            Ok(policy) => {
                compiled.insert(name, Arc::new(policy));
            }
            Err(more) => faults.extend(more),
        }
    }
    let mut out = Policies::new();
    for (name, upstream) in &config.upstreams {
        match compiled.get(upstream.policy.as_str()) {
            Some(policy) => {
                let mut policy = match config.policies.get(&upstream.policy) {
                    Some(of_all) => policy.for_upstream(name, of_all, upstream),
                    None => Policy::clone(policy),
                };
                if let Some(enforce) = upstream.enforce {
                    policy.mode = if enforce { Mode::Enforce } else { Mode::Observe };
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
    if faults.is_empty() { Ok(out) } else { Err(faults) }
}

/// Opens the stores for what is kept of messages, and says where they are.
///
/// # Errors
/// One of them cannot be used as it is, or a policy keeps evidence and there is no folder for it.
pub fn stores(config: &Config) -> Result<Stores, Vec<Fault>> {
    let sealed = config.policies.iter().find(|(_, policy)| policy.evidence == Keeps::Sealed);
    if let (Some((name, _)), None) = (sealed, &config.evidence.folder) {
        let hint = "name a folder: `folder` under `[evidence]`";
        let text = format!("`policy.{name}` keeps messages sealed, and there is no folder for them");
        return Err(vec![Fault::of_file("evidence", text, Some(hint))]);
    }
    let mut evidence = config.evidence.clone();
    evidence.folder = evidence.folder.filter(|_| sealed.is_some());
    let stores = Stores::open(&config.quarantine, &evidence);
    let stores = stores.map_err(|error| vec![Fault::of_file("kept messages", error.to_string(), None)])?;
    match &stores.quarantine {
        Some(quarantine) => {
            tracing::info!(folder = %quarantine.path().display(), "what is taken out of messages is kept, sealed")
        }
        None if !config.quarantine.enabled => {
            tracing::info!("what is taken out of messages is not kept: `enabled` under `[quarantine]`")
        }
        None => tracing::warn!(
            "what is taken out of messages is not kept: there is no folder for it, name one: `folder` under `[quarantine]`"
        ),
    }
    if let Some(evidence) = &stores.evidence {
        tracing::info!(folder = %evidence.path().display(), "whole messages are kept, sealed");
    }
    Ok(stores)
}

/// Lets the counters of every rule in force begin at zero.
pub(super) fn announce(recorder: &Recorder, policies: &Policies) {
    let in_force: Vec<InForce<'_>> = policies
        .iter()
        .map(|(upstream, policy)| InForce {
            upstream,
            mode: policy.mode,
            outbound: policy.rules(Direction::Outbound),
            inbound: policy.rules(Direction::Inbound),
        })
        .collect();
    recorder.rules_in_force(&in_force);
    recorder.suppressions(&suppressions(policies));
}

/// Every suppression of these policies once.
pub fn suppressions(policies: &Policies) -> Vec<Arc<Suppression>> {
    let mut all: Vec<Arc<Suppression>> = Vec::new();
    for one in policies.values().flat_map(|policy| policy.suppressions().iter()) {
        if !all.iter().any(|known| Arc::ptr_eq(known, one)) {
            all.push(one.clone());
        }
    }
    all.sort_by_key(|one| one.place.clone());
    all
}

/// Those whose time is over, in sentences.
pub fn expired(policies: &Policies, now: SystemTime) -> Vec<String> {
    let over = |one: &Arc<Suppression>| {
        let (file, line, column) = &one.place;
        let ended = one.until.ends <= now;
        let what = format!(
            "{file}:{line}:{column}: a suppression has ended on {} and has no effect: {}",
            one.until.written,
            one.named()
        );
        ended.then_some(what)
    };
    suppressions(policies).iter().filter_map(over).collect()
}
