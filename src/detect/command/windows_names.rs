//! Names of PowerShell and cmd.exe: aliases, variables, and the marks by which a text is known to be theirs.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use crate::text::quick::QuickMap;

/// Short names of cmdlets.
const ALIASES: [(&str, &str); 92] = [
    ("%", "foreach-object"),
    ("?", "where-object"),
    ("ac", "add-content"),
    ("asnp", "add-pssnapin"),
    ("cat", "get-content"),
    ("cd", "set-location"),
    ("chdir", "set-location"),
    ("clc", "clear-content"),
    ("clear", "clear-host"),
    ("clhy", "clear-history"),
    ("cli", "clear-item"),
    ("clp", "clear-itemproperty"),
    ("copy", "copy-item"),
    ("cp", "copy-item"),
    ("cpi", "copy-item"),
    ("cpp", "copy-itemproperty"),
    ("curl", "invoke-webrequest"),
    ("del", "remove-item"),
    ("dir", "get-childitem"),
    ("echo", "write-output"),
    ("epal", "export-alias"),
    ("epcsv", "export-csv"),
    ("erase", "remove-item"),
    ("etsn", "enter-pssession"),
    ("fl", "format-list"),
    ("foreach", "foreach-object"),
    ("ft", "format-table"),
    ("fw", "format-wide"),
    ("gal", "get-alias"),
    ("gc", "get-content"),
    ("gci", "get-childitem"),
    ("gcim", "get-ciminstance"),
    ("gcm", "get-command"),
    ("gi", "get-item"),
    ("gin", "get-computerinfo"),
    ("gip", "get-netipconfiguration"),
    ("gl", "get-location"),
    ("gp", "get-itemproperty"),
    ("gps", "get-process"),
    ("gsv", "get-service"),
    ("gv", "get-variable"),
    ("gwmi", "get-wmiobject"),
    ("h", "get-history"),
    ("history", "get-history"),
    ("icim", "invoke-cimmethod"),
    ("icm", "invoke-command"),
    ("iex", "invoke-expression"),
    ("ii", "invoke-item"),
    ("ipmo", "import-module"),
    ("irm", "invoke-restmethod"),
    ("iwmi", "invoke-wmimethod"),
    ("iwr", "invoke-webrequest"),
    ("kill", "stop-process"),
    ("ls", "get-childitem"),
    ("md", "new-item"),
    ("measure", "measure-object"),
    ("mi", "move-item"),
    ("move", "move-item"),
    ("mp", "move-itemproperty"),
    ("mv", "move-item"),
    ("nal", "new-alias"),
    ("ncim", "new-ciminstance"),
    ("ni", "new-item"),
    ("popd", "pop-location"),
    ("ps", "get-process"),
    ("pushd", "push-location"),
    ("rcim", "remove-ciminstance"),
    ("rd", "remove-item"),
    ("ren", "rename-item"),
    ("ri", "remove-item"),
    ("rm", "remove-item"),
    ("rmdir", "remove-item"),
    ("rni", "rename-item"),
    ("rp", "remove-itemproperty"),
    ("rwmi", "remove-wmiobject"),
    ("sajb", "start-job"),
    ("sal", "set-alias"),
    ("saps", "start-process"),
    ("sasv", "start-service"),
    ("sc", "set-content"),
    ("select", "select-object"),
    ("set", "set-variable"),
    ("si", "set-item"),
    ("sl", "set-location"),
    ("sls", "select-string"),
    ("sp", "set-itemproperty"),
    ("spps", "stop-process"),
    ("spsv", "stop-service"),
    ("start", "start-process"),
    ("sv", "set-variable"),
    ("swmi", "set-wmiinstance"),
    ("wget", "invoke-webrequest"),
];

/// Long names that a pattern may mean, besides those that have a short one.
const LONG_NAMES: [&str; 6] =
    ["remove-item", "invoke-expression", "invoke-webrequest", "invoke-restmethod", "new-object", "start-process"];

/// The cmdlet that an alias stands for.
pub(super) fn cmdlet_of(alias: &str) -> Option<&'static str> {
    ALIASES.binary_search_by(|(known, _)| (*known).cmp(alias)).ok().and_then(|at| ALIASES.get(at)).map(|(_, name)| *name)
}

/// Every cmdlet's name that is known.
pub(super) fn cmdlets() -> impl Iterator<Item = &'static str> {
    LONG_NAMES.into_iter().chain(ALIASES.iter().map(|(_, name)| *name))
}

/// Every alias.
pub(super) fn aliases() -> impl Iterator<Item = &'static str> {
    ALIASES.iter().map(|(alias, _)| *alias)
}

/// What a variable that Windows or PowerShell sets holds.
pub(super) fn variable(name: &str) -> Option<&'static str> {
    Some(match name {
        "systemroot" | "windir" => "C:\\WINDOWS",
        "systemdrive" | "homedrive" => "C:",
        "userprofile" | "home" | "homepath" => "~",
        "programfiles" | "programfiles(x86)" | "programw6432" => "C:\\Program Files",
        "programdata" | "allusersprofile" => "C:\\ProgramData",
        "comspec" => "C:\\WINDOWS\\system32\\cmd.exe",
        "public" => "C:\\Users\\Public",
        "appdata" => "~\\AppData\\Roaming",
        "localappdata" => "~\\AppData\\Local",
        "temp" | "tmp" => "C:\\Temp",
        "pshome" => "C:\\Windows\\System32\\WindowsPowerShell\\v1.0",
        "shellid" => "Microsoft.PowerShell",
        "verbosepreference" | "debugpreference" => "SilentlyContinue",
        "profile" => "~\\Documents\\WindowsPowerShell\\Microsoft.PowerShell_profile.ps1",
        "true" => "True",
        "false" => "False",
        "pathext" => ".COM;.EXE;.BAT;.CMD;.VBS;.VBE;.JS;.JSE;.WSF;.WSH;.MSC",
        _ => return None,
    })
}

/// Marks that a POSIX command line hardly holds, in any case.
static SIGNS: LazyLock<AhoCorasick> = LazyLock::new(|| {
    #[allow(clippy::expect_used, reason = "the words are those below")]
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .kind(Some(AhoCorasickKind::DFA))
        .build(SIGN_WORDS)
        .expect("few short words")
});
const SIGN_WORDS: [&str; 36] = [
    ":\\",
    ".exe",
    "$env:",
    "%userprofile%",
    "%systemroot%",
    "%windir%",
    "%temp%",
    "%appdata%",
    "%comspec%",
    "iex",
    ".\\",
    "]::",
    " /c ",
    " /s",
    " /q",
    "-recurse",
    " -force",
    "[char]",
    "$_",
    "-join",
    "cmd /",
    "\\\\",
    "%0",
    "^",
    "set-",
    "get-",
    ".ps1",
    ".bat",
    ".vbs",
    ".hta",
    ".cmd",
    "&(",
    "& (",
    "'+'",
    "\"+\"",
    "format.com",
];

/// Names that POSIX systems know as well: alone they say nothing.
const SHARED: [&str; 40] = [
    "cat",
    "cd",
    "chdir",
    "clear",
    "copy",
    "cp",
    "curl",
    "echo",
    "expand",
    "find",
    "format",
    "ftp",
    "history",
    "kill",
    "ls",
    "mkdir",
    "more",
    "mount",
    "move",
    "mv",
    "net",
    "ping",
    "popd",
    "powershell",
    "print",
    "ps",
    "pushd",
    "pwsh",
    "replace",
    "rm",
    "rmdir",
    "select",
    "set",
    "sort",
    "start",
    "tee",
    "type",
    "wget",
    "shutdown",
    "ssh",
];

/// Whether a text may be meant for PowerShell or cmd.exe: by its marks, or by a word that is theirs alone.
pub(super) fn looks_like(text: &str) -> bool {
    let mut after_net = false;
    let mut any_shared = false;
    let theirs = words(text, |name, length| {
        let kinds = WORDS.get(name).copied().unwrap_or(0);
        any_shared |= kinds & SHARED_WORD != 0;
        let pair = after_net && NET.contains(&name);
        after_net = name == "net";
        let alias = length >= 2 && kinds & ALIAS != 0 && kinds & SHARED_WORD == 0;
        pair || kinds & OWN_WORD != 0 || alias || is_verb(name)
    });
    // `shutdown /s` is Windows', `shutdown -h now` is not; the same with other names that both know.
    theirs || any_shared && text.contains('/') && has_flag(text) || SIGNS.is_match(text)
}

/// Whether a word of a text is one that `known` knows and POSIX does not.
pub(super) fn names(text: &str, known: impl Fn(&str) -> bool) -> bool {
    words(text, |name, length| length >= 2 && known(name) && WORDS.get(name).is_none_or(|kinds| kinds & SHARED_WORD == 0))
}

/// Whether one of the words of a text, in lower case and without what cmd.exe and PowerShell pass over, is what `is` says;
/// it is told their lengths too.
fn words(text: &str, mut is: impl FnMut(&str, usize) -> bool) -> bool {
    let mut lower = [0u8; 32];
    let words = text.as_bytes().split(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'^' | b'`')));
    for word in words {
        let mut length = 0;
        for b in word.iter().filter(|b| !matches!(b, b'^' | b'`')) {
            match lower.get_mut(length) {
                Some(place) => *place = b.to_ascii_lowercase(),
                None => break,
            }
            length += 1;
        }
        if lower.get(..length).and_then(|name| std::str::from_utf8(name).ok()).is_some_and(|name| is(name, length)) {
            return true;
        }
    }
    false
}

/// Whether a word of a text is a flag as cmd.exe's programs have them.
fn has_flag(text: &str) -> bool {
    text.split([' ', '&', '|', '\n']).any(|word| {
        word.strip_prefix('/').is_some_and(|rest| {
            (1..=3).contains(&rest.len()) && rest.bytes().all(|b| b.is_ascii_alphabetic() || matches!(b, b':' | b'/'))
        })
    })
}

/// What is known of a word.
static WORDS: LazyLock<QuickMap<&'static str, u8>> = LazyLock::new(|| {
    let mut words = QuickMap::default();
    let all = OWN.iter().map(|word| (*word, OWN_WORD));
    let all = all.chain(SHARED.iter().map(|word| (*word, SHARED_WORD))).chain(aliases().map(|word| (word, ALIAS)));
    all.for_each(|(word, kind)| *words.entry(word).or_default() |= kind);
    words
});
const OWN_WORD: u8 = 1;
const SHARED_WORD: u8 = 2;
const ALIAS: u8 = 4;

/// Programs that only Windows has.
const OWN: [&str; 20] = [
    "reg",
    "schtasks",
    "vssadmin",
    "wmic",
    "bcdedit",
    "wevtutil",
    "netsh",
    "certutil",
    "bitsadmin",
    "taskkill",
    "icacls",
    "takeown",
    "wbadmin",
    "rundll32",
    "regsvr32",
    "mshta",
    "diskpart",
    "msiexec",
    "fsutil",
    "net1",
];

/// `Verb-Noun`, as every cmdlet is called.
fn is_verb(name: &str) -> bool {
    const VERBS: [&str; 30] = [
        "add",
        "clear",
        "compress",
        "convertfrom",
        "convertto",
        "copy",
        "disable",
        "enable",
        "enter",
        "expand",
        "export",
        "format",
        "get",
        "import",
        "initialize",
        "install",
        "invoke",
        "join",
        "move",
        "new",
        "out",
        "register",
        "remove",
        "rename",
        "restart",
        "set",
        "start",
        "stop",
        "suspend",
        "uninstall",
    ];
    name.split_once('-').is_some_and(|(verb, noun)| noun.len() >= 4 && VERBS.contains(&verb))
}

/// What `net` of Windows is told.
const NET: [&str; 8] = ["accounts", "group", "localgroup", "share", "start", "stop", "use", "user"];
