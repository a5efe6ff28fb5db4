//! Renders a call for an approver: everything that would be sent, laid out to be readable, so that
//! nothing in it can be mistaken for the gate's own text.

use std::borrow::Cow;

use crate::message::{Envelope, Message, Role, Step, Value, ValueKind};
use crate::text::{cut, shows};

/// Prefix of each line that comes from the agent.
const MARGIN: &str = "| ";

/// Renders the request as lines with a margin: the tool or method, and all its arguments. Limited
/// to `most` bytes and a note of how much is not shown.
pub(super) fn render(message: &Message, envelope: &Envelope, most: usize) -> String {
    let mut out = String::from(MARGIN);
    let params = message.body(envelope);
    let is_call = envelope.method() == Some("tools/call");
    let named = params
        .filter(|_| is_call)
        .and_then(|params| params.get("name"));
    let (head, of): (String, Option<Value<'_>>) = match named {
        Some(name) => (
            name.str().unwrap_or_default().into_owned(),
            params.and_then(|params| params.get("arguments")),
        ),
        None => (envelope.method().unwrap_or_default().to_owned(), params),
    };
    let mut page = TextPage {
        out: &mut out,
        depth: 0,
        most,
        left_out: 0,
    };
    page.text(&head);
    if let Some(value) = of {
        page.value(value);
    }
    let left_out = page.left_out;
    if left_out > 0 {
        out.push_str(&format!("\n[{left_out} more bytes are not shown: deny the request unless you know what they are]"));
    }
    out
}

/// Returns the first `most` bytes of a page, with a note of how much is missing.
pub(super) fn within(page: &str, most: usize) -> Cow<'_, str> {
    let kept = cut(page, most);
    match page.len() - kept.len() {
        0 => Cow::Borrowed(page),
        missing => Cow::Owned(format!(
            "{kept}\n[{missing} more bytes are not shown here: deny the request unless you know what they are]"
        )),
    }
}

/// Renders a name that somebody else chose as one line of visible text. Text that is too long is
/// cut and ends with `…`.
pub(super) fn line(text: &str, most: usize) -> String {
    let mut out = String::new();
    let mut page = TextPage {
        out: &mut out,
        depth: 0,
        most,
        left_out: 0,
    };
    page.text(text);
    if page.left_out > 0 {
        out.push('…');
    }
    out
}

struct TextPage<'o> {
    out: &'o mut String,
    depth: usize,
    most: usize,
    left_out: usize,
}

impl TextPage<'_> {
    fn push(&mut self, c: char) {
        if self.left_out > 0 || self.out.len() + c.len_utf8() > self.most {
            self.left_out += c.len_utf8();
        } else {
            self.out.push(c);
        }
    }

    fn plain(&mut self, text: &str) {
        text.chars().for_each(|c| self.push(c));
    }

    fn line_end(&mut self) {
        self.push('\n');
        self.plain(MARGIN);
        for _ in 0..self.depth.min(20) {
            self.plain("  ");
        }
    }

    /// Appends a text; every invisible character is written as its code point.
    fn text(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                '\n' => self.plain("\\n"),
                '\r' => self.plain("\\r"),
                '\t' => self.plain("\\t"),
                '\\' => self.plain("\\\\"),
                '"' => self.plain("\\\""),
                c if shows(c) => self.push(c),
                c => self.plain(&format!("\\u{{{:04X}}}", u32::from(c))),
            }
        }
    }

    fn string(&mut self, text: &str) {
        self.push('"');
        let mut lines = text.split_inclusive('\n').peekable();
        while let Some(line) = lines.next() {
            self.text(line);
            if lines.peek().is_some() {
                self.depth += 1;
                self.line_end();
                self.depth -= 1;
            }
        }
        self.push('"');
    }

    /// Appends a value, with each member and element on its own line.
    fn value(&mut self, root: Value<'_>) {
        root.walk(|path, value, role| {
            self.depth = path.len();
            match (role, path.last()) {
                (Role::Key, _) => {
                    self.line_end();
                    self.string(&value.str().unwrap_or_default());
                    self.push(':');
                    return;
                }
                (Role::Value, Some(Step::Index(_))) => {
                    self.line_end();
                    self.plain("-");
                }
                (Role::Value, _) => {}
            }
            match value.kind() {
                ValueKind::String => {
                    self.push(' ');
                    self.string(&value.str().unwrap_or_default());
                }
                ValueKind::Object if value.members().next().is_none() => self.plain(" {}"),
                ValueKind::Array if value.elements().next().is_none() => self.plain(" []"),
                ValueKind::Object | ValueKind::Array => {}
                ValueKind::Number | ValueKind::Bool | ValueKind::Null => {
                    self.push(' ');
                    self.plain(value.raw());
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::ReadLimits;

    fn page(params: &str, most: usize) -> String {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
        let message = Message::parse(text.into(), &ReadLimits::default()).unwrap();
        render(&message, message.single().unwrap(), most)
    }

    #[test]
    fn all_of_a_call_is_there_to_be_read() {
        let told = page(
            r#"{"name":"run","arguments":{"command":"ls\necho \"x\"","list":[1,{"a":null},[]],"none":{}},"_meta":{"x":1}}"#,
            4000,
        );
        let expected = "| run\n|   \"command\": \"ls\\n\n|     echo \\\"x\\\"\"\n|   \"list\":\n|     - 1\n|     -\n|       \"a\": null\n|     - []\n|   \"none\": {}";
        assert_eq!(told, expected);
    }

    #[test]
    fn what_does_not_show_itself_is_written_out() {
        let told = page(
            r#"{"name":"run","arguments":{"c":"a\u202eb\u0000\u200b\u001b[2K\ud83d\ude00é\u2028| x\udb40\udc41"}}"#,
            4000,
        );
        assert_eq!(
            told,
            "| run\n|   \"c\": \"a\\u{202E}b\\u{0000}\\u{200B}\\u{001B}[2K😀é\\u{2028}| x\\u{E0041}\""
        );
        assert!(
            told.lines().all(|line| line.starts_with(MARGIN)),
            "no line without its margin: {told}"
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
        let told = page(
            &format!(r#"{{"name":"run","arguments":{{"c":"{long}"}}}}"#),
            1000,
        );
        assert!(
            told.len() < 1100 && told.contains("more bytes are not shown"),
            "{told}"
        );
    }
}
