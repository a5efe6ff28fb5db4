//! Makes all readings of any text: in bounded time and size, each of a span that is in the text.

use std::time::{Duration, Instant};

use lychgate::text::Text;

/// Maximum time for 8 kB, on a busy machine and with every check compiled in; quadratic code takes
/// longer.
const MOST: Duration = Duration::from_secs(3);

pub fn fuzz(input: &str) {
    let began = Instant::now();
    let text = Text::new(input);
    let mut made = text.plain().len() + text.bare().map_or(0, str::len);
    for reading in text.readings() {
        assert!(
            input.get(reading.span.clone()).is_some(),
            "{:?} is no part of {input:?}",
            reading.span
        );
        made += reading.text.len();
    }
    assert!(
        made <= 64 * input.len() + 65_536,
        "{made} bytes made of {}",
        input.len()
    );
    super::assert_in_time(began, MOST, input.len());
}
