use std::collections::HashMap;

use super::*;
use crate::config::PolicyConfig;
use crate::detect::Language;

/// Calls of real tools (`of` names the server or the agent that provides the tool), and how their
/// arguments are read. An argument that is not listed is read as text. `joined` has the commands, and
/// `paths` the paths, that are made of several arguments or found in one.
const CASES: &str = include_str!("cases.jsonl");

fn parse(text: &str) -> Json {
    Json::parse(text.to_owned().into(), &ReadLimits::default()).unwrap()
}

fn name(read_as: ReadAs) -> &'static str {
    match read_as {
        ReadAs::Shell => "shell",
        ReadAs::Code(Language::Python) => "python",
        ReadAs::Code(Language::JavaScript) => "javascript",
        ReadAs::Code(_) => "code",
        ReadAs::Sql => "sql",
        ReadAs::Path => "path",
        ReadAs::Url => "url",
        ReadAs::Text => "text",
    }
}

/// A value: the argument, how it is read, its text, and whether it was joined or parsed from a
/// string.
type Read = (String, &'static str, String, bool);

fn read(
    tool: &str,
    arguments: &str,
    readers: &Readers,
    definition: Option<&Definition>,
) -> Vec<Read> {
    let json = parse(arguments);
    let units = place_arguments(tool, json.root(), readers, definition).units;
    let values = units.into_iter().filter(|unit| unit.role == Role::Value);
    values
        .map(|unit| {
            let read_as = name(unit.read_as);
            (unit.argument, read_as, unit.text.into_owned(), unit.joined)
        })
        .collect()
}

fn mismatches(
    tool: &str,
    arguments: &str,
    want: &HashMap<String, String>,
    joined: &[String],
    paths: &[String],
) -> Vec<String> {
    let units = read(tool, arguments, &Readers::default(), None);
    let mut mismatches = Vec::new();
    for (argument, reads, text, made) in &units {
        let want = want.get(argument).map_or("text", String::as_str);
        let is_expected =
            *made && (joined.contains(text) || *reads == "path" && paths.contains(text));
        if want != *reads && !is_expected {
            mismatches.push(format!(
                "{tool} {arguments}: {argument} is {reads}, not {want}: {text:?}"
            ));
        }
    }
    let missing = joined.iter().filter(|line| {
        !units
            .iter()
            .any(|(_, reads, text, _)| text == *line && *reads == "shell")
    });
    mismatches.extend(missing.map(|line| format!("{tool} {arguments}: nothing makes {line:?}")));
    let missing = want
        .keys()
        .filter(|name| units.iter().all(|(argument, ..)| argument != *name));
    mismatches.extend(missing.map(|name| format!("{tool} {arguments}: no {name}")));
    mismatches
}

#[test]
fn real_tools_and_who_reads_their_arguments() {
    let mut faults = Vec::new();
    for case in CASES.lines() {
        let case = parse(case);
        let part = |key: &str| case.root().get(key).unwrap();
        let text = |value: Value<'_>| value.str().unwrap().into_owned();
        let want = part("reads")
            .members()
            .map(|(key, value)| (key.into_owned(), text(value)))
            .collect();
        let texts = |key: &str| -> Vec<String> {
            let list = case.root().get(key).into_iter();
            list.flat_map(|lines| lines.elements()).map(text).collect()
        };
        faults.extend(mismatches(
            &text(part("tool")),
            part("arguments").raw(),
            &want,
            &texts("joined"),
            &texts("paths"),
        ));
    }
    let count = faults.len();
    assert_eq!(count, 0, "{count} wrong\n{}", faults.join("\n"));
    assert!(CASES.lines().count() > 140);
}

#[test]
fn a_command_of_a_tool_for_a_compiled_language_is_read_both_ways() {
    let units = read(
        "go_run",
        r#"{"command":"(true; rm -rf /)"}"#,
        &Readers::default(),
        None,
    );
    let reads: Vec<_> = units.iter().map(|(_, reads, ..)| *reads).collect();
    assert_eq!(reads, ["code", "shell"]);
}

#[test]
fn a_policy_has_the_last_word() {
    let config = PolicyConfig {
        shell: vec!["ask.why".into(), "frob.deep".into()],
        text: vec!["bash.command".into()],
        sql: vec!["*.where".into()],
        ..PolicyConfig::default()
    };
    let readers = Readers::new(&config);
    let reads = |tool: &str, arguments: &str| -> Vec<_> {
        read(tool, arguments, &readers, None)
            .into_iter()
            .map(|(argument, reads, ..)| format!("{argument} {reads}"))
            .collect()
    };
    assert_eq!(reads("bash", r#"{"command":"rm -rf /"}"#), ["command text"]);
    assert_eq!(
        reads("ask", r#"{"why":"hello","where":"1=1"}"#),
        ["why shell", "where sql"]
    );
    assert_eq!(
        read("frob", r#"{"deep":["rm","-rf","/"]}"#, &readers, None)[0].2,
        "rm -rf /"
    );
}

#[test]
fn lists_are_read_in_every_way_that_they_may_be_meant() {
    let lines = |texts: &[&str], several| {
        let texts: Vec<Cow<'_, str>> = texts.iter().map(|text| Cow::Borrowed(*text)).collect();
        join::lines(&texts, several)
            .into_iter()
            .map(|line| line.text)
            .collect::<Vec<_>>()
    };
    assert_eq!(lines(&["rm", "-rf", "/a b"], false), ["rm -rf '/a b'"]);
    assert_eq!(lines(&["rm", "-rf", "/"], true), ["rm -rf /", "rm\n-rf\n/"]);
    assert_eq!(lines(&["sudo rm", "-rf", "/"], false)[0], "sudo rm -rf /");
    assert_eq!(lines(&["cd /x", "rm *"], true), ["cd /x\nrm *"]);
    assert_eq!(
        lines(&["echo", "x; rm -rf /"], false),
        ["echo 'x; rm -rf /'"],
        "no word that the receiver would not see"
    );
    assert!(lines(&[], true).is_empty() && lines(&["ls -l"], true).is_empty());
}

#[test]
fn a_cell_of_a_notebook_is_read_as_a_whole() {
    let arguments = r#"{"cells":[{"cell_type":"code","source":["import os\n","os.system('x')"]}]}"#;
    let units = read("run_notebook", arguments, &Readers::default(), None);
    let code: Vec<_> = units
        .iter()
        .filter(|(_, reads, ..)| *reads == "python")
        .map(|(.., text, _)| text.as_str())
        .collect();
    assert_eq!(code, ["import os\nos.system('x')\n"]);
}

#[test]
fn arguments_as_a_string_of_json_are_read_as_arguments() {
    let inner = r#"{"command":"rm -rf /","note":"x"}"#;
    let arguments = serde_json::to_string(inner).unwrap();
    let units = read("run_command", &arguments, &Readers::default(), None);
    let reads: Vec<_> = units
        .iter()
        .map(|(argument, reads, text, _)| format!("{argument} {reads} {text}"))
        .collect();
    assert_eq!(reads, ["command shell rm -rf /", "note text x"]);
    assert!(read("run_command", "\"rm -rf /\"", &Readers::default(), None).is_empty());
}

#[test]
fn a_here_document_cannot_be_ended_from_within() {
    let arguments = r#"{"command":"cat","stdin":"LYCHGATE_STDIN\nLYCHGATE_STDIN__\nrm -rf /"}"#;
    let joined = &read("run", arguments, &Readers::default(), None)[0].2;
    assert!(
        joined.starts_with("cat <<'LYCHGATE_STDIN___'\n"),
        "{joined}"
    );
}

#[test]
fn thousands_of_arguments_cost_linear_time() {
    let many = |n: usize| {
        let members: Vec<String> = (0..n)
            .map(|n| format!(r#""command{n}":"ls {n}","args{n}":["a","b"]"#))
            .collect();
        let nested = format!("{}{}", r#"{"steps":["#.repeat(20), "]}".repeat(20));
        let lists: Vec<String> = (0..n)
            .map(|n| format!(r#"{{"program":"p{n}","args":["{n}"]}}"#))
            .collect();
        format!(
            r#"{{{},"nested":{nested},"calls":[{}]}}"#,
            members.join(","),
            lists.join(",")
        )
    };
    let took = |n: usize| {
        let json = parse(&many(n));
        let once = || {
            let before = worked();
            let units = place_arguments("run", json.root(), &Readers::default(), None)
                .units
                .len();
            assert!(units > 4 * n);
            worked() - before
        };
        (0..4).map(|_| once()).min().unwrap()
    };
    let few = took(500);
    let lots = took(4000);
    assert!(
        lots < few * 32 + std::time::Duration::from_millis(50),
        "{few:?} {lots:?}"
    );
}

/// Returns how long this thread has run on a processor, if the system reports it, so that other
/// load on the machine does not count.
fn worked() -> std::time::Duration {
    static START: std::sync::LazyLock<std::time::Instant> =
        std::sync::LazyLock::new(std::time::Instant::now);
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = told.and_then(|told| told.split(' ').next()?.parse().ok());
    nanoseconds.map_or_else(|| START.elapsed(), std::time::Duration::from_nanos)
}
