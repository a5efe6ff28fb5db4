//! All fuzz targets in one binary, which is linked once. `LYCHGATE_FUZZ_TARGET` selects one by the
//! name of its module.
#![no_main]

mod challenge;
mod command;
mod html;
mod inspect;
mod invisible;
mod jwt;
mod lock;
mod markdown;
mod parse;
mod path;
mod readings;
mod rule_file;
mod splice;
mod sql;
mod sse;
mod style;
mod url;

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use libfuzzer_sys::arbitrary::{Arbitrary, Unstructured};
use libfuzzer_sys::fuzz_target;

static TARGET: LazyLock<String> =
    LazyLock::new(|| std::env::var("LYCHGATE_FUZZ_TARGET").unwrap_or_default());

/// Calls a target with the input that the bytes encode.
fn run<'a, T: Arbitrary<'a>>(data: &'a [u8], target: impl FnOnce(T)) {
    if let Ok(input) = T::arbitrary_take_rest(Unstructured::new(data)) {
        target(input);
    }
}

/// Panics if more than `most` has passed for an input of so many bytes.
#[track_caller]
fn assert_in_time(began: Instant, most: Duration, bytes: usize) {
    let took = began.elapsed();
    assert!(took < most, "{took:?} for {bytes} bytes");
}

macro_rules! targets {
    ($($name:ident)*) => {
        fuzz_target!(|data: &[u8]| match TARGET.as_str() {
            $(stringify!($name) => run(data, $name::fuzz),)*
            other => panic!("LYCHGATE_FUZZ_TARGET is `{other}`; known: {:?}", [$(stringify!($name)),*]),
        });
    };
}

targets!(challenge command html inspect invisible jwt lock markdown parse path readings rule_file splice sql sse style url);
