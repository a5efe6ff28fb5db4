//! Assigns the names of servers at the gate: in the audit log, metrics and pins, and in the gate's
//! URLs.
//!
//! A server keeps the name that its client gives it. For a server of a project, the name includes
//! the folder of the project, so that two projects with a server `db` do not share pins and audit
//! log lines. If a server in another file has the same name, the name of the client is appended,
//! then a digest. Assigned names are recorded, so that they remain the same in later runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::client::ConfigFile;
use super::gate::{GateConfig, sanitize_name};
use super::move_record::{MovedServer, digest};
use super::records::Records;
use super::server::Server;

/// Maximum lengths of the parts of a name, in characters: a name with all parts and a number is
/// still valid.
const NAME_CHARACTERS: usize = 24;
const FOLDER_CHARACTERS: usize = 16;

/// The names in use, with the file and the keys of the server that has each.
pub(super) struct Names {
    used: BTreeMap<String, (PathBuf, Vec<String>)>,
}

impl Names {
    /// Collects the names from all records.
    pub(super) fn read(records: &Records) -> Self {
        let mut used = BTreeMap::new();
        for (_, moved) in records.iter() {
            for server in &moved.servers {
                for name in server.wrap_name.iter().chain(&server.upstream) {
                    used.entry(name.clone())
                        .or_insert_with(|| (moved.file.clone(), server.path.clone()));
                }
            }
        }
        Self { used }
    }

    /// Returns the name of a server: the previous one (`previous`), or one that no other server
    /// has.
    pub(super) fn assign(
        &mut self,
        file: &ConfigFile,
        server: &Server,
        previous: Option<&MovedServer>,
        gate: &GateConfig,
    ) -> String {
        if let Some(name) =
            previous.and_then(|kept| kept.wrap_name.as_ref().or(kept.upstream.as_ref()))
        {
            return name.clone();
        }
        let owner = (file.path.clone(), server.path.clone());
        let name = match project_folder(file, server).and_then(Path::file_name) {
            Some(folder) => {
                let folder = sanitize_name(&folder.to_string_lossy(), FOLDER_CHARACTERS);
                format!("{}-{folder}", sanitize_name(&server.name, NAME_CHARACTERS))
            }
            None => sanitize_name(&server.name, NAME_CHARACTERS + 1 + FOLDER_CHARACTERS),
        };
        let client_name = format!("{name}-{}", file.client.name());
        let digest = digest(format!("{owner:?}").as_bytes());
        let unique_name = format!("{name}-{}", digest.get(..8).unwrap_or_default());
        let is_free = |name: &String| {
            !gate.has(name) && self.used.get(name).is_none_or(|user| *user == owner)
        };
        let name = [name, client_name]
            .into_iter()
            .find(is_free)
            .unwrap_or(unique_name);
        self.used.insert(name.clone(), owner);
        name
    }
}

/// Returns the folder of the project that a server belongs to. Claude Code stores the servers of
/// folders in the user's file.
fn project_folder<'a>(file: &'a ConfigFile, server: &'a Server) -> Option<&'a Path> {
    match &*server.path {
        [projects, folder, _, _] if projects == "projects" => Some(Path::new(folder)),
        _ => file.project.as_deref(),
    }
}
