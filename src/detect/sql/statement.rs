//! Statements: what a text of SQL makes a database do.

use super::condition;
use super::lex::{self, Flavour, Kind, Token};
use super::nested::{assigns_variable, executed_strings, runs_variable, texts};
use crate::text::quick::WordSet;

/// Maximum nesting depth to which strings that are run as SQL are read.
const NESTING: usize = 3;
/// Maximum number of tokens that are examined, including those of nested strings. A text with more
/// is unreadable.
const TOKENS: usize = 60_000;
/// Maximum number of strings assigned to variables that are kept for a later statement that runs
/// them.
const VARIABLES: usize = 64;
/// Maximum length of a text that is read, in bytes.
pub(super) const TEXT_BYTES: usize = 256 << 10;

/// Words that may occur between a verb and its object.
static FILLERS: WordSet = WordSet::new(
    "or replace materialized external foreign unique concurrently trusted procedural temporary \
     temp volatile transient public clustered nonclustered low_priority ignore",
);
/// Objects that can be dropped, altered or created: they mark a verb in the middle of a text as a
/// statement.
static OBJECTS: WordSet = WordSet::new(
    "table database schema view login user role procedure proc function trigger index sequence \
     type tablespace extension assembly server",
);
/// The facts about a text of SQL.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) statements: Vec<Statement>,
    /// It could not be read to its end in any way.
    pub(super) unreadable: bool,
    /// It was too long to be read.
    pub(super) too_much: bool,
}

/// One statement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Statement {
    /// Keywords and plain names, in lower case, without fillers; `""` where something else is
    /// between two of them.
    pub(super) words: Vec<String>,
    /// Functions and procedures that it calls, in lower case, with and without their qualifiers.
    pub(super) calls: Vec<String>,
    /// Tables and other objects that it reads or writes, in lower case.
    pub(super) tables: Vec<String>,
    /// Name of the client's command, if it is one.
    pub(super) client: Option<String>,
    /// Whether it deletes or updates without a condition that narrows it.
    pub(super) unbounded: bool,
    /// Tokens joined by spaces, keywords in lower case.
    pub(super) line: String,
}

/// Reads a text in every way that a database might.
pub(super) fn read(text: &str) -> Facts {
    let mut facts = Facts::default();
    let mut budget = TOKENS;
    if text.len() > TEXT_BYTES || !read_into(text, &mut facts.statements, &mut budget, 0) {
        facts.too_much = text.len() > TEXT_BYTES || budget == 0;
        facts.unreadable = facts.too_much || looks_like_sql(text);
        if text.len() <= TEXT_BYTES {
            // Databases refuse a text that they cannot read; in case one can, its words are
            // examined all the same.
            let loose: String = text
                .chars()
                .map(|c| {
                    if matches!(c, '\'' | '"' | '`' | '\\') {
                        ' '
                    } else {
                        c
                    }
                })
                .collect();
            let uncommented = loose.replace("/*", " ").replace("*/", " ");
            read_into(&uncommented, &mut facts.statements, &mut budget, NESTING);
        }
    }
    facts
}

/// Adds the statements of a text. Returns whether it could be read in some way.
fn read_into(text: &str, out: &mut Vec<Statement>, budget: &mut usize, nesting: usize) -> bool {
    let flavours: &[Flavour] = if lex::is_ambiguous(text) {
        &Flavour::ALL
    } else {
        &[Flavour::Plain]
    };
    let mut seen: Vec<Vec<Token<'_>>> = Vec::new();
    for flavour in flavours {
        let Some(tokens) = lex::tokens(text, *flavour) else {
            continue;
        };
        if seen.iter().any(|other| same_parts(other, &tokens)) {
            continue;
        }
        let Some(remaining) = budget.checked_sub(tokens.len()) else {
            *budget = 0;
            return false;
        };
        *budget = remaining;
        let mut assigned: Vec<String> = Vec::new();
        for part in split_statements(&tokens) {
            let statement = read_statement(part);
            if nesting < NESTING && assigns_variable(part) && assigned.len() < VARIABLES {
                assigned.extend(texts(part));
            }
            // `EXEC(@sql)`: the text that was assigned to a variable earlier.
            if nesting < NESTING && runs_variable(part) {
                for inner in std::mem::take(&mut assigned) {
                    read_into(&inner, out, budget, nesting + 1);
                }
            }
            if nesting < NESTING {
                for inner in executed_strings(part, &statement) {
                    read_into(&inner, out, budget, nesting + 1);
                }
            }
            out.push(statement);
        }
        seen.push(tokens);
    }
    !seen.is_empty()
}

/// Reports whether two tokenizations split a text at the same places.
pub(super) fn same_parts(a: &[Token<'_>], b: &[Token<'_>]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.span == b.span)
}

/// Reports whether its first word is one that statements begin with.
fn looks_like_sql(text: &str) -> bool {
    const VERBS: [&str; 22] = [
        "select", "insert", "update", "delete", "drop", "alter", "create", "truncate", "with",
        "grant", "revoke", "copy", "call", "exec", "execute", "merge", "load", "attach", "set",
        "begin", "declare", "do",
    ];
    let word: String = text
        .trim_start()
        .chars()
        .take_while(char::is_ascii_alphabetic)
        .take(16)
        .collect();
    VERBS.iter().any(|verb| word.eq_ignore_ascii_case(verb))
}

/// Splits a text into statements: at `;`, and where a verb shows that another statement begins (SQL
/// Server needs no `;`, and a `WITH` precedes its statement).
fn split_statements<'p, 't>(tokens: &'p [Token<'t>]) -> Vec<&'p [Token<'t>]> {
    let mut parts = Vec::new();
    let mut start = 0;
    for (at, token) in tokens.iter().enumerate() {
        let is_end = token.is_mark(";") || token.kind == Kind::Client;
        let before = at.checked_sub(1).and_then(|before| tokens.get(before));
        let follows_client = before.is_some_and(|before| before.kind == Kind::Client);
        if at > start && (is_end || follows_client || begins_statement(tokens, start, at)) {
            parts.push(tokens.get(start..at).unwrap_or_default());
            start = at;
        }
        if token.is_mark(";") {
            start = at + 1;
        }
    }
    parts.push(tokens.get(start..).unwrap_or_default());
    parts.retain(|part| !part.is_empty());
    parts
}

/// Reports whether a statement begins at a token in the middle of another.
fn begins_statement(tokens: &[Token<'_>], start: usize, at: usize) -> bool {
    let Some(token) = tokens.get(at).filter(|token| token.kind == Kind::Word) else {
        return false;
    };
    let word = |ahead: usize, words: &[&str]| {
        tokens
            .get(at + ahead)
            .is_some_and(|token| token.is_any(words))
    };
    let names_object = || {
        tokens
            .get(at + 1)
            .is_some_and(|token| token.is_any(OBJECTS.iter()))
    };
    let is_any = |words: &[&str]| token.is_any(words);
    let second = if is_any(&["drop", "alter", "create"]) {
        names_object() || (word(1, &["or"]) && word(2, &["replace", "alter"]))
    } else if is_any(&["delete"]) {
        word(1, &["from"])
    } else if is_any(&["insert", "merge", "replace"]) {
        word(1, &["into"])
    } else if is_any(&["truncate"]) {
        word(1, &["table"])
    } else if is_any(&["update"]) {
        (2..8).any(|ahead| word(ahead, &["set"]))
    } else {
        is_any(&["exec", "execute", "shutdown", "xp_cmdshell"])
    };
    let Some(first) = tokens.get(start).filter(|_| second) else {
        return false;
    };
    let verb = [
        "drop", "alter", "create", "grant", "revoke", "deny", "explain", "comment", "show",
        "prepare", "copy", "analyze",
    ];
    let owns = first.is_any(&verb);
    let before = tokens.get(at - 1);
    let joins = [
        "for", "on", "do", "then", "before", "after", "or", "of", "key", "instead",
    ];
    let joined = before
        .is_some_and(|before| before.is_any(&joins) || before.is_mark(".") || before.is_mark("="))
        || follows_exec(tokens, at);
    let defines = first.is("create")
        && tokens
            .get(start..at)
            .unwrap_or_default()
            .iter()
            .take(64)
            .any(|t| t.is("as") || t.is("begin"));
    let fresh =
        is_any(&["drop", "exec"]) && (first.is("create") || first.is("copy")) && names_object();
    !joined && (!owns || defines || fresh)
}

fn read_statement(part: &[Token<'_>]) -> Statement {
    let mut result = Statement::default();
    if let Some(first) = part.first().filter(|first| first.kind == Kind::Client) {
        let bare = first.text.trim_start_matches(['\\', '.', ':', '@']);
        let end = bare
            .find(|c: char| !(c.is_alphanumeric() || c == '_'))
            .unwrap_or(bare.len());
        let name = bare
            .get(..end)
            .filter(|name| !name.is_empty())
            .unwrap_or("!");
        result.client = Some(name.to_ascii_lowercase());
        first.text.clone_into(&mut result.line);
        return result;
    }
    for (at, token) in part.iter().enumerate() {
        if !result.line.is_empty() {
            result.line.push(' ');
        }
        match token.kind {
            Kind::Word => {
                let word = token.text.to_ascii_lowercase();
                result.line.push_str(&word);
                if at == 0 || !FILLERS.contains(&word.as_str()) {
                    result.words.push(word);
                }
            }
            Kind::Text => {
                result.line.push('\'');
                result.line.push_str(token.text);
                result.line.push('\'');
            }
            _ => result.line.push_str(token.text),
        }
        if token.kind != Kind::Word && result.words.last().is_some_and(|last| !last.is_empty()) {
            result.words.push(String::new());
        }
    }
    collect_calls(part, &mut result.calls);
    collect_tables(part, &mut result.tables);
    result.unbounded = is_unbounded(part);
    result
}

/// Returns the name that ends at a token (`a.b.c`, in lower case), and where it begins.
fn name_ending_at(part: &[Token<'_>], at: usize) -> Option<(String, usize)> {
    let is_name = |token: &Token<'_>| matches!(token.kind, Kind::Word | Kind::Quoted);
    let mut from = at;
    let mut name = part
        .get(at)
        .filter(|token| is_name(token))?
        .text
        .to_ascii_lowercase();
    while let Some(dot) = from
        .checked_sub(1)
        .filter(|dot| part.get(*dot).is_some_and(|token| token.is_mark(".")))
        && at - from < 8
    {
        // `master..xp_cmdshell` omits one part.
        match dot.checked_sub(1).and_then(|before| part.get(before)) {
            Some(token) if is_name(token) => {
                name = format!("{}.{name}", token.text.to_ascii_lowercase());
                from = dot - 1;
            }
            _ => from = dot,
        }
    }
    Some((name, from))
}

fn collect_calls(part: &[Token<'_>], out: &mut Vec<String>) {
    for at in 0..part.len() {
        let called = part.get(at + 1).is_some_and(|next| next.is_mark("("));
        let Some((name, from)) = (at == 0 || called || part.len() < 40 || follows_exec(part, at))
            .then(|| name_ending_at(part, at))
            .flatten()
        else {
            continue;
        };
        let starts_call = from == 0 || follows_exec(part, from);
        let continues = part.get(at + 1).is_some_and(|next| next.is_mark("."));
        if (called || starts_call) && !continues {
            if let Some((_, last)) = name.rsplit_once('.') {
                out.push(last.to_owned());
            }
            out.push(name);
        }
    }
}

/// Reports whether the name called by `EXEC` or `CALL` begins here; `@result =` may precede it.
fn follows_exec(part: &[Token<'_>], at: usize) -> bool {
    let is_exec = |at: Option<usize>| {
        at.and_then(|at| part.get(at))
            .is_some_and(|token| token.is_any(&["exec", "execute", "call"]))
    };
    let assigned = at
        .checked_sub(1)
        .and_then(|before| part.get(before))
        .is_some_and(|before| before.is_mark("="));
    is_exec(at.checked_sub(1)) || (assigned && is_exec(at.checked_sub(3)))
}

fn collect_tables(part: &[Token<'_>], out: &mut Vec<String>) {
    const BEFORE: [&str; 13] = [
        "from", "join", "into", "update", "table", "truncate", "only", "database", "schema",
        "exists", "view", "using", "on",
    ];
    for (at, token) in part.iter().enumerate() {
        if !token.is_any(&BEFORE) {
            continue;
        }
        let mut end = at + 1;
        while part.get(end + 1).is_some_and(|dot| dot.is_mark("."))
            && part.get(end + 2).is_some()
            && end < at + 9
        {
            end += 2;
        }
        if let Some((name, _)) = name_ending_at(part, end)
            && !BEFORE.contains(&name.as_str())
        {
            out.push(name);
        }
    }
}

/// Reports whether it deletes or updates without a condition that narrows it.
fn is_unbounded(part: &[Token<'_>]) -> bool {
    let Some(first) = part.first() else {
        return false;
    };
    let deletes = first.is("delete") && (part.len() > 1);
    let updates = first.is("update") && part.iter().any(|token| token.is("set"));
    if !(deletes || updates) {
        return false;
    }
    let level = first.depth;
    // The closing bracket around it, as in a `WITH`, ends it.
    let end = part
        .iter()
        .position(|token| token.depth < level)
        .unwrap_or(part.len());
    let body = part.get(..end).unwrap_or(part);
    let narrows = |word: &str| {
        body.iter()
            .any(|token| token.depth == level && token.is(word))
    };
    match body
        .iter()
        .position(|token| token.depth == level && token.is("where"))
    {
        Some(at) => condition::is_always_true(body.get(at + 1..).unwrap_or_default()),
        None => {
            !(narrows("limit")
                || narrows("top")
                || narrows("using")
                || narrows("join")
                || narrows("from") && updates)
        }
    }
}
