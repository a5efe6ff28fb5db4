//! The code in texts that a call writes to files: scripts and sources, and the commands in files of
//! builds, of services and of other settings.

use std::borrow::Cow;

use bytes::Bytes;

use crate::detect::{Language, ReadAs};
use crate::message::{Json, ReadLimits, Value, ValueKind};

/// Maximum number of commands that are taken out of one file.
const COMMANDS: usize = 512;
/// Maximum length of a command in a file, in bytes.
const COMMAND_BYTES: usize = 4096;
/// Begins a command in a makefile, whose output is the value.
const MAKE_SHELL: &str = "$(shell ";
/// First lines of notebook cells that a shell runs.
const SHELL_CELLS: [&str; 4] = ["%%bash", "%%sh", "%%script", "%%system"];
/// Members of YAML whose values are commands.
const COMMAND_KEYS: [&str; 15] = [
    "run",
    "script",
    "shell",
    "command",
    "cmd",
    "entry",
    "entrypoint",
    "exec",
    "raw",
    "ansible.builtin.shell",
    "ansible.builtin.command",
    "test",
    "bash",
    "powershell",
    "pwsh",
];

/// Code, and how it is read.
pub(super) type Code<'t> = (Cow<'t, str>, ReadAs);

/// Returns the code in a text that is written to the file with this path.
pub(super) fn code_of<'t>(path: &str, text: &'t str) -> Vec<Code<'t>> {
    if has_samples(path, text) {
        return Vec::new();
    }
    let file = file_name(path);
    let extension = file.rsplit_once('.').map_or("", |(_, extension)| extension);
    if let Some(read_as) = read_source(&file, extension, text) {
        return vec![(Cow::Borrowed(text), read_as)];
    }
    let commands: Vec<Cow<'_, str>> = match (file.as_str(), extension) {
        ("makefile" | "gnumakefile", _) | (_, "mk") => recipes(text).collect(),
        (name, _) if name.starts_with("dockerfile") || name.starts_with("containerfile") => {
            docker_commands(text)
        }
        (_, "dockerfile") => docker_commands(text),
        (_, "yml" | "yaml") => yaml_commands(text).collect(),
        (_, "json" | "code-workspace") => json_commands(text).collect(),
        (_, "service" | "desktop" | "socket") => exec_commands(text).collect(),
        ("crontab", _) | (_, "cron" | "crontab") => cron_commands(text).collect(),
        (_, "ipynb") => return notebook_code(text).unwrap_or_default(),
        _ => return Vec::new(),
    };
    let fits = |command: &&Cow<'_, str>| command.len() <= COMMAND_BYTES && is_balanced(command);
    let commands: Vec<&str> = commands
        .iter()
        .filter(fits)
        .take(COMMANDS)
        .map(AsRef::as_ref)
        .collect();
    as_code(commands.join("\n"), ReadAs::Shell)
        .into_iter()
        .collect()
}

/// Returns code unless it is empty.
fn as_code(code: String, read_as: ReadAs) -> Option<Code<'static>> {
    (!code.is_empty()).then_some((Cow::Owned(code), read_as))
}

/// Returns the last part of a path, in lower case.
fn file_name(path: &str) -> String {
    let file = path.rsplit(['/', '\\']).next().unwrap_or(path);
    file.to_ascii_lowercase()
}

/// Returns whether a file contains samples of attacks by its nature: a test that asserts something,
/// or rules of a scanner.
pub(super) fn has_samples(path: &str, text: &str) -> bool {
    const FOLDERS: [&str; 6] = ["test", "tests", "__tests__", "spec", "fixtures", "testdata"];
    const MARKS: [&str; 6] = ["_test.", ".test.", ".spec.", "_spec.", "_tests.", ".tests."];
    const ASSERTS: [&str; 8] = [
        "assert",
        "expect(",
        "t.Error",
        "t.Fatal",
        ".to_raise",
        "should ",
        "EXPECT_",
        "#[test]",
    ];
    const DETECTS: [&str; 6] = [
        "condition:",
        "|contains:",
        "pattern-either:",
        "patterns:",
        "logsource:",
        "alert tcp ",
    ];
    let file = file_name(path);
    let in_tests = file.starts_with("test_")
        || MARKS.iter().any(|mark| file.contains(mark))
        || path.split(['/', '\\']).any(|part| FOLDERS.contains(&part));
    let detects = [".yar", ".yara", ".yml", ".yaml", ".rules"];
    in_tests && ASSERTS.iter().any(|word| text.contains(word))
        || detects.iter().any(|extension| file.ends_with(extension))
            && DETECTS.iter().filter(|word| text.contains(**word)).count()
                > usize::from(!file.contains(".yar"))
}

/// Returns how a file is read that is code as a whole.
fn read_source(file: &str, extension: &str, text: &str) -> Option<ReadAs> {
    let language = match extension {
        "sh" | "bash" | "zsh" | "ksh" | "dash" | "command" | "envrc" => return Some(ReadAs::Shell),
        // Python executes the lines of a `.pth` file that begin with `import` at each start.
        "py" | "pyw" | "pth" => Language::Python,
        "js" | "mjs" | "cjs" | "ts" | "mts" | "cts" | "jsx" | "tsx" => Language::JavaScript,
        "rb" | "gemspec" | "rake" => Language::Ruby,
        "pl" | "pm" => Language::Perl,
        "php" => Language::Php,
        "lua" => Language::Lua,
        "ps1" | "psm1" | "bat" | "cmd" => Language::PowerShell,
        "go" | "rs" | "c" | "cc" | "cpp" | "h" | "java" | "kt" | "kts" | "cs" | "swift"
        | "scala" => Language::Compiled,
        "r" => Language::Other("Rscript"),
        "jl" => Language::Other("julia"),
        "ex" | "exs" => Language::Other("elixir"),
        "tcl" => Language::Other("tclsh"),
        "groovy" | "gradle" | "nix" | "tf" | "bazel" | "bzl" => Language::Other("groovy"),
        "el" => Language::Other("sbcl"),
        "vbs" | "vbe" | "wsf" | "vba" | "bas" | "cls" | "frm" => Language::Other("wscript"),
        _ => match file {
            "jenkinsfile" | "build" => Language::Other("groovy"),
            "rakefile" | "gemfile" | "vagrantfile" => Language::Ruby,
            ".bashrc" | ".bash_profile" | ".profile" | ".zshrc" | ".zprofile" | ".zshenv" => {
                return Some(ReadAs::Shell);
            }
            _ => return read_by_first_line(text),
        },
    };
    Some(ReadAs::Code(language))
}

/// Reads the interpreter that a script names in its first line.
fn read_by_first_line(text: &str) -> Option<ReadAs> {
    let line = text.strip_prefix("#!")?.lines().next()?;
    let names = |word: &str| line.contains(word);
    Some(if names("python") {
        ReadAs::Code(Language::Python)
    } else if names("node") {
        ReadAs::Code(Language::JavaScript)
    } else if names("perl") {
        ReadAs::Code(Language::Perl)
    } else if names("ruby") {
        ReadAs::Code(Language::Ruby)
    } else if names("sh") {
        ReadAs::Shell
    } else {
        return None;
    })
}

/// Returns the commands of a makefile: lines of recipes, and values that a shell computes.
fn recipes(text: &str) -> impl Iterator<Item = Cow<'_, str>> {
    let lines = text
        .lines()
        .filter_map(|line| match line.strip_prefix('\t') {
            Some(recipe) => Some(recipe.trim_start_matches(['@', '-', '+', ' '])),
            None => line.find(MAKE_SHELL).and_then(|at| line.get(at..)),
        });
    lines.map(|command| {
        if command.contains('$') {
            let variable = command.replace("$$", "$").replace("$(HOME)", "$HOME");
            Cow::Owned(variable.replace(MAKE_SHELL, "$("))
        } else {
            Cow::Borrowed(command)
        }
    })
}

/// Returns the commands that an image is built by, with their lines joined.
fn docker_commands(text: &str) -> Vec<Cow<'_, str>> {
    let joined = text.replace("\\\r\n", " ").replace("\\\n", " ");
    let commands = joined.lines().filter_map(|line| {
        let (instruction, rest) = line.trim_start().split_once(' ')?;
        ["run", "cmd", "entrypoint"]
            .iter()
            .any(|name| instruction.eq_ignore_ascii_case(name))
            .then(|| Cow::Owned(without_list(without_options(rest))))
    });
    commands.collect()
}

/// Returns the command of an instruction without the options before it (`--mount=type=secret,id=x`).
fn without_options(mut rest: &str) -> &str {
    while let Some(option) = rest.trim_start().strip_prefix("--") {
        rest = option.split_once(' ').map_or("", |(_, rest)| rest);
    }
    rest
}

/// Returns the code in the cells of a notebook, that of Python and that of a shell; `None` if it is
/// not a notebook (Jupyter's nbformat 4).
fn notebook_code(text: &str) -> Option<Vec<Code<'static>>> {
    let notebook = Bytes::copy_from_slice(text.as_bytes());
    let notebook = Json::parse(notebook, &ReadLimits::default()).ok()?;
    let mut python = String::new();
    let mut shell = String::new();
    for cell in notebook.root().get("cells")?.elements() {
        if cell
            .get("cell_type")
            .and_then(|value| value.str())
            .as_deref()
            != Some("code")
        {
            continue;
        }
        let source = cell.get("source").map(source_of).unwrap_or_default();
        let first_line = source.trim_start().lines().next().unwrap_or_default();
        if SHELL_CELLS.iter().any(|mark| first_line.starts_with(mark)) {
            let body = source.trim_start().split_once('\n');
            shell.extend([body.map_or("", |(_, body)| body), "\n"]);
        } else {
            python.extend([source.as_str(), "\n"]);
        }
    }
    let python = as_code(python, ReadAs::Code(Language::Python));
    Some(
        python
            .into_iter()
            .chain(as_code(shell, ReadAs::Shell))
            .collect(),
    )
}

/// Returns the source of a cell: a text, or a list of its lines with their ends.
fn source_of(value: Value<'_>) -> String {
    match value.kind() {
        ValueKind::Array => value.elements().filter_map(|line| line.str()).collect(),
        _ => value.str().map(Cow::into_owned).unwrap_or_default(),
    }
}

/// Returns the words of a list in JSON with blanks between them, or the text itself.
fn without_list(text: &str) -> String {
    let text = text.trim();
    match text
        .strip_prefix('[')
        .and_then(|list| list.strip_suffix(']'))
    {
        Some(list) if list.contains('"') => list
            .split(',')
            .map(|word| word.trim().trim_matches('"'))
            .collect::<Vec<_>>()
            .join(" "),
        _ => text.to_owned(),
    }
}

/// Returns the lines of YAML that may be commands: values of members with such a name, items of
/// lists, and lines of blocks.
fn yaml_commands(text: &str) -> impl Iterator<Item = Cow<'_, str>> {
    let lines = text.lines().filter_map(|line| {
        let line = line.trim().trim_start_matches("- ").trim_start();
        let member = line.split_once(':').filter(|(key, rest)| {
            (rest.is_empty() || rest.starts_with(' '))
                && key
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'))
        });
        match member {
            Some((key, value)) => COMMAND_KEYS.contains(&key).then(|| value.trim()),
            None => Some(line),
        }
    });
    lines
        .map(|line| line.trim_start_matches(['|', '>']).trim())
        .map(|line| without_quotes(line, ['"', '\'']))
        .filter(|line| line.contains(' ') && !line.starts_with(['#', '{', '[']))
        .map(|line| Cow::Owned(without_list(line)))
}

/// Returns a text without the quotation marks around the whole of it.
fn without_quotes<const N: usize>(text: &str, marks: [char; N]) -> &str {
    marks
        .iter()
        .find_map(|mark| {
            text.strip_prefix(*mark)?
                .strip_suffix(*mark)
                .filter(|inside| !inside.contains(*mark))
        })
        .unwrap_or(text)
}

/// Returns the strings of JSON in which several words stand.
fn json_commands(text: &str) -> impl Iterator<Item = Cow<'_, str>> {
    let values = text.lines().flat_map(|line| {
        line.split("\": \"")
            .flat_map(|part| part.split("\":\""))
            .skip(1)
    });
    values.filter_map(|value| {
        let end = value
            .char_indices()
            .find(|(at, c)| *c == '"' && !value.get(..*at).is_some_and(|head| head.ends_with('\\')))
            .map_or(value.len(), |(at, _)| at);
        let value = value.get(..end)?;
        value
            .contains(' ')
            .then(|| Cow::Owned(value.replace("\\\"", "\"")))
    })
}

/// Returns the commands that a service or a starter runs.
fn exec_commands(text: &str) -> impl Iterator<Item = Cow<'_, str>> {
    let values = text.lines().filter_map(|line| {
        let (key, value) = line.split_once('=')?;
        key.trim()
            .starts_with("Exec")
            .then(|| value.trim_start_matches(['-', '@', '+', '!', ':', ' ']))
    });
    values.map(Cow::Borrowed)
}

/// Returns the commands of a crontab, behind their times.
fn cron_commands(text: &str) -> impl Iterator<Item = Cow<'_, str>> {
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'));
    lines.filter_map(|line| {
        let times = if line.starts_with('@') { 1 } else { 5 };
        let mut rest = line.trim_start();
        for _ in 0..times {
            rest = rest.split_once([' ', '\t'])?.1.trim_start();
        }
        Some(Cow::Borrowed(rest))
    })
}

/// Returns whether every quotation mark is closed, so that a line does not quote the next ones.
fn is_balanced(line: &str) -> bool {
    ['"', '\'', '`']
        .iter()
        .all(|mark| line.matches(*mark).count().is_multiple_of(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(path: &str, text: &str) -> String {
        let code: Vec<Cow<'_, str>> = code_of(path, text)
            .into_iter()
            .map(|(code, _)| code)
            .collect();
        code.join("|")
    }

    #[test]
    fn commands_of_build_files_are_found() {
        for (path, text, found) in [
            (
                "Makefile",
                "all: x\n\t@rm -rf $(HOME)/*\n",
                "rm -rf $HOME/*",
            ),
            (
                "Makefile",
                "v := $(shell a $$x)\nall:\n\t@echo $(shell b c)\n",
                "$(a $x)\necho $(b c)",
            ),
            (
                "Dockerfile",
                "RUN --mount=type=secret,id=x --network=none a b",
                "a b",
            ),
            (
                "a.ipynb",
                r#"{"cells": [{"cell_type": "markdown", "source": ["a"]},
                    {"cell_type": "code", "source": ["!b c\n", "d()"]},
                    {"cell_type": "code", "source": "%%bash\ne f"}]}"#,
                "!b c\nd()\n|e f\n",
            ),
            ("a.ipynb", "{\"cells\": 1", ""),
            (
                "a/Dockerfile",
                "FROM x\nRUN a \\\n  && b c\n",
                "a    && b c",
            ),
            ("Dockerfile", "CMD [\"sh\", \"-c\", \"x\"]", "sh -c x"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  l:\n    steps:\n      - run: make all\n      - run: |\n          cargo test -q\n",
                "make all\ncargo test -q",
            ),
            (
                "package.json",
                "{\"scripts\": {\"a\": \"b c\", \"d\":\"e\"}}",
                "b c",
            ),
            ("x.service", "[Service]\nExecStart=-/bin/a b\n", "/bin/a b"),
            (
                "crontab",
                "# x\n*/5 * * * * /bin/a b\n@reboot c d\n",
                "/bin/a b\nc d",
            ),
            ("compose.yaml", "command: [nsenter, --target, '1']", ""),
            ("notes.txt", "rm -rf /", ""),
        ] {
            assert_eq!(commands(path, text), found, "{path}");
        }
    }

    #[test]
    fn tests_and_rules_of_scanners_have_samples() {
        for (path, text, samples) in [
            ("test_a.py", "assert not safe('rm -rf /')", true),
            ("src/a_test.go", "t.Errorf(x)", true),
            ("tests/a.rs", "expect(x)", true),
            ("tests/a.py", "import shutil", false),
            ("latest_build.sh", "# should work", false),
            ("rules/a.yar", "condition: $a", true),
            (".github/workflows/ci.yml", "steps:", false),
        ] {
            assert_eq!(has_samples(path, text), samples, "{path}");
        }
    }

    #[test]
    fn sources_are_read_in_their_language() {
        for (path, text, read_as) in [
            ("a.sh", "ls", Some(ReadAs::Shell)),
            (
                "bin/tool",
                "#!/usr/bin/env python3\n",
                Some(ReadAs::Code(Language::Python)),
            ),
            (
                "a.RS",
                "fn main() {}",
                Some(ReadAs::Code(Language::Compiled)),
            ),
            (
                "C:\\x\\a.ps1",
                "ls",
                Some(ReadAs::Code(Language::PowerShell)),
            ),
            ("a.md", "#!/bin/sh", Some(ReadAs::Shell)),
            ("a.md", "ls", None),
        ] {
            assert_eq!(
                code_of(path, text).first().map(|(_, read_as)| *read_as),
                read_as,
                "{path}"
            );
        }
    }
}
