//! Loading of `roots` and `urls` of policies and upstreams.

use std::time::Duration;

use crate::config::PlacesConfig;
use crate::detect::url::{HostList, HostPattern};
use crate::document::{Located, Table};

use super::values::Reader;

/// Default time to resolve names (`resolve_ms`).
const RESOLVE: Duration = Duration::from_millis(500);

/// Reads `roots` and `urls` of a policy.
pub(super) fn places(table: &Table<'_>, reader: &Reader<'_>) -> PlacesConfig {
    let mut config = PlacesConfig {
        roots: roots(table, reader).unwrap_or_default(),
        ..PlacesConfig::default()
    };
    if let Some(urls) = table.table("urls") {
        let resolves = urls.flag("resolve", false);
        let timeout = urls.duration("resolve_ms", 10..=10_000, RESOLVE);
        config.resolve = resolves.then_some(timeout);
        config.urls = hosts(&urls);
    }
    config
}

/// Reads `roots`, if present.
pub(super) fn roots(table: &Table<'_>, reader: &Reader<'_>) -> Option<Vec<String>> {
    let written = table.strings("roots");
    table.has("roots").then(|| {
        written
            .iter()
            .filter_map(|root| folder(table, reader, root))
            .collect()
    })
}

/// Reads a table with `allow` and `deny`.
pub(super) fn hosts(table: &Table<'_>) -> HostList {
    let read_patterns = |key: &str, written: Vec<Located<String>>| {
        let pattern = |entry: &Located<String>| match HostPattern::read(&entry.value) {
            Ok(pattern) => Some(pattern),
            Err(hint) => {
                let message = format!("`{key}` contains `{}`", entry.value.escape_debug());
                table.fault_at(&entry.place, message, Some(hint));
                None
            }
        };
        written.iter().filter_map(pattern).collect()
    };
    let list = HostList {
        allow: read_patterns("allow", table.strings("allow")),
        deny: read_patterns("deny", table.strings("deny")),
    };
    table.finish();
    list
}

/// Returns a resolved root. It need not exist: the server may be on another machine, or create it.
fn folder(table: &Table<'_>, reader: &Reader<'_>, written: &Located<String>) -> Option<String> {
    let text = written.value.as_str();
    let is_windows_path = text.get(1..2) == Some(":")
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        || text.starts_with("\\\\");
    if text.is_empty()
        || text.contains(['*', '\0'])
        || text.split(['/', '\\']).any(|part| part == "..")
    {
        let hint =
            "a root is a folder such as `/srv/data`, `~/work` or `C:\\work`, without `..` and `*`";
        let message = format!("`roots` contains `{}`", text.escape_debug());
        table.fault_at(&written.place, message, Some(hint));
        return None;
    }
    Some(if is_windows_path {
        text.to_owned()
    } else {
        reader.path(text).display().to_string()
    })
}
