//! Items that a caller may not use are removed from its lists, and calls to them are refused.

#![allow(
    clippy::disallowed_types,
    reason = "definitions are read here, and no message is made of them"
)]

use bytes::Bytes;

use super::definitions::{Key, Kind, Pins};
use super::tools::overlay::Patch;
use super::tools::{Tools, only_reads};
use crate::message::{Envelope, Json, Message, ReadLimits, Value, ValueKind};
use crate::protocol::{Access, Context, DenialReason, ItemKind};

/// Lists that are filtered by what a caller may use: method, member of the result, member that
/// names each entry.
const LISTS: [(&str, &str, &str, ItemKind); 4] = [
    ("tools/list", "tools", "name", ItemKind::Tool),
    ("prompts/list", "prompts", "name", ItemKind::Prompt),
    ("resources/list", "resources", "uri", ItemKind::Resource),
    (
        "resources/templates/list",
        "resourceTemplates",
        "uriTemplate",
        ItemKind::Resource,
    ),
];

/// An item that a caller requests and may not use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeniedItem {
    /// The index in a batch of the message that requests it.
    pub item: usize,
    pub kind: ItemKind,
    /// The name or the URI of the item.
    pub name: String,
    /// The reason for the denial.
    pub reason: DenialReason,
}

/// Returns the items that a message requests and its caller may not use.
pub fn denied_items(
    message: &Message,
    context: &Context,
    tools: &Tools,
    pins: &Pins,
) -> Vec<DeniedItem> {
    let Some(access) = &context.caller.access else {
        return Vec::new();
    };
    let items = message.envelopes().iter().enumerate();
    let denied = items.filter_map(|(item, envelope)| {
        let (kind, name) = requested_item(message, envelope)?;
        let hint = || {
            tools
                .definition(&name)
                .map_or_else(|| pinned_read_only(pins, &name), |known| known.only_reads)
        };
        let reason = access
            .check_item(kind, &context.upstream, &name, hint)
            .err()?;
        Some(DeniedItem {
            item,
            kind,
            name,
            reason,
        })
    });
    denied.collect()
}

/// Returns the item that a message requests: a request, or a notification that a server may treat
/// as one.
fn requested_item(message: &Message, envelope: &Envelope) -> Option<(ItemKind, String)> {
    let params = message.body(envelope);
    let named = |key: &str| {
        params
            .and_then(|params| params.get_str(key))
            .unwrap_or_default()
            .into_owned()
    };
    Some(match envelope.method()? {
        "tools/call" => (ItemKind::Tool, named("name")),
        "prompts/get" => (ItemKind::Prompt, named("name")),
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => {
            (ItemKind::Resource, named("uri"))
        }
        "completion/complete" => {
            let reference = params?.get("ref")?;
            let (kind, name) = match reference.get("name") {
                Some(name) => (ItemKind::Prompt, name),
                None => (ItemKind::Resource, reference.get("uri")?),
            };
            (kind, name.str().unwrap_or_default().into_owned())
        }
        _ => return None,
    })
}

/// Returns whether a tool that no list has contained yet is read-only according to its pinned
/// definition.
fn pinned_read_only(pins: &Pins, name: &str) -> Option<bool> {
    let pin = pins.get(&Key {
        kind: Kind::Tool,
        name: name.into(),
    })?;
    let content = pin.content.as_ref()?.as_str().to_owned();
    only_reads(
        Json::parse(content.into(), &ReadLimits::default())
            .ok()?
            .root(),
    )
}

/// Returns the bytes of a message with its lists reduced to what its caller may use; `None` if
/// nothing changes.
pub fn narrow_lists(message: &Message, context: &Context) -> Option<Bytes> {
    let access = context.caller.access.as_ref()?;
    let mut patch = Patch::default();
    for (envelope, request) in context.answers(message) {
        let Some(result) = message.body(envelope) else {
            continue;
        };
        for (method, member, key, kind) in LISTS {
            // A response to no known request is filtered like any other.
            if request.is_some_and(|asked| &*asked.method != method) {
                continue;
            }
            if let Some(list) = result
                .get(member)
                .filter(|list| list.kind() == ValueKind::Array)
            {
                patch.leave_out(&mark_denied(access, list, kind, key, context));
            }
        }
    }
    patch.carry_out(message.bytes())
}

fn mark_denied(
    access: &Access,
    list: Value<'_>,
    kind: ItemKind,
    key: &str,
    context: &Context,
) -> Vec<(std::ops::Range<usize>, bool)> {
    let is_denied = |element: Value<'_>| {
        let name = element.get_str(key).unwrap_or_default();
        access
            .check_item(kind, &context.upstream, &name, || only_reads(element))
            .is_err()
    };
    list.elements()
        .map(|element| (element.span(), is_denied(element)))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::config::{AccessConfig, Lists};
    use crate::inspect::definitions::{Content, Pin};
    use crate::inspect::tests::{call, context, message};
    use crate::protocol::{AgentName, Caller};

    fn context_with(method: &str, table: AccessConfig) -> Context {
        let table = AccessConfig {
            name: "t".into(),
            agents: vec!["*".into()],
            ..table
        };
        let caller = Caller {
            access: Access::for_caller(&[Arc::new(table)], &AgentName("a".into()), None, &[]),
            ..Caller::default()
        };
        Context {
            caller,
            ..context(method, None)
        }
    }

    fn denying(words: &[&str]) -> AccessConfig {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let deny = Lists {
            tools: words.clone(),
            prompts: words.clone(),
            resources: words,
            upstreams: vec![],
        };
        AccessConfig {
            deny,
            ..AccessConfig::default()
        }
    }

    #[test]
    fn lists_hold_what_may_be_used() {
        let list = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a"}, {"name":"b"},{"name":"c"}],"nextCursor":"x"}}"#;
        let shown = |words: &[&str]| {
            let shown = narrow_lists(&message(list), &context_with("tools/list", denying(words)));
            shown.map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())
        };
        assert_eq!(shown(&["*/d"]), None);
        assert_eq!(
            shown(&["u/b"]).unwrap(),
            list.replace(r#", {"name":"b"}"#, "")
        );
        assert_eq!(
            shown(&["*"]).unwrap(),
            list.replace(r#"{"name":"a"}, {"name":"b"},{"name":"c"}"#, "")
        );
        let prompts = r#"{"jsonrpc":"2.0","id":1,"result":{"prompts":[{"name":"b"}]}}"#;
        let narrowed = |method: &str| {
            narrow_lists(&message(prompts), &context_with(method, denying(&["*"]))).is_some()
        };
        assert!(!narrowed("tools/list"), "a member of that name");
        assert!(narrowed("prompts/list"));
    }

    #[test]
    fn every_way_to_ask_for_something_is_seen() {
        let ask = |text: &str| {
            let context = context_with("x", denying(&["*/b", "*/file:///etc/*"]));
            denied_items(
                &message(text),
                &context,
                &Tools::default(),
                &Pins::default(),
            )
            .len()
        };
        for (method, params, barred) in [
            ("tools/call", r#"{"name":"b"}"#, 1),
            ("tools/call", r#"{"name":"\u0062"}"#, 1),
            ("tools/call", r#"{"name":"c"}"#, 0),
            ("prompts/get", r#"{"name":"b"}"#, 1),
            ("resources/read", r#"{"uri":"file:///etc/x"}"#, 1),
            ("resources/subscribe", r#"{"uri":"file:///etc/x"}"#, 1),
            ("resources/read", r#"{"uri":"file:///home/x"}"#, 0),
            (
                "completion/complete",
                r#"{"ref":{"type":"ref/prompt","name":"b"}}"#,
                1,
            ),
            (
                "completion/complete",
                r#"{"ref":{"type":"ref/resource","uri":"file:///etc/{x}"}}"#,
                1,
            ),
            ("tools/list", "{}", 0),
        ] {
            for id in [r#""id":1,"#, ""] {
                let text =
                    format!(r#"{{"jsonrpc":"2.0",{id}"method":"{method}","params":{params}}}"#);
                assert_eq!(ask(&text), barred, "{text}");
            }
        }
    }

    #[test]
    fn what_is_pinned_says_what_only_reads() {
        let table = || AccessConfig {
            read_only: true,
            trust_annotations: vec!["u".into()],
            ..AccessConfig::default()
        };
        let call = message(&call("b", "{}"));
        let content = |hint: bool| {
            let text = format!(r#"{{"name":"b","annotations":{{"readOnlyHint":{hint}}}}}"#);
            Content::read(&text, Kind::Tool).unwrap()
        };
        for (hint, count) in [(None, 1), (Some(false), 1), (Some(true), 0)] {
            let mut pins = Pins::default();
            if let Some(hint) = hint {
                let key = Key {
                    kind: Kind::Tool,
                    name: "b".into(),
                };
                let pin = Pin {
                    content: Some(content(hint)),
                    pending: None,
                };
                pins.insert(key, pin);
            }
            assert_eq!(
                denied_items(&call, &context_with("x", table()), &Tools::default(), &pins).len(),
                count,
                "{hint:?}"
            );
        }
    }
}
