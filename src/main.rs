//! The `lychgate` command.

fn main() {}
