//! Shows a long result in parts: the limits, the places where a text may be cut, and what is stored
//! of the rest.

mod caps;
mod portion;
mod shorten;

pub(super) use caps::Caps;
pub use caps::{Paging, Remainder, URI_PREFIX, footer, page_uri};
pub use portion::Portions;
pub(super) use shorten::counted_surface;
