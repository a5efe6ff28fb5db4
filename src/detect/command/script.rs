//! A string as its receiver would run it. It is read once, when first needed, and shared by all
//! kinds of rules.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::fmt;
use std::rc::Rc;

use super::dialect::{self, Dialect, Evidence};
use super::facts::Facts;
use super::file_access::{self, FileAccess};
use super::programs::Programs;
use super::reader::{Reader, ScriptContext};
use super::traits::Traits;
use super::written_files::{WrittenFile, WrittenFiles};
use super::{clean, sql_clients};
use crate::detect::ReadAs;
use crate::text::quick::QuickSet;

/// Maximum length of a text that is read, in bytes. Longer texts are unreadable.
const MAX_TEXT: usize = 128 * 1024;
/// Maximum length of a text that is read as PowerShell and cmd.exe would, in bytes.
const MAX_WINDOWS_TEXT: usize = 48 * 1024;

/// Programs that may have hosts among their operands.
const CONNECTING: Traits = Traits::FETCHES
    .union(Traits::SENDS_INPUT)
    .union(Traits::SENDS_FILES)
    .union(Traits::CONNECTS);

/// A shell or code string and the commands that it results in.
pub struct Script<'t> {
    raw: &'t str,
    read_as: ReadAs,
    written_files: Option<&'t dyn WrittenFiles>,
    programs: &'t Programs,
    is_source: bool,
    readings: OnceCell<Vec<Reading>>,
    windows: OnceCell<Vec<Reading>>,
    /// Evidence of the shell that the text is for.
    evidence: OnceCell<Evidence>,
}

/// The result of one way of reading.
#[derive(Debug, Default)]
pub(super) struct Reading {
    pub(super) facts: Vec<Facts>,
    /// All scripts and pieces of code as they were read, the outermost first.
    pub(super) scripts: Vec<String>,
    /// Those scripts that have words which are written in another way than they are run, with
    /// these words written out.
    pub(super) resolved: Vec<String>,
    /// All texts that were decoded or assembled and are not scripts.
    pub(super) texts: Vec<String>,
    /// All files that were written, and what is known of their content.
    pub(super) files: Vec<WrittenFile>,
    /// The folder that the script ends in, if the shell is still that of earlier calls.
    pub(super) folder: Option<Rc<str>>,
}

impl<'t> Script<'t> {
    /// Creates a script that has not been read yet, with the data about programs from the built-in
    /// tables.
    pub fn new(raw: &'t str, read_as: ReadAs) -> Self {
        Self {
            raw,
            read_as,
            written_files: None,
            programs: Programs::builtin(),
            is_source: false,
            readings: OnceCell::new(),
            windows: OnceCell::new(),
            evidence: OnceCell::new(),
        }
    }

    /// Adds the files that earlier calls wrote.
    #[must_use]
    pub fn with_written_files(mut self, written_files: &'t dyn WrittenFiles) -> Self {
        self.written_files = Some(written_files);
        self
    }

    /// Makes it the source of a program that is not run now: what only suggests that a string is
    /// passed to a shell has no weight.
    #[must_use]
    pub fn as_source(mut self) -> Self {
        self.is_source = true;
        self
    }

    pub(super) fn is_source(&self) -> bool {
        self.is_source
    }

    /// Sets the data about programs.
    #[must_use]
    pub fn with_programs(mut self, programs: &'t Programs) -> Self {
        self.programs = programs;
        self
    }

    pub(super) fn programs(&self) -> &'t Programs {
        self.programs
    }

    /// Returns every path of this machine that a command reads, writes, runs, or names if its
    /// program works on files, in order. A path that is both read and written is returned twice.
    pub fn paths(&self) -> impl Iterator<Item = FileAccess<'_>> {
        self.all_facts().flat_map(file_access::file_accesses)
    }

    /// Returns every URL among the words of the commands, and every host that a program is to
    /// connect to, as written.
    pub fn urls(&self) -> impl Iterator<Item = &str> {
        self.all_facts().flat_map(|facts| {
            let connects = facts.traits.has(CONNECTING);
            let opened = facts
                .reads
                .iter()
                .chain(&facts.writes)
                .filter_map(|named_path| socket(&named_path.path));
            facts
                .arguments()
                .iter()
                .filter_map(move |field| address(&field.text, connects))
                .chain(opened)
        })
    }

    /// Returns every command that the script results in: the program without its folder and then
    /// its words, separated by single spaces.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.all_facts()
            .filter(|facts| !facts.program.is_empty())
            .map(Facts::words)
    }

    /// Returns every text that was decoded, assembled or taken out of a wrapper on the way.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.all_readings()
            .flat_map(|reading| reading.scripts.iter().skip(1).chain(&reading.texts))
            .map(String::as_str)
    }

    /// Returns every file that the script writes, and what is known of its content.
    pub fn files(&self) -> impl Iterator<Item = &WrittenFile> {
        self.all_readings().flat_map(|reading| &reading.files)
    }

    /// Returns the folder in which the script leaves its shell, where the next command of the
    /// session may begin.
    pub fn folder(&self) -> Option<&str> {
        self.readings()
            .iter()
            .rev()
            .find_map(|reading| reading.folder.as_deref())
    }

    /// Returns every SQL text that a command passes to a database.
    pub fn sql_texts(&self) -> impl Iterator<Item = String> {
        self.all_facts().flat_map(sql_clients::sql_texts)
    }

    fn context(&self) -> ScriptContext<'t> {
        ScriptContext {
            written_files: self.written_files,
            programs: Some(self.programs),
            is_source: self.is_source,
        }
    }

    /// Returns the readings by a POSIX shell, or by the intended interpreter.
    pub(super) fn readings(&self) -> &[Reading] {
        self.readings.get_or_init(|| {
            if !matches!(self.read_as, ReadAs::Shell | ReadAs::Code(_)) {
                return Vec::new();
            }
            if self.raw.len() > MAX_TEXT {
                return vec![Reader::unreadable().into_reading()];
            }
            let to_reading = |text: Cow<'_, str>| match self.read_as {
                ReadAs::Code(language) => {
                    Reader::read_code(language, &text, self.context()).into_reading()
                }
                _ => Reader::read(&text, self.context()).into_reading(),
            };
            clean::readings(self.raw).map(to_reading).collect()
        })
    }

    /// Returns the readings by PowerShell and cmd.exe. Most texts are not intended for them: see
    /// [`Script::dialect`].
    pub(super) fn windows_readings(&self) -> &[Reading] {
        self.windows.get_or_init(|| {
            if self.raw.len() > MAX_WINDOWS_TEXT {
                return vec![Reader::unreadable().into_reading()];
            }
            clean::readings(self.raw)
                .map(|text| Reader::read_windows(&text, self.context()).into_reading())
                .collect()
        })
    }

    /// Returns the shell that the script is for; `known` contains the names of Windows programs
    /// that rules know.
    pub(super) fn dialect(&self, known: &QuickSet<String>) -> Dialect {
        let evidence = self.evidence();
        if evidence.names.iter().any(|name| known.contains(name)) {
            Dialect::Windows
        } else {
            evidence.dialect
        }
    }

    fn is_windows(&self) -> bool {
        self.evidence().dialect == Dialect::Windows
    }

    fn evidence(&self) -> &Evidence {
        self.evidence.get_or_init(|| {
            let mut combined = Evidence {
                dialect: Dialect::Posix,
                names: Vec::new(),
            };
            if !matches!(self.read_as, ReadAs::Shell) || self.raw.len() > MAX_TEXT {
                return combined;
            }
            for next in clean::readings(self.raw).map(|text| dialect::evidence(&text)) {
                combined.names.extend(next.names);
                if combined.dialect == Dialect::Posix || next.dialect == Dialect::Windows {
                    combined.dialect = next.dialect;
                }
            }
            combined
        })
    }

    fn all_readings(&self) -> impl Iterator<Item = &Reading> {
        let windows = if self.is_windows() {
            self.windows_readings()
        } else {
            &[]
        };
        self.readings().iter().chain(windows)
    }

    fn all_facts(&self) -> impl Iterator<Item = &Facts> {
        self.all_readings().flat_map(|reading| &reading.facts)
    }
}

/// Does not show the text, which may contain secrets.
impl fmt::Debug for Script<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Script({} bytes, {:?})", self.raw.len(), self.read_as)
    }
}

/// Returns the URL or the host in a word.
fn address(text: &str, connects: bool) -> Option<&str> {
    if text.len() > 8_192 {
        return None;
    }
    if let Some(at) = text.find("://") {
        let scheme = text
            .get(..at)?
            .rfind(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.')));
        return text.get(scheme.map_or(0, |before| before + 1)..);
    }
    if !connects
        || text.starts_with(['-', '/', '.', '~', '@'])
        || text.contains(char::is_whitespace)
    {
        return None;
    }
    let host = text.rsplit_once('@').map_or(text, |(_, host)| host);
    let numeric = host
        .bytes()
        .all(|b| b.is_ascii_hexdigit() || matches!(b, b'x' | b'X' | b'.' | b':' | b'[' | b']'));
    let number = numeric && (host.contains(['.', ':']) || host.len() >= 7);
    (number
        || host.contains('.')
        || host.eq_ignore_ascii_case("localhost")
        || host.len() != text.len())
    .then_some(text)
}

/// Returns the host that a shell connects to when it opens a path.
fn socket(path: &str) -> Option<&str> {
    let rest = path
        .strip_prefix("/dev/tcp/")
        .or_else(|| path.strip_prefix("/dev/udp/"))?;
    rest.split('/').next().filter(|host| !host.is_empty())
}
