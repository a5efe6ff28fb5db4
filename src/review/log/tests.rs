use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;
use crate::record::entry::member;
use crate::record::entry::object::finding;
use crate::review::Follow;

fn line(n: usize) -> String {
    format!(
        "{{\"time_dt\":\"2026-11-22T10:00:0{n}.000Z\",\"event\":\"judged\",\"audit\":\"{n}\"}}\n"
    )
}

fn pack(path: &Path, text: &str) {
    let mut packer = GzEncoder::new(File::create(path).unwrap(), Compression::fast());
    packer.write_all(text.as_bytes()).unwrap();
    packer.finish().unwrap();
}

/// Returns for each line the id of its entry, or why it cannot be read.
fn told(entries: impl Iterator<Item = Result<Entry, BadLine>>) -> Vec<String> {
    entries
        .map(|entry| {
            entry.map_or_else(
                |bad| format!("{}: {}", bad.line, bad.why),
                |entry| entry.get(member::audit).unwrap().into(),
            )
        })
        .collect()
}

#[test]
fn files_are_read_from_the_oldest_to_the_newest_packed_or_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let at = |name: &str| folder.path().join(format!("audit.jsonl.{name}"));
    pack(&at("20261121T100000000Z-0001.gz"), &(line(1) + &line(2)));
    std::fs::write(at("20261121T100000001Z-0000"), line(3)).unwrap();
    // A file in the middle of compression: the uncompressed one counts.
    std::fs::write(at("20261122T090000000Z-0003"), line(4) + &line(5)).unwrap();
    pack(&at("20261122T090000000Z-0003.gz"), "");
    std::fs::write(&path, line(6)).unwrap();
    for other in [
        "checkpoints",
        "2026x121T100000000Z-0001",
        "20261121T100000000Z-0001.bak",
    ] {
        std::fs::write(at(other), line(9)).unwrap();
    }
    let log = Log::open(&path).unwrap();
    assert_eq!(told(log.entries()), ["1", "2", "3", "4", "5", "6"]);
    assert_eq!(log.files().unwrap().len(), 4);
    let since = log.since(humantime::parse_rfc3339("2026-11-22T08:00:00Z").ok());
    assert_eq!(told(since.entries()), ["4", "5", "6"]);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(
        told(Log::open(&path).unwrap().entries()),
        ["1", "2", "3", "4", "5"]
    );
    assert_eq!(
        Log::open(&folder.path().join("none")).unwrap_err().kind(),
        io::ErrorKind::NotFound
    );
}

#[test]
fn a_bad_line_is_told_and_the_rest_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let long = format!("{{\"event\":\"{}\"}}\n", "x".repeat(MAX_LINE_BYTES));
    let text = line(1) + "not json\n\n[1]\n{\"a\":1}\n" + &long + &line(2) + "{\"event\":\"torn";
    std::fs::write(&path, text).unwrap();
    let told = told(Log::open(&path).unwrap().entries());
    assert_eq!(
        (told[0].as_str(), told[5].as_str(), told.len()),
        ("1", "2", 7),
        "{told:?}"
    );
    for (n, why) in [
        (1, "2: "),
        (2, "4: not an object"),
        (3, "5: `event` is missing"),
        (4, "6: longer than"),
        (6, "8: "),
    ] {
        assert!(told[n].starts_with(why), "{told:?}");
    }
}

#[test]
fn a_spoiled_packed_file_is_told_and_the_next_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let packed = folder
        .path()
        .join("audit.jsonl.20261121T100000000Z-0001.gz");
    pack(&packed, &(1..9).map(line).collect::<String>().repeat(100));
    let bytes = std::fs::read(&packed).unwrap();
    std::fs::write(&packed, &bytes[..bytes.len() / 2]).unwrap();
    std::fs::write(&path, line(1)).unwrap();
    let told = told(Log::open(&path).unwrap().entries());
    assert_eq!(told.last().unwrap(), "1");
    assert!(
        told.iter()
            .any(|told| told.contains(": ") && !told.contains("judged")),
        "{told:?}"
    );
}

#[test]
fn what_is_rotated_while_it_is_read_is_not_missed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    std::fs::write(
        folder.path().join("audit.jsonl.20261121T100000000Z-0001"),
        line(1),
    )
    .unwrap();
    std::fs::write(&path, line(2)).unwrap();
    let mut entries = Log::open(&path).unwrap().entries();
    assert_eq!(told(entries.by_ref().take(1)), ["1"]);
    std::fs::rename(
        &path,
        folder.path().join("audit.jsonl.20261121T110000000Z-0002"),
    )
    .unwrap();
    std::fs::write(&path, line(3)).unwrap();
    assert_eq!(told(entries), ["2", "3"]);
}

#[test]
fn a_line_reads_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let golden = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/snapshots/audit.jsonl"
    ))
    .unwrap()
    .replace("TIME", "2026-11-22T10:00:00.000Z");
    std::fs::write(&path, &golden).unwrap();
    let entries: Vec<Entry> = Log::open(&path)
        .unwrap()
        .entries()
        .map(Result::unwrap)
        .collect();
    assert_eq!(entries.len(), golden.lines().count());
    let first = &entries[0];
    assert_eq!(
        (first.raw(), first.line(), first.file()),
        (golden.lines().next().unwrap(), 1, path.as_path())
    );
    let all = [
        first.get(member::agent),
        first.get(member::upstream),
        first.get(member::tool),
        first.get(member::method),
        first.get(member::direction),
        first.get(member::verdict),
        first.get(member::rule),
    ];
    let all: Vec<String> = all.into_iter().flatten().map(Into::into).collect();
    assert_eq!(
        all,
        [
            "claude",
            "files",
            "shell",
            "tools/call",
            "outbound",
            "block",
            "delete-root"
        ]
    );
    assert!(
        first.time().is_some()
            && first.get(member::would).is_none()
            && first.arguments().unwrap().get("cwd").is_some()
    );
    let found: Vec<String> = first
        .findings()
        .map(|found| {
            format!(
                "{} {} {} {}",
                found.text(finding::rule),
                found.text(finding::action),
                found.text(finding::at),
                found.text(finding::reading)
            )
        })
        .collect();
    assert_eq!(found, ["delete-root block /params/arguments/command raw"]);
    assert_eq!(
        (first.event().as_ref(), first.get(member::bytes)),
        ("judged", Some(164))
    );
}

/// Returns lines that form a valid chain, each with the digest of the one before.
fn chained(last: &mut (u64, String), lines: std::ops::Range<usize>) -> String {
    use sha2::{Digest, Sha256};
    let mut out = String::new();
    for n in lines {
        let line = line(n);
        let seq = last.0 + 1;
        let prev = &last.1;
        let line = format!(
            "{},\"seq\":{seq},\"prev\":\"{prev}\"}}",
            line.trim_end().trim_end_matches('}')
        );
        *last = (seq, format!("{:x}", Sha256::digest(&line)));
        out += &(line + "\n");
    }
    out
}

#[test]
fn files_that_others_put_aside_are_read_in_the_order_of_their_lines() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let at = |name: &str| folder.path().join(format!("audit.jsonl{name}"));
    let mut last = (0, "0".repeat(64));
    // The numbering of logrotate: the oldest file has the highest number.
    pack(&at(".2.gz"), &chained(&mut last, 1..3));
    std::fs::write(at(".1"), chained(&mut last, 3..5)).unwrap();
    std::fs::write(at(".20261122T090000000Z-0000"), chained(&mut last, 5..6)).unwrap();
    std::fs::write(&path, chained(&mut last, 6..8)).unwrap();
    let log = Log::open(&path).unwrap();
    assert_eq!(told(log.entries()), ["1", "2", "3", "4", "5", "6", "7"]);
    let mut follow = Follow::new(&path);
    assert_eq!(told(std::iter::from_fn(|| follow.poll())), ["6", "7"]);
    let error = Log::open(folder.path()).unwrap_err();
    assert!(error.to_string().contains("is a folder"), "{error}");
}

#[test]
fn what_the_gate_did_not_write_is_no_line_of_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let mut last = (0, "0".repeat(64));
    let one = chained(&mut last, 1..3);
    let two = chained(&mut last, 3..5);
    let mut own = (7, "0".repeat(64));
    std::fs::write(&path, one + &line(8) + &chained(&mut own, 9..10) + &two).unwrap();
    let mut follow = Follow::new(&path);
    for told in [
        told(Log::open(&path).unwrap().entries()),
        told(std::iter::from_fn(|| follow.poll())),
    ] {
        assert_eq!(
            (told[0].as_str(), told[1].as_str(), told.len()),
            ("1", "2", 8),
            "{told:?}"
        );
        assert!(
            told[2].starts_with("3: not a line that the gate wrote"),
            "{told:?}"
        );
        assert!(
            told[3].starts_with("4: the chain is broken before this line") && told[4] == "9",
            "{told:?}"
        );
        assert!(
            told[5].starts_with("5: the chain is broken before this line")
                && told[6..] == ["3", "4"],
            "{told:?}"
        );
    }
}

#[test]
fn what_keeps_a_log_from_being_read_is_told_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut follow = Follow::new(folder.path());
    assert!(
        follow.poll().is_some_and(|told| told.is_err())
            && follow.poll().is_none()
            && follow.poll().is_none()
    );
}
