//! Plans the changes that move the servers of one file.

use std::path::PathBuf;

use serde_json::Value;

use super::client::{ConfigFile, Format};
use super::edit::{Edit, apply};
use super::gate::GateConfig;
use super::move_record::MovedServer;
use super::names::Names;
use super::server::{Arguments, CommandEntry, Connection, GateEntry, Server, UrlEntry};
use super::{jsonc, toml};

/// The way in which `wrap` is called.
pub(super) struct Wrap {
    /// The path of this program.
    pub(super) program: String,
    /// The options, except `--name`.
    pub(super) options: Vec<String>,
    /// The audit log to which it writes.
    pub(super) audit: PathBuf,
}

/// The inputs of a plan, in addition to the file.
pub(super) struct PlanInputs<'a> {
    pub(super) wrap: &'a Wrap,
    pub(super) gate_entry: &'a GateEntry,
    /// The servers that were moved earlier.
    pub(super) previous: &'a [MovedServer],
    /// The initial text of a new config of the gate.
    pub(super) base: &'a str,
}

/// The text of a file after its servers are moved.
pub(super) struct Plan {
    pub(super) text: String,
    pub(super) moved: Vec<MovedServer>,
    /// The names of all servers in the file.
    pub(super) names: Vec<String>,
    /// Servers that are left unchanged, and why.
    pub(super) skipped: Vec<(String, String)>,
}

/// Returns the servers in a file.
///
/// # Errors
/// The file cannot be parsed; the error is a sentence.
pub(super) fn servers(
    file: &ConfigFile,
    text: &str,
    gate_entry: &GateEntry,
) -> Result<Vec<Server>, String> {
    match file.format {
        Format::Json { servers } => jsonc::servers(text, servers, gate_entry),
        Format::OpenCode => jsonc::servers_of_opencode(text, gate_entry),
        Format::Toml { servers } => toml::servers(text, servers, gate_entry),
    }
}

/// Moves all servers of a file that are `is_wanted` behind the gate.
///
/// # Errors
/// The same as for [`servers`].
pub(super) fn plan(
    file: &ConfigFile,
    text: &str,
    inputs: &PlanInputs<'_>,
    gate: &mut GateConfig,
    names: &mut Names,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<Plan, String> {
    let PlanInputs {
        wrap,
        gate_entry: known,
        previous: before,
        base,
    } = *inputs;
    let servers = servers(file, text, known)?;
    let all_names = servers.iter().map(|server| server.name.clone()).collect();
    let mut plan = Plan {
        text: String::new(),
        moved: vec![],
        names: all_names,
        skipped: vec![],
    };
    let mut all_edits = vec![];
    for server in servers.into_iter().filter(|server| is_wanted(&server.name)) {
        let earlier = before.iter().find(|kept| kept.path == server.path);
        let mut moved = MovedServer {
            path: server.path.clone(),
            ..MovedServer::default()
        };
        let (edits, target) = match &server.connection {
            Connection::Child(child) => {
                gate.begin(base);
                let name = names.assign(file, &server, earlier, gate);
                let edits = wrap_edits(file.format, text, child, wrap, &name);
                moved.wrap_name = Some(name);
                (edits, wrap.program.clone())
            }
            Connection::Url(url) => {
                gate.begin(base);
                let secrets = gate.secrets.len();
                let assigned_name = names.assign(file, &server, earlier, gate);
                let (name, block) = gate.add(&assigned_name, url, earlier);
                let new = format!("{}{name}", known.base);
                moved.secrets = gate
                    .secrets
                    .iter()
                    .skip(secrets)
                    .map(|(path, _)| path.clone())
                    .collect();
                (moved.upstream, moved.block) = (Some(name), block);
                (url_edits(file.format, url, &new), new)
            }
            Connection::Gate if earlier.is_some() => {
                // Somebody has changed the entry since, and it still needs the upstream that it
                // leads to.
                plan.moved.extend(earlier.map(|kept| MovedServer {
                    is_changed: true,
                    ..kept.clone()
                }));
                continue;
            }
            Connection::Gate => {
                plan.skipped
                    .push((server.name, "is already behind the gate".to_owned()));
                continue;
            }
            Connection::Otherwise(why) => {
                plan.skipped.push((server.name, why.clone()));
                continue;
            }
        };
        moved.old = text.get(server.span.clone()).unwrap_or_default().to_owned();
        moved.led = target.clone();
        moved.new = match file.format {
            Format::Json { .. } | Format::OpenCode => {
                edit_entry(&moved.old, server.span.start, &edits)
            }
            Format::Toml { .. } => target,
        };
        all_edits.extend(edits);
        plan.moved.push(moved);
    }
    plan.text = apply(text, all_edits).ok_or("its entries overlap")?;
    Ok(plan)
}

/// Replaces the command by `lychgate wrap`, with the original command as its first arguments. The
/// rest of the entry remains unchanged.
fn wrap_edits(
    format: Format,
    text: &str,
    child: &CommandEntry,
    wrap: &Wrap,
    name: &str,
) -> Vec<Edit> {
    let options = ["wrap", "--name", name]
        .into_iter()
        .chain(wrap.options.iter().map(String::as_str))
        .chain(["--"]);
    let list = |words: Vec<&str>| {
        words
            .into_iter()
            .map(|word| quoted(format, word))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let gap = |at: usize| {
        let is_spaced = text
            .get(at..)
            .is_some_and(|rest| rest.starts_with(char::is_whitespace));
        if is_spaced { "," } else { ", " }
    };
    let program = Edit::new(child.command_span.clone(), quoted(format, &wrap.program));
    let words = || list(options.clone().chain([&*child.command]).collect());
    match child.arguments {
        Arguments::At {
            behind_bracket: at,
            empty,
        } => {
            vec![
                program,
                Edit::insert(at, words() + if empty { "" } else { gap(at) }),
            ]
        }
        Arguments::Missing { at } if matches!(format, Format::Toml { .. }) => {
            vec![program, Edit::insert(at, format!("\nargs = [{}]", words()))]
        }
        Arguments::Missing { at } => vec![
            program,
            Edit::insert(at, format!(", \"args\": [{}]", words())),
        ],
        Arguments::WithCommand { behind_bracket: at } => {
            let words = list(
                [&*wrap.program]
                    .into_iter()
                    .chain(options.clone())
                    .collect(),
            );
            vec![Edit::insert(at, words + gap(at))]
        }
    }
}

/// Replaces the URL by that of the gate, and removes the headers, which the gate sends instead.
fn url_edits(format: Format, url: &UrlEntry, new: &str) -> Vec<Edit> {
    let removals = url
        .headers_spans
        .iter()
        .map(|span| Edit::new(span.clone(), ""));
    [Edit::new(url.url_span.clone(), quoted(format, new))]
        .into_iter()
        .chain(removals)
        .collect()
}

fn quoted(format: Format, text: &str) -> String {
    match format {
        Format::Json { .. } | Format::OpenCode => Value::from(text).to_string(),
        Format::Toml { .. } => toml::quoted(text),
    }
}

/// Applies an entry's own edits to it; `start` is its position in the text to which the edits
/// refer.
fn edit_entry(old: &str, start: usize, edits: &[Edit]) -> String {
    let shifted = |edit: &Edit| {
        let span = edit.span.start.checked_sub(start)?..edit.span.end.checked_sub(start)?;
        Some(Edit::new(span, &*edit.text))
    };
    edits
        .iter()
        .map(shifted)
        .collect::<Option<_>>()
        .and_then(|own| apply(old, own))
        .unwrap_or_default()
}
