//! The facts about one path in its place.

use super::decode;
use super::gate_files::FileCategory;
use super::roots::Roots;
use super::share;
use super::start::{Start, find_start};
use super::walk::{absolute, parts, walk};
use super::{Links, commands};
use crate::detect::command::paths::{Classes, classes, normal};
use crate::detect::command::{FileAccess, FileUse};
use crate::detect::{AccessScope, Place};
use crate::text::quick::WordSet;

/// Maximum length of a path that is read, in bytes: eight times the limit of kernels.
const PATH_BYTES: usize = 32 << 10;
/// Minimum number of folders up that is not plausible within a project.
const FAR: usize = 3;
/// Maximum number of lines of one argument that are each read as a path.
const LINES: usize = 256;

enum_with_names! {
    /// The place of a path. Named as in rule files.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum PathOrigin {
        /// In an argument that is a path.
        Argument = "argument",
        /// In a command or in code.
        Command = "command",
    }
}

/// The facts about one path.
#[derive(Clone, Debug)]
pub(super) struct PathFacts {
    /// It leaves the roots, or may leave them.
    pub(super) outside: bool,
    /// It climbs to a system folder.
    pub(super) climbs: bool,
    /// It climbs only when decoded, or contains something that no name contains.
    pub(super) disguised: bool,
    /// It is on a share of a machine outside the own network, or on an administrative share.
    pub(super) share: bool,
    pub(super) classes: Classes,
    /// Every reading in normal form: in lower case, the home folder as `~`, no `..`.
    pub(super) forms: Vec<String>,
    pub(super) file_use: FileUse,
    pub(super) origin: PathOrigin,
    /// The categories of the gate's own files that it is among.
    pub(super) gate: Vec<FileCategory>,
    /// It was too long to be read.
    pub(super) too_much: bool,
}

impl PathFacts {
    /// Examines an argument that is a path, or contains one per line.
    pub(super) fn argument(text: &str, place: &Place<'_>) -> Self {
        let mut facts = Self::new(file_use_of(place), PathOrigin::Argument);
        let text = text.trim_end_matches(['\r', '\n']);
        if text.len() > PATH_BYTES || text.matches('\n').count() > LINES {
            facts.outside = true;
            facts.disguised = true;
            facts.too_much = true;
            return facts;
        }
        let empty_scope = AccessScope::default();
        let scope = place.scope.unwrap_or(&empty_scope);
        if text.contains('\n') {
            for line in text.lines() {
                facts.examine(line, scope);
            }
        }
        facts.examine(text, scope);
        facts
    }

    /// Examines a path that a command touches.
    pub(super) fn command(access: &FileAccess<'_>, place: &Place<'_>) -> Self {
        let FileAccess {
            path,
            home,
            start_folder: below,
            file_use: how,
        } = *access;
        let mut facts = Self::new(how, PathOrigin::Command);
        let empty_scope = AccessScope::default();
        let scope = place.scope.unwrap_or(&empty_scope);
        let roots = &scope.roots;
        if !scope.gate_files.is_empty() {
            let at_home = home
                .zip(path.strip_prefix('~'))
                .map(|(home, rest)| format!("{home}{rest}"));
            facts.note_gate_files(
                &find_start(at_home.as_deref().unwrap_or(path)),
                scope,
                false,
            );
        }
        if !roots.is_set() || commands::is_ordinary(path, how) {
            return facts;
        }
        let joined;
        let path_start = match (find_start(path), home) {
            (Start::Home(rest), Some(home)) => {
                joined = format!("{home}{rest}");
                Start::Root(&joined)
            }
            // A variable that the command does not set is a folder that the operator of the tool
            // chose.
            (Start::WorkingFolder(_) | Start::Unknown(_), _) if commands::is_below(path) => {
                joined = below.map_or_else(|| path.to_owned(), |below| format!("{below}/{path}"));
                Start::WorkingFolder(&joined)
            }
            (Start::Scratch(rest), _)
                if walk(&[], rest, false, &Links::Unknown).above_root == 0 =>
            {
                return facts;
            }
            (path_start, _) => path_start,
        };
        facts.outside = Self::leaves(&path_start, roots, false);
        facts
    }

    fn new(file_use: FileUse, origin: PathOrigin) -> Self {
        let classes = Classes::NONE;
        let forms = Vec::new();
        let gate = Vec::new();
        Self {
            outside: false,
            climbs: false,
            disguised: false,
            share: false,
            classes,
            forms,
            file_use,
            origin,
            gate,
            too_much: false,
        }
    }

    fn examine(&mut self, text: &str, scope: &AccessScope) {
        let roots = &scope.roots;
        if text.is_empty() {
            return;
        }
        let ups = count_ups(text);
        self.disguised |= text.contains('\0') || decode::has_broken_escape(text);
        for reading in decode::readings(text) {
            self.disguised |= self::count_ups(&reading) > ups || reading.contains('\0');
            self.share |= share::is_foreign(&reading);
            let path_start = find_start(&reading);
            for windows in
                [true, false]
                    .into_iter()
                    .take(if reading.contains('\\') { 2 } else { 1 })
            {
                self.outside |= roots.is_set() && Self::leaves(&path_start, roots, windows);
                self.note_named_files(&path_start, windows);
                if !scope.gate_files.is_empty() {
                    self.note_gate_files(&path_start, scope, windows);
                }
            }
        }
    }

    /// Reports whether a path leaves the roots from where it starts.
    fn leaves(start: &Start<'_>, roots: &Roots, windows: bool) -> bool {
        let leaves_from = |base: &[String], path: &str| !roots.contains(base, path, windows);
        match start {
            Start::Root(path) => leaves_from(&[], path),
            Start::Drive(letter, path) => !roots.contains(&[format!("{letter}:")], path, true),
            // If the home folder is unknown, a root may still be given as `~`.
            Start::Home(path) => roots.home().map_or_else(
                || leaves_from(&["~".to_owned()], path),
                |home| leaves_from(home, path),
            ),
            Start::Scratch(path) => leaves_from(&["tmp".to_owned()], path),
            Start::WorkingFolder(path) => roots.bases().any(|base| leaves_from(base, path)),
            Start::Unknown(_) => true,
            Start::Address(address) => {
                let path = address
                    .trim_start_matches('/')
                    .split_once('/')
                    .map_or("", |(_, path)| path);
                walk(&[], path, windows, &Links::Unknown).above_root > 0
            }
        }
    }

    /// Records which of the gate's own files a path leads to, with links followed where they are
    /// known.
    fn note_gate_files(&mut self, start: &Start<'_>, scope: &AccessScope, windows: bool) {
        let AccessScope {
            roots,
            gate_files: gate,
            ..
        } = scope;
        let home = ["~".to_owned()];
        let walks: Vec<(&[String], &str)> = match start {
            Start::Root(path) => vec![(&[], *path)],
            Start::Home(path) => vec![(roots.home().unwrap_or(&home), *path)],
            Start::WorkingFolder(path) => roots.bases().map(|base| (base, *path)).collect(),
            Start::Drive(..) | Start::Scratch(_) | Start::Unknown(_) | Start::Address(_) => {
                return;
            }
        };
        for (base, path) in walks {
            for links in [&Links::Unknown, roots.links()] {
                let at = absolute(&walk(base, path, windows, links).components);
                let at = if base == home {
                    at.trim_start_matches('/').to_owned()
                } else {
                    at
                };
                let form = normal(&at, None).unwrap_or(at).to_lowercase();
                for part in FileCategory::ALL {
                    if gate.contains(part, &form) && !self.gate.contains(&part) {
                        self.gate.push(part);
                    }
                }
            }
        }
    }

    /// Records which files a path names, whatever the roots are.
    fn note_named_files(&mut self, start: &Start<'_>, windows: bool) {
        let (before, path) = match start {
            Start::Root(path) => ("/", *path),
            Start::Home(path) | Start::Unknown(path) => ("~/", *path),
            Start::Scratch(path) => ("/tmp/", *path),
            Start::WorkingFolder(path) => ("", *path),
            Start::Drive(letter, path) => {
                let walked = walk(&[format!("{letter}:")], path, true, &Links::Unknown);
                self.add(
                    absolute(&walked.components).to_ascii_lowercase(),
                    walked.steps_up > 0,
                );
                return;
            }
            Start::Address(_) => return,
        };
        let walked = walk(&[], path, windows, &Links::Unknown);
        let joined = walked.components.join("/");
        self.add(format!("{before}{joined}"), walked.steps_up > 0);
        // A path that climbs far enough reaches the root; one or two folders up are mostly the
        // project's own `lib` and `bin`.
        match walked.above_root {
            0 => {}
            1..FAR => self.add_if(
                format!("/{joined}"),
                true,
                Some(commands::non_project_classes()),
            ),
            _ => self.add(format!("/{joined}"), true),
        }
    }

    fn add(&mut self, path: String, climbs: bool) {
        self.add_if(path, climbs, None);
    }

    /// Adds a form if it belongs to one of these classes.
    fn add_if(&mut self, path: String, climbs: bool, only: Option<Classes>) {
        let form = normal(&path, None).unwrap_or(path);
        let lower = form.to_lowercase();
        if self.forms.contains(&lower) && (self.climbs || !climbs) {
            return;
        }
        // Names that differ only in case are the same file on many systems.
        let form_classes = if lower == form {
            classes(&form)
        } else {
            classes(&form).join(classes(&lower))
        };
        if only.is_some_and(|only| !form_classes.intersects(only)) {
            return;
        }
        self.classes = self.classes.join(form_classes);
        self.climbs |= climbs
            && form_classes.intersects(commands::climb_targets())
            && form.starts_with(['/', '~']);
        if !self.forms.contains(&lower) {
            self.forms.push(lower);
        }
    }
}

/// Returns the number of `..` components in a path.
fn count_ups(text: &str) -> usize {
    parts(text, true).filter(|part| *part == "..").count()
}

/// Returns what a tool does with a path, according to the words of its name.
fn file_use_of(place: &Place<'_>) -> FileUse {
    static WRITES: WordSet = WordSet::new(
        "write create edit update append delete remove move rename copy save put insert replace \
         patch mkdir touch upload modify set symlink link unlink rm mv cp chmod chown apply add \
         make overwrite download extract",
    );
    let tool = place.tool.unwrap_or("");
    let mut word = String::new();
    let mut small = false;
    for c in tool.chars().take(128).chain(['_']) {
        if !c.is_ascii_alphanumeric() || c.is_ascii_uppercase() && small {
            if WRITES.contains(&word.as_str()) {
                return FileUse::Write;
            }
            word.clear();
        }
        if c.is_ascii_alphanumeric() {
            word.push(c.to_ascii_lowercase());
        }
        small = c.is_ascii_lowercase();
    }
    FileUse::Read
}

/// Reports whether an argument that is a `file:` URL stays in the roots; false if there are none.
pub(in crate::detect) fn is_inside(text: &str, place: &Place<'_>) -> bool {
    place.scope.is_some_and(|ground| ground.roots.is_set())
        && !PathFacts::argument(text, place).outside
}
