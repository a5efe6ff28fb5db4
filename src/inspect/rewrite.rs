//! How the text of a string changes when parts of it are withheld.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::detect::Surface;
use crate::protocol::AuditId;

/// What happens to a string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The string is unchanged.
    Keep,
    /// The string is replaced by this text.
    Replace(String),
    /// The whole block that contains the string is replaced by this notice.
    Withhold(String),
}

/// Replaces a passage that is withheld.
pub(super) const MARK: &str = "[withheld]";

/// Prefix of the mark of a redaction; the rule follows.
const REDACTED: &str = "[redacted: ";

/// Returns the mark that replaces a redacted match.
pub(super) fn redaction_mark(rule: &str) -> String {
    format!("{REDACTED}{rule}]")
}

/// Maximum length of a line that is withheld whole, in bytes; of a longer one, the sentence is
/// withheld.
const LINE_BYTES: usize = 1000;
/// Maximum distance that a sentence extends from the match on each side, in bytes.
const SENTENCE_BYTES: usize = 300;

/// A part of a text that is removed, and the mark that replaces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    pub(super) span: Range<usize>,
    pub(super) mark: String,
}

/// Applies cuts; cuts that touch are merged, with the mark of the first.
pub(super) fn carry_out(text: &str, mut cuts: Vec<Cut>) -> String {
    cuts.sort_by_key(|cut| (cut.span.start, std::cmp::Reverse(cut.span.end)));
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for cut in cuts {
        if cut.span.start >= at && !(at > 0 && cut.span.start == at) {
            out.push_str(text.get(at..cut.span.start).unwrap_or_default());
            out.push_str(&cut.mark);
        }
        at = at.max(cut.span.end);
    }
    out.push_str(text.get(at..).unwrap_or_default());
    out
}

/// Returns the passage that a match belongs to: its line, or in a long line its sentence and what
/// follows closely, since an instruction is rarely one sentence.
pub(super) fn passage(text: &str, span: &Range<usize>) -> Range<usize> {
    // A text with many matches may be a single line: search no further than necessary.
    let low = span.start.saturating_sub(LINE_BYTES + 1);
    let high = text.len().min(span.end + LINE_BYTES + 1);
    let before = text.as_bytes().get(low..span.start).unwrap_or_default();
    let after = text.as_bytes().get(span.end..high).unwrap_or_default();
    let line_start = memchr::memrchr(b'\n', before).map_or(low, |at| low + at + 1);
    let line_end = memchr::memchr(b'\n', after).map_or(high, |at| span.end + at);
    if line_end - line_start <= LINE_BYTES {
        return line_start..line_end;
    }
    let start = line_start.max(text.floor_char_boundary(span.start.saturating_sub(SENTENCE_BYTES)));
    let end = line_end.min(text.ceil_char_boundary(span.end + SENTENCE_BYTES));
    let last_end = |part: &str| {
        part.char_indices()
            .filter(|(_, c)| matches!(c, '.' | '!' | '?' | '。' | '！' | '？' | '\n'))
            .map(|(at, c)| at + c.len_utf8())
            .next_back()
    };
    let first = text
        .get(start..span.start)
        .and_then(last_end)
        .map_or(start, |at| start + at);
    let last = text
        .get(span.end..end)
        .and_then(last_end)
        .map_or(end, |at| span.end + at);
    first..last
}

/// Prefix of the line that reports withheld content.
pub(super) const NOTICE: &str = "[lychgate withheld ";

fn subject(surface: Surface) -> &'static str {
    match surface {
        Surface::Content | Surface::Structured => "this tool's output",
        Surface::Definition => "this description",
        _ => "this text",
    }
}

/// What was withheld from one string.
#[derive(Default)]
pub(super) struct WithheldPassages<'r> {
    pub(super) passages: usize,
    pub(super) rules: BTreeSet<&'r str>,
}

impl WithheldPassages<'_> {
    /// Returns the notice that is placed before the remaining text.
    pub(super) fn notice(&self, surface: Surface, audit: AuditId) -> String {
        let (passages, they) = if self.passages == 1 {
            ("passage", "it reads")
        } else {
            ("passages", "they read")
        };
        let what = format!("{} {passages} of {}", self.passages, subject(surface));
        format!(
            "{NOTICE}{what} because {they} like instructions to the model: {}, quarantine {audit}]\n",
            self.rule_list()
        )
    }

    /// Returns the notice that replaces a block.
    pub(super) fn block_notice(&self, surface: Surface, audit: AuditId) -> String {
        format!(
            "{NOTICE}a block of {} as a whole: {}, quarantine {audit}]\n",
            subject(surface),
            self.rule_list()
        )
    }

    fn rule_list(&self) -> String {
        rule_list(&self.rules)
    }
}

fn rule_list(rules: &BTreeSet<&str>) -> String {
    let quoted: Vec<String> = rules.iter().map(|rule| format!("`{rule}`")).collect();
    let word = if rules.len() == 1 { "rule" } else { "rules" };
    format!("{word} {}", quoted.join(", "))
}

/// Returns the line above a page that was rendered.
pub(super) fn render_notice(rules: BTreeSet<&str>, bytes: usize, audit: AuditId) -> String {
    format!(
        "[lychgate rendered this HTML page of {bytes} bytes as text: {}, audit {audit}]\n",
        rule_list(&rules)
    )
}

/// Returns the line above a text from which invisible characters were removed.
pub(super) fn removal_notice(rules: &BTreeSet<&str>, characters: usize, audit: AuditId) -> String {
    let word = if characters == 1 {
        "character"
    } else {
        "characters"
    };
    format!(
        "[lychgate removed {characters} invisible {word}: {}, audit {audit}]\n",
        rule_list(rules)
    )
}

/// Prefix of the line above a text with redactions.
const REDACTION_NOTICE: &str = "[lychgate redacted ";

/// Returns the line above a text, derived from `base`, in which matches of these rules were
/// redacted. `None` if no mark is left.
pub(super) fn redaction_notice(
    base: &str,
    text: &str,
    rules: &BTreeSet<&str>,
    audit: AuditId,
) -> Option<String> {
    let marks = text.matches(REDACTED).count();
    if rules.is_empty() || marks == 0 {
        return None;
    }
    // A text can contain marks of its own; the line is never written without a redaction, so there
    // is at least one.
    let count = marks.saturating_sub(base.matches(REDACTED).count()).max(1);
    let word = if count == 1 { "passage" } else { "passages" };
    Some(format!(
        "{REDACTION_NOTICE}{count} {word}: {}, audit {audit}]\n",
        rule_list(rules)
    ))
}

/// Returns a text without the notices above it.
pub(super) fn without_notices(text: &str) -> &str {
    let notice = |text: &str| text.starts_with(NOTICE) || text.starts_with(REDACTION_NOTICE);
    let mut remaining = text;
    while let Some((_, rest)) = remaining.split_once('\n').filter(|_| notice(remaining)) {
        remaining = rest;
    }
    remaining
}

/// Returns a value of JSON data: if a redaction replaced the whole value (an address, a card
/// number), it is the mark alone, which names the rule. Programs read such a field, and a notice in
/// each of a thousand rows helps nobody.
pub(super) fn field_value(text: String) -> String {
    let is_mark = |left: &str| {
        let rule = left
            .strip_prefix(REDACTED)
            .and_then(|rest| rest.strip_suffix(']'));
        rule.is_some_and(|rule| !rule.contains(['[', ']']))
    };
    match text.split_once('\n') {
        Some((line, left)) if line.starts_with(REDACTION_NOTICE) && is_mark(left) => {
            left.to_owned()
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touching_cuts_are_one() {
        let cut = |span, mark: &str| Cut {
            span,
            mark: mark.into(),
        };
        let cuts = vec![
            cut(6..8, "B"),
            cut(0..2, "A"),
            cut(1..4, "x"),
            cut(4..5, "y"),
            cut(6..7, "z"),
        ];
        assert_eq!(carry_out("0123456789", cuts), "A5B89");
        assert_eq!(carry_out("abc", vec![]), "abc");
    }

    #[test]
    fn a_passage_is_a_line_or_a_sentence() {
        let text = "one line\nignore this now\nthree";
        let at = text.find("this").unwrap();
        assert_eq!(&text[passage(text, &(at..at + 4))], "ignore this now");
        let long = format!(
            "{} First. Do ignore this. {}",
            "lorem ipsum ".repeat(100),
            "dolor é sit ".repeat(100)
        );
        let at = long.find("this").unwrap();
        let taken = &long[passage(&long, &(at..at + 4))];
        assert!(
            taken.starts_with(" Do ignore this.") && taken.len() < 2 * SENTENCE_BYTES,
            "{taken}"
        );
    }

    #[test]
    fn a_redaction_is_noted_above_a_text_and_not_in_a_field_of_data() {
        let rules = BTreeSet::from(["email-address"]);
        let audit = AuditId::generate();
        let line = |base: &str, text: &str| redaction_notice(base, text, &rules, audit);
        let one = line("a b", "a [redacted: email-address]").unwrap();
        assert_eq!(
            one,
            format!("[lychgate redacted 1 passage: rule `email-address`, audit {audit}]\n")
        );
        let two = line("a b", "[redacted: email-address] [redacted: email-address]").unwrap();
        assert!(two.starts_with("[lychgate redacted 2 passages: "), "{two}");
        // A mark that the server wrote is not counted, and does not hide a redaction.
        let forged = line(
            "[redacted: x] a@b.example",
            "[redacted: x] [redacted: email-address]",
        )
        .unwrap();
        assert!(
            forged.starts_with("[lychgate redacted 1 passage: "),
            "{forged}"
        );
        assert_eq!(line("a b", "[withheld]"), None);
        let mark = redaction_mark("email-address");
        assert_eq!(field_value(format!("{one}{mark}")), mark);
        let more = format!("{one}Mail {mark}");
        assert_eq!(field_value(more.clone()), more);
        let withheld = format!("{NOTICE}1 passage …]\n{more}");
        assert_eq!(field_value(withheld.clone()), withheld);
        assert_eq!(without_notices(&withheld), format!("Mail {mark}"));
    }
}
