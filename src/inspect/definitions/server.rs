//! A server's description of itself: its instructions, which most clients put before everything
//! else that a model reads, and its name, title, description, site and icons. Pinned like a
//! definition; of the latter, only the version may change freely.

use super::listed::{ListComparison, ListedDefinition, Reader};
use super::{Content, Key, Kind};
use crate::config::ChangeAction;
use crate::inspect::tools::overlay::Patch;
use crate::message::{Value, quote};

/// The requests whose results contain it (2024-11-05 to 2025-11-25; 2026-07-28).
pub(super) const METHODS: [&str; 2] = ["initialize", "server/discover"];

/// The member of a modern result's `_meta` that identifies the server.
const INFO: &str = "io.modelcontextprotocol/serverInfo";

impl Reader<'_> {
    /// Reads a server's description of itself in the result of `method`.
    pub(super) fn read_server(
        &self,
        method: &str,
        result: Value<'_>,
        out: &mut ListComparison,
        patch: &mut Patch,
    ) {
        let instructions = result.get("instructions");
        let info = result
            .get("serverInfo")
            .or_else(|| result.at(&["_meta", INFO]));
        let raw = |value: Option<Value<'_>>| value.map_or("null", |value| value.raw()).to_owned();
        let text = format!(
            r#"{{"instructions":{},"serverInfo":{}}}"#,
            raw(instructions),
            raw(info)
        );
        let Ok(content) = Content::read(&text, Kind::Server) else {
            return;
        };
        let key = Key {
            kind: Kind::Server,
            name: method.into(),
        };
        let pin = self.pins.get(&key);
        // A server that answers both requests describes itself once.
        let keys = METHODS.into_iter().map(|name| Key {
            kind: Kind::Server,
            name: name.into(),
        });
        let pin = pin.or_else(|| {
            keys.filter_map(|other| self.pins.get(&other))
                .find(|pin| pin.content.is_some())
        });
        let pinned = pin.and_then(|pin| pin.content.clone());
        if pinned.as_ref() == Some(&content) {
            return;
        }
        let classes = self.classes(Kind::Server, pin, pinned.as_ref(), &content);
        let action = self.changes.strictest_action(&classes);
        let is_pending = pin
            .and_then(|pin| pin.pending.as_ref())
            .is_some_and(|held| held.content == content);
        if action != ChangeAction::Pass {
            // A server cannot be removed as a tool can: agents receive its previous description, or
            // none of it.
            let previous_json = pinned.as_ref().and_then(Content::json);
            let previous = previous_json.as_ref().map(|json| json.root());
            if let Some(instructions) = instructions {
                let previous_instructions = previous
                    .and_then(|before| before.get("instructions"))
                    .filter(|before| before.str().is_some());
                patch.replace(
                    instructions,
                    previous_instructions.map_or(r#""""#, |before| before.raw()),
                );
            }
            if let Some(info) = info {
                patch.replace(
                    info,
                    &held_info(previous.and_then(|before| before.get("serverInfo")), info),
                );
            }
        }
        out.new_definitions.push(ListedDefinition {
            key,
            content,
            pinned,
            classes,
            action,
            is_pending,
        });
    }
}

/// Returns the server info that is shown while the new one is held: the previous one, with the
/// current version.
fn held_info(previous: Option<Value<'_>>, current: Value<'_>) -> String {
    let version = current.get_str("version").unwrap_or_default();
    let name = current.get_str("name").unwrap_or_default();
    let members = previous
        .into_iter()
        .flat_map(|before| before.members())
        .map(|(key, value)| (key.into_owned(), value.raw().to_owned()));
    let mut members: Vec<(String, String)> = members.collect();
    if members.is_empty() {
        members.push(("name".to_owned(), quote(&name)));
    }
    members.push(("version".to_owned(), quote(&version)));
    let members: Vec<String> = members
        .into_iter()
        .map(|(key, value)| format!("{}:{value}", quote(&key)))
        .collect();
    format!("{{{}}}", members.join(","))
}
