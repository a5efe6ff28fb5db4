//! Shared by the commands that review the past: the policies of a config, its audit log, and its
//! stored messages.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use super::config_file::ConfigArg;
use crate::app;
use crate::config::{self, AuditTo, Config};
use crate::document::Fault;
use crate::inspect::Policy;
use crate::protocol::AuditId;
use crate::record::entry::member;
use crate::record::stores::{Records, StoredMessage, Stores};
use crate::review::{Entry, PolicySet};
use crate::rules::Library;
use crate::seal::state_folder;

/// Maximum number of stored messages that are read ahead.
const MAX_READ_AHEAD: usize = 64;

/// Opens the stores of a config.
pub(super) fn stores(config: &Config) -> Result<Stores, String> {
    Stores::open(&config.quarantine, &config.evidence).map_err(|error| error.to_string())
}

/// Returns the audit id of a line.
pub(super) fn id(entry: &Entry) -> Option<AuditId> {
    uuid::Uuid::try_parse(&entry.get(member::audit)?)
        .ok()
        .map(AuditId)
}

/// Loads the given or default config file, or the default config if there is none.
pub(super) fn config(file: &ConfigArg) -> Result<Config, Vec<Fault>> {
    let mut config = match file.find_if_any() {
        Some(path) => config::load_policies(&path)?.with_default_folders(state_folder()),
        None => Config::default().with_default_folders(state_folder()),
    };
    config.policies.entry("default".to_owned()).or_default();
    Ok(config)
}

/// Returns the policies of a config, and the named one for upstreams that are not in it.
pub(super) fn policy_set(config: &Config, policy: &str) -> Result<PolicySet, Vec<Fault>> {
    let named = app::policies(config)?;
    let Some(other) = config.policies.get(policy) else {
        return Err(vec![Fault::of_file(
            "--policy",
            format!("there is no `[policy.{policy}]`"),
            None,
        )]);
    };
    let library = Library::load(other.builtin, &other.rules)?;
    Ok(PolicySet {
        by_upstream: named,
        fallback: Some(Arc::new(Policy::new(policy, other, &library)?)),
    })
}

/// Returns the path of the audit log: the given file, or that of the config.
pub(super) fn log(given: Option<&Path>, config: &Config) -> Result<PathBuf, String> {
    match (given, &config.audit.to) {
        (Some(file), _) => Ok(file.to_owned()),
        (None, Some(AuditTo::File(file))) => Ok(file.clone()),
        (None, _) => {
            Err("no audit log configured\n  hint: pass `--log FILE`, or the gate's config with `--config FILE`".to_owned())
        }
    }
}

/// Returns the entire message of a judgement if it was stored as evidence or in quarantine. Access
/// to the quarantine is recorded there.
pub(super) fn stored_message(stores: &Stores, audit: AuditId) -> Result<Option<Bytes>, String> {
    let evidence = stores
        .evidence
        .as_ref()
        .map(|evidence| evidence.get(audit))
        .transpose();
    let stored = match evidence.map_err(|error| error.to_string())?.flatten() {
        Some(kept) => Some(kept),
        None => {
            let lookup = stores
                .quarantine
                .as_ref()
                .map(|quarantine| quarantine.get(audit))
                .transpose();
            let quarantined = lookup.map_err(|error| error.to_string())?.flatten();
            if let (Some(quarantine), Some(kept)) = (&stores.quarantine, &quarantined) {
                let actor = super::quarantine::current_actor(Some("explain".to_owned()));
                quarantine
                    .note_shown(kept, actor)
                    .map_err(|error| error.to_string())?;
            }
            quarantined
        }
    };
    Ok(stored.map(|kept| kept.message))
}

/// Reads messages stored as evidence, for callers that ask in the order of the log.
pub(super) struct EvidenceReader<'s> {
    records: Option<Records<'s>>,
    /// Messages that were read ahead: those judged concurrently may be stored
    /// in a different order.
    read_ahead: VecDeque<StoredMessage>,
}

impl<'s> EvidenceReader<'s> {
    /// Reads from the oldest message on.
    pub(super) fn open(stores: &'s Stores) -> Result<Self, String> {
        let records = stores
            .evidence
            .as_ref()
            .map(|evidence| evidence.iter())
            .transpose();
        Ok(Self {
            records: records.map_err(|error| error.to_string())?,
            read_ahead: VecDeque::new(),
        })
    }

    /// Returns the message of this judgement, if it was stored.
    pub(super) fn get(&mut self, audit: AuditId) -> Option<Bytes> {
        if let Some(found) = self.read_ahead.iter().find(|kept| kept.audit == audit) {
            return Some(found.message.clone());
        }
        // Ids begin with the time, so messages much later than the requested one need not be read
        // yet.
        let count_later = |early: &VecDeque<StoredMessage>| {
            early.iter().filter(|kept| kept.audit.0 > audit.0).count()
        };
        while count_later(&self.read_ahead) < MAX_READ_AHEAD / 2 {
            let stored = match self.records.as_mut()?.next()? {
                Ok(kept) => kept,
                // A message that cannot be decrypted is treated as not stored.
                Err(_) => continue,
            };
            let message = (stored.audit == audit).then(|| stored.message.clone());
            self.read_ahead.push_back(stored);
            if self.read_ahead.len() > MAX_READ_AHEAD {
                self.read_ahead.pop_front();
            }
            if message.is_some() {
                return message;
            }
        }
        None
    }
}
