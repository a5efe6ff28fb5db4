//! The data about one program.

use super::options::{self, Download, Options};
use super::traits::Traits;
use super::value::Field;
use super::wrappers::Runner;
use crate::document::Table;

/// Number of leading arguments in which words that make a program print a credential may be.
const WORDS_BEFORE: usize = 16;

enum_with_names! {
    /// The kind of text that an interpreter runs.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum ScriptKind {
        Shell = "shell",
        /// PowerShell or cmd.exe.
        Windows = "windows",
        Code = "code",
    }
}

/// The data about a program.
#[derive(Clone, Debug, Default)]
pub(super) struct Program {
    pub(super) traits: Traits,
    pub(super) interprets: Option<ScriptKind>,
    pub(super) options: Option<Options>,
    pub(super) download: Option<Download>,
    /// The ways in which the program runs another one.
    pub(super) runners: Vec<Runner>,
    /// Options with which the program decodes; if empty, it always does.
    decodes: Option<Vec<String>>,
    /// Words that together make the program print a credential.
    prints_secret: Vec<Vec<String>>,
    /// Options whose value a database runs.
    pub(super) sql: Vec<String>,
}

impl Program {
    /// Parses a `[[program]]` table and reports its faults.
    pub(super) fn read(table: &Table<'_>) -> Option<Self> {
        let traits = Traits::read(table);
        let interprets = if table.has("interprets") {
            table.choice("interprets", &ScriptKind::WORDS).map(Some)
        } else {
            Some(None)
        };
        let runs = table.table("runs").map(|runs| Runner::read(&runs));
        let options = table
            .table("options")
            .map(|options| Options::read(&options));
        let download = table
            .table("download")
            .map(|download| Download::read(&download));
        let decodes = table.has("decodes").then(|| table.values("decodes"));
        let words = |words: String| words.split(' ').map(str::to_owned).collect();
        let prints_secret = table.values("prints_secret").into_iter().map(words);
        let prints_secret = prints_secret.collect();
        let sql = table.values("sql");
        let runners = runs.map_or_else(|| Some(Vec::new()), |runner| Some(vec![runner?]));
        let program = Self {
            traits: traits?,
            interprets: interprets?,
            options,
            download,
            runners: runners?,
            decodes,
            prints_secret,
            sql,
        };
        if program.is_empty() {
            table.fault(
                "nothing is said of these programs",
                Some("give `traits`, `runs`, `interprets`, `options` or the like"),
            );
            return None;
        }
        Some(program)
    }

    fn is_empty(&self) -> bool {
        let Self {
            traits,
            interprets,
            options,
            download,
            runners,
            decodes,
            prints_secret,
            sql,
        } = self;
        *traits == Traits::default()
            && (interprets.is_none()
                && options.is_none()
                && download.is_none()
                && decodes.is_none())
            && (runners.is_empty() && prints_secret.is_empty() && sql.is_empty())
    }

    /// Adds the data of another table. Options of a later table replace those of an earlier one.
    pub(super) fn add(&mut self, other: &Self) {
        self.traits = self.traits.union(other.traits);
        self.interprets = other.interprets.or(self.interprets);
        if other.options.is_some() {
            self.options.clone_from(&other.options);
        }
        if other.download.is_some() {
            self.download.clone_from(&other.download);
        }
        if other.decodes.is_some() {
            self.decodes.clone_from(&other.decodes);
        }
        self.runners.extend(other.runners.iter().cloned());
        self.prints_secret
            .extend(other.prints_secret.iter().cloned());
        self.sql.extend(other.sql.iter().cloned());
    }

    /// Reports whether the program runs the command after its options.
    pub(super) fn runs_what_follows(&self) -> bool {
        self.runners.iter().any(Runner::is_plain)
    }

    /// Returns how many of `arguments` precede the command that the program runs; `None` if it runs
    /// none.
    pub(super) fn command_start(&self, arguments: &[Field]) -> Option<usize> {
        self.runners
            .iter()
            .find_map(|runner| runner.command_start(self.options.as_ref(), arguments))
    }

    /// Reports whether the program decodes with these arguments.
    pub(super) fn decodes(&self, arguments: &[Field]) -> bool {
        let short = |text: &str, option: &str| {
            let letter = option.strip_prefix('-').filter(|letter| letter.len() == 1);
            let cluster = text.len() > 2 && options::short_letters(text).is_some();
            cluster && letter.is_some_and(|letter| text.ends_with(letter))
        };
        self.decodes.as_ref().is_some_and(|options| {
            options.is_empty()
                || arguments.iter().any(|a| {
                    options
                        .iter()
                        .any(|option| a.text == *option || short(&a.text, option))
                })
        })
    }

    /// Reports whether the program prints a credential with these arguments.
    pub(super) fn prints_secret(&self, arguments: &[Field]) -> bool {
        let is_given = |word: &String| {
            arguments
                .iter()
                .take(WORDS_BEFORE)
                .any(|argument| argument.text == *word)
        };
        self.prints_secret
            .iter()
            .any(|words| words.iter().all(is_given))
    }
}
