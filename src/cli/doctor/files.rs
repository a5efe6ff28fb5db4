//! Checks of the gate's files and folders: who can read them, and whether there is disk space.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::{CheckResult, Level};
use crate::config::{AuditTo, Config, EvidenceLevel, Transport, VaultKey};
use crate::record::PublicKey;
use crate::record::verify::{TrustAnchors, verify};
use crate::seal::state_folder;

/// Thresholds of free disk space: below the first, the gate will soon stop; below the second, space
/// is low.
const CRITICAL_SPACE: u64 = 64 << 20;
const LOW_SPACE: u64 = 1 << 30;

/// Maximum size of the audit log that is verified, in bytes. Rotated files are read in addition.
const MAX_VERIFIED_BYTES: u64 = 64 << 20;

/// A file, its description, and whether it contains a secret.
struct File {
    description: String,
    path: PathBuf,
    is_secret: bool,
}

/// Checks modes and owners of the files that contain secrets, and of those that determine the
/// gate's decisions.
pub(super) fn modes(config: &Config, path: &Path) -> CheckResult {
    let mut result = CheckResult::default();
    let mut files = vec![File {
        description: "the config".to_owned(),
        path: path.to_owned(),
        is_secret: false,
    }];
    let mut add = |what: &str, path: &Path, secret| {
        files.push(File {
            description: what.to_owned(),
            path: path.to_owned(),
            is_secret: secret,
        })
    };
    config.files.iter().for_each(|file| {
        add(
            "a file that secrets are read from",
            file,
            !is_listed(config, file),
        )
    });
    if let Some(tls) = &config.listen.tls {
        add("the listener's key", &tls.key, true);
    }
    for upstream in config.upstreams.values() {
        if let Transport::Http(http) | Transport::Sse(http) = &upstream.transport
            && let Some((_, key)) = &http.client_cert
        {
            add("a client's key", key, true);
        }
    }
    let user_folder = state_folder();
    let keys = [
        ("the key of the vault", &config.oauth.vault_key, "vault.key"),
        (
            "the key of the quarantine",
            &config.quarantine.key,
            "quarantine.key",
        ),
        (
            "the key of the evidence store",
            &config.evidence.key,
            "evidence.key",
        ),
    ];
    for (what, key, name) in keys {
        match (key, &user_folder) {
            (VaultKey::File(file), _) => add(what, file, true),
            (VaultKey::UserDefault, Some(folder)) => add(what, &folder.join(name), true),
            _ => {}
        }
    }
    if let Some(key) = config.audit.key() {
        add("the key of the audit log", &key, true);
    }
    for (what, folder) in stores(config) {
        add(what, &folder, true);
    }
    if let Some(folder) = config
        .oauth
        .vault
        .clone()
        .or_else(|| user_folder.as_ref().map(|folder| folder.join("vault")))
    {
        add("the vault", &folder, true);
    }
    if let Some(AuditTo::File(file)) = &config.audit.to {
        add("the audit log", file, true);
    }
    if let Some(file) = config
        .admin
        .address
        .and_then(|admin| config.approval.token_file(admin.port()))
    {
        add("the token of the admin port", &file, true);
    }
    if let Some(file) = config
        .pins
        .clone()
        .with_default_file(state_folder(), path)
        .file
    {
        add("the lock file", &file, false);
    }
    if let Some(file) = &config.agents_file.file {
        add("the file of agents", file, false);
    }
    let mut correct = 0;
    for file in &files {
        let Ok(meta) = std::fs::metadata(&file.path) else {
            continue;
        };
        let mode = meta.permissions().mode() & 0o777;
        let display = file.path.display();
        let correct_mode = if meta.is_dir() { "700" } else { "600" };
        let fault = match mode {
            _ if file.is_secret && mode & 0o077 != 0 => Some(("readable", correct_mode)),
            _ if mode & 0o022 != 0 => Some(("writable", "go-w")),
            _ => None,
        };
        match fault {
            Some((access, change)) => result.add_error(
                format!(
                    "{} `{display}` has mode {mode:o}: {access} by other users",
                    file.description
                ),
                fix_unless_shared(&file.path, format!("chmod {change} '{display}'")),
            ),
            None => correct += 1,
        }
        let own_uid = rustix::process::geteuid().as_raw();
        if meta.uid() != own_uid && meta.uid() != 0 && own_uid != 0 {
            let what = format!(
                "{} `{display}` belongs to another user (id {})",
                file.description,
                meta.uid()
            );
            result.add_warning(
                what,
                fix_unless_shared(&file.path, format!("chown \"$(id -u)\" '{display}'")),
            );
        }
    }
    result.pass(format!("{correct} files and folders have correct modes"));
    result
}

/// Returns the fix for a path, unless it is a folder that others use as well: changing its owner or
/// mode would break the system.
fn fix_unless_shared(path: &Path, fix: String) -> String {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    if !(path.is_dir() && is_shared(path, home.as_deref())) {
        return fix;
    }
    "set a folder in the config, or set `XDG_STATE_HOME` to a folder that the gateway's user can write to".to_owned()
}

/// Reports whether a folder is a system folder or a home folder, rather than the gate's own.
fn is_shared(folder: &Path, home: Option<&Path>) -> bool {
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let is_system = ["/etc", "/usr", "/boot", "/dev", "/proc", "/sys"]
        .iter()
        .any(|system| folder.starts_with(system));
    // `/`, `/var`, `/var/lib`, `/home/ann`.
    let is_shallow = folder.components().count() <= 3;
    is_system || is_shallow || home.is_some_and(|home| home.starts_with(&folder))
}

/// Returns the folders of stored messages.
fn stores(config: &Config) -> Vec<(&'static str, PathBuf)> {
    let quarantine = config
        .quarantine
        .clone()
        .with_default_folder(state_folder())
        .folder
        .filter(|_| config.quarantine.enabled);
    let stores_evidence = config
        .policies
        .values()
        .any(|policy| policy.evidence == EvidenceLevel::Sealed);
    let evidence = if stores_evidence {
        config
            .evidence
            .clone()
            .with_default_folder(state_folder())
            .folder
    } else {
        config.evidence.folder.clone()
    };
    let describe = |what, folder: Option<PathBuf>| folder.map(|folder| (what, folder));
    describe("the quarantine", quarantine)
        .into_iter()
        .chain(describe("the evidence store", evidence))
        .collect()
}

/// Reports whether a file that was read together with the config has a purpose other than a secret.
fn is_listed(config: &Config, file: &Path) -> bool {
    config.agents_file.file.as_deref() == Some(file)
}

/// Verifies the audit log, provided that this is quick.
pub(super) fn audit(config: &Config) -> CheckResult {
    let mut result = CheckResult::default();
    let Some(AuditTo::File(file)) = &config.audit.to else {
        return result;
    };
    let Ok(meta) = std::fs::metadata(file) else {
        result.pass("the audit log does not exist yet");
        return result;
    };
    if meta.len() > MAX_VERIFIED_BYTES {
        result.pass("the audit log is too long for a quick check: run `lychgate audit verify`");
        return result;
    }
    let keys = config
        .audit
        .key()
        .and_then(|key| PublicKey::of_file(&key).ok())
        .into_iter()
        .collect();
    match verify(
        file,
        &TrustAnchors {
            keys,
            anchors: Vec::new(),
        },
    ) {
        Err(error) => {
            let fix = format!(
                "chmod u+r '{}', or run this as the gateway's user",
                file.display()
            );
            result.add_error(format!("cannot read the audit log: {error}"), fix);
        }
        Ok(report) if report.is_verified() => {
            result.pass(format!("audit log verified: {} lines", report.lines))
        }
        Ok(report) => {
            let first = report
                .flaws
                .first()
                .map(|flaw| flaw.what.clone())
                .unwrap_or_default();
            let more = match report.flaws.len().saturating_sub(1) {
                0 => String::new(),
                more => format!(" (and {more} more)"),
            };
            let what = format!("audit log verification failed: {first}{more}");
            result.add_error(what, "lychgate audit verify");
        }
    }
    result
}

/// Checks whether there is space in the places to which the gate writes, and whether it may write
/// there.
pub(super) fn disks(config: &Config) -> CheckResult {
    let mut result = CheckResult::default();
    let mut paths: Vec<(&str, PathBuf)> = Vec::new();
    if let Some(AuditTo::File(file)) = &config.audit.to {
        paths.push(("the audit log", file.clone()));
    }
    let user_folder = state_folder();
    paths.extend(
        config
            .oauth
            .vault
            .clone()
            .or(user_folder)
            .map(|folder| ("the vault", folder)),
    );
    paths.extend(stores(config));
    paths.extend(config.pins.file.clone().map(|file| ("the lock file", file)));
    for (what, path) in paths {
        let Some(existing) = path.ancestors().find(|path| path.exists()) else {
            continue;
        };
        let display = existing.display();
        let Ok(disk) = rustix::fs::statvfs(existing) else {
            continue;
        };
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        let room = if free >= 1 << 30 {
            format!("{} GB", free >> 30)
        } else {
            format!("{} MB", free >> 20)
        };
        let findings_before = result.findings.len();
        if disk.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY) {
            result.add_error(
                format!("`{display}` is read-only: cannot write {what}"),
                fix_unless_shared(
                    existing,
                    format!("mount -o remount,rw '{display}', or set another path in the config"),
                ),
            );
        } else if rustix::fs::access(existing, rustix::fs::Access::WRITE_OK).is_err() {
            result.add_error(
                format!("`{display}` is not writable by this user: it holds {what}"),
                fix_unless_shared(
                    existing,
                    format!("chown \"$(id -u)\" '{display}', or run this as the gateway's user"),
                ),
            );
        } else if let Some(level) = shortage(free) {
            result.add_finding(
                level,
                format!("{room} left at `{display}`, which holds {what}"),
                format!("free some space: du -xh '{display}' | sort -h | tail"),
            );
        }
        if result.findings.len() == findings_before {
            result.pass(format!("{room} left for {what}, which can be written"));
        }
    }
    if config.audit.to.is_none() {
        let fix = "[audit] with `file = \"/var/log/lychgate/audit.jsonl\"`";
        result.add_warning(
            "no audit log: past verdicts cannot be shown or explained",
            fix,
        );
    }
    result
}

/// Returns the severity of having only `free` bytes left, if that is a problem.
fn shortage(free: u64) -> Option<Level> {
    match free {
        free if free < CRITICAL_SPACE => Some(Level::Error),
        free if free < LOW_SPACE => Some(Level::Warning),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owner_and_mode_of_shared_folders_stay() {
        let home = Some(Path::new("/srv/people/ann"));
        for folder in [
            "/",
            "/etc",
            "/etc/lychgate",
            "/var/lib",
            "/home/ann",
            "/srv/people/ann",
            "/srv/people",
            "/usr/local/share",
        ] {
            assert!(is_shared(Path::new(folder), home), "{folder}");
        }
        for folder in [
            "/var/lib/lychgate",
            "/srv/people/ann/.local/state/lychgate",
            "/home/ann/.local/state",
        ] {
            assert!(!is_shared(Path::new(folder), home), "{folder}");
        }
        for shared in ["/", "/etc"] {
            let fix =
                fix_unless_shared(Path::new(shared), format!("chown \"$(id -u)\" '{shared}'"));
            assert_contains!(fix, "XDG_STATE_HOME");
            assert_lacks!(fix, "chown");
        }
        assert_eq!(
            fix_unless_shared(Path::new("/var/lib/no-such-gate/x"), "chown 1".to_owned()),
            "chown 1"
        );
    }

    #[test]
    fn little_room_is_told_and_hardly_any_is_an_error() {
        let levels = [
            0,
            CRITICAL_SPACE - 1,
            CRITICAL_SPACE,
            LOW_SPACE - 1,
            LOW_SPACE,
        ]
        .map(shortage);
        let error = Some(Level::Error);
        let warning = Some(Level::Warning);
        assert_eq!(levels, [error, error, warning, warning, None]);
    }
}
