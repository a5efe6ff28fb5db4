//! `[[policy.NAME.secret]]`: values are read, fingerprinted and erased.

use std::io;
use std::time::Duration;

use zeroize::Zeroizing;

use crate::config::GuardedSecretsConfig;
use crate::detect::secret::GuardedValues;
use crate::document::Table;

use super::values::{Reader, check_name};

/// Maximum length of a value, in bytes.
pub(super) const VALUE_BYTES: u64 = 64 << 10;
/// Default timeout of a command that prints a value (`timeout_seconds`).
const TIMEOUT: Duration = Duration::from_secs(10);

const HINT: &str = "set `name`, and the source of the value: `env = \"NAME\"`, `file = \"PATH\"` or `command = [\"PROGRAM\", …]`";

/// Reads the secrets that a policy guards.
pub(super) fn guarded_secrets(policy: &Table<'_>, reader: &Reader<'_>) -> GuardedSecretsConfig {
    let mut config = GuardedSecretsConfig::default();
    let mut names = Vec::new();
    for table in policy.tables("secret") {
        let name = table.required("name", HINT);
        if let Some(name) = &name {
            check_name(&table, name, "secret");
            if names.contains(&name.value) {
                let message = format!("there are two secrets `{}`", name.value);
                let hint = "names are unique";
                table.fault_at(&name.place, message, Some(hint));
            }
            names.push(name.value.clone());
        }
        let timeout = table.duration("timeout_seconds", 1..=300, TIMEOUT);
        let env = table.string("env");
        let file = table.string("file");
        let command = table.strings("command");
        table.finish();
        let (place, from, value) = match (env, file, command.first()) {
            (Some(env), None, None) => {
                let value = reader
                    .variable(&env.value)
                    .ok_or_else(|| io::Error::other("it is not set"));
                (
                    env.place,
                    format!("the environment variable `{}`", env.value),
                    value,
                )
            }
            (None, Some(file), None) => {
                let path = reader.path(&file.value);
                let value = reader.read(&path, VALUE_BYTES);
                let from = format!("`{}`", path.display());
                (file.place, from, value)
            }
            (None, None, Some(program)) => {
                let words: Vec<String> = command.iter().map(|word| word.value.clone()).collect();
                (
                    program.place.clone(),
                    format!("`{}`", program.value),
                    reader.run(&words, timeout),
                )
            }
            _ => {
                table.fault("set exactly one of `env`, `file` and `command`", Some(HINT));
                continue;
            }
        };
        match value.map(Zeroizing::new) {
            Err(error) => table.fault_at(
                &place,
                format!("cannot read the secret from {from}: {error}"),
                None,
            ),
            Ok(value) if !config.guarded.guard(value.trim()) => {
                let message = format!(
                    "the secret in {from} is shorter than {} bytes",
                    GuardedValues::LEAST_BYTES
                );
                let hint = "short values occur in ordinary text by chance and cannot be guarded";
                table.fault_at(&place, message, Some(hint));
            }
            Ok(_) => {}
        }
    }
    config
}
