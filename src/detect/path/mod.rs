//! Paths: where a call's arguments lead in a file system.

mod roots;

pub use roots::{Links, Roots};
