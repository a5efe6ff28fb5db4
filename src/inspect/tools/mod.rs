//! What a server says of its tools, learnt from the lists that pass.

mod said;

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use crate::message::{Message, Value};
use crate::protocol::Context;

use super::arguments::Head;

/// Most tools remembered of one upstream.
const TOOLS: usize = 4096;
/// Longest definition that is remembered, in bytes.
const DEFINITION_BYTES: usize = 256 << 10;
/// Most bytes of definitions remembered of one upstream.
const BYTES: usize = 16 << 20;

/// The tools of one upstream, as its lists define them. What does not fit its bounds is as if it were never listed.
#[derive(Debug, Default)]
pub struct Tools(RwLock<Known>);

#[derive(Debug, Default)]
struct Known {
    tools: HashMap<Box<str>, Arc<Definition>>,
    bytes: usize,
}

/// A tool as its server defines it.
#[derive(Debug)]
pub struct Definition {
    /// What the server says it does; empty if nothing.
    pub description: Box<str>,
    /// Its `inputSchema` as written, if there is one.
    pub schema: Option<Box<str>>,
    /// Who reads which argument, by names joined by dots, as far as the definition says so.
    said: HashMap<Box<str>, Head>,
    /// It says that it runs commands.
    runs_commands: bool,
    /// Whether its annotations say that it only reads (2025-03-26, `ToolAnnotations`): a hint of the server's.
    pub(super) only_reads: Option<bool>,
}

impl Tools {
    /// The definition of a tool, if a list had it.
    pub fn of(&self, tool: &str) -> Option<Arc<Definition>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).tools.get(tool).cloned()
    }

    /// Learns from a message, if it is a list of tools that was asked for. Later pages add, and what is listed again
    /// takes the place of what was.
    pub fn learn(&self, message: &Message, context: &Context) {
        for envelope in message.envelopes() {
            let asked = message.id(envelope).and_then(|id| context.asked(id));
            if asked.is_none_or(|asked| &*asked.method != "tools/list") {
                continue;
            }
            let Some(tools) = message.body(envelope).and_then(|result| result.get("tools")) else { continue };
            let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
            for tool in tools.elements() {
                known.learn(tool);
            }
        }
    }
}

impl Known {
    fn learn(&mut self, tool: Value<'_>) {
        let Some(name) = tool.get("name").and_then(|name| name.str()) else { return };
        if let Some(old) = self.tools.remove(&*name) {
            self.bytes = self.bytes.saturating_sub(name.len() + old.bytes());
        }
        let description = tool.get("description").and_then(|text| text.str()).unwrap_or_default();
        let definition = Definition {
            said: said::of_arguments(tool.get("inputSchema")),
            runs_commands: said::runs_commands(&description),
            schema: tool.get("inputSchema").map(|schema| schema.raw().into()),
            description: description.into(),
            only_reads: only_reads(tool),
        };
        let bytes = name.len() + definition.bytes();
        if definition.bytes() <= DEFINITION_BYTES && self.tools.len() < TOOLS && self.bytes + bytes <= BYTES {
            self.bytes += bytes;
            self.tools.insert(name.into(), Arc::new(definition));
        }
    }
}

/// What `readOnlyHint` says; a tool that is called destructive, or not, does write.
fn only_reads(tool: Value<'_>) -> Option<bool> {
    let annotations = tool.get("annotations")?;
    let says = |hint: &str| annotations.get(hint).map(|value| value.raw() == "true");
    says("readOnlyHint").or(says("destructiveHint").map(|_| false))
}

impl Definition {
    /// Who reads an argument, if the definition says so.
    pub(super) fn said(&self, argument: &str) -> Option<Head> {
        self.said.get(argument).copied()
    }

    /// Whether the tool says that it runs commands.
    pub(super) fn runs_commands(&self) -> bool {
        self.runs_commands
    }

    fn bytes(&self) -> usize {
        self.description.len() + self.schema.as_ref().map_or(0, |schema| schema.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{ReadLimits, quote};
    use crate::protocol::{AgentName, Asked, Era, UpstreamName};

    fn learn(tools: &Tools, method: &str, list: &str) {
        let text = format!(r#"{{"jsonrpc":"2.0","id":3,"result":{{"tools":[{list}]}}}}"#);
        let message = Message::parse(text.into(), &ReadLimits::default()).unwrap();
        let asked = [Asked { id: "3".into(), method: method.into(), tool: None }].into();
        let (agent, upstream) = (AgentName("a".into()), UpstreamName("u".into()));
        tools.learn(&message, &Context { agent, upstream, era: Era::Modern, session: None, asked });
    }

    #[test]
    fn pages_add_and_what_is_listed_again_replaces() {
        let tools = Tools::default();
        learn(&tools, "tools/call", r#"{"name":"no"}"#);
        learn(&tools, "tools/list", r#"{"name":"a","description":"first","inputSchema":{"type": "object"}}"#);
        let second = r#"{"name":"a","description":"second","inputSchema":{"properties":{"q":{"format":"uri"},"p":{}}}}"#;
        learn(&tools, "tools/list", &format!(r#"{{"name":"b"}},{second}"#));
        assert!(tools.of("no").is_none() && tools.of("b").is_some_and(|tool| tool.schema.is_none()));
        let a = tools.of("a").unwrap();
        assert!(&*a.description == "second" && a.said("q") == Some(Head::Url) && a.said("p").is_none());
        assert_eq!(tools.0.read().unwrap().bytes, "ab".len() + a.bytes());
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let tools = Tools::default();
        learn(&tools, "tools/list", r#"{"name":"long","description":"short"}"#);
        learn(&tools, "tools/list", &format!(r#"{{"name":"long","description":{}}}"#, quote(&"x".repeat(DEFINITION_BYTES + 1))));
        assert!(tools.of("long").is_none());
        let many: Vec<String> = (0..TOOLS + 1).map(|n| format!(r#"{{"name":"{n}"}}"#)).collect();
        learn(&tools, "tools/list", &many.join(","));
        assert!(tools.of(&(TOOLS - 1).to_string()).is_some() && tools.of(&TOOLS.to_string()).is_none());
    }
}
