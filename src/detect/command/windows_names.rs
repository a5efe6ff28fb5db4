//! Names of PowerShell and cmd.exe: aliases, variables, and the signs by which their texts are
//! recognized.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use crate::text::quick::{QuickMap, WordSet};

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

/// Long names that a pattern may refer to, besides those that have a short one.
const LONG_NAMES: &str = "remove-item invoke-expression invoke-webrequest invoke-restmethod new-object start-process set-mppreference \
    add-mppreference stop-computer restart-computer format-volume clear-disk set-executionpolicy clear-eventlog";

/// Returns the cmdlet that an alias refers to.
pub(super) fn cmdlet_of(alias: &str) -> Option<&'static str> {
    ALIASES
        .binary_search_by(|(candidate, _)| (*candidate).cmp(alias))
        .ok()
        .and_then(|at| ALIASES.get(at))
        .map(|(_, name)| *name)
}

/// Returns every known cmdlet name.
pub(super) fn cmdlets() -> impl Iterator<Item = &'static str> {
    LONG_NAMES
        .split_ascii_whitespace()
        .chain(ALIASES.iter().map(|(_, name)| *name))
}

/// Returns every alias.
pub(super) fn aliases() -> impl Iterator<Item = &'static str> {
    ALIASES.iter().map(|(alias, _)| *alias)
}

/// Returns the value of a variable that Windows or PowerShell sets.
pub(super) fn default_variable(name: &str) -> Option<&'static str> {
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

/// Signs that POSIX command lines hardly ever contain, in any case.
const SIGN_WORDS: [&str; 9] = [
    "$env:",
    "%userprofile%",
    "%systemroot%",
    "%windir%",
    "%temp%",
    "%appdata%",
    "%comspec%",
    "]::",
    "[char]",
];
/// Signs that are rarer in POSIX command lines than in PowerShell and cmd.exe.
const WEAK_SIGN_WORDS: [&str; 23] = [
    ".exe",
    ".\\",
    " /c ",
    " /s ",
    " /q ",
    "-recurse",
    " -force",
    "$_",
    "-join",
    "cmd /",
    "\\\\",
    "%0",
    "^",
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
static SIGNS: LazyLock<AhoCorasick> = LazyLock::new(|| search(&SIGN_WORDS));
static WEAK_SIGNS: LazyLock<AhoCorasick> = LazyLock::new(|| search(&WEAK_SIGN_WORDS));

fn search(words: &[&str]) -> AhoCorasick {
    #[allow(clippy::expect_used, reason = "the words are those above")]
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .kind(Some(AhoCorasickKind::DFA))
        .build(words)
        .expect("few short words")
}

/// Reports whether a text contains a sign of PowerShell or cmd.exe that POSIX command lines do not
/// use.
pub(super) fn has_sign(text: &str) -> bool {
    SIGNS.is_match(text)
        || any_window(text, |[before, drive, colon, sign]| {
            // `C:\\`, and a backtick within a word.
            !before.is_ascii_alphanumeric()
                && drive.is_ascii_alphabetic()
                && colon == b':'
                && sign == b'\\'
                || drive.is_ascii_alphabetic() && colon == b'`' && sign.is_ascii_alphabetic()
        })
}

/// Reports whether a text contains a sign that is more common in PowerShell or cmd.exe.
pub(super) fn has_weak_sign(text: &str) -> bool {
    WEAK_SIGNS.is_match(text)
}

/// Reports whether `is` accepts four adjacent bytes of a text. The start of the text counts as
/// preceded by a space.
fn any_window(text: &str, is: impl Fn([u8; 4]) -> bool) -> bool {
    let bytes = text.as_bytes();
    let first = bytes
        .get(..3)
        .is_some_and(|start| matches!(start, [a, b, c] if is([b' ', *a, *b, *c])));
    first
        || bytes
            .windows(4)
            .any(|four| matches!(four, [a, b, c, d] if is([*a, *b, *c, *d])))
}

/// Names that POSIX systems have as well: alone they are no evidence.
static SHARED: WordSet = WordSet::new(
    "cat cd chdir clear copy cp curl echo expand find format ftp history kill ls mkdir more mount \
     move mv net ping popd powershell print ps pushd pwsh replace rm rmdir select set sort start \
     tee type wget shutdown ssh",
);

/// What is known about the name of a command.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NameOrigin {
    /// Only Windows has it.
    Windows,
    /// POSIX systems have a program of this name, too.
    Shared(String),
    /// Nothing else is known about the name.
    Other(String),
}

/// Returns what is known about the word at the start of a command.
pub(super) fn name_origin(word: &str) -> NameOrigin {
    if word.is_empty() || word.len() > 128 {
        return NameOrigin::Other(String::new());
    }
    let escaped = word.trim_matches('^').contains('^');
    let lower: String = word
        .trim_start_matches('@')
        .chars()
        .filter(|c| *c != '^')
        .collect::<String>()
        .to_ascii_lowercase();
    let base = lower.rsplit(['/', '\\']).next().unwrap_or(&lower);
    const ENDINGS: [&str; 6] = [".exe", ".bat", ".cmd", ".ps1", ".vbs", ".hta"];
    let ending = ENDINGS.iter().find_map(|ending| base.strip_suffix(ending));
    let typed = lower.starts_with('[') && lower.len() > 2 && lower.contains(']');
    // `%`, `%x%`, `!x!`
    let expands =
        lower.starts_with('%') || lower.len() > 2 && lower.starts_with('!') && lower.ends_with('!');
    if ending.is_some() || typed || expands || is_verb(base) {
        return NameOrigin::Windows;
    }
    let kinds = WORDS.get(base).copied().unwrap_or(0);
    let is_windows_only = kinds & OWN_WORD != 0 || base.len() >= 2 && kinds & ALIAS != 0;
    match kinds & SHARED_WORD != 0 {
        true if escaped => NameOrigin::Windows,
        true => NameOrigin::Shared(base.to_owned()),
        false if is_windows_only => NameOrigin::Windows,
        false => NameOrigin::Other(base.to_owned()),
    }
}

/// Reports whether any word of a text is a name that only Windows has; adds unknown names to
/// `names`.
pub(super) fn names_any(text: &str, names: &mut Vec<String>) -> bool {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '^')));
    for word in words.filter(|word| (2..=32).contains(&word.len())) {
        match name_origin(word) {
            NameOrigin::Windows => return true,
            NameOrigin::Other(name) => names.push(name),
            NameOrigin::Shared(_) => {}
        }
    }
    false
}

/// Reports whether a word is one that the `net` command of Windows accepts.
pub(super) fn is_net_word(word: &str) -> bool {
    NET.iter()
        .any(|candidate| word.eq_ignore_ascii_case(candidate))
}

/// The kinds of the known words.
static WORDS: LazyLock<QuickMap<&'static str, u8>> = LazyLock::new(|| {
    let mut words = QuickMap::default();
    let entries = OWN.iter().map(|word| (*word, OWN_WORD));
    let entries = entries
        .chain(SHARED.iter().map(|word| (*word, SHARED_WORD)))
        .chain(aliases().map(|word| (word, ALIAS)));
    entries.for_each(|(word, kind)| *words.entry(word).or_default() |= kind);
    words
});
const OWN_WORD: u8 = 1;
const SHARED_WORD: u8 = 2;
const ALIAS: u8 = 4;

/// Programs that only Windows has.
static OWN: WordSet = WordSet::new(
    "attrib call cipher cls endlocal mklink rem robocopy setlocal xcopy reg schtasks vssadmin \
     wmic bcdedit wevtutil netsh certutil bitsadmin taskkill icacls takeown wbadmin rundll32 \
     regsvr32 mshta diskpart msiexec fsutil net1",
);

/// Reports whether a name has the form `Verb-Noun`, as all cmdlets do.
fn is_verb(name: &str) -> bool {
    static VERBS: WordSet = WordSet::new(
        "add clear compress convertfrom convertto copy disable enable enter expand export format \
         get import initialize install invoke join move new out register remove rename restart \
         set start stop suspend uninstall",
    );
    name.split_once('-').is_some_and(|(verb, noun)| {
        noun.len() >= 4 && noun.bytes().all(|b| b.is_ascii_alphanumeric()) && VERBS.contains(&verb)
    })
}

/// Words that the `net` command of Windows accepts.
static NET: WordSet = WordSet::new("accounts group localgroup share start stop use user");
