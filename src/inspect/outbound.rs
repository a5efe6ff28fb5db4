//! Judges what an agent says to a server. Nothing outbound is ever rewritten.

use crate::detect::{Place, ReadAs, Surface};
use crate::message::{Direction, Envelope, Message, Path, Role, Step, pointer};
use crate::protocol::AuditId;
use crate::text::Text;

use super::string::{Judge, Site};
use super::{Inspection, Policy, surface};

/// One message of a body, on its way to a server.
pub(super) struct Outbound<'a> {
    pub(super) policy: &'a Policy,
    pub(super) message: &'a Message,
    pub(super) envelope: &'a Envelope,
    pub(super) item: usize,
    pub(super) audit: AuditId,
}

/// Arguments of these names are commands.
const COMMANDS: [&str; 4] = ["command", "cmd", "script", "code"];

impl Outbound<'_> {
    /// Judges every string of it; adds findings and coverage to `inspection`.
    pub(super) fn inspect(&self, inspection: &mut Inspection) {
        let method = self.envelope.method();
        let body = self.message.body(self.envelope);
        let tool = body.filter(|_| method == Some("tools/call")).and_then(|body| body.get("name")).and_then(|name| name.str());
        let mut judge = Judge {
            rules: &self.policy.outbound,
            audit: self.audit,
            item: self.item,
            findings: &mut inspection.findings,
            matches: Vec::new(),
        };
        let coverage = &mut inspection.coverage;
        let base = Place { direction: Direction::Outbound, method, tool: tool.as_deref(), ..Place::default() };
        self.message.value(self.envelope).strings(|path, found| {
            let at = || if self.message.is_batch() { format!("/{}{}", self.item, pointer(path)) } else { pointer(path) };
            coverage.strings += 1;
            coverage.bytes += found.value.len();
            let argument = method.filter(|method| *method == "tools/call").and_then(|_| argument(path));
            let last = argument.as_deref().and_then(|name| name.rsplit('.').next()).unwrap_or_default();
            let shell = found.role == Role::Value && COMMANDS.contains(&last);
            let place = Place {
                surface: if argument.is_some() { Surface::Arguments } else { surface::outbound(self.envelope, path) },
                argument: argument.as_deref(),
                role: found.role,
                read_as: if shell { ReadAs::Shell } else { ReadAs::Text },
                ..base
            };
            judge.string(&Text::new(found.value), &place, &Site { at: &at, opaque: &|| true });
        });
    }
}

/// The dotted name of an argument of a tool call, indices left out.
fn argument(path: &Path<'_>) -> Option<String> {
    let [Step::Key(params), Step::Key(arguments), rest @ ..] = path else { return None };
    if params != "params" || arguments != "arguments" || rest.is_empty() {
        return None;
    }
    let names = rest.iter().filter_map(|step| match step {
        Step::Key(key) => Some(&**key),
        Step::Index(_) => None,
    });
    Some(names.collect::<Vec<_>>().join("."))
}
