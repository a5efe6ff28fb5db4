//! Compares the strict JSON reader with serde_json: serde_json accepts each message that the strict
//! reader accepts, and reads the same strings; the strict reader accepts each message that
//! serde_json writes.

use bytes::Bytes;
use lychgate::message::{Json, ReadLimits};
use serde_json::Value;

pub fn fuzz(input: &[u8]) {
    let limits = ReadLimits::default();
    let theirs = serde_json::from_slice::<Value>(input);
    if let Ok(json) = Json::parse(Bytes::copy_from_slice(input), &limits) {
        // Numbers beyond the range of a double are kept as written here and refused there.
        if let Ok(value) = &theirs {
            assert_eq!(ours(&json), strings(value));
        } else {
            assert!(
                theirs.is_err_and(|error| error.to_string().contains("number out of range")),
                "only the strict reader takes it"
            );
        }
    } else if let Ok(value) = theirs {
        // The strict reader refuses what serde_json tolerates; once serde_json has written the
        // value again, without duplicate keys, the strict reader must accept it.
        let written = serde_json::to_vec(&value).expect("a value is written");
        match Json::parse(Bytes::from(written), &limits) {
            Ok(json) => assert_eq!(ours(&json), strings(&value)),
            Err(error) => assert!(error.limit().is_some(), "{error}"),
        }
    }
}

fn ours(json: &Json) -> Vec<String> {
    let mut all = Vec::new();
    json.root().strings(|_, found| {
        assert!(
            json.bytes().get(found.span.clone()).is_some(),
            "a span lies in the message"
        );
        all.push(found.value.into_owned());
    });
    all.sort();
    all
}

/// Returns all keys and string values, without recursion.
fn strings(value: &Value) -> Vec<String> {
    let mut all = Vec::new();
    let mut left = vec![value];
    while let Some(value) = left.pop() {
        match value {
            Value::String(text) => all.push(text.clone()),
            Value::Array(items) => left.extend(items),
            Value::Object(members) => {
                all.extend(members.keys().cloned());
                left.extend(members.values());
            }
            _ => {}
        }
    }
    all.sort();
    all
}
