//! Detectors: one file per kind of rule. The table of kinds is in [`crate::rules`].

pub mod command;
pub mod flow;
pub mod hidden;
pub mod markup;
pub mod path;
pub mod pattern;
pub mod personal;
pub mod secret;
pub mod shadow;
pub mod signal;
pub mod sql;
pub mod url;
pub mod work;

mod ground;
mod phrases;
mod place;
mod prepared;
mod search;

pub use ground::AccessScope;
pub(crate) use phrases::Phrases;
pub use place::{Details, InboundDetails, OutboundDetails, Place, Surface};
pub use search::Cost;

use std::fmt;
use std::ops::Range;

use crate::document::Table;
use crate::text::Text;

/// How the receiver reads an outbound string.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ReadAs {
    /// A shell runs it.
    Shell,
    /// An interpreter of this language runs it.
    Code(Language),
    /// A database runs it.
    Sql,
    /// A file system resolves it.
    Path,
    /// A client connects to it: a URL, or a host.
    Url,
    /// Text that nothing runs, though it may mention commands.
    #[default]
    Text,
}

impl ReadAs {
    /// Returns the name in rule files and the audit log; `None` for text.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::Shell => Some("shell"),
            Self::Code(_) => Some("code"),
            Self::Sql => Some("sql"),
            Self::Path => Some("path"),
            Self::Url => Some("url"),
            Self::Text => None,
        }
    }
}

/// Languages of code arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Python.
    Python,
    /// JavaScript and TypeScript.
    JavaScript,
    /// Ruby.
    Ruby,
    /// Perl.
    Perl,
    /// PHP.
    Php,
    /// Lua.
    Lua,
    /// PowerShell, and cmd.exe with it.
    PowerShell,
    /// Go, Rust, C, Java and the like, whose calls are known.
    Compiled,
    /// A language of which only known calls and texts are read, by its interpreter.
    Other(&'static str),
}

impl Language {
    /// Returns the usual name of the interpreter, or `compiled` for a compiled language.
    pub fn program(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::JavaScript => "node",
            Self::Ruby => "ruby",
            Self::Perl => "perl",
            Self::Php => "php",
            Self::Lua => "lua",
            Self::PowerShell => "powershell",
            Self::Compiled => command::COMPILED,
            Self::Other(program) => program,
        }
    }
}

/// A rule that matched, by its index in the set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match {
    /// Index of the rule in its set.
    pub rule: usize,
    /// The matched bytes of [`Text::raw`]; `None` if the match is of the whole string.
    pub span: Option<Range<usize>>,
    /// The reading in which it was found: `raw`, `plain`, `shell` and so on.
    pub reading: &'static str,
    /// Whether the reading quotes the matched words and is about attacks: see
    /// [`QuotedMentions`](crate::text::QuotedMentions).
    /// Only for readings whose matches cannot be located within the string.
    pub is_quoted: bool,
}

impl Match {
    /// Creates a match that is not known to be quoted.
    pub const fn new(rule: usize, span: Option<Range<usize>>, reading: &'static str) -> Self {
        Self {
            rule,
            span,
            reading,
            is_quoted: false,
        }
    }
}

/// Searches for all rules of one kind at once.
pub trait Detector: Send + Sync + fmt::Debug {
    /// Adds every rule that `text` matches at `place`. Takes time linear in the text, also for
    /// hostile text.
    fn scan(&self, text: &Text<'_>, place: &Place<'_>, matches: &mut Vec<Match>);

    /// Adds every rule that the strings of one call match when the receiver joins them, and that no
    /// single string matches. Most kinds add nothing.
    fn scan_pieces(&self, parts: &[&str], place: &Place<'_>, matches: &mut Vec<Match>) {
        let (_, _, _) = (parts, place, matches);
    }

    /// Adds every rule that a call matches at `place` regardless of its arguments. Most kinds add
    /// nothing.
    fn scan_call(&self, place: &Place<'_>, matches: &mut Vec<Match>) {
        let (_, _) = (place, matches);
    }

    /// Adds every rule that a script which a call writes to a file matches. Most kinds add nothing.
    fn scan_script(&self, script: &command::Script<'_>, matches: &mut Vec<Match>) {
        let (_, _) = (script, matches);
    }

    /// Returns the cost of each rule for searching a text in which nothing matches. Empty for kinds
    /// whose cost does not depend on the text.
    fn costs(&self, text: &str) -> Vec<(usize, Cost)> {
        let _ = text;
        Vec::new()
    }

    /// Records values of `text`, which came from a server, that are recognized in later messages:
    /// see [`Place::session_secrets`]. Most kinds record nothing.
    fn learn(&self, text: &Text<'_>, place: &Place<'_>) {
        let (_, _) = (text, place);
    }
}

/// A kind of rule: parses its `find.<kind>` table and builds the detector of its rules.
pub trait Kind {
    /// The parsed `find.<kind>` table of a rule.
    type Spec: fmt::Debug + Send + Sync;

    /// Parses a `find` table and records its faults.
    fn read(table: &Table<'_>) -> Option<Self::Spec>;

    /// Builds one detector for all rules of this kind.
    ///
    /// # Errors
    /// The faults, each with the number of its rule.
    fn build(rules: &[(usize, &Self::Spec)]) -> Result<Box<dyn Detector>, Vec<(usize, String)>>;
}
