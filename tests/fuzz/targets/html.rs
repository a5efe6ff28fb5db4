//! Reads any text as HTML: parsed and laid out in bounded time, without a panic that is not caught.

use std::sync::Once;
use std::time::{Duration, Instant};

use lychgate::text::Text;

/// Maximum time for 8 kB, on a busy machine and with every check compiled in; quadratic code takes
/// longer.
const MOST: Duration = Duration::from_secs(3);

static HOOK: Once = Once::new();

pub fn fuzz(input: &str) {
    // libFuzzer's hook also aborts on panics that are caught, as those of html2text are.
    HOOK.call_once(|| drop(std::panic::take_hook()));
    let began = Instant::now();
    let html = format!("<html><body>{input}");
    for text in [input, &html] {
        if let Some(page) = Text::new(text).page() {
            assert!(
                page.visible.len() + page.hidden.len() <= 64 * text.len() + 4096,
                "a page does not explode"
            );
        }
    }
    super::assert_in_time(began, MOST, input.len());
}
