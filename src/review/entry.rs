//! One line of the audit log, parsed.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;

use crate::message::{Direction, Json, ReadLimits, Value, ValueKind};
use crate::record::entry::kind::Kind;
use crate::record::entry::object::finding;
use crate::record::entry::{Member, Object, Read, member};
use crate::record::is_injection;
use crate::rules::Action;

/// Maximum length of a line that is read, in bytes. The gate writes no line a tenth as long.
pub const MAX_LINE_BYTES: usize = 1 << 20;

/// One line of the audit log. Names and texts in it may come from an agent or a server, so code
/// that prints them must escape them.
#[derive(Clone)]
pub struct Entry {
    json: Json,
    file: Arc<Path>,
    line: u64,
}

/// A finding recorded in a line.
#[derive(Clone, Copy)]
pub struct EntryFinding<'e>(Object<'e>);

impl Entry {
    /// Parses a line, given without its line feed, from `file` at line `number`.
    ///
    /// # Errors
    /// The reason why it is not a line of an audit log.
    pub fn read(line: Bytes, file: &Arc<Path>, number: u64) -> Result<Self, String> {
        let limits = ReadLimits::of_bytes(MAX_LINE_BYTES);
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

    /// Returns the line as it was written, without its line feed.
    pub fn raw(&self) -> &str {
        self.json.root().raw()
    }

    /// Returns the direction of the message of the line.
    pub fn direction(&self) -> Option<Direction> {
        Direction::named(&self.get(member::direction)?)
    }

    pub fn root(&self) -> Value<'_> {
        self.json.root()
    }

    /// Returns the file that contains the line.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Returns the line number in the file, from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Returns the value of a member.
    pub fn get<M: Member>(&self, member: M) -> Option<Read<'_, M>> {
        Object(self.root()).get(member)
    }

    /// Returns a text member by name.
    pub fn text(&self, name: &str) -> Option<Cow<'_, str>> {
        self.root().get_str(name)
    }

    /// Returns the time when the line was written.
    pub fn time(&self) -> Option<SystemTime> {
        humantime::parse_rfc3339(&self.get(member::time)?).ok()
    }

    /// Returns the event that the line records.
    pub fn event(&self) -> Cow<'_, str> {
        self.get(member::event).unwrap_or_default()
    }

    /// Reports whether `lychgate prove` caused the line.
    pub fn is_of_prove(&self) -> bool {
        self.get(member::prove).unwrap_or(false)
    }

    /// Reports whether a call was refused without being judged, so that this line is its only one.
    /// A line for repeated refusals that has no id is in addition to the line of the judgement.
    pub fn is_unjudged_refusal(&self) -> bool {
        self.event() == "refused_again" && self.get(member::audit).is_some()
    }

    pub fn findings(&self) -> impl Iterator<Item = EntryFinding<'_>> {
        self.get(member::findings)
            .unwrap_or_default()
            .into_iter()
            .map(EntryFinding)
    }

    /// Returns the arguments, or other content from an agent, as far as the log contains them.
    pub fn arguments(&self) -> Option<Value<'_>> {
        self.get(member::arguments)
            .or_else(|| self.get(member::sent))
    }
}

impl<'e> EntryFinding<'e> {
    /// Returns the value of a text member; empty if the finding has no such member.
    pub fn text<M: Member<Kind: Kind<Read<'e> = Cow<'e, str>>>>(&self, member: M) -> Cow<'e, str> {
        self.0.get(member).unwrap_or_default()
    }

    /// Reports whether the finding counts as an injection in an inbound message. Suppressed
    /// findings do not count.
    pub fn is_injection(&self) -> bool {
        let action = self.text(finding::action);
        self.0.get(finding::suppressed).is_none()
            && Action::named(&action).is_some_and(is_injection)
    }
}
