use super::*;

use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use prometheus::IntCounter;

use crate::config::AuditTo;
use crate::record::PublicKey;
use crate::record::chain::files;
use crate::record::verify::{Kind, Report, TrustAnchors, verify};

fn counts() -> Counts {
    let counter = || IntCounter::new("n", "n").unwrap();
    Counts {
        written: counter(),
        dropped: counter(),
        failed: counter(),
        checkpoints_written: counter(),
        checkpoints_failed: counter(),
        anchored: counter(),
        anchors_failed: counter(),
        cut: counter(),
        foreign: counter(),
        deleted: counter(),
        rotated: counter(),
        removed: counter(),
    }
}

fn config(path: &Path, required: bool) -> AuditConfig {
    AuditConfig {
        to: Some(AuditTo::File(path.to_owned())),
        required,
        ..AuditConfig::default()
    }
}

fn sink(path: &Path, required: bool) -> Sink {
    Sink::new(&config(path, required), counts()).unwrap()
}

fn write(sink: &Sink, line: &str) {
    sink.write(format!("{line}\n"), 1).wait().unwrap();
}

fn checked(log: &Path) -> Report {
    against(log, Vec::new())
}

fn against(log: &Path, anchors: Vec<PathBuf>) -> Report {
    let keys = vec![PublicKey::of_file(&AuditConfig::key_beside(log)).unwrap()];
    verify(log, &TrustAnchors { keys, anchors }).unwrap()
}

fn sound(log: &Path) -> Report {
    let report = checked(log);
    assert!(report.is_verified(), "{:#?}", report.flaws);
    report
}

/// A folder, and the path of a log in it.
fn log_path() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    (folder, path)
}

/// Polls a condition until it holds.
fn until(holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < deadline, "it takes too long");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the lines of a file without their links.
fn unchained_lines(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| {
            line.rsplit_once(",\"seq\":")
                .map_or("?", |(before, _)| before)
                .to_owned()
        })
        .collect()
}

fn opened_as(line: &str) -> Option<&str> {
    line.split_once("\"how\":\"")?.1.split('"').next()
}

#[test]
fn lines_hang_together_over_restarts_and_the_files_are_the_owners_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/er/audit.jsonl");
    for required in [true, false, true] {
        let sink = sink(&path, required);
        write(&sink, "{\"a\":1}");
        sink.write("{\"a\":2}\n{\"a\":3}\n".to_owned(), 2)
            .wait()
            .unwrap();
        sink.flush();
        assert_eq!(sink.counts.written.get(), 3);
        assert_eq!(sink.counts.failed.get(), 0);
    }
    let lines = unchained_lines(&path);
    let how: Vec<_> = lines
        .iter()
        .map(|line| opened_as(line).unwrap_or(line))
        .collect();
    assert_eq!(
        how[..5],
        ["new", "{\"a\":1", "{\"a\":2", "{\"a\":3", "continued"]
    );
    assert_eq!(how.len(), 12);
    let report = sound(&path);
    assert_eq!(report.lines, 12);
    assert_eq!(report.last_seq, Some(12));
    assert_eq!(report.vouched_through, Some(12));
    assert!(
        report.checkpoints >= 7 && report.signed == report.checkpoints && report.torn.is_empty()
    );
    for name in ["audit.jsonl", "audit.jsonl.checkpoints", "audit.jsonl.key"] {
        let mode = fs::metadata(path.with_file_name(name))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    assert_eq!(
        fs::metadata(path.parent().unwrap())
            .unwrap()
            .permissions()
            .mode()
            & 0o777,
        0o700
    );
}

#[test]
fn a_file_that_was_moved_or_deleted_is_left_and_the_chain_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    for required in [true, false] {
        let path = folder.path().join(format!("{required}.jsonl"));
        let sink = sink(&path, required);
        write(&sink, "{\"old\":1}");
        sink.flush();
        let moved = files::with_suffix(&path, ".1");
        fs::rename(&path, &moved).unwrap();
        sink.reopen().unwrap();
        write(&sink, "{\"new\":1}");
        sink.flush();
        assert_eq!(unchained_lines(&moved).last().unwrap(), "{\"old\":1");
        let lines = unchained_lines(&path);
        assert_eq!(opened_as(&lines[0]), Some("reopened"));
        assert_eq!(lines[1].as_str(), "{\"new\":1");
        assert_eq!(sound(&path).lines, 4);
        fs::remove_file(&path).unwrap();
        write(&sink, "{\"newer\":1}");
        sink.flush();
        assert_eq!(unchained_lines(&path).last().unwrap(), "{\"newer\":1");
        assert_eq!(
            opened_as(&unchained_lines(&path)[0]),
            Some("after_deletion")
        );
        assert_eq!((sink.counts.deleted.get(), sink.counts.cut.get()), (1, 0));
        let gap = checked(&path);
        assert_eq!(
            gap.flaws.first().map(|flaw| (flaw.kind, flaw.seq)),
            Some((Kind::Gap, Some(3))),
            "{:?}",
            gap.flaws
        );
    }
}

#[test]
fn a_file_that_was_packed_or_that_others_have_gone_on_from_was_not_deleted() {
    let (_folder, path) = log_path();
    let idle = sink(&path, true);
    let busy = sink(&path, true);
    write(&idle, "{}");
    // As logrotate does if it compresses at once.
    let packed = files::with_suffix(&path, ".1.gz");
    let mut encoder = flate2::write::GzEncoder::new(
        fs::File::create(&packed).unwrap(),
        flate2::Compression::fast(),
    );
    encoder
        .write_all(&fs::read(&path).unwrap())
        .and_then(|()| encoder.finish())
        .unwrap();
    fs::remove_file(&path).unwrap();
    write(&idle, "{}");
    assert_eq!(opened_as(&unchained_lines(&path)[0]), Some("reopened"));
    // As another process does that keeps few files.
    fs::remove_file(&packed).unwrap();
    (0..3).for_each(|_| write(&busy, "{}"));
    fs::rename(&path, files::with_suffix(&path, ".2")).unwrap();
    write(&busy, "{}");
    fs::remove_file(files::with_suffix(&path, ".2")).unwrap();
    write(&idle, "{}");
    assert_eq!(idle.counts.deleted.get(), 0);
    assert_eq!(busy.counts.deleted.get(), 0);
}

#[test]
fn a_log_that_is_required_says_when_it_cannot_be_told_and_when_it_can_again() {
    let (_folder, path) = log_path();
    let sink = sink(&path, true);
    assert!(sink.can_record());
    // A folder in place of the file, so that nobody can write to it.
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(sink.write("{}\n".to_owned(), 1).wait().is_err() && !sink.can_record());
    fs::remove_dir(&path).unwrap();
    // It tries by itself.
    until(|| sink.can_record());
    assert!(
        unchained_lines(&path)
            .iter()
            .any(|line| line.contains("not_written")),
        "{:?}",
        unchained_lines(&path)
    );
}

#[test]
fn a_log_that_was_moved_away_between_two_runs_goes_on() {
    let (_folder, path) = log_path();
    write(&sink(&path, true), "{}");
    fs::rename(&path, files::with_suffix(&path, "-20261122")).unwrap();
    write(&sink(&path, true), "{}");
    let report = sound(&path);
    assert_eq!(report.files.len(), 2);
    assert_eq!(report.lines, 4);
    assert_eq!(report.first_seq, Some(1));
}

#[test]
fn a_shared_log_that_is_moved_goes_on_after_the_last_line_of_any() {
    let (_folder, path) = log_path();
    let one = sink(&path, true);
    let other = sink(&path, true);
    write(&one, "{}");
    (0..5).for_each(|_| write(&other, "{}"));
    fs::rename(&path, files::with_suffix(&path, ".1")).unwrap();
    // This process has not seen the lines of the other.
    write(&one, "{}");
    write(&other, "{}");
    drop((one, other));
    let report = sound(&path);
    assert_eq!(report.files.len(), 2, "{report:?}");
    assert_eq!(report.first_seq, Some(1), "{report:?}");
}

#[test]
fn several_processes_may_share_a_log() {
    let (_folder, path) = log_path();
    let mut config = config(&path, true);
    config.rotation.bytes = 1 << 16;
    config.checkpoint_lines = 50;
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                // Each has files and locks of its own, as another process would.
                let sink = Sink::new(&config, counts()).unwrap();
                (0..300).for_each(|n| {
                    write(
                        &sink,
                        &format!("{{\"n\":{n},\"pad\":\"{}\"}}", "x".repeat(80)),
                    )
                });
            });
        }
    });
    let report = sound(&path);
    assert!(
        report.lines >= 1204 && report.files.len() >= 3,
        "{} lines, {} files",
        report.lines,
        report.files.len()
    );
}

#[test]
fn files_are_put_aside_packed_and_removed() {
    let (folder, path) = log_path();
    let mut config = config(&path, false);
    config.rotation.bytes = 4096;
    let sink = Sink::new(&config, counts()).unwrap();
    let fill = |sink: &Sink, files: u64| {
        let before = sink.counts.rotated.get();
        while sink.counts.rotated.get() < before + files {
            sink.write(
                format!("{{\"pad\":\"{}\"}}\n", "x".repeat(500)).repeat(4),
                4,
            )
            .wait()
            .unwrap();
            sink.flush();
        }
    };
    let packed = || {
        files::rotated_files(&path)
            .unwrap()
            .iter()
            .filter(|path| path.extension().is_some_and(|end| end == "gz"))
            .count()
    };

    fill(&sink, 4);
    until(|| packed() == 4);
    assert_eq!(
        files::siblings(&path).unwrap().len(),
        4,
        "the plain ones are gone"
    );
    drop(sink);
    let report = sound(&path);
    assert_eq!(report.files.len(), 5);
    assert_eq!(report.first_seq, Some(1));
    assert_eq!(report.removed_through, None);
    // A file removed by another program is reported missing by its name.
    let aside = files::rotated_files(&path).unwrap();
    let away = folder.path().join("away");
    fs::rename(&aside[1], &away).unwrap();
    let missing = checked(&path);
    assert_eq!(missing.flaws.len(), 1, "{:?}", missing.flaws);
    let name = aside[1]
        .file_name()
        .unwrap()
        .to_string_lossy()
        .replace(".gz", "");
    assert!(
        missing.flaws[0].kind == Kind::MissingFile && missing.flaws[0].what.contains(&name),
        "{:?}",
        missing.flaws
    );
    fs::rename(&away, &aside[1]).unwrap();
    // One that the gate removes is not.
    config.rotation.keep_files = Some(2);
    let sink = Sink::new(&config, counts()).unwrap();
    until(|| files::rotated_files(&path).unwrap().len() == 2);
    drop(sink);
    let report = sound(&path);
    assert!(
        report.first_seq > Some(1)
            && report.removed_through == report.first_seq.map(|first| first - 1),
        "{report:?}"
    );
    fs::remove_file(&files::rotated_files(&path).unwrap()[0]).unwrap();
    assert!(
        !checked(&path).is_verified(),
        "a note for some files is none for others"
    );
}

#[test]
fn a_file_is_put_aside_for_its_age_and_removed_for_age_and_bytes() {
    let (_folder, path) = log_path();
    let mut config = config(&path, true);
    config.rotation = crate::config::Rotation {
        bytes: 0,
        age: Duration::from_millis(30),
        compress: false,
        ..config.rotation
    };
    let sink = Sink::new(&config, counts()).unwrap();
    for _ in 0..4 {
        std::thread::sleep(Duration::from_millis(60));
        write(&sink, &format!("{{\"pad\":\"{}\"}}", "x".repeat(2000)));
    }
    drop(sink);
    let aside = files::rotated_files(&path).unwrap();
    assert_eq!(
        (aside.len(), sound(&path).files.len()),
        (4, 5),
        "before each line there was one to put aside"
    );
    config.rotation.age = Duration::ZERO;
    let left_with = |change: &dyn Fn(&mut crate::config::Rotation), left: usize| {
        let mut config = config.clone();
        change(&mut config.rotation);
        let _sink = Sink::new(&config, counts()).unwrap();
        until(|| files::rotated_files(&path).unwrap().len() <= left);
    };
    let keep_bytes =
        Some(fs::metadata(&path).unwrap().len() + fs::metadata(&aside[3]).unwrap().len() + 1000);
    left_with(&|rotation| rotation.keep_bytes = keep_bytes, 1);
    assert_eq!(
        files::rotated_files(&path).unwrap(),
        [aside[3].clone()],
        "the oldest go"
    );
    sound(&path);
    left_with(
        &|rotation| rotation.keep_age = Some(Duration::from_millis(1)),
        0,
    );
    let report = sound(&path);
    assert_eq!(
        report.removed_through,
        report.first_seq.map(|first| first - 1),
        "{report:?}"
    );
}

#[test]
fn packing_can_be_broken_off_anywhere() {
    let (_folder, path) = log_path();
    let mut config = config(&path, true);
    config.rotation = crate::config::Rotation {
        bytes: 300,
        compress: false,
        ..config.rotation
    };
    let first = Sink::new(&config, counts()).unwrap();
    (0..20).for_each(|_| write(&first, "{\"a\":\"aaaaaaaaaaaaaaaaaaaaaaaa\"}"));
    drop(first);
    let aside = files::rotated_files(&path).unwrap();
    assert!(aside.len() >= 3, "{aside:?}");
    // As if it had ended while it compressed one file, and just before it removed the plain one of
    // another.
    fs::write(files::with_suffix(&aside[0], ".packing"), "half").unwrap();
    fs::write(files::with_suffix(&aside[1], files::GZ_SUFFIX), "whole").unwrap();
    sound(&path);
    config.rotation.compress = true;
    drop(Sink::new(&config, counts()).unwrap());
    let plain = |path: &PathBuf| path.extension().is_none_or(|end| end != "gz");
    until(|| !files::rotated_files(&path).unwrap().iter().any(plain));
    assert_eq!(sound(&path).files.len(), aside.len() + 1);
    assert!(!files::with_suffix(&aside[0], ".packing").exists());
}

#[test]
fn a_log_that_is_required_and_full_refuses() {
    // Every write to /dev/full fails as on a full disk (full(4)).
    let full = sink(Path::new("/dev/full"), true);
    let error = full.write("{}\n".to_owned(), 1).wait().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    assert_eq!(full.counts.failed.get(), 1);
    assert_eq!(full.counts.written.get(), 0);
    let lenient = sink(Path::new("/dev/full"), false);
    lenient.write("{}\n".to_owned(), 1).wait().unwrap();
    lenient.flush();
    assert_eq!(lenient.counts.failed.get(), 1);
}

#[test]
fn what_cannot_be_a_log_is_refused_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let opened = |path: &Path| {
        Sink::new(&config(path, false), counts())
            .map(|_| ())
            .map_err(|error| error.to_string())
    };
    let told = opened(folder.path()).unwrap_err();
    assert_contains!(
        told,
        "not a regular file",
        &*folder.path().to_string_lossy()
    );
    assert_contains!(
        opened(Path::new("/proc/none/audit.jsonl")).unwrap_err(),
        "/proc/none"
    );
    let path = folder.path().join("audit.jsonl");
    fs::write(AuditConfig::key_beside(&path), "no key").unwrap();
    assert!(opened(&path).unwrap_err().contains("audit.jsonl.key"));
}

#[test]
fn a_full_queue_drops_and_counts_and_never_waits_and_the_log_says_so() {
    let (jobs, queue) = queue(1);
    let shared = Arc::new(Shared::default());
    let mut sink = Sink {
        to: Some((jobs, shared.clone())),
        required: false,
        counts: counts(),
    };
    sink.write("{}\n".to_owned(), 1).wait().unwrap();
    sink.write("{}\n".to_owned(), 1).wait().unwrap();
    sink.write("x".repeat(QUEUED_BYTES + 1), 3).wait().unwrap();
    assert_eq!(sink.counts.dropped.get(), 4);
    assert_eq!(sink.reopen().unwrap_err().kind(), io::ErrorKind::WouldBlock);
    sink.required = true;
    assert_eq!(
        sink.write("{}\n".to_owned(), 1).wait().unwrap_err().kind(),
        io::ErrorKind::WouldBlock
    );
    let (_folder, path) = log_path();
    let to = AuditTo::File(path.clone());
    let writer = Writer::open(&config(&path, false), &to, shared, counts()).unwrap();
    let thread = std::thread::spawn(move || writer.run(queue));
    drop(sink);
    thread.join().unwrap();
    let lines = unchained_lines(&path);
    assert_contains!(lines[1], "\"event\":\"log_lost\"", "\"lines\":5");
}

#[test]
fn lines_of_before_there_was_a_chain_are_kept_by_themselves() {
    let (folder, path) = log_path();
    fs::write(&path, "{\"event\":\"judged\"}\n").unwrap();
    write(&sink(&path, true), "{}");
    assert_eq!(sound(&path).lines, 2);
    let mut files = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let kept = files
        .find(|path| path.to_string_lossy().contains("before-chain"))
        .unwrap();
    assert_eq!(
        fs::read_to_string(kept).unwrap(),
        "{\"event\":\"judged\"}\n"
    );
}

/// Returns the line before the last one, without its link.
fn before_last(path: &Path) -> String {
    unchained_lines(path).into_iter().nth_back(1).unwrap()
}

#[test]
fn a_log_cut_short_while_the_gate_runs_shows() {
    let (_folder, path) = log_path();
    let sink = sink(&path, true);
    (0..3).for_each(|_| write(&sink, "{}"));
    let text = fs::read_to_string(&path).unwrap();
    let cut = text.lines().next().unwrap().len() as u64 + 1;
    OpenOptions::new()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(cut)
        .unwrap();
    write(&sink, "{}");
    assert_eq!(opened_as(&before_last(&path)), Some("after_cut"));
    OpenOptions::new()
        .append(true)
        .open(&path)
        .unwrap()
        .write_all(b"{\"forged\":1}\n")
        .unwrap();
    write(&sink, "{}");
    assert_eq!(opened_as(&before_last(&path)), Some("after_foreign"));
    assert_eq!(sink.counts.cut.get(), 1);
    assert_eq!(sink.counts.foreign.get(), 1);
    assert_eq!(sink.counts.deleted.get(), 0);
    drop(sink);
    assert_eq!(checked(&path).flaws[0].kind, Kind::Gap);
}

#[test]
fn checkpoints_are_told_to_a_program_and_to_an_address() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let kept = folder.path().join("kept");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut config = config(&path, true);
    config.checkpoint_lines = 2;
    config.anchor.command = ["sh", "-c", "cat >> \"$0\"", &kept.to_string_lossy()]
        .map(str::to_owned)
        .to_vec();
    config.anchor.url = Some(format!("http://{}/keep", listener.local_addr().unwrap()));
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(5)))
            .unwrap();
        let mut seen = String::new();
        let mut buffer = [0; 4096];
        while !seen.ends_with("}\n") {
            let read = stream.read(&mut buffer).unwrap();
            seen.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
        }
        stream
            .write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n")
            .unwrap();
        seen
    });
    let sink = Sink::new(&config, counts()).unwrap();
    let seen = server.join().unwrap();
    assert!(
        seen.starts_with("POST /keep ") && seen.contains("\"why\":\"opened\""),
        "{seen}"
    );
    (0..4).for_each(|_| write(&sink, "{}"));
    sink.flush();
    assert!(
        sink.counts.anchored.get() == 1 && sink.counts.anchors_failed.get() >= 2,
        "the address is gone after the first"
    );
    drop(sink);
    let anchors = fs::read_to_string(&kept).unwrap();
    assert!(anchors.lines().count() >= 3, "{anchors}");
    let report = against(&path, vec![kept]);
    assert!(
        report.is_verified() && report.anchors as usize == anchors.lines().count(),
        "{report:?}"
    );
}

#[test]
fn an_anchor_that_hangs_or_fails_holds_nothing_up() {
    let folder = tempfile::tempdir().unwrap();
    for command in [
        ["sh", "-c", "sleep 60"],
        ["sh", "-c", "echo no >&2; exit 3"],
        ["/none/such", "", ""],
    ] {
        let path = folder.path().join("audit.jsonl");
        let mut config = config(&path, true);
        config.anchor.command = command.map(str::to_owned).to_vec();
        config.anchor.timeout = Duration::from_millis(300);
        let sink = Sink::new(&config, counts()).unwrap();
        let started = Instant::now();
        write(&sink, "{}");
        assert!(started.elapsed() < Duration::from_secs(5));
        sink.flush();
        assert!(sink.counts.anchors_failed.get() >= 1, "{command:?}");
    }
}
