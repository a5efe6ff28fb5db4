//! Cuts HTML into tokens. Which text is markup depends on what is open, so the reader says after each tag how to go on.

use std::cell::Cell;
use std::convert::Infallible;

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Emitter, ForwardingEmitter, Span, State, Tokenizer};

/// How the reader of tokens wants the text after a tag to be read.
#[derive(Debug, Default)]
pub(super) struct Mode {
    next: Cell<Option<State>>,
    foreign: Cell<bool>,
}

impl Mode {
    /// What follows is read as the content of this element, where it is one with a content of its own kind.
    pub(super) fn content_of(&self, name: &str) {
        self.next.set(match name {
            "textarea" | "title" => Some(State::RcData),
            "plaintext" => Some(State::PlainText),
            "script" => Some(State::ScriptData),
            "style" | "iframe" | "xmp" | "noembed" | "noframes" | "noscript" => Some(State::RawText),
            _ => None,
        });
    }

    /// Whether what is open is SVG or MathML, where CDATA is text.
    pub(super) fn foreign(&self, foreign: bool) {
        self.foreign.set(foreign);
    }
}

/// Reads a text to its end.
pub(super) fn run(text: &str, mode: &Mode, mut take: impl FnMut(CallbackEvent<'_>)) {
    let inner = CallbackEmitter::new(|event: CallbackEvent<'_>, _: Span<()>| -> Option<Infallible> {
        take(event);
        None
    });
    let Ok(()) = Tokenizer::new_with_emitter(text, Moded { inner, mode }).finish();
}

struct Moded<'m, E> {
    inner: E,
    mode: &'m Mode,
}

impl<E: Emitter<Token = Infallible>> ForwardingEmitter for Moded<'_, E> {
    type Token = Infallible;

    fn inner(&mut self) -> &mut impl Emitter<Token = Infallible> {
        &mut self.inner
    }

    fn emit_current_tag(&mut self) -> Option<State> {
        let own = self.inner.emit_current_tag();
        let next = self.mode.next.take().or(own);
        if next.is_some() {
            self.inner.init_string();
        }
        next
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&mut self) -> bool {
        self.mode.foreign.get()
    }
}
