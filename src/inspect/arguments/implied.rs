//! Commands that are equivalent to the arguments of a tool that takes no command: values set in the
//! registry of Windows or in git's configuration, containers with access to the machine, folders and
//! files that are deleted.

use std::borrow::Cow;

use crate::detect::ReadAs;
use crate::message::{Role, Value, ValueKind};

use super::join::quote;
use super::{Frame, Node, Unit, Units};

/// What a tool works on, if its arguments amount to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// Sets values in the registry.
    RegistrySet,
    /// Deletes keys of the registry.
    RegistryDelete,
    /// Starts containers.
    ContainerRun,
    /// Sets values in the configuration of git.
    GitConfig,
    /// Deletes files, or folders with everything in them.
    Delete,
}

/// Maximum number of values of one list or table that are put into a command.
const VALUES: usize = 64;

impl Subject {
    /// Returns the subject of a tool whose name consists of these words.
    pub(super) fn of(words: &[&str]) -> Option<Self> {
        let has = |any: &[&str]| words.iter().any(|word| any.contains(word));
        if has(&["registry", "regedit", "winreg", "reg"]) {
            if has(&[
                "set", "write", "add", "create", "put", "update", "edit", "modify",
            ]) {
                return Some(Self::RegistrySet);
            }
            if has(&["delete", "remove", "clear"]) {
                return Some(Self::RegistryDelete);
            }
        }
        let starts = has(&["run", "create", "start", "launch"]);
        if has(&["git"]) && has(&["config"]) {
            return Some(Self::GitConfig);
        }
        if has(&["rmdir", "rmtree"])
            || has(&[
                "delete", "remove", "rm", "del", "erase", "wipe", "purge", "unlink",
            ]) && has(&[
                "directory",
                "directories",
                "dir",
                "folder",
                "tree",
                "path",
                "file",
                "files",
                "recursive",
                "recursively",
            ])
        {
            return Some(Self::Delete);
        }
        (has(&["docker", "podman", "container", "containers", "nerdctl"]) && starts)
            .then_some(Self::ContainerRun)
    }

    /// Returns the command that the arguments of a call amount to.
    pub(super) fn command(self, members: &[(Cow<'_, str>, Value<'_>)]) -> Option<String> {
        match self {
            Self::RegistrySet => registry_set(members),
            Self::RegistryDelete => {
                let key = registry_key(members)?;
                Some(format!("reg delete {} /f", quote(&key)))
            }
            Self::ContainerRun => container_run(members),
            Self::Delete => deletion(members),
            Self::GitConfig => {
                let key = find(members, &["key", "name"])?.str()?;
                let value = find(members, &["value"])?.str()?;
                Some(format!(
                    "git config --global {} {}",
                    quote(&key),
                    quote(&value)
                ))
            }
        }
    }
}

impl Units<'_> {
    /// Adds the command that the arguments of a tool amount to, at the place of the first one.
    pub(super) fn add_implied(&mut self, frame: &Frame<'_>, members: &[(Cow<'_, str>, Value<'_>)]) {
        let subject = frame.scope.tool.subject.filter(|_| !frame.pinned);
        let Some(line) = subject.and_then(|subject| subject.command(members)) else {
            return;
        };
        self.nodes.push(Node {
            parent: frame.node,
            step: members
                .first()
                .map_or_else(String::new, |(key, _)| key.to_string()),
        });
        self.units.push(Unit {
            text: Cow::Owned(line),
            argument: frame.argument.clone(),
            role: Role::Value,
            read_as: ReadAs::Shell,
            joined: true,
            node: self.nodes.len() - 1,
        });
    }
}

/// Returns the first value with one of these names, compared without case, `_` and `-`.
fn find<'v>(members: &[(Cow<'_, str>, Value<'v>)], names: &[&str]) -> Option<Value<'v>> {
    members
        .iter()
        .find(|(key, _)| names.contains(&folded(key).as_str()))
        .map(|(_, value)| *value)
}

fn folded(name: &str) -> String {
    let letters = name.chars().filter(|c| !matches!(c, '_' | '-'));
    letters.flat_map(char::to_lowercase).take(32).collect()
}

fn text<'v>(value: Value<'v>) -> Cow<'v, str> {
    value.str().unwrap_or_else(|| value.raw().into())
}

fn registry_key(members: &[(Cow<'_, str>, Value<'_>)]) -> Option<String> {
    let key = find(
        members,
        &["key", "path", "keypath", "subkey", "registrypath"],
    )?
    .str()?;
    let hive = find(members, &["hive", "root", "rootkey", "roothive"]).and_then(|hive| hive.str());
    Some(match hive {
        Some(hive) => format!(
            "{}\\{}",
            hive.trim_end_matches([':', '\\']),
            key.trim_start_matches('\\')
        ),
        None => key.replace(":\\", "\\"),
    })
}

fn registry_set(members: &[(Cow<'_, str>, Value<'_>)]) -> Option<String> {
    let key = registry_key(members)?;
    let add = |name: &str, data: &str| {
        format!(
            "reg add {} /v {} /d {} /f",
            quote(&key),
            quote(name),
            quote(data)
        )
    };
    let table = find(members, &["values", "entries", "properties"])
        .filter(|values| values.kind() == ValueKind::Object);
    if let Some(table) = table {
        let lines = table
            .members()
            .take(VALUES)
            .map(|(name, data)| add(&name, &text(data)));
        return Some(lines.collect::<Vec<_>>().join("\n"));
    }
    let name =
        find(members, &["name", "valuename", "property", "entry"]).map_or(Cow::Borrowed(""), text);
    let data = find(members, &["data", "value", "valuedata"]).map_or(Cow::Borrowed(""), |data| {
        if data.kind() == ValueKind::Array {
            data.elements()
                .take(VALUES)
                .map(text)
                .collect::<Vec<_>>()
                .join(" ")
                .into()
        } else {
            text(data)
        }
    });
    Some(add(&name, &data))
}

/// Returns the command that deletes what the arguments name, if that is outside of any project:
/// relative paths depend on the server's folder.
fn deletion(members: &[(Cow<'_, str>, Value<'_>)]) -> Option<String> {
    let named = find(
        members,
        &[
            "path",
            "paths",
            "dir",
            "dirs",
            "directory",
            "directories",
            "dirpath",
            "directorypath",
            "folder",
            "folders",
            "folderpath",
            "file",
            "files",
            "filename",
            "filepath",
            "target",
            "targets",
            "location",
        ],
    )?;
    let is_absolute =
        |path: &Cow<'_, str>| path.starts_with(['/', '~']) || path.get(1..3) == Some(":\\");
    let paths: Vec<Cow<'_, str>> = named
        .elements()
        .take(VALUES)
        .chain([named])
        .filter_map(|value| value.str())
        .filter(is_absolute)
        .collect();
    let words: String = paths
        .iter()
        .map(|path| format!(" {}", quote(path)))
        .collect();
    (!paths.is_empty()).then(|| format!("rm -rf --{words}"))
}

fn container_run(members: &[(Cow<'_, str>, Value<'_>)]) -> Option<String> {
    let image = find(members, &["image", "imagename"])?.str()?;
    let mut line = String::from("docker run");
    let is_true = |value: Value<'_>| text(value) == "true";
    if find(members, &["privileged"]).is_some_and(is_true) {
        line.push_str(" --privileged");
    }
    for (names, flag) in [
        (["pid", "pidmode"], "--pid"),
        (["ipc", "ipcmode"], "--ipc"),
        (["network", "networkmode"], "--network"),
        (["user", "userns"], "--user"),
    ] {
        if let Some(value) = find(members, &names).and_then(|value| value.str()) {
            line.push_str(&format!(" {flag} {}", quote(&value)));
        }
    }
    for (names, flag) in [
        (["volumes", "binds", "mounts", "volume"], "-v"),
        (
            ["capadd", "capabilities", "caps", "addcapabilities"],
            "--cap-add",
        ),
        (["devices", "device", "deviceadd", "adddevice"], "--device"),
    ] {
        let Some(value) = find(members, &names) else {
            continue;
        };
        let items: Vec<String> = match value.kind() {
            ValueKind::Array => value.elements().take(VALUES).map(volume).collect(),
            // `{ "/": "/mnt" }`, `{ "/": { "bind": "/mnt" } }`
            ValueKind::Object => value
                .members()
                .take(VALUES)
                .map(|(from, _)| format!("{from}:/x"))
                .collect(),
            _ => vec![text(value).into_owned()],
        };
        for item in items {
            line.push_str(&format!(" {flag} {}", quote(&item)));
        }
    }
    // A container that gets nothing of the machine is not worth a command.
    let is_plain = line.ends_with("docker run");
    line.push(' ');
    line.push_str(&quote(&image));
    (!is_plain).then_some(line)
}

/// Returns a volume as `docker` takes it: `/:/mnt`, or an object with its source and target.
fn volume(value: Value<'_>) -> String {
    let members: Vec<_> = value.members().collect();
    let part = |names: &[&str]| find(&members, names).and_then(|value| value.str());
    match part(&["source", "src", "hostpath", "host"]) {
        Some(source) => format!(
            "{source}:{}",
            part(&["target", "destination", "dst", "containerpath", "container"])
                .unwrap_or(Cow::Borrowed("/x"))
        ),
        None => text(value).into_owned(),
    }
}
