//! What the name of a tool indicates about how it uses its arguments.

use crate::detect::{Language, ReadAs};

use super::implied::Subject;
use super::look;
use super::words::{Table, Words};

/// How a tool uses its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Runs {
    /// Passes it to a shell or an interpreter, whatever the argument is called.
    All,
    /// May pass it to a shell or an interpreter.
    Some,
    /// Not known from the name.
    Unknown,
    /// Stores it, sends it or searches for it.
    Nothing,
    /// Only mentions it, even if the argument is called a command.
    Mentions,
}

/// A tool, as described by its name and description.
#[derive(Clone, Debug)]
pub(super) struct Tool {
    pub(super) runs: Runs,
    /// Whether it queries a database.
    pub(super) database: bool,
    /// Whether it is called a query.
    pub(super) queries: bool,
    /// Whether it works on files.
    pub(super) files: bool,
    /// Whether it lists the files that match a pattern.
    pub(super) globs: bool,
    /// Whether it connects to a host to run something there, or to see whether it answers.
    pub(super) connects: bool,
    /// Whether it is about routes of a server or steps in a document, which are called paths.
    pub(super) routes: bool,
    /// Whether it fetches or renders what the pages in its input refer to.
    pub(super) renders: bool,
    /// Whether it works on notebooks of code.
    pub(super) notebook: bool,
    /// The language in its name.
    pub(super) language: Option<ReadAs>,
    /// The program that it is named after: its commands may omit the program.
    pub(super) program: Option<&'static str>,
    /// The last word of its name, for a tool that is called like a program.
    pub(super) last_word: String,
    /// What it works on, if its arguments amount to a command.
    pub(super) subject: Option<Subject>,
    /// Whether its name consists of that word only.
    is_one_word: bool,
}

/// Tools that pass their input to a shell.
static SHELLS: Table = Table::new(
    "bash shell sh zsh fish exec terminal powershell pwsh ps7 vbscript jscript ssh subprocess tty pty console tmux cmd iterm wsl command \
    commands repl interpreter cmdline shells bashrc oneliner adb telnet winrm psexec xterm kitty",
);
/// Programs and builtins that run what they are given, as tools of the same name do.
const GENERIC: [&str; 6] = ["exec", "command", "batch", "script", "builtin", "eval"];
/// Tools that run something.
static RUNS: Table = Table::new(
    "execute run process script scripts system sandbox cli eval evaluate launch spawn invoke start job cron schedule \
    jupyter notebook cell container vm instance remote execution runner code background task daemon keys stdin keystrokes",
);
/// Words of tools that run something other than a command.
static ELSEWHERE: Table = Table::new(
    "query queries sql agent agents workflow workflows test tests search task tasks report prompt model inference \
    actor pipeline flow chain payment order trade transaction plan benchmark analysis audit scan graphql request payments \
    refund invoice campaign subscription experiment evaluation eval crew team conversation chat thread question lookup simulation \
    calculator calculation weather dashboard backtest",
);
/// Tools that only look and do not act.
static LOOKS: Table = Table::new(
    "get list read search find describe show view history status fetch lookup query browse retrieve count tail head \
    grep glob download upload close kill stop delete remove inspect info output outputs hosts sessions check whois diff log logs",
);
/// Tools that store or forward a text.
static TEXTS: Table = Table::new(
    "write create update edit post message email mail issue comment note notes document page slack browser navigate \
    calendar event reminder weather calculator add set insert append replace store save send publish notify reply upsert patch \
    rename move copy put memory memorize remember entities observation knowledge translate summarize calculate compute todo ticket \
    jira notion discord telegram sms tweet thinking think sequentialthinking thought thoughts content embed vector upload string \
    text blog draft article gist snippet bookmark contact record row item label tag classify moderate rate review plan prompt \
    completion chat speak say tts fill click press hover scroll announce feed feedback report commit pr pull merge release card board wiki faq answer ask quote",
);
/// Tools that only mention their input.
static MENTIONS: Table = Table::new(
    "explain lint describe document highlight translate summarize remember memorize note save log search find \
    comment format tag embed index upsert classify moderate parse tokenize proofread review explainshell shellcheck cheatsheet tldr \
    bookmark store history suggest complete autocomplete tokenizer analyze teach quiz lookup diff",
);
/// Words of tools that act, whatever else they do.
static ACTS: Table = Table::new(
    "run exec execute eval evaluate spawn start launch invoke send write type paste feed interact execution runner \
    schedule create add press submit start",
);
/// Tools whose paths are not file paths.
static ROUTES: Table = Table::new(
    "route routes router endpoint endpoints api http https request probe healthcheck ingress openapi swagger xpath jsonpath \
    jmespath selector selectors dom cookie cookies mock redirect gateway nginx graphql rest url sitemap",
);
/// Tools that open what a page or a document refers to.
static RENDERS: Table = Table::new(
    "render pdf screenshot parse convert preview xslt transform xml svg soap saml html markdown import graphql thumbnail latex tex asciidoc sparql typst pandoc sphinx",
);
static DATABASES: Table = Table::new(
    "sql postgres postgresql pg psql mysql mariadb sqlite duckdb database db bigquery snowflake clickhouse redshift \
    oracle mssql tsql cockroach cockroachdb supabase neon athena trino presto hive databricks motherduck timescale timescaledb \
    planetscale turso singlestore vertica teradata",
);
static BROWSERS: Table = Table::new(
    "browser playwright puppeteer chrome chromium devtools cdp selenium javascript page js dom",
);
/// Programs whose tools take a command without the program's name.
const PROGRAMS: [(&str, &str); 34] = [
    ("kubectl", "kubectl"),
    ("k8s", "kubectl"),
    ("kubernetes", "kubectl"),
    ("helm", "helm"),
    ("docker", "docker"),
    ("podman", "podman"),
    ("git", "git"),
    ("gh", "gh"),
    ("aws", "aws"),
    ("awscli", "aws"),
    ("az", "az"),
    ("azcli", "az"),
    ("gcloud", "gcloud"),
    ("terraform", "terraform"),
    ("tofu", "tofu"),
    ("npm", "npm"),
    ("pnpm", "pnpm"),
    ("yarn", "yarn"),
    ("pip", "pip"),
    ("redis", "redis-cli"),
    ("systemctl", "systemctl"),
    ("ansible", "ansible"),
    ("vercel", "vercel"),
    ("heroku", "heroku"),
    ("flyctl", "flyctl"),
    ("apt", "apt"),
    ("brew", "brew"),
    ("cargo", "cargo"),
    ("make", "make"),
    ("openssl", "openssl"),
    ("ffmpeg", "ffmpeg"),
    ("rclone", "rclone"),
    ("rsync", "rsync"),
    ("adb", "adb shell"),
];

/// Tools whose text is for people.
static PEOPLE: Table =
    Table::new("message email mail issue comment note slack notify reply chat ticket");
/// Words of tools that run something, whatever else they are called.
static PLAINLY: Table =
    Table::new("run execute eval evaluate execution runner sandbox repl interpreter");
static QUERIES: Table = Table::new("query queries sql statement");
static ASKS: Table = Table::new("query queries sql search graphql");
static FILES: Table = Table::new(
    "file files directory directories dir folder path fs filesystem rename move copy symlink hardlink unlink",
);
static CONNECTS: Table =
    Table::new("ssh sftp scp winrm telnet psexec ping traceroute nslookup dig");
static NOTEBOOKS: Table = Table::new("cell cells notebook notebooks jupyter ipython ipynb");
static EVALUATES: Table =
    Table::new("evaluate eval execute exec script javascript js run console function code");

fn contains_any(table: &Table, words: &[&str]) -> bool {
    words.iter().any(|word| table.has(word))
}

impl Tool {
    /// Creates the tool with this name. `described` is whether its server declares that it runs
    /// commands.
    pub(super) fn new(name: &str, described: bool) -> Self {
        // A prefix names a server: it counts if the rest is not conclusive.
        let (server, tool_name) = split(name);
        let own_words = Words::new(tool_name);
        let server_words = Words::new(server);
        let all = own_words.list();
        let before = server_words.list();
        let whole: Vec<&str> = all.iter().chain(&before).copied().collect();
        let all_words = || whole.iter().copied();
        let mut runs = infer_runs(&all);
        if matches!(runs, Runs::Unknown | Runs::Some) && contains_any(&SHELLS, &before)
            || is_interpreter(&all)
            || is_interpreter(&whole)
        {
            runs = Runs::All;
        }
        if described && matches!(runs, Runs::Unknown | Runs::Some) {
            runs = Runs::All;
        }
        let language = || {
            all_words()
                .find_map(look::code_language)
                .or_else(|| look::runner_language(&all))
        };
        let browser = contains_any(&BROWSERS, &all) || contains_any(&BROWSERS, &before);
        let evaluates = browser && contains_any(&EVALUATES, &all);
        Self {
            runs,
            database: contains_any(&DATABASES, &all) || contains_any(&DATABASES, &before),
            queries: contains_any(&QUERIES, &all),
            files: contains_any(&FILES, &all),
            globs: all.contains(&"glob"),
            connects: contains_any(&CONNECTS, &all) || contains_any(&CONNECTS, &before),
            routes: contains_any(&ROUTES, &all),
            renders: contains_any(&RENDERS, &all),
            notebook: contains_any(&NOTEBOOKS, &all) || contains_any(&NOTEBOOKS, &before),
            language: language().or_else(|| {
                if evaluates {
                    look::code_language("javascript")
                } else {
                    None
                }
            }),
            program: all_words().find_map(|word| {
                PROGRAMS
                    .iter()
                    .find(|(name, _)| *name == word)
                    .map(|(_, program)| *program)
            }),
            last_word: tool_name
                .rsplit(['_', '-'])
                .next()
                .unwrap_or(tool_name)
                .to_owned(),
            subject: Subject::of(&whole),
            is_one_word: !tool_name.contains('_'),
        }
    }

    /// Returns the tool as one that passes its input to a shell, which an argument indicates.
    pub(super) fn running_all(&self) -> Self {
        Self {
            runs: Runs::All,
            ..self.clone()
        }
    }

    /// Returns whether the tool is called like a program: `rm`, `git`, `fs.kubectl`.
    pub(super) fn is_program(&self) -> bool {
        !self.last_word.is_empty()
            && self.is_one_word
            && !GENERIC.contains(&self.last_word.as_str())
            && (self.runs == Runs::Unknown || look::is_program(&self.last_word))
    }
}

/// Returns whether a text is the name of a module or a kind of step that runs a command in a shell.
pub(super) fn is_shell(module: &str) -> bool {
    let module = module.rsplit('.').next().unwrap_or(module);
    matches!(
        module,
        "shell"
            | "command"
            | "raw"
            | "script"
            | "win_shell"
            | "win_command"
            | "win_powershell"
            | "cmd"
            | "bash"
            | "powershell"
            | "pwsh"
            | "exec"
    )
}

/// Splits a name into the server's part and the tool's own.
fn split(name: &str) -> (&str, &str) {
    let at = name
        .rfind(['/', '.', ':'])
        .map(|at| (at, 1))
        .into_iter()
        .chain(name.rfind("__").map(|at| (at, 2)))
        .max();
    let Some((at, sign)) = at else {
        return ("", name);
    };
    match (name.get(..at), name.get(at + sign..)) {
        (Some(server), Some(own)) if !own.is_empty() => (server, own),
        _ => ("", name),
    }
}

/// Returns whether a name consists of a language and words for running code: `lua_eval`, `python`.
/// A compiler, or `node` alone, may be something else.
fn is_interpreter(words: &[&str]) -> bool {
    let mut language = None;
    for word in words {
        match look::code_language(word) {
            Some(read_as) if language.is_none() => language = Some(read_as),
            None if look::RUNNING.has(word) || *word == "shell" => {}
            _ => return false,
        }
    }
    match language {
        Some(ReadAs::Code(Language::Compiled | Language::JavaScript)) => words.len() > 1,
        Some(_) => true,
        None => false,
    }
}

fn infer_runs(words: &[&str]) -> Runs {
    let shell = contains_any(&SHELLS, words);
    let runs = contains_any(&RUNS, words);
    let acts = contains_any(&ACTS, words);
    if contains_any(&MENTIONS, words) && !acts {
        return Runs::Mentions;
    }
    if contains_any(&LOOKS, words) && !acts {
        return Runs::Nothing;
    }
    let texts = contains_any(&TEXTS, words);
    if shell {
        // `send_message_to_console`: the text is for people. `send_keys`, `write_to_terminal` feed
        // a shell.
        let people = contains_any(&PEOPLE, words);
        return if people { Runs::Nothing } else { Runs::All };
    }
    if !runs {
        return if texts { Runs::Nothing } else { Runs::Unknown };
    }
    let elsewhere = contains_any(&ELSEWHERE, words);
    let plainly = contains_any(&PLAINLY, words);
    match (elsewhere, plainly, texts) {
        (false, true, false) => Runs::All,
        (false, _, false) | (false, true, true) => Runs::Some,
        (true, ..) => {
            if texts || contains_any(&ASKS, words) {
                Runs::Nothing
            } else {
                Runs::Unknown
            }
        }
        (false, false, true) => Runs::Some,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_tools_do() {
        for (names, want) in [
            (
                "bash Bash run_command execute_shell_command shell_exec terminal ssh_exec mcp__shell__do runCommand cmd \
                 python lua_eval node.eval",
                Runs::All,
            ),
            (
                "desktop-commander/start_process send_keys write_to_terminal interact_with_process run_code execute_python",
                Runs::Some,
            ),
            (
                "write_file create_issue send_message slack_post add_comment sequentialthinking vector_upsert set_reminder",
                Runs::Nothing,
            ),
            (
                "read_terminal_output get_command_history search_code run_query list_processes fetch",
                Runs::Nothing,
            ),
            (
                "explain_command lint_script save_snippet shellcheck search_commands",
                Runs::Mentions,
            ),
            ("frobnicate do_it", Runs::Unknown),
        ] {
            for name in names.split_ascii_whitespace() {
                let runs = Tool::new(name, false).runs;
                let fits = runs == want
                    || (want == Runs::Some && runs == Runs::All)
                    || (want == Runs::Nothing && runs == Runs::Mentions);
                assert!(fits, "{name}: {runs:?}");
            }
        }
        assert_eq!(Tool::new("frobnicate", true).runs, Runs::All);
        assert_eq!(Tool::new("kubectl_generic", false).program, Some("kubectl"));
        assert!(
            Tool::new("mcp__postgres__query", false).database
                && Tool::new("browser_evaluate", false).language.is_some()
        );
    }
}
