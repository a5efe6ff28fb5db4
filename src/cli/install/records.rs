//! The records of all clients: which file uses which upstream of the gate's config.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::client::ConfigFile;
use super::files::remove_if_exists;
use super::gate::GateConfig;
use super::move_record::{MoveRecord, MovedServer, digest};
use super::server::GateEntry;

/// All records, by their path.
pub(super) struct Records {
    folder: PathBuf,
    by_path: BTreeMap<PathBuf, MoveRecord>,
    /// Paths of the records that took over an upstream and are not yet written.
    unwritten: BTreeSet<PathBuf>,
}

/// What remains to be done after servers are removed from the gate's config.
#[derive(Default)]
pub(super) struct Leftovers {
    /// Files that are no longer needed.
    pub(super) secrets: Vec<PathBuf>,
    /// Upstreams that somebody has changed since.
    pub(super) changed_upstreams: Vec<String>,
}

impl Leftovers {
    /// Removes the unneeded files, and their folder with the last one.
    ///
    /// # Errors
    /// A file cannot be removed.
    pub(super) fn remove_secrets(&self, gate: &GateConfig) -> io::Result<()> {
        for secret in self
            .secrets
            .iter()
            .filter(|secret| gate.secrets.iter().all(|(path, _)| path != *secret))
        {
            remove_if_exists(secret)?;
            // Fails if the folder still contains files that others need.
            drop(secret.parent().map(fs::remove_dir));
        }
        Ok(())
    }
}

impl Records {
    /// # Errors
    /// A record cannot be read.
    pub(super) fn read(folder: &Path) -> io::Result<Self> {
        let mut by_path = BTreeMap::new();
        let entries = match fs::read_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            entries => Some(entries?),
        };
        for place in entries
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
        {
            if place
                .extension()
                .is_some_and(|extension| extension == "json")
                && let Some(moved) = MoveRecord::read(&place)?
            {
                by_path.insert(place, moved);
            }
        }
        Ok(Self {
            folder: folder.to_owned(),
            by_path,
            unwritten: BTreeSet::new(),
        })
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&PathBuf, &MoveRecord)> {
        self.by_path.iter()
    }

    pub(super) fn get(&self, place: &Path) -> Option<&MoveRecord> {
        self.by_path.get(place)
    }

    /// Returns the path of the record for a client's file.
    pub(super) fn place(&self, file: &ConfigFile) -> PathBuf {
        let hash = digest(file.path.as_os_str().as_encoded_bytes());
        self.folder.join(format!(
            "{}-{}.json",
            file.client.name(),
            hash.get(..12).unwrap_or_default()
        ))
    }

    /// Returns the data that identifies entries that lead to the gate.
    pub(super) fn gate_entry(&self, gate: &GateConfig, program: &str) -> GateEntry {
        let targets = self
            .by_path
            .values()
            .flat_map(|moved| &moved.servers)
            .map(|server| server.led.clone());
        GateEntry {
            base: gate.base_url(),
            program: program.to_owned(),
            moved_targets: targets.filter(|written| !written.is_empty()).collect(),
        }
    }

    /// Reports whether any record leads to this config of the gate.
    pub(super) fn leads_to(&self, gate: &Path) -> bool {
        self.by_path
            .values()
            .any(|moved| moved.gate.as_deref() == Some(gate))
    }

    /// Returns the initial text of this config of the gate, if `install` created it.
    pub(super) fn base(&self, gate: &Path) -> Option<String> {
        let mut of_gate = self
            .by_path
            .values()
            .filter(|moved| moved.gate.as_deref() == Some(gate));
        of_gate.find_map(|moved| moved.base.clone())
    }

    /// Sets the record to be written next.
    pub(super) fn set(&mut self, place: &Path, moved: MoveRecord) {
        self.by_path.insert(place.to_owned(), moved);
    }

    pub(super) fn take(&mut self, place: &Path) -> Option<MoveRecord> {
        self.by_path.remove(place)
    }

    /// Removes from the gate's config a server that no record contains any more. If another client
    /// uses the same upstream, the upstream stays, and that client's record takes it over for later
    /// removal.
    pub(super) fn release(
        &mut self,
        server: &MovedServer,
        gate: &mut GateConfig,
        leftovers: &mut Leftovers,
    ) {
        if server.block.is_empty() {
            return;
        }
        let name = server.upstream.as_deref().unwrap_or_default();
        let of_this_gate = self
            .by_path
            .iter_mut()
            .filter(|(_, moved)| moved.gate.as_ref() == Some(&gate.path));
        let mut heirs = of_this_gate
            .flat_map(|(place, moved)| moved.servers.iter_mut().map(move |server| (place, server)));
        if let Some((place, heir)) = heirs.find(|(_, heir)| heir.upstream.as_deref() == Some(name))
        {
            if heir.block.is_empty() {
                (heir.block, heir.secrets) = (server.block.clone(), server.secrets.clone());
                self.unwritten.insert(place.clone());
            }
        } else if gate.remove(&server.block) || !gate.has(name) {
            leftovers.secrets.extend(server.secrets.iter().cloned());
        } else {
            leftovers.changed_upstreams.push(name.to_owned());
        }
    }

    /// Writes the record that was set.
    ///
    /// # Errors
    /// The record cannot be written.
    pub(super) fn write(&mut self, place: &Path) -> io::Result<()> {
        self.unwritten.remove(place);
        self.by_path
            .get(place)
            .map_or(Ok(()), |moved| moved.write(place))
    }

    /// Records that the upstreams of dropped servers have been removed.
    ///
    /// # Errors
    /// The record cannot be written.
    pub(super) fn forget_dropped(&mut self, place: &Path) -> io::Result<()> {
        match self
            .by_path
            .get_mut(place)
            .filter(|moved| !moved.dropped.is_empty())
        {
            Some(moved) => {
                moved.dropped.clear();
                moved.write(place)
            }
            None => Ok(()),
        }
    }

    /// Writes the records that took over an upstream, before the record of the previous owner is
    /// removed.
    ///
    /// # Errors
    /// A record cannot be written.
    pub(super) fn write_unwritten(&mut self) -> io::Result<()> {
        while let Some(place) = self.unwritten.pop_first() {
            self.by_path
                .get(&place)
                .map_or(Ok(()), |moved| moved.write(&place))?;
        }
        Ok(())
    }
}
