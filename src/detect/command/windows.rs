//! PowerShell and cmd.exe: their quoting, their variables, their wrappers.

use std::rc::Rc;

use super::code;
use super::facts::Facts;
use super::reader::Reader;
use super::simulate;
use super::value::{Field, Taint, Value};
use super::wrappers::value_of;
use crate::detect::Language;

/// Marks that a POSIX command line hardly holds.
const SIGNS: [&str; 12] =
    [":\\", ".exe", "$env:", "%userprofile%", "%systemroot%", "%windir%", "%temp%", "iex(", "iex (", ".\\", "::", "/c "];

/// Whether a text may be meant for PowerShell or cmd.exe: by its marks, or by a program that `known` knows.
pub(super) fn looks_like(text: &str, known: impl Fn(&str) -> bool) -> bool {
    let lower = text.to_ascii_lowercase();
    lower
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_'))
        .any(|word| known(word) || DOWNLOADS.contains(&word) || RUNS.contains(&word))
        || SIGNS.iter().any(|sign| lower.contains(sign))
}

const VARIABLES: [(&str, &str); 14] = [
    ("systemroot", "C:\\Windows"),
    ("windir", "C:\\Windows"),
    ("systemdrive", "C:"),
    ("homedrive", "C:"),
    ("userprofile", "~"),
    ("home", "~"),
    ("homepath", "~"),
    ("programfiles", "C:\\Program Files"),
    ("programdata", "C:\\ProgramData"),
    ("comspec", "C:\\Windows\\System32\\cmd.exe"),
    ("public", "C:\\Users\\Public"),
    ("appdata", "~\\AppData\\Roaming"),
    ("localappdata", "~\\AppData\\Local"),
    ("temp", "C:\\Temp"),
];

const DOWNLOADS: [&str; 13] = [
    "iwr",
    "irm",
    "invoke-webrequest",
    "invoke-restmethod",
    "downloadstring",
    "downloaddata",
    "net.webclient",
    "curl ",
    "wget ",
    "start-bitstransfer",
    "downloadfile",
    "winhttp",
    "xmlhttp",
];
const RUNS: [&str; 6] = ["iex", "invoke-expression", "scriptblock]::create", ".invoke(", "invokescript", "invoke-command"];

impl Reader<'_> {
    /// Reads a whole argument as PowerShell or cmd.exe would.
    pub(super) fn read_windows(text: &str) -> Self {
        let mut reader = Self::default();
        reader.windows(text);
        reader
    }

    /// Reads code of a language that the tool names.
    pub(super) fn read_code(language: Language, text: &str) -> Self {
        let mut reader = Self::default();
        match language {
            Language::PowerShell => reader.windows(text),
            language => reader.code(language.program(), text, Taint::NONE),
        }
        reader
    }

    pub(super) fn windows(&mut self, text: &str) {
        self.spend_bytes(text.len());
        if !self.spend_command() || !self.go_deeper() {
            return;
        }
        self.scripts.push(text.to_owned());
        let commands = split(text);
        let whole: String = commands.iter().flatten().map(|f| f.text.to_ascii_lowercase()).collect::<Vec<_>>().join(" ");
        let word = |wanted: &&str| {
            whole.split(|c: char| c.is_whitespace() || matches!(c, '(' | '|')).any(|w| w == *wanted)
                || (wanted.len() > 4 && whole.contains(*wanted))
        };
        let downloads = DOWNLOADS.iter().any(word);
        if downloads && RUNS.iter().any(word) {
            self.facts.push(Facts { program: "iex".into(), executes: Taint::DOWNLOAD, windows: true, ..Facts::default() });
        }
        for fields in commands {
            if !self.spend_command() {
                break;
            }
            self.windows_command(fields.into());
        }
        self.come_up();
    }

    fn windows_command(&mut self, fields: Rc<[Field]>) {
        let mut from = 0;
        while let Some(field) = fields.get(from) {
            let text = field.text.trim_start_matches(['@', '&', '.']).to_ascii_lowercase();
            let base = text.rsplit(['\\', '/']).next().unwrap_or(&text);
            let base = base.trim_end_matches(".exe").trim_end_matches(".com").trim_end_matches(".cmd");
            if base.is_empty()
                || matches!(base, "call" | "start" | "do" | "sudo" | "gsudo" | "if" | "else" | "foreach" | "%" | "try" | "runas")
                || (from > 0 && base.starts_with('/'))
            {
                from += 1;
                continue;
            }
            let mut facts = Facts::command(base, &fields, from, self.folder.as_deref(), Taint::NONE);
            facts.windows = true;
            let arguments: Vec<Field> = facts.arguments().to_vec();
            if matches!(base, "cd" | "set-location" | "sl" | "chdir" | "pushd")
                && let Some(target) = arguments.iter().find(|a| !a.text.starts_with(['/', '-']))
            {
                self.folder = super::paths::normal(&target.text, self.folder.as_deref());
            }
            let program = base.to_owned();
            self.windows_inline(&program, &arguments, &mut facts);
            self.facts.push(facts);
            return;
        }
    }

    /// What `powershell -c`, `cmd /c` and others are given to run.
    pub(super) fn windows_inline(&mut self, program: &str, arguments: &[Field], facts: &mut Facts) {
        let lower: Vec<String> = arguments.iter().map(|a| a.text.to_ascii_lowercase()).collect();
        let rest = |at: usize| arguments.iter().skip(at).map(|a| a.text.as_str()).collect::<Vec<_>>().join(" ");
        match program {
            "powershell" | "pwsh" => {
                // Any beginning of the flag's name will do: `-e`, `-enc`, `-EncodedCommand`.
                let flag = |name: &str| {
                    lower.iter().position(|a| {
                        a.len() >= 2 && (a.starts_with('-') || a.starts_with('/')) && name.starts_with(a.get(1..).unwrap_or("?"))
                    })
                };
                if let Some(at) = flag("encodedcommand").or_else(|| lower.iter().position(|a| a == "-ec"))
                    && let Some(payload) = arguments.get(at + 1)
                    && let Some(text) = utf16(&payload.text)
                {
                    facts.executes |= Taint::DECODED;
                    self.windows(&text);
                } else if let Some(at) = flag("command") {
                    self.windows(&rest(at + 1));
                } else if let Some(at) = lower.iter().position(|a| !a.starts_with(['-', '/']) && a.len() > 8) {
                    self.windows(&rest(at));
                }
            }
            "cmd" => {
                if let Some(at) = lower.iter().position(|a| matches!(a.as_str(), "/c" | "/k" | "/r")) {
                    self.windows(&rest(at + 1));
                }
            }
            "forfiles" | "schtasks" | "wmic" | "start-process" | "saps" | "invoke-expression" | "iex" | "conhost" | "pcalua" => {
                for argument in arguments.iter().filter(|a| a.text.contains(' ')) {
                    self.windows(&argument.text.clone());
                }
                if matches!(program, "start-process" | "saps" | "conhost") && !arguments.is_empty() {
                    self.windows(&rest(0).replace("-ArgumentList", "").replace("-FilePath", ""));
                }
            }
            "wsl" | "bash" | "sh" => {
                let script = value_of(arguments, &["-c", "-e", "--"]).map_or_else(|| rest(0), |f| f.text.clone());
                self.inner_script(&script, &Value::nothing());
            }
            _ if code::is_interpreter(program) => {
                if let Some(text) = value_of(arguments, &["-c", "-e"]) {
                    self.code(program, &text.text.clone(), Taint::NONE);
                }
            }
            _ => {}
        }
    }
}

/// Base64 of UTF-16, as `-EncodedCommand` takes it.
fn utf16(text: &str) -> Option<String> {
    let bytes = simulate::base64_bytes(text)?;
    let units: Vec<u16> = bytes.chunks_exact(2).map(|pair| pair.iter().rev().fold(0u16, |n, b| n << 8 | u16::from(*b))).collect();
    Some(String::from_utf16_lossy(&units))
}

/// Splits a text into commands and words.
fn split(text: &str) -> Vec<Vec<Field>> {
    let mut out: Vec<Vec<Field>> = vec![Vec::new()];
    let mut field = Field::default();
    let mut started = false;
    let mut chars = text.chars().peekable();
    let mut quote: Option<char> = None;
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (Some('"') | None, '`' | '^') => {
                // A continued line, or a letter that needs no escape.
                if let Some(next) = chars.next()
                    && next != '\n'
                {
                    field.text.push(next);
                    started = true;
                }
            }
            (Some(_), c) => field.text.push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                field.quoted = true;
                started = true;
            }
            (None, '+') if field.quoted && matches!(chars.peek(), Some('\'' | '"')) => {}
            (None, '{') if is_braced_name(&chars) => {
                field.text.push(c);
                started = true;
                while let Some(c) = chars.next_if(|c| *c != '}') {
                    field.text.push(c);
                }
                field.text.extend(chars.next());
            }
            (None, ';' | '|' | '&' | '\n' | '{' | '}' | '(' | ')') => {
                finish(&mut field, &mut started, &mut out);
                out.push(Vec::new());
            }
            (None, c) if c.is_whitespace() || c == ',' => finish(&mut field, &mut started, &mut out),
            (None, c) => {
                field.text.push(c);
                field.glob |= c == '*';
                started = true;
            }
        }
    }
    finish(&mut field, &mut started, &mut out);
    out.retain(|fields| !fields.is_empty());
    out
}

/// `{default}` is a name, `{ rm x }` a block.
fn is_braced_name(rest: &std::iter::Peekable<std::str::Chars<'_>>) -> bool {
    let name: String = rest.clone().take(64).take_while(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
    !name.is_empty() && rest.clone().nth(name.len()) == Some('}')
}

fn finish(field: &mut Field, started: &mut bool, out: &mut [Vec<Field>]) {
    if std::mem::take(started)
        && let Some(last) = out.last_mut()
    {
        let mut done = std::mem::take(field);
        done.text = variables(&done.text);
        last.push(done);
    }
    *field = Field::default();
}

fn variables(text: &str) -> String {
    if !text.contains(['%', '$']) {
        return text.to_owned();
    }
    let lower = text.to_ascii_lowercase();
    for (name, value) in VARIABLES {
        for form in [format!("%{name}%"), format!("${{env:{name}}}"), format!("$env:{name}"), format!("${name}")] {
            if let Some(at) = lower.find(&form) {
                let end = at + form.len();
                return format!("{}{value}{}", text.get(..at).unwrap_or(""), text.get(end..).unwrap_or(""));
            }
        }
    }
    text.to_owned()
}
