//! Judges what a server says to an agent.

use std::borrow::Cow;
use std::collections::HashMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::detect::secret::Seen;
use crate::detect::{Place, Surface};
use crate::message::{Edit, Envelope, Message, MessageKind, Path, Role, Step, Value, ValueKind, pointer};
use crate::protocol::{AuditId, Context, opaque::is_opaque};
use crate::text::Text;

use super::caps::Budget;
use super::joined::Joined;
use super::rewrite::Outcome;
use super::string::{Judge, Site};
use super::{Inspection, Policy, Uninspected, surface};

/// One message of a body, on its way to an agent.
pub(super) struct Inbound<'a> {
    pub(super) policy: &'a Policy,
    pub(super) message: &'a Message,
    pub(super) envelope: &'a Envelope,
    pub(super) item: usize,
    pub(super) context: &'a Context,
    pub(super) audit: AuditId,
    pub(super) seen: Option<&'a Seen<'a>>,
}

/// Shorter strings of `structuredContent` are values that programs compare rather than texts, and are never cut.
const CUTTABLE_BYTES: usize = 200;

impl Inbound<'_> {
    /// Judges every string of it; adds findings and coverage to `inspection`, and what changes to `edits`.
    pub(super) fn inspect(&self, inspection: &mut Inspection, edits: &mut Vec<Edit>) {
        let asked = self.message.id(self.envelope).filter(|_| self.envelope.is_answer()).and_then(|id| self.context.asked(id));
        let method = asked.map(|asked| &*asked.method).or(self.envelope.method());
        let asked_tool = asked.and_then(|asked| asked.tool.as_deref());
        let first_edit = edits.len();
        let (mut content_bytes, mut structured_bytes) = (0, 0);
        // The containers that hold the value at hand, and the name of the tool or the like that is described there.
        let mut holders: Vec<Value<'_>> = Vec::new();
        let mut described: Option<Cow<'_, str>> = None;
        let mut joined = Joined::default();
        let mut judge = Judge {
            rules: &self.policy.inbound,
            audit: self.audit,
            item: self.item,
            findings: &mut inspection.findings,
            matches: Vec::new(),
        };
        let coverage = &mut inspection.coverage;
        self.message.value(self.envelope).walk(|path, value, role| {
            if matches!(value.kind(), ValueKind::Object | ValueKind::Array) {
                holders.truncate(path.len());
                holders.push(value);
                if path.len() == 3 {
                    described = value.get("name").and_then(|name| name.str());
                }
                return;
            }
            let Some(string) = value.str() else { return };
            let surface = surface::inbound(self.envelope, asked, path);
            let tool = if surface == Surface::Definition { described.as_deref() } else { asked_tool };
            let place = Place { surface, method, tool, role, seen: self.seen, ..Place::default() };
            let at = || self.pointer(path);
            if role == Role::Value {
                let holder = path.len().checked_sub(1).and_then(|at| holders.get(at));
                match holder.map_or(Binary::No, |holder| binary(path, *holder, &string)) {
                    Binary::No => {}
                    Binary::Opaque => {
                        coverage.uninspected.push(Uninspected { at: at(), reason: "binary", bytes: string.len() });
                        return;
                    }
                    Binary::Text(text) => {
                        coverage.strings += 1;
                        coverage.bytes += text.len();
                        judge.string(&Text::new(text), &place, &Site { at: &at, opaque: &|| true });
                        return;
                    }
                }
            }
            coverage.strings += 1;
            coverage.bytes += string.len();
            let mut length = string.len();
            let site = Site { at: &at, opaque: &|| is_opaque(path, role) };
            let text = Text::new(string);
            let inner = value.span().start + 1..value.span().end.saturating_sub(1);
            if counted(surface, path, role) == Some(Surface::Content) {
                joined.add(text.raw(), inner.clone());
            }
            if self.seen.is_some() {
                self.policy.outbound.learn(&text, &place);
            }
            if let Outcome::Replace(with) = judge.string(&text, &place, &site) {
                length = with.len();
                edits.push(Edit { span: inner, with });
            }
            match counted(surface, path, role) {
                Some(Surface::Structured) => structured_bytes += length,
                Some(_) => content_bytes += length,
                None => {}
            }
        });
        let place = Place { surface: Surface::Content, method, tool: asked_tool, seen: self.seen, ..Place::default() };
        let site = Site { at: &|| "/result/content".to_owned(), opaque: &|| false };
        joined.judge(&mut judge, &place, &site, edits);
        if self.envelope.kind == MessageKind::Result && surface::is_tool_result(asked) {
            let cap = self.policy.caps.of(asked_tool);
            for (counts, total) in [(Surface::Content, content_bytes), (Surface::Structured, structured_bytes)] {
                let budget = Budget::new(cap, total);
                if !budget.fits() {
                    inspection.cut_bytes += self.cut(counts, budget, edits, first_edit);
                }
            }
        }
    }

    /// Cuts the texts of one surface to a budget; gives how many bytes went.
    fn cut(&self, counts: Surface, mut budget: Budget, edits: &mut Vec<Edit>, first_edit: usize) -> usize {
        let known = edits.iter().enumerate().skip(first_edit).map(|(index, edit)| (edit.span.start, index));
        let known: HashMap<usize, usize> = known.collect();
        let mut cut_bytes = 0;
        self.message.value(self.envelope).walk(|path, value, role| {
            let Some(string) = value.str() else { return };
            if counted(surface::inbound(self.envelope, None, path), path, role) != Some(counts) {
                return;
            }
            let span = value.span();
            let span = span.start + 1..span.end.saturating_sub(1);
            let edit = known.get(&span.start).and_then(|index| edits.get_mut(*index));
            let text = edit.as_ref().map_or(&*string, |edit| &edit.with);
            if counts == Surface::Structured && text.len() < CUTTABLE_BYTES {
                return;
            }
            if let Some((with, gone)) = budget.take(text) {
                cut_bytes += gone;
                match edit {
                    Some(edit) => edit.with = with,
                    None => edits.push(Edit { span, with }),
                }
            }
        });
        cut_bytes
    }

    fn pointer(&self, path: &Path<'_>) -> String {
        if self.message.is_batch() { format!("/{}{}", self.item, pointer(path)) } else { pointer(path) }
    }
}

/// Whether a string counts as text of a tool's result, and on which budget.
fn counted(surface: Surface, path: &Path<'_>, role: Role) -> Option<Surface> {
    let is_text = || matches!(path.last(), Some(Step::Key(key)) if key == "text");
    match surface {
        Surface::Content if role == Role::Value && is_text() => Some(Surface::Content),
        Surface::Structured if role == Role::Value => Some(Surface::Structured),
        _ => None,
    }
}

enum Binary {
    /// It is no binary block.
    No,
    /// It is one that no rule can read.
    Opaque,
    /// It is one, and this is the text in it.
    Text(String),
}

/// Whether the string at `path` is the data of a binary block (`data` of images and audio, `blob` of resources).
/// What only claims to be is text.
fn binary(path: &Path<'_>, holder: Value<'_>, string: &str) -> Binary {
    let Some(Step::Key(key)) = path.last() else { return Binary::No };
    let claims = match &**key {
        "blob" => true,
        "data" => matches!(holder.get("type").and_then(|kind| kind.str()).as_deref(), Some("image" | "audio")),
        _ => false,
    };
    let encoded = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=');
    if !claims || !string.bytes().all(encoded) {
        return Binary::No;
    }
    let mime = holder.get("mimeType").and_then(|mime| mime.str()).unwrap_or_default().to_ascii_lowercase();
    let names_text = ["text/", "json", "xml", "javascript", "yaml", "html"].iter().any(|word| mime.contains(word));
    let text = names_text.then(|| STANDARD.decode(string).ok().and_then(|bytes| String::from_utf8(bytes).ok()));
    text.flatten().map_or(Binary::Opaque, Binary::Text)
}
