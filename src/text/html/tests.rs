use std::time::{Duration, Instant};

use super::*;

fn page(text: &str) -> Page {
    Page::of(text).unwrap_or_else(|| panic!("no page: {text:?}"))
}

#[test]
fn what_styles_hide_is_not_seen() {
    for hidden in [
        r#"<p style="display:none">SECRET</p>"#,
        r#"<p style="DISPLAY : NONE !important">SECRET</p>"#,
        r#"<p style="\64 isplay:none">SECRET</p>"#,
        r#"<p style="dis/* */play:none">SECRET</p>"#,
        r#"<p style="visibility:hidden">SECRET</p>"#,
        r#"<p style="opacity:0">SECRET</p>"#,
        r#"<p style="opacity:0.01"><b>SECRET</b></p>"#,
        r#"<p style="font-size:0"><span>SECRET</span></p>"#,
        r#"<p style="font-size:1px">SECRET</p>"#,
        r#"<p style="color:#fff;background:#fff">SECRET</p>"#,
        r#"<p style="color:white">SECRET</p>"#,
        r#"<p style="color:rgba(0,0,0,0)">SECRET</p>"#,
        r#"<div style="background:black"><p style="color:#000">SECRET</p></div>"#,
        r#"<font color="white">SECRET</font>"#,
        r#"<p style="position:absolute;left:-9999px">SECRET</p>"#,
        r#"<p style="text-indent:-9999px">SECRET</p>"#,
        r#"<p style="height:0;overflow:hidden">SECRET</p>"#,
        r#"<p style="clip:rect(0,0,0,0)">SECRET</p>"#,
        r#"<p style="clip-path:inset(100%)">SECRET</p>"#,
        r#"<p style="transform:scale(0)">SECRET</p>"#,
        "<p hidden>SECRET</p>",
        "<p hidden=until-found>SECRET</p>",
        r#"<p aria-hidden="true">SECRET</p>"#,
        "<template><p>SECRET</p></template>",
        "<noscript>SECRET</noscript>",
        "<script>SECRET</script>",
        "<!-- SECRET -->",
        "<p title='a title with SECRET words'>x</p>",
        "<svg><desc>SECRET</desc></svg>",
        "<style>.x{display:none}</style><p class='y x'>SECRET</p>",
        "<style>@media screen{.x{display:none}}</style><p class=x>SECRET</p>",
        "<style>.a.b{opacity:0}</style><p class='b c a'>SECRET</p>",
        "<style>body #i , q{visibility:hidden}</style><p id=I>SECRET</p>",
        "<style>aside{font-size:0}</style><aside>SECRET</aside>",
        "<style>.\\68 ide{display:none}</style><p class=hide>SECRET</p>",
        "<p hidden><b>SECRET</i></p>",
        "<div hidden><div>x</div>SECRET</div>",
    ] {
        let text = format!("<html><body><p>before</p>{hidden}<p>after</p></body></html>");
        let page = page(&text);
        assert!(!page.visible.contains("SECRET"), "{hidden}: {}", page.visible);
        assert!(page.hidden.contains("SECRET"), "{hidden}");
        assert!(page.visible.contains("before") && page.visible.contains("after"), "{hidden}: {}", page.visible);
        assert!(!page.written().contains("SECRET"), "{hidden}");
    }
}

#[test]
fn what_is_seen_stays() {
    for (html, seen) in [
        (r#"<p style="visibility:hidden"><b style="visibility:visible">seen</b></p>"#, "seen"),
        (r#"<p style="font-size:0"><b style="font-size:12px">seen</b></p>"#, "seen"),
        (r#"<p style="color:white;background:navy">seen</p>"#, "seen"),
        (r#"<div style="background-image:url(x.png)"><p style="color:white">seen</p></div>"#, "seen"),
        ("<link rel=stylesheet href=a><div class=dark><p style='color:white'>seen</p></div>", "seen"),
        ("<p hidden>a<p>seen</p>", "seen"),
        ("<ul><li hidden>a<li>seen</ul>", "seen"),
        ("<details open><summary>x</summary>seen</details>", "seen"),
        ("<details><summary>seen</summary>x</details>", "seen"),
        ("<p>&lt;b&gt; se&#101;n</p>", "<b> seen"),
        ("<style>@media print{.x{display:none}} .z:hover{display:none}</style><p class='x z'>seen</p>", "seen"),
        ("<div hidden></div><p>seen</p>", "seen"),
    ] {
        let page = page(&format!("<html><body>{html}</body></html>"));
        assert!(page.visible.contains(seen), "{html}: {}", page.visible);
    }
}

#[test]
fn what_may_be_unfolded_shows_in_text_of_another_kind_and_is_judged_as_hidden() {
    let text = "# Notes\n\n<details><summary>More</summary>\n\nfolded words\n</details>\n\nend";
    let open = page(text);
    assert!(open.folded && open.visible.contains("folded words") && open.hidden.contains("folded words"));
    let shut = Page::folded(text).unwrap();
    assert!(!shut.visible.contains("folded words") && shut.visible.contains("More") && shut.hidden.contains("folded words"));
}

#[test]
fn layout_reads_well() {
    let text = "<!doctype html><html><head><title>T</title></head><body><h2>Head  line</h2><p>One <b>t</b>wo\n three.</p><ul><li>a<li>b</ul>\
                <p>See <a href=\"https://a.test/x\">here</a>.<br>Next</p><pre>x\n  y</pre></body></html>";
    let read = page(text);
    assert_eq!(read.visible, "## Head line\n\nOne two three.\n\n- a\n- b\n\nSee [here](https://a.test/x).\nNext\n\nx\n  y");
    assert_eq!(read.written(), read.visible);
    let table = page("<html><table><tr><th>name</th><th>size</th></tr><tr><td>a</td><td>1</td></tr></table></html>");
    assert!(table.visible.contains("name | size\n") && table.written().contains("name"), "{}", table.written());
}

#[test]
fn text_of_another_kind_keeps_its_lines_and_its_code() {
    let text = "# Title\n\n<p align=\"center\"><img src=x alt=\"logo\"></p>\n\nUse `<b>` so:\n```html\n<div hidden>x</div>\n```\n<!-- note -->\n* one\n* two\n";
    let page = page(text);
    assert_eq!(page.visible, "# Title\n\n[image: logo]\n\nUse `<b>` so:\n```html\n<div hidden>x</div>\n```\n\n* one\n* two\n");
    assert_eq!(page.hidden, "note");
}

#[test]
fn markup_inside_words_does_not_part_them() {
    assert_eq!(page("<p>ig<b>no</b>re <span style='x'>this</span></p>").visible, "ignore this");
}

#[test]
fn what_never_ends_in_other_text_still_shows() {
    assert!(page("words <p>a</p> <i>b</i> <!-- and then the rest of a long text").visible.contains("rest of a long text"));
    assert!(page("words <p>a</p> <i>b</i> <title> is an element").visible.contains("is an element"));
}

fn time(text: &str) -> Duration {
    let runs = (0..3).map(|_| {
        let start = Instant::now();
        if let Some(page) = Page::of(text) {
            assert!(page.visible.len() <= 2 * text.len() + 100);
            page.written();
        }
        start.elapsed()
    });
    runs.min().unwrap_or_default()
}

/// A text of a shape, as long as it is told.
type Shape = fn(usize) -> String;

#[test]
fn hostile_input_costs_linear_time() {
    let shapes: [(&str, Shape); 12] = [
        ("nested", |n| "<div>".repeat(n)),
        ("nested styled", |n| "<p style='font-size:0' class='a b c'><b>".repeat(n / 5)),
        ("closers", |n| format!("{}{}", "<div>".repeat(n / 2), "</p></b>".repeat(n / 4))),
        ("mismatched", |n| "<b><i></b></i>".repeat(n / 3)),
        ("brackets", |n| format!("<p>x</p>{}", "<".repeat(n * 5))),
        ("comments", |n| format!("<p>x</p>{}", "<!--".repeat(n))),
        ("one attribute", |n| format!("<p title='{}'>x</p>", "a ".repeat(n * 2))),
        ("attributes", |n| format!("<p {}>x</p>", "a='b c' ".repeat(n / 2))),
        ("sheet", |n| format!("<html><style>{}</style><p class=a>x</p>", ".a{color:red}".repeat(n / 2))),
        ("tables", |n| format!("<html>{}", "<table><tr><td>".repeat(n / 4))),
        ("rows", |n| format!("<html><table>{}</table>", "<tr><td rowspan=9>a".repeat(n / 4))),
        ("lists", |n| format!("<html>{}", "<ul><li>a".repeat(n / 2))),
    ];
    for (name, make) in shapes {
        // Others use the machine too: what is linear shows it in one of a few tries.
        let ratio = || time(&make(40_000)).as_secs_f64() / time(&make(5_000)).as_secs_f64().max(0.001);
        assert!((0..5).any(|_| ratio() < 24.0), "{name}: far more than eight times the time for eight times the input");
    }
}
