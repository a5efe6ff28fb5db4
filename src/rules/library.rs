//! All available rules, before a policy selects among them.

use std::collections::HashMap;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::thread;

use parking_lot::Mutex;

use crate::config::PolicyConfig;
use crate::detect::Surface;
use crate::detect::command::Programs;
use crate::document::{Fault, suggest};
use crate::message::Direction;

use super::file::RuleFile;
use super::set::Compiled;
use super::{
    Action, Find, Only, ProgramEntry, Rule, RuleId, RuleSet, Trial, builtin, file, try_cases,
};

/// Maximum size of a rule file, in bytes.
const FILE_BYTES: u64 = 1 << 20;
/// Maximum number of rule files in one folder, subfolders included.
const FILES: usize = 1000;

/// The built-in rules, or their faults. Read once, and shared by all reloads.
static BUILTIN: LazyLock<(Vec<Arc<Rule>>, Vec<Fault>)> = LazyLock::new(|| {
    let mut rules = Vec::new();
    let mut faults = Vec::new();
    let every_second = |from: usize| {
        let files = builtin::FILES.iter().skip(from).step_by(2);
        files
            .map(|(name, _)| file::read_builtin(name))
            .collect::<Vec<_>>()
    };
    let (even, odd) = run_parallel(&|| every_second(0), || every_second(1));
    let mut odd = odd.into_iter();
    let files = even
        .into_iter()
        .flat_map(|file| [Some(file), odd.next()])
        .flatten();
    add_layer(&mut rules, &mut Vec::new(), &mut faults, files);
    (rules, faults)
});

/// All available rules. Rule sets created from it share what they have in common, so that fifty
/// policies cost one compilation.
#[derive(Debug)]
pub struct Library {
    rules: Vec<Arc<Rule>>,
    /// Built-in rules that are not used because another rule has the same id.
    replaced_rules: Vec<Arc<Rule>>,
    /// Tables of programs in addition to the built-in ones.
    own_programs: Vec<ProgramEntry>,
    programs: Arc<Programs>,
    compiled: Mutex<HashMap<String, Arc<Compiled>>>,
}

impl Library {
    /// Returns the rules that are part of the binary. Their cases are tested by the test suite of
    /// the build, not at each start.
    ///
    /// # Panics
    /// If they are faulty, which those tests rule out: a gateway without its rules must not start.
    pub fn builtin() -> Self {
        Self::load(true, &[])
            .unwrap_or_else(|faults| panic!("the built-in rules are faulty: {faults:?}"))
    }

    /// Reads the built-in rules, if requested, then each folder (or single file), and tests the
    /// rules of folders against their own cases. A rule replaces an earlier one with the same id in
    /// the same direction.
    ///
    /// # Errors
    /// Every fault of every file; if there are none, every case that its rule fails.
    pub fn load(builtin: bool, folders: &[PathBuf]) -> Result<Self, Vec<Fault>> {
        let library = Self::read(builtin, folders)?;
        let own_rules: Vec<_> = library
            .rules
            .iter()
            .filter(|rule| !rule.builtin)
            .cloned()
            .collect();
        let trial = library.trial(&own_rules, &library.own_programs)?;
        if trial.failed_cases.is_empty() {
            Ok(library)
        } else {
            Err(trial
                .failed_cases
                .iter()
                .map(super::FailedCase::fault)
                .collect())
        }
    }

    /// Tests every rule and every table of programs against its own cases, including the built-in
    /// tables if there are built-in rules.
    ///
    /// # Errors
    /// Rules that cannot be compiled.
    pub fn try_cases(&self) -> Result<Trial, Vec<Fault>> {
        let builtin = if self.rules.iter().any(|rule| rule.builtin) {
            ProgramEntry::builtin()?
        } else {
            Vec::new()
        };
        let is_replaced = |entry: &ProgramEntry| {
            self.own_programs
                .iter()
                .any(|other| other.table.id == entry.table.id)
        };
        let remaining = builtin.into_iter().filter(|entry| !is_replaced(entry));
        self.trial(
            &self.rules,
            &remaining
                .chain(self.own_programs.iter().cloned())
                .collect::<Vec<_>>(),
        )
    }

    fn trial(&self, rules: &[Arc<Rule>], programs: &[ProgramEntry]) -> Result<Trial, Vec<Fault>> {
        let mut trial = try_cases(rules)?;
        if !programs.is_empty() {
            trial.programs = programs.len();
            trial.cases += programs
                .iter()
                .map(|entry| entry.cases.catches.len() + entry.cases.spares.len())
                .sum::<usize>();
            trial.failed_cases.extend(ProgramEntry::try_cases(
                programs,
                &ProgramEntry::rules()?,
                &self.programs,
            ));
        }
        Ok(trial)
    }

    /// Does the same as [`Library::load`] without testing any case.
    ///
    /// # Errors
    /// Every fault of every file.
    pub fn read(builtin: bool, folders: &[PathBuf]) -> Result<Self, Vec<Fault>> {
        let (mut rules, mut faults) = if builtin {
            BUILTIN.clone()
        } else {
            Default::default()
        };
        let (mut replaced_rules, mut own_programs) = (Vec::new(), Vec::<ProgramEntry>::new());
        for folder in folders {
            match files(folder) {
                Ok(files) => {
                    let files = files.iter().map(|path| {
                        let text = read(path).map_err(|fault| vec![fault])?;
                        file::read(&path.display().to_string(), &text, false)
                    });
                    replaced_rules.extend(add_layer(
                        &mut rules,
                        &mut own_programs,
                        &mut faults,
                        files,
                    ));
                }
                Err(fault) => faults.push(fault),
            }
        }
        replaced_rules.retain(|rule| rule.builtin);
        if !faults.is_empty() {
            return Err(faults);
        }
        let programs = if own_programs.is_empty() {
            Programs::builtin().clone()
        } else {
            Arc::new(Programs::with_builtin(
                own_programs.iter().map(|entry| &entry.table),
            ))
        };
        Ok(Self {
            rules,
            replaced_rules,
            own_programs,
            programs,
            compiled: Mutex::default(),
        })
    }

    /// Returns all rules, enabled or not, in the order of the files.
    pub fn rules(&self) -> &[Arc<Rule>] {
        &self.rules
    }

    /// Returns the rules that replace a built-in one, each with the rule that it replaces.
    pub fn replacements(&self) -> impl Iterator<Item = (&Arc<Rule>, &Arc<Rule>)> {
        let replacement_of = |builtin: &Arc<Rule>| {
            self.rules
                .iter()
                .find(|rule| rule.id == builtin.id && rule.direction == builtin.direction)
        };
        self.replaced_rules
            .iter()
            .filter_map(move |builtin| Some((replacement_of(builtin)?, builtin)))
    }

    /// Returns the rule that has this id, or had it before.
    pub fn find(&self, id: &str) -> Option<&Arc<Rule>> {
        let current = self.rules.iter().find(|rule| rule.id.as_str() == id);
        current.or_else(|| {
            self.rules
                .iter()
                .find(|rule| rule.former_ids.iter().any(|was| was.as_str() == id))
        })
    }

    /// Returns a hint for an id that no rule has: the most similar id, or how to list all of them.
    pub fn nearest(&self, id: &str) -> String {
        nearest(
            id,
            &self
                .rules
                .iter()
                .map(|rule| rule.id.as_str())
                .collect::<Vec<_>>(),
        )
    }

    /// Compiles the rules of one direction that a policy enables, with its overrides applied.
    ///
    /// # Errors
    /// Overrides and packs that name no rule or cannot be applied; regexes that exceed their
    /// limits. The same in both directions.
    pub fn rule_set(
        &self,
        direction: Direction,
        policy: &PolicyConfig,
    ) -> Result<RuleSet, Vec<Fault>> {
        let mut faults = self.find_unknown(policy);
        let overrides: HashMap<&RuleId, _> = policy
            .overrides
            .iter()
            .filter_map(|(id, change)| Some((&self.find(id)?.id, change)))
            .collect();
        let mut enabled_rules = Vec::new();
        for rule in self.rules.iter().filter(|rule| rule.direction == direction) {
            // The narrowest pack that the policy names takes precedence: `ops = true` with `git =
            // false` is all of `ops` except `git`.
            let pack = rule
                .packs
                .iter()
                .rev()
                .find_map(|pack| policy.packs.get(pack));
            let change = overrides.get(&rule.id);
            let enabled = change
                .and_then(|change| change.enabled)
                .or(pack.copied())
                .unwrap_or(rule.enabled);
            match change
                .and_then(|change| change.action)
                .filter(|action| *action != rule.action)
            {
                _ if !enabled => {}
                None => enabled_rules.push(rule.clone()),
                Some(action) => match action.unsupported_in(direction) {
                    Some((cannot, hint)) => {
                        let message =
                            format!("rule `{}` cannot `{}`: {cannot}", rule.id, action.name());
                        faults.push(Fault::of_file("policy", message, Some(hint)));
                    }
                    None => enabled_rules.push(Arc::new(Rule {
                        action,
                        ..Rule::clone(rule)
                    })),
                },
            }
        }
        if direction == Direction::Inbound && policy.redact_secrets {
            enabled_rules.extend(
                self.rules
                    .iter()
                    .filter_map(|rule| inbound_counterpart(rule, policy)),
            );
        }
        if faults.is_empty() {
            self.compile(direction, enabled_rules)
        } else {
            Err(faults)
        }
    }

    /// Compiles the rules of both directions that a policy enables: outbound, inbound.
    ///
    /// # Errors
    /// As [`Library::rule_set`].
    pub fn rule_sets(&self, policy: &PolicyConfig) -> Result<(RuleSet, RuleSet), Vec<Fault>> {
        let set = |direction: Direction| self.rule_set(direction, policy);
        let (outbound, inbound) =
            run_parallel(&|| set(Direction::Outbound), || set(Direction::Inbound));
        Ok((outbound?, inbound?))
    }

    fn compile(&self, direction: Direction, rules: Vec<Arc<Rule>>) -> Result<RuleSet, Vec<Fault>> {
        let own_tables = self
            .own_programs
            .iter()
            .filter(|_| direction == Direction::Outbound)
            .map(|entry| &entry.table);
        let digest = RuleSet::compute_digest(direction, &rules, own_tables);
        if let Some(cached) = self.compiled.lock().get(&digest) {
            return Ok(RuleSet::from(cached.clone()));
        }
        let compiled = Arc::new(Compiled::new(
            direction,
            rules,
            self.programs.clone(),
            digest.clone(),
        )?);
        Ok(RuleSet::from(
            self.compiled
                .lock()
                .entry(digest)
                .or_insert(compiled)
                .clone(),
        ))
    }

    fn find_unknown(&self, policy: &PolicyConfig) -> Vec<Fault> {
        let ids: Vec<&str> = self.rules.iter().map(|rule| rule.id.as_str()).collect();
        let packs: Vec<&str> = self
            .rules
            .iter()
            .flat_map(|rule| rule.packs.iter().map(String::as_str))
            .collect();
        let no_rule = policy
            .overrides
            .keys()
            .filter(|id| self.find(id).is_none())
            .map(|id| ("rule", id, &ids));
        let no_pack = policy
            .packs
            .keys()
            .filter(|pack| !packs.contains(&pack.as_str()))
            .map(|pack| ("pack", pack, &packs));
        no_rule
            .chain(no_pack)
            .map(|(what, name, names)| {
                Fault::of_file(
                    "policy",
                    format!("there is no {what} `{name}` to change"),
                    Some(&nearest(name, names)),
                )
            })
            .collect()
    }
}

/// The surfaces of server messages that a model reads.
const MODEL_SURFACES: [Surface; 6] = [
    Surface::Content,
    Surface::Structured,
    Surface::Resource,
    Surface::Prompt,
    Surface::Error,
    Surface::Notification,
];

/// Returns the inbound counterpart of a rule that keeps secrets from leaving: a rule that redacts
/// them in incoming messages. `None` if the rule is of another kind, or disabled.
fn inbound_counterpart(rule: &Rule, policy: &PolicyConfig) -> Option<Arc<Rule>> {
    let Find::Secret(spec) = rule.find.as_ref() else {
        return None;
    };
    let is_disabled = rule
        .packs
        .iter()
        .rev()
        .find_map(|pack| policy.packs.get(pack))
        == Some(&false)
        || !rule.enabled;
    // Rules about values that another server sent, or that are sent back, are about the destination
    // of secrets.
    if is_disabled
        || rule.direction == Direction::Inbound
        || spec.from_other_server
        || spec.returned
    {
        return None;
    }
    let direction = Direction::Inbound;
    let action = Action::Redact;
    let only = Only {
        surfaces: MODEL_SURFACES.to_vec(),
        ..Only::default()
    };
    Some(Arc::new(Rule {
        direction,
        action,
        only,
        ..rule.clone()
    }))
}

impl Action {
    /// Returns whether the action changes what is forwarded.
    pub fn rewrites(self) -> bool {
        matches!(
            self,
            Self::Strip | Self::Wrap | Self::Redact | Self::Quarantine | Self::Withhold
        )
    }

    /// Returns why the action is never possible in this direction, and what to write instead;
    /// `None` if it is possible.
    pub(super) fn unsupported_in(
        self,
        direction: Direction,
    ) -> Option<(&'static str, &'static str)> {
        match direction {
            Direction::Outbound if self.rewrites() => Some((
                "messages from agents are never rewritten",
                "use `block`, `ask` or `log`",
            )),
            Direction::Inbound if self == Self::Ask => Some((
                "approval applies to calls, not to results",
                "use `block`, `quarantine` or `log`",
            )),
            _ => None,
        }
    }
}

/// Runs two tasks in parallel, which halves the startup time. If no thread can be started for the
/// first, they run one after the other.
fn run_parallel<A: Send, B>(first: &(impl Fn() -> A + Sync), second: impl FnOnce() -> B) -> (A, B) {
    thread::scope(|scope| {
        let handle = thread::Builder::new().spawn_scoped(scope, first);
        let second = second();
        let first = handle.map_or_else(
            |_| first(),
            |task| task.join().unwrap_or_else(|panic| resume_unwind(panic)),
        );
        (first, second)
    })
}

fn nearest(name: &str, names: &[&str]) -> String {
    let hint = suggest(name, names);
    if hint.starts_with("known:") {
        "`lychgate rules list` shows all".into()
    } else {
        hint
    }
}

/// Applies a layer of files on top of the rules below it. Returns the rules that it replaces.
fn add_layer(
    rules: &mut Vec<Arc<Rule>>,
    programs: &mut Vec<ProgramEntry>,
    faults: &mut Vec<Fault>,
    files: impl Iterator<Item = Result<RuleFile, Vec<Fault>>>,
) -> Vec<Arc<Rule>> {
    let (mut layer, mut layer_programs): (Vec<Arc<Rule>>, Vec<ProgramEntry>) = Default::default();
    for file in files {
        match file {
            Ok(rule_file) => {
                layer.extend(rule_file.rules.into_iter().map(Arc::new));
                layer_programs.extend(rule_file.programs);
            }
            Err(file_faults) => faults.extend(file_faults),
        }
    }
    let mut seen: HashMap<&str, &Rule> = HashMap::new();
    for rule in &layer {
        for name in rule.former_ids.iter().chain([&rule.id]) {
            if let Some(other) = seen.insert(name.as_str(), rule) {
                faults.push(Fault {
                    file: rule.file.to_string(),
                    line: rule.line,
                    column: 1,
                    message: format!(
                        "the id `{name}` is already used at {}:{}",
                        other.file, other.line
                    ),
                    hint: Some(
                        "give each rule its own id; a later folder may replace a rule by its id"
                            .into(),
                    ),
                });
            }
        }
    }
    faults.extend(ProgramEntry::duplicates(&layer_programs));
    programs.retain(|below| {
        layer_programs
            .iter()
            .all(|entry| entry.table.id != below.table.id)
    });
    programs.extend(layer_programs);
    let mut replaced_rules = Vec::new();
    // Rules of one layer have different ids, so only those below are compared.
    let below = rules.len();
    for rule in layer {
        match rules
            .iter_mut()
            .take(below)
            .find(|below| below.id == rule.id && below.direction == rule.direction)
        {
            Some(below) => replaced_rules.push(std::mem::replace(below, rule)),
            None => rules.push(rule),
        }
    }
    replaced_rules
}

fn read(path: &Path) -> Result<String, Fault> {
    let fault = |message: String| Fault::of_file(path.display().to_string(), message, None);
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.len() > FILE_BYTES => {
            Err(fault(format!("larger than {FILE_BYTES} bytes")))
        }
        _ => std::fs::read_to_string(path).map_err(|error| fault(error.to_string())),
    }
}

/// Returns the `*.toml` files of a folder and its subfolders, sorted by path; for a file, the file
/// itself.
fn files(root: &Path) -> Result<Vec<PathBuf>, Fault> {
    let fault = |path: &Path, error: std::io::Error| {
        Fault::of_file(
            path.display().to_string(),
            error.to_string(),
            Some("use the path of a rule file or of a folder of rule files"),
        )
    };
    if root.is_file() {
        return Ok(vec![root.to_owned()]);
    }
    let mut paths = Vec::new();
    let mut pending = vec![root.to_owned()];
    while let Some(folder) = pending.pop() {
        for entry in std::fs::read_dir(&folder).map_err(|error| fault(&folder, error))? {
            let entry = entry.map_err(|error| fault(&folder, error))?;
            let path = entry.path();
            let hidden = entry.file_name().to_string_lossy().starts_with('.');
            // A link to a folder is not followed: it could lead to a cycle.
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) && !hidden {
                pending.push(path);
            } else if path.extension().is_some_and(|end| end == "toml") && !hidden {
                paths.push(path);
            }
            if paths.len() + pending.len() > FILES {
                return Err(Fault::of_file(
                    root.display().to_string(),
                    format!("more than {FILES} rule files and folders"),
                    None,
                ));
            }
        }
    }
    paths.sort();
    Ok(paths)
}
