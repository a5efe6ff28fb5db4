//! From the config to policies.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use crate::config::Config;
use crate::document::Fault;
use crate::inspect::{Mode, Policy};
use crate::message::Direction;
use crate::protocol::UpstreamName;
use crate::proxy::Policies;
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
                    Some(of_all) => policy.for_upstream(of_all, upstream),
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
}
