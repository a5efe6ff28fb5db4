//! A server's definitions of its tools, learned from the lists that are forwarded.

#![allow(
    clippy::disallowed_types,
    reason = "arguments are checked against schemas here, and no message is made of them"
)]

pub(super) mod contract;
mod example;
mod output;
pub(super) mod overlay;
mod said;
mod schema;
mod work;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use parking_lot::RwLock;

use crate::detect::flow::DataLabels;
use crate::message::{Message, Value};
use crate::protocol::Context;

use super::SkipReason;
use super::arguments::Head;
use schema::Schema;

/// Maximum number of tools stored for one upstream.
const TOOLS: usize = 4096;
/// Maximum length of a definition that is stored, in bytes.
const DEFINITION_BYTES: usize = 256 << 10;
/// Maximum number of bytes of definitions stored for one upstream.
const BYTES: usize = 4 << 20;

/// The tools of one upstream, as its lists define them. A definition that exceeds the limits is
/// treated as if it had never been listed.
#[derive(Debug, Default)]
pub struct Tools(RwLock<KnownTools>);

#[derive(Debug, Default)]
struct KnownTools {
    tools: HashMap<Box<str>, Arc<Definition>>,
    bytes: usize,
    /// Whether the server has announced that its list changed, and it has not been requested since.
    stale: bool,
}

/// A tool as its server defines it.
#[derive(Debug)]
pub struct Definition {
    /// The `inputSchema` as written, if there is one.
    schema: Option<Box<str>>,
    /// The `inputSchema`, compiled when a call first needs it.
    compiled: OnceLock<Option<Result<Schema, SkipReason>>>,
    /// The `outputSchema`, stored in the same way.
    output: Option<Box<str>>,
    compiled_output: OnceLock<Option<Result<Schema, SkipReason>>>,
    /// How each argument is read, by names joined by dots, as far as the definition indicates it.
    argument_heads: HashMap<Box<str>, Head>,
    /// Whether its description says that it runs commands.
    runs_commands: bool,
    /// Whether its annotations declare it read-only (2025-03-26, `ToolAnnotations`): a hint from
    /// the server.
    pub(super) only_reads: Option<bool>,
    /// Whether its annotations declare that it interacts with any external entity: `openWorldHint`.
    open_world: Option<bool>,
}

impl Tools {
    /// Returns the definition of a tool, if a list contained it.
    pub fn definition(&self, tool: &str) -> Option<Arc<Definition>> {
        self.0.read().tools.get(tool).cloned()
    }

    /// Returns whether the server has announced that its list changed, and no newer one has been
    /// forwarded.
    pub(super) fn is_stale(&self) -> bool {
        self.0.read().stale
    }

    /// Learns from a message, if it is a list of tools that was requested. Later pages add tools,
    /// and a tool that is listed again replaces the earlier one. Returns whether there was more
    /// than can be stored.
    pub fn record_list(&self, message: &Message, context: &Context) -> bool {
        let mut full = false;
        for envelope in message.envelopes() {
            if envelope.method() == Some("notifications/tools/list_changed") {
                self.0.write().stale = true;
            }
            let request = message.id(envelope).and_then(|id| context.open_request(id));
            if request.is_none_or(|asked| &*asked.method != "tools/list") {
                continue;
            }
            let Some(tools) = message
                .body(envelope)
                .and_then(|result| result.get("tools"))
            else {
                continue;
            };
            let mut state = self.0.write();
            state.stale = false;
            for tool in tools.elements() {
                full |= !state.store(tool);
            }
        }
        full
    }
}

impl KnownTools {
    /// Stores a tool. Returns whether it is stored, or has no name.
    fn store(&mut self, tool: Value<'_>) -> bool {
        let Some(name) = tool.get_str("name") else {
            return true;
        };
        let (schema, output) = (
            tool.get("inputSchema"),
            tool.get("outputSchema").map(|schema| schema.raw()),
        );
        let description = tool.get_str("description").unwrap_or_default();
        let runs_commands = said::runs_commands(&description);
        let only_reads = only_reads(tool);
        let open_world = tool
            .get("annotations")
            .and_then(|all| all.get("openWorldHint"))
            .map(|value| value.raw() == "true");
        if let Some(old) = self.tools.get(&*name) {
            let is_same_schema = old.schema.as_deref() == schema.map(|schema| schema.raw())
                && old.output.as_deref() == output;
            if is_same_schema
                && (old.runs_commands, old.only_reads, old.open_world)
                    == (runs_commands, only_reads, open_world)
            {
                return true;
            }
            self.bytes = self.bytes.saturating_sub(name.len() + old.bytes());
            self.tools.remove(&*name);
        }
        let definition = Definition {
            argument_heads: said::argument_heads(schema),
            runs_commands,
            schema: schema.map(|schema| schema.raw().into()),
            compiled: OnceLock::new(),
            output: output.map(Into::into),
            compiled_output: OnceLock::new(),
            only_reads,
            open_world,
        };
        let bytes = name.len() + definition.bytes();
        let fits = definition.bytes() <= DEFINITION_BYTES
            && self.tools.len() < TOOLS
            && self.bytes + bytes <= BYTES;
        if fits {
            self.bytes += bytes;
            self.tools.insert(name.into(), Arc::new(definition));
        }
        fits
    }
}

/// Returns the value of `readOnlyHint`; a tool that declares `destructiveHint`, true or false, is
/// not read-only.
pub(super) fn only_reads(tool: Value<'_>) -> Option<bool> {
    let annotations = tool.get("annotations")?;
    let hint_value = |hint: &str| annotations.get(hint).map(|value| value.raw() == "true");
    hint_value("readOnlyHint").or(hint_value("destructiveHint").map(|_| false))
}

impl Definition {
    /// Returns how an argument is read, if the definition indicates it.
    pub(super) fn argument_head(&self, argument: &str) -> Option<Head> {
        self.argument_heads.get(argument).copied()
    }

    /// Returns whether the tool's description says that it runs commands.
    pub(super) fn runs_commands(&self) -> bool {
        self.runs_commands
    }

    /// Returns the data flow labels that its annotations suggest.
    pub(super) fn data_labels(&self) -> DataLabels {
        let open_world = self.open_world;
        let read_only = self.only_reads == Some(true);
        DataLabels {
            private: open_world == Some(false) && read_only,
            untrusted: open_world == Some(true),
            outward: open_world == Some(true) && !read_only,
        }
    }

    /// Returns the input schema as written.
    pub(super) fn schema(&self) -> Option<&str> {
        self.schema.as_deref()
    }

    /// Returns the input schema, or why there is none to validate with; `None` if the server
    /// provided none.
    fn compiled_schema(&self) -> Option<&Result<Schema, SkipReason>> {
        self.compiled
            .get_or_init(|| self.schema.as_deref().map(Schema::compile))
            .as_ref()
    }

    fn bytes(&self) -> usize {
        [&self.schema, &self.output]
            .into_iter()
            .flatten()
            .map(|schema| schema.len())
            .sum()
    }
}

#[cfg(test)]
mod tests;
