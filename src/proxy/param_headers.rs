//! Which arguments of which tools are mirrored in headers, learned from the tool lists that pass
//! (2026-07-28, `server/tools`, `x-mcp-header`).

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::message::{Message, Value};
use crate::protocol::Context;
use crate::protocol::headers::Mirror;

/// Maximum number of tools remembered for one upstream; the headers of further tools are checked
/// without their definition.
const TOOLS: usize = 4096;

/// The mirrored arguments of one upstream's tools.
#[derive(Default)]
pub(super) struct ParamHeaders(Mutex<HashMap<String, Arc<[Mirror]>>>);

impl ParamHeaders {
    /// Returns the mirrored arguments of a tool, if its definition is known.
    pub(super) fn get(&self, tool: &str) -> Option<Arc<[Mirror]>> {
        self.0.lock().get(tool).cloned()
    }

    /// Learns the mirrored arguments from a message, if it is a list of tools that was requested.
    pub(super) fn observe(&self, message: &Message, context: &Context) {
        for envelope in message.envelopes() {
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
            let mut table = self.0.lock();
            for tool in tools.elements() {
                let Some(name) = tool.get_str("name") else {
                    continue;
                };
                if table.len() < TOOLS || table.contains_key(&*name) {
                    table.insert(
                        name.into_owned(),
                        find_mirrors(tool.get("inputSchema")).into(),
                    );
                }
            }
        }
    }
}

/// Returns the annotated properties that are reached through `properties` alone.
fn find_mirrors(schema: Option<Value<'_>>) -> Vec<Mirror> {
    let mut out = Vec::new();
    let mut open: Vec<(Value<'_>, Vec<String>)> = schema
        .map(|schema| (schema, Vec::new()))
        .into_iter()
        .collect();
    while let Some((schema, path)) = open.pop() {
        for (name, property) in schema
            .get("properties")
            .into_iter()
            .flat_map(|properties| properties.members())
        {
            let mut path = path.clone();
            path.push(name.into_owned());
            if let Some(header) = property.get_str("x-mcp-header") {
                out.push(Mirror {
                    header: header.to_ascii_lowercase(),
                    path: path.clone(),
                });
            }
            open.push((property, path));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::ReadLimits;
    use crate::protocol::{AgentName, CallTarget, Era, OpenRequest, UpstreamName};

    #[test]
    fn annotations_are_learnt_from_lists_that_were_asked_for() {
        let text = r#"{"jsonrpc":"2.0","id":3,"result":{"tools":[{"name":"q","inputSchema":{"type":"object","properties":{
            "region":{"type":"string","x-mcp-header":"Region"},"deep":{"properties":{"n":{"type":"integer","x-mcp-header":"N"}}},"plain":{}}}}]}}"#;
        let message = Message::parse(text.into(), &ReadLimits::default()).unwrap();
        let request = OpenRequest {
            id: "3".into(),
            method: "tools/list".into(),
            tool: None,
            continues: false,
            target: CallTarget::Other,
        };
        let mut context =
            Context::new(AgentName("a".into()), UpstreamName("u".into()), Era::Modern);
        let mirrors = ParamHeaders::default();
        mirrors.observe(&message, &context);
        assert!(mirrors.get("q").is_none());
        context.requests = [request].into();
        mirrors.observe(&message, &context);
        let learnt: Vec<_> = mirrors
            .get("q")
            .unwrap()
            .iter()
            .map(|m| (m.header.clone(), m.path.join(".")))
            .collect();
        assert_eq!(
            learnt,
            [
                ("region".to_owned(), "region".to_owned()),
                ("n".to_owned(), "deep.n".to_owned())
            ]
        );
    }
}
