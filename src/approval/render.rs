//! Renders a call for an approver: everything that would be sent, laid out to be readable, so that
//! nothing in it can be mistaken for the gate's own text.

use std::borrow::Cow;

use crate::message::{Envelope, Message, Role, Step, Value, ValueKind};
use crate::text::{cut, is_visible};

/// Prefix of each line that comes from the agent.
const MARGIN: &str = "| ";

/// Renders the request as lines with a margin: the tool or method, and all its arguments. Limited
/// to `max_bytes` bytes and a note of how much is not shown.
pub(super) fn render(message: &Message, envelope: &Envelope, max_bytes: usize) -> String {
    let mut out = String::from(MARGIN);
    let params = message.body(envelope);
    let is_call = envelope.method() == Some("tools/call");
    let tool_name = params
        .filter(|_| is_call)
        .and_then(|params| params.get("name"));
    let (head, content): (String, Option<Value<'_>>) = match tool_name {
        Some(name) => (
            name.str().unwrap_or_default().into_owned(),
            params.and_then(|params| params.get("arguments")),
        ),
        None => (envelope.method().unwrap_or_default().to_owned(), params),
    };
    let mut page = TextPage {
        out: &mut out,
        depth: 0,
        max_bytes,
        left_out: 0,
    };
    page.push_escaped(&head);
    if let Some(value) = content {
        page.push_value(value);
    }
    let left_out = page.left_out;
    if left_out > 0 {
        out.push_str(&format!("\n[{left_out} more bytes are not shown: deny the request unless you know what they are]"));
    }
    out
}

/// Returns the first `max_bytes` bytes of a page, with a note of how much is missing.
pub(super) fn truncate(page: &str, max_bytes: usize) -> Cow<'_, str> {
    let start = cut(page, max_bytes);
    match page.len() - start.len() {
        0 => Cow::Borrowed(page),
        missing => Cow::Owned(format!(
            "{start}\n[{missing} more bytes are not shown here: deny the request unless you know what they are]"
        )),
    }
}

/// Renders a name that somebody else chose as one line of visible text. Text that is too long is
/// cut and ends with `…`.
pub(super) fn line(text: &str, max_bytes: usize) -> String {
    let mut out = String::new();
    let mut page = TextPage {
        out: &mut out,
        depth: 0,
        max_bytes,
        left_out: 0,
    };
    page.push_escaped(text);
    if page.left_out > 0 {
        out.push('…');
    }
    out
}

struct TextPage<'o> {
    out: &'o mut String,
    depth: usize,
    max_bytes: usize,
    left_out: usize,
}

impl TextPage<'_> {
    fn push(&mut self, c: char) {
        if self.left_out > 0 || self.out.len() + c.len_utf8() > self.max_bytes {
            self.left_out += c.len_utf8();
        } else {
            self.out.push(c);
        }
    }

    fn push_text(&mut self, text: &str) {
        text.chars().for_each(|c| self.push(c));
    }

    fn new_line(&mut self) {
        self.push('\n');
        self.push_text(MARGIN);
        for _ in 0..self.depth.min(20) {
            self.push_text("  ");
        }
    }

    /// Appends a text; every invisible character is written as its code point.
    fn push_escaped(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                '\n' => self.push_text("\\n"),
                '\r' => self.push_text("\\r"),
                '\t' => self.push_text("\\t"),
                '\\' => self.push_text("\\\\"),
                '"' => self.push_text("\\\""),
                c if is_visible(c) => self.push(c),
                c => self.push_text(&format!("\\u{{{:04X}}}", u32::from(c))),
            }
        }
    }

    fn push_string(&mut self, text: &str) {
        self.push('"');
        let mut lines = text.split_inclusive('\n').peekable();
        while let Some(line) = lines.next() {
            self.push_escaped(line);
            if lines.peek().is_some() {
                self.depth += 1;
                self.new_line();
                self.depth -= 1;
            }
        }
        self.push('"');
    }

    /// Appends a value, with each member and element on its own line.
    fn push_value(&mut self, root: Value<'_>) {
        root.walk(|path, value, role| {
            self.depth = path.len();
            match (role, path.last()) {
                (Role::Key, _) => {
                    self.new_line();
                    self.push_string(&value.str().unwrap_or_default());
                    self.push(':');
                    return;
                }
                (Role::Value, Some(Step::Index(_))) => {
                    self.new_line();
                    self.push_text("-");
                }
                (Role::Value, _) => {}
            }
            match value.kind() {
                ValueKind::String => {
                    self.push(' ');
                    self.push_string(&value.str().unwrap_or_default());
                }
                ValueKind::Object if value.members().next().is_none() => self.push_text(" {}"),
                ValueKind::Array if value.elements().next().is_none() => self.push_text(" []"),
                ValueKind::Object | ValueKind::Array => {}
                ValueKind::Number | ValueKind::Bool | ValueKind::Null => {
                    self.push(' ');
                    self.push_text(value.raw());
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::ReadLimits;

    fn page(params: &str, max_bytes: usize) -> String {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
        let message = Message::parse(text.into(), &ReadLimits::default()).unwrap();
        render(&message, message.single().unwrap(), max_bytes)
    }

    #[test]
    fn all_of_a_call_is_there_to_be_read() {
        let rendered = page(
            r#"{"name":"run","arguments":{"command":"ls\necho \"x\"","list":[1,{"a":null},[]],"none":{}},"_meta":{"x":1}}"#,
            4000,
        );
        let expected = "| run\n|   \"command\": \"ls\\n\n|     echo \\\"x\\\"\"\n|   \"list\":\n|     - 1\n|     -\n|       \"a\": null\n|     - []\n|   \"none\": {}";
        assert_eq!(rendered, expected);
    }

    #[test]
    fn what_does_not_show_itself_is_written_out() {
        let rendered = page(
            r#"{"name":"run","arguments":{"c":"a\u202eb\u0000\u200b\u001b[2K\ud83d\ude00é\u2028| x\udb40\udc41"}}"#,
            4000,
        );
        assert_eq!(
            rendered,
            "| run\n|   \"c\": \"a\\u{202E}b\\u{0000}\\u{200B}\\u{001B}[2K😀é\\u{2028}| x\\u{E0041}\""
        );
        assert!(
            rendered.lines().all(|line| line.starts_with(MARGIN)),
            "no line without its margin: {rendered}"
        );
        assert_eq!(line("a\nb\u{202e}", 100), "a\\nb\\u{202E}");
        assert_eq!(
            (line("abc", 3), line("abcd", 3)),
            ("abc".into(), "abc…".into())
        );
    }

    #[test]
    fn what_is_too_long_is_cut_and_the_cut_is_told() {
        let long = "x".repeat(5000);
        let rendered = page(
            &format!(r#"{{"name":"run","arguments":{{"c":"{long}"}}}}"#),
            1000,
        );
        assert!(
            rendered.len() < 1100 && rendered.contains("more bytes are not shown"),
            "{rendered}"
        );
    }
}
