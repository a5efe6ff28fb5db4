use super::*;

fn content(text: &str) -> Content {
    Content::read(
        &format!(r#"{{"name":"t","description":"{text}"}}"#),
        Kind::Tool,
    )
    .unwrap()
}

fn key() -> Key {
    Key {
        kind: Kind::Tool,
        name: "t".into(),
    }
}

fn seen(pinned: Option<&str>, text: &str, action: ChangeAction) -> ListComparison {
    let classes = if pinned.is_some() {
        vec![ChangeClass::Other]
    } else {
        Vec::new()
    };
    let pinned = pinned.map(content);
    let seen = ListedDefinition {
        key: key(),
        content: content(text),
        pinned,
        classes,
        action,
        is_pending: false,
    };
    ListComparison {
        new_definitions: vec![seen],
        ended_kinds: vec![Kind::Tool],
        ..ListComparison::default()
    }
}

#[test]
fn processes_that_share_a_file_agree() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/lychgate.lock");
    let one = PinStore::open(Some(&path)).unwrap();
    let two = PinStore::open(Some(&path)).unwrap();
    let old = seen(None, "old", ChangeAction::Pass);
    assert_eq!(one.update("up", &old).first_seen, 1);
    // The other process has not seen a list yet. What it sees first is already pinned, so it takes
    // over that pin.
    let new = seen(None, "new", ChangeAction::Pass);
    assert_eq!(two.update("up", &new).first_seen, 0);
    let pins = two.for_upstream("up");
    assert_eq!(pins.get(&key()).unwrap().content, Some(content("old")));
    let changed = seen(Some("old"), "new", ChangeAction::Hold);
    assert_eq!(two.update("up", &changed).events.len(), 1);
    assert_eq!(one.reload().unwrap().unwrap(), [("up".into(), Kind::Tool)]);
    assert_eq!(one.reload().unwrap(), None, "it is read once");
    let pins = one.for_upstream("up");
    let pending = pins.get(&key()).unwrap().pending.as_ref();
    assert_eq!(pending.unwrap().content, content("new"));
    let names: Vec<_> = std::fs::read_dir(path.parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["lychgate.lock"], "nothing else is left behind");
}

#[test]
fn many_at_once_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lychgate.lock");
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let path = &path;
            scope.spawn(move || {
                let store = PinStore::open(Some(path)).unwrap();
                for n in 0..5 {
                    store.update(
                        &format!("up-{writer}-{n}"),
                        &seen(None, "old", ChangeAction::Pass),
                    );
                }
            });
        }
    });
    assert_eq!(LockFile::new(&path).read().unwrap().iter().count(), 20);
}

#[test]
fn what_is_broken_is_neither_used_nor_written_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lychgate.lock");
    let store = PinStore::open(Some(&path)).unwrap();
    store.update("up", &seen(None, "old", ChangeAction::Pass));
    std::fs::write(&path, "[[pin]\n").unwrap();
    let fault = store.reload().unwrap_err().remove(0);
    assert_eq!((fault.line, fault.column), (1, 7), "{fault}");
    let kept = store.update("up", &seen(Some("old"), "new", ChangeAction::Hold));
    assert_eq!(
        (kept.faults.len(), kept.events.len()),
        (1, 1),
        "it holds in memory"
    );
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "[[pin]\n");
    let pins = store.for_upstream("up");
    assert!(pins.get(&key()).unwrap().pending.is_some());
    assert!(PinStore::open(Some(&path)).is_err());
}

#[test]
fn what_is_gone_is_told_once_and_stays_pinned() {
    let store = PinStore::open(None).unwrap();
    store.update("up", &seen(None, "old", ChangeAction::Pass));
    let gone = ListComparison {
        removed: vec![key()],
        ended_kinds: vec![Kind::Tool],
        ..ListComparison::default()
    };
    assert_eq!(
        store.update("up", &gone).events[0].classes,
        [ChangeClass::Gone]
    );
    assert!(store.update("up", &gone).events.is_empty());
    store.update(
        "up",
        &ListComparison {
            ended_kinds: vec![Kind::Tool],
            ..ListComparison::default()
        },
    );
    assert_eq!(store.update("up", &gone).events.len(), 1, "it was back");
    assert!(store.for_upstream("up").get(&key()).is_some());
}
