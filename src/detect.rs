//! What can be looked for. One file per kind of rule; the table of kinds is in [`crate::rules`].

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

/// How the receiver will read an outbound string.
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
    /// The name of that reading; `None` for text.
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
}

impl Language {
    /// The usual name of its interpreter.
    pub fn program(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::JavaScript => "node",
            Self::Ruby => "ruby",
            Self::Perl => "perl",
            Self::Php => "php",
            Self::Lua => "lua",
            Self::PowerShell => "powershell",
        }
    }
}

/// A rule that matched, by its index in the set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match {
    /// Index of the rule in its set.
    pub rule: usize,
    /// The matched bytes of [`Text::raw`]; `None` where the whole string is meant.
    pub span: Option<Range<usize>>,
    /// By which reading it was reached: `raw`, `plain`, `shell` and so on.
    pub reading: &'static str,
}

/// Looks for all the rules of one kind at once.
pub trait Detector: Send + Sync + fmt::Debug {
    /// Adds every rule that `text` matches at `place`. Linear in the text, whatever it holds.
    fn scan(&self, text: &Text<'_>, place: &Place<'_>, matches: &mut Vec<Match>);

    /// Adds every rule that the strings of one call match together, as its receiver may put them
    /// together, and that none matches by itself. Nothing, for most kinds.
    fn scan_pieces(&self, parts: &[&str], place: &Place<'_>, matches: &mut Vec<Match>) {
        let (_, _, _) = (parts, place, matches);
    }

    /// Adds every rule that a call as such matches at `place`, whatever stands in it. Nothing, for
    /// most kinds.
    fn scan_call(&self, place: &Place<'_>, matches: &mut Vec<Match>) {
        let (_, _) = (place, matches);
    }

    /// What searching a text costs each rule, if nothing matches. Nothing, for kinds that cost the
    /// same on every text.
    fn costs(&self, text: &str) -> Vec<(usize, Cost)> {
        let _ = text;
        Vec::new()
    }

    /// Notes what `text`, which came from a server, is worth remembering for: see
    /// [`Place::session_secrets`]. Nothing, for most kinds.
    fn learn(&self, text: &Text<'_>, place: &Place<'_>) {
        let (_, _) = (text, place);
    }
}

/// A kind of rule: how its `find.<kind>` table reads, and how its rules become a detector.
pub trait Kind {
    /// What a rule of this kind looks for.
    type Spec: fmt::Debug + Send + Sync;

    /// Reads a `find` table; notes faults in it.
    fn read(table: &Table<'_>) -> Option<Self::Spec>;

    /// Makes one detector of all rules of this kind.
    ///
    /// # Errors
    /// What is wrong with which rule.
    fn build(rules: &[(usize, &Self::Spec)]) -> Result<Box<dyn Detector>, Vec<(usize, String)>>;
}
