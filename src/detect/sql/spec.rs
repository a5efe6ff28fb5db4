//! The conditions of a rule of the kind `sql`, and the test of a statement against them.

use super::statement::Statement;
use crate::detect::pattern::{Regex, read_clauses, read_exact_regexes};
use crate::document::Table;
use crate::text::glob_matches;

/// The conditions of a rule of this kind: any one of its clauses.
#[derive(Debug, Default)]
pub struct Spec {
    pub(super) clauses: Vec<Clause>,
}

/// A condition: everything that it names must hold for one statement.
#[derive(Clone, Debug, Default)]
pub(super) struct Clause {
    statement: Vec<Vec<String>>,
    words: Vec<Vec<String>>,
    calls: Vec<String>,
    tables: Vec<String>,
    client: Vec<String>,
    line: Vec<Regex>,
    unless: Vec<Regex>,
    unbounded: bool,
    pub(super) behaviour: Option<Behaviour>,
}

enum_with_names! {
    /// Behavior that no single statement shows.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum Behaviour {
        /// The text could not be read to its end.
        Unreadable = "unreadable",
        /// The text does more than read, where the policy allows only reading.
        BeyondReading = "beyond-reading",
    }
}

impl Spec {
    /// Compiles its regexes, which are otherwise compiled when a text first needs them.
    ///
    /// # Errors
    /// The limit that one of them exceeds.
    pub fn compile(&self) -> Result<(), String> {
        self.clauses
            .iter()
            .flat_map(|clause| clause.line.iter().chain(&clause.unless))
            .try_for_each(Regex::compile)
    }

    /// Reports whether it restricts the arguments that a policy names in `sql_read_only` to
    /// reading.
    pub fn restricts_to_reading(&self) -> bool {
        self.clauses
            .iter()
            .any(|clause| clause.behaviour == Some(Behaviour::BeyondReading))
    }

    pub(super) fn read(table: &Table<'_>) -> Self {
        let hint = "write `any = [{ statement = [\"drop table\"] }, … ]`";
        Self {
            clauses: read_clauses(table, hint, Clause::read),
        }
    }
}

impl Clause {
    fn read(table: &Table<'_>) -> Self {
        let names = |key: &str| {
            table
                .strings(key)
                .into_iter()
                .map(|name| name.value.to_ascii_lowercase())
                .collect::<Vec<_>>()
        };
        let sequences = |key: &str| {
            names(key)
                .iter()
                .map(|run| run.split(' ').map(String::from).collect())
                .collect::<Vec<_>>()
        };
        let clause = Self {
            statement: sequences("statement"),
            words: sequences("words"),
            calls: names("calls"),
            tables: names("tables"),
            client: names("client"),
            line: read_exact_regexes(table, "line"),
            unless: read_exact_regexes(table, "unless"),
            unbounded: table.boolean("unbounded").unwrap_or(false),
            behaviour: table.choice("does", &Behaviour::WORDS),
        };
        if clause.is_empty() {
            table.fault(
                "a clause of `find.sql` that asks for nothing",
                Some("name a `statement`, `words`, what it `calls`, its `tables`, a `client` command, or what it `does`"),
            );
        }
        clause
    }

    fn is_empty(&self) -> bool {
        let lists = [&self.calls, &self.tables, &self.client];
        self.statement.is_empty()
            && self.words.is_empty()
            && lists.into_iter().all(Vec::is_empty)
            && self.line.is_empty()
            && !self.unbounded
            && self.behaviour.is_none()
    }

    /// Reports whether a statement meets all conditions on a single statement.
    pub(super) fn matches(&self, statement: &Statement) -> bool {
        let any_fits = |globs: &[String], names: &[String]| {
            globs.is_empty()
                || names
                    .iter()
                    .any(|name| globs.iter().any(|glob| glob_matches(glob, name)))
        };
        self.behaviour.is_none()
            && (self.statement.is_empty()
                || self
                    .statement
                    .iter()
                    .any(|run| starts_with(&statement.words, run)))
            && (self.words.is_empty()
                || self.words.iter().any(|run| {
                    statement
                        .words
                        .windows(run.len())
                        .any(|at| starts_with(at, run))
                }))
            && any_fits(&self.calls, &statement.calls)
            && any_fits(&self.tables, &statement.tables)
            && (self.client.is_empty() || any_fits(&self.client, statement.client.as_slice()))
            && (!self.unbounded || statement.unbounded)
            && (self.line.is_empty()
                || self
                    .line
                    .iter()
                    .any(|regex| regex.may_match(&statement.line)))
            && !self
                .unless
                .iter()
                .any(|regex| regex.is_match(&statement.line))
    }
}

fn starts_with(words: &[String], run: &[String]) -> bool {
    words.len() >= run.len()
        && run
            .iter()
            .zip(words)
            .all(|(glob, word)| !word.is_empty() && glob_matches(glob, word))
}
