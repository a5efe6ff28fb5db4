//! The size of a response on its way to the agent, and the text that is cut off and stored.

use super::truncate::Remainder;
use crate::message::{Edit, Envelope, Message, Path, Role, Step, Value, ValueKind};

/// What happens to a response in addition to its findings.
#[derive(Clone, Debug, Default)]
pub struct ResultSize {
    /// Number of bytes of result text that the size cap cut off.
    pub cut_bytes: usize,
    /// Text that was cut off and is stored, for the agent to read on.
    pub remainders: Vec<Remainder>,
    /// The names of the limits that were exceeded.
    pub exceeded_limits: Vec<&'static str>,
    /// The size of the texts that the agent receives, computed by [`quarter_tokens`].
    pub(super) quarter_tokens: usize,
    /// Digests in `_meta` that no longer match the edited content, as JSON pointers.
    pub broken_digests: Vec<String>,
}

impl ResultSize {
    /// Returns about how many tokens a model needs to read the texts of a response: one for every
    /// four ASCII characters, and one for each other character. Within a fifth or so of what
    /// current models count for English prose and JSON.
    pub fn tokens(&self) -> usize {
        self.quarter_tokens.div_ceil(4)
    }
}

/// Estimates the size of a text, in quarters of a token.
pub(super) fn quarter_tokens(text: &str) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    let ascii = text.bytes().filter(u8::is_ascii).count();
    ascii + 4 * (text.chars().count() - ascii)
}

/// Maximum number of broken digests that are reported.
const DIGESTS: usize = 16;
/// Words in the names of members that contain a digest, or a signature over one.
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

/// Returns the digests of parts of a response that `edits` change: those in the `_meta` of any
/// object that contains an edit. They are not modified: a receiver that verifies them finds that
/// the gate changed something, and the audit log records it.
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
    let is_edited = |value: Value<'_>| {
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
                .is_some_and(|holder| is_edited(*holder))
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
            ResultSize {
                quarter_tokens: quarter_tokens(text),
                ..ResultSize::default()
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
