//! The effects of one command, without everything that wraps it: the facts that rules match.

use std::rc::Rc;
use std::sync::{Arc, LazyLock};

use super::cwd::Location;
use super::known::Program;
use super::options;
use super::path_match::{self, Classes};
use super::paths;
use super::spec::Kinds;
use super::traits::Traits;
use super::value::{Field, Taint};

/// A path that a command names.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct NamedPath {
    /// The normalized path.
    pub(super) path: String,
    /// The home folder that `~` in the path represents, if it was written out.
    pub(super) home: Option<Box<str>>,
    pub(super) classes: Classes,
}

enum_with_names! {
    /// Behaviour that no single flag or path shows. Named as in rule files.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum Behaviour {
        /// The command starts itself repeatedly.
        ForkBomb = "fork-bomb",
        /// The command connects a shell to a network connection.
        ReverseShell = "reverse-shell",
        /// The command could not be read to its end.
        Unreadable = "unreadable",
        /// A quote or bracket is never closed: a shell would not run the command as written.
        Unparsable = "unparsable",
    }
}

/// The name of a program, and the data about it from the tables, if there is any.
pub(super) type NamedProgram<'n> = (&'n str, Option<&'n Arc<Program>>);

/// The facts about one command.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    /// Base name of the program, without `.exe`; empty for a bare redirection or assignment.
    pub(super) program: String,
    /// The data about the program from the tables.
    pub(super) program_data: Option<Arc<Program>>,
    pub(super) traits: Traits,
    pub(super) fields: Rc<[Field]>,
    pub(super) from: usize,
    /// All paths among the arguments.
    pub(super) paths: Vec<NamedPath>,
    pub(super) reads: Vec<NamedPath>,
    pub(super) writes: Vec<NamedPath>,
    /// Files that the command starts, or whose content it runs.
    pub(super) runs: Vec<NamedPath>,
    /// Files and folders of this machine that the command gives to a container.
    pub(super) mounts: Vec<NamedPath>,
    pub(super) location: Location,
    /// Names and values that the command is given, or that it sets.
    pub(super) environment: Vec<(String, String)>,
    pub(super) stdin: Taint,
    /// The input, if it is known and a database will run it.
    pub(super) input: Option<String>,
    /// The content that the command writes to a system file or to a user's settings, if it is
    /// known.
    pub(super) written_content: Option<String>,
    /// Taint of the content that the command runs as code.
    pub(super) executes: Taint,
    /// Taint of the content that the command sends to another host.
    pub(super) sends: Taint,
    pub(super) behaviour: Option<Behaviour>,
    /// Whether the command was read as PowerShell or cmd.exe: names and flags are case-insensitive,
    /// and flags may be shortened.
    pub(super) windows: bool,
}

impl Facts {
    pub(super) fn new(behaviour: Behaviour) -> Self {
        Self {
            behaviour: Some(behaviour),
            ..Self::default()
        }
    }

    /// Returns the facts of a wrapper that starts at `from` in `fields`; the first `own` of its
    /// arguments are its own.
    pub(super) fn wrapper(
        program: NamedProgram<'_>,
        fields: &Rc<[Field]>,
        from: usize,
        own: usize,
        folder: Option<&str>,
    ) -> Self {
        let mut facts = Self::bare(program, fields, from);
        facts.place_paths(folder, own);
        facts
    }

    /// Returns the facts of the command that starts at `from` in `fields`.
    pub(super) fn command(
        program: NamedProgram<'_>,
        fields: &Rc<[Field]>,
        from: usize,
        folder: Option<&str>,
        stdin: Taint,
    ) -> Self {
        let mut facts = Self {
            stdin,
            ..Self::bare(program, fields, from)
        };
        facts.place_paths(folder, usize::MAX);
        facts.note_sending();
        facts
    }

    /// Returns the same command with another program.
    pub(super) fn with_program(&self, (program, data): NamedProgram<'_>) -> Self {
        Self {
            program: program.to_owned(),
            program_data: data.cloned(),
            traits: data.map_or_else(Traits::default, |known| known.traits),
            ..self.clone()
        }
    }

    fn bare(program: NamedProgram<'_>, fields: &Rc<[Field]>, from: usize) -> Self {
        let facts = Self {
            fields: fields.clone(),
            from,
            ..Self::default()
        };
        facts.with_program(program)
    }

    /// Returns the kinds of facts that the command has.
    pub(super) fn kinds(&self) -> Kinds {
        Kinds::new([
            !self.paths.is_empty(),
            !self.reads.is_empty(),
            !self.writes.is_empty(),
            !self.environment.is_empty(),
            self.stdin != Taint::NONE,
            self.executes != Taint::NONE,
            self.sends != Taint::NONE,
            self.behaviour.is_some(),
        ])
    }

    /// Returns the arguments, without the program.
    pub(super) fn arguments(&self) -> &[Field] {
        self.fields.get(self.from + 1..).unwrap_or_default()
    }

    /// Returns the arguments that are not options.
    pub(super) fn operands(&self) -> impl Iterator<Item = &Field> {
        self.arguments()
            .iter()
            .filter(|f| !f.text.starts_with('-') || f.text == "-")
    }

    /// Returns the program and its arguments, separated by single spaces.
    pub(super) fn words(&self) -> String {
        let mut words = self.program.clone();
        for field in self.arguments() {
            words.extend([" ", &field.text]);
        }
        words
    }

    /// Returns the same, followed by the files that the command writes.
    pub(super) fn line(&self) -> String {
        let mut line = self.words();
        for target in &self.writes {
            line.extend([" > ", &target.path]);
        }
        line
    }

    /// Returns [`Facts::words`] with each option as a word of its own, if that differs.
    pub(super) fn words_with_split_options(&self) -> Option<String> {
        let data = self.program_data.as_deref().filter(|_| !self.windows)?;
        options::split_options(&self.program, data, self.arguments())
    }

    /// Records the files and folders that `-v` and `--mount` give to a container.
    pub(super) fn note_mounts(&mut self, folder: Option<&str>) {
        let fields = self.fields.clone();
        let mut before = "";
        for field in fields.get(self.from + 1..).unwrap_or_default() {
            let value_of = std::mem::replace(&mut before, field.text.as_str());
            let volume = match value_of {
                "--volume" => Some(field.text.as_str()),
                // `-itv`
                flags
                    if flags.starts_with('-')
                        && !flags.starts_with("--")
                        && flags.ends_with('v') =>
                {
                    Some(field.text.as_str())
                }
                _ => ["--volume=", "-v=", "-v"]
                    .iter()
                    .find_map(|flag| field.text.strip_prefix(flag)),
            };
            // The text with both sides of the colon is not a path.
            if let Some(both) = volume
                .filter(|text| text.contains(':'))
                .and_then(|text| paths::normal(text, folder))
            {
                self.paths.retain(|named_path| named_path.path != both);
            }
            let source = match volume {
                // A folder without a source belongs to the container.
                Some(text) => text.split_once(':').map(|(source, _)| source),
                None => ["source=", "src="].iter().find_map(|key| {
                    let (_, rest) = field.text.split_once(key)?;
                    rest.split(',').next()
                }),
            };
            // A name refers to a volume.
            let Some(source) = source.filter(|source| source.starts_with(['/', '.', '~', '$']))
            else {
                continue;
            };
            let Some(named_path) = read_path(source, folder) else {
                continue;
            };
            // Keys that are mounted under the same name are for the program in the container.
            let place = match volume {
                Some(text) => text.split(':').nth(1),
                None => ["target=", "dst=", "destination="]
                    .iter()
                    .find_map(|key| field.text.split_once(key)?.1.split(',').next()),
            };
            let name = |path: &str| {
                path.trim_end_matches('/')
                    .rsplit('/')
                    .next()
                    .map(str::to_owned)
            };
            if place.and_then(name) != name(&named_path.path) {
                self.paths.push(named_path.clone());
            }
            self.mounts.push(named_path);
        }
    }

    /// Records the current folder if the command works on all of it: `git clean`, and `rm *` in the
    /// folder that an earlier call of the session changed to.
    pub(super) fn note_current_folder(&mut self, folder: Option<&str>, session: Option<&str>) {
        if self.program == "git" && self.arguments().iter().any(|field| field.text == "clean") {
            self.paths.extend(
                folder
                    .or(session)
                    .and_then(|folder| read_path(".", Some(folder))),
            );
        }
        if folder.is_some() || !CHANGES.contains(&self.program.as_str()) {
            return;
        }
        let Some(session) = session else { return };
        let is_everything = |field: &&Field| {
            matches!(
                field.text.trim_start_matches("./"),
                "" | "." | "*" | ".*" | "{,.}*" | ".."
            )
        };
        let whole_folders = self
            .arguments()
            .iter()
            .filter(is_everything)
            .filter_map(|field| read_path(&field.text, Some(session)));
        let classified_paths: Vec<NamedPath> = whole_folders
            .filter(|named_path| named_path.classes != Classes::NONE)
            .collect();
        self.paths.extend(classified_paths);
    }

    /// Records a file that the command reads by redirection, and returns its taint.
    pub(super) fn redirect_read(&mut self, text: &str, folder: Option<&str>) -> Taint {
        match read_path(text, folder) {
            Some(named_path) => {
                let taint = taint_of(&named_path);
                self.stdin |= taint;
                self.reads.push(named_path);
                if self.traits.has(Traits::SENDS_INPUT) {
                    self.sends |= taint;
                }
                taint
            }
            None => Taint::NONE,
        }
    }

    /// Records a file that the command writes by redirection.
    pub(super) fn redirect_write(&mut self, text: &str, folder: Option<&str>) {
        self.writes.extend(read_path(text, folder));
    }

    fn place_paths(&mut self, folder: Option<&str>, own: usize) {
        let copier = self.traits.has(Traits::COPIES);
        let writer = self.traits.has(Traits::WRITES);
        let fields = self.fields.clone();
        let arguments = fields.get(self.from + 1..).unwrap_or_default();
        let last = if copier {
            arguments.iter().rposition(|f| !f.text.starts_with('-'))
        } else {
            None
        };
        let in_place = matches!(self.program.as_str(), "sed" | "perl" | "ruby" | "gsed")
            && arguments.iter().any(|f| {
                ["-i", "--in-place", "-pi", "-ni"]
                    .iter()
                    .any(|flag| f.text.starts_with(flag))
            });
        let target = copier
            && arguments
                .iter()
                .any(|f| f.text == "-t" || f.text.starts_with("--target-directory"));
        let mut before = "";
        for (at, field) in arguments.iter().enumerate().take(own) {
            let value_of = std::mem::replace(&mut before, field.text.as_str());
            if self
                .traits
                .has(Traits::SENDS_FILES.union(Traits::SENDS_INPUT))
                && is_authentication_key(&self.program, value_of)
            {
                continue;
            }
            for (part, role) in candidates(&field.text).into_iter().flatten() {
                let writes = match role {
                    Part::Of => true,
                    Part::Whole => {
                        copier && (Some(at) == last && !target || value_of == "-t")
                            || writer
                            || in_place
                            || options::names_output(value_of) && self.program != "grep"
                            || options::prints_to(&self.program, value_of)
                    }
                    Part::Option if copier => field.text.starts_with("--target"),
                    Part::Option => ["--output", "-o", "-O"]
                        .iter()
                        .any(|flag| field.text.starts_with(flag)),
                    Part::Sent => false,
                };
                if !writes && folder.is_none() && !path_match::may_have_class(part) {
                    continue;
                }
                let Some(mut named_path) = read_path(part, folder) else {
                    continue;
                };
                if field.unset && part.ends_with("/*") && part.matches('/').count() == 1 {
                    named_path.classes = named_path.classes.join(*UNSET_ROOT);
                }
                let has_class = named_path.classes != Classes::NONE;
                let is_path = has_class
                    || named_path.path.contains('/')
                    || named_path.path.starts_with(['~', '.']);
                if writes {
                    self.writes.push(named_path.clone());
                } else if has_class && !self.traits.has(Traits::NAMES_FILES) {
                    self.reads.push(named_path.clone());
                }
                if is_path {
                    self.paths.push(named_path);
                }
            }
        }
    }
}

/// Reports whether the value of an option is a key with which a program authenticates, and which it
/// never sends.
fn is_authentication_key(program: &str, option: &str) -> bool {
    match program {
        "ssh" | "scp" | "sftp" => option == "-i",
        "curl" => matches!(option, "--key" | "--cert" | "-E" | "--cacert" | "--capath"),
        "wget" => matches!(
            option,
            "--private-key" | "--certificate" | "--ca-certificate"
        ),
        _ => false,
    }
}

/// Programs that remove or change the files that a bare `*` matches.
const CHANGES: [&str; 12] = [
    "rm", "grm", "srm", "shred", "rimraf", "trash", "unlink", "chmod", "chown", "chgrp", "mv",
    "find",
];

/// `$X/*` if nothing sets `X`: everything on the system.
static UNSET_ROOT: LazyLock<Classes> = LazyLock::new(|| Classes::from_names(&["unset-root"]));

/// The taint of files by their classes.
static TAINTS: LazyLock<[(Classes, Taint); 2]> = LazyLock::new(|| {
    let personal = Classes::from_names(&["personal", "history"]);
    [
        (*path_match::SECRET, Taint::CREDENTIAL),
        (personal, Taint::PERSONAL),
    ]
});

/// Returns the taint of a file's content.
pub(super) fn taint_of(named_path: &NamedPath) -> Taint {
    let mut taint = Taint::NONE;
    if named_path.classes == Classes::NONE && !named_path.path.starts_with("/dev/") {
        return taint;
    }
    for (classes, taints) in TAINTS.iter() {
        if named_path.classes.intersects(*classes) {
            taint |= *taints;
        }
    }
    if named_path.path.starts_with("/dev/tcp/") || named_path.path.starts_with("/dev/udp/") {
        taint |= Taint::SOCKET | Taint::DOWNLOAD;
    }
    taint
}

/// Reads a text as a path and resolves globs that can only mean one thing. `~` is the home folder
/// even in quotes: it may represent `"$HOME"`, and a `~` in quotes rarely refers to a file of that
/// name.
pub(super) fn read_path(text: &str, folder: Option<&str>) -> Option<NamedPath> {
    let mut path = paths::normal(text, folder)?;
    if path.contains(['*', '?', '['])
        && let Some(well_known) = path_match::resolve_glob(&path)
    {
        well_known.clone_into(&mut path);
    }
    let classes = path_match::classes(&path).join(path_match::classes_below_root(&path));
    let home = if path.starts_with('~') {
        paths::home_of(text, folder)
    } else {
        None
    };
    Some(NamedPath {
        path,
        home,
        classes,
    })
}

/// Maximum number of option letters in one word, the last of which has a value.
const MAX_CLUSTER: usize = 6;

#[derive(Clone, Copy, PartialEq)]
enum Part {
    Whole,
    /// `of=…`
    Of,
    /// After `=` or a short flag.
    Option,
    /// After `@` or `<`.
    Sent,
}

/// Returns the parts of an argument that may be paths.
fn candidates(text: &str) -> [Option<(&str, Part)>; 4] {
    let mut out = [None; 4];
    if text.len() > 4096 {
        return out;
    }
    let [whole, value, sent, attached] = &mut out;
    if !text.starts_with('-') {
        *whole = Some((text, Part::Whole));
    }
    if let Some((before, after)) = text.split_once('=') {
        let after = after.trim_start_matches(['@', '<']);
        let role = if before == "of" {
            Part::Of
        } else {
            Part::Option
        };
        if !after.is_empty() && before.len() <= 32 && !before.contains('/') {
            *value = Some((after, role));
        }
    }
    if let Some((before, after)) = text.split_once('@')
        && !after.is_empty()
        && !before.contains('/')
        && (before.is_empty() || before.starts_with('-') || !after.contains(':'))
    {
        *sent = Some((after, Part::Sent));
    }
    // `-C/tmp`, `-sT/etc/passwd`
    if let Some(rest) = text.strip_prefix('-')
        && let Some(at) = rest
            .find(['/', '~', '.'])
            .filter(|at| (1..=MAX_CLUSTER).contains(at))
        && let Some((letters, after)) = rest.split_at_checked(at)
        && letters.bytes().all(|b| b.is_ascii_alphabetic())
    {
        *attached = Some((after, Part::Option));
    }
    out
}
