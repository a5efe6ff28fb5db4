//! What a list contains, compared with what is pinned.

use std::collections::HashMap;

use bytes::Bytes;

use super::{Content, Key, Kind, Pin, Pins, change, server};
use crate::config::{ChangeAction, ChangeClass, ChangesConfig};
use crate::inspect::Mode;
use crate::inspect::tools::overlay::Patch;
use crate::message::{Message, MessageKind, Value, ValueKind};
use crate::protocol::Context;
use crate::rules::RuleSet;

/// Maximum time that a client may cache a list in which something is held, in milliseconds.
const HELD_MS: u32 = 60_000;

/// What a message lists, compared with what is pinned.
#[derive(Debug, Default)]
pub struct ListComparison {
    /// The message with pinned definitions in place of those that are held; `None` if it is
    /// unchanged.
    pub replacement: Option<Bytes>,
    /// Definitions that were not pinned in this form before.
    pub new_definitions: Vec<ListedDefinition>,
    /// The kinds whose list ends in this message.
    pub ended_kinds: Vec<Kind>,
    /// Definitions that are pinned and no longer listed.
    pub removed: Vec<Key>,
    /// Whether something was left out because no more definitions may be pinned.
    pub full: bool,
}

/// A definition that was not pinned in this form before.
#[derive(Clone, Debug)]
pub struct ListedDefinition {
    pub key: Key,
    /// The content as the server declares it.
    pub content: Content,
    /// The content as pinned.
    pub pinned: Option<Content>,
    /// The ways in which they differ; empty if the upstream is seen for the first time.
    pub classes: Vec<ChangeClass>,
    /// The policy's action.
    pub action: ChangeAction,
    /// Whether it is already waiting: nothing has to be done or reported again.
    pub is_pending: bool,
}

/// Reads lists; the fields are what they are compared with.
pub(in crate::inspect) struct Reader<'a> {
    pub(in crate::inspect) pins: &'a Pins,
    pub(in crate::inspect) changes: &'a ChangesConfig,
    pub(in crate::inspect) rules: &'a RuleSet,
    pub(in crate::inspect) mode: Mode,
    /// Maximum number of definitions of a kind that are pinned, and of their bytes.
    pub(in crate::inspect) max_size: (usize, usize),
}

impl Reader<'_> {
    /// Reads the lists of a message.
    pub(in crate::inspect) fn read(&self, message: &Message, context: &Context) -> ListComparison {
        let mut out = ListComparison::default();
        let mut patch = Patch::default();
        // An error lists nothing, and describes no server.
        let results = context
            .answers(message)
            .filter(|(envelope, _)| envelope.kind == MessageKind::Result);
        for (envelope, request) in results {
            let Some(result) = message.body(envelope) else {
                continue;
            };
            if let Some(request) = request.filter(|asked| server::METHODS.contains(&&*asked.method))
            {
                self.read_server(&request.method, result, &mut out, &mut patch);
            }
            for kind in Kind::ALL {
                let Some((method, member, _)) = kind.list_location() else {
                    continue;
                };
                if request.is_some_and(|asked| &*asked.method != method) {
                    continue;
                }
                let Some(list) = result
                    .get(member)
                    .filter(|list| list.kind() == ValueKind::Array)
                else {
                    continue;
                };
                let edits_before = patch.len();
                self.compare_list(kind, list, &mut out, &mut patch);
                // What is approved should be visible soon, even if clients cannot be notified
                // (2026-07-28, caching).
                let ttl = result.get("ttlMs").filter(|lasts| {
                    lasts
                        .raw()
                        .parse::<f64>()
                        .is_ok_and(|ms| ms > f64::from(HELD_MS))
                });
                if let Some(ttl) = ttl.filter(|_| patch.len() > edits_before) {
                    patch.replace(ttl, &HELD_MS.to_string());
                }
                let is_last = result
                    .get("nextCursor")
                    .is_none_or(|cursor| cursor.kind() == ValueKind::Null);
                if is_last {
                    out.ended_kinds.push(kind);
                }
                if is_last && request.is_some_and(|asked| !asked.continues) {
                    self.collect_removed(kind, list, &mut out);
                }
            }
        }
        if self.mode == Mode::Enforce {
            out.replacement = patch.carry_out(message.bytes());
        }
        out
    }

    fn compare_list(
        &self,
        kind: Kind,
        list: Value<'_>,
        out: &mut ListComparison,
        patch: &mut Patch,
    ) {
        // What this message has already listed: a further entry is compared with it as if it were
        // pinned.
        let mut listed: HashMap<Key, Content> = HashMap::new();
        let (mut count, mut bytes) = self.pins.size(kind);
        let mut entries = Vec::new();
        for definition in list.elements() {
            let Some(key) = key(kind, definition) else {
                entries.push((definition.span(), false));
                continue;
            };
            let content = Content::new(definition, kind);
            let pin = self.pins.get(&key);
            let pinned = pin
                .and_then(|pin| pin.content.clone())
                .or_else(|| listed.get(&key).cloned());
            if pinned.as_ref() == Some(&content) {
                entries.push((definition.span(), false));
                continue;
            }
            let classes = self.classes(kind, pin, pinned.as_ref(), &content);
            let action = self.changes.strictest_action(&classes);
            let is_pending = pin
                .and_then(|pin| pin.pending.as_ref())
                .is_some_and(|held| held.content == content);
            let length = content.as_str().len();
            if pinned.is_none() && action == ChangeAction::Pass {
                if count >= self.max_size.0 || bytes + length > self.max_size.1 {
                    // Of a resource, only a description is read and nothing is called; lists of
                    // resources may have any length.
                    out.full = true;
                    entries.push((definition.span(), kind != Kind::Resource));
                    continue;
                }
                (count, bytes) = (count + 1, bytes + length);
            }
            let is_removed = match (action, &pinned) {
                (ChangeAction::Pass, _) => false,
                (ChangeAction::Hold | ChangeAction::Ask, Some(pinned)) => {
                    patch.replace(definition, pinned.as_str());
                    false
                }
                (ChangeAction::Hold | ChangeAction::Ask, None) | (ChangeAction::Refuse, _) => true,
            };
            entries.push((definition.span(), is_removed));
            listed
                .entry(key.clone())
                .or_insert_with(|| pinned.clone().unwrap_or_else(|| content.clone()));
            if bytes + length > self.max_size.1.saturating_mul(2) {
                // It is held regardless: only the waiting definition is not stored.
                out.full = true;
                continue;
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
        patch.leave_out(&entries);
    }

    pub(super) fn classes(
        &self,
        kind: Kind,
        pin: Option<&Pin>,
        pinned: Option<&Content>,
        content: &Content,
    ) -> Vec<ChangeClass> {
        match pinned {
            Some(pinned) => change::classes(kind, pinned, content, self.rules),
            None if pin.is_some() || self.pins.is_complete(kind) => vec![ChangeClass::New],
            None => Vec::new(),
        }
    }

    fn collect_removed(&self, kind: Kind, list: Value<'_>, out: &mut ListComparison) {
        let listed: std::collections::HashSet<Key> = list
            .elements()
            .filter_map(|definition| key(kind, definition))
            .collect();
        out.removed.extend(
            self.pins
                .iter()
                .map(|(key, _)| key)
                .filter(|key| key.kind == kind && !listed.contains(key))
                .cloned(),
        );
    }
}

fn key(kind: Kind, definition: Value<'_>) -> Option<Key> {
    let (_, _, name) = kind.list_location()?;
    Some(Key {
        kind,
        name: definition.get_str(name)?.into(),
    })
}
