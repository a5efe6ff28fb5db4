//! Finds and removes invisible characters in any text: reported spans are in the text, and the rest
//! contains none of them.

use std::time::{Duration, Instant};

use lychgate::text::invisible::find_invisible;
use lychgate::text::strip_invisible;

const MOST: Duration = Duration::from_secs(3);

pub fn fuzz(input: &str) {
    let began = Instant::now();
    for (what, span) in find_invisible(input) {
        assert!(
            input.get(span.clone()).is_some_and(|part| !part.is_empty()),
            "{what:?} at {span:?} of {input:?}"
        );
    }
    let left = strip_invisible(input);
    assert!(left.len() <= input.len(), "nothing is added");
    assert!(
        !left.contains('\u{1b}') && !left.contains('\u{202e}'),
        "{left:?}"
    );
    super::assert_in_time(began, MOST, input.len());
}
