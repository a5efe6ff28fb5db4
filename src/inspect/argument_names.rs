//! What names of tools and arguments say about who reads a string.

use crate::detect::{Language, ReadAs};

/// Who reads a string, going by the names above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A shell.
    Shell,
    /// Words of one command, as a list.
    Arguments,
    /// An interpreter, by its language.
    Code,
    /// A file system.
    Path,
    /// A client that connects to it.
    Url,
    /// Nobody runs it.
    Text,
    Unknown,
}

const COMMAND: [&str; 24] = [
    "command",
    "cmd",
    "commands",
    "cmds",
    "commandline",
    "cmdline",
    "shellcommand",
    "bashcommand",
    "shellcmd",
    "bash",
    "shell",
    "sh",
    "exec",
    "execute",
    "script",
    "scripts",
    "shellscript",
    "bashscript",
    "run",
    "entrypoint",
    "powershell",
    "terminalcommand",
    "commandtorun",
    "rawcommand",
];
const CODE: [&str; 9] = ["code", "source", "sourcecode", "snippet", "program", "python", "javascript", "pythoncode", "jscode"];
const ARGUMENT_LIST: [&str; 8] = ["args", "argv", "arguments", "commandargs", "cmdargs", "parameters", "params", "arglist"];
const TEXT: [&str; 49] = [
    "content",
    "contents",
    "message",
    "body",
    "description",
    "title",
    "query",
    "pattern",
    "name",
    "reason",
    "explanation",
    "justification",
    "comment",
    "note",
    "notes",
    "summary",
    "prompt",
    "oldstring",
    "newstring",
    "oldstr",
    "newstr",
    "filetext",
    "inserttext",
    "subject",
    "markdown",
    "html",
    "document",
    "search",
    "regex",
    "question",
    "answer",
    "thought",
    "goal",
    "task",
    "tags",
    "label",
    "language",
    "lang",
    "timeout",
    "id",
    "user",
    "email",
    "channel",
    "commitmessage",
    "replacement",
    "expected",
    "purpose",
    "intent",
    "context",
];
const PATH: [&str; 14] = [
    "path",
    "paths",
    "file",
    "files",
    "filepath",
    "filename",
    "directory",
    "dir",
    "folder",
    "cwd",
    "workdir",
    "workingdirectory",
    "destination",
    "source",
];
const URL: [&str; 8] = ["url", "urls", "uri", "href", "link", "endpoint", "host", "hostname"];
const PROGRAM: [&str; 12] = [
    "command",
    "cmd",
    "program",
    "executable",
    "exe",
    "binary",
    "bin",
    "file",
    "process",
    "executablepath",
    "commandname",
    "app",
];
const FOLDER: [&str; 11] = [
    "cwd",
    "workdir",
    "workingdirectory",
    "workingdir",
    "directory",
    "dir",
    "wd",
    "basedir",
    "chdir",
    "rundir",
    "currentdirectory",
];
/// Words of tool names that run commands.
const SHELL_TOOL: [&str; 26] = [
    "bash",
    "shell",
    "sh",
    "zsh",
    "exec",
    "execute",
    "command",
    "commands",
    "cmd",
    "terminal",
    "run",
    "powershell",
    "pwsh",
    "console",
    "ssh",
    "process",
    "spawn",
    "subprocess",
    "system",
    "tty",
    "pty",
    "sandbox",
    "cli",
    "script",
    "repl",
    "interpreter",
];
/// Words of tool names that handle text.
const TEXT_TOOL: [&str; 38] = [
    "write",
    "read",
    "search",
    "grep",
    "send",
    "post",
    "create",
    "update",
    "edit",
    "query",
    "fetch",
    "get",
    "list",
    "find",
    "message",
    "email",
    "mail",
    "issue",
    "comment",
    "note",
    "document",
    "page",
    "slack",
    "sql",
    "browser",
    "navigate",
    "calendar",
    "event",
    "reminder",
    "weather",
    "calculator",
    "translate",
    "summarize",
    "insert",
    "append",
    "replace",
    "store",
    "save",
];

/// A name in lower case without `_`, `-` and spaces.
fn plain(name: &str) -> String {
    name.chars().take(64).filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// The words of a tool's name, split at signs and at capitals.
fn words(tool: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut small = false;
    for c in tool.chars().take(128) {
        if !c.is_ascii_alphanumeric() || (c.is_ascii_uppercase() && small) {
            out.push(String::new());
        }
        if c.is_ascii_alphanumeric()
            && let Some(last) = out.last_mut()
        {
            last.push(c.to_ascii_lowercase());
        }
        small = c.is_ascii_lowercase();
    }
    out.retain(|word| !word.is_empty());
    out
}

fn runs_commands(tool: &str) -> bool {
    let words = words(tool);
    words.iter().any(|word| SHELL_TOOL.contains(&word.as_str())) && !words.iter().any(|word| TEXT_TOOL.contains(&word.as_str()))
}

/// Who reads the argument `key` of `tool`.
pub(super) fn kind(key: &str, tool: &str) -> Kind {
    let key = plain(key);
    let key = key.as_str();
    if COMMAND.contains(&key) {
        return Kind::Shell;
    }
    if CODE.contains(&key) {
        return Kind::Code;
    }
    if TEXT.contains(&key) {
        return Kind::Text;
    }
    if PATH.contains(&key) {
        return Kind::Path;
    }
    if URL.contains(&key) {
        return Kind::Url;
    }
    if ARGUMENT_LIST.contains(&key) {
        return if runs_commands(tool) { Kind::Arguments } else { Kind::Unknown };
    }
    if runs_commands(tool) { if of_language(tool).is_some() { Kind::Code } else { Kind::Shell } } else { Kind::Unknown }
}

/// A list of commands rather than one command's words.
pub(super) fn is_plural(key: &str) -> bool {
    matches!(plain(key).as_str(), "commands" | "cmds" | "scripts" | "lines" | "steps")
}

pub(super) fn is_argument_list(key: &str) -> bool {
    ARGUMENT_LIST.contains(&plain(key).as_str())
}

pub(super) fn is_program(key: &str) -> bool {
    PROGRAM.contains(&plain(key).as_str())
}

pub(super) fn is_folder(key: &str) -> bool {
    FOLDER.contains(&plain(key).as_str())
}

pub(super) fn is_language(key: &str) -> bool {
    matches!(plain(key).as_str(), "language" | "lang" | "interpreter" | "runtime" | "shell" | "kernel" | "engine")
}

/// Names a tool, next to that tool's own arguments.
pub(super) fn is_tool(key: &str) -> bool {
    matches!(plain(key).as_str(), "name" | "tool" | "toolname" | "recipientname" | "function" | "action")
}

/// Holds the arguments of a call within a call.
pub(super) fn is_call(key: &str) -> bool {
    matches!(
        plain(key).as_str(),
        "arguments" | "args" | "parameters" | "params" | "input" | "toolinput" | "actioninput" | "kwargs"
    )
}

/// Whether a tool is called as a program may be: `rm`, `git`, `fs.kubectl`.
pub(super) fn is_program_tool(tool: &str) -> bool {
    let last = last_word(tool);
    !last.is_empty() && !SHELL_TOOL.contains(&last) && !TEXT_TOOL.contains(&last) && !tool.contains('_')
}

/// What stands behind the last sign of a tool's name.
pub(super) fn last_word(tool: &str) -> &str {
    tool.rsplit(['.', '/', ':', '_', '-']).next().unwrap_or(tool)
}

/// How code is read: by the language that is named, else by the tool's name, else by its look.
pub(super) fn language(named: Option<&str>, tool: &str, code: &str) -> ReadAs {
    if let Some(named) = named {
        return match named_language(&plain(named)) {
            Some(read_as) => read_as,
            None => ReadAs::Text,
        };
    }
    of_language(tool).map_or_else(|| by_look(code), ReadAs::Code)
}

fn of_language(tool: &str) -> Option<Language> {
    words(tool).iter().find_map(|word| match named_language(word) {
        Some(ReadAs::Code(language)) => Some(language),
        _ => None,
    })
}

fn named_language(name: &str) -> Option<ReadAs> {
    let language = match name.trim_end_matches(|c: char| c.is_ascii_digit()) {
        "bash" | "sh" | "shell" | "zsh" | "console" | "terminal" | "fish" | "ksh" | "dash" | "posix" | "binbash" | "binsh"
        | "shellscript" | "auto" | "default" | "" => {
            return Some(ReadAs::Shell);
        }
        "python" | "py" | "ipython" | "jupyter" => Language::Python,
        "javascript" | "js" | "node" | "nodejs" | "typescript" | "ts" | "deno" | "bun" => Language::JavaScript,
        "ruby" | "rb" => Language::Ruby,
        "perl" | "pl" => Language::Perl,
        "php" => Language::Php,
        "lua" => Language::Lua,
        "powershell" | "pwsh" | "ps" | "cmd" | "bat" | "batch" | "cmdexe" => Language::PowerShell,
        _ => return None,
    };
    Some(ReadAs::Code(language))
}

/// Python and JavaScript say in their first words what they are; anything else may be meant for a shell.
fn by_look(code: &str) -> ReadAs {
    for line in code.lines().map(str::trim_start).filter(|line| !line.is_empty()).take(20) {
        let starts = |words: &[&str]| words.iter().any(|word| line.starts_with(word));
        let python_import = line.starts_with("import ") && !line.contains(['\'', '"', ';'])
            || (line.starts_with("from ") && line.contains(" import "));
        if python_import || starts(&["def ", "class ", "print(", "with open(", "os.", "subprocess.", "shutil."]) {
            return ReadAs::Code(Language::Python);
        }
        if starts(&[
            "const ",
            "let ",
            "var ",
            "require(",
            "console.",
            "import {",
            "import *",
            "import '",
            "import \"",
            "async function",
            "await ",
            "fs.",
            "process.",
        ]) {
            return ReadAs::Code(Language::JavaScript);
        }
    }
    ReadAs::Shell
}
