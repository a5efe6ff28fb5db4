//! The files that `find` lists.

use super::value::{Field, Value};

/// Tests that exclude some files.
const FILTERS: [&str; 24] = [
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-regex",
    "-iregex",
    "-mtime",
    "-mmin",
    "-atime",
    "-amin",
    "-ctime",
    "-newer",
    "-size",
    "-empty",
    "-user",
    "-group",
    "-inum",
    "-lname",
    "-perm",
    "-nouser",
    "-xtype",
    "-samefile",
    "-e",
];
/// Actions that print something other than names, or nothing.
const ACTIONS: [&str; 13] = [
    "-exec",
    "-execdir",
    "-ok",
    "-okdir",
    "-x",
    "--exec",
    "-X",
    "--exec-batch",
    "-delete",
    "-printf",
    "-fprint",
    "-ls",
    "-quit",
];

/// Reports whether the tests exclude files: `-name '*'` does not.
pub(super) fn narrows(arguments: &[Field]) -> bool {
    arguments.iter().enumerate().any(|(at, f)| {
        let value = arguments
            .get(at + 1)
            .map_or("", |value| value.text.as_str());
        let matches_all = if f.text.ends_with("regex") {
            value == ".*"
        } else {
            matches!(value, "*" | "**" | "*.*")
        };
        FILTERS.contains(&f.text.as_str()) && !matches_all && !is_negated(arguments, at)
    })
}

/// Reports whether the test at `at` is negated. A negated test still matches most files of a
/// system.
fn is_negated(arguments: &[Field], at: usize) -> bool {
    let before = arguments
        .get(..at)
        .unwrap_or_default()
        .iter()
        .rev()
        .find(|before| before.text != "(");
    before.is_some_and(|before| matches!(before.text.as_str(), "-not" | "!"))
}

/// Folders that contain the files of all programs: no test of a name, an age or a size limits a
/// deletion there to a few files.
const SYSTEM: [&str; 9] = [
    "/", "/etc", "/usr", "/bin", "/sbin", "/lib", "/lib64", "/boot", "/usr/lib",
];
/// Folders of databases, where no file is dispensable because of its age or size.
const DATABASES: [&str; 8] = [
    "/var/lib/postgresql",
    "/var/lib/pgsql",
    "/var/lib/mysql",
    "/var/lib/mongodb",
    "/var/lib/mongo",
    "/var/lib/redis",
    "/var/lib/elasticsearch",
    "/var/lib/etcd",
];
/// Tests that select a few files, wherever they are.
const NAMED: [&str; 10] = [
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-regex",
    "-iregex",
    "-empty",
    "-inum",
    "-samefile",
];
/// Names of files that programs leave behind.
const LEFT_BEHIND: [&str; 15] = [
    ".pyc",
    "__pycache__",
    ".DS_Store",
    "Thumbs.db",
    ".tmp",
    ".swp",
    "~",
    ".bak",
    ".log",
    "core",
    ".gz",
    ".orig",
    ".rej",
    ".old",
    "node_modules",
];

/// Reports whether the tests exclude so many files that an action on those found from `starts` does
/// not affect whole systems.
pub(super) fn narrows_at(arguments: &[Field], starts: &[&Field]) -> bool {
    if !narrows(arguments) {
        return false;
    }
    let value = |names: &[&str]| {
        let at = (0..arguments.len()).find(|at| {
            arguments
                .get(*at)
                .is_some_and(|f| names.contains(&f.text.as_str()))
                && !is_negated(arguments, *at)
        })?;
        Some(
            arguments
                .get(at + 1)
                .map_or("", |value| value.text.as_str()),
        )
    };
    let name = value(&NAMED);
    let is = |start: &&Field, folders: &[&str]| {
        let path = start.text.trim_end_matches('/');
        folders.contains(&if path.is_empty() { "/" } else { path })
    };
    let system = starts.iter().any(|start| is(start, &SYSTEM));
    let home = starts.iter().any(|start| {
        is(start, &["~", "/home", "/root", "/Users"]) || start.text.trim_matches('/') == "home/user"
    });
    match name {
        Some(name) => {
            !system
                || LEFT_BEHIND
                    .iter()
                    .any(|end| name.trim_end_matches('*').ends_with(end))
        }
        None => !system && !home && !starts.iter().any(|start| is(start, &DATABASES)),
    }
}

/// Options of `fd` whose value does not exclude files by name or property.
const VALUED_BY_FD: [&str; 13] = [
    "-t",
    "--type",
    "-d",
    "--max-depth",
    "--min-depth",
    "--exact-depth",
    "-E",
    "--exclude",
    "-c",
    "--color",
    "-j",
    "--threads",
    "--format",
];
/// Options of `fd` whose value excludes files.
const FILTERS_OF_FD: [&str; 11] = [
    "-e",
    "--extension",
    "-S",
    "--size",
    "-o",
    "--owner",
    "--changed-within",
    "--changed-before",
    "--newer",
    "--older",
    "--and",
];
/// Patterns of `fd` that match every name.
const ANY_NAME: [&str; 5] = [".", ".*", "", "^", "*"];

/// Returns the arguments of `find` for those of `fd`: the folders, then a test if names or
/// properties exclude files, then the command that it runs.
pub(super) fn arguments_of_fd(arguments: &[Field]) -> Vec<Field> {
    let runs =
        |field: &Field| matches!(field.text.as_str(), "-x" | "--exec" | "-X" | "--exec-batch");
    let end = arguments.iter().position(runs).unwrap_or(arguments.len());
    let (search, command) = arguments.split_at(end);
    let mut folders = Vec::new();
    let mut operands = Vec::new();
    let mut is_filtered = false;
    let mut fields = search.iter();
    while let Some(field) = fields.next() {
        let name = field.text.split('=').next().unwrap_or_default();
        is_filtered |= FILTERS_OF_FD.contains(&name);
        match field.text.as_str() {
            "--search-path" | "--base-directory" | "-C" => folders.extend(fields.next().cloned()),
            option if VALUED_BY_FD.contains(&option) || FILTERS_OF_FD.contains(&option) => {
                fields.next();
            }
            option if option.starts_with('-') && option.len() > 1 => {}
            _ => operands.push(field.clone()),
        }
    }
    let mut operands = operands.into_iter();
    is_filtered |= operands
        .next()
        .is_some_and(|pattern| !ANY_NAME.contains(&pattern.text.as_str()));
    folders.extend(operands);
    if folders.is_empty() {
        folders.push(Field::plain("."));
    }
    if is_filtered {
        folders.extend(["-name", "?"].map(Field::plain));
    }
    folders.extend_from_slice(command);
    folders
}

/// Maximum number of folders that a search starts from. A search with more is unreadable.
pub(super) const MAX_STARTS: usize = 16;

/// Returns the folders that a search starts from.
pub(super) fn start_folders(arguments: &[Field]) -> impl Iterator<Item = &Field> {
    arguments
        .iter()
        .skip_while(|f| matches!(f.text.as_str(), "-L" | "-H" | "-P"))
        .take_while(|f| !f.text.starts_with(['-', '(', '!']))
}

/// Returns the folders listed in the file of `-files0-from`.
pub(super) fn listed_in_file(file: Option<&Value>) -> Vec<Field> {
    let names = file.and_then(Value::as_text).unwrap_or_default();
    names
        .split('\0')
        .filter(|name| !name.is_empty())
        .take(MAX_STARTS + 1)
        .map(Field::plain)
        .collect()
}

/// Returns the output of `ls` for folders: all names in them, or their paths if it lists the
/// folders themselves.
pub(super) fn ls_output(arguments: &[Field]) -> Option<String> {
    let short = |field: &&Field| field.text.starts_with('-') && !field.text.starts_with("--");
    let themselves = arguments.iter().any(|field| field.text == "--directory")
        || arguments
            .iter()
            .filter(short)
            .any(|field| field.text.contains('d'));
    let long = arguments
        .iter()
        .filter(short)
        .any(|field| field.text.contains(['l', 'o', 'g', 's', 'i']));
    let operands: Vec<&str> = arguments
        .iter()
        .map(|field| field.text.as_str())
        .filter(|text| !text.starts_with('-'))
        .collect();
    if long || !operands.iter().all(|text| text.starts_with(['/', '~'])) {
        return None;
    }
    let output_line = |text: &&str| {
        if themselves || text.contains(['*', '?', '[']) {
            (*text).to_owned()
        } else {
            "*".to_owned()
        }
    };
    let lines: Vec<String> = if operands.is_empty() {
        vec!["*".to_owned()]
    } else {
        operands.iter().take(16).map(output_line).collect()
    };
    Some(lines.join("\n") + "\n")
}

/// Returns the output of `find` as a glob for each folder, if it lists all or much of the content
/// of folders that are named in full.
pub(super) fn find_output(arguments: &[Field]) -> Option<String> {
    let folders: Vec<&Field> = start_folders(arguments).collect();
    if narrows_at(arguments, &folders)
        || arguments.iter().any(|f| ACTIONS.contains(&f.text.as_str()))
    {
        return None;
    }
    let end = if arguments.iter().any(|f| f.text == "-print0") {
        '\0'
    } else {
        '\n'
    };
    let mut out = String::new();
    for start in folders.into_iter().take(16) {
        if !start.text.starts_with(['/', '~']) {
            return None;
        }
        out.push_str(start.text.trim_end_matches('/'));
        // A pattern that ends in this way already covers everything in the folder.
        if !start.text.ends_with("/*") {
            out.push_str("/*");
        }
        out.push(end);
    }
    (!out.is_empty()).then_some(out)
}
