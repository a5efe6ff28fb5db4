//! Reads any text as Markdown with links, definitions and code: in bounded time and size, and
//! removed parts are still judged.

use std::time::{Duration, Instant};

use lychgate::text::Text;

const MOST: Duration = Duration::from_secs(3);

pub fn fuzz(input: &str) {
    let began = Instant::now();
    for text in [
        input.to_owned(),
        format!("# A\n\n{input}\n\n[x](https://a.test/ \"{input}\")\n\n[//]: # ({input})\n"),
    ] {
        if let Some(page) = Text::new(text.as_str()).page() {
            assert!(
                page.visible.len() + page.hidden.len() <= 64 * text.len() + 4096,
                "a text does not explode"
            );
            assert!(
                !page.hidden.is_empty() || page.visible != text || text.contains('<'),
                "nothing was taken: {text:?}"
            );
        }
    }
    super::assert_in_time(began, MOST, input.len());
}
