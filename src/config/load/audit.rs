//! Loading of `[audit]`.

use std::time::Duration;

use http::Uri;

use crate::config::{AuditConfig, AuditTo};
use crate::document::Table;

use super::classifier::is_unencrypted_remote;
use super::values::Reader;

/// Keys that apply only if the log is a file.
const FILE_KEYS: [&str; 12] = [
    "key_file",
    "checkpoint_lines",
    "checkpoint_seconds",
    "anchor_command",
    "anchor_url",
    "anchor_seconds",
    "rotate_bytes",
    "rotate_hours",
    "compress",
    "keep_files",
    "keep_days",
    "keep_bytes",
];

/// Reads `[audit]`, if present.
pub(super) fn audit(root: &Table<'_>, reader: &Reader<'_>) -> AuditConfig {
    let Some(table) = root.table("audit") else {
        return AuditConfig::default();
    };
    let mut config = AuditConfig::default();
    let file = reader.any_path(&table, "file");
    let stdout = table.flag("stdout", false);
    config.required = table.flag("required", false);
    config.key_file = reader.any_path(&table, "key_file");
    config.checkpoint_lines = table
        .integer("checkpoint_lines", 1..=1_000_000)
        .unwrap_or(config.checkpoint_lines);
    config.checkpoint_time =
        table.duration("checkpoint_seconds", 1..=86_400, config.checkpoint_time);
    config.anchor.command = command(&table, reader, "anchor_command");
    config.anchor.url = url(&table);
    config.anchor.timeout = table.duration("anchor_seconds", 1..=300, config.anchor.timeout);
    let rotation = &mut config.rotation;
    rotation.bytes = read_bytes(&table, "rotate_bytes").unwrap_or(rotation.bytes);
    rotation.age = table.duration("rotate_hours", 0..=8784, rotation.age);
    rotation.compress = table.flag("compress", rotation.compress);
    rotation.keep_files = table.integer("keep_files", 1..=100_000);
    rotation.keep_age = table
        .integer("keep_days", 1..=36_600)
        .map(|days| Duration::from_secs(days * 86_400));
    rotation.keep_bytes = table.integer("keep_bytes", 1 << 16..=1 << 50);
    if stdout {
        for key in FILE_KEYS.iter().filter(|key| table.has(key)) {
            let hint = "remove it, or replace `stdout` with `file = \"PATH\"`";
            let message = format!("`{key}` has no effect on standard output");
            table.fault_at_key(key, message, Some(hint));
        }
    }
    table.finish();
    if file.is_some() == stdout {
        let message = "the audit log needs either `file` or `stdout`";
        let hint = "write `file = \"PATH\"` or `stdout = true`";
        table.fault(message, Some(hint));
    }
    config.to = file
        .map(AuditTo::File)
        .or(stdout.then_some(AuditTo::Stdout));
    config
}

/// Reads a file size; sizes with which the file would be rotated after nearly every line are
/// faults.
fn read_bytes(table: &Table<'_>, key: &str) -> Option<u64> {
    let bytes = table.integer(key, 0..=1 << 40)?;
    if (1..1 << 16).contains(&bytes) {
        let hint = "the minimum is 65536; 0 disables it";
        table.fault_at_key(key, format!("`{key}` is too small"), Some(hint));
    }
    Some(bytes)
}

/// Reads a program with its arguments.
pub(super) fn command(table: &Table<'_>, reader: &Reader<'_>, key: &str) -> Vec<String> {
    let mut words = table.values(key);
    match words.first_mut() {
        Some(program) if program.is_empty() => {
            let hint = "for example `[\"/usr/local/bin/program\", \"--option\"]`";
            table.fault_at_key(key, format!("`{key}` is empty"), Some(hint));
        }
        // A name without a slash is left for the system to look up in `PATH`.
        Some(program) if program.contains('/') => {
            *program = reader.path(program).to_string_lossy().into_owned()
        }
        _ => {}
    }
    words
}

fn url(table: &Table<'_>) -> Option<String> {
    let url = table.string("anchor_url")?;
    let parsed = url.value.parse::<Uri>().ok();
    let host = parsed.as_ref().and_then(Uri::host).unwrap_or_default();
    let scheme = parsed.as_ref().and_then(Uri::scheme_str);
    if !matches!(scheme, Some("http" | "https"))
        || host.is_empty()
        || url.value.contains(['#', '@'])
    {
        let hint = "use `https://`, a host and a path, without user name and password";
        table.fault_at(&url.place, "`anchor_url` is not a valid URL", Some(hint));
    } else if is_unencrypted_remote(&url.value) {
        let hint = "a checkpoint modified in transit proves nothing: use `https://`, or a host on this machine";
        let message = "`anchor_url` would be contacted without encryption";
        table.fault_at(&url.place, message, Some(hint));
    }
    Some(url.value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document;

    fn read(text: &str) -> Result<AuditConfig, String> {
        let path = std::path::Path::new("/etc/gate/gate.toml");
        let read = document::read("gate.toml", text, |root| {
            Some(audit(root, &Reader::new(path, &super::super::Machine)))
        });
        read.map_err(|faults| faults.iter().map(|fault| format!("{fault}\n")).collect())
    }

    #[test]
    fn every_key_is_read() {
        let config = read(
            "[audit]\nfile = \"a.jsonl\"\nrequired = true\nkey_file = \"k\"\ncheckpoint_lines = 5\ncheckpoint_seconds = 6\n\
             anchor_command = [\"bin/keep\", \"-x\"]\nanchor_url = \"https://keep.example/here\"\nanchor_seconds = 7\n\
             rotate_bytes = 65536\nrotate_hours = 24\ncompress = false\nkeep_files = 8\nkeep_days = 9\nkeep_bytes = 100000\n",
        )
        .unwrap();
        assert_eq!(config.key().unwrap(), std::path::Path::new("/etc/gate/k"));
        assert_eq!(
            (config.checkpoint_lines, config.checkpoint_time.as_secs()),
            (5, 6)
        );
        assert_eq!(config.anchor.command, ["/etc/gate/bin/keep", "-x"]);
        assert_eq!(
            (
                config.anchor.url.as_deref(),
                config.anchor.timeout.as_secs()
            ),
            (Some("https://keep.example/here"), 7)
        );
        let rotation = config.rotation;
        assert_eq!(
            (rotation.bytes, rotation.age.as_secs(), rotation.compress),
            (65_536, 86_400, false)
        );
        assert_eq!(
            (rotation.keep_files, rotation.keep_bytes),
            (Some(8), Some(100_000))
        );
        assert_eq!(rotation.keep_age.map(|age| age.as_secs()), Some(9 * 86_400));
        let plain = read("[audit]\nfile = \"a.jsonl\"\n").unwrap();
        assert_eq!(
            plain.key().unwrap(),
            std::path::Path::new("/etc/gate/a.jsonl.key")
        );
    }

    #[test]
    fn what_cannot_be_is_told() {
        for (text, expected) in [
            (
                "stdout = true\nkeep_days = 3",
                "`keep_days` has no effect on standard output",
            ),
            ("file = \"a\"\nrotate_bytes = 100", "too small"),
            (
                "file = \"a\"\nanchor_url = \"http://keep.example/\"",
                "without encryption",
            ),
            (
                "file = \"a\"\nanchor_url = \"keep.example\"",
                "not a valid URL",
            ),
            (
                "file = \"a\"\nanchor_command = [\"\"]",
                "`anchor_command` is empty",
            ),
            (
                "file = \"a\"\ncheckpoint_seconds = 0",
                "`checkpoint_seconds` must be between",
            ),
        ] {
            let faults = read(&format!("[audit]\n{text}\n")).unwrap_err();
            assert!(faults.contains(expected), "{text}: {faults}");
        }
    }
}
