//! What an answer costs and keeps on its way to the agent.

use super::caps::Rest;
use crate::message::{Edit, Envelope, Message, Path, Role, Step, Value, ValueKind};

/// What becomes of an answer besides what was found in it.
#[derive(Clone, Debug, Default)]
pub struct Delivery {
    /// Text of results that the size cap cut off, in bytes.
    pub cut_bytes: usize,
    /// What was cut off and is kept, for the agent to read on.
    pub rests: Vec<Rest>,
    /// The limits that were hit, by name.
    pub hit: Vec<&'static str>,
    /// Characters of the texts that the agent gets, counted by [`quarter_tokens`].
    pub(super) quarter_tokens: usize,
    /// Digests in `_meta` that do not fit what is left, as JSON pointers.
    pub broken_digests: Vec<String>,
}

impl Delivery {
    /// What the texts of an answer cost a model to read, about: for each four ASCII characters a token, and for each other
    /// character one. Within a fifth or so of what current models count for English prose and JSON.
    pub fn tokens(&self) -> usize {
        self.quarter_tokens.div_ceil(4)
    }
}

/// An estimate of what a text costs, in quarters of a token.
pub(super) fn quarter_tokens(text: &str) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    let ascii = text.bytes().filter(u8::is_ascii).count();
    ascii + 4 * (text.chars().count() - ascii)
}

/// Most broken digests that are named.
const DIGESTS: usize = 16;
/// Words in the names of members that hold a digest, or a signature over one.
const WORDS: [&str; 9] = [
    "digest",
    "sha1",
    "sha256",
    "sha384",
    "sha512",
    "hash",
    "checksum",
    "signature",
    "integrity",
];

/// The digests of parts of an answer that `edits` change: those in the `_meta` of whatever holds an edit. They are not
/// touched; whoever checks them finds that the gate changed something, and the audit log says so.
pub(super) fn broken_digests(
    message: &Message,
    envelope: &Envelope,
    edits: &[Edit],
    at: impl Fn(&Path<'_>) -> String,
) -> Vec<String> {
    let mut broken = Vec::new();
    if edits.is_empty() {
        return broken;
    }
    let mut starts: Vec<usize> = edits.iter().map(|edit| edit.span.start).collect();
    starts.sort_unstable();
    let edited = |value: Value<'_>| {
        let span = value.span();
        starts
            .get(starts.partition_point(|start| *start < span.start))
            .is_some_and(|start| *start < span.end)
    };
    let mut holders: Vec<Value<'_>> = Vec::new();
    message.value(envelope).walk(|path, value, role| {
        if matches!(value.kind(), ValueKind::Object | ValueKind::Array) {
            holders.truncate(path.len());
            holders.push(value);
        }
        if role == Role::Key || value.kind() != ValueKind::String || broken.len() >= DIGESTS {
            return;
        }
        let Some(Step::Key(name)) = path.last().filter(|step| names_digest(step)) else {
            return;
        };
        let meta = path
            .iter()
            .position(|step| matches!(step, Step::Key(key) if key == "_meta"));
        if !name.is_empty()
            && meta
                .and_then(|meta| holders.get(meta))
                .is_some_and(|holder| edited(*holder))
        {
            broken.push(at(path));
        }
    });
    broken
}

fn names_digest(step: &Step<'_>) -> bool {
    let Step::Key(name) = step else { return false };
    let name = name.to_ascii_lowercase().replace(['-', '_'], "");
    WORDS.iter().any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::ReadLimits;

    #[test]
    fn tokens_are_estimated_by_characters() {
        let of = |text: &str| {
            Delivery {
                quarter_tokens: quarter_tokens(text),
                ..Delivery::default()
            }
            .tokens()
        };
        assert_eq!(
            (
                of(""),
                of("a"),
                of("four"),
                of("The quick brown fox."),
                of("日本語"),
                of("é")
            ),
            (0, 1, 1, 5, 3, 1)
        );
    }

    #[test]
    fn digests_of_what_is_edited_are_named() {
        let text = r#"{"jsonrpc":"2.0","id":1,"result":{"_meta":{"x/sha256":"aa","note":"b"},"contents":[
            {"text":"one","_meta":{"skill":{"Content-Digest":"cc"}}},{"text":"two","_meta":{"digest":"dd"}}]}}"#;
        let message = Message::parse(text.into(), &ReadLimits::default()).unwrap();
        let envelope = message.single().unwrap();
        let at = text.find("two").unwrap();
        let broken =
            |edits: &[Edit]| broken_digests(&message, envelope, edits, crate::message::pointer);
        assert_eq!(
            broken(&[Edit::text(at..at + 3, "x")]),
            ["/result/_meta/x~1sha256", "/result/contents/1/_meta/digest"]
        );
        assert!(broken(&[]).is_empty());
    }
}
