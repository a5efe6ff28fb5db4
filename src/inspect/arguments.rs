//! How the receiver of a tool call reads each string of its arguments: as a command, code, a path,
//! a URL, or text.
//!
//! The policy takes precedence, then the names of the tool and the argument, then what the tool's
//! definition says about the argument, and then the look of the string itself. Strings that belong
//! together (a program and its list of arguments, a folder, the variables and the standard input of
//! a command) are joined, each word quoted, so that no word is created that the receiver would not
//! see.

mod addresses;
mod base_path;
mod forms;
mod implied;
mod join;
mod look;
mod names;
mod pairs;
mod read;
mod references;
mod tool;
mod words;
mod written;
mod written_code;

use std::borrow::Cow;
use std::rc::Rc;

use bytes::Bytes;

use crate::detect::ReadAs;
use crate::message::{Json, ReadLimits, Role, Value, ValueKind};

use super::readers::{Readers, ToolReaders};
use super::tools::Definition;
pub(super) use names::Head;
use tool::{Runs, Tool};
pub(super) use written::Written;

/// One string of the arguments, or several that the receiver reads as one.
pub(super) struct Unit<'m> {
    pub(super) text: Cow<'m, str>,
    /// Argument names joined by dots, without indices.
    pub(super) argument: String,
    pub(super) role: Role,
    pub(super) read_as: ReadAs,
    /// Whether it is composed of other units and must not be counted again.
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

/// The object that an argument belongs to.
struct Scope {
    tool: Rc<Tool>,
    /// The language that a sibling argument names.
    language: Option<String>,
    /// Whether some argument is clearly something to execute.
    executes: bool,
    /// Whether its values are stored as they are.
    stored: bool,
    /// Whether one of its members names a folder.
    has_folder: bool,
    /// Whether its paths are those of a container, not of this machine.
    in_container: bool,
    /// Whether its paths are routes of a server, or steps in a document.
    is_routed: bool,
}

/// A value that has not been visited yet.
struct Frame<'j> {
    value: Value<'j>,
    node: Option<usize>,
    argument: String,
    head: Head,
    /// Whether the policy determines the reading, here or above: then the look of the value does
    /// not matter.
    pinned: bool,
    /// Whether the name of the value indicates something to act on rather than to store.
    is_order: bool,
    scope: Rc<Scope>,
    /// Whether a joined unit already contains it.
    covered: bool,
    /// Whether it is an element of a list of commands.
    listed: bool,
}

/// Maximum length of a dotted name; the rest of a longer one is omitted.
const NAME_BYTES: usize = 256;
/// Maximum number of steps that are joined.
const STEPS: usize = 64;
/// Maximum depth of JSON in strings that is parsed.
const JSON_DEPTH: usize = 2;

/// Finds the units of the arguments of a call of `tool`.
pub(super) fn place_arguments<'m>(
    tool: &str,
    arguments: Value<'m>,
    readers: &Readers,
    definition: Option<&Definition>,
) -> Units<'m> {
    let mut units = Units::default();
    let described = definition.is_some_and(Definition::runs_commands);
    let scope = Scope {
        tool: Rc::new(Tool::new(tool, described)),
        language: None,
        executes: false,
        stored: false,
        has_folder: false,
        in_container: false,
        is_routed: false,
    };
    let json_text = arguments
        .str()
        .filter(|text| text.trim_start().starts_with('{'));
    let parsed = json_text.and_then(|text| {
        Json::parse(
            Bytes::copy_from_slice(text.as_bytes()),
            &ReadLimits::default(),
        )
        .ok()
    });
    let readers = readers.for_tool(tool, definition);
    if let Some(json) = parsed {
        // Some clients send the arguments as a JSON string, and some servers accept that.
        let root = Frame::root(json.root(), scope);
        units.walk(root, &readers, 1, |text| Cow::Owned(text.into_owned()));
        return units;
    }
    units.walk(Frame::root(arguments, scope), &readers, 0, |text| text);
    units
}

impl<'j> Frame<'j> {
    /// Creates the frame of the arguments as a whole.
    fn root(value: Value<'j>, scope: Scope) -> Self {
        Self {
            value,
            node: None,
            argument: String::new(),
            head: Head::Unknown,
            pinned: false,
            is_order: true,
            scope: Rc::new(scope),
            covered: false,
            listed: false,
        }
    }
}

impl<'m> Units<'m> {
    /// Returns the place of a unit, as a JSON pointer from the message's root.
    pub(super) fn pointer(&self, unit: &Unit<'_>) -> String {
        let mut steps = Vec::new();
        let mut at = Some(unit.node);
        while let Some(node) = at.and_then(|at| self.nodes.get(at)) {
            steps.push(node.step.replace('~', "~0").replace('/', "~1"));
            at = node.parent;
        }
        steps.reverse();
        steps
            .iter()
            .fold("/params/arguments".to_owned(), |pointer, step| {
                pointer + "/" + step
            })
    }

    fn walk<'j>(
        &mut self,
        root: Frame<'j>,
        readers: &ToolReaders<'_>,
        depth: usize,
        convert: fn(Cow<'j, str>) -> Cow<'m, str>,
    ) {
        let mut frames = vec![root];
        while let Some(frame) = frames.pop() {
            match frame.value.kind() {
                ValueKind::Object => self.object(&frame, readers, &mut frames, convert),
                ValueKind::Array => self.array(&frame, &mut frames),
                ValueKind::String => self.string(frame, readers, depth, convert),
                _ => {}
            }
        }
    }

    fn child<'j>(
        &mut self,
        parent: &Frame<'j>,
        step: &str,
        value: Value<'j>,
        is_named: bool,
    ) -> Frame<'j> {
        self.nodes.push(Node {
            parent: parent.node,
            step: step.to_owned(),
        });
        let mut argument = parent.argument.clone();
        if is_named && argument.len() < NAME_BYTES {
            if !argument.is_empty() {
                argument.push('.');
            }
            argument.extend(step.chars().take(64));
        }
        Frame {
            value,
            node: Some(self.nodes.len() - 1),
            argument,
            head: parent.head,
            pinned: parent.pinned,
            is_order: parent.is_order,
            scope: parent.scope.clone(),
            covered: parent.covered,
            listed: parent.listed,
        }
    }

    fn object<'j>(
        &mut self,
        frame: &Frame<'j>,
        readers: &ToolReaders<'_>,
        frames: &mut Vec<Frame<'j>>,
        convert: fn(Cow<'j, str>) -> Cow<'m, str>,
    ) {
        let members: Vec<(Cow<'j, str>, Value<'j>)> = frame.value.members().collect();
        let cell = members
            .iter()
            .find(|(key, _)| names::is_cell_type(key))
            .and_then(|(_, value)| value.str());
        let in_notebook = cell.is_some() || frame.scope.tool.notebook;
        let head = |key: &str| match names::head(key) {
            // The source of a notebook cell; a text cell runs nothing.
            _ if names::is_source(key) && cell.as_deref().is_some_and(|cell| cell != "code") => {
                Head::Text
            }
            _ if names::is_source(key) && in_notebook => Head::Code,
            head => head,
        };
        let heads: Vec<Head> = members.iter().map(|(key, _)| head(key)).collect();
        let scope = Rc::new(frame.scope.within(
            &members,
            &heads,
            names::is_record(last_name(&frame.argument)),
            frame.pinned,
        ));
        let covered_values = self.join(frame, &scope, &members, readers);
        self.add_implied(frame, &members);
        let named_pairs: Vec<_> = pairs::name_value_pair(&members)
            .into_iter()
            .chain(pairs::table_cells(&members))
            .map(|(at, text)| (at, text, ReadAs::Text))
            .collect();
        let not_local = scope.stored || scope.in_container || scope.is_routed;
        let paths = if not_local {
            Vec::new()
        } else {
            base_path::joined_paths(&members)
        };
        let paths: Vec<_> = paths
            .into_iter()
            .map(|(at, text)| (at, text, ReadAs::Path))
            .collect();
        let start = frames.len();
        for ((key, value), named_head) in members.into_iter().zip(heads) {
            let mut child = self.child(frame, &key, value, true);
            child.scope = scope.clone();
            child.covered |= covered_values
                .iter()
                .any(|at| at.is_some_and(|at| at.span() == value.span()));
            child.is_order = names::is_order(&key);
            child.listed = false;
            // `files: { "../x": "…" }`
            let file = frame.head == Head::Path
                && !frame.argument.is_empty()
                && key.contains(['.', '/', '\\']);
            match (
                readers.kind(&child.argument),
                frame.pinned,
                frame.head,
                named_head,
            ) {
                (Some(head), ..) => (child.head, child.pinned) = (head, true),
                (None, true, Head::Text, _) => {}
                (None, ..) if file => (child.head, child.is_order) = (Head::Loose, false),
                // `command: { line: "…" }`: a member with a generic or unknown name is read as its
                // parent is.
                (None, _, Head::Shell | Head::Code | Head::Sql, Head::Unknown | Head::Loose) => {}
                (None, ..) => {
                    (child.head, child.pinned) = (
                        readers
                            .head(&child.argument)
                            .map_or(named_head, |declared| named_head.refined_by(declared)),
                        false,
                    );
                }
            }
            let node = self.nodes.len() - 1;
            let argument = child.argument.clone();
            let read_as = if file { ReadAs::Path } else { ReadAs::Text };
            // A name may be an element of a list.
            let is_within = |at: &Value<'_>| {
                at.span().start >= value.span().start && at.span().end <= value.span().end
            };
            let pairs = named_pairs
                .iter()
                .chain(&paths)
                .filter(|(at, ..)| is_within(at));
            for (_, text, read_as) in pairs.cloned() {
                self.add_joined(text, &argument, read_as, node);
            }
            self.units.push(Unit {
                text: convert(key),
                argument,
                role: Role::Key,
                read_as,
                joined: false,
                node,
            });
            frames.push(child);
        }
        // In the order of the message.
        frames.get_mut(start..).unwrap_or_default().reverse();
    }

    /// Adds a text that is composed of other units.
    fn add_joined(
        &mut self,
        text: impl Into<Cow<'m, str>>,
        argument: &str,
        read_as: ReadAs,
        node: usize,
    ) {
        self.units.push(Unit {
            text: text.into(),
            argument: argument.to_owned(),
            role: Role::Value,
            read_as,
            joined: true,
            node,
        });
    }

    fn array<'j>(&mut self, frame: &Frame<'j>, frames: &mut Vec<Frame<'j>>) {
        let elements: Vec<Value<'j>> = frame.value.elements().collect();
        let mut covered = frame.covered;
        let listed = names::is_plural(last_name(&frame.argument)) && !frame.listed;
        self.steps(frame, &elements);
        if let (false, Some(node)) = (frame.scope.stored, frame.node) {
            if let Some(text) = pairs::listed_pair(&elements) {
                self.add_joined(text, &frame.argument, ReadAs::Text, node);
            }
            if let Some(path) = base_path::segments(last_name(&frame.argument), &elements) {
                self.add_joined(path, &frame.argument, ReadAs::Path, node);
            }
        }
        if let (Head::Code, false, Some(node)) = (frame.head, covered, frame.node) {
            let lines: Vec<Cow<'_, str>> =
                elements.iter().filter_map(|value| value.str()).collect();
            if lines.len() > 1 {
                // The lines of a notebook cell; some end with a line end and some do not.
                let text: String = lines
                    .iter()
                    .map(|line| format!("{}\n", line.trim_end_matches('\n')))
                    .collect();
                let read_as = frame.read_as(&text);
                self.add_joined(text, &frame.argument, read_as, node);
                covered = true;
            }
        }
        if let (true, Some(node)) = (!covered && frame.is_command(), frame.node) {
            let texts: Vec<Cow<'_, str>> =
                elements.iter().filter_map(|value| value.str()).collect();
            let lines = join::lines(&texts, listed);
            covered = !texts.is_empty() && lines.iter().any(|line| line.covers);
            for line in lines {
                let argument = frame.argument.clone();
                let unit = Unit {
                    text: line.text.into(),
                    argument,
                    role: Role::Value,
                    read_as: ReadAs::Shell,
                    joined: true,
                    node,
                };
                self.units.push(unit);
            }
        }
        let start = frames.len();
        for (index, value) in elements.into_iter().enumerate() {
            let mut child = self.child(frame, &index.to_string(), value, false);
            child.covered = covered;
            child.listed = listed;
            frames.push(child);
        }
        frames.get_mut(start..).unwrap_or_default().reverse();
    }

    /// Joins steps that are one command each into one script: `[{ "run": "cd /" }, { "run": "rm -rf
    /// *" }]`.
    fn steps(&mut self, frame: &Frame<'_>, elements: &[Value<'_>]) {
        let Some(node) = frame.node.filter(|_| {
            !frame.covered && !frame.scope.stored && frame.scope.tool.runs != Runs::Mentions
        }) else {
            return;
        };
        let command = |element: &Value<'_>| {
            let mut commands = element
                .members()
                .filter(|(key, _)| names::head(key) == Head::Shell && !names::is_language(key));
            commands.find_map(|(_, value)| value.str().map(Cow::into_owned))
        };
        let commands: Vec<String> = elements.iter().take(STEPS).filter_map(command).collect();
        if commands.len() > 1 {
            let text = commands.join("\n");
            self.add_joined(text, &frame.argument, ReadAs::Shell, node);
        }
    }

    fn string<'j>(
        &mut self,
        frame: Frame<'j>,
        readers: &ToolReaders<'_>,
        depth: usize,
        convert: fn(Cow<'j, str>) -> Cow<'m, str>,
    ) {
        let (Some(text), Some(node)) = (frame.value.str(), frame.node) else {
            return;
        };
        let mut opened = false;
        if depth < JSON_DEPTH
            && frame.reads_json()
            && text.trim_start().starts_with(['{', '['])
            && let Ok(json) = Json::parse(
                Bytes::copy_from_slice(text.as_bytes()),
                &ReadLimits::default(),
            )
            && matches!(json.root().kind(), ValueKind::Object | ValueKind::Array)
        {
            let inner = Frame {
                value: json.root(),
                node: Some(node),
                argument: frame.argument.clone(),
                head: frame.head,
                pinned: false,
                is_order: frame.is_order,
                scope: frame.scope.clone(),
                covered: false,
                listed: false,
            };
            // A shell would expand `$(…)` in JSON, too.
            opened = json.root().kind() == ValueKind::Object
                && !frame.pinned
                && frame.head != Head::Shell;
            let before = self.units.len();
            self.walk(inner, readers, depth + 1, |text| {
                Cow::Owned(text.into_owned())
            });
            for unit in self.units.iter_mut().skip(before) {
                unit.joined = true;
            }
        }
        let read_as = if opened {
            ReadAs::Text
        } else {
            frame.read_as(&text)
        };
        if read_as == ReadAs::Shell
            && let Some(line) = join::with_program(&frame.scope.tool, &text)
        {
            self.add_joined(line, &frame.argument, read_as, node);
        }
        for (text, read_as) in frame.further_readings(&text, read_as) {
            self.add_joined(text, &frame.argument, read_as, node);
        }
        self.units.push(Unit {
            text: convert(text),
            argument: frame.argument,
            role: Role::Value,
            read_as,
            joined: false,
            node,
        });
    }
}

impl Scope {
    /// Returns the scope of an object's members.
    fn within(
        &self,
        members: &[(Cow<'_, str>, Value<'_>)],
        heads: &[Head],
        record: bool,
        pinned: bool,
    ) -> Self {
        let text = |value: Value<'_>| {
            value
                .str()
                .map(|text| text.chars().take(128).collect::<String>())
        };
        // A nested call names its own tool; a language applies to the arguments next to it.
        let holds_call = |value: Value<'_>| {
            value.kind() == ValueKind::Object
                || value
                    .str()
                    .is_some_and(|text| text.trim_start().starts_with('{'))
        };
        let has_call = members
            .iter()
            .any(|(key, value)| names::is_call(key) && holds_call(*value));
        let name = members
            .iter()
            .filter(|(key, _)| has_call && names::is_tool(key))
            .find_map(|(_, value)| text(*value));
        let language = members
            .iter()
            .filter(|(key, _)| names::is_language(key))
            .find_map(|(_, value)| text(*value));
        // `shell: "bash"` names what executes another member.
        let names_language =
            |value: Value<'_>| value.str().is_some_and(|text| look::is_language(&text));
        let executes = heads.iter().zip(members).any(|(head, (_, value))| {
            matches!(head, Head::Shell | Head::Code | Head::Sql)
                && matches!(
                    value.kind(),
                    ValueKind::String | ValueKind::Array | ValueKind::Object
                )
                && !names_language(*value)
        });
        let names_tool = name.is_some();
        let routed = self.tool.routes;
        // `{ "module": "win_shell", "params": … }`
        let runs_shell = members.iter().any(|(key, value)| {
            text(*value).is_some_and(|module| tool::is_shell(&module)) && names::is_module(key)
        });
        let tool = match name {
            Some(name) => Rc::new(Tool::new(&name, false)),
            None if runs_shell && self.tool.runs != Runs::Mentions => {
                Rc::new(self.tool.running_all())
            }
            None => self.tool.clone(),
        };
        Self {
            tool,
            language: language.or_else(|| self.language.clone()),
            executes: executes || (self.executes && !names_tool),
            stored: (self.stored || record || pinned) && !names_tool,
            has_folder: members
                .iter()
                .zip(heads)
                .any(|((key, _), head)| *head == Head::Path || names::is_base(key)),
            in_container: self.in_container
                || members.iter().any(|(key, _)| names::is_container(key)),
            is_routed: self.is_routed
                || routed
                || members.iter().any(|(key, _)| names::is_of_request(key)),
        }
    }
}

/// Returns the last of the names that are joined by dots.
fn last_name(argument: &str) -> &str {
    argument.rsplit('.').next().unwrap_or(argument)
}

#[cfg(test)]
mod tests;
