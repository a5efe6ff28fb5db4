//! Splices texts into any message: the result is JSON, contains the new texts in place of the old
//! ones, and keeps every other byte.

use bytes::Bytes;
use lychgate::message::{Edit, Json, ReadLimits, Role, splice};

pub fn fuzz(input: (Vec<u8>, Vec<(u8, String)>)) {
    let (bytes, wishes) = input;
    let limits = ReadLimits::default();
    let Ok(json) = Json::parse(Bytes::from(bytes), &limits) else {
        return;
    };
    let mut spans = Vec::new();
    json.root()
        .strings(|_, found| spans.push((found.span, found.role)));
    let mut edits: Vec<Edit> = Vec::new();
    for (pick, with) in wishes {
        let Some((span, role)) = spans.get(usize::from(pick)) else {
            continue;
        };
        // A new key may be a duplicate; the message would rightly be refused afterwards.
        if *role == Role::Value && edits.iter().all(|edit| edit.span != *span) {
            edits.push(Edit::text(span.clone(), with));
        }
    }
    let spliced =
        splice(json.bytes(), edits.clone()).expect("edits of different strings fit together");
    let again = Json::parse(spliced, &limits).expect("what is spliced is JSON");
    let mut new_spans = Vec::new();
    again
        .root()
        .strings(|_, found| new_spans.push((found.span.clone(), found.value.into_owned())));
    assert_eq!(spans.len(), new_spans.len(), "no string comes or goes");
    let mut old_at = 0;
    let mut new_at = 0;
    for ((old, _), (new, value)) in spans.iter().zip(&new_spans) {
        let Some(edit) = edits.iter().find(|edit| edit.span == *old) else {
            continue;
        };
        assert_eq!(*value, edit.replacement);
        assert_eq!(
            json.bytes()[old_at..old.start],
            again.bytes()[new_at..new.start],
            "bytes between edits stay"
        );
        (old_at, new_at) = (old.end, new.end);
    }
    assert_eq!(
        json.bytes()[old_at..],
        again.bytes()[new_at..],
        "bytes after the last edit stay"
    );
}
