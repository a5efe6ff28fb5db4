//! An operator's changes to a server's tools: hidden tools, better descriptions, stricter
//! arguments. Agents see them in the list, and the gate enforces them for calls, even before a list
//! was received.

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::Bytes;
use serde_json::{Map, Value as Json, json};

use super::schema::Schema;
use crate::config::{ArgumentConfig, PathFormat, PolicyConfig, ToolConfig};
use crate::document::Fault;
use crate::message::{Edit, Message, Value, ValueKind};
use crate::protocol::Context;
use crate::text::glob_matches;

/// The overlays of a policy, most specific first.
#[derive(Debug, Default)]
pub(in crate::inspect) struct Overlays(Vec<Overlay>);

/// The settings for the tools whose names match a glob.
#[derive(Debug)]
struct Overlay {
    tool: String,
    hidden: Option<bool>,
    /// The part that is merged into a definition; `null` if there is none.
    patch: Json,
    /// The schema that calls are checked against.
    check: Option<Schema>,
}

impl Overlays {
    /// Reads the overlays of a policy.
    ///
    /// # Errors
    /// Keywords that are not valid JSON Schema.
    pub(in crate::inspect) fn new(policy: &str, config: &PolicyConfig) -> Result<Self, Vec<Fault>> {
        let mut overlays = Vec::new();
        let mut faults = Vec::new();
        for (tool, tool_config) in &config.tools {
            let check = tool_config
                .arguments
                .values()
                .any(tightens)
                .then(|| build_schema(tool_config, enforced_schema).to_string());
            let check = check
                .map(|written| Schema::compile_strict(&written))
                .transpose();
            match check {
                Ok(check) => overlays.push(Overlay { tool: tool.clone(), hidden: tool_config.hidden, patch: visible_patch(tool_config), check }),
                Err(_) => faults.push(Fault::of_file(
                    format!("policy.{policy}.tool.{tool}"),
                    "its keywords make no schema",
                    Some("`maximum` and its like are those of JSON Schema; patterns are without look-around"),
                )),
            }
        }
        if faults.is_empty() {
            Ok(Self(overlays))
        } else {
            Err(faults)
        }
    }

    /// Returns what agents see of the overlays.
    pub(in crate::inspect) fn visible(&self) -> Vec<(&str, Option<bool>, &Json)> {
        self.0
            .iter()
            .map(|overlay| (overlay.tool.as_str(), overlay.hidden, &overlay.patch))
            .collect()
    }

    fn for_tool<'o>(&'o self, tool: &'o str) -> impl DoubleEndedIterator<Item = &'o Overlay> {
        self.0
            .iter()
            .filter(move |overlay| glob_matches(&overlay.tool, tool))
    }

    /// Returns whether a tool is hidden from agents and cannot be called by them.
    pub(in crate::inspect) fn hides(&self, tool: &str) -> bool {
        self.for_tool(tool)
            .find_map(|overlay| overlay.hidden)
            .unwrap_or(false)
    }

    /// Returns the schemas that calls of a tool are checked against.
    pub(super) fn check_schemas<'o>(&'o self, tool: &'o str) -> impl Iterator<Item = &'o Schema> {
        self.for_tool(tool)
            .filter_map(|overlay| overlay.check.as_ref())
    }

    /// Returns what is merged into the definition of a tool: the most specific overlay last, so
    /// that it takes precedence.
    pub(super) fn merged_patch(&self, tool: &str) -> Json {
        let mut all = Json::Null;
        for overlay in self
            .for_tool(tool)
            .rev()
            .filter(|overlay| overlay.patch.is_object())
        {
            merge(&mut all, &overlay.patch);
        }
        all
    }

    /// Returns a message with the tools of its lists as shown to agents; `None` if nothing changes.
    pub(in crate::inspect) fn apply_to_lists(
        &self,
        message: &Message,
        context: &Context,
    ) -> Option<Bytes> {
        if self.0.is_empty() {
            return None;
        }
        let mut patch = Patch::default();
        for (envelope, request) in context.answers(message) {
            if request.is_some_and(|asked| &*asked.method != "tools/list") {
                continue;
            }
            let tools = message
                .body(envelope)
                .and_then(|result| result.get("tools"));
            if let Some(tools) = tools.filter(|tools| tools.kind() == ValueKind::Array) {
                self.apply_to_list(tools, &mut patch);
            }
        }
        patch.carry_out(message.bytes())
    }

    fn apply_to_list(&self, tools: Value<'_>, patch: &mut Patch) {
        let tools: Vec<(Range<usize>, bool)> = tools
            .elements()
            .map(|tool| {
                let name = tool.get_str("name").unwrap_or_default();
                let hidden = self.hides(&name);
                if !hidden {
                    patch.merge(tool, &self.merged_patch(&name));
                }
                (tool.span(), hidden)
            })
            .collect();
        patch.leave_out(&tools);
    }
}

fn tightens(argument: &ArgumentConfig) -> bool {
    argument.required
        || argument.format.is_some()
        || argument.keywords.keys().any(|key| *key != "default")
}

/// Returns the part that is merged into the server's definition.
fn visible_patch(config: &ToolConfig) -> Json {
    let mut out = Map::new();
    if let Some(text) = &config.description {
        out.insert("description".into(), json!(text));
    }
    if config.arguments.values().any(|argument| {
        tightens(argument) || argument.description.is_some() || !argument.keywords.is_empty()
    }) {
        out.insert(
            "inputSchema".into(),
            build_schema(config, advertised_schema),
        );
    }
    if out.is_empty() {
        Json::Null
    } else {
        Json::Object(out)
    }
}

/// Returns a schema of the settings of arguments, each converted by `property`.
fn build_schema(config: &ToolConfig, property: fn(&ArgumentConfig) -> Json) -> Json {
    let mut root = json!({});
    for (name, argument) in &config.arguments {
        let names: Vec<&str> = name.split('.').collect();
        let mut at = json!({});
        for (depth, name) in names.iter().enumerate().rev() {
            let inner = if depth + 1 == names.len() {
                property(argument)
            } else {
                at
            };
            at = json!({ "properties": { *name: inner } });
            if argument.required && depth + 1 == names.len() {
                merge(&mut at, &json!({ "required": [*name] }));
            }
        }
        merge(&mut root, &at);
    }
    root
}

fn keywords(argument: &ArgumentConfig) -> Map<String, Json> {
    let read = |(key, value): (&&'static str, &String)| {
        Some(((*key).to_owned(), serde_json::from_str(value).ok()?))
    };
    argument.keywords.iter().filter_map(read).collect()
}

/// Returns the settings of an argument as shown to agents. Some agents would reject custom formats;
/// all of them understand a pattern.
fn advertised_schema(argument: &ArgumentConfig) -> Json {
    let mut out = keywords(argument);
    if let Some(text) = &argument.description {
        out.insert("description".into(), json!(text));
    }
    match argument.format {
        Some(PathFormat::Absolute) => out.insert("pattern".into(), json!(r"^(/|[A-Za-z]:[\\/])")),
        Some(PathFormat::Relative) => out.insert("pattern".into(), json!(r"^[^/\\~:][^:]*$")),
        None => None,
    };
    Json::Object(out)
}

/// Returns the settings of an argument as enforced for calls. A keyword for numbers does not
/// constrain `"5000"` (2020-12, validation, section 6), but a server may accept that as a number: a
/// value with limits must have the type that they apply to.
fn enforced_schema(argument: &ArgumentConfig) -> Json {
    let mut out = keywords(argument);
    let has = |keys: &[&str]| keys.iter().any(|key| argument.keywords.contains_key(key));
    let kinds = [
        (has(&["minimum", "maximum"]), "number"),
        (
            has(&["minLength", "maxLength", "pattern"]) || argument.format.is_some(),
            "string",
        ),
        (has(&["maxItems"]), "array"),
    ];
    let mut kinds: Vec<&str> = kinds
        .iter()
        .filter(|(applies, _)| *applies)
        .map(|(_, kind)| *kind)
        .collect();
    if !kinds.is_empty() {
        kinds.extend((!argument.required).then_some("null"));
        out.insert("type".into(), json!(kinds));
    }
    match argument.format {
        Some(PathFormat::Absolute) => out.insert("format".into(), json!("absolute-path")),
        Some(PathFormat::Relative) => out.insert("format".into(), json!("relative-path")),
        None => None,
    };
    Json::Object(out)
}

/// Merges `over` into `base`: tables are merged, lists of required names are joined, anything else
/// is replaced.
pub(super) fn merge(base: &mut Json, over: &Json) {
    match (base, over) {
        (Json::Object(base), Json::Object(over)) => {
            for (key, value) in over {
                match base.get_mut(key) {
                    Some(Json::Array(names)) if key == "required" => {
                        let new = value
                            .as_array()
                            .into_iter()
                            .flatten()
                            .filter(|name| !names.contains(name));
                        let new: Vec<Json> = new.cloned().collect();
                        names.extend(new);
                    }
                    Some(old) => merge(old, value),
                    None => {
                        base.insert(key.clone(), value.clone());
                    }
                }
            }
        }
        (base, over) => *base = over.clone(),
    }
}

/// Changes to the bytes of a message, collected before they are applied.
#[derive(Default)]
pub(in crate::inspect) struct Patch {
    edits: Vec<(Range<usize>, String)>,
    /// Parts to insert after an opening brace or bracket: whether the container has other content,
    /// and the new parts.
    inserts: BTreeMap<usize, (bool, Vec<String>)>,
}

impl Patch {
    /// Does the same as [`merge`], on the bytes.
    fn merge(&mut self, base: Value<'_>, over: &Json) {
        let (ValueKind::Object, Json::Object(over)) = (base.kind(), over) else {
            if !over.is_null() {
                self.edits.push((base.span(), over.to_string()));
            }
            return;
        };
        for (key, value) in over {
            match base.get(key) {
                Some(list) if key == "required" && list.kind() == ValueKind::Array => {
                    let has = |name: &Json| {
                        list.elements()
                            .any(|old| old.str().as_deref() == name.as_str())
                    };
                    for name in value
                        .as_array()
                        .into_iter()
                        .flatten()
                        .filter(|name| !has(name))
                    {
                        self.insert(list, name.to_string());
                    }
                }
                Some(old) => self.merge(old, value),
                None => self.insert(base, format!("{}:{value}", json!(key))),
            }
        }
    }

    /// Replaces a value with other JSON.
    pub(in crate::inspect) fn replace(&mut self, value: Value<'_>, replacement: &str) {
        self.edits.push((value.span(), replacement.to_owned()));
    }

    /// Removes elements from a list: takes all its elements, and whether each is removed.
    pub(in crate::inspect) fn leave_out(&mut self, elements: &[(Range<usize>, bool)]) {
        // A removed element takes the comma before it along or, if no kept element precedes it, the
        // comma after it.
        let mut kept_end = None;
        let mut previous_end = None;
        for (span, is_removed) in elements {
            match (is_removed, kept_end) {
                (true, Some(kept)) => self.cut(previous_end.unwrap_or(kept)..span.end),
                (true, None) => {}
                (false, None) => {
                    if let Some((first, true)) = elements.first() {
                        self.cut(first.start..span.start);
                    }
                }
                (false, Some(_)) => {}
            }
            previous_end = Some(span.end);
            if !is_removed {
                kept_end = Some(span.end);
            }
        }
        if let (None, Some((first, _)), Some((last, _))) =
            (kept_end, elements.first(), elements.last())
        {
            self.cut(first.start..last.end);
        }
    }

    /// Returns the changes as edits, if there are no insertions.
    pub(in crate::inspect) fn into_edits(self) -> Vec<Edit> {
        self.edits
            .into_iter()
            .map(|(span, replacement)| Edit::json(span, replacement))
            .collect()
    }

    /// Returns the number of changes.
    pub(in crate::inspect) fn len(&self) -> usize {
        self.edits.len() + self.inserts.len()
    }

    fn cut(&mut self, span: Range<usize>) {
        self.edits.push((span, String::new()));
    }

    fn insert(&mut self, into: Value<'_>, part: String) {
        let filled = into.members().next().is_some() || into.elements().next().is_some();
        self.inserts
            .entry(into.span().start + 1)
            .or_insert((filled, Vec::new()))
            .1
            .push(part);
    }

    /// Returns the bytes with the changes applied; `None` if there are none.
    pub(in crate::inspect) fn carry_out(mut self, bytes: &Bytes) -> Option<Bytes> {
        for (at, (filled, parts)) in self.inserts {
            self.edits
                .push((at..at, parts.join(",") + if filled { "," } else { "" }));
        }
        if self.edits.is_empty() {
            return None;
        }
        self.edits.sort_by_key(|(span, _)| (span.start, span.end));
        let mut out = Vec::with_capacity(bytes.len() + 1024);
        let mut at = 0;
        for (span, replacement) in &self.edits {
            out.extend_from_slice(bytes.get(at..span.start)?);
            out.extend_from_slice(replacement.as_bytes());
            at = span.end;
        }
        out.extend_from_slice(bytes.get(at..)?);
        Some(out.into())
    }
}
