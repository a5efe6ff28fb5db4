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
mod prepared;
mod search;

pub use ground::Ground;
pub(crate) use phrases::Phrases;
pub use search::Cost;

use std::fmt;
use std::ops::Range;

use crate::config::RenderPages;
use crate::document::Table;
use crate::message::{Direction, Role};
use crate::text::Text;

/// The part of a message a string belongs to. Names are metric labels and rule-file words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Surface {
    /// Outbound: `params.arguments` of `tools/call`.
    Arguments,
    /// Outbound: any other string of a request or notification.
    Params,
    /// Outbound: an answer to a server's question.
    Answer,
    /// Inbound: text of a tool result's `content`, and of anything else that a call gives back.
    Content,
    /// Inbound: `structuredContent`.
    Structured,
    /// Inbound: tools, prompts, resources and templates as lists describe them.
    Definition,
    /// Inbound: `instructions` and server information.
    Instructions,
    /// Inbound: messages of `prompts/get`.
    Prompt,
    /// Inbound: contents of `resources/read`.
    Resource,
    /// Inbound: JSON-RPC errors, and HTTP bodies that are not JSON-RPC.
    Error,
    /// Inbound: log, progress and other notifications.
    Notification,
    /// Inbound: what a server asks of the agent or its user (elicitation, sampling, roots).
    Question,
    /// Either way: a string that belongs to no surface above.
    Other,
}

impl Surface {
    /// Every surface, in order.
    pub const ALL: [Self; 13] = [
        Self::Arguments,
        Self::Params,
        Self::Answer,
        Self::Content,
        Self::Structured,
        Self::Definition,
        Self::Instructions,
        Self::Prompt,
        Self::Resource,
        Self::Error,
        Self::Notification,
        Self::Question,
        Self::Other,
    ];

    /// The name in rule files, the audit log and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Arguments => "arguments",
            Self::Params => "params",
            Self::Answer => "answer",
            Self::Content => "content",
            Self::Structured => "structured",
            Self::Definition => "definition",
            Self::Instructions => "instructions",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
            Self::Error => "error",
            Self::Notification => "notification",
            Self::Question => "question",
            Self::Other => "other",
        }
    }
}

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

/// Where a string stands, as far as rules need to know.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// Which way the message goes.
    pub direction: Direction,
    /// Which part of the message it is in.
    pub surface: Surface,
    /// The method of the request, or of the request that this answers.
    pub method: Option<&'a str>,
    /// The tool that is called, or that answers, or that is described.
    pub tool: Option<&'a str>,
    /// Within `arguments`: names joined by dots, indices left out (`steps.command`).
    pub argument: Option<&'a str>,
    /// Key or value.
    pub role: Role,
    /// How the receiver reads it.
    pub read_as: ReadAs,
    /// SQL that may do nothing but read.
    pub read_only: bool,
    /// Inbound: text that markup hid from a person's eyes.
    pub hidden: bool,
    /// Inbound: which texts are rendered as pages here.
    pub render: RenderPages,
    /// Inbound: the text is a file that instructs agents, so orders in it are no sign of an attack.
    pub instruction_file: bool,
    /// Inbound: judges commands that a text orders its reader to run; `None` where nobody does.
    pub ordered: Option<&'a dyn signal::OrderedCommands>,
    /// What it comes down to when it is run, if a shell or an interpreter reads it.
    pub script: Option<&'a command::Script<'a>>,
    /// Where the call may reach; `None` where nothing is known of it.
    pub ground: Option<&'a Ground>,
    /// What names of hosts resolve to; `None` where nobody looks them up.
    pub lookup: Option<&'a url::Lookup<'a>>,
    /// Which secrets came from where, as far as the session knows.
    pub seen: Option<&'a secret::Seen<'a>>,
    /// What came in to the agent before, and what the policy says of the tool; `None` where nobody keeps it.
    pub flow: Option<flow::Here<'a>>,
    /// The tools around what is listed.
    pub around: Option<&'a shadow::Around<'a>>,
    /// The remaining work of the message; `None` where a text is judged by itself.
    pub budget: Option<&'a work::Budget>,
    /// A rule's own case is tried: signals are told that add up to nothing, too.
    pub trial: bool,
}

impl Default for Place<'_> {
    fn default() -> Self {
        Self {
            direction: Direction::Inbound,
            surface: Surface::Other,
            method: None,
            tool: None,
            argument: None,
            role: Role::Value,
            read_as: ReadAs::Text,
            read_only: false,
            hidden: false,
            render: RenderPages::default(),
            instruction_file: false,
            ordered: None,
            script: None,
            ground: None,
            lookup: None,
            seen: None,
            flow: None,
            around: None,
            budget: None,
            trial: false,
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
    fn scan(&self, text: &Text<'_>, place: &Place<'_>, found: &mut Vec<Match>);

    /// Adds every rule that the strings of one call match together, as its receiver may put them together, and that none
    /// matches by itself. Nothing, for most kinds.
    fn scan_pieces(&self, parts: &[&str], place: &Place<'_>, found: &mut Vec<Match>) {
        let (_, _, _) = (parts, place, found);
    }

    /// Adds every rule that a call as such matches at `place`, whatever stands in it. Nothing, for most kinds.
    fn scan_call(&self, place: &Place<'_>, found: &mut Vec<Match>) {
        let (_, _) = (place, found);
    }

    /// What searching a text costs each rule, if nothing matches. Nothing, for kinds that cost the same on every text.
    fn costs(&self, text: &str) -> Vec<(usize, Cost)> {
        let _ = text;
        Vec::new()
    }

    /// Notes what `text`, which came from a server, is worth remembering for: see [`Place::seen`]. Nothing, for most kinds.
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
