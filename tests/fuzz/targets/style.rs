//! Reads any text as a style sheet, and as the style of an element: in bounded time, and the text
//! of the page is judged as visible or hidden, never lost.

use std::time::{Duration, Instant};

use lychgate::text::Text;

const MOST: Duration = Duration::from_secs(3);

pub fn fuzz(input: &str) {
    let began = Instant::now();
    let css = input.replace(['<', '>'], "");
    let quoted = css.replace('"', "'");
    let html = format!(
        "<html><head><style>{css}</style></head><body class=\"a b\"><div id=i style=\"{quoted}\"><p class=a>one \
         <b class=b data-a=b>two</b></p></div><svg><text {}>three</text></svg>four</body></html>",
        quoted.replace('=', " ")
    );
    let text = Text::new(html.as_str());
    let page = text.page().expect("a page");
    for word in ["one", "two", "four"] {
        assert!(
            page.visible.contains(word) || page.hidden.contains(word),
            "{word} is lost"
        );
    }
    super::assert_in_time(began, MOST, input.len());
}
