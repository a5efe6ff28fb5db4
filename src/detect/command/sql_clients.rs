//! SQL that a command hands to a database: `psql -c '…'`, `echo '…' | mysql`, `sqlite3 file '…'`.

use super::facts::Facts;

/// Programs that have a database run what they are given, in words or as input.
const CLIENTS: [&str; 46] = [
    "psql",
    "pgcli",
    "mysql",
    "mariadb",
    "mycli",
    "sqlite3",
    "sqlite",
    "litecli",
    "sqlite-utils",
    "duckdb",
    "sqlcmd",
    "osql",
    "isql",
    "tsql",
    "mssql-cli",
    "bcp",
    "usql",
    "clickhouse",
    "clickhouse-client",
    "clickhouse-local",
    "cqlsh",
    "cockroach",
    "snowsql",
    "snow",
    "bq",
    "trino",
    "presto",
    "presto-cli",
    "hive",
    "beeline",
    "impala-shell",
    "spark-sql",
    "sqlplus",
    "sql",
    "sqlcl",
    "db2",
    "vsql",
    "hdbsql",
    "iql",
    "fbsql",
    "isql-fb",
    "influx",
    "surreal",
    "mysqlsh",
    "turso",
    "libsql",
];
/// Programs among whose options is one that a database runs.
const OPTIONS: [(&str, &str); 6] = [
    ("aws", "--query-string"),
    ("aws", "--sql"),
    ("aws", "--statement"),
    ("gcloud", "--sql"),
    ("wrangler", "--command"),
    ("databricks", "--json"),
];
/// Words that statements begin with: from one of them on, words without quotes are taken together.
const VERBS: [&str; 16] = [
    "select", "insert", "update", "delete", "drop", "alter", "create", "truncate", "grant", "revoke", "copy", "load", "attach",
    "call", "exec", "flush",
];

/// Whether a program has a database run what it reads.
pub(super) fn is_client(program: &str) -> bool {
    CLIENTS.contains(&program)
}

/// The texts of SQL that a command hands to a database.
pub(super) fn sql(facts: &Facts) -> Vec<String> {
    let arguments = facts.arguments();
    let mut out = Vec::new();
    if is_client(&facts.program) {
        for (at, field) in arguments.iter().enumerate() {
            let text = field.text.as_str();
            let attached = text.split_once('=').filter(|(flag, _)| flag.starts_with('-')).map(|(_, value)| value);
            let attached = attached
                .or_else(|| text.get(2..).filter(|_| text.starts_with("-c") || text.starts_with("-e") || text.starts_with("-Q")));
            let text = attached.unwrap_or(text);
            if text.contains(char::is_whitespace) || text.starts_with(['\\', '.']) && text.len() > 2 && !text.contains('/') {
                out.push(text.to_owned());
            } else if VERBS.iter().any(|verb| text.eq_ignore_ascii_case(verb)) {
                let rest: Vec<&str> = arguments.iter().skip(at).map(|field| field.text.as_str()).collect();
                out.push(rest.join(" "));
                break;
            }
        }
        out.extend(facts.input.clone());
    }
    for (_, option) in OPTIONS.iter().filter(|(program, _)| *program == facts.program) {
        let given = arguments.iter().position(|field| field.text.starts_with(option));
        if let Some(at) = given {
            let value = arguments.get(at).and_then(|field| field.text.split_once('=')).map(|(_, value)| value.to_owned());
            out.extend(value.or_else(|| arguments.get(at + 1).map(|field| field.text.clone())));
        }
    }
    out
}
