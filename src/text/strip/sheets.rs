//! The style sheets of a page, which are read before the page.

use crate::text::element::Tag;
use crate::text::style::Sheet;
use crate::text::tokens::{Event, Mode, read_events};

/// Reads the style sheets of a page, wherever they are in it.
pub(super) fn add_all(text: &str, fragment: bool, sheet: &mut Sheet) {
    let mode = Mode::new(fragment);
    let mut tag = Tag::default();
    let mut css: Option<String> = None;
    // Style sheets in templates have no effect.
    let mut templates = 0_usize;
    read_events(text, &mode, |event| match event {
        Event::OpenStartTag(name) => tag.reset(name),
        Event::AttributeName(name) => {
            tag.attribute.clear();
            tag.attribute.push_str(name);
        }
        Event::AttributeValue(value) => tag.store_sheet_attribute(value),
        Event::CloseStartTag(_) => {
            mode.set_content_of(&tag.name);
            match tag.name.as_str() {
                "template" => templates += 1,
                "style" if templates == 0 => css = Some(String::new()),
                "link" => add_linked(&tag, sheet),
                _ => {}
            }
        }
        Event::EndTag(name) => match name {
            "template" => templates = templates.saturating_sub(1),
            "style" => {
                if let Some(css) = css.take() {
                    sheet.add(&css, &tag.media);
                }
            }
            _ => {}
        },
        Event::Text(text) => {
            if let Some(css) = &mut css {
                css.push_str(text);
            }
        }
        Event::Comment(_) => {}
    });
    // In a text that is not a page, a tag without its end tag is just a word.
    if let Some(css) = css.filter(|_| !fragment) {
        sheet.add(&css, &tag.media);
    }
}

/// Reads a style sheet that is contained in the URL of a link. If the link leads elsewhere, records
/// that there is an external one.
pub(super) fn add_linked(tag: &Tag, sheet: &mut Sheet) {
    if tag.rel.contains("stylesheet") && !tag.rel.contains("alternate") {
        match crate::text::data::text(&tag.href) {
            Some(inner) => sheet.add(&inner, &tag.media),
            None => sheet.linked = true,
        }
    }
}
