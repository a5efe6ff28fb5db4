//! One line of the audit log, read back.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;

use crate::message::{Json, ReadLimits, Value, ValueKind};
use crate::record::entry::kind::Kind;
use crate::record::entry::object::finding;
use crate::record::entry::{Member, Object, Read, member};
use crate::record::is_injection;
use crate::rules::Action;

/// Longest line that is read, in bytes. The gate writes none that is a tenth of it.
pub const LINE_BYTES: usize = 1 << 20;

/// One line of the audit log. Names and texts in it may be an agent's or a server's: what prints them makes them harmless.
#[derive(Clone)]
pub struct Entry {
    json: Json,
    file: Arc<Path>,
    line: u64,
}

/// A finding of a line.
#[derive(Clone, Copy)]
pub struct EntryFinding<'e>(Object<'e>);

impl Entry {
    /// Reads a line, without its line feed, that stands in this file as its so manieth.
    ///
    /// # Errors
    /// Why it is not a line of an audit log.
    pub fn read(line: Bytes, file: &Arc<Path>, number: u64) -> Result<Self, String> {
        let limits = ReadLimits {
            message_bytes: LINE_BYTES,
            ..ReadLimits::default()
        };
        let json = Json::parse(line, &limits).map_err(|error| error.to_string())?;
        let entry = Self {
            json,
            file: file.clone(),
            line: number,
        };
        match entry.json.root().kind() {
            ValueKind::Object if entry.get(member::event).is_some() => Ok(entry),
            ValueKind::Object => Err(format!("`{}` is missing", member::event::NAME)),
            _ => Err("not an object".to_owned()),
        }
    }

    /// The line as it was written, without its line feed.
    pub fn raw(&self) -> &str {
        self.json.root().raw()
    }

    pub fn root(&self) -> Value<'_> {
        self.json.root()
    }

    /// The file it stands in.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Which line of its file it is, from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// A member.
    pub fn get<M: Member>(&self, member: M) -> Option<Read<'_, M>> {
        Object(self.root()).get(member)
    }

    /// A text, by the name of its member.
    pub fn text(&self, name: &str) -> Option<Cow<'_, str>> {
        self.root().get(name)?.str()
    }

    /// When it was written.
    pub fn time(&self) -> Option<SystemTime> {
        humantime::parse_rfc3339(&self.get(member::time)?).ok()
    }

    /// The event that it records.
    pub fn event(&self) -> Cow<'_, str> {
        self.get(member::event).unwrap_or_default()
    }

    /// Whether `lychgate prove` caused it.
    pub fn is_of_prove(&self) -> bool {
        self.get(member::prove).unwrap_or(false)
    }

    /// Whether a call was refused without being judged: its line is the only one of it. A line of repeated refusals without
    /// an id comes on top of that of the judgement.
    pub fn is_unjudged_refusal(&self) -> bool {
        self.event() == "refused_again" && self.get(member::audit).is_some()
    }

    pub fn findings(&self) -> impl Iterator<Item = EntryFinding<'_>> {
        self.get(member::findings)
            .unwrap_or_default()
            .into_iter()
            .map(EntryFinding)
    }

    /// The arguments, or other content from an agent, as far as they are shown.
    pub fn arguments(&self) -> Option<Value<'_>> {
        self.get(member::arguments)
            .or_else(|| self.get(member::sent))
    }
}

impl<'e> EntryFinding<'e> {
    /// The value of a text member; empty if the finding has no such member.
    pub fn text<M: Member<Kind: Kind<Read<'e> = Cow<'e, str>>>>(&self, member: M) -> Cow<'e, str> {
        self.0.get(member).unwrap_or_default()
    }

    /// Whether it counts as an injection in an inbound message. Suppressed findings do not count.
    pub fn is_injection(&self) -> bool {
        let action = self.text(finding::action);
        let named = Action::WORDS.iter().find(|(word, _)| *word == action);
        self.0.get(finding::suppressed).is_none()
            && named.is_some_and(|(_, action)| is_injection(*action))
    }
}
