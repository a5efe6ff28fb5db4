//! One line of the audit log, read back.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;

use crate::message::{Json, ReadLimits, Value, ValueKind};
use crate::record::{is_injection, names};
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

/// Something that was found, as a line tells of it.
#[derive(Clone, Copy)]
pub struct Found<'e>(Value<'e>);

impl Entry {
    /// Reads a line, without its line feed, that stands in this file as its so manieth.
    ///
    /// # Errors
    /// Why it is not a line of an audit log.
    pub fn read(line: Bytes, file: &Arc<Path>, number: u64) -> Result<Self, String> {
        let limits = ReadLimits { message_bytes: LINE_BYTES, ..ReadLimits::default() };
        let json = Json::parse(line, &limits).map_err(|error| error.to_string())?;
        let entry = Self { json, file: file.clone(), line: number };
        match entry.json.root().kind() {
            ValueKind::Object if entry.text(names::EVENT).is_some() => Ok(entry),
            ValueKind::Object => Err(format!("there is no `{}`", names::EVENT)),
            _ => Err("not an object".to_owned()),
        }
    }

    /// The line as it was written, without its line feed.
    pub fn raw(&self) -> &str {
        self.json.root().raw()
    }

    /// All of it.
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

    /// A member that is a text.
    pub fn text(&self, name: &str) -> Option<Cow<'_, str>> {
        self.root().get(name)?.str()
    }

    /// A member that is a whole number.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.root().get(name)?.raw().parse().ok()
    }

    /// A member that is a list of texts.
    pub fn texts(&self, name: &str) -> impl Iterator<Item = Cow<'_, str>> {
        self.root().get(name).into_iter().flat_map(|list| list.elements()).filter_map(|one| one.str())
    }

    /// When it was written.
    pub fn time(&self) -> Option<SystemTime> {
        humantime::parse_rfc3339(&self.text(names::TIME)?).ok()
    }

    /// What it tells of: `judged`, `failed` and so on.
    pub fn event(&self) -> Cow<'_, str> {
        self.text(names::EVENT).unwrap_or_default()
    }

    /// The judgement that it tells of.
    pub fn audit(&self) -> Option<Cow<'_, str>> {
        self.text(names::AUDIT)
    }

    /// The agent.
    pub fn agent(&self) -> Option<Cow<'_, str>> {
        self.text(names::AGENT)
    }

    /// The server.
    pub fn upstream(&self) -> Option<Cow<'_, str>> {
        self.text(names::UPSTREAM)
    }

    /// The tool.
    pub fn tool(&self) -> Option<Cow<'_, str>> {
        self.text(names::TOOL)
    }

    /// The method.
    pub fn method(&self) -> Option<Cow<'_, str>> {
        self.text(names::METHOD)
    }

    /// `outbound` or `inbound`.
    pub fn direction(&self) -> Option<Cow<'_, str>> {
        self.text(names::DIRECTION)
    }

    /// What was done: `pass`, `rewrite`, `ask` or `block`.
    pub fn verdict(&self) -> Option<Cow<'_, str>> {
        self.text(names::VERDICT)
    }

    /// What would have been done, had the policy not only observed.
    pub fn would(&self) -> Option<Cow<'_, str>> {
        self.text(names::WOULD)
    }

    /// The rule that refused it.
    pub fn rule(&self) -> Option<Cow<'_, str>> {
        self.text(names::RULE)
    }

    /// Whether `lychgate prove` caused it.
    pub fn is_of_prove(&self) -> bool {
        self.root().get(names::PROVE).is_some_and(|value| value.raw() == "true")
    }

    /// Whether a call was refused without being judged: its line is the only one of it. A line of repeated refusals without
    /// an id comes on top of that of the judgement.
    pub fn is_unjudged_refusal(&self) -> bool {
        self.event() == "refused_again" && self.audit().is_some()
    }

    /// What was found.
    pub fn findings(&self) -> impl Iterator<Item = Found<'_>> {
        self.root().get(names::FINDINGS).into_iter().flat_map(|list| list.elements()).map(Found)
    }

    /// What is shown of the arguments, or of what else an agent sent.
    pub fn arguments(&self) -> Option<Value<'_>> {
        self.root().get(names::ARGUMENTS).or_else(|| self.root().get(names::SENT))
    }
}

impl<'e> Found<'e> {
    /// All of it.
    pub fn root(&self) -> Value<'e> {
        self.0
    }

    /// A member that is a text; empty if there is none.
    pub fn text(&self, name: &str) -> Cow<'e, str> {
        self.0.get(name).and_then(|value| value.str()).unwrap_or_default()
    }

    /// The rule.
    pub fn rule(&self) -> Cow<'e, str> {
        self.text(names::RULE)
    }

    /// What the rule has done about it.
    pub fn action(&self) -> Cow<'e, str> {
        self.text(names::ACTION)
    }

    /// Whether it counts as an injection, in a message that came in. What a policy suppresses does not.
    pub fn is_injection(&self) -> bool {
        let action = self.action();
        let named = Action::WORDS.iter().find(|(word, _)| *word == action);
        self.0.get(names::SUPPRESSED).is_none() && named.is_some_and(|(_, action)| is_injection(*action))
    }

    /// Where in the message, as a JSON pointer.
    pub fn at(&self) -> Cow<'e, str> {
        self.text(names::AT)
    }

    /// In which reading of the text.
    pub fn reading(&self) -> Cow<'e, str> {
        self.text(names::READING)
    }
}
