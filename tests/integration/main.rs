//! Each promise of the gate, tried with real listeners: a gate in this process, scripted servers behind it, agents in
//! front of it.
//!
//! | file | proves |
//! | --- | --- |
//! | `transparency` | what is harmless arrives byte for byte, both ways, on every transport, in both eras |
//! | `wrap`, `demo` | both verbs as whole programs |

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::string_slice, reason = "a test may panic")]

mod demo;
mod harness;
mod servers;
mod transparency;
mod wrap;

/// Not a test but the child process of others: see [`servers::StdioServer`].
#[test]
fn stdio_child() {
    servers::be_a_child();
}
