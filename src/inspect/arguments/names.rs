//! What the name of an argument indicates about how its value is read.

use std::sync::LazyLock;

use super::words::Words;
use crate::text::quick::QuickMap;

/// What the main word of an argument's name indicates about its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::inspect) enum Head {
    /// Read by a shell.
    Shell,
    /// The words of one command.
    Arguments,
    /// Read by an interpreter.
    Code,
    /// Read by a database.
    Sql,
    /// A query to the tool's backend: a database, or a search.
    Query,
    /// Resolved by a file system.
    Path,
    /// Possibly a path or a URL.
    PathOrUrl,
    /// The address that a client connects to.
    Url,
    /// Generic input: a tool that runs things runs it.
    Loose,
    /// An expression or a function: a tool that evaluates things evaluates it.
    Formula,
    /// Not executed by anything.
    Text,
    Unknown,
}

const SHELL: &str = "command commands cmd cmds cmdline commandline shell bash sh zsh ksh exec execute execution script scripts \
    shellscript bashscript powershell pwsh entrypoint oneliner userdata run runs terminal batch";
const ARGUMENTS: &str =
    "args argv arguments argument arg parameters params flags options opts switches";
const CODE: &str = "code codes snippet snippets program programs python javascript typescript js ts py ruby perl php lua macro cell \
    cells applescript osascript jxa notebook";
const SQL: &str = "sql statement statements ddl dml plsql tsql";
const QUERY: &str = "query queries";
const PATH: &str = "path paths filepath filepaths filename filenames file files directory directories dir dirs folder folders cwd \
    workdir wd root roots basedir rootdir dirname pathname workspace";
const PATH_OR_URL: &str = "source sources src destination destinations dest dst target targets output outputs location locations \
    from to attachment attachments template archive config glob globs link links endpoint endpoints site website sites domain \
    server servers upstream upstreams backend address addr proxy origin remote registry page feed callback redirect repo repository image images video \
    audio document documents doc asset upload download base identity certificate keyfile logfile save import export include";
const URL: &str = "url urls uri uris href hrefs host hosts hostname hostnames baseurl webhook weburl iri \
    dsn connectionstring";
const LOOSE: &str = "input inputs text texts keys keystrokes data content contents line lines body payload value values chars \
    characters stdin string str instruction instructions action operation q request sequence buffer block blocks procedure \
    invocation job jobs exp expr";
const FORMULA: &str =
    "expression expressions function func fn formula lambda eval evaluate predicate xpression";
const TEXT: &str = "message messages msg description title subject summary comment comments note notes prompt question answer \
    pattern patterns regex regexp search term terms keyword keywords label labels tag tags name names reason explanation \
    justification thought thoughts goal objective task tasks purpose intent context markdown html css header headers footer \
    caption id ids uuid guid user users username usernames password passphrase token email emails mail recipient recipients cc bcc sender \
    channel channels thread topic topics language lang locale timeout interval duration limit offset count size \
    version branch ref sha commit revision mode type types kind format encoding charset level severity status state priority \
    color colour date time datetime timezone when start end deadline signal pid port protocol method verb operator unit currency \
    amount price quantity category categories theme style model temperature role roles agent persona tone audience feedback \
    review reply response result results hypothesis observation observations fact facts memory memories entity entities \
    relation relations idea plan step steps hint hints example examples expected replacement old new before after find replace \
    selector xpath element ref key column columns field fields table tables schema database index filter filters sort order \
    owner author assignee reviewer milestone sprint project organization org team company customer city country region \
    latitude longitude lat lon lng coordinates symbol ticker isbn license story article post tweet bio biography paragraph \
    sentence word words phrase quote poem lyrics transcript translation definition rationale motivation conclusion abstract \
    background detail details information info report changelog release readme docstring todo todos item items event events \
    attendees diff patch hunk hunks tool session sessions recipient namespace image pod container node cluster project";
/// Words that only precede others, listed so that run-together names can be split.
const OTHERS: &str = "work working base source file my raw pre post init startup start stop build install test lint user full old \
    new to for in of with remote local inner inline initial ssh console interpreter execute exec edit write read send \
    get list call create search mcp sql db page web json path";
/// Words before `code` with which it is not program code: `country_code`.
const NO_CODE: &str = "country error status zip post postal currency language promo coupon auth authorization verification exit \
    area product color colour qr bar region airport iata sms discount invite tracking response return reason state dial access \
    confirmation promotional security tax hs icd";

static HEADS: LazyLock<QuickMap<&str, Head>> = LazyLock::new(|| {
    let tables = [
        (SHELL, Head::Shell),
        (ARGUMENTS, Head::Arguments),
        (CODE, Head::Code),
        (SQL, Head::Sql),
        (QUERY, Head::Query),
        (PATH, Head::Path),
        (URL, Head::Url),
        (LOOSE, Head::Loose),
        (FORMULA, Head::Formula),
        (TEXT, Head::Text),
        (PATH_OR_URL, Head::PathOrUrl),
        (OTHERS, Head::Unknown),
    ];
    let mut heads = QuickMap::default();
    for (words, head) in tables {
        for word in words.split_ascii_whitespace() {
            heads.entry(word).or_insert(head);
        }
    }
    heads
});

/// Returns whether a word is known as a part of names.
pub(super) fn is_known(word: &str) -> bool {
    HEADS.contains_key(word)
}

fn head_of(word: &str) -> Head {
    HEADS.get(word).copied().unwrap_or(Head::Unknown)
}

/// Returns what a name indicates: its last word as a rule, the one before it if the last only means
/// that there is content (`script_content`), the one before `to` if the purpose follows
/// (`command_to_run`).
pub(super) fn head(name: &str) -> Head {
    let words = Words::new(name);
    let mut words = words.list();
    if let Some(at) = words
        .iter()
        .position(|word| matches!(*word, "to" | "for" | "of" | "in" | "with"))
        && at > 0
    {
        words.truncate(at);
    }
    if words.len() > 1
        && words
            .last()
            .is_some_and(|last| matches!(*last, "list" | "array" | "raw" | "template"))
    {
        words.pop();
    }
    let Some((last, before)) = words.split_last() else {
        return Head::Unknown;
    };
    let previous = before.last().copied().unwrap_or("");
    match (head_of(last), head_of(previous)) {
        (Head::Loose, runs @ (Head::Shell | Head::Code | Head::Sql)) => runs,
        (Head::Loose, _) if *last == "string" && previous == "connection" => Head::Url,
        // `command_args`, `file_args`: the preceding word indicates what the arguments belong to.
        (Head::Code, _)
            if NO_CODE
                .split_ascii_whitespace()
                .any(|word| word == previous) =>
        {
            Head::Text
        }
        // `sql_query`, `python_code`, `shell_query`; `search_query` is a text.
        (Head::Query, runs @ (Head::Sql | Head::Shell)) => runs,
        (Head::Query, Head::Text) if previous != "database" => Head::Text,
        (Head::Shell, _)
            if matches!(previous, "dry" | "last" | "max" | "test" | "no") && *last == "run" =>
        {
            Head::Text
        }
        // `cell_source`, `code_source`.
        (Head::PathOrUrl, Head::Code) if *last == "source" => Head::Code,
        (Head::Unknown, Head::Shell) if matches!(*last, "line" | "string") => Head::Shell,
        (head, _) => head,
    }
}

/// Converts a name to lower case without `_`, `-` and spaces.
fn plain_name(name: &str) -> PlainName {
    let mut plain = PlainName {
        letters: [0; 64],
        length: 0,
    };
    let letters = name.bytes().filter(u8::is_ascii_alphanumeric);
    for (place, letter) in plain.letters.iter_mut().zip(letters) {
        *place = letter.to_ascii_lowercase();
        plain.length += 1;
    }
    plain
}

/// Stored on the stack, since the name of every argument is looked up several times.
struct PlainName {
    letters: [u8; 64],
    length: usize,
}

impl PlainName {
    fn as_str(&self) -> &str {
        self.letters
            .get(..self.length)
            .and_then(|letters| std::str::from_utf8(letters).ok())
            .unwrap_or_default()
    }
}

/// Returns whether a name is plural: commands rather than the words of one command.
pub(super) fn is_plural(name: &str) -> bool {
    let plain = plain_name(name);
    let plain = plain.as_str();
    plain.ends_with('s') && !plain.ends_with("args") && !plain.ends_with("ss")
}

pub(super) fn is_argument_list(name: &str) -> bool {
    roles(name) & ARGUMENT_LIST != 0
}

pub(super) fn is_program(name: &str) -> bool {
    roles(name) & PROGRAM != 0
}

/// Returns whether the value with this name is stored as it is, whatever its parts are called.
pub(super) fn is_record(name: &str) -> bool {
    roles(name) & RECORD != 0
}

/// Returns whether the value with this name is passed on to be acted on rather than stored.
pub(super) fn is_order(name: &str) -> bool {
    roles(name) & ORDER != 0
}

/// Returns whether the name is that of a folder in which a command runs.
pub(super) fn is_folder(name: &str) -> bool {
    roles(name) & FOLDER != 0
}

/// Returns whether the name is that of variables that are set for a command.
pub(super) fn is_environment(name: &str) -> bool {
    roles(name) & ENVIRONMENT != 0
}

/// Returns whether the name is that of a program's standard input.
pub(super) fn is_stdin(name: &str) -> bool {
    roles(name) & STDIN != 0
}

/// Returns whether the name is that of the language of the code next to it.
pub(super) fn is_language(name: &str) -> bool {
    roles(name) & LANGUAGE != 0
}

/// Returns whether the name is that of a tool, next to that tool's own arguments.
pub(super) fn is_tool(name: &str) -> bool {
    roles(name) & TOOL != 0
}

/// Returns whether the name is that of the arguments of a nested call.
pub(super) fn is_call(name: &str) -> bool {
    roles(name) & CALL != 0
}

/// Returns whether the name is that of a command's operand, next to its flags.
pub(super) fn is_operand(name: &str) -> bool {
    roles(name) & OPERAND != 0
}

/// Returns whether the name is that of the module or the kind of a step.
pub(super) fn is_module(name: &str) -> bool {
    matches!(plain_name(name).as_str(), "module" | "type" | "kind")
}

/// Returns whether the name is that of what a program is to do, next to its arguments.
pub(super) fn is_verb(name: &str) -> bool {
    matches!(
        plain_name(name).as_str(),
        "action" | "verb" | "subcommand" | "operation"
    )
}

/// Returns whether the name is that of the options of a command, and nothing else.
pub(super) fn is_flags(name: &str) -> bool {
    matches!(
        plain_name(name).as_str(),
        "flags" | "flag" | "options" | "opts" | "switches"
    )
}

/// Returns whether the name is that of a file that a command may work on, or of a folder that it
/// runs in.
pub(super) fn is_file(name: &str) -> bool {
    roles(name) & FILE != 0
}

/// Returns whether the name is that of the type of a notebook cell.
pub(super) fn is_cell_type(name: &str) -> bool {
    plain_name(name).as_str() == "celltype"
}

/// Returns whether the name is that of the source of a notebook cell.
pub(super) fn is_source(name: &str) -> bool {
    matches!(plain_name(name).as_str(), "source" | "newsource")
}

/// Returns whether the name is that of the folder that a path next to it begins at.
pub(super) fn is_base(name: &str) -> bool {
    matches!(
        plain_name(name).as_str(),
        "base" | "parent" | "prefix" | "dest" | "destination" | "target" | "into" | "outdir"
    )
}

/// Returns whether the name is that of a container or of its image.
pub(super) fn is_container(name: &str) -> bool {
    matches!(
        plain_name(name).as_str(),
        "image"
            | "container"
            | "containerid"
            | "containername"
            | "pod"
            | "podname"
            | "imagename"
            | "dockerimage"
            | "sandboxid"
    )
}

/// Returns whether the name is that of a part of a request to a server, or of its response.
pub(super) fn is_of_request(name: &str) -> bool {
    matches!(
        plain_name(name).as_str(),
        "method"
            | "httpmethod"
            | "handler"
            | "statuscode"
            | "port"
            | "host"
            | "xpath"
            | "jsonpath"
            | "route"
            | "endpoint"
            | "verb"
    )
}

/// Returns the roles of a name, as a set of the constants below.
fn roles(name: &str) -> u16 {
    ROLES.get(plain_name(name).as_str()).copied().unwrap_or(0)
}

static ROLES: LazyLock<QuickMap<&str, u16>> = LazyLock::new(|| {
    let mut roles = QuickMap::default();
    for (role, names) in ROLE_NAMES {
        for name in names.split_ascii_whitespace() {
            *roles.entry(name).or_default() |= role;
        }
    }
    roles
});

const ARGUMENT_LIST: u16 = 1 << 0;
const PROGRAM: u16 = 1 << 1;
const RECORD: u16 = 1 << 2;
const ORDER: u16 = 1 << 3;
const FOLDER: u16 = 1 << 4;
const ENVIRONMENT: u16 = 1 << 5;
const STDIN: u16 = 1 << 6;
const LANGUAGE: u16 = 1 << 7;
const TOOL: u16 = 1 << 8;
const CALL: u16 = 1 << 9;
const OPERAND: u16 = 1 << 10;
const FILE: u16 = 1 << 11;

const ROLE_NAMES: [(u16, &str); 12] = [
    (OPERAND, "target targets operand positional"),
    (
        FILE,
        "path paths file files filename source src destination dest dst",
    ),
    (
        ARGUMENT_LIST,
        "args argv arguments operands positionals positionalargs commandargs cmdargs parameters params arglist argumentlist flags commandarguments \
         programarguments scriptargs extraargs options opts",
    ),
    (
        PROGRAM,
        "command cmd program executable exe binary bin file process executablepath commandname app shell interpreter \
         entrypoint subcommand exec execute path filename filepath commandline script runtime",
    ),
    (
        RECORD,
        "fields row rows record records properties entities observations document documents content contents body \
         blocks messages message metadata meta text values value attributes labels annotations",
    ),
    (
        ORDER,
        "input inputs payload data request q action operation stdin keys exp invocation procedure sequence \
         instruction instructions job jobs args params",
    ),
    (
        FOLDER,
        "cwd workdir workingdirectory workingdir directory dir wd basedir chdir rundir currentdirectory folder \
         projectpath workspace projectdir workspacepath repopath root",
    ),
    (
        ENVIRONMENT,
        "env environment envvars environmentvariables variables envs",
    ),
    (STDIN, "stdin input stdininput standardinput stdindata"),
    (
        LANGUAGE,
        "language lang interpreter runtime shell kernel engine shelltype kernelname codelanguage programminglanguage \
         scripttype executor type environment",
    ),
    (
        TOOL,
        "name tool toolname recipientname function functionname action method operation",
    ),
    (
        CALL,
        "arguments args parameters params input toolinput actioninput kwargs toolargs toolarguments toolparameters \
         payload",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_main_word_of_a_name_decides() {
        for (names, want) in [
            (
                "command cmd commandToRun bash_command command_line script_content runcommand start_cmd CommandLine",
                Head::Shell,
            ),
            ("code python_code codeSnippet source_code", Head::Code),
            ("sql sql_query statement", Head::Sql),
            (
                "path file_path filePath target_file cwd working_directory path_to_file repo_path script_path",
                Head::Path,
            ),
            ("url base_url imageUrl host webhook_url", Head::Url),
            (
                "commit_message description country_code search_query dry_run script_name command_id error_code postcode",
                Head::Text,
            ),
            ("text input stdin file_content", Head::Loose),
            ("query", Head::Query),
            ("zebra xyzzy", Head::Unknown),
        ] {
            for name in names.split_ascii_whitespace() {
                assert_eq!(head(name), want, "{name}");
            }
        }
    }
}
