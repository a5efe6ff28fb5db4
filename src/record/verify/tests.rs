use super::*;

use std::fs;

use crate::config::{AuditConfig, AuditTo, Rotation};
use crate::record::chain::checkpoint::CheckpointLog;
use crate::record::chain::key::SigningKey;
use crate::record::{Event, Recorder};

/// A log of some lines, written and closed.
struct Log {
    folder: tempfile::TempDir,
    path: PathBuf,
}

impl Log {
    fn new(lines: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let log = Self {
            path: folder.path().join("audit.jsonl"),
            folder,
        };
        log.write(lines);
        log
    }

    fn config(&self) -> AuditConfig {
        let rotation = Rotation {
            bytes: 0,
            ..AuditConfig::default().rotation
        };
        AuditConfig {
            to: Some(AuditTo::File(self.path.clone())),
            required: true,
            rotation,
            ..AuditConfig::default()
        }
    }

    fn write(&self, lines: usize) {
        let recorder = Recorder::new(&self.config()).unwrap();
        (0..lines).for_each(|_| recorder.record(Event::Rejected { reason: "host" }).unwrap());
    }

    fn key(&self) -> PublicKey {
        PublicKey::of_file(&self.config().key().unwrap()).unwrap()
    }

    fn text(&self) -> String {
        fs::read_to_string(&self.path).unwrap()
    }

    fn notes(&self) -> PathBuf {
        files::checkpoints(&self.path)
    }

    fn check(&self) -> Report {
        self.check_against(self.key(), Vec::new())
    }

    fn check_against(&self, key: PublicKey, anchors: Vec<PathBuf>) -> Report {
        let keys = vec![key];
        verify(&self.path, &TrustAnchors { keys, anchors }).unwrap()
    }

    /// Writes lines with a new, consistent chain.
    fn rechain(&self, lines: &[String]) {
        let mut head = crate::record::chain::Head::default();
        let mut out = Vec::new();
        for line in lines {
            let object = line
                .rsplit_once(",\"seq\":")
                .map_or(line.as_str(), |(object, _)| object);
            head.append(&format!("{object}}}"), &mut out);
        }
        fs::write(&self.path, out).unwrap();
    }

    fn lines(&self) -> Vec<String> {
        self.text().lines().map(str::to_owned).collect()
    }
}

fn kinds(report: &Report) -> Vec<(Kind, Option<u64>, Option<u64>)> {
    report
        .flaws
        .iter()
        .map(|flaw| (flaw.kind, flaw.line, flaw.seq))
        .collect()
}

#[test]
fn each_way_to_change_a_line_is_named_with_its_place() {
    let log = Log::new(8);
    let whole = log.lines();
    assert_eq!((whole.len(), log.check().is_verified()), (9, true));
    let with = |change: &dyn Fn(&mut Vec<String>)| {
        let mut lines = whole.clone();
        change(&mut lines);
        fs::write(&log.path, lines.join("\n") + "\n").unwrap();
        kinds(&log.check())
    };
    // The only flaw of each.
    let only = |change: &dyn Fn(&mut Vec<String>)| {
        let flaws = with(change);
        assert_eq!(flaws.len(), 1, "{flaws:?}");
        flaws[0]
    };
    use Kind::{Changed, CutOff, Foreign, Gap, Replaced};
    let at = |kind: Kind, line: u64, seq: u64| (kind, Some(line), Some(seq));
    let edited =
        |at: usize| move |lines: &mut Vec<String>| lines[at] = lines[at].replace("host", "hosT");
    assert_eq!(only(&edited(3)), at(Changed, 4, 4));
    assert_eq!(
        with(&|lines| lines[3] = "{}".to_owned())[0],
        at(Foreign, 4, 4)
    );
    assert_eq!(only(&|lines| drop(lines.remove(3))), at(Gap, 4, 4));
    assert_eq!(with(&|lines| lines.swap(3, 4))[0], at(Gap, 4, 4));
    for foreign in ["{\"event\":\"judged\"}", ""] {
        assert_eq!(
            only(&|lines| lines.insert(3, foreign.to_owned())),
            at(Foreign, 4, 4)
        );
    }
    assert_eq!(
        with(&|lines| lines.insert(4, lines[3].clone()))[0],
        at(Foreign, 5, 4)
    );
    assert_eq!(only(&|lines| lines.truncate(5)), at(CutOff, 5, 6));
    assert_eq!(only(&|lines| drop(lines.drain(..3))), at(Gap, 1, 1));
    // No line follows the last one, so its checkpoint detects the change.
    assert_eq!(only(&edited(8)), at(Replaced, 9, 9));
    assert_eq!(with(&|_| {}), []);
}

#[test]
fn a_log_written_anew_is_found_out_by_checkpoints_and_these_by_anchors() {
    let log = Log::new(5);
    let anchors = log.folder.path().join("elsewhere");
    fs::copy(log.notes(), &anchors).unwrap();
    let mut lines = log.lines();
    lines[2] = lines[2].replace("host", "none");
    log.rechain(&lines);
    let report = log.check();
    assert_eq!(
        report.flaws.last().map(|flaw| flaw.kind),
        Some(Kind::Replaced),
        "{:?}",
        report.flaws
    );
    // Without the key: new checkpoints have another signature.
    let key = log.key();
    let fresh = |log: &Log| {
        fs::remove_file(log.notes()).unwrap();
        fs::remove_file(&log.path).unwrap();
        log.write(9);
    };
    let saved = fs::read(log.config().key().unwrap()).unwrap();
    fs::remove_file(log.config().key().unwrap()).unwrap();
    fresh(&log);
    let against = |anchors: Vec<PathBuf>| log.check_against(key, anchors);
    assert!(
        against(Vec::new())
            .flaws
            .iter()
            .all(|flaw| flaw.kind == Kind::Signature)
    );
    assert!(!against(Vec::new()).is_verified());
    // With the key: only checkpoints that have left the machine detect it.
    fs::write(log.config().key().unwrap(), saved).unwrap();
    fresh(&log);
    assert!(against(Vec::new()).is_verified());
    let told = against(vec![anchors.clone()]);
    assert!(
        told.flaws
            .iter()
            .any(|flaw| flaw.kind == Kind::Replaced && flaw.what.contains("an anchor")),
        "{:?}",
        told.flaws
    );
    // The same applies to a log and checkpoints that were cut back to the same point.
    let log = Log::new(5);
    let before = (fs::read(&log.path).unwrap(), fs::read(log.notes()).unwrap());
    log.write(5);
    fs::copy(log.notes(), &anchors).unwrap();
    fs::write(&log.path, before.0).unwrap();
    fs::write(log.notes(), before.1).unwrap();
    assert!(log.check().is_verified(), "the files alone cannot tell");
    let told = log.check_against(log.key(), vec![anchors]);
    assert_eq!(
        told.flaws.last().map(|flaw| flaw.kind),
        Some(Kind::CutOff),
        "{:?}",
        told.flaws
    );
}

#[test]
fn checkpoints_that_are_missing_or_changed_show() {
    let log = Log::new(3);
    log.write(3);
    let notes = fs::read_to_string(log.notes()).unwrap();
    let notes: Vec<String> = notes.lines().map(str::to_owned).collect();
    assert!(notes.len() >= 5, "{notes:?}");
    let with = |lines: &[String]| {
        fs::write(log.notes(), lines.join("\n") + "\n").unwrap();
        kinds(&log.check())
            .into_iter()
            .map(|(kind, line, _)| (kind, line))
            .collect::<Vec<_>>()
    };
    assert_eq!(with(&notes), []);
    assert_eq!(
        with(&[&notes[..1], &notes[2..]].concat()),
        [(Kind::Checkpoint, Some(2))]
    );
    assert_eq!(with(&notes[1..]), [(Kind::Checkpoint, Some(1))]);
    let mut changed = notes.clone();
    changed[1] = changed[1].replace("\"seq\":1", "\"seq\":2");
    assert!(with(&changed).contains(&(Kind::Signature, Some(2))));
    let mut torn = notes.clone();
    torn.insert(2, "{\"time\":\"20".to_owned());
    assert_eq!(with(&torn), [], "what was torn is no tampering");
    fs::write(log.notes(), "garbage\n").unwrap();
    assert!(log.check().flaws[0].what.contains("contains no checkpoint"));
    fs::remove_file(log.notes()).unwrap();
    assert_eq!(kinds(&log.check()), [(Kind::Checkpoint, None, None)]);
    assert!(log.check().flaws[0].what.contains("are missing"));
    let empty = log.folder.path().join("empty");
    fs::write(&empty, "\n").unwrap();
    let anchors = TrustAnchors {
        keys: Vec::new(),
        anchors: vec![empty],
    };
    let told = verify(&log.path, &anchors).unwrap_err().to_string();
    assert!(told.contains("contain no checkpoint"), "{told}");
    let told = verify(log.folder.path(), &TrustAnchors::default())
        .unwrap_err()
        .to_string();
    assert!(told.contains("is a folder"), "{told}");
}

#[test]
fn a_key_that_does_not_count_is_told_once() {
    let log = Log::new(3);
    let other = Log::new(1);
    log.write(3);
    let report = log.check_against(other.key(), Vec::new());
    let strange = report
        .flaws
        .iter()
        .filter(|flaw| flaw.kind == Kind::Signature)
        .count();
    assert!(
        strange == 1 && report.more_flaws == report.checkpoints - 1,
        "{report:?}"
    );
}

#[test]
fn checkpoints_that_were_left_out_for_lines_that_are_gone_are_not_missed() {
    let log = Log::new(0);
    let rotation = Rotation {
        bytes: 300,
        keep_files: Some(1),
        compress: false,
        ..log.config().rotation
    };
    let config = AuditConfig {
        rotation,
        ..log.config()
    };
    let write = |lines: usize| {
        let recorder = Recorder::new(&config).unwrap();
        (0..lines).for_each(|_| recorder.record(Event::Rejected { reason: "host" }).unwrap());
    };
    write(12);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while log
        .check()
        .removed_through
        .is_none_or(|through| through < 4)
    {
        assert!(std::time::Instant::now() < deadline);
        // A starting gate cleans up what the one before it left.
        write(1);
    }
    let notes = CheckpointLog::new(&log.path, SigningKey::open(&config.key().unwrap()).unwrap());
    let before = log.check();
    let removed = log.check().removed_through;
    notes.trim_from(0).unwrap();
    let report = log.check();
    assert!(
        report.is_verified()
            && report.removed_through == removed
            && report.checkpoints < before.checkpoints,
        "{report:?}"
    );
    write(1);
    assert!(log.check().is_verified());
    let text = fs::read_to_string(log.notes()).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    assert!(
        lines[0].contains("\"why\":\"trimmed\"") && lines.len() > 3,
        "{text}"
    );
    let with = |lines: String| {
        fs::write(log.notes(), lines).unwrap();
        kinds(&log.check())
            .first()
            .map(|(kind, line, _)| (*kind, *line))
    };
    assert_eq!(
        with(lines[1..].concat()),
        Some((Kind::Checkpoint, Some(1))),
        "what stands for those that were left out"
    );
    assert_eq!(
        with([&lines[..1], &lines[2..]].concat().concat()),
        Some((Kind::Checkpoint, Some(2)))
    );
    let forged = lines[0].replacen(&format!("\"seq\":{}", removed.unwrap()), "\"seq\":999", 1);
    assert_eq!(
        with(forged + &lines[1..].concat()),
        Some((Kind::Signature, Some(1)))
    );
}

#[test]
fn a_crash_at_any_byte_leaves_a_log_that_verifies_up_to_its_last_whole_line_and_goes_on() {
    let log = Log::new(2);
    let text = fs::read(&log.path).unwrap();
    let key = fs::read(log.config().key().unwrap()).unwrap();
    let notes = fs::read_to_string(log.notes()).unwrap();
    let first_note = notes.split_inclusive('\n').next().unwrap();
    for length in 1..=text.len() {
        let crashed = Log {
            path: log.folder.path().join(format!("{length}/audit.jsonl")),
            folder: tempfile::tempdir().unwrap(),
        };
        fs::create_dir(crashed.path.parent().unwrap()).unwrap();
        fs::write(&crashed.path, &text[..length]).unwrap();
        fs::write(crashed.config().key().unwrap(), &key).unwrap();
        let owners = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        fs::set_permissions(crashed.config().key().unwrap(), owners).unwrap();
        fs::write(crashed.notes(), first_note).unwrap();
        let whole = text[..length].iter().filter(|byte| **byte == b'\n').count() as u64;
        let report = crashed.check();
        assert!(report.is_verified(), "{length}: {:?}", report.flaws);
        let torn = text[length - 1] != b'\n';
        assert_eq!(report.lines, whole, "{length}");
        assert_eq!(report.last_seq.unwrap_or(0), whole, "{length}");
        assert_eq!(
            report
                .torn
                .iter()
                .map(|torn| torn.closed)
                .collect::<Vec<_>>(),
            vec![false; usize::from(torn)],
            "{length}"
        );
        crashed.write(1);
        let report = crashed.check();
        assert!(
            report.is_verified(),
            "{length}: {:?}\n{}",
            report.flaws,
            crashed.text()
        );
        assert!(
            report.torn.iter().all(|torn| torn.closed) && report.lines >= whole + 2,
            "{length}: {report:?}"
        );
    }
}

#[test]
fn a_torn_line_excuses_nothing_else() {
    let log = Log::new(2);
    let mut text = log.text();
    text.push_str("{\"half");
    fs::write(&log.path, &text).unwrap();
    log.write(1);
    let report = log.check();
    assert_eq!(
        report
            .torn
            .iter()
            .map(|torn| (torn.line, torn.bytes, torn.closed))
            .collect::<Vec<_>>(),
        [(4, 6, true)]
    );
    assert!(report.is_verified());
    // Complete lines are not incompletely written ones, though the gate continued after them.
    let (before, foreign) = (log.text(), |report: &Report| {
        report.flaws.iter().any(|flaw| flaw.kind == Kind::Foreign)
    });
    let notes = fs::read(log.notes()).unwrap();
    for forged in [
        "{\"event\":\"judged\"}\n",
        "{\"event\":\"judged\"}\n{\"half",
        "junk\njunk",
        "junk",
    ] {
        fs::write(&log.path, format!("{before}{forged}")).unwrap();
        fs::write(log.notes(), &notes).unwrap();
        assert!(foreign(&log.check()), "{forged}");
        log.write(1);
        assert!(
            foreign(&log.check()) && log.text().contains("\"how\":\"after_foreign\""),
            "{forged}"
        );
    }
    fs::write(&log.path, before).unwrap();
    fs::write(log.notes(), &notes).unwrap();
    let forged = log.text().replace("{\"half\n", "{\"event\":\"judged\"}\n");
    fs::write(&log.path, forged).unwrap();
    assert_eq!(kinds(&log.check()), [(Kind::Foreign, Some(4), Some(4))]);
}
