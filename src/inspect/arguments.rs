//! Which strings of a tool call a shell or an interpreter will read.
//!
//! The name of the tool, the name of the argument and its neighbours decide; a policy can pin it. What
//! belongs together (a program and its list of arguments, a folder and the command run in it) is put
//! together, each word quoted, so that no word is made that the receiver would not see.

use std::borrow::Cow;

use bytes::Bytes;

use crate::detect::ReadAs;
use crate::message::{Json, ReadLimits, Role, Value, ValueKind};

use super::argument_names::{self as names, Kind};
use super::pins::{Pinned, Pins};
use super::tools::Definition;

/// One string of the arguments, or several that the receiver reads as one.
pub(super) struct Unit<'m> {
    pub(super) text: Cow<'m, str>,
    /// Names joined by dots, indices left out.
    pub(super) argument: String,
    pub(super) role: Role,
    pub(super) read_as: ReadAs,
    /// Made of other units; not to be counted again.
    pub(super) joined: bool,
    node: usize,
}

/// All units of a tool call's arguments.
#[derive(Default)]
pub(super) struct Units<'m> {
    pub(super) units: Vec<Unit<'m>>,
    nodes: Vec<Node>,
}

/// A step from the arguments to a value in them.
struct Node {
    parent: Option<usize>,
    step: String,
}

/// A value that is still to be looked at.
struct Frame<'j> {
    value: Value<'j>,
    node: Option<usize>,
    argument: String,
    /// What the keys above say of it.
    kind: Kind,
    tool: String,
    language: Option<String>,
    /// Set where a joined unit has it already.
    covered: bool,
}

/// Longest dotted name; the rest of a longer one is left out.
const NAME_BYTES: usize = 256;
/// Strings that hold JSON are opened this often.
const JSON_DEPTH: usize = 2;

/// Finds the units of the arguments of a call of `tool`.
pub(super) fn place_arguments<'m>(tool: &str, arguments: Value<'m>, pins: &Pins, definition: Option<&Definition>) -> Units<'m> {
    let mut units = Units::default();
    let frame = Frame {
        value: arguments,
        node: None,
        argument: String::new(),
        kind: Kind::Unknown,
        tool: tool.to_owned(),
        language: None,
        covered: false,
    };
    units.walk(frame, &pins.of(tool, definition), 0, |text| text);
    units
}

impl<'m> Units<'m> {
    /// Where a unit stands, as a JSON pointer from the message's root.
    pub(super) fn pointer(&self, unit: &Unit<'_>) -> String {
        let mut steps = Vec::new();
        let mut at = Some(unit.node);
        while let Some(node) = at.and_then(|at| self.nodes.get(at)) {
            steps.push(node.step.replace('~', "~0").replace('/', "~1"));
            at = node.parent;
        }
        steps.reverse();
        steps.iter().fold("/params/arguments".to_owned(), |pointer, step| pointer + "/" + step)
    }

    fn walk<'j>(&mut self, root: Frame<'j>, pins: &Pinned<'_>, depth: usize, keep: fn(Cow<'j, str>) -> Cow<'m, str>) {
        let mut frames = vec![root];
        while let Some(frame) = frames.pop() {
            match frame.value.kind() {
                ValueKind::Object => self.object(&frame, pins, &mut frames, keep),
                ValueKind::Array => self.array(&frame, pins, &mut frames),
                ValueKind::String => self.string(frame, pins, depth, keep),
                _ => {}
            }
        }
    }

    fn child<'j>(&mut self, parent: &Frame<'j>, step: &str, value: Value<'j>, named: bool) -> Frame<'j> {
        self.nodes.push(Node { parent: parent.node, step: step.to_owned() });
        let mut argument = parent.argument.clone();
        if named && argument.len() < NAME_BYTES {
            if !argument.is_empty() {
                argument.push('.');
            }
            argument.extend(step.chars().take(64));
        }
        Frame {
            value,
            node: Some(self.nodes.len() - 1),
            argument,
            kind: parent.kind,
            tool: parent.tool.clone(),
            language: parent.language.clone(),
            covered: parent.covered,
        }
    }

    fn object<'j>(
        &mut self,
        frame: &Frame<'j>,
        pins: &Pinned<'_>,
        frames: &mut Vec<Frame<'j>>,
        keep: fn(Cow<'j, str>) -> Cow<'m, str>,
    ) {
        let members: Vec<(Cow<'j, str>, Value<'j>)> = frame.value.members().collect();
        // A call within a call names its own tool; a language is that of its neighbours.
        let mut tool = frame.tool.clone();
        let mut language = frame.language.clone();
        for (key, value) in &members {
            let text = || value.str().map(|text| text.chars().take(64).collect::<String>());
            if names::is_tool(key) && members.iter().any(|(key, value)| names::is_call(key) && value.kind() == ValueKind::Object)
            {
                tool = text().unwrap_or(tool);
            }
            if names::is_language(key) {
                language = text().or(language);
            }
        }
        let inherits = if frame.kind == Kind::Text { Kind::Text } else { Kind::Unknown };
        let joined = self.join(frame, &members, &tool, pins);
        let start = frames.len();
        for (key, value) in members {
            let mut child = self.child(frame, &key, value, true);
            child.tool.clone_from(&tool);
            child.language.clone_from(&language);
            child.kind = pins
                .kind(&child.argument)
                .unwrap_or_else(|| if inherits == Kind::Text { inherits } else { names::kind(&key, &tool) });
            child.covered = joined && names::is_argument_list(&key);
            let (node, argument) = (self.nodes.len() - 1, child.argument.clone());
            self.units.push(Unit { text: keep(key), argument, role: Role::Key, read_as: ReadAs::Text, joined: false, node });
            frames.push(child);
        }
        // In the order of the message.
        frames.get_mut(start..).unwrap_or_default().reverse();
    }

    /// A program with its arguments, folder and environment, as one command. Whether there was one.
    fn join(&mut self, frame: &Frame<'_>, members: &[(Cow<'_, str>, Value<'_>)], tool: &str, pins: &Pinned<'_>) -> bool {
        if frame.kind == Kind::Text {
            return false;
        }
        let pinned_text = |key: &str| {
            let argument = if frame.argument.is_empty() { key.to_owned() } else { format!("{}.{key}", frame.argument) };
            pins.kind(&argument) == Some(Kind::Text)
        };
        let find = |is: fn(&str) -> bool| members.iter().find(|(key, _)| is(key) && !pinned_text(key)).map(|(_, value)| *value);
        let list = find(names::is_argument_list);
        let program = members
            .iter()
            .find(|(key, value)| names::is_program(key) && !pinned_text(key) && value.kind() == ValueKind::String)
            .and_then(|(_, value)| value.str());
        let folder = find(names::is_folder)
            .and_then(|value| value.str())
            .filter(|folder| folder.starts_with(['/', '~']) || folder.contains(':'));
        let program = match (program, &list) {
            (Some(program), _) => program,
            (None, Some(_)) if names::is_program_tool(tool) => Cow::Owned(names::last_word(tool).to_owned()),
            _ => return false,
        };
        let words = list.map(words).unwrap_or_default();
        if words.is_empty() && folder.is_none() {
            return false;
        }
        let mut line = String::new();
        if let Some(folder) = folder {
            line = format!("cd {} && ", if folder.starts_with('~') { folder.into_owned() } else { quote(&folder) });
        }
        line.push_str(&program);
        line.push_str(&words);
        self.nodes.push(Node { parent: frame.node, step: members.first().map(|(key, _)| key.to_string()).unwrap_or_default() });
        let argument = if frame.argument.is_empty() { "command".to_owned() } else { format!("{}.command", frame.argument) };
        self.units.push(Unit {
            text: Cow::Owned(line),
            argument,
            role: Role::Value,
            read_as: ReadAs::Shell,
            joined: true,
            node: self.nodes.len() - 1,
        });
        !words.is_empty()
    }

    fn array<'j>(&mut self, frame: &Frame<'j>, pins: &Pinned<'_>, frames: &mut Vec<Frame<'j>>) {
        let elements: Vec<Value<'j>> = frame.value.elements().collect();
        let mut covered = frame.covered;
        let kind = pins.kind(&frame.argument).unwrap_or(frame.kind);
        if matches!(kind, Kind::Shell | Kind::Arguments) && !covered {
            let texts: Vec<Cow<'_, str>> = elements.iter().filter_map(|value| value.str()).collect();
            let scripts = names::is_plural(frame.argument.rsplit('.').next().unwrap_or(""))
                || texts.first().is_some_and(|text| text.trim().contains(' '));
            let text =
                if scripts { texts.join("\n") } else { texts.iter().map(|text| quote(text)).collect::<Vec<_>>().join(" ") };
            if let (false, Some(node)) = (texts.is_empty(), frame.node) {
                self.units.push(Unit {
                    text: Cow::Owned(text),
                    argument: frame.argument.clone(),
                    role: Role::Value,
                    read_as: ReadAs::Shell,
                    joined: true,
                    node,
                });
                covered = !scripts;
            }
        }
        let start = frames.len();
        for (index, value) in elements.into_iter().enumerate() {
            let mut child = self.child(frame, &index.to_string(), value, false);
            child.covered = covered;
            frames.push(child);
        }
        frames.get_mut(start..).unwrap_or_default().reverse();
    }

    fn string<'j>(&mut self, frame: Frame<'j>, pins: &Pinned<'_>, depth: usize, keep: fn(Cow<'j, str>) -> Cow<'m, str>) {
        let (Some(text), Some(node)) = (frame.value.str(), frame.node) else { return };
        let kind = if frame.covered { Kind::Text } else { pins.kind(&frame.argument).unwrap_or(frame.kind) };
        if depth < JSON_DEPTH
            && kind != Kind::Text
            && text.trim_start().starts_with(['{', '['])
            && let Ok(json) = Json::parse(Bytes::copy_from_slice(text.as_bytes()), &ReadLimits::default())
            && json.root().members().next().is_some()
        {
            let inner = Frame {
                value: json.root(),
                node: Some(node),
                argument: frame.argument.clone(),
                kind: Kind::Unknown,
                tool: frame.tool.clone(),
                language: frame.language.clone(),
                covered: false,
            };
            let before = self.units.len();
            self.walk(inner, pins, depth + 1, |text| Cow::Owned(text.into_owned()));
            for unit in self.units.iter_mut().skip(before) {
                unit.joined = true;
            }
        }
        let read_as = match kind {
            Kind::Shell | Kind::Arguments => ReadAs::Shell,
            Kind::Code => names::language(frame.language.as_deref(), &frame.tool, &text),
            Kind::Path => ReadAs::Path,
            Kind::Url => ReadAs::Url,
            Kind::Text | Kind::Unknown => ReadAs::Text,
        };
        self.units.push(Unit { text: keep(text), argument: frame.argument, role: Role::Value, read_as, joined: false, node });
    }
}

/// The words of an argument list: each element quoted, a string as it stands.
fn words(list: Value<'_>) -> String {
    let mut out = String::new();
    match list.str() {
        Some(text) => {
            out.push(' ');
            out.push_str(&text);
        }
        None => {
            for element in list.elements() {
                let text = element
                    .str()
                    .unwrap_or_else(|| Cow::Borrowed(if element.kind() == ValueKind::Number { element.raw() } else { "" }));
                if !text.is_empty() {
                    out.push(' ');
                    out.push_str(&quote(&text));
                }
            }
        }
    }
    out
}

/// One word, as a shell must be told it.
fn quote(text: &str) -> String {
    let plain = |b: u8| {
        b.is_ascii_alphanumeric()
            || matches!(b, b'-' | b'_' | b'.' | b'/' | b':' | b'=' | b',' | b'+' | b'@' | b'%' | b'*' | b'~')
    };
    if !text.is_empty() && text.bytes().all(plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', "'\\''")) }
}
