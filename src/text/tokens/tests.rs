use std::convert::Infallible;

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};

use super::{Event, Mode, read_events};

fn flat(parts: Vec<String>) -> String {
    // Text may come in pieces.
    parts.concat().replace("\u{1}t\u{1}t", "\u{1}t")
}

fn own_tokens(text: &str) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mode = Mode::default();
    let mut name = String::new();
    read_events(text, &mode, |event| {
        let part = match event {
            Event::OpenStartTag(tag) => {
                name = tag.to_owned();
                format!("\n<{tag}")
            }
            Event::AttributeName(name) => format!(" {name}"),
            Event::AttributeValue(value) => format!("={value}"),
            Event::CloseStartTag(slash) => {
                mode.set_content_of(&name);
                format!(" {slash}>\n")
            }
            Event::EndTag(name) => format!("\n</{name}>\n"),
            Event::Text(text) => text.replace('\n', "~"),
            Event::Comment(text) => format!("\n<!{text}>\n"),
        };
        parts.push(part);
    });
    flat(parts)
}

/// Like [`own_tokens`], but with a tokenizer that follows the standard state by state.
fn reference_tokens(text: &str) -> String {
    let mut parts: Vec<String> = Vec::new();
    let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut inner = CallbackEmitter::new(
        |event: CallbackEvent<'_>, _: Span<()>| -> Option<Infallible> {
            parts.push(match event {
                CallbackEvent::OpenStartTag { name } => format!("\n<{}", lossy(name)),
                CallbackEvent::AttributeName { name } => format!(" {}", lossy(name)),
                CallbackEvent::AttributeValue { value } => format!("={}", lossy(value)),
                CallbackEvent::CloseStartTag { self_closing } => format!(" {self_closing}>\n"),
                CallbackEvent::EndTag { name } => format!("\n</{}>\n", lossy(name)),
                CallbackEvent::String { value } => lossy(value).replace('\n', "~"),
                CallbackEvent::Comment { value } => format!("\n<!{}>\n", lossy(value)),
                CallbackEvent::Doctype { .. } | CallbackEvent::Error(_) => String::new(),
            });
            None
        },
    );
    inner.naively_switch_states(true);
    let Ok(()) = Tokenizer::new_with_emitter(text, inner).finish();
    flat(parts)
}

const PIECES: [&str; 66] = [
    "<p>",
    "</p>",
    "<a href=x>",
    "<a href='x y'>",
    "<b/>",
    "<br / >",
    "</ x>",
    "</>",
    "<!-- c -->",
    "<!-->",
    "<!--->",
    "<!--",
    "-->",
    "--!>",
    "<!x>",
    "<?x?>",
    "<script>",
    "</script>",
    "</SCRIPT >",
    "<style>",
    "</style>",
    "<title>",
    "</title>",
    "<textarea>",
    "</textarea>",
    "<",
    ">",
    "/",
    "=",
    "\"",
    "'",
    " ",
    "\n",
    "&lt;",
    "&amp",
    "&notit;",
    "&#65;",
    "&#x41",
    "&#128;",
    "&#0;",
    "&",
    "&copy=",
    "&;",
    "text",
    "é",
    "<!doctype html>",
    "<div a=b c = \"d\" e>",
    "<div a=\"b\"c>",
    "<x y=&lt;>",
    "<x y=\"&copy1\">",
    "<X Y=Z>",
    "<svg>",
    "]]>",
    "<![CDATA[x]]>",
    "<p a=1 a=2>",
    "<p =x>",
    "<p a==>",
    "<p/a>",
    "<p a/ b>",
    "<p a=/>",
    "\0",
    "<p\0>",
    "<p a=\"\0\">",
    "<p <b>",
    "<a b=c&amp;d>",
    "--",
];

#[test]
fn tokens_are_those_of_the_standard() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..3000 {
        let mut text = String::new();
        for _ in 0..(state % 9) + 1 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            text.push_str(PIECES[(state >> 33) as usize % PIECES.len()]);
        }
        state = state.rotate_left(17).wrapping_add(0x9e37_79b9);
        assert_eq!(own_tokens(&text), reference_tokens(&text), "{text:?}");
    }
}
