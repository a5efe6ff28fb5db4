//! The part of CSS that decides whether a person sees a text.

mod colour;
mod declare;
mod hides;
mod look;
mod media;
mod motion;
mod scan;
mod select;
mod selector;
mod sheet;
mod shorthand;
mod space;
mod value;
mod vars;

use colour::Colour;
pub(super) use look::{InheritedStyle, OwnStyle};
pub(super) use select::StartTag;
pub(super) use sheet::Sheet;
