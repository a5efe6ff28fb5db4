use super::lex::{Flavour, tokens};
use super::read_only::objection;
use super::statement::{Statement, read};

fn statements(text: &str) -> Vec<Statement> {
    read(text).statements
}

fn lines(text: &str) -> Vec<String> {
    statements(text)
        .into_iter()
        .map(|statement| statement.line)
        .collect()
}

fn texts(text: &str, flavour: Flavour) -> Vec<&str> {
    tokens(text, flavour)
        .unwrap()
        .into_iter()
        .map(|token| token.text)
        .collect()
}

#[test]
fn each_family_takes_a_text_apart_its_own_way() {
    let cases = [
        ("'a\\' b'", Flavour::MySql, vec!["a\\' b"]),
        ("'a\\' b", Flavour::Postgres, vec!["a\\", "b"]),
        ("a # b\nc", Flavour::MySql, vec!["a", "c"]),
        ("a # b", Flavour::Postgres, vec!["a", "#", "b"]),
        ("a --b", Flavour::MySql, vec!["a", "-", "-", "b"]),
        ("a --b", Flavour::Plain, vec!["a"]),
        ("$x$ a ' $x$ b", Flavour::Postgres, vec![" a ' ", "b"]),
        ("[a ' b] c", Flavour::MsSql, vec!["a ' b", "c"]),
        ("/* a /* b */ c */ d", Flavour::Postgres, vec!["d"]),
        ("/* a /* b */ c", Flavour::MySql, vec!["c"]),
        ("/*!50000 drop*/ t", Flavour::MySql, vec!["drop", "t"]),
        ("q'[it's]' x", Flavour::Plain, vec!["it's", "x"]),
        ("e'a\\'b' c", Flavour::Postgres, vec!["a\\'b", "c"]),
        (
            "'it''s' \"a\"\"b\"",
            Flavour::Plain,
            vec!["it''s", "a\"\"b"],
        ),
    ];
    for (text, flavour, expected) in cases {
        assert_eq!(texts(text, flavour), expected, "{text} as {flavour:?}");
    }
    for open in ["'a", "\"a", "`a", "/* a", "$x$ a"] {
        assert!(tokens(open, Flavour::Postgres).is_none(), "{open}");
    }
}

#[test]
fn a_text_is_as_many_statements_as_any_database_sees() {
    assert_eq!(
        lines("select 1; select ';' ; drop table a"),
        ["select 1", "select ';'", "drop table a"]
    );
    assert_eq!(lines("select 1 drop table a"), ["select 1", "drop table a"]);
    assert_eq!(
        lines("with x as (delete from t returning a) select * from x").len(),
        2
    );
    assert!(lines("select 'a\\'; drop table t; -- '").contains(&"drop table t".to_owned()));
    assert!(
        lines("select 1 /*! into outfile '/x' */")
            .iter()
            .any(|line| line.contains("into outfile"))
    );
    // A verb that is part of another statement begins no statement.
    for one in [
        "alter table t drop column c",
        "grant delete on t to u",
        "create table a (b int references c on delete cascade)",
        "insert into t values (1) on conflict do update set a = 1",
        "select * from t for update",
        "explain delete from t",
    ] {
        assert_eq!(statements(one).len(), 1, "{one}");
    }
}

#[test]
fn strings_that_are_run_are_read_too() {
    for text in [
        "exec('drop table t')",
        "execute immediate 'drop table t'",
        "do $$ begin execute 'drop table t'; end $$",
        "exec sp_executesql N'drop table t'",
        "prepare s from 'drop table t'",
        "select * from dblink('x', 'drop table t') as a(b int)",
        "exec(0x64726f70207461626c652074)",
    ] {
        assert!(
            lines(text)
                .iter()
                .any(|line| line.starts_with("drop table t")),
            "{text}: {:?}",
            lines(text)
        );
    }
    assert_eq!(lines("select 'drop table t'"), ["select 'drop table t'"]);
}

#[test]
fn names_of_what_is_called_and_used() {
    let of = |text: &str| statements(text).remove(0);
    let calls = |text: &str, name: &str| of(text).calls.iter().any(|call| call == name);
    for (text, name) in [
        ("exec master..xp_cmdshell 'x'", "xp_cmdshell"),
        ("exec @r = xp_cmdshell 'x'", "xp_cmdshell"),
        ("select \"pg_read_file\"('x')", "pg_read_file"),
        ("select a.utl_file.fopen('x')", "fopen"),
    ] {
        assert!(calls(text, name), "{text}");
    }
    let used = of("delete from a.b where c = 1").tables;
    assert!(used.contains(&"a.b".to_owned()));
    assert!(!calls("select pg_sleep from t", "pg_sleep"));
}

#[test]
fn more_than_reading_is_told_from_reading_in_every_dialect() {
    let reads = [
        "select distinct on (a) a, b from t order by a, b desc nulls last",
        "select a, row_number() over (partition by b order by c) from t",
        "select * from t where a ilike '%x%' and b = any(array[1,2])",
        "select json_extract(a, '$.b') from t limit 5, 10",
        "select * from `my-project.data.t` where d between '2024-01-01' and '2024-02-01'",
        "select top (10) [Name] from [dbo].[Orders] with (nolock) where [x] = N'é'",
        "with recursive r as (select 1 as n union all select n + 1 from r where n < 5) select * from r",
        "select case when a > 1 then 'x' else 'y' end as z from t",
        "select * from t tablesample system (1)",
        "select \"insert\", t.\"update\" from t",
        "select 'it''s; drop table t' as a",
        "select count(*) filter (where a) from t group by grouping sets ((a), ())",
        "explain (format json) select 1",
        "show databases",
        "select strftime('%Y', d) from t where a is not null",
        "SELECT a FROM t -- the end;",
        "select /* why */ 1;",
        "select * from t where ts > now() - interval '1 day'",
        "select * from a left join lateral (select * from b where b.x = a.x limit 1) c on true",
    ];
    for text in reads {
        assert_eq!(objection(text), None, "{text}");
    }
    let more = [
        "select 1;select 2",
        "select 1; -- x\n drop table t",
        "with x as (insert into t values (1) returning *) select * from x",
        "with x as (select 1) update t set a = 1",
        "with x as (select 1) select * into y from x",
        "select * from t for share",
        "select * from t for no key update",
        "select * from t lock in share mode",
        "explain analyze update t set a = 1",
        "explain (analyze, buffers) delete from t",
        "select a.nextval from dual",
        "select pg_terminate_backend(1)",
        "select pg_advisory_lock(1)",
        "select set_config('a', 'b', false)",
        "select sleep(5)",
        "select benchmark(1000000, md5(1))",
        "select * from t; \\! id",
        "\\copy t to 'x'",
        ".tables",
        "select load_file('/etc/passwd')",
        "select * from openquery(x, 'delete from t')",
        "select 1 into @a",
        "pragma journal_mode = off",
        "begin; select 1; commit",
        "copy t to stdout",
        "use x",
        "lock table t",
        "vacuum",
        "analyze t",
        "select 'a' 'b",
        "select \"x",
        "select 1 where 'a\\' or 1=1; delete from t; --' = 'x'",
        "select 1 # ; \n; drop table t",
        "select $$ ' $$ ; drop table t -- '",
        "select * from final table (insert into t values (1))",
        "select * from (delete from t returning *) x",
        "merge into t using s on a = b when matched then delete",
        "execute p",
        "call p()",
        "set role x",
        "select * from t exec (@a)",
        "selectx 1",
        "hello",
        "",
        ";",
        "/* nothing */",
    ];
    for text in more {
        assert!(objection(text).is_some(), "{text}");
    }
}

#[test]
fn hostile_texts_take_little_time_and_no_stack() {
    let long = |part: &str, times: usize| part.repeat(times);
    let texts = [
        long("(", 100_000),
        format!("select {}1{}", long("(", 2_000), long(")", 2_000)),
        format!("select * from {}t{}", long("(", 15), long(")", 15)),
        format!("select {}1", long("1+", 60_000)),
        format!("select {}1", long("not ", 20_000)),
        format!("select {}", long("case when ", 1_000)),
        long("select 1 union ", 10_000),
        long("drop table a ", 15_000),
        format!("create x as {}", long("insert into ", 15_000)),
        long(";", 200_000),
        long("a.", 100_000),
        long("$", 200_000),
        long("$a", 100_000),
        long("/*", 100_000),
        long("'", 200_001),
        long("\\", 200_000),
        long("exec('", 30_000),
        format!(
            "delete from t where {}1=1{}",
            long("(", 20_000),
            long(")", 20_000)
        ),
        format!("delete from t where {}1=1", long("1=1 or ", 20_000)),
        format!(
            "select * from t where {}",
            long("a in (select a from (", 15)
        ),
        format!("select {}", long("f(x, ", 14)),
        long("e'\\", 50_000),
        long("\u{3000}\u{a0}x", 30_000),
    ];
    for text in texts {
        let start = std::time::Instant::now();
        let count = read(&text).statements.len();
        let refused = objection(&text).is_some();
        let took = start.elapsed();
        assert!(
            took.as_millis() < 1_500,
            "{took:?} for {:?} ({count}, {refused})",
            text.get(..20)
        );
    }
}
