//! Readings by which rules say that a text was too much to look at. What was not looked at is not passed on, and each is
//! counted as the limit of this name in `lychgate_limits_hit_total`. The numbers are constants beside what they bound.

/// Commands: bytes, steps, depth, expansions.
pub const COMMAND: &str = "command_work";
/// SQL: bytes, tokens.
pub const SQL: &str = "sql_work";
/// Secrets: bytes opened and looked at.
pub const SECRET: &str = "secret_work";
/// Patterns: bytes that regexes look at, matches of one rule.
pub const PATTERN: &str = "pattern_work";
/// Paths: bytes, lines.
pub const PATH: &str = "path_work";
/// URLs: bytes, hosts of one.
pub const URL: &str = "url_work";
/// Checks of arguments against schemas: steps.
pub const SCHEMA: &str = "schema_work";

/// All of them.
pub const ALL: [&str; 7] = [COMMAND, SQL, SECRET, PATTERN, PATH, URL, SCHEMA];
