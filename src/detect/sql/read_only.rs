//! Checks that a text only reads, as far as a parser and the names of functions can show.
//!
//! A text passes if a parser accepts it as one query, and so does every tokenization that a
//! database might use: a text that a dialect's parser refuses must at least contain no word that
//! could write, and no second statement.

use sqlparser::ast::{Query, SetExpr, Statement as Parsed};
use sqlparser::dialect::{
    BigQueryDialect, ClickHouseDialect, Dialect, DuckDbDialect, GenericDialect, MsSqlDialect,
    MySqlDialect, PostgreSqlDialect, SQLiteDialect, SnowflakeDialect,
};
use sqlparser::parser::Parser;

use super::lex::{self, Flavour, Kind, Token};
use super::statement::same_parts;
use crate::text::glob_matches;
use crate::text::quick::WordSet;

/// Maximum length of a query in bytes and in tokens, and maximum depth of brackets. A parser's tree
/// is as deep as a query is long.
const BYTES: usize = 32 << 10;
const TOKENS: usize = 1_500;
const DEPTH: usize = 16;
/// Maximum recursion depth of the parser.
const PARSER_DEPTH: usize = 40;

/// Words that write anywhere in a query, unless a column or a function has that name.
static WRITES: WordSet = WordSet::new(
    "insert update delete merge upsert into outfile dumpfile exec execute shutdown reconfigure \
     drop truncate alter create grant revoke nextval share attach detach vacuum call",
);
/// Further words that may write, for texts that no parser accepts.
static MAY_WRITE: WordSet = WordSet::new(
    "replace copy load do set use lock unlock handler prepare deallocate declare begin commit \
     rollback savepoint kill import export unload put rename comment refresh cluster notify \
     listen discard checkpoint reset install pragma backup restore",
);
/// Functions that write, wait, lock, access files or hosts, or run a string.
static ACTING_FUNCTIONS: WordSet = WordSet::new(
    "nextval setval lo_* lowrite loread pg_terminate_backend pg_cancel_backend pg_reload_conf \
     pg_rotate_* pg_promote pg_switch_* pg_create_* pg_drop_* pg_start_backup pg_stop_backup \
     pg_backup_* pg_read_* pg_ls_* pg_stat_file pg_stat_reset* pg_file_* pg_logdir_ls \
     pg_advisory_* pg_try_advisory_* pg_sleep* pg_notify pg_replication_* pg_logical_* \
     pg_wal_replay_* pg_import_* pg_export_* pg_log_backend* set_config dblink* query_to_xml* \
     cursor_to_xml* ts_stat sys_exec sys_eval sys_set load_file load_extension writefile readfile \
     edit xp_* sp_* openrowset openquery opendatasource utl_* dbms_* httpuritype get_lock \
     release_*lock* sleep benchmark *_pos_wait wait_for_executed_gtid_set http_* query_export_* \
     invoke external_query java_method reflect csvwrite file_write file_read link_schema \
     executable system$* schedule* unschedule read_text",
);

/// Returns why a text does more than read; `None` if it only reads.
pub(super) fn objection(text: &str) -> Option<&'static str> {
    if text.len() > BYTES {
        return Some("too long to be judged");
    }
    let mut readings: Vec<(Vec<Token<'_>>, Vec<Flavour>)> = Vec::new();
    for flavour in Flavour::ALL {
        let Some(tokens) = lex::tokens(text, flavour) else {
            continue;
        };
        match readings
            .iter_mut()
            .find(|(other, _)| same_parts(other, &tokens))
        {
            Some((_, flavours)) => flavours.push(flavour),
            None => readings.push((tokens, vec![flavour])),
        }
    }
    if readings.is_empty() {
        return Some("no database could read it");
    }
    // The parser does not support this one.
    let mut parsed = readings.iter().all(|(tokens, _)| is_table(tokens));
    for (tokens, flavours) in &readings {
        if tokens.len() > TOKENS || tokens.iter().any(|token| token.depth > DEPTH) {
            return Some("too long or too deep to be judged");
        }
        if let Some(reason) = word_objection(tokens) {
            return Some(reason);
        }
        let explains = tokens
            .first()
            .is_some_and(|first| first.is_any(&["explain", "describe", "desc"]));
        let mut accepted = false;
        for dialect in flavours.iter().flat_map(|flavour| dialects(*flavour)) {
            let parser = Parser::new(*dialect)
                .with_recursion_limit(PARSER_DEPTH)
                .try_with_sql(text);
            let Ok(statements) = parser.and_then(|mut parser| parser.parse_statements()) else {
                continue;
            };
            match statements.as_slice() {
                [single] if only_reads(single) => accepted = true,
                [_] => return Some("it is no query"),
                _ => return Some("it is not one statement"),
            }
            // One dialect that accepts it as a query is enough: the others tokenize it in the same
            // way.
            break;
        }
        if !accepted && !explains && tokens.iter().any(|token| token.is_any(MAY_WRITE.iter())) {
            return Some("it could not be read as a query");
        }
        parsed |= accepted;
    }
    if parsed {
        None
    } else {
        Some("it could not be read as a query")
    }
}

fn dialects(flavour: Flavour) -> &'static [&'static dyn Dialect] {
    match flavour {
        Flavour::Plain => &[
            &GenericDialect {},
            &SQLiteDialect {},
            &DuckDbDialect {},
            &SnowflakeDialect,
            &ClickHouseDialect {},
        ],
        Flavour::Postgres => &[&PostgreSqlDialect {}],
        Flavour::MySql => &[&MySqlDialect {}, &BigQueryDialect {}],
        Flavour::MsSql => &[&MsSqlDialect {}],
    }
}

/// Reports whether a parsed statement only reads.
fn only_reads(statement: &Parsed) -> bool {
    match statement {
        Parsed::Query(query) => is_query(query),
        Parsed::Explain {
            analyze,
            options,
            statement,
            ..
        } => {
            let carried_out = *analyze
                || options
                    .iter()
                    .flatten()
                    .any(|option| option.name.value.to_ascii_lowercase().starts_with("analy"));
            !carried_out || matches!(statement.as_ref(), Parsed::Query(query) if is_query(query))
        }
        Parsed::ExplainTable { .. }
        | Parsed::ShowVariable { .. }
        | Parsed::ShowVariables { .. }
        | Parsed::ShowStatus { .. }
        | Parsed::ShowCreate { .. }
        | Parsed::ShowColumns { .. }
        | Parsed::ShowDatabases { .. }
        | Parsed::ShowSchemas { .. }
        | Parsed::ShowTables { .. }
        | Parsed::ShowViews { .. }
        | Parsed::ShowFunctions { .. }
        | Parsed::ShowObjects { .. }
        | Parsed::ShowCollation { .. } => true,
        _ => false,
    }
}

fn is_query(query: &Query) -> bool {
    let mut bodies = vec![query.body.as_ref()];
    if !query.locks.is_empty() {
        return false;
    }
    if let Some(with) = &query.with {
        bodies.extend(
            with.cte_tables
                .iter()
                .map(|table| table.query.body.as_ref()),
        );
    }
    while let Some(body) = bodies.pop() {
        match body {
            SetExpr::Select(select) if select.into.is_none() => {}
            SetExpr::Values(_) | SetExpr::Table(_) => {}
            SetExpr::SetOperation { left, right, .. } => {
                bodies.extend([left.as_ref(), right.as_ref()])
            }
            SetExpr::Query(inner) if inner.locks.is_empty() && inner.with.is_none() => {
                bodies.push(inner.body.as_ref())
            }
            _ => return false,
        }
    }
    true
}

/// Returns the objection to its words, independent of any parser.
fn word_objection(tokens: &[Token<'_>]) -> Option<&'static str> {
    const FIRST: [&str; 10] = [
        "select", "with", "values", "table", "show", "explain", "describe", "desc", "from", "(",
    ];
    let end = tokens
        .iter()
        .rposition(|token| !token.is_mark(";"))
        .map_or(0, |last| last + 1);
    let tokens = tokens.get(..end).unwrap_or(tokens);
    let Some(first) = tokens.first() else {
        return Some("there is no statement in it");
    };
    if tokens.iter().any(|token| token.is_mark(";")) {
        return Some("it holds more than one statement");
    }
    if tokens.iter().any(|token| token.kind == Kind::Client) {
        return Some("it holds a command of the client");
    }
    if !FIRST
        .iter()
        .any(|word| first.is(word) || first.is_mark(word))
    {
        return Some("it is no query");
    }
    // `EXPLAIN DELETE …` only reports, unless it is told to execute the statement.
    let only_explains = first.is("explain")
        && !tokens
            .iter()
            .take(24)
            .any(|token| token.is("analyze") || token.is("analyse"));
    for (at, token) in tokens.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|before| tokens.get(before));
        let called = tokens.get(at + 1).is_some_and(|next| next.is_mark("("));
        if called && matches!(token.kind, Kind::Word | Kind::Quoted) {
            let name = token.text.to_ascii_lowercase();
            if ACTING_FUNCTIONS
                .iter()
                .any(|glob| glob_matches(glob, &name))
            {
                return Some("it calls a function that does more than read");
            }
        }
        let column = before.is_some_and(|before| before.is_mark(".")) && !token.is("nextval");
        let function = called && (token.is("insert") || token.is("truncate"));
        if !only_explains
            && !column
            && !function
            && token.is_any(WRITES.iter())
            && !is_show_definition(first, token)
        {
            return Some("it holds a word that writes or locks");
        }
        let locks = token.is("for")
            && tokens
                .get(at + 1)
                .is_some_and(|next| next.is_any(&["no", "key", "share", "update"]));
        let sequence = token.is("next") && tokens.get(at + 1).is_some_and(|next| next.is("value"));
        if locks || sequence {
            return Some("it locks rows or moves a sequence");
        }
    }
    None
}

/// Reports whether it is `TABLE a.b`, which returns a whole table.
fn is_table(tokens: &[Token<'_>]) -> bool {
    let [first, name @ ..] = tokens else {
        return false;
    };
    let of_name = |(at, token): (usize, &Token<'_>)| {
        if at % 2 == 0 {
            matches!(token.kind, Kind::Word | Kind::Quoted)
        } else {
            token.is_mark(".") || token.is_mark(";")
        }
    };
    first.is("table") && !name.is_empty() && name.iter().enumerate().all(of_name)
}

/// Reports whether it is `SHOW CREATE TABLE t`, `SHOW GRANTS` or the like.
fn is_show_definition(first: &Token<'_>, token: &Token<'_>) -> bool {
    first.is("show") && (token.is("create") || token.is("grant"))
}
