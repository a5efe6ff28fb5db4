//! The files that `find` lists.

use super::options::short_letters;
use super::value::{Field, Value};
use crate::text::quick::WordSet;

/// Tests that select a few files, wherever they are.
static NAMED: WordSet =
    WordSet::new("-name -iname -path -ipath -wholename -regex -iregex -empty -inum -samefile");
/// Further tests that exclude some files.
static FILTERS: WordSet = WordSet::new(
    "-mtime -mmin -atime -amin -ctime -newer -size -user -group -lname -perm -nouser -xtype -e",
);
/// Actions that print something other than names, or nothing, besides those that run a command.
static ACTIONS: WordSet = WordSet::new("-delete -printf -fprint -ls -quit");

/// Reports whether `fd` runs the command after an option on the files that it finds.
pub(super) fn runs_by_fd(option: &str) -> bool {
    matches!(option, "-x" | "--exec" | "-X" | "--exec-batch")
}

/// Reports whether `find` or `fd` runs the command after an option.
pub(super) fn runs_command(option: &str) -> bool {
    matches!(option, "-exec" | "-execdir" | "-ok" | "-okdir") || runs_by_fd(option)
}

/// Reports whether the tests exclude files: `-name '*'` does not.
pub(super) fn narrows(arguments: &[Field]) -> bool {
    arguments.iter().enumerate().any(|(at, f)| {
        let value = value_at(arguments, at + 1);
        let matches_all = if f.text.ends_with("regex") {
            value == ".*"
        } else {
            matches!(value, "*" | "**" | "*.*")
        };
        let excludes = [&NAMED, &FILTERS]
            .iter()
            .any(|tests| tests.contains(f.text.as_str()));
        excludes && !matches_all && !is_negated(arguments, at)
    })
}

fn value_at(arguments: &[Field], at: usize) -> &str {
    arguments.get(at).map_or("", |value| value.text.as_str())
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
/// Ends of the names of files in which databases keep their tables.
static TABLES: WordSet =
    WordSet::new(".ibd .frm .MYD .MYI .sst .wt .mdf .ndf .ldf .dbf ibdata1 .tsm");
/// Names of files that programs leave behind.
static LEFT_BEHIND: WordSet = WordSet::new(
    ".pyc __pycache__ .DS_Store Thumbs.db .tmp .swp ~ .bak .log core .gz .orig .rej .old \
     node_modules",
);

/// Reports whether the tests exclude so many files that an action on those found from `starts` does
/// not affect whole systems.
pub(super) fn narrows_at(arguments: &[Field], starts: &[&Field]) -> bool {
    if !narrows(arguments) {
        return false;
    }
    let name = (0..arguments.len())
        .find(|at| {
            arguments
                .get(*at)
                .is_some_and(|f| NAMED.contains(f.text.as_str()))
                && !is_negated(arguments, *at)
        })
        .map(|at| value_at(arguments, at + 1));
    let is = |start: &&Field, folders: &[&str]| {
        let path = start.text.trim_end_matches('/');
        folders.contains(&if path.is_empty() { "/" } else { path })
    };
    let system = starts.iter().any(|start| is(start, &SYSTEM));
    let databases = starts.iter().any(|start| {
        let is_inside = |folder: &&str| {
            let rest = start.text.strip_prefix(*folder);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        DATABASES.iter().any(is_inside)
    });
    let home = starts.iter().any(|start| {
        is(start, &["~", "/home", "/root", "/Users"]) || start.text.trim_matches('/') == "home/user"
    });
    match name {
        Some(name) => {
            let ends_in = |ends: &WordSet| {
                let name = name.trim_end_matches('*');
                ends.iter().any(|end| name.ends_with(end))
            };
            let are_absolute = starts.iter().any(|start| start.text.starts_with('/'));
            !(system || databases || are_absolute && ends_in(&TABLES)) || ends_in(&LEFT_BEHIND)
        }
        None => !system && !home && !databases,
    }
}

/// Options of `fd` whose value does not exclude files by name or property.
static VALUED_BY_FD: WordSet = WordSet::new(
    "-t --type -d --max-depth --min-depth --exact-depth -E --exclude -c --color -j --threads \
     --format",
);
/// Options of `fd` whose value excludes files by name.
static NAMES_OF_FD: WordSet = WordSet::new("-e --extension --and");
/// Options of `fd` whose value excludes files by age, size or owner.
static PROPERTIES_OF_FD: WordSet = WordSet::new(
    "-S --size -o --owner --changed-within --changed-before --newer --older --change-newer-than \
     --change-older-than",
);
/// Patterns of `fd` that match every name.
const ANY_NAME: [&str; 5] = [".", ".*", "", "^", "*"];

/// Returns the arguments of `find` for those of `fd`: the folders, then a test if names or
/// properties exclude files, then the command that it runs.
pub(super) fn arguments_of_fd(arguments: &[Field]) -> Vec<Field> {
    let end = arguments
        .iter()
        .position(|field| runs_by_fd(&field.text))
        .unwrap_or(arguments.len());
    let (search, command) = arguments.split_at(end);
    let mut folders = Vec::new();
    let mut operands = Vec::new();
    let mut is_filtered = false;
    let mut has_property = false;
    let mut ending = None;
    let mut fields = search.iter();
    while let Some(field) = fields.next() {
        let name = field.text.split('=').next().unwrap_or_default();
        is_filtered |= NAMES_OF_FD.contains(&name);
        has_property |= PROPERTIES_OF_FD.contains(&name);
        match field.text.as_str() {
            "--search-path" | "--base-directory" | "-C" => folders.extend(fields.next().cloned()),
            "-e" | "--extension" => ending = fields.next().map(|field| format!("*.{}", field.text)),
            option
                if VALUED_BY_FD.contains(&option)
                    || NAMES_OF_FD.contains(&option)
                    || PROPERTIES_OF_FD.contains(&option) =>
            {
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
        let name = ending.as_deref().unwrap_or("?");
        folders.extend(["-name", name].map(Field::plain));
    }
    if has_property {
        folders.extend(["-mtime", "?"].map(Field::plain));
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
    let has_any = |letters: &[char]| {
        let mut options = arguments.iter().filter_map(|f| short_letters(&f.text));
        options.any(|option| option.contains(letters))
    };
    let themselves = arguments.iter().any(|field| field.text == "--directory") || has_any(&['d']);
    let long = has_any(&['l', 'o', 'g', 's', 'i']);
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
        || arguments
            .iter()
            .any(|f| ACTIONS.contains(f.text.as_str()) || runs_command(&f.text))
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
